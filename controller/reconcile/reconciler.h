// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "controller/kube/clock.h"
#include "controller/kube/events.h"
#include "controller/kube/informer.h"
#include "controller/kube/kube_api.h"
#include "controller/reconcile/plan.h"
#include "controller/reconcile/pod_spec.h"
#include "controller/reconcile/progress_source.h"
#include "controller/reconcile/progress_store.h"

namespace disttrain {

// The caches a reconcile reads.
struct Caches {
  Informer& jobs;
  Informer& pods;
  Informer& services;
};

struct ReconcilerOptions {
  PodContext pods;
  absl::Duration node_lost_grace = absl::Seconds(60);
};

struct SyncResult {
  // Not OK: look again soon, with growing waits.
  absl::Status status;
  // OK: look again then even if nothing changes.
  absl::Time requeue_at = absl::InfiniteFuture();
  // Rank 0 of the job can be asked for its progress, not before `poll_at`.
  bool poll = false;
  absl::Time poll_at = absl::InfinitePast();
  bool gone = false;   // there is no such job any more
  std::string reason;  // of the decision
};

// Carries out what Plan decides for one job at a time: reads the caches,
// decides, writes the status, and only then acts.
//
// Threads: thread-safe for different keys; the work queue sees to that.
// Blocking: several calls of the API server.
class Reconciler {
 public:
  // Borrows everything; `progress` may be null.
  Reconciler(KubeApi& api, const Clock& clock, Caches caches,
             ProgressStore& reports, ProgressSource* progress,
             ReconcilerOptions options);

  SyncResult Sync(const std::string& key);

 private:
  // What is remembered of a job between two syncs; losing it costs time only.
  struct Memory {
    std::string uid;
    std::map<std::string, absl::Time> config_error_since;
    absl::Status last_error;
  };

  SyncResult Gone(const std::string& key);
  void After(const absl::Status& acted, bool news, SyncResult& result) const;
  Observed Observe(const Job& job, Memory& memory) const;
  // The server's own opinion of rank 0's pod. OK also if it has none now.
  absl::Status DryRun(const Job& job, Observed& observed);
  absl::Status WriteStatus(const Json& object, const JobStatus& status);
  absl::Status Act(const Job& job, const std::vector<Action>& actions);
  absl::Status ActOne(const Job& job, const Action& action);
  absl::Status Create(const Job& job, const CreatePod& create);
  absl::Status Delete(const Job& job, const DeletePod& pod);
  absl::Status Ensure(const Job& job, int attempt);
  Memory Recall(const std::string& key, const std::string& uid);
  void Keep(const std::string& key, Memory memory);

  KubeApi& api_;
  const Clock& clock_;
  const Caches caches_;
  ProgressStore& reports_;
  ProgressSource* const progress_;
  const ReconcilerOptions options_;
  EventRecorder events_;

  absl::Mutex mu_;
  std::map<std::string, Memory> memory_ ABSL_GUARDED_BY(mu_);
};

}  // namespace disttrain
