// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "proto/runtime/log.h"
#include "proto/runtime/signals.h"
#include "worker/identity/identity.h"
#include "worker/programs/call_metrics.h"
#include "worker/programs/event_queue.h"
#include "worker/programs/exit.h"
#include "worker/programs/lifecycle.h"
#include "worker/programs/program.h"
#include "worker/programs/session.h"
#include "worker/programs/status_pages.h"
#include "worker/rpc/agent.h"
#include "worker/telemetry/metrics.h"
#include "worker/telemetry/progress_reporter.h"

namespace disttrain {

// The life of one worker process: meets the others, runs the program if it is
// the driver, serves if it is not, and leaves.
//
// Threads: Run by the main thread, which takes all decisions (Lifecycle). Its
// own: `train` (the program, on the driver), `signals`, `exit-timer`.
class WorkerProcess {
 public:
  // Borrows both. Needs BlockSignals before it.
  WorkerProcess(const Identity& identity, const NamedProgram& program, Log log);
  ~WorkerProcess();

  // Returns once everybody has left together: the exit code is 0. Any other end
  // (a failure, a stop) does not return: it leaves the termination message and
  // ends the process, whatever the other threads do.
  void Run();

 private:
  // What all processes know after they have met.
  absl::Status SetUp();
  absl::Status Meet();
  void StartAgent();
  void StartProgram();

  Ending Serve();
  // Holds this process to its plan, even if its deciding thread gets stuck.
  void NotePlan();
  void Perform(const WorkerAction& action);
  void Try(std::string_view what, const absl::Status& status) const;
  static std::optional<Ending> LeavingOf(const WorkerActions& actions);
  // Adds what rank 0 knows of the first failure.
  Ending Explained(Ending ending);
  void End(const Ending& ending);
  void LeaveTogether();
  // Writes the termination message.
  void LeaveMessage(const Ending& ending);
  [[noreturn]] void LeaveAtOnce(const Ending& ending);

  void OnSignal(int number);
  void ExpireStop();

  const Identity& identity_;
  const NamedProgram& program_;
  const Log log_;
  Metrics metrics_;
  ProgressReporter progress_;
  CallMetrics call_metrics_{metrics_};
  EventQueue events_;
  std::atomic<bool> stop_requested_ = false;
  std::atomic<int> signals_taken_ = 0;
  std::atomic<bool> set_up_ = false;
  std::atomic<bool> finished_ = false;  // only the leaving is left
  static constexpr int kNotLeaving = -1;
  std::atomic<int> leaving_code_ = kNotLeaving;
  absl::Mutex mu_;
  std::optional<Ending> planned_ ABSL_GUARDED_BY(mu_);
  std::vector<rpc::Peer> peers_;
  int driver_rank_ = 0;
  std::unique_ptr<Program> program_view_;
  std::optional<Lifecycle> lifecycle_;

  Session session_;
  std::unique_ptr<StatusPages> pages_;
  std::unique_ptr<rpc::Agent> agent_;
  std::thread train_;
  ExitTimer exit_timer_;
  SignalThread signal_thread_;  // last: it uses the members above
};

}  // namespace disttrain
