// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "disttrain/v1/progress.pb.h"

namespace disttrain {

// This rank's latest figures: the program updates them, the heartbeat takes
// them to rank 0.
//
// Threads: thread-safe.
class ProgressReporter {
 public:
  // `interval` is the reporting interval: samples_per_second is the mean over
  // the last one (at least 9/10 of it) that ended. `now` is for tests.
  explicit ProgressReporter(absl::Duration interval,
                            std::function<absl::Time()> now = absl::Now);

  // Changes the figures. `change` runs under the lock: it sets fields, no more.
  void Update(const std::function<void(v1::Report&)>& change);

  // Sets those figures that `figures` has; the others stay.
  void Merge(const v1::Report& figures);

  // Counts samples (environment steps) for samples_per_second.
  void AddSamples(int64_t count);

  // The figures, with time_ms set. Any number of callers, at any time.
  v1::Report Snapshot();

 private:
  void CloseInterval(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const absl::Duration interval_;
  const std::function<absl::Time()> now_;
  absl::Mutex mu_;
  v1::Report report_ ABSL_GUARDED_BY(mu_);
  bool counts_samples_ ABSL_GUARDED_BY(mu_) = false;
  int64_t samples_ ABSL_GUARDED_BY(mu_) = 0;  // since interval_start_
  absl::Time interval_start_ ABSL_GUARDED_BY(mu_);
};

}  // namespace disttrain
