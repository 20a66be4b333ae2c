// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/work_queue.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"

namespace disttrain {
namespace {

TEST(WorkQueue, AKeyIsInItOnce) {
  const FakeClock clock;
  WorkQueue queue(clock);
  queue.Add("a/x");
  queue.Add("a/x");
  EXPECT_EQ(queue.TryNext(), "a/x");
  queue.Done("a/x");
  EXPECT_EQ(queue.TryNext(), std::nullopt);
}

TEST(WorkQueue, AKeyThatIsWorkedOnComesAgainAfterwards) {
  const FakeClock clock;
  WorkQueue queue(clock);
  queue.Add("a/x");
  ASSERT_EQ(queue.TryNext(), "a/x");
  queue.Add("a/x");
  EXPECT_EQ(queue.TryNext(), std::nullopt) << "one thread a key";
  queue.Done("a/x");
  EXPECT_EQ(queue.TryNext(), "a/x");
}

TEST(WorkQueue, TheEarliestOfSeveralTimersCounts) {
  FakeClock clock;
  WorkQueue queue(clock);
  const absl::Time start = clock.Now();
  queue.AddAt("a/x", start + absl::Seconds(9));
  queue.AddAt("a/x", start + absl::Seconds(5));
  queue.AddAt("a/x", start + absl::Seconds(7));
  EXPECT_EQ(queue.NextDue(), start + absl::Seconds(5));
  clock.Advance(absl::Seconds(4));
  EXPECT_EQ(queue.TryNext(), std::nullopt);
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(queue.TryNext(), "a/x");
  EXPECT_EQ(queue.NextDue(), absl::InfiniteFuture());
}

TEST(WorkQueue, FailuresWaitTwiceAsLongEachTime) {
  FakeClock clock;
  WorkQueue queue(clock);
  for (const int64_t ms : {5, 10, 20, 40}) {
    queue.AddBackingOff("a/x");
    EXPECT_EQ(queue.NextDue() - clock.Now(), absl::Milliseconds(ms));
    queue.Forget("a/y");
    clock.Set(queue.NextDue());
    ASSERT_EQ(queue.TryNext(), "a/x");
    queue.Done("a/x");
  }
  for (int i = 0; i < 40; ++i) {
    queue.AddBackingOff("a/x");
    clock.Set(queue.NextDue());
    ASSERT_EQ(queue.TryNext(), "a/x");
    queue.Done("a/x");
  }
  queue.AddBackingOff("a/x");
  EXPECT_EQ(queue.NextDue() - clock.Now(), absl::Seconds(1000));
  queue.Forget("a/x");
  queue.ResetBackoff("a/x");
  queue.AddBackingOff("a/x");
  EXPECT_EQ(queue.NextDue() - clock.Now(), absl::Milliseconds(5));
}

TEST(WorkQueue, NamespacesTakeTurns) {
  const FakeClock clock;
  WorkQueue queue(clock);
  for (int i = 0; i < 1000; ++i) queue.Add("flood/" + std::to_string(i));
  queue.Add("small/one");
  int before = 0;
  while (queue.TryNext().value() != "small/one") ++before;
  EXPECT_LE(before, 1);
}

TEST(WorkQueue, StopWakesEveryWaiter) {
  const SystemClock clock;
  WorkQueue queue(clock);
  std::vector<std::thread> waiters;
  std::atomic<int> ended = 0;
  for (int i = 0; i < 4; ++i) {
    waiters.emplace_back([&] {
      while (queue.Next()) {
      }
      ++ended;
    });
  }
  queue.Stop();
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(ended, 4);
}

TEST(WorkQueue, NoKeyIsLostOrRunTwiceAtATimeUnderThreads) {
  const SystemClock clock;
  WorkQueue queue(clock);
  std::atomic<int> running[8] = {};
  std::atomic<int> seen[8] = {};
  std::atomic<bool> overlap = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (const auto key = queue.Next()) {
        const auto at = static_cast<size_t>(key->back() - '0');
        if (++running[at] > 1) overlap = true;
        ++seen[at];
        --running[at];
        queue.Done(*key);
      }
    });
  }
  for (int round = 0; round < 2000; ++round) {
    queue.Add("n/" + std::to_string(round % 8));
  }
  while (queue.LongestWait() > absl::ZeroDuration()) std::this_thread::yield();
  queue.Stop();
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(overlap);
  for (const auto& count : seen) EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace disttrain
