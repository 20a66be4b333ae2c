// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

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

std::vector<Peer> Replaceable(int count) {
  std::vector<Peer> peers = Observers(count);
  for (Peer& peer : peers) peer.replaceable = true;
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

TEST(Group, ALostMemberIsAnErrorUnlessItIsReplaceable) {
  Job job(3, Everything());
  const Agent::Scope scope(job.agent(0));
  Group<Counter> strict(Observers(2), [](const Peer&) { return 0; });
  Group<Counter> lenient(Replaceable(2), [](const Peer&) { return 0; });
  job.network().Kill(2);
  EXPECT_THAT(
      MessageOfThrow<PeerLost>([&] { strict.Call(&Counter::Add, 1).All(); }),
      HasSubstr("(rank 2, pod job-2)"));
  EXPECT_THAT(Ranks(lenient.Call(&Counter::Add, 1).All()), ElementsAre(1));
  EXPECT_THAT(Ranks(lenient.Call(&Counter::Add, 1).All()), ElementsAre(1));
  EXPECT_EQ(lenient.Call(&Counter::Add, 1).Any().peer.rank, 1);
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

// A new life of a rank that was killed.
class Successor {
 public:
  Successor(Job& job, int rank, int incarnation)
      : peer_(PeerAt(rank, incarnation)),
        endpoint_(job.network().Make({rank, incarnation})) {
    peer_.replaceable = true;
    AgentOptions options;
    options.self = peer_;
    options.peers = {PeerAt(0)};
    options.endpoint = endpoint_.get();
    options.registry = Everything();
    agent_ = Agent::Start(std::move(options));
  }
  ~Successor() { agent_->Shutdown(Soon()); }

  void IsKnownTo(Agent& agent) { agent.Replace(peer_, endpoint_->address()); }

 private:
  Peer peer_;
  std::unique_ptr<fakes::LoopbackEndpoint> endpoint_;
  std::unique_ptr<Agent> agent_;
};

TEST(Group, AReturningRankGetsItsObjectAgain) {
  Job job(3, Everything());
  const Agent::Scope scope(job.agent(0));
  Group<Counter> counters(Replaceable(2),
                          [](const Peer& peer) { return peer.rank; });
  job.network().Kill(2);
  EXPECT_THAT(Ranks(counters.Call(&Counter::Add, 1).All()), ElementsAre(1));
  Successor successor(job, 2, 1);
  successor.IsKnownTo(job.agent(0));
  // It takes part once its object is there.
  std::vector<MemberResult<int64_t>> sums;
  while (sums.size() < 2) sums = counters.Call(&Counter::Add, 1).All();
  EXPECT_EQ(sums[1].peer.incarnation, 1);
  EXPECT_EQ(sums[1].value, 3) << "made like the first one";
}

TEST(Group, WaitsForOneToReturnWhenAllAreLost) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  Group<Counter> counters(Replaceable(1),
                          [](const Peer& peer) { return peer.rank; });
  job.network().Kill(1);
  EXPECT_THAT(counters.Call(&Counter::Add, 1).First(1), ::testing::IsEmpty());
  Successor successor(job, 1, 3);
  std::thread later([&] { successor.IsKnownTo(job.agent(0)); });
  const auto sums = counters.Call(&Counter::Add, 1).All();
  later.join();
  EXPECT_THAT(Ranks(sums), ElementsAre(1));
  EXPECT_EQ(sums[0].value, 2);
}

TEST(Group, StopsWaitingForAReturnWhenTheAgentIsAborted) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  Group<Counter> counters(Replaceable(1), [](const Peer&) { return 0; });
  job.network().Kill(1);
  counters.Call(&Counter::Add, 1).All();
  std::thread later([&] { job.agent(0).Abort("told to stop"); });
  EXPECT_THAT(
      MessageOfThrow<Cancelled>([&] { counters.Call(&Counter::Add, 1); }),
      HasSubstr("told to stop"));
  later.join();
  // The same for who comes after that.
  EXPECT_THAT(
      MessageOfThrow<Cancelled>([&] { counters.Call(&Counter::Add, 1); }),
      HasSubstr("told to stop"));
}

}  // namespace
}  // namespace disttrain::rpc
