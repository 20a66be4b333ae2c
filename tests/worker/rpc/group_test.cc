// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/rpc/job.h"
#include "tests/worker/rpc/test_classes.h"

namespace disttrain::rpc {
namespace {

using testing::Counter;
using ::testing::ElementsAre;
using testing::Everything;
using testing::Gate;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::Thrower;

template <class R>
std::vector<int> Ranks(const std::vector<MemberResult<R>>& results) {
  std::vector<int> ranks;
  for (const auto& result : results) ranks.push_back(result.peer.rank);
  return ranks;
}

std::vector<Peer> Observers(int count) {
  std::vector<Peer> peers;
  for (int rank = count; rank >= 1; --rank) peers.push_back(PeerAt(rank));
  return peers;
}

TEST(Group, CallsAllAndSortsByRank) {
  Job job(4, Everything());
  const Agent::Scope scope(job.agent(0));
  Group<Counter> counters(Observers(3),
                          [](const Peer& peer) { return 10 * peer.rank; });
  const auto sums = counters.Call(&Counter::Add, 1).All();
  EXPECT_THAT(Ranks(sums), ElementsAre(1, 2, 3));
  EXPECT_EQ(sums[0].value, 11);
  EXPECT_EQ(sums[2].value, 31);
  EXPECT_THAT(Ranks(counters.Call(&Counter::Reset).All()),
              ElementsAre(1, 2, 3));
}

TEST(Group, OneSlowMemberDoesNotHoldUpTheRest) {
  Job job(4, Everything());
  const Agent::Scope scope(job.agent(0));
  Group<Gate> gates(Observers(3), [](const Peer& peer) { return peer.rank; });
  const auto objects = gates.Objects();
  objects[0].Sync(&Gate::Open);
  objects[1].Sync(&Gate::Open);
  EXPECT_THAT(Ranks(gates.Call(&Gate::Pass).First(2)), ElementsAre(1, 2));
  // Rank 3 is busy and not called again; the others are.
  EXPECT_THAT(Ranks(gates.Call(&Gate::Pass).First(2)), ElementsAre(1, 2));
  EXPECT_EQ(objects[2].Sync(&Gate::Waiting), 1);
  // Its late result comes out in the round in which it ends.
  auto round = gates.Call(&Gate::Pass);
  objects[2].Sync(&Gate::Open);
  const auto results = round.All();
  EXPECT_THAT(Ranks(results), ElementsAre(1, 2, 3));
  EXPECT_EQ(results[2].value, 3);
  EXPECT_EQ(objects[2].Sync(&Gate::Waiting), 0);
}

TEST(Group, AnyTakesWhicheverIsFirst) {
  Job job(3, Everything());
  const Agent::Scope scope(job.agent(0));
  Group<Gate> gates(Observers(2), [](const Peer& peer) { return peer.rank; });
  gates.Objects()[1].Sync(&Gate::Open);
  auto round = gates.Call(&Gate::Pass);
  EXPECT_EQ(round.Any().value, 2);
  gates.Objects()[0].Sync(&Gate::Open);
  EXPECT_EQ(round.Any().value, 1);
}

TEST(Group, ErrorsNameTheMember) {
  Job job(3, Everything());
  const Agent::Scope scope(job.agent(0));
  Group<Thrower> throwers(Observers(2));
  EXPECT_THAT(MessageOfThrow<RemoteException>([&] {
                throwers.Call(&Thrower::Runtime, "out of memory").All();
              }),
              StartsWith("observer "));
  EXPECT_THAT(MessageOfThrow<RemoteException>([&] {
                Group<Thrower> broken(Observers(2), [](const Peer& peer) {
                  return "no space on rank " + std::to_string(peer.rank);
                });
              }),
              StartsWith("observer 0 (rank 1, pod job-1): "
                         "disttrain::rpc::testing::Thrower: no space on rank "
                         "1"));
}

TEST(Group, ALostMemberIsAnErrorUnlessItMayBe) {
  Job job(3, Everything());
  const Agent::Scope scope(job.agent(0));
  Group<Counter> strict(Observers(2), [](const Peer&) { return 0; });
  Group<Counter> lenient(Observers(2), [](const Peer&) { return 0; },
                         {.members_may_be_lost = true});
  job.network().Kill(2);
  EXPECT_THAT(
      MessageOfThrow<PeerLost>([&] { strict.Call(&Counter::Add, 1).All(); }),
      HasSubstr("(rank 2, pod job-2)"));
  EXPECT_THAT(Ranks(lenient.Call(&Counter::Add, 1).All()), ElementsAre(1));
  EXPECT_THAT(Ranks(lenient.Call(&Counter::Add, 1).All()), ElementsAre(1));
}

TEST(Group, AFailureIsNotHeldUpByAMemberThatIsStillBusy) {
  Job job(3, Everything());
  const Agent::Scope scope(job.agent(0));
  Group<Gate> gates(Observers(2), [](const Peer& peer) { return peer.rank; });
  auto round = gates.Call(&Gate::Pass);
  job.network().Kill(2);
  EXPECT_THAT(MessageOfThrow<PeerLost>([&] { round.All(); }),
              HasSubstr("(rank 2, pod job-2)"));
  gates.Objects()[0].Sync(&Gate::Open);
  EXPECT_THAT(Ranks(round.All()), ElementsAre(1));
}

TEST(Group, AReturningRankGetsItsObjectAgain) {
  Job job(3, Everything());
  const Agent::Scope scope(job.agent(0));
  Group<Counter> counters(Observers(2),
                          [](const Peer& peer) { return peer.rank; },
                          {.members_may_be_lost = true});
  job.network().Kill(2);
  counters.Call(&Counter::Add, 1).All();
  const auto endpoint = job.network().Make({2, 1});
  AgentOptions options;
  options.self = PeerAt(2, 1);
  options.peers = {PeerAt(0)};
  options.endpoint = endpoint.get();
  options.registry = Everything();
  const auto successor = Agent::Start(std::move(options));
  job.agent(0).Replace(PeerAt(2, 1), endpoint->address());
  counters.Rejoin(PeerAt(2, 1));
  const auto sums = counters.Call(&Counter::Add, 1).All();
  EXPECT_THAT(Ranks(sums), ElementsAre(1, 2));
  EXPECT_EQ(sums[1].value, 3);
  successor->Shutdown(Soon());
}

}  // namespace
}  // namespace disttrain::rpc
