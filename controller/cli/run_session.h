// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "controller/api/job.h"
#include "controller/cli/display.h"
#include "controller/cli/job_watch.h"
#include "controller/cli/log_follower.h"
#include "controller/cli/streams.h"
#include "controller/kube/clock.h"
#include "controller/local/memory_api.h"
#include "controller/local/process_kubelet.h"
#include "controller/local/run_directory.h"
#include "controller/reconcile/controller.h"
#include "controller/reconcile/progress_source.h"

namespace disttrain {

struct RunOptions {
  std::string worker;   // path of the worker binary
  std::string log_dir;  // "": in the run's own folder
  bool json = false;    // the final status alone on standard output
  bool show_output = true;
  bool show_progress = true;
  GetEnv get_env;
};

// One `dtj run`: the real controller against an API in memory, a kubelet that
// makes processes, and a person who watches.
//
// Threads: Run on the main thread, which does all the showing; see Controller,
// ProcessKubelet and JobWatch for theirs. Signals are taken by one more.
class RunSession {
 public:
  // Borrows `streams`.
  RunSession(Job job, RunOptions options, Streams& streams);
  ~RunSession();

  // Blocking: until the job has ended and all its processes have.
  // Returns the exit code; an error if the run could not begin.
  absl::StatusOr<int> Run();

 private:
  absl::Status Begin();
  ControllerOptions OptionsOfController() const;
  KubeletOptions OptionsOfKubelet();

  // One round: take what the ranks and the controller have said, show it.
  void Show(bool log_is_complete);
  void ShowPhase(const JobProgress& progress);
  // Until the job has ended or was interrupted, or nobody reads any more.
  void Follow();
  void Suspend();
  // Ends what still runs.
  void End();
  int Conclude();

  void OnSignal(int signal);
  void Say(const std::string& text);  // from any thread

  const Job job_;
  const RunOptions options_;
  Streams& streams_;
  const SystemClock clock_;
  absl::Time begin_;

  MemoryApi api_;
  std::optional<RunDirectory> directory_;
  std::string socket_folder_;
  std::unique_ptr<ProgressSource> progress_source_;
  std::unique_ptr<ProcessKubelet> kubelet_;
  std::unique_ptr<Controller> controller_;
  std::unique_ptr<JobWatch> watch_;

  Display display_;
  LogFollower logs_;
  JobProgress shown_;
  bool reader_gone_ = false;

  std::atomic<int> signal_ = 0;   // the first one
  std::atomic<int> signals_ = 0;  // how many

  absl::Mutex mu_;
  std::deque<StartedPod> started_ ABSL_GUARDED_BY(mu_);
  std::deque<std::string> said_ ABSL_GUARDED_BY(mu_);
};

}  // namespace disttrain
