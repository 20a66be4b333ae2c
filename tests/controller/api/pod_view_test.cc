// SPDX-License-Identifier: Apache-2.0
#include "controller/api/pod_view.h"

#include "gtest/gtest.h"

namespace disttrain {
namespace {

TEST(PodView, ReadsAFailedPod) {
  const PodView view = PodViewFromJson(Json::parse(R"({
    "metadata": {"name": "cartpole-observer-1-r1", "uid": "p1",
      "resourceVersion": "42", "creationTimestamp": "2026-01-05T10:00:00Z",
      "labels": {"disttrain.dev/job-name": "cartpole",
        "disttrain.dev/role": "observer", "disttrain.dev/replica-index": "1",
        "disttrain.dev/rank": "2", "disttrain.dev/attempt": "1",
        "disttrain.dev/incarnation": "3"},
      "annotations": {"kubectl.kubernetes.io/default-container": "worker"},
      "ownerReferences": [{"uid": "other"}, {"uid": "j1", "controller": true}]},
    "spec": {"nodeName": "gpu-3",
             "containers": [{"name": "log"}, {"name": "worker"}]},
    "status": {"phase": "Failed", "podIP": "10.0.0.7",
      "conditions": [
        {"type": "Ready", "status": "False"},
        {"type": "DisruptionTarget", "status": "True",
         "reason": "PreemptionByScheduler"}],
      "containerStatuses": [
        {"name": "log", "state": {"terminated": {"exitCode": 0}}},
        {"name": "worker", "state": {"terminated": {"exitCode": 137,
          "reason": "OOMKilled", "message": "{\"rank\":2}",
          "finishedAt": "2026-01-05T10:05:00Z"}}}]}
  })"));
  EXPECT_EQ(view.name, "cartpole-observer-1-r1");
  EXPECT_EQ(view.uid, "p1");
  EXPECT_EQ(view.resource_version, "42");
  EXPECT_EQ(view.job_name, "cartpole");
  EXPECT_EQ(view.owner_uid, "j1");
  EXPECT_EQ(view.role, "observer");
  EXPECT_EQ(view.role_index, 1);
  EXPECT_EQ(view.rank, 2);
  EXPECT_EQ(view.attempt, 1);
  EXPECT_EQ(view.incarnation, 3);
  EXPECT_EQ(view.phase, PodPhase::kFailed);
  EXPECT_EQ(view.node, "gpu-3");
  EXPECT_EQ(view.pod_ip, "10.0.0.7");
  EXPECT_FALSE(view.ready);
  EXPECT_FALSE(view.main_running);
  EXPECT_TRUE(view.main_started);
  EXPECT_FALSE(view.being_deleted);
  EXPECT_TRUE(view.disruption_target);
  EXPECT_EQ(view.disruption_reason, "PreemptionByScheduler");
  EXPECT_EQ(view.reason, "OOMKilled");
  EXPECT_EQ(view.exit_code, 137);
  EXPECT_EQ(view.signal, 9);
  EXPECT_EQ(view.termination_message, "{\"rank\":2}");
  ASSERT_TRUE(view.finished_at.has_value());
  EXPECT_EQ(*view.finished_at - *view.creation_time, absl::Minutes(5));
}

TEST(PodView, ReadsAPodThatWaitsForItsImage) {
  const PodView view = PodViewFromJson(Json::parse(R"({
    "metadata": {"deletionTimestamp": "2026-01-05T10:00:00Z"},
    "spec": {"containers": [{"name": "w"}]},
    "status": {"phase": "Pending",
      "conditions": [{"type": "PodScheduled", "status": "False",
                      "reason": "Unschedulable", "message": "0/3 nodes"}],
      "containerStatuses": [{"name": "w", "state": {"waiting":
        {"reason": "ImagePullBackOff", "message": "no such image"}}}]}
  })"));
  EXPECT_EQ(view.phase, PodPhase::kPending);
  EXPECT_FALSE(view.bound);
  EXPECT_TRUE(view.being_deleted);
  EXPECT_EQ(view.reason, "ImagePullBackOff");
  EXPECT_EQ(view.message, "no such image");
  EXPECT_EQ(view.unschedulable_reason, "0/3 nodes");
  EXPECT_FALSE(view.main_started);
  EXPECT_EQ(view.exit_code, std::nullopt);
}

TEST(PodView, PrefersThePodsOwnReason) {
  const PodView view = PodViewFromJson(Json::parse(R"({
    "spec": {"containers": [{"name": "w"}]},
    "status": {"phase": "Failed", "reason": "Evicted", "message": "disk",
      "containerStatuses": [{"name": "w", "state": {"terminated":
        {"exitCode": 1, "reason": "Error"}}}]}
  })"));
  EXPECT_EQ(view.reason, "Evicted");
  EXPECT_EQ(view.message, "disk");
  EXPECT_EQ(view.exit_code, 1);
  EXPECT_EQ(view.signal, std::nullopt);
}

TEST(PodView, SurvivesObjectsOfAnyShape) {
  for (const char* text :
       {"null", "7", "[]", "{}",
        R"({"metadata": 1, "spec": [], "status": "x"})",
        R"({"metadata": {"labels": {"disttrain.dev/rank": "x"},
            "ownerReferences": {}}, "spec": {"containers": [1]},
            "status": {"conditions": {}, "containerStatuses": [[], 7]}})",
        R"({"metadata": {"labels": {"disttrain.dev/rank": "-4",
            "disttrain.dev/attempt": 1}}})"}) {
    const PodView view = PodViewFromJson(Json::parse(text));
    EXPECT_EQ(view.rank, -1) << text;
    EXPECT_EQ(view.attempt, -1) << text;
  }
}

TEST(PodView, NamesSignals) {
  EXPECT_EQ(SignalName(9), "KILL");
  EXPECT_EQ(SignalName(15), "TERM");
  EXPECT_EQ(SignalName(11), "SEGV");
  EXPECT_EQ(SignalName(64), "64");
}

}  // namespace
}  // namespace disttrain
