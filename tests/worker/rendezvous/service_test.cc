// SPDX-License-Identifier: Apache-2.0
//
// What ranks that have met do: server and clients in one process, over real
// sockets.
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/runtime/status.h"
#include "tests/worker/rendezvous/harness.h"

namespace disttrain::testing {
namespace {

using ::testing::HasSubstr;

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
