// SPDX-License-Identifier: Apache-2.0
#include "worker/rpc/future_state.h"

#include <algorithm>
#include <utility>

#include "worker/rpc/core.h"
#include "worker/rpc/error.h"
#include "worker/rpc/served_call.h"

namespace disttrain::rpc::internal {
namespace {

// For errors of futures that belong to no call.
CallSite LocalSite() {
  const std::shared_ptr<Core> core = CurrentCoreOrNull();
  return {.peer = core == nullptr ? Peer{} : core->self(),
          .method = "Future",
          .elapsed = absl::ZeroDuration()};
}

}  // namespace

bool FutureState::Fail(std::exception_ptr error) {
  return Resolve([&] { error_ = std::move(error); });
}

bool FutureState::Resolve(const std::function<void()>& store) {
  const std::shared_ptr<FutureState> self = shared_from_this();
  std::vector<Task> hooks;
  std::vector<Task> continuations;
  std::vector<std::shared_ptr<Core>> wake;
  Task canceller;
  {
    absl::MutexLock lock(&mu_);
    if (ready()) return false;
    store();
    ready_.store(true, std::memory_order_release);
    hooks.swap(hooks_);
    continuations.swap(continuations_);
    std::swap(canceller, canceller_);
    for (const Waiter* waiter : waiters_) {
      if (waiter->thread != std::this_thread::get_id()) {
        wake.push_back(waiter->core);
      }
    }
  }
  for (const std::shared_ptr<Core>& core : wake) core->Wake();
  for (Task& hook : hooks) hook();
  for (Task& task : continuations) Deferral::Run(std::move(task));
  return true;
}

void FutureState::OnReady(Task hook) {
  {
    absl::MutexLock lock(&mu_);
    if (!ready()) {
      hooks_.push_back(std::move(hook));
      return;
    }
  }
  hook();
}

void FutureState::OnReadyUserCode(Task continuation) {
  {
    absl::MutexLock lock(&mu_);
    if (!ready()) {
      continuations_.push_back(std::move(continuation));
      return;
    }
  }
  Deferral::Run(std::move(continuation));
}

void FutureState::LendThread(const std::shared_ptr<Core>& core,
                             const std::function<bool()>& done,
                             absl::Time deadline) {
  Waiter waiter{core, std::this_thread::get_id()};
  {
    absl::MutexLock lock(&mu_);
    if (ready()) return;
    waiters_.push_back(&waiter);
  }
  core->LendThread(done, deadline);
  absl::MutexLock lock(&mu_);
  waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &waiter));
}

bool FutureState::Wait(absl::Time deadline) {
  if (ready()) return true;
  ServedCall* const current = ServedCall::Current();
  const std::function<bool()> done = [&] {
    return ready() || (current != nullptr && current->cancelled());
  };
  const std::shared_ptr<Core> core =
      core_ != nullptr ? core_ : CurrentCoreOrNull();
  if (core != nullptr) LendThread(core, done, deadline);
  if (done()) return ready();
  // The thread is no longer lent: it has seen a call for another thread to run,
  // or there is no agent. Whoever resolves this state wakes it.
  if (current != nullptr) current->AddWait(this);
  {
    absl::MutexLock lock(&mu_);
    mu_.AwaitWithDeadline(absl::Condition(&done), deadline);
  }
  if (current != nullptr) current->RemoveWait(this);
  return ready();
}

void FutureState::WaitOrThrow() {
  if (!ready()) {
    ServedCall* const current = ServedCall::Current();
    absl::Time deadline = deadline_;
    if (current != nullptr) deadline = std::min(deadline, current->deadline());
    if (!Wait(deadline)) {
      const bool cancelled = current != nullptr && current->cancelled();
      if (core_ == nullptr) {
        std::rethrow_exception(MakeError(
            cancelled ? ErrorCode::kCancelled : ErrorCode::kDeadlineExceeded,
            LocalSite(),
            cancelled ? "the call that waits was cancelled"
                      : "not resolved before the deadline of the call"));
      }
      if (cancelled) {
        core_->CancelCall(call_id_, "the call that made it was cancelled");
      } else {
        core_->ExpireCall(call_id_);
      }
      // Either that has resolved it, or a reply is doing so this moment.
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(
          +[](std::atomic<bool>* flag) { return flag->load(); }, &ready_));
    }
  }
  if (error_ != nullptr) std::rethrow_exception(error_);
}

void FutureState::Cancel(const std::string& reason) {
  if (ready()) return;
  if (core_ != nullptr) {
    core_->CancelCall(call_id_, reason);
    return;
  }
  Task canceller;
  {
    absl::MutexLock lock(&mu_);
    std::swap(canceller, canceller_);
  }
  if (canceller) canceller();
  Fail(MakeError(ErrorCode::kCancelled, LocalSite(), reason));
}

void FutureState::SetCanceller(Task canceller) {
  absl::MutexLock lock(&mu_);
  if (!ready()) canceller_ = std::move(canceller);
}

void FutureState::BindCall(std::shared_ptr<Core> core, uint64_t call_id,
                           absl::Time deadline) {
  core_ = std::move(core);
  call_id_ = call_id;
  deadline_ = deadline;
}

void FutureState::Poke() { absl::MutexLock lock(&mu_); }

}  // namespace disttrain::rpc::internal
