// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"

namespace disttrain::rpc::internal {

// Something to run once.
using Task = absl::AnyInvocable<void()>;

// While alive, user code that would run on this thread (methods,
// continuations, destructors of objects) is put aside instead: the thread is
// reading the network or must not block. Whoever made the Deferral takes the
// tasks and runs them, or lets a call thread do so.
//
// Threads: belongs to the thread that made it; they nest.
class Deferral {
 public:
  Deferral() : previous_(current_) { current_ = this; }
  ~Deferral() {
    if (current_ == this) current_ = previous_;
  }
  Deferral(const Deferral&) = delete;
  Deferral& operator=(const Deferral&) = delete;

  // Ends the deferral: what comes out may be run by this thread.
  std::vector<Task> Take() {
    current_ = previous_;
    return std::move(tasks_);
  }

  // True if this thread has one.
  static bool Active() { return current_ != nullptr; }

  // Runs `task` now, or puts it aside if this thread has a Deferral.
  static void Run(Task task) {
    if (current_ != nullptr) {
      current_->tasks_.push_back(std::move(task));
    } else {
      task();
    }
  }

 private:
  inline static thread_local Deferral* current_ = nullptr;

  Deferral* previous_;
  std::vector<Task> tasks_;
};

}  // namespace disttrain::rpc::internal
