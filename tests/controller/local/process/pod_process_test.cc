// SPDX-License-Identifier: Apache-2.0
#include "controller/local/pod_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/local/downward_api.h"
#include "controller/local/pod_status.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Json PodWith(Json container) {
  container["name"] = "worker";
  return {{"metadata",
           {{"name", "job-agent-0"},
            {"namespace", "ml"},
            {"uid", "u1"},
            {"labels", {{"disttrain.dev/role", "agent"}}}}},
          {"spec", {{"containers", Json::array({container})}}}};
}

const HostContext kHost{.env = {"PATH=/bin", "HOME=/root"},
                        .log_path = "/logs/x.log",
                        .termination_message_path = "/messages/x"};

TEST(PodProcess, HasTheContainersCommandAndEnvironmentAboveTheHosts) {
  const auto process = ProcessFor(
      PodWith({{"command", {"python3"}},
               {"args", {"train.py"}},
               {"workingDir", "/work"},
               {"env", Json::array({{{"name", "HOME"}, {"value", "/tmp"}},
                                    {{"name", "RANK"}, {"value", "3"}}})}}),
      kHost);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(process->start.id, "u1");
  EXPECT_THAT(process->start.argv, ElementsAre("python3", "train.py"));
  EXPECT_EQ(process->start.directory, "/work");
  EXPECT_EQ(process->start.log_path, "/logs/x.log");
  EXPECT_THAT(process->start.env,
              ElementsAre("DISTTRAIN_TERMINATION_MESSAGE_PATH=/messages/x",
                          "HOME=/tmp", "PATH=/bin", "RANK=3"));
  EXPECT_THAT(process->warnings, ElementsAre());
}

TEST(PodProcess, ResolvesReferencesAndFields) {
  const auto process = ProcessFor(
      PodWith(
          {{"command", {"run", "$(NAME)", "$$(NAME)", "$(NONE)"}},
           {"env",
            Json::array({{{"name", "NAME"},
                          {"valueFrom",
                           {{"fieldRef", {{"fieldPath", "metadata.name"}}}}}},
                         {{"name", "WHERE"}, {"value", "$(NAME).svc"}}})}}),
      kHost);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_THAT(process->start.argv,
              ElementsAre("run", "job-agent-0", "$(NAME)", "$(NONE)"));
  EXPECT_THAT(process->start.env, Contains("WHERE=job-agent-0.svc"));
}

TEST(PodProcess, RefusesWhatNeedsACluster) {
  const auto refusal = [](const Json& pod) {
    return Message(ProcessFor(pod, kHost).status());
  };
  Json two = PodWith({{"command", {"a"}}});
  two["spec"]["containers"].push_back({{"name", "sidecar"}});
  EXPECT_EQ(refusal(two),
            "a pod of 2 containers cannot be done by a local run");
  Json init = PodWith({{"command", {"a"}}});
  init["spec"]["initContainers"] = Json::array({{{"name", "i"}}});
  EXPECT_EQ(refusal(init), "initContainers cannot be done by a local run");
  EXPECT_THAT(refusal(PodWith({{"image", "x"}})),
              HasSubstr("container worker has no command"));
  EXPECT_EQ(
      refusal(PodWith(
          {{"command", {"a"}},
           {"env", Json::array({{{"name", "TOKEN"},
                                 {"valueFrom",
                                  {{"secretKeyRef", {{"name", "s"}}}}}}})}})),
      "env TOKEN: valueFrom.secretKeyRef cannot be done by a local run");
  EXPECT_THAT(refusal(PodWith({{"command", "not a list"}})),
              HasSubstr("malformed"));
}

TEST(PodProcess, LeavesOutWhatIsOptionalAndWarnsAboutVolumes) {
  Json pod = PodWith(
      {{"command", {"a"}},
       {"env", Json::array({{{"name", "TOKEN"},
                             {"valueFrom",
                              {{"secretKeyRef",
                                {{"name", "s"}, {"optional", true}}}}}}})}});
  pod["spec"]["volumes"] = Json::array(
      {{{"name", "scratch"}, {"emptyDir", Json::object()}},
       {{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "d"}}}}});
  const auto process = ProcessFor(pod, kHost);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_THAT(process->start.env, Not(Contains(HasSubstr("TOKEN"))));
  EXPECT_THAT(process->warnings,
              ElementsAre("volume data is not mounted in a local run"));
}

TEST(HostEnvironment, KeepsWhatProgramsNeedAndNothingElse) {
  const char* environment[] = {
      "PATH=/bin",  "AWS_SECRET=x", "CUDA_VISIBLE_DEVICES=0",
      "RANK=7",     "LC_ALL=C",     "DISTTRAIN_JOB=other",
      "HOME=/root", nullptr};
  EXPECT_THAT(HostEnvironment(environment),
              ElementsAre("PATH=/bin", "CUDA_VISIBLE_DEVICES=0", "LC_ALL=C",
                          "HOME=/root"));
}

TEST(PodField, KnowsLabelsAndRefusesUnknownPaths) {
  const Json pod = PodWith({});
  EXPECT_EQ(*PodField(pod, "metadata.labels['disttrain.dev/role']"), "agent");
  EXPECT_EQ(*PodField(pod, "metadata.annotations['none']"), "");
  EXPECT_EQ(*PodField(pod, "status.podIP"), "127.0.0.1");
  EXPECT_EQ(Message(PodField(pod, "spec.other").status()),
            "fieldPath spec.other is not one of a pod's");
}

TEST(PodStatus, ASignalEndsAPodAsAKubeletReportsIt) {
  const Json pod =
      WithTermination(PodWith({}), {.exit_code = 137,
                                    .signal = 9,
                                    .reason = "Error",
                                    .message = "m",
                                    .started = absl::FromUnixSeconds(0),
                                    .finished = absl::FromUnixMillis(1500)});
  EXPECT_EQ(pod["status"]["phase"], "Failed");
  const Json& container = pod["status"]["containerStatuses"][0];
  EXPECT_EQ(container["ready"], false);
  EXPECT_EQ(container["state"]["terminated"],
            Json({{"exitCode", 137},
                  {"signal", 9},
                  {"reason", "Error"},
                  {"message", "m"},
                  {"startedAt", "1970-01-01T00:00:00.000Z"},
                  {"finishedAt", "1970-01-01T00:00:01.500Z"}}));
}

}  // namespace
}  // namespace disttrain
