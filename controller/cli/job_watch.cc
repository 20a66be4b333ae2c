// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/job_watch.h"

#include <utility>

#include "proto/runtime/signals.h"

namespace disttrain {

JobWatch::JobWatch(KubeApi& api, Json job)
    : api_(api),
      name_space_(job.at("metadata").at("namespace")),
      name_(job.at("metadata").at("name")),
      latest_(std::move(job)),
      thread_([this] { Run(); }) {}

JobWatch::~JobWatch() {
  {
    const absl::MutexLock lock(&mu_);
    stop_ = true;
  }
  thread_.join();
}

Json JobWatch::Latest() const {
  const absl::MutexLock lock(&mu_);
  return latest_;
}

bool JobWatch::Stopped() const {
  const absl::MutexLock lock(&mu_);
  return stop_;
}

void JobWatch::Take(const Json& job) {
  if (job.at("metadata").value("name", "") != name_) return;
  const absl::MutexLock lock(&mu_);
  latest_ = job;
}

void JobWatch::Run() {
  NameThread("watch-job");
  while (!Stopped()) {
    const auto list = api_.List(Resource::kDistTrainingJobs, name_space_, "");
    if (!list.ok()) return;  // the API in memory has no passing errors
    for (const Json& job : list->items) Take(job);
    // Ends only to be started again: 410, or the server rolled.
    api_.Watch(
            Resource::kDistTrainingJobs, name_space_, "",
            list->resource_version,
            [this](const WatchEvent& event) {
              if (event.type == WatchEventType::kAdded ||
                  event.type == WatchEventType::kModified) {
                Take(event.object);
              }
            },
            [this] { return Stopped(); })
        .IgnoreError();
  }
}

}  // namespace disttrain
