// SPDX-License-Identifier: Apache-2.0
#include "controller/api/job_json.h"

#include "controller/api/parse_job.h"
#include "gtest/gtest.h"
#include "tests/controller/api/jobs.h"

namespace disttrain {
namespace {

void ExpectRoundTrip(const Json& manifest) {
  const absl::StatusOr<Job> job = ParseJob(manifest);
  ASSERT_TRUE(job.ok()) << job.status();
  const absl::StatusOr<Job> again = ParseJob(ToJson(*job));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *job) << ToJson(*job).dump(2);
}

TEST(JobJson, GivesTheSameJobAgain) { ExpectRoundTrip(SmallManifest()); }

TEST(JobJson, KeepsEveryField) {
  ExpectRoundTrip(Json::parse(R"({
    "apiVersion": "disttrain.dev/v1alpha1", "kind": "DistTrainingJob",
    "metadata": {"name": "n", "namespace": "ml", "uid": "u", "generation": 7,
      "resourceVersion": "9", "creationTimestamp": "2026-01-05T10:00:00Z",
      "labels": {"a": "b"}, "annotations": {"c": "d"}},
    "spec": {
      "program": "p", "parameters": {"x": 1.5, "deep": {"y": [1, "2"]}},
      "suspend": true, "managedBy": "kueue.x-k8s.io/multikueue",
      "roles": [
        {"name": "a", "template": {"spec": {"containers": [{"name": "w"}]}}},
        {"name": "b", "replicas": 4, "processesPerPod": 2, "startAfter": "a",
         "restart": "Rank", "elastic": {"minReplicas": 2, "maxReplicas": 8,
                                        "shrinkAfterSeconds": 5},
         "template": {"spec": {"containers": [{"name": "w"}]}}}],
      "mainContainer": "w",
      "rendezvous": {"port": 1234, "timeoutSeconds": 30},
      "failurePolicy": {"maxRestarts": 1, "maxDisruptions": 2,
        "method": "Recreate", "preset": "KubeflowExitCode",
        "backoff": {"initialSeconds": 1, "maxSeconds": 2,
                    "resetAfterSeconds": 3},
        "rules": [
          {"name": "r", "action": "Ignore", "exitCodes": [1],
           "exitCodeRanges": ["2-3"], "reasons": ["OOMKilled"],
           "conditions": ["DisruptionTarget"], "roles": ["b"],
           "messagePattern": "x"},
          {"name": "s", "action": "Fail", "exitCodes": [64]}]},
      "successPolicy": {"mode": "AnyRank", "metric": {"name": "loss",
        "op": "LessOrEqual", "threshold": "-0.000001",
        "consecutiveReports": 5}},
      "deadlines": {"pendingSeconds": 1, "activeSeconds": 2147483647,
                    "progressSeconds": 3},
      "cleanup": {"podPolicy": "None", "ttlSecondsAfterFinished": 0,
                  "ttlSecondsAfterFailed": 9},
      "scheduling": {"gang": "KAI", "queue": "q", "priorityClassName": "p",
        "minMember": 3, "scheduleTimeoutSeconds": 4,
        "topology": {"key": "zone", "mode": "Exclusive"}},
      "network": {"tls": "Disabled", "collectives": "Encrypted",
                  "policy": "None"},
      "checkpoint": {"mountPath": "/c", "volumeClaimTemplate": {"spec": {}},
        "retain": false, "resume": "Step:7", "onTermination": "None"},
      "reporting": {"intervalSeconds": 2, "metricsPort": 80,
                    "tensorboard": true}},
    "status": {"attempt": 2}
  })"));
}

TEST(JobJson, WritesThresholdsAsTheResourceWantsThem) {
  const absl::StatusOr<Job> job =
      ParseJob(With("/spec/successPolicy/metric",
                    {{"name", "reward"}, {"threshold", "475"}}));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(ToJson(*job)["spec"]["successPolicy"]["metric"]["threshold"],
            "475");
}

}  // namespace
}  // namespace disttrain
