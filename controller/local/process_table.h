// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "controller/local/supervisor_protocol.h"
#include "controller/local/unique_fd.h"

namespace disttrain {

// The supervisor's processes: starts, signals and reaps them, and says what
// happened.
//
// Threads: not thread-safe; the process has one thread.
// Blocking: never, except KillDescendants.
class ProcessTable {
 public:
  explicit ProcessTable(std::function<void(const ProcessEvent&)> on_event)
      : on_event_(std::move(on_event)) {}

  // ProcessStarted or ProcessStartFailed follows, once exec has succeeded or
  // failed.
  void Start(const StartProcess& start);

  // To the process group. Unknown ids are ignored.
  void Signal(const std::string& id, int signal);
  void SignalAll(int signal);

  // Takes in every child that has ended. What a finished process has left
  // running (its group, its session, daemons with its pod's name in their
  // environment) is killed, as a container's end kills all in it.
  void Reap();

  // Descriptors that become readable when a start is decided, and what to call
  // then.
  std::vector<int> StartPipes() const;
  void FinishStart(int start_pipe);

  bool empty() const { return processes_.empty(); }

  // SIGKILL to all descendants, again and again until none is left.
  // Blocking: until then, <= 5 s (a process may hang in the kernel).
  void KillDescendants();

 private:
  struct Process {
    StartProcess start;
    UniqueFd start_pipe;  // none: started
  };
  // What tells the leftovers of a finished process.
  struct Ended {
    pid_t session = 0;
    std::string cookie;  // "": none
  };

  void FinishStart(pid_t pid, Process& process);
  void KillLeftovers();

  const std::function<void(const ProcessEvent&)> on_event_;
  std::map<pid_t, Process> processes_;
  std::vector<Ended> ended_;
};

}  // namespace disttrain
