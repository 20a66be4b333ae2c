// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "controller/kube/clock.h"

namespace disttrain {

// A clock that a test moves.
//
// Threads: thread-safe.
class FakeClock : public Clock {
 public:
  // 2026-01-05T10:00:00Z, a Monday.
  static absl::Time Start() { return absl::FromUnixSeconds(1767607200); }

  absl::Time Now() const override {
    const absl::MutexLock lock(&mu_);
    return now_;
  }

  // Looks again every few milliseconds of real time, since it cannot know who
  // waits when it is moved.
  void Wait(absl::CondVar& changed, absl::Mutex& mu,
            absl::Time deadline) const override {
    if (Now() >= deadline) return;
    changed.WaitWithTimeout(&mu, absl::Milliseconds(2));
  }

  void Advance(absl::Duration by) {
    const absl::MutexLock lock(&mu_);
    now_ += by;
  }

  void Set(absl::Time now) {
    const absl::MutexLock lock(&mu_);
    now_ = std::max(now_, now);
  }

 private:
  mutable absl::Mutex mu_;
  absl::Time now_ ABSL_GUARDED_BY(mu_) = Start();
};

}  // namespace disttrain
