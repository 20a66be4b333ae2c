// SPDX-License-Identifier: Apache-2.0
#include "worker/rpc/executor.h"

#include <pthread.h>

#include <deque>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/synchronization/mutex.h"

namespace disttrain::rpc::internal {

// How long a thread without work stays.
constexpr absl::Duration kIdle = absl::Seconds(10);

struct Executor::Shared {
  mutable absl::Mutex mu;
  std::deque<Task> queue ABSL_GUARDED_BY(mu);
  int threads ABSL_GUARDED_BY(mu) = 0;
  int idle ABSL_GUARDED_BY(mu) = 0;
  bool stopping ABSL_GUARDED_BY(mu) = false;

  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mu) {
    return stopping || !queue.empty();
  }
  bool Ended() const ABSL_SHARED_LOCKS_REQUIRED(mu) { return threads == 0; }
};

Executor::Executor() : shared_(std::make_shared<Shared>()) {}

Executor::~Executor() { Stop(absl::Now()); }

void Executor::Post(Task task) {
  {
    absl::MutexLock lock(&shared_->mu);
    if (shared_->stopping) return;
    shared_->queue.push_back(std::move(task));
    if (shared_->queue.size() <= static_cast<size_t>(shared_->idle)) return;
    ++shared_->threads;
  }
  try {
    std::thread([shared = shared_] { Loop(shared); }).detach();
  } catch (const std::system_error&) {
    // No more threads here: the task waits for one of those that run.
    absl::MutexLock lock(&shared_->mu);
    --shared_->threads;
  }
}

void Executor::Loop(const std::shared_ptr<Shared>& shared) {
  pthread_setname_np(pthread_self(), "rpc-call");
  shared->mu.Lock();
  while (true) {
    ++shared->idle;
    shared->mu.AwaitWithTimeout(absl::Condition(shared.get(), &Shared::HasWork),
                                kIdle);
    --shared->idle;
    if (shared->queue.empty()) break;
    {
      Task task = std::move(shared->queue.front());
      shared->queue.pop_front();
      shared->mu.Unlock();
      task();
    }
    shared->mu.Lock();
  }
  --shared->threads;
  shared->mu.Unlock();
}

bool Executor::Stop(absl::Time deadline) {
  absl::MutexLock lock(&shared_->mu);
  shared_->stopping = true;
  return shared_->mu.AwaitWithDeadline(
      absl::Condition(shared_.get(), &Shared::Ended), deadline);
}

int Executor::threads() const {
  absl::MutexLock lock(&shared_->mu);
  return shared_->threads;
}

}  // namespace disttrain::rpc::internal
