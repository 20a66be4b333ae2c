// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/time/time.h"
#include "worker/rpc/task.h"

namespace disttrain::rpc::internal {

// Threads for user code that must not run on the thread that has it: calls read
// by a thread that waits for its own reply, asynchronous calls to oneself,
// continuations. A thread is started whenever none is idle, so that a task
// never waits for another one to end.
//
// Threads: thread-safe. Blocking: only Stop.
class Executor {
 public:
  Executor();
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // After Stop the task is dropped.
  void Post(Task task);

  // Lets running and queued tasks end until `deadline`. Returns false if some
  // thread is stuck; such a thread is left alone and touches nothing here.
  bool Stop(absl::Time deadline);

  int threads() const;

 private:
  struct Shared;
  static void Loop(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
};

}  // namespace disttrain::rpc::internal
