// SPDX-License-Identifier: Apache-2.0
//
// The half of Reactor that is its pool of threads.
#include <pthread.h>
#include <sys/epoll.h>

#include <array>
#include <system_error>
#include <utility>

#include "fmt/format.h"
#include "worker/transport/reactor.h"

namespace disttrain::transport {
namespace {

// A pool thread that was idle so long ends, if another one is idle as well.
constexpr int kIdleMilliseconds = 10'000;

}  // namespace

void Reactor::SpawnLocked() {
  ReapLocked();
  Worker& worker = workers_.emplace_back();
  try {
    worker.thread =
        std::thread(&Reactor::WorkerLoop, this, &worker, next_worker_++);
  } catch (const std::system_error&) {
    // No more threads here: those that run go on, as at max_threads.
    workers_.pop_back();
    return;
  }
  ++live_;
  // It counts as idle from now on: it looks for work before it sleeps.
  ++watching_;
}

void Reactor::ReapLocked() {
  workers_.remove_if([](Worker& worker) {
    if (worker.ended) worker.thread.join();
    return worker.ended;
  });
}

bool Reactor::LeadAgain() {
  if (Leads()) return true;
  absl::MutexLock lock(&mu_);
  return tasks_.empty() && TryLeadLocked(false);
}

bool Reactor::Watch() {
  std::array<epoll_event, 1> event;
  const int count =
      ::epoll_wait(watch_fd_.get(), event.data(), 1, kIdleMilliseconds);
  if (count != 0) return true;
  absl::MutexLock lock(&mu_);
  return watching_ <= 1;
}

void Reactor::WorkOnce() {
  absl::AnyInvocable<void()> task;
  {
    absl::MutexLock lock(&mu_);
    if (!tasks_.empty()) {
      task = std::move(tasks_.front());
      tasks_.pop_front();
    } else if (!TryLeadLocked(false)) {
      return;
    }
    --watching_;
    if (!tasks_.empty()) Ring(task_fd_);
    // What woke this thread may have been something to read.
    if (NobodyLeads()) SummonLocked();
  }
  if (task) {
    task();
    task = nullptr;
  } else {
    bool more = true;
    while (more && LeadAgain()) more = LeadOnce(absl::InfinitePast());
  }
  absl::MutexLock lock(&mu_);
  ++watching_;
  if (Leads()) ReleaseLocked();
}

void Reactor::WorkerLoop(Worker* self, int number) {
  ::pthread_setname_np(::pthread_self(),
                       fmt::format("data-{}", number).c_str());
  while (!stopped_ && Watch()) WorkOnce();
  absl::MutexLock lock(&mu_);
  --watching_;
  --live_;
  self->ended = true;
  // It may have been counted on.
  if (NobodyLeads()) SummonLocked();
}

void Reactor::Run(absl::AnyInvocable<void()> task) {
  absl::MutexLock lock(&mu_);
  if (stopped_) return;
  tasks_.push_back(std::move(task));
  // A thread that only spins is as good as idle.
  const int idle = watching_ + (pool_spins_ ? 1 : 0);
  if (pool_spins_) lead_wanted_ = true;
  if (static_cast<size_t>(idle) < tasks_.size() && live_ < max_threads_) {
    SpawnLocked();
  }
  Ring(task_fd_);
}

int Reactor::threads() const {
  absl::MutexLock lock(&mu_);
  return live_;
}

int Reactor::idle_threads() const {
  absl::MutexLock lock(&mu_);
  return watching_;
}

}  // namespace disttrain::transport
