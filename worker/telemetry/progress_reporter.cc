// SPDX-License-Identifier: Apache-2.0
#include "worker/telemetry/progress_reporter.h"

#include <utility>

namespace disttrain {

ProgressReporter::ProgressReporter(absl::Duration interval,
                                   std::function<absl::Time()> now)
    : interval_(interval), now_(std::move(now)), interval_start_(now_()) {}

void ProgressReporter::Update(const std::function<void(v1::Report&)>& change) {
  const absl::MutexLock lock(&mu_);
  change(report_);
}

void ProgressReporter::Merge(const v1::Report& figures) {
  const absl::MutexLock lock(&mu_);
  report_.MergeFrom(figures);
}

void ProgressReporter::AddSamples(int64_t count) {
  const absl::MutexLock lock(&mu_);
  counts_samples_ = true;
  samples_ += count;
}

v1::Report ProgressReporter::Snapshot() {
  const absl::Time now = now_();
  const absl::MutexLock lock(&mu_);
  // Timers fire a little early and late; nine tenths are an interval.
  if (now - interval_start_ >= interval_ * 0.9) CloseInterval(now);
  v1::Report report = report_;
  report.set_time_ms(absl::ToUnixMillis(now));
  return report;
}

void ProgressReporter::CloseInterval(absl::Time now) {
  const double seconds = absl::ToDoubleSeconds(now - interval_start_);
  if (counts_samples_ && seconds > 0) {
    report_.set_samples_per_second(static_cast<double>(samples_) / seconds);
  }
  samples_ = 0;
  interval_start_ = now;
}

}  // namespace disttrain
