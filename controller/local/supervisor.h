// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "controller/local/supervisor_protocol.h"
#include "controller/local/unique_fd.h"

namespace disttrain {

struct SupervisorOptions {
  // A program whose main calls RunIfSupervisor.
  std::string executable = "/proc/self/exe";
  // From the end of the launcher to SIGKILL.
  absl::Duration grace = absl::Seconds(5);
  // Removed, with all in it, after the last process has gone, also if the
  // launcher dies. "": none.
  std::string scratch;
};

// The launcher's end of a supervisor process (see supervisor_main.h), which
// starts the ranks of a run and outlives them whatever happens to the launcher.
//
// Threads: thread-safe. Events come on one thread of its own, one after the
// other; they may call back into it, except for Close.
class Supervisor {
 public:
  // `on_event` may be called until Close has returned.
  // Errors: the process cannot be made.
  static absl::StatusOr<std::unique_ptr<Supervisor>> Start(
      const SupervisorOptions& options,
      std::function<void(const ProcessEvent&)> on_event);

  // Closes.
  ~Supervisor();

  // UNAVAILABLE if the supervisor is gone; then the processes are, too.
  absl::Status Send(const SupervisorCommand& command);

  // SIGTERM to all processes, SIGKILL after the grace (or after a KillAll).
  // Blocking: until no process is left; <= grace + 5 s.
  void Close();

 private:
  Supervisor(UniqueFd socket, pid_t pid,
             std::function<void(const ProcessEvent&)> on_event);

  void Read();
  void Handle(const ProcessEvent& event);
  // The supervisor was killed: ends what it can no longer end.
  void KillOrphans();

  const UniqueFd socket_;
  const pid_t pid_;
  const std::function<void(const ProcessEvent&)> on_event_;
  absl::Mutex send_mu_;  // frames are written whole
  absl::Mutex mu_;
  std::map<std::string, pid_t> running_ ABSL_GUARDED_BY(mu_);

  std::thread reader_;  // last: it uses all the others
};

}  // namespace disttrain
