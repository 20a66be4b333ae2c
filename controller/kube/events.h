// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "controller/kube/clock.h"
#include "controller/kube/kube_api.h"

namespace disttrain {

struct EventText {
  bool warning = false;
  std::string reason;   // "Restarting": one word in camel case
  std::string message;  // one line
};

// Writes Event objects, which `kubectl describe` shows. The same event about
// the same object becomes one Event with a count: it is written again at most
// every 10 minutes.
//
// Threads: thread-safe. Blocking: as KubeApi::Apply.
class EventRecorder {
 public:
  // Borrows both.
  EventRecorder(KubeApi& api, const Clock& clock) : api_(api), clock_(clock) {}

  // `object`: what the event is about, with metadata, apiVersion and kind.
  absl::Status Record(const Json& object, const EventText& text);

 private:
  struct Series {
    int64_t count = 0;
    absl::Time first;
    absl::Time written = absl::InfinitePast();
  };

  KubeApi& api_;
  const Clock& clock_;
  absl::Mutex mu_;
  // By the Event's key; bounded.
  std::map<std::string, Series> series_ ABSL_GUARDED_BY(mu_);
};

}  // namespace disttrain
