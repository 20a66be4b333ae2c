// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/root_cause.h"

#include "gtest/gtest.h"
#include "tests/controller/reconcile/now.h"

namespace disttrain {
namespace {

PodView Ended(int rank, int code, const std::string& message = "") {
  PodView pod;
  pod.name = "cartpole-observer-" + std::to_string(rank - 1);
  pod.role = "observer";
  pod.role_index = rank - 1;
  pod.rank = rank;
  pod.phase = PodPhase::kFailed;
  pod.exit_code = code;
  if (code > 128) pod.signal = code - 128;
  pod.reason = "Error";
  pod.termination_message = message;
  pod.finished_at = kNow;
  return pod;
}

PodFailure FailureSeen(const PodView& pod) {
  return FailureOf(pod, std::nullopt, kNow + absl::Seconds(5)).value();
}

TEST(RootCause, ADeathBySignalNamesTheSignal) {
  EXPECT_EQ(Describe(FailureSeen(Ended(2, 137))),
            "rank 2 (observer): killed by SIGKILL");
  EXPECT_EQ(Describe(FailureSeen(Ended(1, 139))),
            "rank 1 (observer): killed by SIGSEGV");
}

TEST(RootCause, TheWorkersOwnCauseIsTaken) {
  const PodFailure failure = FailureSeen(
      Ended(2, 1,
            R"({"rank":2,"role":"observer","cause":"boom at step 7","step":7,)"
            R"("exitCode":1,"timeMs":1767607100500})"));
  EXPECT_EQ(failure.message, "boom at step 7");
  EXPECT_EQ(failure.time, absl::FromUnixMillis(1767607100500));
  EXPECT_FALSE(failure.victim);
}

TEST(RootCause, AForeignMessageIsShownAsItIs) {
  EXPECT_EQ(FailureSeen(Ended(1, 3, "\nassertion failed\nmore")).message,
            "assertion failed");
  EXPECT_EQ(FailureSeen(Ended(1, 3)).message, "exit code 3");
}

TEST(RootCause, ExitSeventyFiveAndANamedPeerMakeAVictim) {
  EXPECT_TRUE(FailureSeen(Ended(1, 75)).victim);
  const PodFailure named = FailureSeen(Ended(
      1, 1, R"({"rank":1,"cause":"lost rank 2","exitCode":1,"failedRank":2})"));
  EXPECT_TRUE(named.victim);
  EXPECT_EQ(named.failed_rank, 2);
  const PodFailure self = FailureSeen(Ended(
      1, 1, R"({"rank":1,"cause":"broken","exitCode":1,"failedRank":1})"));
  EXPECT_FALSE(self.victim) << "it names itself";
}

TEST(RootCause, TheEarliestByTheWorkersClockIsFirst) {
  PodFailure early = FailureSeen(Ended(3, 1));
  early.time = kNow - absl::Seconds(2);
  const PodFailure late = FailureSeen(Ended(1, 1));
  const PodFailure victim = FailureSeen(Ended(2, 75));
  EXPECT_EQ(RootCause({victim, late, early}, std::nullopt), 2u);
  EXPECT_EQ(RootCause({victim, late, early}, /*hint=*/1), 1u)
      << "rank 0 has broadcast that rank 1 failed first";
  EXPECT_EQ(RootCause({victim, late, early}, /*hint=*/2), 2u)
      << "a victim is no root cause, whatever is said";
  EXPECT_EQ(RootCause({victim}, std::nullopt), std::nullopt);
}

TEST(RootCause, TheMainContainerDecidesBesideASidecar) {
  PodView pod = Ended(1, 0);
  pod.phase = PodPhase::kRunning;
  EXPECT_TRUE(Succeeded(pod));
  EXPECT_FALSE(FailureOf(pod, std::nullopt, kNow));
  pod.exit_code = 1;
  EXPECT_FALSE(Succeeded(pod));
  EXPECT_TRUE(FailureOf(pod, std::nullopt, kNow));
}

}  // namespace
}  // namespace disttrain
