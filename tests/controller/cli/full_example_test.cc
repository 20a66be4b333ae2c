// SPDX-License-Identifier: Apache-2.0
#include "controller/api/job_json.h"
#include "controller/api/parse_job.h"
#include "controller/api/validate_job.h"
#include "controller/cli/manifest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace disttrain {
namespace {

using testing::ElementsAre;

// Every field of the resource, with the values of its reference.
constexpr char kFullExample[] = R"(
apiVersion: disttrain.dev/v1alpha1
kind: DistTrainingJob
metadata:
  name: cartpole
  labels: {kueue.x-k8s.io/queue-name: team-a}
spec:
  program: reinforce
  parameters: {gamma: 0.99, episodes: 1500}
  suspend: false
  managedBy: disttrain.dev/controller
  roles:
  - name: agent
    replicas: 1
  - name: observer
    replicas: 4
    processesPerPod: 1
    startAfter: agent
    restart: Rank
    elastic:
      minReplicas: 2
      maxReplicas: 8
      shrinkAfterSeconds: 60
    template:
      spec:
        containers:
        - name: worker
          resources: {limits: {nvidia.com/gpu: 1, cpu: "4", memory: 8Gi}}
  mainContainer: worker
  rendezvous:
    port: 29400
    timeoutSeconds: 300
  failurePolicy:
    maxRestarts: 3
    maxDisruptions: 100
    method: Auto
    backoff: {initialSeconds: 5, maxSeconds: 300, resetAfterSeconds: 1800}
    rules:
    - name: bad-config
      action: Fail
      exitCodes: [64, 65, 78]
    - name: oom
      action: Restart
      reasons: [OOMKilled]
    - name: nccl
      action: RestartFree
      messagePattern: "NCCL|peer reset|ECC"
  successPolicy:
    mode: AllRanks
    metric: {name: reward, op: GreaterOrEqual, threshold: "475", consecutiveReports: 5}
  deadlines:
    pendingSeconds: 1800
    activeSeconds: 86400
    progressSeconds: 900
  cleanup:
    podPolicy: Running
    ttlSecondsAfterFinished: 604800
    ttlSecondsAfterFailed: 2592000
  scheduling:
    gang: Auto
    queue: default
    priorityClassName: ""
    minMember: 5
    scheduleTimeoutSeconds: 300
    topology: {key: topology.kubernetes.io/zone, mode: Preferred}
  network:
    tls: Required
    policy: JobOnly
  checkpoint:
    mountPath: /checkpoint
    volumeClaim: ckpt
    resume: Latest
    onTermination: Save
  reporting:
    intervalSeconds: 10
    metricsPort: 9400
)";

Job Example() {
  const absl::StatusOr<Json> json = ManifestFromYaml(kFullExample);
  EXPECT_TRUE(json.ok()) << json.status();
  const absl::StatusOr<Job> job = ParseJob(*json);
  EXPECT_TRUE(job.ok()) << job.status();
  return *job;
}

TEST(FullExample, HasItsRoles) {
  const Job job = Example();
  EXPECT_EQ(job.name, "cartpole");
  EXPECT_EQ(job.labels.at("kueue.x-k8s.io/queue-name"), "team-a");
  EXPECT_EQ(job.spec.program, "reinforce");
  EXPECT_EQ(job.spec.parameters, Json({{"gamma", 0.99}, {"episodes", 1500}}));
  EXPECT_FALSE(job.spec.suspend);
  EXPECT_EQ(job.spec.managed_by, "disttrain.dev/controller");
  ASSERT_EQ(job.spec.roles.size(), 2u);
  Role agent;
  agent.name = "agent";
  EXPECT_EQ(job.spec.roles[0], agent);
  Role observer;
  observer.name = "observer";
  observer.replicas = 4;
  observer.processes_per_pod = 1;
  observer.start_after = "agent";
  observer.restart = RestartScope::kRank;
  observer.elastic = Elastic{2, 8, 60};
  observer.pod_template = Json::parse(
      R"({"spec": {"containers": [{"name": "worker", "resources": {"limits":
          {"nvidia.com/gpu": 1, "cpu": "4", "memory": "8Gi"}}}]}})");
  EXPECT_EQ(job.spec.roles[1], observer);
  EXPECT_EQ(job.spec.main_container, "worker");
  EXPECT_EQ(WorldSize(job.spec), 5);
}

TEST(FullExample, HasItsFailurePolicy) {
  const FailurePolicy policy = Example().spec.failure_policy;
  FailurePolicy expected;
  expected.max_restarts = 3;
  expected.max_disruptions = 100;
  expected.backoff = {5, 300, 1800};
  expected.rules.resize(3);
  expected.rules[0].name = "bad-config";
  expected.rules[0].action = FailureAction::kFail;
  expected.rules[0].exit_codes = {64, 65, 78};
  expected.rules[1].name = "oom";
  expected.rules[1].reasons = {"OOMKilled"};
  expected.rules[2].name = "nccl";
  expected.rules[2].action = FailureAction::kRestartFree;
  expected.rules[2].message_pattern = "NCCL|peer reset|ECC";
  EXPECT_EQ(policy, expected);
}

TEST(FullExample, HasItsOtherValues) {
  const JobSpec spec = Example().spec;
  EXPECT_EQ(spec.rendezvous, (Rendezvous{29400, 300}));
  EXPECT_EQ(spec.success_policy,
            (SuccessPolicy{SuccessMode::kAllRanks,
                           MetricTarget{"reward", "GreaterOrEqual", 475, 5}}));
  EXPECT_EQ(spec.deadlines, (Deadlines{1800, 86400, 900}));
  EXPECT_EQ(spec.cleanup,
            (Cleanup{CleanupPodPolicy::kRunning, 604800, 2592000}));
  EXPECT_EQ(spec.scheduling,
            (Scheduling{"Auto", "default", "", 5, 300,
                        Json{{"key", "topology.kubernetes.io/zone"},
                             {"mode", "Preferred"}}}));
  EXPECT_EQ(spec.network, (Network{true, false, true}));
  EXPECT_EQ(*spec.checkpoint,
            (Checkpoint{"/checkpoint", "ckpt", Json(), true, "Latest", true}));
  EXPECT_EQ(spec.reporting, (Reporting{10, 9400, false}));
}

TEST(FullExample, SurvivesTheWayToJsonAndBack) {
  const Job job = Example();
  const absl::StatusOr<Job> again = ParseJob(ToJson(job));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, job);
}

TEST(FullExample, NamesWhatIsNotActedOnYet) {
  std::vector<std::string> paths;
  for (const FieldError& error : UnsupportedFields(Example().spec)) {
    paths.push_back(error.path);
  }
  EXPECT_THAT(paths,
              ElementsAre("spec.roles[1].elastic", "spec.scheduling.topology",
                          "spec.checkpoint"));
}

}  // namespace
}  // namespace disttrain
