// SPDX-License-Identifier: Apache-2.0
#include "worker/rendezvous/roster.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/runtime/status.h"
#include "tests/worker/rendezvous/roster_requests.h"

namespace disttrain {
namespace {

using testing::Beat;
using testing::Caller;
using testing::Complete;
using ::testing::ElementsAre;
using testing::FailureOf;
using ::testing::HasSubstr;
using testing::kStart;
using testing::Options;
using testing::Replaceable;
using testing::Request;

TEST(Roster, IsCompleteWhenEveryRankHasJoined) {
  Roster roster(Options(2));
  ASSERT_TRUE(roster.Join(Request(Caller(1), 2), kStart).ok());
  EXPECT_FALSE(roster.Complete());
  ASSERT_TRUE(roster.Join(Request(Caller(0), 2), kStart).ok());
  EXPECT_TRUE(roster.Complete());
  ASSERT_EQ(roster.Members().size(), 2u);
  EXPECT_EQ(roster.Members()[0].role(), "agent");
  EXPECT_EQ(roster.Members()[1].address(), "unix:/tmp/d1");
}

TEST(Roster, NamesTheMissingRanksAsFarAsItKnowsThem) {
  Roster roster(Options(3));
  ASSERT_TRUE(roster.Join(Request(Caller(0), 3), kStart).ok());
  ASSERT_TRUE(roster.Join(Request(Caller(1), 3), kStart).ok());
  EXPECT_EQ(roster.MissingText(), "2/3 ranks joined; rank 2 is missing");
  roster.AbandonJoin(Caller(1), kStart);
  EXPECT_EQ(roster.MissingText(),
            "1/3 ranks joined; ranks 1 (observer 0), 2 are missing");
  EXPECT_THAT(roster.Progress().missing_ranks(), ElementsAre(1, 2));
}

TEST(Roster, TakesARetryOfTheSameProcessForNothingNew) {
  Roster roster(Options(2));
  ASSERT_TRUE(roster.Join(Request(Caller(1), 2), kStart).ok());
  ASSERT_TRUE(roster.Join(Request(Caller(1), 2), kStart).ok());
  EXPECT_EQ(roster.Progress().joined(), 1);
}

TEST(Roster, RefusesASecondProcessOfALiveRank) {
  Roster roster = Complete(2);
  const absl::Status status =
      roster.Join(Request(Caller(1, 0, 999), 2), kStart);
  EXPECT_TRUE(absl::IsAlreadyExists(status));
  EXPECT_THAT(Message(status), HasSubstr("rank 1 (observer 0, pod pod-1)"));
  EXPECT_TRUE(absl::IsAlreadyExists(roster.Check(Caller(1, 0, 999))));
}

TEST(Roster, RefusesAnotherJobNamingBoth) {
  Roster roster(Options(2));
  v1::JoinRequest request = Request(Caller(1), 2);
  request.mutable_caller()->set_job_uid("uid-b");
  const absl::Status status = roster.Join(request, kStart);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(Message(status), HasSubstr("uid-a"));
  EXPECT_THAT(Message(status), HasSubstr("uid-b"));
}

TEST(Roster, RefusesAnotherWorldSizeNamingBoth) {
  Roster roster(Options(2));
  const absl::Status status = roster.Join(Request(Caller(1), 5), kStart);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(Message(status), "rank 1 expects 5 ranks, rank 0 expects 2");
}

TEST(Roster, RefusesAnOlderAttemptAndMakesANewerOneWait) {
  Roster roster(Options(2, 3));
  v1::JoinRequest request = Request(Caller(1), 2);
  request.mutable_caller()->set_attempt(2);
  EXPECT_TRUE(absl::IsAborted(roster.Join(request, kStart)));
  request.mutable_caller()->set_attempt(4);
  const absl::Status newer = roster.Join(request, kStart);
  EXPECT_TRUE(absl::IsUnavailable(newer));
  EXPECT_THAT(Message(newer), HasSubstr("attempt 4"));
  EXPECT_THAT(Message(newer), HasSubstr("attempt 3"));
}

TEST(Roster, RefusesAnOlderIncarnation) {
  Roster roster(Options(2));
  ASSERT_TRUE(roster.Join(Request(Caller(1, 2), 2), kStart).ok());
  EXPECT_TRUE(absl::IsAborted(roster.Join(Request(Caller(1, 1), 2), kStart)));
  EXPECT_TRUE(absl::IsAborted(roster.Check(Caller(1, 1))));
}

TEST(Roster, RefusesContradictionsWithinARequest) {
  Roster roster(Options(2));
  v1::JoinRequest request = Request(Caller(1), 2);
  request.mutable_self()->set_rank(0);
  EXPECT_TRUE(absl::IsInvalidArgument(roster.Join(request, kStart)));
  EXPECT_TRUE(
      absl::IsInvalidArgument(roster.Join(Request(Caller(2), 2), kStart)));
  EXPECT_TRUE(
      absl::IsInvalidArgument(roster.Join(Request(Caller(-1), 2), kStart)));
  request = Request(Caller(1), 2);
  request.mutable_self()->set_address(std::string(513, 'a'));
  EXPECT_TRUE(absl::IsInvalidArgument(roster.Join(request, kStart)));
  EXPECT_TRUE(absl::IsInvalidArgument(
      roster.Join(Replaceable(Request(Caller(0), 2)), kStart)));
}

TEST(Roster, RefusesTwoRanksInOnePlaceOfARole) {
  Roster roster(Options(3));
  ASSERT_TRUE(roster.Join(Request(Caller(1), 3), kStart).ok());
  v1::JoinRequest request = Request(Caller(2), 3);
  request.mutable_self()->set_role_index(0);
  const absl::Status status = roster.Join(request, kStart);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(Message(status), HasSubstr("observer 0"));
}

TEST(Roster, LosesARankWhoseStreamStaysBroken) {
  Roster roster = Complete(3);
  roster.StreamEnded(2, 3, kStart);
  EXPECT_EQ(roster.NextDeadline(), kStart + absl::Seconds(1));
  roster.Advance(kStart + absl::Milliseconds(999));
  EXPECT_FALSE(roster.failure());
  roster.Advance(kStart + absl::Seconds(1));
  ASSERT_TRUE(roster.failure());
  EXPECT_EQ(roster.failure()->rank(), 2);
  EXPECT_EQ(roster.failure()->role(), "observer");
  EXPECT_EQ(roster.failure()->pod(), "pod-2");
  EXPECT_EQ(roster.failure()->cause(), "connection lost");
  EXPECT_EQ(roster.failure()->time_ms(),
            absl::ToUnixMillis(kStart + absl::Seconds(1)));
  EXPECT_THAT(roster.TakeGone(), ElementsAre(2));
  ASSERT_EQ(roster.TakeEvents().size(), 1u);
  EXPECT_TRUE(roster.TakeEvents().empty());
}

TEST(Roster, KeepsARankThatReconnectsInTime) {
  Roster roster = Complete(2);
  roster.StreamEnded(1, 2, kStart);
  roster.StreamStarted(1, 7, kStart + absl::Milliseconds(900));
  roster.StreamEnded(1, 2, kStart + absl::Milliseconds(950));  // the old one
  roster.Advance(kStart + absl::Seconds(5));
  EXPECT_FALSE(roster.failure());
}

TEST(Roster, LosesASilentRank) {
  Roster roster = Complete(2);
  Beat(roster, 0, kStart + absl::Seconds(20));
  roster.Advance(kStart + absl::Seconds(30));
  ASSERT_TRUE(roster.failure());
  EXPECT_EQ(roster.failure()->rank(), 1);
  EXPECT_EQ(roster.failure()->cause(), "no heartbeat for 30s");
}

TEST(Roster, LosesARankThatNeverStartsItsHeartbeat) {
  Roster roster(Options(2));
  ASSERT_TRUE(roster.Join(Request(Caller(0), 2), kStart).ok());
  // Waiting in Join for long is no silence.
  const absl::Time later = kStart + absl::Seconds(300);
  roster.Advance(later);
  ASSERT_TRUE(roster.Join(Request(Caller(1), 2), later).ok());
  roster.StreamStarted(0, 1, later);
  roster.Advance(later + absl::Seconds(9));
  EXPECT_FALSE(roster.failure());
  roster.Advance(later + absl::Seconds(10));
  ASSERT_TRUE(roster.failure());
  EXPECT_EQ(roster.failure()->rank(), 1);
  EXPECT_EQ(roster.failure()->cause(), "it joined, but never sent a heartbeat");
}

TEST(Roster, LetsTheFirstFailureWin) {
  Roster roster = Complete(3);
  ASSERT_TRUE(
      roster.ReportFailure(Caller(1), FailureOf(1, "out of memory"), kStart)
          .ok());
  ASSERT_TRUE(
      roster.ReportFailure(Caller(2), FailureOf(2, "an echo"), kStart).ok());
  EXPECT_EQ(roster.failure()->cause(), "out of memory");
  EXPECT_EQ(roster.TakeEvents().size(), 1u);
  EXPECT_EQ(roster.Progress().state(), v1::Progress::STATE_FAILED);
  EXPECT_EQ(roster.Progress().failure().rank(), 1);
}

TEST(Roster, PrefersARanksOwnCauseToTheEchoOfItsLoss) {
  Roster roster = Complete(3);
  ASSERT_TRUE(
      roster.ReportFailure(Caller(2), FailureOf(1, "connection reset"), kStart)
          .ok());
  EXPECT_FALSE(roster.failure());
  EXPECT_TRUE(roster.undecided());
  ASSERT_TRUE(roster
                  .ReportFailure(Caller(1), FailureOf(1, "assertion"),
                                 kStart + absl::Milliseconds(100))
                  .ok());
  EXPECT_EQ(roster.failure()->cause(), "assertion");
  EXPECT_FALSE(roster.undecided());
}

TEST(Roster, TakesTheEchoWhenTheLostRankSaysNothing) {
  Roster roster = Complete(3);
  ASSERT_TRUE(
      roster.ReportFailure(Caller(2), FailureOf(1, "connection reset"), kStart)
          .ok());
  // Another rank's own report is later than the loss, so it is an effect.
  ASSERT_TRUE(roster
                  .ReportFailure(Caller(0), FailureOf(0, "a call failed"),
                                 kStart + absl::Milliseconds(100))
                  .ok());
  EXPECT_FALSE(roster.failure());
  EXPECT_EQ(roster.NextDeadline(), kStart + absl::Milliseconds(300));
  roster.Advance(kStart + absl::Milliseconds(300));
  EXPECT_EQ(roster.failure()->rank(), 1);
  EXPECT_EQ(roster.failure()->pod(), "pod-1");
  EXPECT_EQ(roster.failure()->cause(), "connection reset");
}

TEST(Roster, RefusesAFailureOfNoRank) {
  Roster roster = Complete(2);
  EXPECT_TRUE(absl::IsInvalidArgument(
      roster.ReportFailure(Caller(1), FailureOf(2, "x"), kStart)));
}

TEST(Roster, MakesOneLineOfACauseAndAddsTheStep) {
  Roster roster = Complete(2);
  v1::HeartbeatRequest beat;
  beat.mutable_report()->set_step(40);
  roster.Heard(1, beat, kStart);
  ASSERT_TRUE(
      roster
          .ReportFailure(Caller(1),
                         FailureOf(1, fmt::format("two\nlines {:x<5000}", "")),
                         kStart)
          .ok());
  EXPECT_THAT(roster.failure()->cause(), HasSubstr("two lines xxx"));
  EXPECT_EQ(roster.failure()->cause().size(), 1024u);
  EXPECT_EQ(roster.failure()->step(), 40);
}

TEST(Roster, TakesLeavingAfterFinishForNormal) {
  Roster roster = Complete(2);
  roster.Finish("solved");
  roster.StreamEnded(1, 2, kStart);
  roster.Advance(kStart + absl::Seconds(60));
  EXPECT_FALSE(roster.failure());
  ASSERT_TRUE(
      roster.ReportFailure(Caller(0), FailureOf(1, "lost"), kStart).ok());
  EXPECT_FALSE(roster.failure());
  EXPECT_EQ(roster.Progress().state(), v1::Progress::STATE_FINISHED);
  EXPECT_TRUE(absl::IsAborted(roster.Join(Request(Caller(1), 2), kStart)));
}

TEST(Roster, TakesLeavingAfterStopForNormal) {
  Roster roster = Complete(2);
  v1::StopRequest stop;
  stop.set_reason("suspended");
  roster.Stop(stop);
  v1::HeartbeatRequest goodbye;
  goodbye.set_leaving(true);
  roster.Heard(1, goodbye, kStart);
  EXPECT_FALSE(roster.failure());
  const auto events = roster.CatchUp();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].stop().reason(), "suspended");
}

TEST(Roster, TakesLeavingBeforeTheEndForAFailure) {
  Roster roster = Complete(2);
  v1::HeartbeatRequest goodbye;
  goodbye.set_leaving(true);
  roster.Heard(1, goodbye, kStart);
  ASSERT_TRUE(roster.failure());
  EXPECT_EQ(roster.failure()->cause(), "left before the program ended");
}

TEST(Roster, LetsAReplaceableRankGoAndReturn) {
  Roster roster(Options(2));
  ASSERT_TRUE(roster.Join(Request(Caller(0), 2), kStart).ok());
  ASSERT_TRUE(roster.Join(Replaceable(Request(Caller(1), 2)), kStart).ok());
  roster.StreamStarted(0, 1, kStart);
  roster.StreamStarted(1, 2, kStart);
  roster.StreamEnded(1, 2, kStart);
  roster.Advance(kStart + absl::Seconds(1));
  EXPECT_FALSE(roster.failure());
  auto events = roster.TakeEvents();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].lost().rank(), 1);
  EXPECT_TRUE(roster.Gone(1));
  // Only its successor may come.
  EXPECT_TRUE(
      absl::IsAborted(roster.Join(Replaceable(Request(Caller(1), 2)), kStart)));
  ASSERT_TRUE(
      roster.Join(Replaceable(Request(Caller(1, 1, 7), 2)), kStart).ok());
  events = roster.TakeEvents();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].joined().incarnation(), 1);
  EXPECT_FALSE(roster.Gone(1));
  EXPECT_TRUE(absl::IsAborted(roster.Check(Caller(1))));
}

TEST(Roster, WhatAReplaceableRankReportsEndsNothingButItself) {
  Roster roster(Options(3));
  ASSERT_TRUE(roster.Join(Request(Caller(0), 3), kStart).ok());
  for (int rank = 1; rank < 3; ++rank) {
    ASSERT_TRUE(
        roster.Join(Replaceable(Request(Caller(rank), 3)), kStart).ok());
  }
  // Its own connection may be what broke.
  EXPECT_TRUE(
      roster.ReportFailure(Caller(1), FailureOf(0, "closed"), kStart).ok());
  EXPECT_FALSE(roster.undecided());
  EXPECT_TRUE(
      roster.ReportFailure(Caller(2), FailureOf(2, "SIGTERM"), kStart).ok());
  EXPECT_FALSE(roster.failure());
  EXPECT_FALSE(roster.Gone(1));
  EXPECT_TRUE(roster.Gone(2));
  const auto events = roster.TakeEvents();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].lost().rank(), 2);
}

TEST(Roster, RefusesTheReturnOfARankThatCannotBeReplaced) {
  Roster roster = Complete(2);
  EXPECT_TRUE(absl::IsFailedPrecondition(
      roster.Join(Request(Caller(1, 1), 2), kStart)));
}

TEST(Roster, MergesReportsByRole) {
  Roster roster = Complete(3);
  v1::HeartbeatRequest agent;
  agent.mutable_report()->set_step(10);
  agent.mutable_report()->set_reward(20.5);
  agent.mutable_report()->set_total_steps(1500);
  agent.mutable_report()->set_loss(2);
  agent.mutable_report()->set_time_ms(5);
  v1::HeartbeatRequest observer;
  observer.mutable_report()->set_step(8);
  observer.mutable_report()->set_reward(99);
  observer.mutable_report()->set_samples_per_second(100);
  observer.mutable_report()->set_loss(4);
  observer.mutable_report()->set_time_ms(9);
  roster.Heard(2, observer, kStart);
  roster.Heard(0, agent, kStart);
  roster.Heard(1, observer, kStart);
  const v1::Progress progress = roster.Progress();
  EXPECT_EQ(progress.state(), v1::Progress::STATE_RUNNING);
  EXPECT_EQ(progress.joined(), 3);
  const v1::Report& training = progress.training();
  EXPECT_EQ(training.step(), 8);
  EXPECT_DOUBLE_EQ(training.reward(), 20.5);
  EXPECT_EQ(training.total_steps(), 1500);
  EXPECT_DOUBLE_EQ(training.samples_per_second(), 200);
  EXPECT_DOUBLE_EQ(training.loss(), (2.0 + 4 + 4) / 3);
  EXPECT_EQ(training.time_ms(), 9);
  EXPECT_FALSE(training.has_episode_reward());
}

}  // namespace
}  // namespace disttrain
