// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/lifecycle.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/programs/event_queue.h"

namespace disttrain {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1000);

v1::Event FailureOf(int rank) {
  v1::Event event;
  event.mutable_failure()->set_rank(rank);
  event.mutable_failure()->set_role("observer");
  event.mutable_failure()->set_pod("job-observer-0");
  event.mutable_failure()->set_cause("killed by SIGKILL");
  return event;
}

v1::Event FinishEvent() {
  v1::Event event;
  event.mutable_finish()->set_reason("the program has ended");
  return event;
}

v1::Event StopEvent(absl::Duration grace) {
  v1::Event event;
  event.mutable_stop()->set_reason("suspended");
  event.mutable_stop()->set_grace_ms(absl::ToInt64Milliseconds(grace));
  return event;
}

// One word per action; an ending with its code and the failed rank.
std::string Shown(const WorkerActions& actions) {
  struct Word {
    std::string operator()(const RequestStop&) { return "stop"; }
    std::string operator()(const CancelCalls&) { return "cancel"; }
    std::string operator()(const TellFailure& a) {
      return "failure of " + std::to_string(a.failure.rank());
    }
    std::string operator()(const TellFinish&) { return "finish"; }
    std::string operator()(const DropPeer&) { return "drop"; }
    std::string operator()(const ReplacePeer&) { return "replace"; }
    std::string operator()(const Leave& a) {
      std::string word =
          "leave " + std::to_string(static_cast<int>(a.ending.code));
      if (a.ending.failed_rank) {
        word += " for " + std::to_string(*a.ending.failed_rank);
      }
      return word;
    }
  };
  std::string text;
  for (const WorkerAction& action : actions) {
    text += (text.empty() ? "" : ", ") + std::visit(Word{}, action);
  }
  return text;
}

const Ending& EndingOf(const WorkerActions& actions) {
  return std::get<Leave>(actions.back()).ending;
}

Lifecycle Driver() {
  return Lifecycle({.rank = 0, .driver = true, .replaceable = {}});
}
Lifecycle Server() {
  return Lifecycle({.rank = 2, .driver = false, .replaceable = {}});
}

TEST(Lifecycle, FinishesForAllWhenTheProgramReturns) {
  Lifecycle driver = Driver();
  EXPECT_EQ(Shown(driver.On(ProgramReturned{}, kNow)), "finish, leave 0");
  Lifecycle server = Server();
  EXPECT_EQ(Shown(server.On(FinishEvent(), kNow)), "leave 0");
}

TEST(Lifecycle, TellsTheProgramsExceptionToAll) {
  Lifecycle driver = Driver();
  const auto actions = driver.On(ProgramThrew{.cause = "loss is NaN"}, kNow);
  EXPECT_EQ(Shown(actions), "failure of 0, leave 1");
  EXPECT_EQ(EndingOf(actions).cause, "loss is NaN");
  EXPECT_EQ(std::get<TellFailure>(actions[0]).failure.exit_code(), 1);
}

TEST(Lifecycle, LeavesWithTheCodeOfAConfigurationError) {
  Lifecycle driver = Driver();
  EXPECT_EQ(
      Shown(driver.On(
          ProgramThrew{.code = ExitCode::kConfig, .cause = "quorum"}, kNow)),
      "failure of 0, leave 78");
}

TEST(Lifecycle, IsAVictimIfTheProgramThrewBecauseAPeerWasLost) {
  Lifecycle driver = Driver();
  const ProgramThrew error = {
      .cause = "rank 1 is gone", .peer_lost = true, .lost_rank = 1};
  EXPECT_EQ(Shown(driver.On(error, kNow)), "failure of 1, leave 75 for 1");
}

TEST(Lifecycle, LeavesAtOnceWhenAnotherRankFailed) {
  Lifecycle server = Server();
  const auto actions = server.On(FailureOf(1), kNow);
  EXPECT_EQ(Shown(actions), "stop, cancel, leave 75 for 1");
  EXPECT_EQ(EndingOf(actions).cause,
            "rank 1 (observer, pod job-observer-0) failed: killed by SIGKILL");
}

TEST(Lifecycle, LetsTheProgramUnwindWhenAnotherRankFailed) {
  Lifecycle driver = Driver();
  EXPECT_EQ(Shown(driver.On(FailureOf(1), kNow)), "stop, cancel");
  EXPECT_EQ(Shown(driver.On(ProgramThrew{.cause = "cancelled"}, kNow)),
            "leave 75 for 1");
}

TEST(Lifecycle, WaitsForTheFailureBehindACallThatWasBrokenOff) {
  Lifecycle driver = Driver();
  const ProgramThrew error = {.cause = "cancelled", .broken_off = true};
  EXPECT_EQ(Shown(driver.On(error, kNow)), "");
  EXPECT_EQ(driver.deadline(), kNow + Lifecycle::kMoment);
  EXPECT_EQ(Shown(driver.On(FailureOf(1), kNow)),
            "stop, cancel, leave 75 for 1");
}

TEST(Lifecycle, BlamesTheProgramIfNoFailureIsBehindACallThatWasBrokenOff) {
  Lifecycle driver = Driver();
  driver.On(ProgramThrew{.cause = "cancelled", .broken_off = true}, kNow);
  EXPECT_EQ(Shown(driver.OnTime(driver.deadline())), "failure of 0, leave 1");
}

TEST(Lifecycle, LeavesAProgramBehindThatDoesNotUnwind) {
  Lifecycle driver = Driver();
  driver.On(FailureOf(1), kNow);
  ASSERT_EQ(driver.deadline(), kNow + Lifecycle::kUnwind);
  EXPECT_EQ(Shown(driver.OnTime(driver.deadline())), "leave 75 for 1");
}

TEST(Lifecycle, ReportsALostConnectionAsFailureOfThatPeer) {
  Lifecycle server = Server();
  EXPECT_EQ(Shown(server.On(PeerLost{1, "connection closed"}, kNow)),
            "failure of 1, stop, cancel, leave 75 for 1");
}

TEST(Lifecycle, GoesOnWithoutAReplaceableRank) {
  Lifecycle driver({.rank = 0, .driver = true, .replaceable = {1}});
  EXPECT_EQ(Shown(driver.On(PeerLost{1, "connection closed"}, kNow)), "");
  EXPECT_EQ(driver.deadline(), absl::InfiniteFuture());
}

TEST(Lifecycle, AReplaceableRankThatLosesOthersLeavesAlone) {
  Lifecycle observer({.rank = 1, .driver = false, .replaceable = {1}});
  EXPECT_EQ(Shown(observer.On(PeerLost{0, "connection closed"}, kNow)),
            "stop, cancel, leave 75 for 0");
}

TEST(Lifecycle, DropsAndReplacesPeersAsItIsTold) {
  Lifecycle driver = Driver();
  v1::Event lost;
  lost.mutable_lost()->set_rank(1);
  EXPECT_EQ(Shown(driver.On(lost, kNow)), "drop");
  v1::Event joined;
  joined.mutable_joined()->set_rank(1);
  EXPECT_EQ(Shown(driver.On(joined, kNow)), "replace");
}

TEST(Lifecycle, WhoCameBackDoesNotReplaceItself) {
  Lifecycle observer({.rank = 1, .driver = false, .replaceable = {1}});
  v1::Event joined;
  joined.mutable_joined()->set_rank(1);
  EXPECT_EQ(Shown(observer.On(joined, kNow)), "");
}

TEST(Lifecycle, GivesTheProgramAMomentAfterASignal) {
  Lifecycle driver = Driver();
  EXPECT_EQ(Shown(driver.On(SignalReceived{"SIGTERM"}, kNow)), "stop");
  const auto actions = driver.On(ProgramReturned{}, kNow);
  EXPECT_EQ(Shown(actions), "failure of 0, leave 75");
  EXPECT_EQ(EndingOf(actions).cause, "told to stop by SIGTERM");
}

TEST(Lifecycle, CancelsCallsAndThenLeavesIfTheProgramIgnoresASignal) {
  Lifecycle driver = Driver();
  driver.On(SignalReceived{"SIGTERM"}, kNow);
  ASSERT_EQ(driver.deadline(), kNow + Lifecycle::kMoment);
  EXPECT_EQ(Shown(driver.OnTime(driver.deadline())), "cancel");
  ASSERT_EQ(driver.deadline(), kNow + Lifecycle::kGrace);
  EXPECT_EQ(Shown(driver.OnTime(driver.deadline())), "failure of 0, leave 75");
}

TEST(Lifecycle, ServesAMomentLongerAfterASignal) {
  Lifecycle server = Server();
  EXPECT_EQ(Shown(server.On(SignalReceived{"SIGTERM"}, kNow)), "stop");
  EXPECT_EQ(Shown(server.OnTime(kNow + Lifecycle::kMoment)),
            "failure of 2, leave 75");
}

TEST(Lifecycle, LeavesAsToldToStopThoughOthersFailMeanwhile) {
  Lifecycle server = Server();
  server.On(SignalReceived{"SIGINT"}, kNow);
  const auto actions = server.On(FailureOf(0), kNow);
  EXPECT_EQ(Shown(actions), "stop, cancel, leave 75");
  EXPECT_EQ(EndingOf(actions).cause, "told to stop by SIGINT");
}

TEST(Lifecycle, StopsTheWholeJobWithinTheGrace) {
  Lifecycle driver = Driver();
  Lifecycle server = Server();
  EXPECT_EQ(Shown(driver.On(StopEvent(absl::Seconds(10)), kNow)), "stop");
  EXPECT_EQ(Shown(server.On(StopEvent(absl::Seconds(10)), kNow)), "stop");
  EXPECT_EQ(driver.deadline(), kNow + absl::Seconds(9));
  // The driver ends its work, then everybody leaves as stopped.
  EXPECT_EQ(Shown(driver.On(ProgramReturned{}, kNow)), "finish, leave 75");
  EXPECT_EQ(Shown(server.On(FinishEvent(), kNow)), "leave 75");
}

TEST(Lifecycle, LeavesAtTheEndOfTheGraceOfAStop) {
  Lifecycle server = Server();
  server.On(StopEvent(absl::Seconds(10)), kNow);
  EXPECT_EQ(Shown(server.OnTime(kNow + absl::Seconds(9))), "cancel");
  EXPECT_EQ(Shown(server.OnTime(kNow + absl::Seconds(10))), "leave 75");
}

TEST(Lifecycle, StopsTheProgramWhenTheJobIsFinishedFromOutside) {
  Lifecycle driver = Driver();
  EXPECT_EQ(Shown(driver.On(FinishEvent(), kNow)), "stop");
  EXPECT_EQ(Shown(driver.On(ProgramReturned{}, kNow)), "finish, leave 0");
}

TEST(EventQueue, GivesEventsInOrderAndNothingAtTheDeadline) {
  EventQueue queue;
  queue.Push(ProgramReturned{});
  queue.Push(SignalReceived{"SIGTERM"});
  EXPECT_TRUE(std::holds_alternative<ProgramReturned>(
      *queue.Pop(absl::InfiniteFuture())));
  EXPECT_TRUE(std::holds_alternative<SignalReceived>(
      *queue.Pop(absl::InfiniteFuture())));
  EXPECT_FALSE(queue.Pop(absl::InfinitePast()).has_value());
}

}  // namespace
}  // namespace disttrain
