// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "controller/kube/kube_api.h"

namespace disttrain {

// The latest version of one job, kept by a watch.
//
// Threads: thread-safe; has a thread of its own, `watch-job`.
class JobWatch {
 public:
  // Borrows `api`.
  JobWatch(KubeApi& api, Json job);
  // Blocking: until the watch has noticed, <= 1 s.
  ~JobWatch();

  JobWatch(const JobWatch&) = delete;
  JobWatch& operator=(const JobWatch&) = delete;

  Json Latest() const;

 private:
  void Run();
  void Take(const Json& job);
  bool Stopped() const;

  KubeApi& api_;
  const std::string name_space_;
  const std::string name_;
  mutable absl::Mutex mu_;
  Json latest_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace disttrain
