// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"
#include "tests/worker/rpc/job.h"
#include "tests/worker/rpc/test_classes.h"

namespace disttrain::rpc {
namespace {

using ::testing::AllOf;
using testing::Counter;
using testing::Everything;
using testing::Gate;
using ::testing::HasSubstr;
using testing::Relay;
using ::testing::StartsWith;

TEST(PeerLoss, FailsPendingCallsAtOnceAndNamesThePeer) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto gate = Remote<Gate>(1, 1);
  const auto forever =
      gate.With({.timeout = absl::ZeroDuration()}).Async(&Gate::PassLater);
  job.network().Kill(1);
  EXPECT_THAT(MessageOfThrow<PeerLost>([&] { forever.Get(); }),
              AllOf(StartsWith("observer 0 (rank 1, pod job-1): "),
                    HasSubstr("Gate.PassLater: connection closed (after ")));
  EXPECT_THROW(gate.Sync(&Gate::Waiting), PeerLost);
  EXPECT_THROW(Remote<Gate>(1, 2), PeerLost);
}

TEST(PeerLoss, IsToldToTheProgram) {
  absl::Notification told;
  Peer lost;
  Job job(2, Everything(), [&](AgentOptions& options) {
    if (options.self.rank != 0) return;
    options.on_peer_lost = [&](const Peer& peer, const std::string& reason) {
      lost = peer;
      EXPECT_EQ(reason, "connection closed");
      told.Notify();
    };
  });
  job.network().Kill(1);
  told.WaitForNotification();
  EXPECT_EQ(lost, PeerAt(1));
}

TEST(PeerLoss, CancelsTheMethodsThatRunForThePeer) {
  Job job(2, Everything());
  RRef<Gate> gate;
  {
    const Agent::Scope scope(job.agent(1));
    gate = Remote<Gate>(0, 1);
    gate.Async(&Gate::Pass);
    while (gate.Sync(&Gate::Waiting) == 0) {
    }
  }
  job.network().Kill(1);
  EXPECT_TRUE(job.Eventually(0, [](const AgentStatistics& now) {
    return now.incoming_calls == 0 && now.owned_objects == 0;
  }));
}

TEST(PeerLoss, OfAThirdRankIsTheMethodsException) {
  Job job(3, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto gate = Remote<Gate>(2, 1);
  const auto relay = Remote<Relay>(1);
  const auto waiting = relay.Async(&Relay::PassThrough, gate);
  while (gate.Sync(&Gate::Waiting) == 0) {
  }
  job.network().Kill(2);
  try {
    waiting.Get();
    FAIL() << "nothing was thrown";
  } catch (const RemoteException& error) {
    EXPECT_EQ(error.peer(), PeerAt(1));
    EXPECT_EQ(error.cause(), ErrorCode::kPeerLost);
    EXPECT_THAT(error.what(), HasSubstr("observer 1 (rank 2, pod job-2)"));
  }
}

TEST(PeerLoss, OfAnOwnerMakesAHandedOnReferenceLost) {
  Job job(3, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto counter = Remote<Counter>(2, 1);
  const auto relay = Remote<Relay>(1);
  job.network().Kill(2);
  // Rank 1 cannot confirm its fork with anybody.
  EXPECT_THAT(MessageOfThrow<Error>([&] { relay.Sync(&Relay::Keep, counter); }),
              HasSubstr("rank 2"));
}

TEST(Shutdown, LetsRunningCallsEndAndRefusesNewOnes) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto gate = Remote<Gate>(1, 3);
  const auto passing = gate.Async(&Gate::Pass);
  while (gate.Sync(&Gate::Waiting) == 0) {
  }
  std::thread leaving([&] { EXPECT_TRUE(job.agent(1).Shutdown(Soon())); });
  std::string refused;
  while (refused.empty()) {
    refused = MessageOfThrow<ShuttingDown>([&] { gate.Sync(&Gate::Waiting); });
  }
  EXPECT_THAT(refused, HasSubstr("shutting down"));
  {
    const Agent::Scope other(job.agent(1));
    EXPECT_THROW(Remote<Counter>(0, 1), ShuttingDown);
  }
  // Only the object's own process can open it now.
  gate.state();
  passing.Cancel();
  EXPECT_THROW(passing.Get(), Cancelled);
  leaving.join();
}

TEST(Shutdown, CancelsAtTheDeadlineAndTellsTheCallers) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto gate = Remote<Gate>(1, 3);
  const auto never =
      gate.With({.timeout = absl::ZeroDuration()}).Async(&Gate::PassLater);
  const auto long_one = gate.Async(&Gate::Pass);
  while (gate.Sync(&Gate::Waiting) == 0) {
  }
  EXPECT_TRUE(job.agent(1).Shutdown(absl::Now() + absl::Milliseconds(20)));
  EXPECT_THROW(never.Get(), ShuttingDown);
  EXPECT_THROW(long_one.Get(), ShuttingDown);
  EXPECT_THROW(gate.Sync(&Gate::Waiting), ShuttingDown);
}

TEST(Shutdown, GivesBackAllReferences) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto counter = Remote<Counter>(1, 3);
  job.agent(0).Shutdown(Soon());
  EXPECT_TRUE(job.Eventually(1, [](const AgentStatistics& now) {
    return now.owned_objects == 0 && now.owned_forks == 0;
  }));
  EXPECT_THROW(counter.Sync(&Counter::Get), ShuttingDown);
}

TEST(Abort, FailsWhatIsPendingWithItsReason) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto gate = Remote<Gate>(1, 3);
  const auto never =
      gate.With({.timeout = absl::ZeroDuration()}).Async(&Gate::PassLater);
  job.agent(0).Abort("rank 4 was lost");
  EXPECT_THAT(MessageOfThrow<Cancelled>([&] { never.Get(); }),
              HasSubstr("Gate.PassLater: rank 4 was lost"));
  EXPECT_THAT(MessageOfThrow<Cancelled>([&] { gate.Sync(&Gate::Waiting); }),
              HasSubstr("rank 4 was lost"));
}

}  // namespace
}  // namespace disttrain::rpc
