// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <thread>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "worker/transport/spin_policy.h"
#include "worker/transport/unique_fd.h"

namespace disttrain::transport {

// Something with a descriptor that the reactor polls.
class Channel {
 public:
  // What one turn came to.
  struct Turn {
    // Another turn is due although the descriptor may not say so.
    bool more = false;
    // To be run by the leader next; may end its leadership.
    absl::AnyInvocable<void()> deliver;
  };

  virtual ~Channel() = default;
  virtual int fd() const = 0;

  // Does a bounded piece of work without blocking. `events`: epoll's; 0 in a
  // turn that was asked for by `more`. Threads: the leader, so one at a time.
  virtual Turn OnReady(uint32_t events) = 0;

 private:
  friend class Reactor;
  uint64_t id_ = 0;
  // Only the leader looks at these.
  uint32_t events_ = 0;
  bool queued_ = false;
};

// Leader and followers over one epoll set.
//
//   leader     polls, gives turns to channels, runs what they deliver
//   watchers   idle pool threads: they sleep in the kernel on a second epoll
//              set, which tells one of them when there is something to read and
//              no leader
//   followers  threads in Wait while somebody else leads
//
// Who delivers is done with leading when it says so (Release) or waits no
// longer. The second set is then armed: one cheap system call in place of
// waking a thread, so a request and its reply cost no hand-off on either side.
//
// A leader looks again for a moment before it sleeps (SpinPolicy). One of the
// pool that does so gives up the lead to any thread that comes to wait.
//
// Threads: thread-safe; the pool's threads are named "data-<n>".
class Reactor {
 public:
  static absl::StatusOr<std::unique_ptr<Reactor>> Create(int max_threads);
  ~Reactor();

  // Channels may be added before Start; nothing is polled until then.
  void Start();

  // `events`: epoll's, level-triggered.
  absl::Status Add(std::shared_ptr<Channel> channel, uint32_t events);
  void Modify(const Channel& channel, uint32_t events);
  // No turn begins after this, but the current one may go on.
  void Remove(const Channel& channel);

  // See Endpoint.
  bool Wait(const std::function<bool()>& done, absl::Time deadline);
  void Wake();
  void Release();
  void Run(absl::AnyInvocable<void()> task);
  bool OnLentThread() const;

  // Ends all Waits and the pool's threads, and joins these.
  // Blocking: until what the pool's threads deliver has returned.
  void Stop();

  int threads() const;
  int idle_threads() const;

 private:
  struct Waiter {
    absl::CondVar wake;
    bool signalled = false;
  };
  struct Worker {
    std::thread thread;
    bool ended = false;
  };

  explicit Reactor(int max_threads) : max_threads_(max_threads) {}
  absl::Status Open();
  // One event for whoever polls the eventfd.
  static void Ring(const UniqueFd& fd);

  // Takes the lead if nobody has it, or the caller does.
  bool TryLeadLocked(bool waiter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Leads() const {
    return leader_.load(std::memory_order_relaxed) ==
           std::this_thread::get_id();
  }
  bool NobodyLeads() const {
    return leader_.load(std::memory_order_relaxed) == std::thread::id();
  }
  // As leader: polls until `deadline` if no turn is due, then gives one turn.
  // Whether there was one. InfinitePast: spins, and does not sleep.
  bool LeadOnce(absl::Time deadline);
  void Poll(absl::Time deadline);
  // Takes what the poll set has, waiting `milliseconds` at most. Whether there
  // was anything, a nudge included.
  bool Collect(int milliseconds);
  bool Spin(bool for_pool);
  // Lets a pool thread that only spins make room.
  void ClaimFromPool();
  void Enqueue(std::shared_ptr<Channel> channel, uint32_t events);
  void ReleaseLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Somebody must take the lead when there is something to read: a watcher,
  // else a follower, else a new thread. Who was summoned may be on its way out:
  // it passes the summons on (WorkerLoop, LeaveWait).
  void SummonLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SpawnLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReapLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ArmLocked(bool armed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WorkerLoop(Worker* self, int number);
  // Sleeps until there is something to do; false: the thread is surplus.
  bool Watch();
  // Takes the lead back after a delivery that gave it up, unless there is other
  // work.
  bool LeadAgain();
  // An idle worker is awake: runs a task, or leads until nothing is due.
  void WorkOnce();
  // One round of Wait.
  void WaitOnce(const std::function<bool()>& done, absl::Time deadline);
  void Follow(Waiter& waiter, absl::Time deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The caller neither leads nor follows any more.
  void LeaveWait();

  const int max_threads_;
  UniqueFd poll_fd_;   // channels and nudge_fd_
  UniqueFd watch_fd_;  // poll_fd_ (when armed), task_fd_ and stop_fd_
  UniqueFd nudge_fd_;
  UniqueFd task_fd_;
  UniqueFd stop_fd_;
  std::atomic<std::thread::id> leader_{};
  std::atomic<bool> stopped_ = false;
  std::atomic<bool> pool_spins_ = false;
  std::atomic<bool> lead_wanted_ = false;

  // The leader's: handed over through mu_.
  std::deque<std::shared_ptr<Channel>> ready_;
  SpinPolicy spin_;

  mutable absl::Mutex mu_;
  std::unordered_map<uint64_t, std::shared_ptr<Channel>> channels_
      ABSL_GUARDED_BY(mu_);
  std::deque<absl::AnyInvocable<void()>> tasks_ ABSL_GUARDED_BY(mu_);
  std::list<Waiter*> followers_ ABSL_GUARDED_BY(mu_);
  std::list<Worker> workers_ ABSL_GUARDED_BY(mu_);
  uint64_t next_id_ ABSL_GUARDED_BY(mu_) = 1;
  int next_worker_ ABSL_GUARDED_BY(mu_) = 0;
  int live_ ABSL_GUARDED_BY(mu_) = 0;               // pool threads that run
  int watching_ ABSL_GUARDED_BY(mu_) = 0;           // of these: idle
  bool leader_waits_ ABSL_GUARDED_BY(mu_) = false;  // the leader is in Wait
  bool armed_ ABSL_GUARDED_BY(mu_) = false;
  bool started_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace disttrain::transport
