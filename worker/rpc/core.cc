// SPDX-License-Identifier: Apache-2.0
#include "worker/rpc/core.h"

#include <pthread.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace disttrain::rpc::internal {
namespace {

thread_local std::shared_ptr<Core> current_core;

// A thread inside Endpoint::Wait.
struct Lent {
  std::atomic<bool> enough = false;  // it has read something for other threads
};
thread_local Lent* lent_thread = nullptr;

// Calls that run on the transport's own threads at once; more go to threads of
// ours, so that however many block, somebody reads.
constexpr int kMaxInlineCalls = 64;

// How long a message of ours may wait for room in a full send queue.
constexpr absl::Duration kControlTimeout = absl::Seconds(60);

}  // namespace

std::shared_ptr<Core> CurrentCoreOrNull() { return current_core; }

std::shared_ptr<Core> CurrentCore() {
  if (current_core == nullptr) {
    throw std::logic_error(
        "this thread has no rpc agent: make an rpc::Agent::Scope first");
  }
  return current_core;
}

Core::Scope::Scope(std::shared_ptr<Core> core)
    : previous_(std::exchange(current_core, std::move(core))) {}

Core::Scope::~Scope() { current_core = std::move(previous_); }

Core::Core(AgentOptions options)
    : options_(std::move(options)),
      endpoint_(*options_.endpoint),
      peers_(options_.peers),
      references_(options_.self) {}

Core::~Core() { StopKeeper(); }

void Core::Start() {
  keeper_ = std::thread([this] { Keep(); });
  endpoint_.Start(options_.addresses, this);
}

// --- The endpoint, guarded against use after Close.

bool Core::EnterEndpoint() {
  in_endpoint_.fetch_add(1);
  if (phase_.load() != Phase::kClosed) return true;
  LeaveEndpoint();
  return false;
}

void Core::LeaveEndpoint() { in_endpoint_.fetch_sub(1); }

void Core::LendThread(const std::function<bool()>& done, absl::Time deadline) {
  if (!EnterEndpoint()) return;
  Lent lent;
  Lent* const previous = std::exchange(lent_thread, &lent);
  endpoint_.Wait([&] { return done() || lent.enough.load(); }, deadline);
  lent_thread = previous;
  LeaveEndpoint();
}

void Core::Wake() {
  if (!EnterEndpoint()) return;
  endpoint_.Wake();
  LeaveEndpoint();
}

void Core::Post(Task task) {
  executor_.Post([self = shared_from_this(), task = std::move(task)]() mutable {
    const Scope scope(std::move(self));
    task();
    task = nullptr;  // inside the scope: it may own the last RRef
  });
}

void Core::RunDeferred(std::vector<Task> tasks) {
  if (tasks.empty()) return;
  // A thread that waits for its own reply never runs other people's code: it
  // may hold locks, and the code may take long. It also stops reading, since
  // where one call comes from more may follow.
  const bool lent = lent_thread != nullptr || endpoint_.OnLentThread();
  const bool inline_last =
      !lent && inline_calls_.load(std::memory_order_relaxed) < kMaxInlineCalls;
  Task last;
  if (inline_last) {
    last = std::move(tasks.back());
    tasks.pop_back();
  } else if (lent_thread != nullptr) {
    lent_thread->enough.store(true);
  }
  for (Task& task : tasks) Post(std::move(task));
  if (!last) return;
  endpoint_.ReleaseLeadership();
  inline_calls_.fetch_add(1);
  {
    const Scope scope(shared_from_this());
    last();
    last = nullptr;
  }
  inline_calls_.fetch_sub(1);
}

absl::Status Core::Send(const Peer& to, transport::Message message,
                        absl::Time deadline) {
  const auto status = peers_.Get(to.rank);
  if (status == nullptr || status->peer.incarnation != to.incarnation) {
    return absl::UnavailableError("its process has ended");
  }
  if (!EnterEndpoint()) return absl::CancelledError("this agent is closed");
  absl::Status sent = endpoint_.Send(to.rank, std::move(message), deadline);
  LeaveEndpoint();
  return sent;
}

void Core::SendControl(const Peer& to, const v1::RpcHeader& header) {
  transport::Message message;
  header.SerializeToString(&message.header);
  transport::Message again = message;
  // Without blocking if there is room; a peer that is lost needs nothing more.
  const absl::Status sent = Send(to, std::move(message), absl::InfinitePast());
  if (!absl::IsDeadlineExceeded(sent)) return;
  Post([this, to, again = std::move(again)]() mutable {
    const absl::Status late =
        Send(to, std::move(again), absl::Now() + kControlTimeout);
    if (absl::IsDeadlineExceeded(late)) Drop(to, late.ToString());
  });
}

// --- The keeper: expires calls and gives back references.

bool Core::KeeperHasWork() const {
  return keeper_stop_ || keeper_wake_ || !releases_.empty();
}

void Core::WakeKeeper() {
  absl::MutexLock lock(&keeper_mu_);
  keeper_wake_ = true;
}

void Core::Keep() {
  pthread_setname_np(pthread_self(), "rpc-keeper");
  absl::Time next = absl::InfiniteFuture();
  while (true) {
    std::vector<std::pair<Peer, v1::ReleaseRequest>> releases;
    {
      absl::MutexLock lock(&keeper_mu_);
      keeper_mu_.AwaitWithDeadline(absl::Condition(this, &Core::KeeperHasWork),
                                   next);
      if (keeper_stop_ && releases_.empty()) return;
      keeper_wake_ = false;
      releases.swap(releases_);
    }
    for (auto& [owner, release] : releases) {
      v1::RpcHeader header;
      header.mutable_release()->Swap(&release);
      SendControl(owner, header);
    }
    auto [due, earliest] = calls_.Due(absl::Now());
    next = earliest;
    Deferral deferral;
    for (const uint64_t id : due) ExpireCall(id);
    for (Task& task : deferral.Take()) Post(std::move(task));
  }
}

void Core::StopKeeper() {
  {
    absl::MutexLock lock(&keeper_mu_);
    keeper_stop_ = true;
  }
  if (!keeper_.joinable()) return;
  // The last owner of the core may be a task that the keeper itself posted.
  if (keeper_.get_id() == std::this_thread::get_id()) {
    keeper_.detach();
  } else {
    keeper_.join();
  }
}

}  // namespace disttrain::rpc::internal
