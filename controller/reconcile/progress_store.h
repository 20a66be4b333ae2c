// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "controller/reconcile/plan.h"

namespace disttrain {

// The last report of every job, by the job's uid.
//
// Threads: thread-safe.
class ProgressStore {
 public:
  void Put(const std::string& uid, ProgressReport report) {
    const absl::MutexLock lock(&mu_);
    reports_[uid] = std::move(report);
  }

  std::optional<ProgressReport> Get(const std::string& uid) const {
    const absl::MutexLock lock(&mu_);
    const auto found = reports_.find(uid);
    if (found == reports_.end()) return std::nullopt;
    return found->second;
  }

  void Forget(const std::string& uid) {
    const absl::MutexLock lock(&mu_);
    reports_.erase(uid);
  }

 private:
  mutable absl::Mutex mu_;
  std::map<std::string, ProgressReport> reports_ ABSL_GUARDED_BY(mu_);
};

}  // namespace disttrain
