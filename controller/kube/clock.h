// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace disttrain {

// Where the controller gets its time from, so that tests can move it.
//
// Threads: thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  virtual absl::Time Now() const = 0;

  // Waits on `changed` (with `mu` held, as CondVar::WaitWithTimeout) until it
  // is signalled or this clock has reached `deadline`. May return early: the
  // caller checks its condition and its deadline again.
  virtual void Wait(absl::CondVar& changed, absl::Mutex& mu,
                    absl::Time deadline) const = 0;
};

// The machine's clock.
class SystemClock : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }

  void Wait(absl::CondVar& changed, absl::Mutex& mu,
            absl::Time deadline) const override {
    changed.WaitWithTimeout(
        &mu, std::max(deadline - absl::Now(), absl::ZeroDuration()));
  }
};

}  // namespace disttrain
