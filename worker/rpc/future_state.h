// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "worker/rpc/task.h"

namespace disttrain::rpc::internal {

class Core;
class Reader;

// What a Future and its Promise (or its call) share, but for the value.
//
// Threads: thread-safe. No callback runs under the lock.
class FutureState : public std::enable_shared_from_this<FutureState> {
 public:
  FutureState() = default;
  virtual ~FutureState() = default;
  FutureState(const FutureState&) = delete;
  FutureState& operator=(const FutureState&) = delete;

  bool ready() const { return ready_.load(std::memory_order_acquire); }
  // After ready(): the error, or null.
  const std::exception_ptr& error() const { return error_; }

  // False if it was resolved before.
  bool Fail(std::exception_ptr error);

  // Reads the result of a call; throws if it is of another type.
  virtual void DecodeResult(const Reader& reader) = 0;

  // Waits, lending the thread to the network if it has an agent. Ends early,
  // with false, if the call that this thread serves is cancelled.
  bool Wait(absl::Time deadline);

  // Waits as long as the call and the one that this thread serves may take;
  // throws the error.
  void WaitOrThrow();

  // `hook` runs on the thread that resolves, at once if it is resolved already;
  // must be quick, must not block.
  void OnReady(Task hook);
  // The same for user code: never on a thread that is reading the network.
  void OnReadyUserCode(Task continuation);

  // Asks whoever computes the value to stop, and fails with Cancelled.
  void Cancel(const std::string& reason);
  // What Cancel runs first. Replaces an earlier one.
  void SetCanceller(Task canceller);

  // This state is the result of a call in flight.
  void BindCall(std::shared_ptr<Core> core, uint64_t call_id,
                absl::Time deadline);

  // Lets a waiting thread look at its conditions again.
  void Poke();

 protected:
  // Runs `store` under the lock unless resolved before, then tells everyone.
  bool Resolve(const std::function<void()>& store);

 private:
  struct Waiter {
    std::shared_ptr<Core> core;
    std::thread::id thread;
  };

  void LendThread(const std::shared_ptr<Core>& core,
                  const std::function<bool()>& done, absl::Time deadline);

  absl::Mutex mu_;
  std::atomic<bool> ready_ = false;
  std::exception_ptr error_;  // written before ready_, constant after
  std::vector<Task> hooks_ ABSL_GUARDED_BY(mu_);
  std::vector<Task> continuations_ ABSL_GUARDED_BY(mu_);
  std::vector<Waiter*> waiters_ ABSL_GUARDED_BY(mu_);
  Task canceller_ ABSL_GUARDED_BY(mu_);

  // Set by BindCall, before anybody else sees the state.
  std::shared_ptr<Core> core_;
  uint64_t call_id_ = 0;
  absl::Time deadline_ = absl::InfiniteFuture();
};

}  // namespace disttrain::rpc::internal
