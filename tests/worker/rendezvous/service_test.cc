// SPDX-License-Identifier: Apache-2.0
//
// Server and clients in one process, over real sockets.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/runtime/status.h"
#include "tests/worker/rendezvous/harness.h"

namespace disttrain::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::Time In(int milliseconds) {
  return absl::Now() + absl::Milliseconds(milliseconds);
}

bool Ipv6Works() {
  auto server = RendezvousServer::Start(OptionsOf("[::1]:0", 1));
  return server.ok();
}

TEST(Rendezvous, MeetsOverAUnixSocket) {
  const Folder folder;
  World world = Meet(OptionsOf(folder.socket(), 3));
  EXPECT_EQ(world.server->address(), folder.socket());
  struct stat info = {};
  ASSERT_EQ(::stat((folder.path() + "/r.sock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_TRUE(Eventually([&] {
    return world.server->Progress().state() == v1::Progress::STATE_RUNNING;
  }));
}

TEST(Rendezvous, MeetsOverLoopback) {
  World world = Meet(OptionsOf("127.0.0.1:0", 2));
  EXPECT_THAT(world.server->address(), StartsWith("127.0.0.1:"));
  EXPECT_NE(world.server->address(), "127.0.0.1:0");
}

TEST(Rendezvous, MeetsOverIpv6) {
  if (!Ipv6Works()) GTEST_SKIP() << "no IPv6 here";
  World world = Meet(OptionsOf("[::1]:0", 2));
  EXPECT_THAT(world.server->address(), StartsWith("[::1]:"));
}

TEST(Rendezvous, ListensOnAllInterfaces) {
  auto server = RendezvousServer::Start(OptionsOf("[::]:0", 1));
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string port =
      (*server)->address().substr((*server)->address().rfind(':'));
  Rank rank(fmt::format("127.0.0.1{}", port), 0);
  EXPECT_TRUE(rank.Join(1).ok());
}

TEST(Rendezvous, GivesTheWholeRosterInOrder) {
  const Folder folder;
  auto server = RendezvousServer::Start(OptionsOf(folder.socket(), 2));
  ASSERT_TRUE(server.ok());
  Rank one(folder.socket(), 1);
  Rank zero(folder.socket(), 0);
  std::thread first([&] { EXPECT_TRUE(one.Join(2).ok()); });
  const auto members = zero.Join(2);
  first.join();
  ASSERT_TRUE(members.ok()) << members.status();
  ASSERT_EQ(members->size(), 2u);
  EXPECT_EQ((*members)[0].role(), "agent");
  EXPECT_EQ((*members)[1].pod(), "pod-1");
  EXPECT_EQ((*members)[1].address(), "127.0.0.1:1001");
}

TEST(Rendezvous, NamesThePortThatIsInUse) {
  auto first = RendezvousServer::Start(OptionsOf("127.0.0.1:0", 1));
  ASSERT_TRUE(first.ok());
  const auto second =
      RendezvousServer::Start(OptionsOf((*first)->address(), 1));
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
  EXPECT_THAT(Message(second.status()), HasSubstr((*first)->address()));
}

TEST(Rendezvous, LeavesALiveSocketAloneAndReplacesAStaleOne) {
  const Folder folder;
  {
    auto first = RendezvousServer::Start(OptionsOf(folder.socket(), 1));
    ASSERT_TRUE(first.ok());
    const auto second = RendezvousServer::Start(OptionsOf(folder.socket(), 1));
    EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
    Rank rank(folder.socket(), 0);
    EXPECT_TRUE(rank.Join(1).ok());
  }
  EXPECT_TRUE(RendezvousServer::Start(OptionsOf(folder.socket(), 1)).ok());
}

TEST(Rendezvous, RefusesAddressesThatAreNone) {
  for (const char* listen : {"", "localhost", "unix:relative", "127.0.0.1:x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        RendezvousServer::Start(OptionsOf(listen, 1)).status()))
        << listen;
  }
  EXPECT_FALSE(RendezvousServer::Start(OptionsOf("192.0.2.1:0", 1)).ok());
  EXPECT_FALSE(
      RendezvousServer::Start(OptionsOf("unix:/nonexistent/dir/s", 1)).ok());
}

TEST(Rendezvous, TellsEveryoneWhoIsMissingAtTheDeadline) {
  const Folder folder;
  auto server = RendezvousServer::Start(OptionsOf(folder.socket(), 3));
  ASSERT_TRUE(server.ok());
  Rank zero(folder.socket(), 0);
  Rank two(folder.socket(), 2);
  absl::Status late;
  std::thread other([&] { late = two.Join(3).status(); });
  ASSERT_TRUE(Eventually([&] { return (*server)->Progress().joined() == 1; }));
  const absl::Status status = zero.Join(3, In(300)).status();
  other.join();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_EQ(Message(status), "2/3 ranks joined; rank 1 is missing");
  EXPECT_EQ(late, status);
}

TEST(Rendezvous, SaysWhyRankZeroWasNotReached) {
  const Folder folder;
  Rank rank(folder.socket(), 1);
  const absl::Status status = rank.Join(2, In(300)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(Message(status), HasSubstr(folder.socket()));
  EXPECT_THAT(Message(status), HasSubstr("No such file"));
}

TEST(Rendezvous, SaysThatANameCannotBeResolved) {
  Rank rank("no-such-host.invalid:29400", 1);
  const absl::Status status = rank.Join(2, In(500)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(Message(status), HasSubstr("no-such-host.invalid:29400"));
}

TEST(Rendezvous, WaitsForRankZeroToStart) {
  const Folder folder;
  Rank one(folder.socket(), 1);
  absl::Status joined = absl::UnknownError("not yet");
  std::thread early([&] { joined = one.Join(2).status(); });
  // The early rank has tried in vain at least once.
  Rank probe(folder.socket(), 1);
  EXPECT_TRUE(absl::IsDeadlineExceeded(probe.Join(2, In(100)).status()));
  auto server = RendezvousServer::Start(OptionsOf(folder.socket(), 2));
  ASSERT_TRUE(server.ok());
  Rank zero(folder.socket(), 0);
  EXPECT_TRUE(zero.Join(2).ok());
  early.join();
  EXPECT_TRUE(joined.ok()) << joined;
}

TEST(Rendezvous, RefusesStrangersZombiesAndDuplicates) {
  const Folder folder;
  ServerOptions options = OptionsOf(folder.socket(), 2);
  options.attempt = 1;
  auto server = RendezvousServer::Start(options);
  ASSERT_TRUE(server.ok());

  ClientOptions stranger;
  stranger.target = folder.socket();
  stranger.caller = CallerOf(1, 1);
  stranger.caller.set_job_uid("uid-b");
  auto client = RendezvousClient::Connect(stranger);
  ASSERT_TRUE(client.ok());
  absl::Status status = (*client)->Join(MemberOf(1), 2, Deadline()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("uid-a"));
  EXPECT_THAT(Message(status), HasSubstr("uid-b"));

  Rank zombie(folder.socket(), 1, 0);
  EXPECT_TRUE(absl::IsAborted(zombie.Join(2).status()));
  Rank wrong_size(folder.socket(), 1, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(wrong_size.Join(3).status()));
  Rank early(folder.socket(), 1, 2);  // its rank 0 never comes
  EXPECT_TRUE(absl::IsDeadlineExceeded(early.Join(2, In(200)).status()));

  Rank zero(folder.socket(), 0, 1);
  Rank one(folder.socket(), 1, 1);
  std::thread join([&] { EXPECT_TRUE(one.Join(2).ok()); });
  EXPECT_TRUE(zero.Join(2).ok());
  join.join();
  one.Beat();
  Rank second(folder.socket(), 1, 1);
  status = second.Join(2).status();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("observer 0, pod pod-1"));
  EXPECT_TRUE(absl::IsAlreadyExists(second->Set("k", "v", Deadline())));
}

TEST(Rendezvous, FreesThePlaceOfARankThatGivesUpJoining) {
  const Folder folder;
  auto server = RendezvousServer::Start(OptionsOf(folder.socket(), 2));
  ASSERT_TRUE(server.ok());
  Rank first(folder.socket(), 1);
  absl::Status given_up;
  std::thread join([&] { given_up = first.Join(2).status(); });
  ASSERT_TRUE(Eventually([&] { return (*server)->Progress().joined() == 1; }));
  first->Cancel("told to leave");
  join.join();
  EXPECT_TRUE(absl::IsCancelled(given_up));
  EXPECT_EQ(Message(given_up), "told to leave");
  ASSERT_TRUE(Eventually([&] { return (*server)->Progress().joined() == 0; }));
  Rank successor(folder.socket(), 1);
  Rank zero(folder.socket(), 0);
  std::thread again([&] { EXPECT_TRUE(successor.Join(2).ok()); });
  EXPECT_TRUE(zero.Join(2).ok());
  again.join();
}

TEST(Rendezvous, BroadcastsTheFirstFailureAndEndsEveryWait) {
  const Folder folder;
  World world = Meet(OptionsOf(folder.socket(), 4));
  absl::Status get;
  absl::Status barrier;
  std::thread getter([&] {
    get = (*world.ranks[1])->Get("never", absl::InfiniteFuture()).status();
  });
  std::thread waiter([&] {
    barrier = (*world.ranks[2])->Barrier("b", {}, absl::InfiniteFuture());
  });
  v1::Failure failure;
  failure.set_rank(3);
  failure.set_cause("the policy threw: bad\nthings");
  failure.set_exit_code(1);
  EXPECT_TRUE((*world.ranks[3])->ReportFailure(failure).ok());
  getter.join();
  waiter.join();
  const std::string text =
      "rank 3 (observer, pod pod-3) failed: the policy threw: bad things";
  for (const absl::Status& status :
       {get, barrier, (*world.ranks[0])->Set("k", "v", Deadline())}) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_EQ(Message(status), text);
  }
  for (auto& rank : world.ranks) {
    const v1::Event event = rank->Await(v1::Event::kFailure);
    EXPECT_EQ(event.failure().rank(), 3);
    EXPECT_EQ(event.failure().exit_code(), 1);
  }
  // Everything later is an echo.
  failure.set_rank(1);
  EXPECT_TRUE((*world.ranks[1])->ReportFailure(failure).ok());
  EXPECT_EQ((*world.ranks[1])->failure()->rank(), 3);
  EXPECT_EQ(world.server->Progress().failure().rank(), 3);
  EXPECT_EQ(world.ranks[2]->Count(v1::Event::kFailure), 1);
}

TEST(Rendezvous, PrefersTheLostRanksOwnReport) {
  const Folder folder;
  World world = Meet(OptionsOf(folder.socket(), 3));
  v1::Failure echo;
  echo.set_rank(2);
  echo.set_cause("connection reset by peer");
  std::thread reporter(
      [&] { EXPECT_TRUE((*world.ranks[1])->ReportFailure(echo).ok()); });
  v1::Failure own;
  own.set_rank(2);
  own.set_cause("division by zero");
  // Whichever comes first, the cause is rank 2's own, unless its report takes
  // longer than the hold.
  EXPECT_TRUE((*world.ranks[2])->ReportFailure(own).ok());
  reporter.join();
  EXPECT_EQ(world.ranks[0]->Await(v1::Event::kFailure).failure().rank(), 2);
  EXPECT_EQ((*world.ranks[1])->failure()->rank(), 2);
}

TEST(Rendezvous, TellsEveryoneThatARankWasLost) {
  const Folder folder;
  World world = Meet(OptionsOf(folder.socket(), 3));
  ASSERT_TRUE((*world.ranks[2])->Set("alive", "1", Deadline()).ok());
  world.ranks[2]->Close();  // without Finish: it should not have left
  const v1::Event event = world.ranks[1]->Await(v1::Event::kFailure);
  EXPECT_EQ(event.failure().rank(), 2);
  EXPECT_EQ(event.failure().role(), "observer");
  EXPECT_EQ(event.failure().pod(), "pod-2");
}

TEST(Rendezvous, LosesASilentRank) {
  const Folder folder;
  ServerOptions options = OptionsOf(folder.socket(), 2);
  options.heartbeat_timeout = absl::Milliseconds(500);
  auto server = RendezvousServer::Start(options);
  ASSERT_TRUE(server.ok());
  Rank zero(folder.socket(), 0);
  Rank one(folder.socket(), 1);
  std::thread join([&] { EXPECT_TRUE(one.Join(2).ok()); });
  EXPECT_TRUE(zero.Join(2).ok());
  join.join();
  zero.Beat();  // and rank 1 never does
  const v1::Event event = zero.Await(v1::Event::kFailure);
  EXPECT_EQ(event.failure().rank(), 1);
  EXPECT_THAT(event.failure().cause(), HasSubstr("no heartbeat for 500ms"));
  EXPECT_TRUE(absl::IsUnavailable(one->Set("k", "v", Deadline())));
}

TEST(Rendezvous, SpreadsFinishAndLetsRanksLeave) {
  const Folder folder;
  World world = Meet(OptionsOf(folder.socket(), 3));
  ASSERT_TRUE((*world.ranks[0])->Finish("solved").ok());
  for (auto& rank : world.ranks) {
    EXPECT_EQ(rank->Await(v1::Event::kFinish).finish().reason(), "solved");
  }
  world.ranks[2]->Close();
  world.ranks[1]->Close();
  world.server->Shutdown(Deadline());
  world.ranks[0]->Close();
  EXPECT_EQ(world.ranks[0]->Count(v1::Event::kFailure), 0);
  EXPECT_EQ(world.server->Progress().state(), v1::Progress::STATE_FINISHED);
}

TEST(Rendezvous, DeliversFinishEvenIfItShutsDownAtOnce) {
  const Folder folder;
  World world = Meet(OptionsOf(folder.socket(), 3));
  ASSERT_TRUE((*world.ranks[0])->Finish("solved").ok());
  world.server->Shutdown(Deadline());
  for (auto& rank : world.ranks) {
    EXPECT_TRUE(rank->Await(v1::Event::kFinish).has_finish());
    EXPECT_EQ(rank->Count(v1::Event::kFailure), 0);
  }
}

TEST(Rendezvous, SpreadsStop) {
  const Folder folder;
  World world = Meet(OptionsOf(folder.socket(), 2));
  ASSERT_TRUE(
      (*world.ranks[1])->Stop(true, "suspended", absl::Seconds(30)).ok());
  const v1::Event event = world.ranks[0]->Await(v1::Event::kStop);
  EXPECT_TRUE(event.stop().save());
  EXPECT_EQ(event.stop().reason(), "suspended");
  EXPECT_EQ(event.stop().grace_ms(), 30'000);
}

TEST(Rendezvous, NamesRankZeroWhenItIsLost) {
  const Folder folder;
  World world = Meet(OptionsOf(folder.socket(), 2));
  absl::Status get;
  std::thread getter([&] {
    get = (*world.ranks[1])->Get("never", absl::InfiniteFuture()).status();
  });
  world.server->Shutdown(Deadline());  // without Finish
  const v1::Event event = world.ranks[1]->Await(v1::Event::kFailure);
  EXPECT_EQ(event.failure().rank(), 0);
  EXPECT_EQ(event.failure().role(), "agent");
  EXPECT_EQ(event.failure().pod(), "pod-0");
  EXPECT_THAT(event.failure().cause(), HasSubstr(folder.socket()));
  getter.join();
  EXPECT_TRUE(absl::IsUnavailable(get)) << get;
}

TEST(Rendezvous, NamesWhoIsMissingInABarrier) {
  const Folder folder;
  World world = Meet(OptionsOf(folder.socket(), 3));
  absl::Status second;
  std::thread other(
      [&] { second = (*world.ranks[2])->Barrier("b", {}, In(400)); });
  const absl::Status status = (*world.ranks[0])->Barrier("b", {}, Deadline());
  other.join();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("1 (observer 0)"));
}

TEST(Rendezvous, OpensBarriersOfSomeRanksAgainAndAgain) {
  const Folder folder;
  World world = Meet(OptionsOf(folder.socket(), 3));
  std::vector<std::thread> threads;
  for (const size_t rank : {size_t{0}, size_t{2}}) {
    threads.emplace_back([&world, rank] {
      for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(
            (*world.ranks[rank])->Barrier("b", {0, 2}, Deadline()).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(absl::IsInvalidArgument(
      (*world.ranks[1])->Barrier("c", {0, 2}, Deadline())));
  EXPECT_TRUE(absl::IsInvalidArgument(
      (*world.ranks[1])->Barrier("d", {1, 7}, Deadline())));
}

TEST(Rendezvous, MergesReportsForTheController) {
  const Folder folder;
  auto server = RendezvousServer::Start(OptionsOf(folder.socket(), 2));
  ASSERT_TRUE(server.ok());
  Rank zero(folder.socket(), 0);
  Rank one(folder.socket(), 1);
  std::thread join([&] { EXPECT_TRUE(one.Join(2).ok()); });
  EXPECT_TRUE(zero.Join(2).ok());
  join.join();
  v1::Report report;
  report.set_step(7);
  report.set_reward(195.5);
  zero.Beat(report);
  report.set_step(5);
  one.Beat(report);
  EXPECT_TRUE(Eventually([&] {
    const auto progress = one->GetProgress(Deadline());
    return progress.ok() && progress->training().step() == 5 &&
           progress->training().reward() == 195.5 && progress->joined() == 2;
  }));
}

TEST(Rendezvous, StoresKeysForAll) {
  const Folder folder;
  World world = Meet(OptionsOf(folder.socket(), 2));
  RendezvousClient& zero = **world.ranks[0];
  RendezvousClient& one = **world.ranks[1];
  std::string got;
  std::thread getter([&] { got = one.Get("k", Deadline()).value_or("error"); });
  ASSERT_TRUE(zero.Set("k", std::string("\0\xff", 2), Deadline()).ok());
  getter.join();
  EXPECT_EQ(got, std::string("\0\xff", 2));
  EXPECT_TRUE(*one.Check({"k"}, Deadline()));
  EXPECT_FALSE(*one.Check({"k", "l"}, Deadline()));
  absl::Status waited;
  std::thread waiter([&] { waited = one.Wait({"l", "k", "m"}, Deadline()); });
  EXPECT_EQ(*zero.Add("m", 3, Deadline()), 3);
  EXPECT_EQ(*zero.CompareSet("l", "", "x", Deadline()), "x");
  waiter.join();
  EXPECT_TRUE(waited.ok()) << waited;
  EXPECT_TRUE(zero.Append("l", "y", Deadline()).ok());
  EXPECT_EQ(*one.Get("l", Deadline()), "xy");
  EXPECT_EQ(*one.CountKeys(Deadline()), 3);
  EXPECT_TRUE(*one.Delete("l", Deadline()));
  const absl::Status late = one.Get("l", In(100)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late));
  EXPECT_EQ(Message(late), "key 'l' was not set in time");
}

TEST(Rendezvous, CarriesTheLargestValueAndRefusesALarger) {
  const Folder folder;
  World world = Meet(OptionsOf(folder.socket(), 1));
  RendezvousClient& zero = **world.ranks[0];
  const std::string largest(size_t{8} << 20, 'v');
  ASSERT_TRUE(zero.Set("k", largest, Deadline()).ok());
  EXPECT_EQ(zero.Get("k", Deadline())->size(), largest.size());
  EXPECT_TRUE(
      absl::IsResourceExhausted(zero.Set("k", largest + "v", Deadline())));
}

TEST(Rendezvous, TakesManyRanksAtOnce) {
  const Folder folder;
  constexpr int kRanks = 64;
  World world = Meet(OptionsOf(folder.socket(), kRanks));
  std::vector<std::thread> threads;
  for (auto& rank : world.ranks) {
    threads.emplace_back([&rank] {
      EXPECT_TRUE((*rank)->Barrier("all", {}, Deadline()).ok());
      EXPECT_TRUE((*rank)->Add("sum", rank->rank(), Deadline()).ok());
      EXPECT_TRUE((*rank)->Barrier("all", {}, Deadline()).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*(*world.ranks[0])->Get("sum", Deadline()),
            std::to_string(kRanks * (kRanks - 1) / 2));
  ASSERT_TRUE((*world.ranks[0])->Finish("done").ok());
  for (auto& rank : world.ranks) {
    EXPECT_TRUE(rank->Await(v1::Event::kFinish).has_finish());
  }
}

TEST(Rendezvous, AnswersEveryWaitWhenItShutsDown) {
  const Folder folder;
  auto server = RendezvousServer::Start(OptionsOf(folder.socket(), 2));
  ASSERT_TRUE(server.ok());
  Rank one(folder.socket(), 1);
  absl::Status status;
  std::thread join([&] { status = one.Join(2, In(1000)).status(); });
  ASSERT_TRUE(Eventually([&] { return (*server)->Progress().joined() == 1; }));
  server->reset();
  join.join();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

}  // namespace
}  // namespace disttrain::testing
