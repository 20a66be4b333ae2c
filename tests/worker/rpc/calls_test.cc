// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ATen/ops/arange.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/ones.h"
#include "nlohmann/json.hpp"
#include "tests/worker/rpc/job.h"
#include "tests/worker/rpc/test_classes.h"

namespace disttrain::rpc {
namespace {

using ::testing::AllOf;
using testing::Counter;
using testing::Echo;
using testing::Everything;
using testing::Gate;
using ::testing::HasSubstr;
using testing::Relay;
using ::testing::StartsWith;
using testing::Thrower;

TEST(Call, CreatesAnObjectElsewhereAndCallsIt) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto counter = Remote<Counter>(1, 40);
  EXPECT_EQ(counter.owner(), PeerAt(1));
  EXPECT_FALSE(counter.is_local());
  EXPECT_EQ(counter.Sync(&Counter::Add, 2), 42);
  EXPECT_EQ(counter.Async(&Counter::Add, 1).Get(), 43);
  counter.Sync(&Counter::Reset);
  EXPECT_EQ(counter.Sync(&Counter::Get), 0);
}

TEST(Call, ConstructorsTakeWhateverTravels) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto mixed =
      Remote<testing::Mixed>(1, at::ones({3}, at::kFloat), "four", 5,
                             std::vector<int64_t>{6, 6}, Local<Counter>(100));
  EXPECT_EQ(mixed.Sync(&testing::Mixed::Sum), 3 + 4 + 5 + 2 + 100);
}

TEST(Call, IntegersOutOfRangeAreRefusedHere) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto echo = Remote<Echo>(1);
  EXPECT_THAT(
      MessageOfThrow<InvalidArgument>([&] { echo.Sync(&Echo::Byte, 256); }),
      HasSubstr("expected uint8, got 256"));
}

TEST(Call, KeepsItsTargetAliveUntilTheReply) {
  Job job(3, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto counter = Remote<Counter>(2, 1);
  // The only handle on the relay is gone before the relay may run.
  auto sum = Remote<Relay>(1).Async(&Relay::AddThrough, counter, 1);
  EXPECT_EQ(sum.Get(), 2);
}

TEST(Call, CarriesEveryKindOfValue) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto echo = Remote<Echo>(1);
  EXPECT_EQ(echo.Sync(&Echo::Byte, 255), 255);
  EXPECT_EQ(echo.Sync(&Echo::Long, INT64_MIN), INT64_MIN);
  EXPECT_EQ(echo.Sync(&Echo::Unsigned, UINT64_MAX), UINT64_MAX);
  EXPECT_TRUE(echo.Sync(&Echo::Flag, true));
  EXPECT_EQ(echo.Sync(&Echo::Single, 0.1f), 0.1f);
  EXPECT_EQ(echo.Sync(&Echo::Text, std::string("a\0b", 3)),
            std::string("a\0b", 3));
  EXPECT_EQ(echo.Sync(&Echo::Ints, std::vector<int32_t>{-1, 2}),
            (std::vector<int32_t>{-1, 2}));
  EXPECT_EQ(echo.Sync(&Echo::Doubles, std::vector<double>{}),
            std::vector<double>());
  const std::vector<std::vector<std::string>> nested = {{"a"}, {}, {"b", "c"}};
  EXPECT_EQ(echo.Sync(&Echo::Nested, nested), nested);
  EXPECT_EQ(echo.Sync(&Echo::Maybe, std::nullopt), std::nullopt);
  EXPECT_EQ(echo.Sync(&Echo::Maybe, "x"), "x");
  const std::tuple<int64_t, std::string, bool> triple{1, "two", true};
  EXPECT_EQ(echo.Sync(&Echo::Triple, triple), triple);
  const std::pair<double, std::vector<bool>> pair{0.5, {true, false}};
  EXPECT_EQ(echo.Sync(&Echo::Pair, pair), pair);
  echo.Sync(&Echo::Nothing);
}

TEST(Call, CarriesTensorsOfAnyShapeContiguously) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto echo = Remote<Echo>(1);
  const at::Tensor transposed = at::arange(6, at::kFloat).view({2, 3}).t();
  const at::Tensor back = echo.Sync(&Echo::Tensor, transposed);
  EXPECT_TRUE(back.is_contiguous());
  EXPECT_TRUE(at::equal(back, transposed));
  const at::Tensor scalar = at::ones({}, at::kDouble);
  EXPECT_TRUE(at::equal(echo.Sync(&Echo::Tensor, scalar), scalar));
  EXPECT_EQ(echo.Sync(&Echo::Tensor, at::empty({0, 3}, at::kLong)).sizes(),
            (std::vector<int64_t>{0, 3}));
  EXPECT_FALSE(echo.Sync(&Echo::Tensor, at::Tensor()).defined());
  const auto several = echo.Sync(
      &Echo::Tensors,
      std::vector<at::Tensor>{scalar, at::Tensor(), at::ones({2}, at::kBool)});
  ASSERT_EQ(several.size(), 3U);
  EXPECT_FALSE(several[1].defined());
  EXPECT_TRUE(at::equal(several[2], at::ones({2}, at::kBool)));
}

TEST(Call, ToOneselfWorksInBothWays) {
  Job job(1, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto counter = Remote<Counter>(0, 1);
  EXPECT_TRUE(counter.is_local());
  EXPECT_EQ(counter->Get(), 1);
  EXPECT_EQ(counter.Sync(&Counter::Add, 1), 2);
  EXPECT_EQ(counter.Async(&Counter::Add, 1).Get(), 3);
  const auto relay = Local<Relay>();
  EXPECT_EQ(relay.Sync(&Relay::AddThrough, counter, 4), 7);
  EXPECT_EQ(relay.Async(&Relay::AddThrough, counter, 1).Get(), 8);
}

TEST(Call, ExceptionsComeOutWithPeerMethodAndMessage) {
  Job job(3, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto thrower = Remote<Thrower>(2);
  try {
    thrower.Sync(&Thrower::Runtime, "no more episodes");
    FAIL() << "nothing was thrown";
  } catch (const RemoteException& error) {
    EXPECT_EQ(error.peer(), PeerAt(2));
    EXPECT_EQ(error.detail(), "no more episodes");
    EXPECT_THAT(error.what(),
                AllOf(StartsWith("observer 1 (rank 2, pod job-2): "
                                 "disttrain::rpc::testing::Thrower.Runtime: "
                                 "no more episodes (after 0."),
                      ::testing::EndsWith(" s)")));
  }
  EXPECT_THAT(
      MessageOfThrow<RemoteException>([&] { thrower.Sync(&Thrower::Torch); }),
      AllOf(HasSubstr("shapes do not match"),
            ::testing::Not(HasSubstr("frame #"))));
  EXPECT_THAT(
      MessageOfThrow<RemoteException>([&] { thrower.Sync(&Thrower::Unknown); }),
      HasSubstr("unknown exception"));
  EXPECT_THAT(MessageOfThrow<RemoteException>(
                  [] { Remote<Thrower>(2, "cannot be made"); }),
              HasSubstr("Thrower: cannot be made"));
}

TEST(Call, ErrorsOfNestedCallsNameTheWholeWay) {
  Job job(3, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto thrower = Remote<Thrower>(2);
  const auto relay = Remote<Relay>(1);
  EXPECT_THAT(MessageOfThrow<RemoteException>(
                  [&] { relay.Sync(&Relay::ThrowThrough, thrower); }),
              AllOf(StartsWith("observer 0 (rank 1"),
                    HasSubstr("observer 1 (rank 2"), HasSubstr("deep inside")));
}

TEST(Call, UnknownClassesAndMethodsAreNamedAtOnce) {
  Job job(2, Remotes<Counter>());
  const Agent::Scope scope(job.agent(0));
  EXPECT_THAT(MessageOfThrow<UnknownMethod>([] { Remote<Echo>(1); }),
              HasSubstr("no class disttrain::rpc::testing::Echo is registered; "
                        "registered are: disttrain::rpc::testing::Counter"));
  const auto echo = Local<Echo>();
  EXPECT_THAT(
      MessageOfThrow<UnknownMethod>([&] { echo.Sync(&Echo::Unlisted); }),
      AllOf(HasSubstr("not in DISTTRAIN_REMOTE"),
            HasSubstr("Echo has Tensor")));
}

TEST(Call, WrongConstructorArgumentsAreRefused) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  // The callee's constructor takes an int64_t: a string does not fit. The
  // caller's own check is bypassed by a class that has both.
  EXPECT_THAT(MessageOfThrow<InvalidArgument>([&] {
                internal::Request request(internal::CurrentCore(), PeerAt(1),
                                          RemoteTraits<Counter>::kName);
                request.Add<std::string>("x");
                auto state = std::make_shared<internal::State<RRef<Counter>>>();
                request.Start(state, {}, true);
                Future<RRef<Counter>>(state).Get();
              }),
              HasSubstr("argument 1: expected int64, got string"));
  EXPECT_THAT(MessageOfThrow<InvalidArgument>([&] {
                internal::Request request(internal::CurrentCore(), PeerAt(1),
                                          RemoteTraits<Counter>::kName);
                auto state = std::make_shared<internal::State<RRef<Counter>>>();
                request.Start(state, {}, true);
                Future<RRef<Counter>>(state).Get();
              }),
              HasSubstr("no constructor"));
}

// The gate's deferred method: one that looked at the deadline itself might
// answer in the same moment.
TEST(Call, DeadlineNamesTheCallAndWhatIsInFlight) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto gate = Remote<Gate>(1, 1);
  EXPECT_THAT(
      MessageOfThrow<DeadlineExceeded>([&] {
        gate.With({.timeout = absl::Milliseconds(30)}).Sync(&Gate::PassLater);
      }),
      AllOf(StartsWith("observer 0 (rank 1, pod job-1): "
                       "disttrain::rpc::testing::Gate.PassLater: no "
                       "reply within 0.03 s; calls in flight: "),
            HasSubstr("Gate.PassLater to rank 1 for 0.")));
  // The callee was told.
  EXPECT_TRUE(job.Eventually(
      1, [](const AgentStatistics& now) { return now.incoming_calls == 0; }));
}

TEST(Call, AMethodSeesItsDeadline) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto gate = Remote<Gate>(1, 1);
  const auto ends =
      gate.With({.timeout = absl::Milliseconds(30)}).Async(&Gate::Pass);
  while (gate.Sync(&Gate::Cancelled) == 0) {
  }
  EXPECT_TRUE(ends.Wait(Soon()));
}

TEST(Call, DeadlineOfAnUnwatchedFutureFires) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto gate = Remote<Gate>(1, 1);
  absl::Notification done;
  const auto later = gate.With({.timeout = absl::Milliseconds(20)})
                         .Async(&Gate::PassLater)
                         .Then([&](Future<int64_t> future) {
                           EXPECT_THROW(future.Get(), DeadlineExceeded);
                           done.Notify();
                         });
  done.WaitForNotification();
  later.Get();
}

TEST(Call, NestedCallsInheritTheSmallerDeadline) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto relay = Remote<Relay>(1);
  const int64_t left =
      relay.With({.timeout = absl::Seconds(9)}).Sync(&Relay::TimeLeft);
  EXPECT_GT(left, 0);
  EXPECT_LE(left, 9'000'000);
  // The relay asks for no deadline of its own, and gets its caller's.
  const auto gate = Local<Gate>(1);
  EXPECT_THROW(relay.With({.timeout = absl::Milliseconds(50)})
                   .Sync(&Relay::PassThroughLater, gate),
               DeadlineExceeded);
  for (const int rank : {0, 1}) {
    EXPECT_TRUE(job.Eventually(rank, [](const AgentStatistics& now) {
      return now.incoming_calls == 0 && now.outgoing_calls == 0;
    }));
  }
}

TEST(Call, CancelReachesTheCalleeAndItsNestedCalls) {
  Job job(3, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto gate = Remote<Gate>(2, 1);
  const auto relay = Remote<Relay>(1);
  const auto future = relay.Async(&Relay::PassThrough, gate);
  while (gate.Sync(&Gate::Waiting) == 0) {
  }
  future.Cancel();
  EXPECT_THROW(future.Get(), Cancelled);
  while (gate.Sync(&Gate::Cancelled) == 0) {
  }
  for (const int rank : {0, 1, 2}) {
    EXPECT_TRUE(job.Eventually(rank, [](const AgentStatistics& now) {
      return now.incoming_calls == 0 && now.outgoing_calls == 0;
    }));
  }
}

TEST(Call, AMethodThatReturnsAFutureHoldsNoThread) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto gate = Remote<Gate>(1, 5);
  std::vector<Future<int64_t>> waiting;
  for (int i = 0; i < 200; ++i) waiting.push_back(gate.Async(&Gate::PassLater));
  int64_t opened = 0;
  while (opened < 200) opened += gate.Sync(&Gate::OpenLater);
  const std::vector<int64_t> all = WhenAll(waiting).Get();
  EXPECT_EQ(all, std::vector<int64_t>(200, 5));
  EXPECT_LT(job.agent(1).statistics().call_threads, 100);
}

TEST(Call, AnObjectServesTheCallThatReleasesAWaitingOne) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto gate = Remote<Gate>(1, 5);
  std::vector<Future<int64_t>> waiting;
  for (int i = 0; i < 150; ++i) waiting.push_back(gate.Async(&Gate::Pass));
  while (gate.Sync(&Gate::Waiting) < 150) {
  }
  gate.Sync(&Gate::Open);
  EXPECT_EQ(WhenAll(waiting).Get(), std::vector<int64_t>(150, 5));
}

TEST(Call, KnowsItsCaller) {
  Job job(3, Everything());
  const Agent::Scope scope(job.agent(2));
  EXPECT_EQ(Remote<Relay>(1).Sync(&Relay::CallerRank), 2);
  EXPECT_FALSE(InCall());
  EXPECT_THROW(CurrentCall(), std::logic_error);
}

TEST(Call, AboveTheLimitOfRunningCallsItIsRefused) {
  Job job(2, Everything(),
          [](AgentOptions& options) { options.max_running_calls = 2; });
  const Agent::Scope scope(job.agent(0));
  const auto gate = Remote<Gate>(1, 5);
  const auto first = gate.Async(&Gate::PassLater);
  const auto second = gate.Async(&Gate::PassLater);
  EXPECT_THAT(MessageOfThrow<Overloaded>([&] { gate.Sync(&Gate::Waiting); }),
              HasSubstr("2 calls are running here already, at most 2 may"));
  first.Cancel();
  second.Cancel();
  EXPECT_TRUE(job.Eventually(
      1, [](const AgentStatistics& now) { return now.incoming_calls == 0; }));
  EXPECT_EQ(gate.Sync(&Gate::Waiting), 0);
}

TEST(Call, AResultOverTheLimitIsAnErrorNotATimeout) {
  transport::Limits limits;
  limits.message_bytes = 1000;
  Job job(2, Everything(), nullptr, limits);
  const Agent::Scope scope(job.agent(0));
  const auto echo = Remote<Echo>(1);
  EXPECT_THAT(MessageOfThrow<InvalidArgument>([&] {
                echo.Sync(&Echo::Tensor, at::ones({1000}, at::kFloat));
              }),
              HasSubstr("over the limit of 1000"));
}

TEST(Call, DebugCallsListsWhatIsInFlight) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto gate = Remote<Gate>(1, 5);
  const auto waiting = gate.Async(&Gate::PassLater);
  while (nlohmann::json::parse(job.agent(1).DebugCalls())["incoming"].empty()) {
  }
  const auto caller = nlohmann::json::parse(job.agent(0).DebugCalls());
  ASSERT_EQ(caller["outgoing"].size(), 1U);
  EXPECT_EQ(caller["outgoing"][0]["method"],
            "disttrain::rpc::testing::Gate.PassLater");
  EXPECT_EQ(caller["outgoing"][0]["peer"]["rank"], 1);
  EXPECT_EQ(caller["outgoing"][0]["peer"]["pod"], "job-1");
  EXPECT_GE(caller["outgoing"][0]["seconds"].get<double>(), 0);
  gate.Sync(&Gate::OpenLater);
  EXPECT_EQ(waiting.Get(), 5);
}

}  // namespace
}  // namespace disttrain::rpc
