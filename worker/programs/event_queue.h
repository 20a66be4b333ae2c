// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "worker/programs/lifecycle.h"

namespace disttrain {

// Brings what other threads see to the one thread that decides.
//
// Threads: thread-safe; Push never blocks.
class EventQueue {
 public:
  void Push(WorkerEvent event) {
    absl::MutexLock lock(&mu_);
    events_.push_back(std::move(event));
  }

  // The oldest event; none at `deadline`.
  // Blocking: until there is one, or until `deadline`.
  std::optional<WorkerEvent> Pop(absl::Time deadline) {
    const auto filled = [this] {
      mu_.AssertReaderHeld();
      return !events_.empty();
    };
    absl::MutexLock lock(&mu_);
    if (!mu_.AwaitWithDeadline(absl::Condition(&filled), deadline)) {
      return std::nullopt;
    }
    WorkerEvent event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

 private:
  absl::Mutex mu_;
  std::deque<WorkerEvent> events_ ABSL_GUARDED_BY(mu_);
};

}  // namespace disttrain
