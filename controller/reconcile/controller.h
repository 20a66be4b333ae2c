// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "controller/kube/clock.h"
#include "controller/kube/kube_api.h"
#include "controller/reconcile/pod_spec.h"
#include "controller/reconcile/progress_source.h"

namespace disttrain {

struct ControllerOptions {
  PodContext pods;
  // "": all namespaces.
  std::string name_space;
  // Threads that reconcile, >= 1.
  int workers = 8;
  // Threads that poll rank 0 of running jobs, >= 1.
  int pollers = 4;
  // A pod whose deletion takes longer than its grace plus this is on a node
  // that is lost: its rank is started elsewhere.
  absl::Duration node_lost_grace = absl::Seconds(60);
  // Told, on a reconciling thread, when what is decided about a job changes or
  // fails: for the log. `job` is "namespace/name". May be null.
  std::function<void(const std::string& job, const std::string& reason,
                     const absl::Status& status)>
      on_decision = {};
};

// The whole controller: informers for jobs, pods and services, a work queue,
// threads that reconcile, and the poller of training progress.
//
// Threads: Start and Stop from one thread; Healthy and Synced from any.
class Controller {
 public:
  // Borrows all three; `progress` may be null: then nothing is polled and a
  // job runs when its pods do.
  Controller(KubeApi& api, const Clock& clock, ProgressSource* progress,
             ControllerOptions options);
  // Stops if Stop was not called.
  ~Controller();

  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // Returns at once; the first reconcile happens after the first lists.
  void Start();

  // Blocking: until the reconciles and polls that run now have ended, <= 30 s
  // with a server that does not answer. Nothing of the cluster is changed.
  void Stop();

  // OK, or what makes no progress: "the watch of jobs heard nothing for 91 s".
  // The answer of /healthz.
  absl::Status Healthy() const;

  // True once all first lists are in the caches. The answer of /readyz.
  bool Synced() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace disttrain
