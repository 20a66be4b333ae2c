// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "controller/local/memory_api.h"
#include "controller/reconcile/job_status.h"
#include "controller/reconcile/reconciler.h"
#include "controller/reconcile/work_queue.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/node_twin.h"

namespace disttrain {

// Rank 0 as the test wants it to answer.
class FakeProgress : public ProgressSource {
 public:
  absl::StatusOr<v1::Progress> Get(const Job& job, int attempt,
                                   const std::string& address) override;
  absl::Status Stop(const Job& job, int attempt, const std::string& address,
                    bool save, const std::string& reason) override;

  int stops = 0;
  std::string stop_reason;
};

// A cluster with one job and the real reconcile code, on one thread and a clock
// that the test moves: everything happens in the same order every time.
class JobWorld {
 public:
  // `with_progress`: the reconciler has a source of progress, so that Running
  // needs a report (see Report).
  explicit JobWorld(bool with_progress = false);
  ~JobWorld();

  // Creates the job: "metadata.name" is cartpole; `spec` as in a manifest.
  void Apply(const Json& spec);
  void Patch(const Json& patch);
  void Report(const v1::Progress& progress);

  // Reconciles until nothing is left to do at this time.
  void Settle();
  // Moves the clock, and reconciles at every time for which a timer is armed.
  void Advance(absl::Duration by);
  // A new controller with empty caches and no memory.
  void RestartController();
  // Settle, run all pods, Settle.
  void RunAll();

  bool JobExists();
  Json JobObject();
  JobStatus Status();
  std::string ConditionOf(const std::string& type);  // "True/Reason"

  FakeClock clock;
  MemoryApi api;
  NodeTwin nodes;
  FakeProgress progress;
  // Calls that changed something, since the start.
  std::atomic<int> creates = 0;  // pods are created by many threads

 private:
  struct Controller;

  // Counts creates on their way to the API.
  class CountingApi;

  const bool with_progress_;
  std::unique_ptr<CountingApi> counting_;
  std::unique_ptr<Controller> controller_;
};

}  // namespace disttrain
