// SPDX-License-Identifier: Apache-2.0
//
// What we rely on in absl::Mutex, above all where absl_mutex_tsan.cc takes its
// place.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

namespace disttrain {
namespace {

TEST(Mutex, KeepsOthersOut) {
  absl::Mutex mu;
  int count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        const absl::MutexLock lock(&mu);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 4000);
}

TEST(Mutex, WakesAllWhoseConditionCameTrue) {
  absl::Mutex mu;
  int turn = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&mu, &turn, t] {
      const auto mine = [&turn, t] { return turn == t; };
      mu.LockWhen(absl::Condition(&mine));
      ++turn;
      mu.Unlock();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const absl::MutexLock lock(&mu);
  EXPECT_EQ(turn, 8);
}

TEST(Mutex, AwaitGivesUpAtItsDeadline) {
  absl::Mutex mu;
  const absl::MutexLock lock(&mu);
  const bool never = false;
  const bool always = true;
  EXPECT_FALSE(
      mu.AwaitWithTimeout(absl::Condition(&never), absl::Milliseconds(20)));
  EXPECT_FALSE(
      mu.AwaitWithDeadline(absl::Condition(&never), absl::InfinitePast()));
  EXPECT_TRUE(
      mu.AwaitWithDeadline(absl::Condition(&always), absl::InfinitePast()));
}

TEST(Mutex, GivingUpTheLockByAwaitWakesOthersToo) {
  absl::Mutex mu;
  bool first = false;
  bool second = false;
  std::thread other([&] {
    const absl::MutexLock lock(&mu);
    mu.Await(absl::Condition(&first));
    second = true;
  });
  {
    const absl::MutexLock lock(&mu);
    first = true;
    mu.Await(absl::Condition(&second));
  }
  other.join();
}

TEST(CondVar, SignalsAndTimesOut) {
  absl::Mutex mu;
  absl::CondVar changed;
  bool ready = false;
  std::thread other([&] {
    const absl::MutexLock lock(&mu);
    ready = true;
    changed.SignalAll();
  });
  {
    const absl::MutexLock lock(&mu);
    while (!ready) changed.Wait(&mu);
    EXPECT_TRUE(changed.WaitWithTimeout(&mu, absl::Milliseconds(20)));
  }
  other.join();
}

TEST(Notification, CarriesWhatWasWrittenBefore) {
  absl::Notification done;
  int result = 0;
  std::thread other([&] {
    result = 7;
    done.Notify();
  });
  done.WaitForNotification();
  EXPECT_EQ(result, 7);
  other.join();
}

}  // namespace
}  // namespace disttrain
