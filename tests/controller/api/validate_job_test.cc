// SPDX-License-Identifier: Apache-2.0
#include "controller/api/validate_job.h"

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/controller/api/jobs.h"

namespace disttrain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Job JobFrom(const Json& manifest) {
  ParsedJob parsed = ParseAndValidate(manifest);
  EXPECT_THAT(Messages(parsed.errors), IsEmpty());
  return parsed.job;
}

// The messages for the small job with one change.
std::vector<std::string> MistakesOf(const std::string& pointer,
                                    const Json& value) {
  return Messages(ParseAndValidate(With(pointer, value)).errors);
}

Json Rules(const Json& rule) {
  Json named = {{"name", "r"}, {"action", "Restart"}};
  named.update(rule);
  return Json::array({named});
}

TEST(ValidateJob, RefusesTwoRolesOfOneName) {
  EXPECT_THAT(MistakesOf("/spec/roles/1/name", "agent"),
              ElementsAre("spec.roles[1].name is \"agent\", the name of "
                          "spec.roles[0] too; names must be unique"));
}

TEST(ValidateJob, WantsStartAfterToNameAnEarlierRole) {
  EXPECT_THAT(MistakesOf("/spec/roles/1/startAfter", "agent"), IsEmpty());
  EXPECT_THAT(MistakesOf("/spec/roles/1/startAfter", "agnt"),
              ElementsAre("spec.roles[1].startAfter is \"agnt\", must be the "
                          "name of an earlier role; did you mean agent?"));
  EXPECT_THAT(MistakesOf("/spec/roles/0/startAfter", "observer"),
              ElementsAre(HasSubstr("spec.roles[0].startAfter")));
}

TEST(ValidateJob, RefusesRestartRankForTheFirstRoleOnly) {
  EXPECT_THAT(MistakesOf("/spec/roles/0/restart", "Rank"),
              ElementsAre(HasSubstr("spec.roles[0].restart is Rank, must be "
                                    "Gang for the first role")));
  EXPECT_THAT(MistakesOf("/spec/roles/1/restart", "Rank"), IsEmpty());
}

TEST(ValidateJob, KeepsReplicasWithinTheElasticBounds) {
  EXPECT_THAT(MistakesOf("/spec/roles/1/elastic",
                         {{"minReplicas", 2}, {"maxReplicas", 2}}),
              IsEmpty());
  EXPECT_THAT(MistakesOf("/spec/roles/1/elastic",
                         {{"minReplicas", 3}, {"maxReplicas", 4}}),
              ElementsAre("spec.roles[1].elastic.minReplicas is 3, must be at "
                          "most spec.roles[1].replicas (2)"));
  EXPECT_THAT(MistakesOf("/spec/roles/1/elastic",
                         {{"minReplicas", 1}, {"maxReplicas", 1}}),
              ElementsAre("spec.roles[1].elastic.maxReplicas is 1, must be at "
                          "least spec.roles[1].replicas (2)"));
  EXPECT_THAT(MistakesOf("/spec/roles/1/elastic", {{"minReplicas", 1}}),
              ElementsAre("spec.roles[1].elastic.maxReplicas is missing"));
}

TEST(ValidateJob, LimitsTheNumberOfRolesAndProcesses) {
  Json roles = Json::array();
  for (int i = 0; i < 33; ++i) {
    roles.push_back({{"name", fmt::format("r{}", i)}});
  }
  EXPECT_THAT(MistakesOf("/spec/roles", roles),
              ElementsAre("spec.roles has 33 elements, must have at most 32"));
  roles.erase(32);
  EXPECT_THAT(MistakesOf("/spec/roles", roles), IsEmpty());
  EXPECT_THAT(MistakesOf("/spec/roles", Json::parse(R"([
        {"name": "a", "replicas": 1},
        {"name": "b", "replicas": 8192, "processesPerPod": 8}])")),
              ElementsAre(HasSubstr("make 65537 processes")));
}

TEST(ValidateJob, LimitsMinMemberToThePods) {
  EXPECT_THAT(MistakesOf("/spec/scheduling/minMember", 3), IsEmpty());
  EXPECT_THAT(MistakesOf("/spec/scheduling/minMember", 4),
              ElementsAre("spec.scheduling.minMember is 4, must be at most the "
                          "number of pods (3)"));
}

TEST(ValidateJob, WantsACriterionInEachRule) {
  EXPECT_THAT(
      MistakesOf("/spec/failurePolicy/rules", Rules({{"roles", {"agent"}}})),
      ElementsAre(HasSubstr("spec.failurePolicy.rules[0] matches "
                            "nothing")));
}

TEST(ValidateJob, WantsKnownRolesAndUniqueNamesInRules) {
  EXPECT_THAT(
      MistakesOf("/spec/failurePolicy/rules",
                 Rules({{"exitCodes", {1}}, {"roles", {"observers"}}})),
      ElementsAre("spec.failurePolicy.rules[0].roles[0] is \"observers\", must "
                  "be the name of a role of this job; did you mean observer?"));
  Json twice = Rules({{"exitCodes", {1}}});
  twice.push_back(twice[0]);
  EXPECT_THAT(MistakesOf("/spec/failurePolicy/rules", twice),
              ElementsAre(HasSubstr("rules[1].name is \"r\", as an earlier")));
}

TEST(ValidateJob, TakesTwentyRulesAndNoMore) {
  Json rules = Json::array();
  for (int i = 0; i < 21; ++i) {
    rules.push_back({{"name", fmt::format("r{}", i)},
                     {"action", "Fail"},
                     {"exitCodes", {1}}});
  }
  EXPECT_THAT(MistakesOf("/spec/failurePolicy/rules", rules),
              ElementsAre(HasSubstr("has 21 elements, must have at most 20")));
  rules.erase(20);
  EXPECT_THAT(MistakesOf("/spec/failurePolicy/rules", rules), IsEmpty());
}

TEST(ValidateJob, CompilesMessagePatterns) {
  EXPECT_THAT(MistakesOf("/spec/failurePolicy/rules",
                         Rules({{"messagePattern", "NCCL|ECC"}})),
              IsEmpty());
  EXPECT_THAT(
      MistakesOf("/spec/failurePolicy/rules",
                 Rules({{"messagePattern", "(NCCL"}})),
      ElementsAre(HasSubstr("rules[0].messagePattern is \"(NCCL\", must be a "
                            "regular expression")));
  EXPECT_THAT(MistakesOf("/spec/failurePolicy/rules",
                         Rules({{"messagePattern", std::string(257, 'a')}})),
              ElementsAre(HasSubstr("has 257 characters, must have at most "
                                    "256")));
}

TEST(ValidateJob, LetsOnlyElasticRolesIgnoreFailures) {
  const Json rule = Rules({{"action", "Ignore"}, {"exitCodes", {1}}});
  EXPECT_THAT(MistakesOf("/spec/failurePolicy/rules", rule),
              ElementsAre(HasSubstr("rules[0].action is Ignore")));
  Json manifest = With("/spec/failurePolicy/rules", rule);
  manifest["spec"]["roles"][1]["elastic"] = {{"minReplicas", 1},
                                             {"maxReplicas", 2}};
  EXPECT_THAT(Messages(ParseAndValidate(manifest).errors), IsEmpty());
}

TEST(ValidateJob, WantsMaxSecondsNotBelowInitialSeconds) {
  EXPECT_THAT(MistakesOf("/spec/failurePolicy/backoff",
                         {{"initialSeconds", 9}, {"maxSeconds", 8}}),
              ElementsAre("spec.failurePolicy.backoff.maxSeconds is 8, must be "
                          "at least initialSeconds (9)"));
  EXPECT_THAT(MistakesOf("/spec/failurePolicy/backoff",
                         {{"initialSeconds", 0}, {"maxSeconds", 0}}),
              IsEmpty());
}

TEST(ValidateJob, KeepsPortsApart) {
  EXPECT_THAT(MistakesOf("/spec/rendezvous/port", 29500),
              ElementsAre(HasSubstr("MASTER_PORT")));
  EXPECT_THAT(MistakesOf("/spec/reporting/metricsPort", 29400),
              ElementsAre(HasSubstr("neither spec.rendezvous.port (29400)")));
}

TEST(ValidateJob, WantsExactlyOneKindOfVolumeInACheckpoint) {
  EXPECT_THAT(MistakesOf("/spec/checkpoint", {{"volumeClaim", "c"}}),
              IsEmpty());
  EXPECT_THAT(
      MistakesOf("/spec/checkpoint", {{"volumeClaimTemplate", Json::object()}}),
      IsEmpty());
  EXPECT_THAT(MistakesOf("/spec/checkpoint", Json::object()),
              ElementsAre(HasSubstr("has neither volumeClaim nor")));
  EXPECT_THAT(
      MistakesOf("/spec/checkpoint", {{"volumeClaim", "c"},
                                      {"volumeClaimTemplate", Json::object()}}),
      ElementsAre(HasSubstr("has both volumeClaim and")));
}

TEST(ValidateJob, LimitsParametersTo64KiB) {
  // {"p":"..."} is 8 bytes around the text.
  const size_t most = kMaxParametersSize - 8;
  EXPECT_THAT(MistakesOf("/spec/parameters", {{"p", std::string(most, 'x')}}),
              IsEmpty());
  EXPECT_THAT(
      MistakesOf("/spec/parameters", {{"p", std::string(most + 1, 'x')}}),
      ElementsAre(HasSubstr("spec.parameters has 65537 bytes")));
}

TEST(ValidateUpdate, KeepsRolesQueueAndManagerOfARunningJob) {
  const JobSpec before = JobFrom(SmallManifest()).spec;
  EXPECT_THAT(ValidateUpdate(before, before), IsEmpty());

  JobSpec after = before;
  after.managed_by = "kueue.x-k8s.io/multikueue";
  after.scheduling.queue = "other";
  after.roles[1].replicas = 3;
  EXPECT_THAT(
      Messages(ValidateUpdate(before, after)),
      ElementsAre(HasSubstr("spec.managedBy"),
                  HasSubstr("spec.scheduling.queue"),
                  "spec.roles[1].replicas is 3, must be 2 as before, unless "
                  "the role is elastic or the job suspended"));
  after = before;
  std::swap(after.roles[0], after.roles[1]);
  EXPECT_THAT(Messages(ValidateUpdate(before, after)),
              ElementsAre(HasSubstr("spec.roles has other names")));
}

TEST(ValidateUpdate, LetsASuspendedJobChangeAllButItsManager) {
  JobSpec before = JobFrom(SmallManifest()).spec;
  before.suspend = true;
  JobSpec after = before;
  after.suspend = false;
  after.roles.pop_back();
  after.scheduling.queue = "other";
  EXPECT_THAT(ValidateUpdate(before, after), IsEmpty());
  after.managed_by = "kueue.x-k8s.io/multikueue";
  EXPECT_THAT(Messages(ValidateUpdate(before, after)),
              ElementsAre(HasSubstr("spec.managedBy")));
}

TEST(ValidateUpdate, LetsAnElasticRoleChangeItsSize) {
  JobSpec before = JobFrom(SmallManifest()).spec;
  before.roles[1].elastic = Elastic{1, 8, 60};
  JobSpec after = before;
  after.roles[1].replicas = 5;
  EXPECT_THAT(ValidateUpdate(before, after), IsEmpty());
}

TEST(Unsupported, RefusesByNameWhatIsNotActedOn) {
  Json manifest = SmallManifest();
  manifest["spec"].merge_patch(Json::parse(R"({
    "suspend": true, "managedBy": "kueue.x-k8s.io/multikueue",
    "failurePolicy": {"method": "InPlace"},
    "scheduling": {"gang": "Volcano", "topology": {"key": "zone"}},
    "network": {"collectives": "Encrypted"},
    "checkpoint": {"volumeClaim": "c"}, "reporting": {"tensorboard": true}
  })"));
  Json& observer = manifest["spec"]["roles"][1];
  observer["elastic"] = {{"minReplicas", 1}, {"maxReplicas", 2}};
  observer["processesPerPod"] = 2;
  std::vector<std::string> paths;
  for (const FieldError& error : UnsupportedFields(JobFrom(manifest).spec)) {
    paths.push_back(error.path);
    EXPECT_EQ(error.reason, kNotSupported);
    EXPECT_THAT(error.message, HasSubstr(error.path));
    EXPECT_THAT(error.message, HasSubstr("not supported yet"));
  }
  EXPECT_THAT(
      paths,
      ElementsAre("spec.roles[1].elastic", "spec.roles[1].processesPerPod",
                  "spec.suspend", "spec.managedBy", "spec.failurePolicy.method",
                  "spec.scheduling.gang", "spec.scheduling.topology",
                  "spec.network.collectives", "spec.checkpoint",
                  "spec.reporting.tensorboard"));
}

TEST(Unsupported, AcceptsWhatHasNoMeaningOnOneMachine) {
  Json manifest = SmallManifest();
  manifest["spec"].merge_patch(Json::parse(R"({
    "scheduling": {"gang": "None", "queue": "q", "priorityClassName": "p",
                   "minMember": 2},
    "network": {"tls": "Required"},
    "successPolicy": {"metric": {"name": "reward", "threshold": "475"}}
  })"));
  EXPECT_TRUE(RefuseUnsupported(JobFrom(manifest).spec).ok());
}

TEST(Job, CountsRanksRoleByRoleAndIndexByIndex) {
  JobSpec spec = JobFrom(SmallManifest()).spec;
  EXPECT_EQ(WorldSize(spec), 3);
  spec.roles[0].replicas = 2;
  spec.roles[0].processes_per_pod = 4;
  EXPECT_EQ(WorldSize(spec), 10);
  EXPECT_EQ(FirstRank(spec, 0, 0), 0);
  EXPECT_EQ(FirstRank(spec, 0, 1), 4);
  EXPECT_EQ(FirstRank(spec, 1, 0), 8);
  EXPECT_EQ(FirstRank(spec, 1, 1), 9);
}

TEST(Job, TakesProcessesPerPodFromTheGpuLimitOfTheMainContainer) {
  Role role;
  EXPECT_EQ(ProcessesPerPod(role), 1);
  role.pod_template = Json::parse(R"({"spec": {"containers": [
    {"name": "log"},
    {"name": "worker", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}})");
  EXPECT_EQ(ProcessesPerPod(role), 1);
  EXPECT_EQ(ProcessesPerPod(role, "worker"), 8);
  role.processes_per_pod = 2;
  EXPECT_EQ(ProcessesPerPod(role, "worker"), 2);
}

}  // namespace
}  // namespace disttrain
