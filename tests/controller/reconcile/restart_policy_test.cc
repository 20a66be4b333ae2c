// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/restart_policy.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/controller/reconcile/now.h"

namespace disttrain {
namespace {

PodView Pod() {
  PodView pod;
  pod.name = "cartpole-observer-0";
  pod.uid = "u1";
  pod.role = "observer";
  pod.role_index = 0;
  pod.rank = 1;
  pod.attempt = 0;
  pod.phase = PodPhase::kRunning;
  pod.bound = true;
  pod.main_running = true;
  pod.main_started = true;
  pod.creation_time = kNow - absl::Minutes(1);
  return pod;
}

PodView Exited(int code, const std::string& reason = "Error") {
  PodView pod = Pod();
  pod.phase = PodPhase::kFailed;
  pod.main_running = false;
  pod.exit_code = code;
  if (code > 128 && code <= 192) pod.signal = code - 128;
  pod.reason = reason;
  pod.finished_at = kNow - absl::Seconds(1);
  return pod;
}

PodView Rejected(const std::string& reason) {
  PodView pod = Pod();
  pod.phase = PodPhase::kFailed;
  pod.main_running = pod.main_started = false;
  pod.reason = reason;
  return pod;
}

PodView DeletedByOthers() {
  PodView pod = Pod();
  pod.being_deleted = true;
  pod.deletion_time = kNow + absl::Seconds(30);
  return pod;
}

PodView NodeGone() {
  PodView pod = Pod();
  pod.disruption_target = true;
  pod.disruption_reason = "DeletionByTaintManager";
  return pod;
}

AttemptFacts Facts(bool all_left, bool ever_running, absl::Time now) {
  AttemptFacts facts;
  facts.all_left = all_left;
  facts.ever_running = ever_running;
  facts.now = now;
  return facts;
}

PodFailure Failure(const PodView& pod) {
  return FailureOf(pod, std::nullopt, kNow).value();
}

FailureRule RuleFor(const PodFailure& failure, FailureAction action) {
  FailureRule rule;
  rule.name = "r";
  rule.action = action;
  if (failure.exit_code) {
    rule.exit_codes = {*failure.exit_code};
  } else {
    rule.reasons = {failure.reason};
  }
  return rule;
}

// K13: {exit 1, OOM, 139, 143, evicted, deleted, node gone, refused by the
// kubelet} x {Fail, Restart, RestartFree}: the rule is obeyed, always.
TEST(RestartPolicyK13, EveryRuleActsOnEverySign) {
  const std::vector<PodView> signs = {
      Exited(1),           Exited(137, "OOMKilled"),
      Exited(139),         Exited(143),
      Rejected("Evicted"), DeletedByOthers(),
      NodeGone(),          Rejected("UnexpectedAdmissionError")};
  for (const PodView& sign : signs) {
    const PodFailure failure = Failure(sign);
    for (const FailureAction action :
         {FailureAction::kFail, FailureAction::kRestart,
          FailureAction::kRestartFree}) {
      FailurePolicy policy;
      policy.rules = {RuleFor(failure, action)};
      absl::Time wait;
      JobSpec spec;
      spec.failure_policy = policy;
      const auto judged =
          JudgeAttempt(spec, {failure}, Facts(true, true, kNow), &wait);
      ASSERT_TRUE(judged) << failure.reason;
      EXPECT_EQ(judged->verdict.action, action) << failure.reason;
      EXPECT_EQ(judged->verdict.rule, "r");
    }
  }
}

TEST(RestartPolicy, TheTableDecidesWithoutRules) {
  const FailurePolicy policy;
  const auto action = [&policy](const PodView& pod) {
    return Classify(policy, Failure(pod)).action;
  };
  for (const int code : {1, 2, 70, 127, 137, 139, 143, 255}) {
    EXPECT_EQ(action(Exited(code)), FailureAction::kRestart) << code;
  }
  for (const int code : {64, 65, 78}) {
    EXPECT_EQ(action(Exited(code)), FailureAction::kFail) << code;
  }
  EXPECT_EQ(action(Exited(75)), FailureAction::kRestartFree);
  for (const char* reason :
       {"Evicted", "Preempting", "NodeLost", "NodeShutdown", "Shutdown",
        "Terminated", "UnexpectedAdmissionError", "NodeAffinity", "OutOfcpu",
        "OutOfpods"}) {
    EXPECT_EQ(action(Rejected(reason)), FailureAction::kRestartFree) << reason;
  }
  EXPECT_EQ(action(DeletedByOthers()), FailureAction::kRestartFree);
}

TEST(RestartPolicy, TheKubeflowPresetKeepsSeventyFiveFree) {
  FailurePolicy policy;
  policy.preset = "KubeflowExitCode";
  EXPECT_EQ(Classify(policy, Failure(Exited(1))).action, FailureAction::kFail);
  EXPECT_EQ(Classify(policy, Failure(Exited(127))).action,
            FailureAction::kFail);
  EXPECT_EQ(Classify(policy, Failure(Exited(137))).action,
            FailureAction::kRestart);
  EXPECT_EQ(Classify(policy, Failure(Exited(75))).action,
            FailureAction::kRestartFree);
}

TEST(RestartPolicy, AllFieldsOfARuleMustMatchAndTheFirstRuleWins) {
  FailureRule range;
  range.name = "range";
  range.action = FailureAction::kFail;
  range.exit_code_ranges = {{1, 63}};
  range.roles = {"agent"};
  FailureRule pattern;
  pattern.name = "pattern";
  pattern.action = FailureAction::kRestartFree;
  pattern.message_pattern = "NCCL|ECC";
  FailurePolicy policy;
  policy.rules = {range, pattern};
  PodView pod = Exited(1);
  pod.termination_message = "NCCL error: unhandled system error";
  EXPECT_EQ(Classify(policy, Failure(pod)).rule, "pattern");
  pod.role = "agent";
  EXPECT_EQ(Classify(policy, Failure(pod)).rule, "range");
  pod.exit_code = 64;
  EXPECT_EQ(Classify(policy, Failure(pod)).rule, "pattern");
}

TEST(RestartPolicy, AContainerThatCannotBeMadeFailsAfterTwoMinutes) {
  PodView pod = Pod();
  pod.phase = PodPhase::kPending;
  pod.main_running = pod.main_started = false;
  pod.reason = "InvalidImageName";
  EXPECT_FALSE(FailureOf(pod, kNow - absl::Seconds(119), kNow));
  const auto failure = FailureOf(pod, kNow - absl::Seconds(120), kNow);
  ASSERT_TRUE(failure);
  EXPECT_EQ(Classify({}, *failure).failed_reason, "ImageConfigError");
  pod.reason = "ImagePullBackOff";
  EXPECT_FALSE(FailureOf(pod, kNow - absl::Hours(1), kNow));
}

TEST(RestartPolicy, TheWaitDoublesFromTheSecondRestartOn) {
  const RestartBackoff backoff{5, 300, 1800};
  const std::vector<int> seconds = {0, 5, 10, 20, 40, 80, 160, 300, 300};
  for (size_t i = 0; i < seconds.size(); ++i) {
    EXPECT_EQ(BackoffBefore(backoff, static_cast<int>(i) + 1),
              absl::Seconds(seconds[i]));
  }
  EXPECT_EQ(BackoffBefore(backoff, 1'000'000), absl::Seconds(300));
  EXPECT_EQ(BackoffBefore({0, 300, 0}, 9), absl::ZeroDuration());
}

TEST(RestartPolicy, TheTwoBudgetsAreSeparate) {
  FailurePolicy policy;
  policy.max_restarts = 1;
  policy.max_disruptions = 0;
  RestartCounts counts;
  EXPECT_EQ(TakeRestart(policy, FailureAction::kRestart, counts), std::nullopt);
  EXPECT_EQ(TakeRestart(policy, FailureAction::kRestart, counts),
            "MaxRestartsExceeded");
  EXPECT_EQ(TakeRestart(policy, FailureAction::kRestartFree, counts),
            "TooManyDisruptions");
  EXPECT_EQ(counts.total, 1);
  EXPECT_EQ(counts.counted, 1);
  EXPECT_EQ(counts.disruptions, 0);
}

PodFailure Victim(int rank) {
  PodView pod = Exited(75);
  pod.rank = rank;
  pod.name = "p" + std::to_string(rank);
  return Failure(pod);
}

TEST(JudgeAttempt, WaitsForTheRootCauseWhileOnlyVictimsShow) {
  JobSpec spec;
  absl::Time wait;
  EXPECT_FALSE(
      JudgeAttempt(spec, {Victim(0)}, Facts(false, true, kNow), &wait));
  EXPECT_EQ(wait, kNow + absl::Seconds(9)) << "10 s after it ended";
  const auto late =
      JudgeAttempt(spec, {Victim(0)}, Facts(false, true, wait), &wait);
  ASSERT_TRUE(late);
  EXPECT_FALSE(late->root_known);
  EXPECT_EQ(late->verdict.action, FailureAction::kRestartFree);
}

TEST(JudgeAttempt, AnAttemptOfVictimsTakesFromTheDisruptions) {
  JobSpec spec;
  absl::Time wait;
  const auto judged = JudgeAttempt(spec, {Victim(0), Victim(1)},
                                   Facts(true, true, kNow), &wait);
  ASSERT_TRUE(judged);
  EXPECT_EQ(judged->reason, "PeerLost");
  EXPECT_EQ(judged->verdict.action, FailureAction::kRestartFree);
}

TEST(JudgeAttempt, RanksThatWaitedInVainAreARendezvousTimeout) {
  JobSpec spec;
  spec.program = "reinforce";
  spec.rendezvous.timeout_seconds = 30;
  PodFailure rank0 = Victim(0);
  rank0.message = "1/2 ranks joined; rank 1 is missing";
  absl::Time wait;
  const auto judged =
      JudgeAttempt(spec, {rank0}, Facts(true, false, kNow), &wait);
  ASSERT_TRUE(judged);
  EXPECT_EQ(judged->reason, "RendezvousTimeout");
  EXPECT_EQ(judged->verdict.action, FailureAction::kRestart) << "counted";
  AttemptFacts facts = Facts(true, false, kNow);
  facts.missing = 1;
  Role agent;
  agent.name = "agent";
  Role observer;
  observer.name = "observer";
  spec.roles = {agent, observer};
  const auto blamed = JudgeAttempt(spec, {rank0}, facts, &wait);
  EXPECT_TRUE(blamed->root_known);
  EXPECT_EQ(Describe(blamed->root),
            "rank 1 (observer): it never joined: 1/2 ranks joined; rank 1 is "
            "missing");
  const auto ran = JudgeAttempt(spec, {rank0}, Facts(true, true, kNow), &wait);
  EXPECT_EQ(ran->reason, "PeerLost") << "all had joined";
}

TEST(JudgeAttempt, WhatFailsForGoodGoesBeforeWhatCameFirst) {
  JobSpec spec;
  PodFailure early = Failure(Exited(1));
  early.time = kNow - absl::Seconds(30);
  PodFailure permanent = Failure(Exited(78));
  absl::Time wait;
  const auto judged =
      JudgeAttempt(spec, {early, permanent}, Facts(false, true, kNow), &wait);
  ASSERT_TRUE(judged);
  EXPECT_EQ(judged->verdict.failed_reason, "NonRetryableExit");
  EXPECT_EQ(judged->root.exit_code, 78);
}

}  // namespace
}  // namespace disttrain
