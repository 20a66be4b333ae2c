// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/rpc/job.h"
#include "tests/worker/rpc/test_classes.h"

namespace disttrain::rpc {
namespace {

using testing::Counter;
using testing::Everything;
using ::testing::HasSubstr;
using testing::Relay;

bool Nothing(const AgentStatistics& now) {
  return now.owned_objects == 0 && now.owned_forks == 0 &&
         now.remote_references == 0 && now.pending_forks == 0;
}

TEST(RRef, LastHandleElsewhereDestroysTheObject) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  auto counter = Remote<Counter>(1, 1);
  auto copy = counter;
  EXPECT_EQ(Counter::alive, 1);
  EXPECT_EQ(job.agent(1).statistics().owned_forks, 1);
  counter = {};
  EXPECT_EQ(copy.Sync(&Counter::Get), 1);
  copy = {};
  EXPECT_TRUE(job.Eventually(1, Nothing));
  EXPECT_TRUE(job.Eventually(0, Nothing));
  while (Counter::alive != 0) {
  }
}

TEST(RRef, IsHandedOnToAThirdRankAndOutlivesTheFirst) {
  Job job(3, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto relay = Remote<Relay>(2);
  {
    const auto counter = Remote<Counter>(1, 10);
    relay.Sync(&Relay::Keep, counter);
    EXPECT_EQ(job.agent(1).statistics().owned_forks, 2);
  }
  EXPECT_TRUE(job.Eventually(1, [](const AgentStatistics& now) {
    return now.owned_forks == 1 && now.owned_objects == 1;
  }));
  auto back = relay.Sync(&Relay::Give);
  EXPECT_EQ(back.Sync(&Counter::Add, 1), 11);
  EXPECT_EQ(job.agent(1).statistics().owned_forks, 2);
  relay.Sync(&Relay::Forget);
  back = {};
  EXPECT_TRUE(job.Eventually(1, Nothing));
}

TEST(RRef, ComesBackToItsOwnerAsTheSameObject) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto relay = Remote<Relay>(1);
  auto counter = Local<Counter>(3);
  relay.Sync(&Relay::Keep, counter);
  const auto back = relay.Sync(&Relay::Give);
  EXPECT_EQ(back, counter);
  EXPECT_EQ(&back.Value(), &counter.Value());
  EXPECT_EQ(job.agent(0).statistics().owned_forks, 1);
}

TEST(RRef, KeepsTheOwnersObjectAliveThroughAHolder) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto relay = Remote<Relay>(1);
  relay.Sync(&Relay::Keep, Local<Counter>(3));
  EXPECT_EQ(Counter::alive, 1);
  relay.Sync(&Relay::Forget);
  EXPECT_TRUE(job.Eventually(
      0, [](const AgentStatistics& now) { return now.owned_objects == 0; }));
}

TEST(RRef, ManyPassesLeaveNothingBehind) {
  Job job(3, Everything());
  {
    const Agent::Scope scope(job.agent(0));
    const auto relay = Remote<Relay>(2);
    const auto counter = Remote<Counter>(1, 0);
    std::vector<Future<int64_t>> sums;
    for (int i = 0; i < 100; ++i) {
      sums.push_back(relay.Async(&Relay::AddThrough, counter, 1));
    }
    WhenAll(sums).Get();
    EXPECT_EQ(counter.Sync(&Counter::Get), 100);
  }
  for (const int rank : {0, 1, 2}) EXPECT_TRUE(job.Eventually(rank, Nothing));
}

TEST(RRef, ALostHoldersReferencesAreReleased) {
  Job job(3, Everything());
  const Agent::Scope scope(job.agent(0));
  auto counter = Remote<Counter>(1, 1);
  auto relay = Remote<Relay>(2);
  relay.Sync(&Relay::Keep, counter);
  EXPECT_EQ(job.agent(1).statistics().owned_forks, 2);
  counter = {};
  job.network().Kill(2);
  EXPECT_TRUE(job.Eventually(1, [](const AgentStatistics& now) {
    return now.owned_objects == 0 && now.owned_forks == 0;
  }));
  EXPECT_THROW(relay.Sync(&Relay::Forget), PeerLost);
}

TEST(RRef, OfALostOwnerIsNotReboundToItsSuccessor) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto counter = Remote<Counter>(1, 1);
  job.network().Kill(1);
  const auto successor = job.network().Make({1, 1});
  AgentOptions options;
  options.self = PeerAt(1, 1);
  options.peers = {PeerAt(0)};
  options.endpoint = successor.get();
  options.registry = Everything();
  const auto agent = Agent::Start(std::move(options));
  job.agent(0).Replace(PeerAt(1, 1), successor->address());
  EXPECT_THAT(MessageOfThrow<PeerLost>([&] { counter.Sync(&Counter::Get); }),
              HasSubstr("incarnation 0) was lost; the rank is now in "
                        "incarnation 1"));
  EXPECT_EQ(Remote<Counter>(1, 7).Sync(&Counter::Get), 7);
  agent->Shutdown(Soon());
}

TEST(RRef, AnEmptyOneAndTheWrongPlaceAreErrors) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  EXPECT_THROW(RRef<Counter>().Sync(&Counter::Get), std::logic_error);
  const auto counter = Remote<Counter>(1, 1);
  EXPECT_THAT(MessageOfThrow<InvalidArgument>([&] { counter->Get(); }),
              HasSubstr("does not live in this process"));
  const auto relay = Remote<Relay>(1);
  EXPECT_THAT(MessageOfThrow<InvalidArgument>(
                  [&] { relay.Sync(&Relay::Keep, RRef<Counter>()); }),
              HasSubstr("argument 1: RRef is empty"));
}

TEST(RRef, OutlivesItsAgentWithoutHarm) {
  RRef<Counter> remote;
  RRef<Counter> local;
  {
    Job job(2, Everything());
    const Agent::Scope scope(job.agent(0));
    remote = Remote<Counter>(1, 1);
    local = Local<Counter>(2);
  }
  EXPECT_THROW(remote.Sync(&Counter::Get), std::exception);
  EXPECT_EQ(local->Get(), 2);
}

}  // namespace
}  // namespace disttrain::rpc
