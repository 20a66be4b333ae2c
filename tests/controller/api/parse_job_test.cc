// SPDX-License-Identifier: Apache-2.0
#include "controller/api/parse_job.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/runtime/status.h"
#include "tests/controller/api/jobs.h"

namespace disttrain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ParseJob, FillsInTheDefaultsOfTheResource) {
  const absl::StatusOr<Job> job = ParseJob(SmallManifest());
  ASSERT_TRUE(job.ok()) << job.status();
  Job expected;
  expected.name = "cartpole";
  expected.spec.program = "reinforce";
  expected.spec.roles.resize(2);
  expected.spec.roles[0].name = "agent";
  expected.spec.roles[1].name = "observer";
  expected.spec.roles[1].replicas = 2;
  EXPECT_EQ(*job, expected);
  EXPECT_EQ(job->spec.rendezvous.port, 29400);
  EXPECT_EQ(job->spec.failure_policy.max_restarts, 3);
  EXPECT_EQ(job->spec.failure_policy.max_disruptions, 100);
  EXPECT_TRUE(job->spec.network.tls_required);
}

TEST(ParseJob, TakesNullForAbsent) {
  Json manifest = With("/spec/roles/0/replicas", nullptr);
  manifest["metadata"]["creationTimestamp"] = nullptr;
  manifest["spec"]["checkpoint"] = nullptr;
  const absl::StatusOr<Job> job = ParseJob(manifest);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->spec.roles[0].replicas, 1);
  EXPECT_FALSE(job->spec.checkpoint.has_value());
}

TEST(ParseJob, ReadsWhatTheApiServerAdds) {
  Json manifest = SmallManifest();
  manifest["metadata"].update(Json::parse(R"({
    "uid": "8d9f", "generation": 3, "resourceVersion": "77",
    "namespace": "ml", "creationTimestamp": "2026-01-05T10:00:00Z",
    "deletionTimestamp": "2026-01-05T11:00:00Z", "finalizers": ["x/y"],
    "managedFields": [{}], "labels": {"kueue.x-k8s.io/queue-name": "team-a"}
  })"));
  manifest["status"] = {{"attempt", 1}};
  const absl::StatusOr<Job> job = ParseJob(manifest);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->uid, "8d9f");
  EXPECT_EQ(job->generation, 3);
  EXPECT_EQ(job->resource_version, "77");
  EXPECT_EQ(job->namespace_, "ml");
  EXPECT_TRUE(job->being_deleted);
  EXPECT_EQ(job->labels.at("kueue.x-k8s.io/queue-name"), "team-a");
  EXPECT_EQ(job->status["attempt"], 1);
}

struct Mistake {
  const char* pointer;
  Json value;
  const char* message;
};

// One wrong field each, and the one message it must give.
const Mistake kMistakes[] = {
    {"/apiVersion", "disttrain.dev/v2",
     "apiVersion is \"disttrain.dev/v2\", must be disttrain.dev/v1alpha1"},
    {"/kind", "Deployment", "kind is \"Deployment\", must be DistTrainingJob"},
    {"/metadata/name", nullptr, "metadata.name is missing"},
    {"/metadata/name", "Cart",
     "metadata.name is \"Cart\", must be lower-case letters, digits and '-', "
     "beginning with a letter and not ending in '-'"},
    {"/metadata/name", std::string(41, 'a'),
     "metadata.name is \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\", must be "
     "at most 40 characters (it has 41)"},
    {"/spec/rols", Json::array(),
     "spec.rols is an unknown field; did you mean roles?"},
    {"/spec/roles/1/replcas", 2,
     "spec.roles[1].replcas is an unknown field; did you mean replicas?"},
    {"/spec/roles", nullptr, "spec.roles is missing"},
    {"/spec/roles", Json::array(),
     "spec.roles is empty, must have at least 1 role"},
    {"/spec/roles", "two", "spec.roles is \"two\" (string), must be a list"},
    {"/spec/roles/1", 7, "spec.roles[1] is 7 (number), must be an object"},
    {"/spec/roles/1/name", "Observer",
     "spec.roles[1].name is \"Observer\", must be a lower-case label of at "
     "most 12 characters ([a-z]([-a-z0-9]*[a-z0-9])?)"},
    {"/spec/roles/1/name", "abcdefghijklm",
     "spec.roles[1].name is \"abcdefghijklm\", must be a lower-case label of "
     "at most 12 characters ([a-z]([-a-z0-9]*[a-z0-9])?)"},
    {"/spec/roles/1/replicas", "two",
     "spec.roles[1].replicas is \"two\" (string), must be an integer in [1, "
     "9999]"},
    {"/spec/roles/1/replicas", 0,
     "spec.roles[1].replicas is 0 (number), must be an integer in [1, 9999]"},
    {"/spec/roles/1/replicas", 10000,
     "spec.roles[1].replicas is 10000 (number), must be an integer in [1, "
     "9999]"},
    {"/spec/roles/1/replicas", 2.5,
     "spec.roles[1].replicas is 2.5 (number), must be an integer in [1, "
     "9999]"},
    {"/spec/roles/1/processesPerPod", 129,
     "spec.roles[1].processesPerPod is 129 (number), must be an integer in "
     "[1, 128]"},
    {"/spec/roles/1/restart", "rank",
     "spec.roles[1].restart is \"rank\", must be one of Gang, Rank; did you "
     "mean Rank?"},
    {"/spec/program", 7,
     "spec.program is 7 (number), must be a string: the "
     "name of a program of at most 63 characters"},
    {"/spec/parameters", "x",
     "spec.parameters is \"x\" (string), must be an object"},
    {"/spec/suspend", "yes",
     "spec.suspend is \"yes\" (string), must be true or false"},
    {"/spec/managedBy", "me",
     "spec.managedBy is \"me\", must be one of disttrain.dev/controller, "
     "kueue.x-k8s.io/multikueue"},
    {"/spec/rendezvous/port", 65536,
     "spec.rendezvous.port is 65536 (number), must be an integer in [1, "
     "65535]"},
    {"/spec/failurePolicy/maxRestarts", -1,
     "spec.failurePolicy.maxRestarts is -1 (number), must be an integer in "
     "[0, 999]"},
    {"/spec/deadlines/activeSeconds", int64_t{2147483648},
     "spec.deadlines.activeSeconds is 2147483648 (number), must be an integer "
     "in [0, 2147483647]"},
    {"/spec/cleanup/ttlSecondsAfterFinished", -1,
     "spec.cleanup.ttlSecondsAfterFinished is -1 (number), must be an integer "
     "in [0, 2147483647]"},
    {"/spec/successPolicy/metric", Json{{"name", "reward"}, {"threshold", 475}},
     "spec.successPolicy.metric.threshold is 475 (number), must be a string: "
     "a decimal number in quotes, such as \"475\""},
    {"/spec/successPolicy/metric",
     Json{{"name", "reward"}, {"threshold", "4e2"}},
     "spec.successPolicy.metric.threshold is \"4e2\", must be a decimal "
     "number in quotes, such as \"475\""},
    {"/spec/successPolicy/metric", Json{{"name", "rewrad"}, {"threshold", "1"}},
     "spec.successPolicy.metric.name is \"rewrad\", must be one of reward, "
     "episodeReward, loss, step; did you mean reward?"},
    {"/spec/scheduling/topology", Json{{"mode", "Required"}},
     "spec.scheduling.topology.key is missing"},
    {"/spec/checkpoint", Json{{"volumeClaim", "c"}, {"resume", "Step:x"}},
     "spec.checkpoint.resume is \"Step:x\", must be Latest, None or Step:<n>"},
    {"/spec/reporting/intervalSeconds", 0,
     "spec.reporting.intervalSeconds is 0 (number), must be an integer in [1, "
     "3600]"},
    {"/metadata/labels", Json{{"a", 1}},
     "metadata.labels.a is 1 (number), must be a string (put it in quotes)"},
};

TEST(ParseJob, NamesTheFieldTheValueAndTheExpectationOfEachMistake) {
  for (const Mistake& mistake : kMistakes) {
    const ParsedJob parsed =
        ParseAndValidate(With(mistake.pointer, mistake.value));
    EXPECT_THAT(Messages(parsed.errors), ElementsAre(mistake.message))
        << mistake.pointer;
  }
}

TEST(ParseJob, RefusesTheLimitsOfEveryIntegerField) {
  const char* const fields[] = {
      "/spec/roles/0/replicas",
      "/spec/rendezvous/timeoutSeconds",
      "/spec/failurePolicy/maxDisruptions",
      "/spec/failurePolicy/backoff/resetAfterSeconds",
      "/spec/deadlines/pendingSeconds",
      "/spec/deadlines/progressSeconds",
      "/spec/cleanup/ttlSecondsAfterFailed",
      "/spec/scheduling/minMember",
      "/spec/scheduling/scheduleTimeoutSeconds",
      "/spec/reporting/metricsPort",
  };
  const Json values[] = {-1,
                         int64_t{2147483648},
                         std::numeric_limits<uint64_t>::max(),
                         std::numeric_limits<int64_t>::min(),
                         "3",
                         1e30};
  for (const char* field : fields) {
    for (const Json& value : values) {
      EXPECT_FALSE(ParseJob(With(field, value)).ok()) << field << " " << value;
    }
  }
}

TEST(ParseJob, ReportsAllMistakesTogether) {
  Json manifest = With("/spec/roles/1/replicas", "two");
  manifest["spec"]["suspnd"] = true;
  manifest["metadata"].erase("name");
  const absl::StatusOr<Job> job = ParseJob(manifest);
  ASSERT_FALSE(job.ok());
  EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(job.status()), HasSubstr("metadata.name is missing"));
  EXPECT_THAT(Message(job.status()), HasSubstr("spec.roles[1].replicas"));
  EXPECT_THAT(Message(job.status()), HasSubstr("did you mean suspend?"));
}

TEST(ParseJob, RefusesWhatIsNoObject) {
  for (const Json& value : {Json(), Json("x"), Json::array(), Json(7)}) {
    EXPECT_FALSE(ParseJob(value).ok()) << value;
  }
}

TEST(ParseJob, ReadsFailureRules) {
  const absl::StatusOr<Job> job =
      ParseJob(With("/spec/failurePolicy", Json::parse(R"({"rules": [
        {"name": "a", "action": "Fail", "exitCodes": [1, 255],
         "exitCodeRanges": ["2-63", "70-70"]},
        {"name": "b", "action": "RestartFree", "reasons": ["OOMKilled"],
         "conditions": ["DisruptionTarget"], "roles": ["observer"],
         "messagePattern": "NCCL|ECC"}]})")));
  ASSERT_TRUE(job.ok()) << job.status();
  const std::vector<FailureRule>& rules = job->spec.failure_policy.rules;
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_THAT(rules[0].exit_codes, ElementsAre(1, 255));
  EXPECT_THAT(rules[0].exit_code_ranges,
              ElementsAre(std::pair(2, 63), std::pair(70, 70)));
  EXPECT_EQ(rules[0].action, FailureAction::kFail);
  EXPECT_THAT(rules[1].roles, ElementsAre("observer"));
  EXPECT_EQ(rules[1].message_pattern, "NCCL|ECC");
}

TEST(ParseJob, RefusesExitCodeZeroAndMalformedRanges) {
  const auto rule = [](const char* key, const Json& values) {
    return With("/spec/failurePolicy/rules",
                Json::array({Json{
                    {"name", "r"}, {"action", "Restart"}, {key, values}}}));
  };
  for (const Json& code :
       {Json(0), Json(256), Json(-1), Json("1"), Json(1.5)}) {
    EXPECT_FALSE(ParseJob(rule("exitCodes", Json::array({code}))).ok()) << code;
  }
  for (const char* range :
       {"", "1", "1-", "-3", "0-3", "9-3", "1-256", "1-2x"}) {
    EXPECT_FALSE(ParseJob(rule("exitCodeRanges", Json::array({range}))).ok())
        << range;
  }
}

TEST(ParseJob, HasNoMistakesInAValidJob) {
  EXPECT_THAT(ParseAndValidate(SmallManifest()).errors, IsEmpty());
}

}  // namespace
}  // namespace disttrain
