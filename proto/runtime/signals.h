// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "absl/synchronization/mutex.h"

namespace disttrain {

// Gives the calling thread a name that ps, gdb and top show; at most 15 bytes
// are kept.
void NameThread(const std::string& name);

// Blocks SIGINT, SIGTERM and SIGHUP (unless it is ignored: nohup) for the
// calling thread and all that it starts, so that only SignalThread takes them,
// and SIGPIPE, so that a closed pipe is an error of write(2).
// Call first thing in main, before any thread exists.
void BlockSignals();

// Undoes BlockSignals in a child between fork and exec: an exec'd program
// inherits the mask. Async-signal-safe.
void UnblockSignals();

// A thread named "signals" that takes SIGINT, SIGTERM and SIGHUP by sigwait and
// calls `on_signal` with the number: ordinary code, not a signal handler's.
//
// Needs BlockSignals before it. One per process at a time.
// Threads: `on_signal` runs on the thread "signals".
// Blocking: the destructor waits for an `on_signal` that is running.
class SignalThread {
 public:
  explicit SignalThread(std::function<void(int)> on_signal);
  ~SignalThread();
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  void Run();

  const std::function<void(int)> on_signal_;
  absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace disttrain
