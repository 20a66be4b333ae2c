// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "controller/kube/clock.h"

namespace disttrain {

// Keys ("namespace/name") of objects to look at.
//
// A key is in it once however often it is added, and is handed to one thread at
// a time: added again meanwhile, it comes out again after Done. Namespaces take
// turns, so that one with a thousand jobs does not hold up another's one.
//
// Threads: thread-safe. Blocking: only Next.
class WorkQueue {
 public:
  // Borrows `clock`.
  explicit WorkQueue(const Clock& clock) : clock_(clock) {}

  void Add(const std::string& key);
  // At `time`; of several times the earliest counts.
  void AddAt(const std::string& key, absl::Time time);
  // After a failure: waits 5 ms, doubled each time in a row up to 1000 s.
  void AddBackingOff(const std::string& key);
  // After a success: the next failure waits 5 ms again.
  void ResetBackoff(const std::string& key);

  // Waits for a key. nullopt: Stop was called.
  std::optional<std::string> Next();
  // A key that is ready now, or nullopt.
  std::optional<std::string> TryNext();
  // The thread that got `key` is done with it.
  void Done(const std::string& key);
  // Forgets timers and failures of an object that is gone.
  void Forget(const std::string& key);

  // Next returns nullopt from now on.
  void Stop();

  // When the next timer is due; InfiniteFuture: there is none.
  absl::Time NextDue() const;
  // How long the key that has waited (or been worked on) longest has done so.
  absl::Duration LongestWait() const;

 private:
  std::optional<std::string> TakeReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MoveDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddLocked(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddAtLocked(const std::string& key, absl::Time time)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock& clock_;
  mutable absl::Mutex mu_;
  absl::CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  // Ready keys by namespace, and the namespace that was served last.
  std::map<std::string, std::deque<std::string>> ready_ ABSL_GUARDED_BY(mu_);
  std::string last_served_ ABSL_GUARDED_BY(mu_);
  // Since when: ready keys, and keys that a thread works on.
  std::map<std::string, absl::Time> waiting_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, absl::Time> running_ ABSL_GUARDED_BY(mu_);
  // Added while a thread works on them.
  std::set<std::string> again_ ABSL_GUARDED_BY(mu_);
  std::set<std::pair<absl::Time, std::string>> timers_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, absl::Time> due_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, int> failures_ ABSL_GUARDED_BY(mu_);
};

}  // namespace disttrain
