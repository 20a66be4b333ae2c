// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/run_summary.h"

#include <gtest/gtest.h>

namespace disttrain {
namespace {

Json Condition(const char* type, const char* reason, const char* message) {
  return {{"type", type},
          {"status", "True"},
          {"reason", reason},
          {"message", message}};
}

TEST(JobOutcome, IsAbsentWhileTheJobGoesOn) {
  EXPECT_FALSE(OutcomeOf(Json::object()).has_value());
  EXPECT_FALSE(
      OutcomeOf({{"conditions",
                  Json::array({Condition("Running", "AllRanksJoined", ""),
                               {{"type", "Failed"}, {"status", "False"}}})}})
          .has_value());
}

TEST(SummaryLine, OfSuccessNamesReasonTimeAttemptsAndReward) {
  const Json status = {
      {"attempt", 0},
      {"conditions",
       Json::array({Condition("Complete", "AllRanksSucceeded", "")})},
      {"training", {{"step", 312}, {"reward", "476.2"}}}};
  EXPECT_EQ(
      SummaryLine("cartpole", status, *OutcomeOf(status), absl::Seconds(41)),
      "cartpole: Complete – AllRanksSucceeded in 41 s, 1 attempt; reward "
      "476.2 at step 312");
}

TEST(SummaryLine, OfFailureCountsTheAttempts) {
  const Json status = {
      {"attempt", 3},
      {"conditions",
       Json::array({Condition("Failed", "MaxRestartsExceeded", "m")})}};
  EXPECT_EQ(SummaryLine("j", status, *OutcomeOf(status), absl::Minutes(3)),
            "j: Failed – MaxRestartsExceeded in 3:00, 4 attempts");
}

Json FailedWith(Json failures) {
  return {{"conditions",
           Json::array({Condition("Failed", "MaxRestartsExceeded", "why")})},
          {"failures", std::move(failures)}};
}

TEST(RootCauseLine, NamesRankRoleAndSignalOfTheLastAttempt) {
  const Json status =
      FailedWith(Json::array({{{"attempt", 1},
                               {"rank", 0},
                               {"role", "agent"},
                               {"pod", "j-agent-0-r1"},
                               {"rootCause", false},
                               {"exitCode", 75}},
                              {{"attempt", 1},
                               {"rank", 2},
                               {"role", "observer"},
                               {"pod", "j-observer-1-r1"},
                               {"rootCause", true},
                               {"exitCode", 137},
                               {"signal", "KILL"},
                               {"reason", "Error"},
                               {"message", "killed by SIGKILL"}},
                              {{"attempt", 0},
                               {"rank", 1},
                               {"role", "observer"},
                               {"pod", "j-observer-0"},
                               {"rootCause", true},
                               {"exitCode", 1}}}));
  EXPECT_EQ(RootCauseLine(status, *OutcomeOf(status)),
            "root cause: rank 2 (observer, pod j-observer-1-r1): killed by "
            "SIGKILL");
  EXPECT_EQ(RootCausePod(status), "j-observer-1-r1");
}

TEST(RootCauseLine, TakesTheCauseOutOfAWorkersMessage) {
  const Json status = FailedWith(Json::array(
      {{{"attempt", 0},
        {"rank", 0},
        {"role", "agent"},
        {"pod", "j-agent-0"},
        {"rootCause", true},
        {"exitCode", 1},
        {"reason", "Error"},
        {"message", R"({"rank":0,"role":"agent","cause":"not solved","step":3,)"
                    R"("exitCode":1,"timeMs":1})"}}}));
  EXPECT_EQ(
      RootCauseLine(status, *OutcomeOf(status)),
      "root cause: rank 0 (agent, pod j-agent-0): exit code 1: not solved");
}

TEST(RootCauseLine, FallsBackToTheCondition) {
  const Json status = FailedWith(Json::array());
  EXPECT_EQ(RootCauseLine(status, *OutcomeOf(status)), "root cause: why");
  EXPECT_EQ(RootCausePod(status), "");
}

}  // namespace
}  // namespace disttrain
