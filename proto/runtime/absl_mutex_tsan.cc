// SPDX-License-Identifier: Apache-2.0
//
// absl::Mutex, absl::CondVar and absl::Notification for builds with the thread
// sanitizer.
//
// The sanitizer sees only code that was compiled with it, and Debian's abseil
// was not: each member guarded by an absl::Mutex would be reported as a race.
// These definitions, in the executable, take the place of those in
// libabsl_synchronization.so. They stand on std::mutex, which the sanitizer
// knows: simple, slow, and a reader excludes other readers. Waiting threads
// look at their conditions themselves.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace {

struct MutexState {
  std::mutex mu;
  std::condition_variable released;  // to those who wait for a Condition
  int waiting = 0;                   // guarded by mu
};

// The state that `word` points to, made at its first use.
template <typename State>
State& StateOf(std::atomic<intptr_t>& word) {
  intptr_t found = word.load(std::memory_order_acquire);
  if (found == 0) {
    auto* made = new State;
    if (word.compare_exchange_strong(found, reinterpret_cast<intptr_t>(made),
                                     std::memory_order_acq_rel)) {
      return *made;
    }
    delete made;
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return *reinterpret_cast<State*>(found);
}

template <typename State>
void Drop(std::atomic<intptr_t>& word) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  delete reinterpret_cast<State*>(word.exchange(0, std::memory_order_acq_rel));
}

// Whoever lets go of the lock may have made a condition true.
void WakeWaiting(MutexState& state) {
  if (state.waiting > 0) state.released.notify_all();
}

// Waits once, maybe in vain; the lock, which is held, is given up meanwhile.
// Times of the system's clock: pthread_cond_clockwait is not intercepted
// everywhere.
// NOLINTBEGIN(bugprone-spuriously-wake-up-functions)
void WaitOnce(std::condition_variable& condition, MutexState& state,
              absl::Time deadline) {
  std::unique_lock<std::mutex> lock(state.mu, std::adopt_lock);
  if (deadline == absl::InfiniteFuture()) {
    condition.wait(lock);
  } else {
    condition.wait_until(lock, absl::ToChronoTime(std::min(
                                   deadline, absl::Now() + absl::Hours(1))));
  }
  lock.release();
}
// NOLINTEND(bugprone-spuriously-wake-up-functions)

bool AwaitUntil(MutexState& state, const absl::Condition& condition,
                absl::Time deadline) {
  if (condition.Eval()) return true;
  WakeWaiting(state);
  while (absl::Now() < deadline) {
    ++state.waiting;
    WaitOnce(state.released, state, deadline);
    --state.waiting;
    if (condition.Eval()) return true;
  }
  return false;
}

}  // namespace

// gRPC and protobuf were not built with the sanitizer either: what they do with
// memory, ordered by atomics that it cannot see, is not ours to report. The
// suppressions are for gRPC's headers, which are compiled with our code, and
// for what a reaction reads first, written before StartCall. race_top looks at
// the innermost function alone, so that what our callbacks call is still
// checked. They name what is left after inlining: the preset builds with -O1.
//
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" const char* __tsan_default_options() {
  return "ignore_noninstrumented_modules=1";
}

extern "C" const char* __tsan_default_suppressions() {
  return "race_top:grpc::\n"
         "race_top:std::function<void (bool)>::operator=\n"
         "race:grpc::internal::CallOp*::SetFinishInterceptionHookPoint\n"
         "race_top:::OnReadDone(bool)\n"
         "race_top:::OnWriteDone(bool)\n"
         "race_top:::OnDone(\n";
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace absl {
ABSL_NAMESPACE_BEGIN

Mutex::~Mutex() {
  ABSL_TSAN_MUTEX_DESTROY(this, __tsan_mutex_not_static);
  Drop<MutexState>(mu_);
}

void Mutex::Lock() { StateOf<MutexState>(mu_).mu.lock(); }

void Mutex::Unlock() {
  MutexState& state = StateOf<MutexState>(mu_);
  WakeWaiting(state);
  state.mu.unlock();
}

bool Mutex::TryLock() { return StateOf<MutexState>(mu_).mu.try_lock(); }
void Mutex::ReaderLock() { Lock(); }
void Mutex::ReaderUnlock() { Unlock(); }
bool Mutex::ReaderTryLock() { return TryLock(); }

void Mutex::Await(const Condition& cond) {
  AwaitUntil(StateOf<MutexState>(mu_), cond, InfiniteFuture());
}

bool Mutex::AwaitWithTimeout(const Condition& cond, Duration timeout) {
  return AwaitWithDeadline(cond, Now() + timeout);
}

bool Mutex::AwaitWithDeadline(const Condition& cond, Time deadline) {
  return AwaitUntil(StateOf<MutexState>(mu_), cond, deadline);
}

void Mutex::LockWhen(const Condition& cond) {
  Lock();
  Await(cond);
}

bool Mutex::LockWhenWithTimeout(const Condition& cond, Duration timeout) {
  return LockWhenWithDeadline(cond, Now() + timeout);
}

bool Mutex::LockWhenWithDeadline(const Condition& cond, Time deadline) {
  Lock();
  return AwaitWithDeadline(cond, deadline);
}

void Mutex::ReaderLockWhen(const Condition& cond) { LockWhen(cond); }

bool Mutex::ReaderLockWhenWithTimeout(const Condition& cond, Duration timeout) {
  return LockWhenWithTimeout(cond, timeout);
}

bool Mutex::ReaderLockWhenWithDeadline(const Condition& cond, Time deadline) {
  return LockWhenWithDeadline(cond, deadline);
}

void Mutex::AssertHeld() const {}
void Mutex::AssertReaderHeld() const {}
void Mutex::AssertNotHeld() const {}

CondVar::~CondVar() { Drop<std::condition_variable>(cv_); }

void CondVar::Wait(Mutex* mu) { WaitWithDeadline(mu, InfiniteFuture()); }

bool CondVar::WaitWithTimeout(Mutex* mu, Duration timeout) {
  return WaitWithDeadline(mu, Now() + timeout);
}

bool CondVar::WaitWithDeadline(Mutex* mu, Time deadline) {
  // The mutex' first and only member is its word, which is private to it.
  static_assert(sizeof(Mutex) == sizeof(std::atomic<intptr_t>));
  MutexState& state =
      StateOf<MutexState>(*reinterpret_cast<std::atomic<intptr_t>*>(mu));
  WakeWaiting(state);
  WaitOnce(StateOf<std::condition_variable>(cv_), state, deadline);
  return Now() >= deadline;
}

void CondVar::Signal() { StateOf<std::condition_variable>(cv_).notify_one(); }

void CondVar::SignalAll() {
  StateOf<std::condition_variable>(cv_).notify_all();
}

// What was written before Notify is seen after a wait.
Notification::~Notification() { const MutexLock lock(&mutex_); }

void Notification::Notify() {
  const MutexLock lock(&mutex_);
  notified_yet_.store(true, std::memory_order_release);
}

void Notification::WaitForNotification() const {
  WaitForNotificationWithDeadline(InfiniteFuture());
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  return WaitForNotificationWithDeadline(Now() + timeout);
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  const MutexLock lock(&mutex_);
  const auto notified = [this] {
    return notified_yet_.load(std::memory_order_acquire);
  };
  return mutex_.AwaitWithDeadline(Condition(&notified), deadline);
}

ABSL_NAMESPACE_END
}  // namespace absl
