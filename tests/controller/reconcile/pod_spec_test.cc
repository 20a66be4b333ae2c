// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/pod_spec.h"

#include <map>

#include "controller/api/parse_job.h"
#include "gtest/gtest.h"

namespace disttrain {
namespace {

Job Cartpole(const Json& observer_template = Json::object()) {
  Job job;
  job.name = "cartpole";
  job.namespace_ = "ml";
  job.uid = "11111111-2222-4333-8444-555555555555";
  job.spec.program = "reinforce";
  job.spec.parameters = {{"gamma", 0.99}};
  Role agent;
  agent.name = "agent";
  Role observer;
  observer.name = "observer";
  observer.replicas = 2;
  observer.pod_template = observer_template;
  job.spec.roles = {agent, observer};
  return job;
}

std::map<std::string, std::string> Environment(const Json& container) {
  std::map<std::string, std::string> variables;
  for (const Json& variable : container["env"]) {
    const bool fresh = variables
                           .emplace(variable["name"].get<std::string>(),
                                    variable.value("value", ""))
                           .second;
    EXPECT_TRUE(fresh) << variable["name"] << " comes twice";
  }
  return variables;
}

TEST(PodSpec, AReplaceableRankLearnsThatItIsOne) {
  Job job = Cartpole();
  job.spec.roles[1].restart = RestartScope::kRank;
  const auto restart = [&job](size_t role) {
    const Json pod = PodFor(job, role, 0, 0, 0, {});
    const auto env = Environment(pod["spec"]["containers"][0]);
    const auto found = env.find("DISTTRAIN_RESTART");
    return found == env.end() ? "" : found->second;
  };
  EXPECT_EQ(restart(0), "");
  EXPECT_EQ(restart(1), "Rank");
}

TEST(PodSpec, EveryProcessLearnsWhoItIs) {
  const Json pod = PodFor(Cartpole(), 1, 1, 2, 0, {});
  const auto env = Environment(pod["spec"]["containers"][0]);
  const std::map<std::string, std::string> expected = {
      {"DISTTRAIN_JOB", "ml/cartpole"},
      {"DISTTRAIN_JOB_UID", "11111111-2222-4333-8444-555555555555"},
      {"DISTTRAIN_ATTEMPT", "2"},
      {"DISTTRAIN_INCARNATION", "0"},
      {"DISTTRAIN_ROLE", "observer"},
      {"DISTTRAIN_ROLE_INDEX", "1"},
      {"DISTTRAIN_RENDEZVOUS", "cartpole-agent-0.cartpole.ml.svc:29400"},
      {"DISTTRAIN_RENDEZVOUS_TIMEOUT", "300"},
      {"DISTTRAIN_PROGRAM", "reinforce"},
      {"DISTTRAIN_PARAMETERS", R"({"gamma":0.99})"},
      {"DISTTRAIN_METRICS_PORT", "9400"},
      {"DISTTRAIN_REPORT_INTERVAL", "10"},
      {"DISTTRAIN_POD_NAME", "cartpole-observer-1-r2"},
      {"RANK", "2"},
      {"WORLD_SIZE", "3"},
      {"LOCAL_RANK", "0"},
      {"LOCAL_WORLD_SIZE", "1"},
      {"GROUP_RANK", "2"},
      {"GROUP_WORLD_SIZE", "3"},
      {"ROLE_NAME", "observer"},
      {"ROLE_RANK", "1"},
      {"ROLE_WORLD_SIZE", "2"},
      {"MASTER_ADDR", "cartpole-agent-0.cartpole.ml.svc"},
      {"MASTER_PORT", "29500"},
      {"TORCHELASTIC_RESTART_COUNT", "2"},
      {"TORCHELASTIC_MAX_RESTARTS", "3"},
      {"TORCHELASTIC_RUN_ID", "11111111-2222-4333-8444-555555555555"},
      {"PET_NNODES", "3"},
      {"PET_NPROC_PER_NODE", "1"},
      {"PET_NODE_RANK", "2"},
      {"PET_MASTER_ADDR", "cartpole-agent-0.cartpole.ml.svc"},
      {"PET_MASTER_PORT", "29500"},
      {"HOME", "/tmp"},
      {"CUDA_CACHE_PATH", "/tmp"}};
  EXPECT_EQ(env, expected);
}

TEST(PodSpec, APodIsNamedLabelledAndOwned) {
  const Json pod = PodFor(Cartpole(), 1, 0, 1, 3, {});
  const Json& metadata = pod["metadata"];
  EXPECT_EQ(metadata["name"], "cartpole-observer-0-r1-i3");
  EXPECT_EQ(metadata["namespace"], "ml");
  EXPECT_EQ(
      metadata["labels"],
      (Json{{"disttrain.dev/managed", "true"},
            {"disttrain.dev/job-name", "cartpole"},
            {"disttrain.dev/job-uid", "11111111-2222-4333-8444-555555555555"},
            {"disttrain.dev/role", "observer"},
            {"disttrain.dev/replica-index", "0"},
            {"disttrain.dev/rank", "1"},
            {"disttrain.dev/attempt", "1"},
            {"disttrain.dev/incarnation", "3"}}));
  const Json& owner = metadata["ownerReferences"][0];
  EXPECT_EQ(owner["uid"], "11111111-2222-4333-8444-555555555555");
  EXPECT_EQ(owner["controller"], true);
  EXPECT_EQ(pod["spec"]["hostname"], "cartpole-observer-0");
  EXPECT_EQ(pod["spec"]["subdomain"], "cartpole");
  EXPECT_EQ(pod["spec"]["restartPolicy"], "Never");
}

TEST(PodSpec, InitContainersAndSidecarsSeeTheSameVariablesOnce) {
  const Json own = {
      {"spec",
       {{"initContainers", {{{"name", "fetch"}, {"image", "busybox"}}}},
        {"containers",
         {{{"name", "main"},
           {"env",
            {{{"name", "RANK"}, {"value", "9"}},
             {{"name", "HOME"}, {"value", "/home/me"}},
             {{"name", "MINE"}, {"value", "$(RANK)"}}}}},
          {{"name", "logger"}, {"image", "busybox"}}}}}}};
  const Json pod = PodFor(Cartpole(own), 1, 0, 0, 0, {});
  const auto init = Environment(pod["spec"]["initContainers"][0]);
  const auto main = Environment(pod["spec"]["containers"][0]);
  const auto sidecar = Environment(pod["spec"]["containers"][1]);
  for (const auto& env : {init, main, sidecar}) {
    EXPECT_EQ(env.at("RANK"), "1");
    EXPECT_EQ(env.at("DISTTRAIN_ROLE"), "observer");
  }
  EXPECT_EQ(main.at("HOME"), "/home/me");
  EXPECT_EQ(main.at("MINE"), "$(RANK)");
  EXPECT_EQ(
      pod["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"],
      "main");
  EXPECT_FALSE(pod["spec"]["containers"][1].contains("command"));
}

TEST(PodSpec, TheTemplateWinsAndTheRestIsRestricted) {
  const Json own = {
      {"metadata", {{"labels", {{"team", "a"}}}}},
      {"spec",
       {{"nodeSelector", {{"gpu", "h100"}}},
        {"securityContext", {{"runAsUser", 1000}}},
        {"containers",
         {{{"name", "worker"},
           {"image", "mine:1"},
           {"command", {"python", "x.py"}},
           {"volumeMounts", {{{"name", "data"}, {"mountPath", "/tmp"}}}}}}}}}};
  const Json pod = PodFor(Cartpole(own), 1, 0, 0, 0, {});
  const Json& container = pod["spec"]["containers"][0];
  EXPECT_EQ(container["image"], "mine:1");
  EXPECT_EQ(container["command"], (Json{"python", "x.py"}));
  EXPECT_EQ(pod["metadata"]["labels"]["team"], "a");
  EXPECT_EQ(pod["spec"]["nodeSelector"]["gpu"], "h100");
  EXPECT_EQ(pod["spec"]["securityContext"]["runAsUser"], 1000);
  EXPECT_EQ(pod["spec"]["securityContext"]["runAsNonRoot"], true);
  EXPECT_EQ(container["securityContext"]["readOnlyRootFilesystem"], true);
  EXPECT_EQ(container["securityContext"]["allowPrivilegeEscalation"], false);
  EXPECT_EQ(container["securityContext"]["capabilities"]["drop"],
            Json::array({"ALL"}));
  std::map<std::string, std::string> mounts;
  for (const Json& mount : container["volumeMounts"]) {
    mounts[mount["mountPath"]] = mount["name"];
  }
  EXPECT_EQ(mounts, (std::map<std::string, std::string>{
                        {"/tmp", "data"},
                        {"/dev/shm", "disttrain-shm"},
                        {"/run/disttrain", "disttrain-run"}}));
}

TEST(PodSpec, ALocalRunMeetsAtASocketOfItsAttempt) {
  PodContext context;
  context.socket_dir = "/run/user/1/d";
  context.worker_command = {"/usr/bin/disttrain-worker"};
  context.metrics_port = 0;
  context.master_address = "127.0.0.1";
  const Json pod = PodFor(Cartpole(), 0, 0, 1, 0, context);
  const Json& container = pod["spec"]["containers"][0];
  const auto env = Environment(container);
  EXPECT_EQ(env.at("DISTTRAIN_RENDEZVOUS"),
            "unix:/run/user/1/d/rendezvous-r1.sock");
  EXPECT_EQ(env.at("DISTTRAIN_METRICS_PORT"), "0");
  EXPECT_EQ(env.at("MASTER_ADDR"), "127.0.0.1");
  EXPECT_EQ(container["command"], Json::array({"/usr/bin/disttrain-worker"}));
  EXPECT_EQ(RendezvousAddress(Cartpole(), 0, context),
            "unix:/run/user/1/d/rendezvous.sock");
}

TEST(PodSpec, RanksCountProcesses) {
  Job job = Cartpole();
  job.spec.roles[0].processes_per_pod = 4;
  job.spec.roles[1].processes_per_pod = 2;
  const auto env =
      Environment(PodFor(job, 1, 1, 0, 0, {})["spec"]["containers"][0]);
  EXPECT_EQ(env.at("RANK"), "6");
  EXPECT_EQ(env.at("WORLD_SIZE"), "8");
  EXPECT_EQ(env.at("LOCAL_WORLD_SIZE"), "2");
  EXPECT_EQ(env.at("GROUP_RANK"), "2");
  EXPECT_EQ(env.at("ROLE_RANK"), "2");
  EXPECT_EQ(env.at("ROLE_WORLD_SIZE"), "4");
}

TEST(PodSpec, TheServiceIsHeadlessAndFollowsTheAttempt) {
  const Json service = ServiceFor(Cartpole(), 2);
  EXPECT_EQ(service["metadata"]["name"], "cartpole");
  EXPECT_EQ(service["spec"]["clusterIP"], "None");
  EXPECT_EQ(service["spec"]["publishNotReadyAddresses"], true);
  EXPECT_EQ(
      service["spec"]["selector"],
      (Json{{"disttrain.dev/job-uid", "11111111-2222-4333-8444-555555555555"},
            {"disttrain.dev/attempt", "2"}}));
}

TEST(PodSpec, TheHashChangesWithTheTemplateOnly) {
  Job job = Cartpole();
  const std::string before = TemplateHash(job.spec);
  EXPECT_EQ(before.size(), 16u);
  job.spec.failure_policy.max_restarts = 9;
  EXPECT_EQ(TemplateHash(job.spec), before);
  job.spec.roles[0].pod_template = {{"spec", {{"nodeName", "x"}}}};
  EXPECT_NE(TemplateHash(job.spec), before);
}

}  // namespace
}  // namespace disttrain
