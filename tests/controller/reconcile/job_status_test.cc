// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/job_status.h"

#include <random>

#include "controller/reconcile/rank_set.h"
#include "gtest/gtest.h"
#include "tests/controller/reconcile/now.h"

namespace disttrain {
namespace {

TEST(RankSet, RangesReadBackAsTheyWere) {
  EXPECT_EQ(FormatRanks({}), "");
  EXPECT_EQ(FormatRanks({1, 2, 4}), "1-2,4");
  EXPECT_EQ(FormatRanks({0, 1, 2, 3, 9, 10}), "0-3,9-10");
  EXPECT_EQ(ParseRanks("0-3,9-10"), (std::set<int>{0, 1, 2, 3, 9, 10}));
  EXPECT_EQ(ParseRanks(""), std::set<int>{});
  EXPECT_EQ(ParseRanks("x,-1,7,3-,99999999999,5-4"), (std::set<int>{7}));
}

JobStatus Full() {
  JobStatus status;
  status.observed_generation = 3;
  status.phase = "Running";
  status.message = "attempt 1: 5/5 ranks joined, step 18200";
  status.start_time = kNow;
  status.attempt = 1;
  status.attempt_start_time = kNow + absl::Milliseconds(1500);
  status.active_seconds = 5400;
  status.restarts = {1, 1, 0, 1, "OOMKilled", kNow + absl::Seconds(5)};
  status.ready_text = "5/5";
  RoleStatus role;
  role.name = "observer";
  role.desired = 4;
  role.succeeded_ranks = {1, 2, 4};
  role.incarnations = {{3, 2}};
  role.retry_times = {{3, kNow}};
  status.roles = {role};
  status.template_hash = "6b1c";
  status.training.step = 18200;
  status.training.total_steps = 40000;
  status.training.reward = 212.4;
  status.training.steps_per_second = 6.1;
  SetCondition(status, {"Running", "True", "AllRanksJoined"}, kNow);
  FailureRecord record;
  record.rank = 2;
  record.exit_code = 137;
  record.signal = "KILL";
  record.reason = "OOMKilled";
  record.root_cause = true;
  record.time = kNow;
  AddFailure(status, record);
  return status;
}

TEST(JobStatus, ReadsBackWhatItWrote) {
  const Json json = ToJson(Full());
  EXPECT_EQ(ToJson(StatusFromJson(json)), json);
  EXPECT_EQ(json["attemptStartTime"], "2026-01-05T10:00:01.5Z");
  EXPECT_EQ(json["startTime"], "2026-01-05T10:00:00Z");
  EXPECT_EQ(json["roles"][0]["succeededRanks"], "1-2,4");
  EXPECT_EQ(json["roles"][0]["incarnations"], (Json{{"3", 2}}));
  EXPECT_EQ(json["training"]["progressPercent"], 45);
  EXPECT_EQ(json["training"]["etaSeconds"], 3574);  // 21800 / 6.1
  EXPECT_EQ(json["training"]["reward"], "212.4");
  EXPECT_EQ(json["restarts"]["nextRetryTime"], "2026-01-05T10:00:05Z");
  EXPECT_EQ(json["failures"][0]["signal"], "KILL");
}

TEST(JobStatus, ATransitionTimeMovesOnlyWithTheStatus) {
  JobStatus status;
  SetCondition(status, {"Running", "False", "NotStarted"}, kNow);
  SetCondition(status, {"Running", "False", "Restarting"},
               kNow + absl::Seconds(1));
  EXPECT_EQ(FindCondition(status, "Running")->last_transition, kNow);
  EXPECT_EQ(FindCondition(status, "Running")->reason, "Restarting");
  SetCondition(status, {"Running", "True", "AllRanksJoined"},
               kNow + absl::Seconds(2));
  EXPECT_EQ(FindCondition(status, "Running")->last_transition,
            kNow + absl::Seconds(2));
  EXPECT_EQ(status.conditions.size(), 1u);
}

TEST(JobStatus, TimeInRunningAddsUp) {
  JobStatus status;
  SetCondition(status, {"Running", "True", "AllRanksJoined"}, kNow);
  EXPECT_EQ(ActiveTime(status, kNow + absl::Seconds(30)), absl::Seconds(30));
  SetCondition(status, {"Running", "False", "Restarting"},
               kNow + absl::Seconds(40));
  EXPECT_EQ(ActiveTime(status, kNow + absl::Hours(1)), absl::Seconds(40));
  EXPECT_EQ(status.active_seconds, 40);
}

TEST(JobStatus, StaysSmallAfterAThousandRestarts) {
  JobStatus status = Full();
  for (int i = 0; i < 1000; ++i) {
    FailureRecord record;
    record.attempt = i;
    record.message = std::string(5000, 'x');
    AddFailure(status, record);
    SetCondition(status, {"Running", i % 2 ? "True" : "False", "x"}, kNow);
  }
  EXPECT_EQ(status.failures.size(), kMaxFailureRecords);
  EXPECT_EQ(status.failures.front().attempt, 999);
  EXPECT_LT(ToJson(status).dump().size(), 16u << 10);
}

TEST(JobStatus, ReadsAnything) {
  std::mt19937 random(7);
  const std::string text = ToJson(Full()).dump();
  int read = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string mutated = text;
    for (int k = 0; k < 3; ++k) {
      mutated[random() % mutated.size()] =
          "0123456789\"{}[],:ntrue-"[random() % 23];
    }
    const Json json = Json::parse(mutated, nullptr, false);
    if (json.is_discarded()) continue;
    ++read;
    StatusFromJson(json);
  }
  EXPECT_GT(read, 100);
  for (const char* odd : {"null", "3", "[]", R"({"conditions":{},"roles":[3]})",
                          R"({"attempt":-1,"training":[]})"}) {
    StatusFromJson(Json::parse(odd));
  }
}

TEST(JobStatus, ShortensAtABorderOfCharacters) {
  EXPECT_EQ(Shorten("añb", 2), "a");
  EXPECT_EQ(Shorten("añb", 3), "añ");
  EXPECT_EQ(Shorten("abc", 9), "abc");
}

}  // namespace
}  // namespace disttrain
