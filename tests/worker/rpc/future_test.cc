// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/notification.h"
#include "tests/worker/rpc/job.h"
#include "tests/worker/rpc/test_classes.h"

namespace disttrain::rpc {
namespace {

using testing::Counter;
using testing::Everything;
using testing::Gate;
using ::testing::HasSubstr;

TEST(Future, GetsWhatThePromiseSets) {
  const Promise<int> promise;
  Future<int> future = promise.GetFuture();
  EXPECT_FALSE(future.Ready());
  EXPECT_FALSE(future.Wait(absl::Now()));
  std::thread setter([&] { EXPECT_TRUE(promise.Set(3)); });
  EXPECT_EQ(future.Get(), 3);
  setter.join();
  EXPECT_FALSE(promise.Set(4));
  EXPECT_EQ(future.Get(), 3);
}

TEST(Future, ThenChainsValuesErrorsAndFutures) {
  const Promise<int> promise;
  const Promise<std::string> inner;
  auto text = promise.GetFuture()
                  .Then([](int value) { return value + 1; })
                  .Then([&](int value) {
                    EXPECT_EQ(value, 3);
                    return inner.GetFuture();
                  });
  promise.Set(2);
  EXPECT_FALSE(text.Ready());
  inner.Set("done");
  EXPECT_EQ(text.Get(), "done");

  auto failed =
      text.Then([](const std::string&) -> int { throw std::range_error("x"); });
  auto skipped = failed.Then([](int) { ADD_FAILURE(); });
  EXPECT_THROW(skipped.Get(), std::range_error);
  auto handled = failed.Then(
      [](Future<int> future) { return future.state()->error() != nullptr; });
  EXPECT_TRUE(handled.Get());
}

TEST(Future, WhenAllKeepsOrderAndFailsAtTheFirstError) {
  const std::vector<Promise<int>> promises(3);
  std::vector<Future<int>> futures;
  for (const auto& promise : promises) futures.push_back(promise.GetFuture());
  auto all = WhenAll(futures);
  for (int i = 2; i >= 0; --i) promises[static_cast<size_t>(i)].Set(i);
  EXPECT_EQ(all.Get(), (std::vector<int>{0, 1, 2}));

  const std::vector<Promise<void>> more(2);
  auto none = WhenAll(
      std::vector<Future<void>>{more[0].GetFuture(), more[1].GetFuture()});
  more[1].SetError(std::runtime_error("one failed"));
  EXPECT_THROW(none.Get(), std::runtime_error);
  WhenAll(std::vector<Future<void>>()).Get();
}

TEST(Future, DroppedPromiseAndCancelAreErrors) {
  Future<int> future;
  bool stopped = false;
  {
    const Promise<int> promise;
    future = promise.GetFuture();
  }
  EXPECT_THAT(MessageOfThrow<Cancelled>([&] { future.Get(); }),
              HasSubstr("promise was dropped"));
  const Promise<int> promise;
  promise.OnCancel([&] { stopped = true; });
  const auto chained =
      promise.GetFuture().Then([](int value) { return value; });
  chained.Cancel("no longer needed");
  EXPECT_TRUE(stopped);
  EXPECT_THAT(MessageOfThrow<Cancelled>([&] { promise.GetFuture().Get(); }),
              HasSubstr("cancelled"));
  EXPECT_THROW(chained.Get(), Cancelled);
}

TEST(Future, AContinuationOfACallMayBlockAndCall) {
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto counter = Remote<Counter>(1, 1);
  auto sum = counter.Async(&Counter::Add, 1).Then([counter](int64_t value) {
    return value + counter.Sync(&Counter::Add, 10);
  });
  // Waiting lends this thread, which must not run the continuation itself.
  EXPECT_EQ(sum.Get(), 2 + 12);
}

TEST(Future, OfAnUnresolvedPromiseEndsWithTheCallThatWaits) {
  class Waiter {};
  Job job(2, Everything());
  const Agent::Scope scope(job.agent(0));
  const auto gate = Remote<Gate>(1, 1);
  const auto waiting =
      gate.With({.timeout = absl::Milliseconds(20)}).Async(&Gate::PassLater);
  EXPECT_THROW(waiting.Get(), DeadlineExceeded);
  EXPECT_TRUE(job.Eventually(
      1, [](const AgentStatistics& now) { return now.incoming_calls == 0; }));
}

}  // namespace
}  // namespace disttrain::rpc
