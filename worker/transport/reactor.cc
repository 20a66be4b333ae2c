// SPDX-License-Identifier: Apache-2.0
#include "worker/transport/reactor.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "proto/runtime/check.h"
#include "proto/runtime/status.h"

namespace disttrain::transport {
namespace {

constexpr uint64_t kNudge = 0;  // in poll_fd_; channels have ids from 1 on
constexpr int kMaxEvents = 64;

absl::Status Error(const char* what) {
  return absl::UnavailableError(
      fmt::format("{}: {}", what, std::generic_category().message(errno)));
}

absl::Status Control(int epoll, int operation, int fd, uint32_t events,
                     uint64_t data) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = data;
  if (::epoll_ctl(epoll, operation, fd, &event) == 0) return absl::OkStatus();
  return Error("epoll_ctl");
}

// The Waits that this thread is in, of whatever reactor, innermost last.
thread_local std::vector<const Reactor*> waits_in_progress;

// Rounded up, so that the last turn before a deadline does not spin.
int PollMilliseconds(absl::Time deadline) {
  const absl::Duration left = deadline - absl::Now();
  return static_cast<int>(std::clamp<int64_t>(
      absl::ToInt64Milliseconds(left + absl::Microseconds(999)), 0, 60'000));
}

}  // namespace

void Reactor::Ring(const UniqueFd& fd) {
  const uint64_t one = 1;
  const ssize_t written = ::write(fd.get(), &one, sizeof(one));
  DISTTRAIN_CHECK(written == sizeof(one));
}

absl::StatusOr<std::unique_ptr<Reactor>> Reactor::Create(int max_threads) {
  std::unique_ptr<Reactor> reactor(new Reactor(max_threads));
  RETURN_IF_ERROR(reactor->Open());
  return reactor;
}

absl::Status Reactor::Open() {
  poll_fd_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  watch_fd_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  nudge_fd_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  task_fd_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  stop_fd_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!poll_fd_.valid() || !watch_fd_.valid() || !nudge_fd_.valid() ||
      !task_fd_.valid() || !stop_fd_.valid()) {
    return Error("epoll");
  }
  // Edge-triggered: each write is one event, and nobody has to read it.
  RETURN_IF_ERROR(Control(poll_fd_.get(), EPOLL_CTL_ADD, nudge_fd_.get(),
                          EPOLLIN | EPOLLET, kNudge));
  RETURN_IF_ERROR(
      Control(watch_fd_.get(), EPOLL_CTL_ADD, poll_fd_.get(), EPOLLONESHOT, 0));
  RETURN_IF_ERROR(Control(watch_fd_.get(), EPOLL_CTL_ADD, task_fd_.get(),
                          EPOLLIN | EPOLLET, 0));
  return Control(watch_fd_.get(), EPOLL_CTL_ADD, stop_fd_.get(), EPOLLIN, 0);
}

Reactor::~Reactor() { Stop(); }

void Reactor::Start() {
  absl::MutexLock lock(&mu_);
  started_ = true;
  for (Waiter* waiter : followers_) waiter->wake.Signal();
  SummonLocked();
}

absl::Status Reactor::Add(std::shared_ptr<Channel> channel, uint32_t events) {
  absl::MutexLock lock(&mu_);
  channel->id_ = next_id_++;
  RETURN_IF_ERROR(Control(poll_fd_.get(), EPOLL_CTL_ADD, channel->fd(), events,
                          channel->id_));
  channels_[channel->id_] = std::move(channel);
  return absl::OkStatus();
}

void Reactor::Modify(const Channel& channel, uint32_t events) {
  // Fails only for a channel that was removed, which needs no events.
  Control(poll_fd_.get(), EPOLL_CTL_MOD, channel.fd(), events, channel.id_)
      .IgnoreError();
}

void Reactor::Remove(const Channel& channel) {
  std::shared_ptr<Channel> last;  // destroyed without the lock
  absl::MutexLock lock(&mu_);
  const auto found = channels_.find(channel.id_);
  if (found == channels_.end()) return;
  ::epoll_ctl(poll_fd_.get(), EPOLL_CTL_DEL, channel.fd(), nullptr);
  last = std::move(found->second);
  channels_.erase(found);
}

void Reactor::ArmLocked(bool armed) {
  if (armed_ == armed && !armed) return;
  armed_ = armed;
  const uint32_t events = armed ? EPOLLIN | EPOLLONESHOT : EPOLLONESHOT;
  const absl::Status status =
      Control(watch_fd_.get(), EPOLL_CTL_MOD, poll_fd_.get(), events, 0);
  DISTTRAIN_CHECK(status.ok());
}

void Reactor::SummonLocked() {
  if (!started_ || stopped_) return;
  ArmLocked(true);
  if (watching_ > 0) return;
  if (!followers_.empty()) {
    followers_.front()->signalled = true;
    followers_.front()->wake.Signal();
  } else if (live_ < max_threads_) {
    SpawnLocked();
  }
}

void Reactor::ReleaseLocked() {
  // Turns that are due do not show in the poll set: an event makes them show.
  if (!ready_.empty()) Ring(nudge_fd_);
  leader_.store(std::thread::id(), std::memory_order_relaxed);
  leader_waits_ = false;
  pool_spins_ = false;
  SummonLocked();
}

void Reactor::Release() {
  if (!Leads()) return;
  absl::MutexLock lock(&mu_);
  ReleaseLocked();
}

bool Reactor::TryLeadLocked(bool waiter) {
  if (!Leads()) {
    if (!started_ || stopped_ || !NobodyLeads()) return false;
    leader_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    ArmLocked(false);
  }
  leader_waits_ = waiter;
  return true;
}

void Reactor::Enqueue(std::shared_ptr<Channel> channel, uint32_t events) {
  channel->events_ |= events;
  if (std::exchange(channel->queued_, true)) return;
  ready_.push_back(std::move(channel));
}

bool Reactor::Collect(int milliseconds) {
  std::array<epoll_event, kMaxEvents> events;
  const int count =
      ::epoll_wait(poll_fd_.get(), events.data(), kMaxEvents, milliseconds);
  if (count <= 0) return false;
  absl::MutexLock lock(&mu_);
  for (int i = 0; i < count; ++i) {
    const auto found = channels_.find(events[static_cast<size_t>(i)].data.u64);
    if (found == channels_.end()) continue;  // a nudge, or just removed
    Enqueue(found->second, events[static_cast<size_t>(i)].events);
  }
  return true;
}

bool Reactor::Spin(bool for_pool) {
  const absl::Duration budget = spin_.Budget();
  if (budget == absl::ZeroDuration()) return Collect(0);
  lead_wanted_ = false;  // before anybody can see that we spin
  pool_spins_ = for_pool;
  const absl::Time end = absl::Now() + budget;
  bool found = Collect(0);
  while (!found && !stopped_ && !(for_pool && lead_wanted_) &&
         absl::Now() < end) {
    ::sched_yield();  // who is to answer may need this core
    found = Collect(0);
  }
  // Else it makes room when it has released the lead.
  if (found) pool_spins_ = false;
  found ? spin_.Found() : spin_.Missed();
  return found;
}

void Reactor::Poll(absl::Time deadline) {
  const bool for_pool = deadline == absl::InfinitePast();
  if (Spin(for_pool) || for_pool) return;
  Collect(PollMilliseconds(deadline));
}

void Reactor::ClaimFromPool() {
  lead_wanted_ = true;
  while (pool_spins_) ::sched_yield();
}

bool Reactor::LeadOnce(absl::Time deadline) {
  if (ready_.empty()) Poll(deadline);
  if (ready_.empty()) return false;
  const std::shared_ptr<Channel> channel = std::move(ready_.front());
  ready_.pop_front();
  channel->queued_ = false;
  Channel::Turn turn = channel->OnReady(std::exchange(channel->events_, 0));
  if (turn.more) Enqueue(channel, 0);
  if (turn.deliver) turn.deliver();
  return true;
}

void Reactor::Follow(Waiter& waiter, absl::Time deadline) {
  while (!waiter.signalled && !stopped_ && (!started_ || !NobodyLeads())) {
    if (waiter.wake.WaitWithDeadline(&mu_, deadline)) return;
  }
}

void Reactor::WaitOnce(const std::function<bool()>& done, absl::Time deadline) {
  Waiter waiter;
  std::list<Waiter*>::iterator place;
  bool leads = false;
  if (pool_spins_) ClaimFromPool();
  {
    absl::MutexLock lock(&mu_);
    leads = TryLeadLocked(true);
    if (!leads) place = followers_.insert(followers_.end(), &waiter);
  }
  // From here on a change is not missed: it nudges the leader or signals us.
  const bool ready = done();
  if (leads) {
    if (!ready) LeadOnce(deadline);
    return;
  }
  absl::MutexLock lock(&mu_);
  if (!ready) Follow(waiter, deadline);
  followers_.erase(place);
}

bool Reactor::Wait(const std::function<bool()>& done, absl::Time deadline) {
  waits_in_progress.push_back(this);
  bool ready = done();
  while (!ready && !stopped_ && absl::Now() < deadline) {
    WaitOnce(done, deadline);
    ready = done();
  }
  LeaveWait();
  waits_in_progress.pop_back();
  return ready;
}

void Reactor::LeaveWait() {
  absl::MutexLock lock(&mu_);
  if (Leads()) {
    ReleaseLocked();
  } else if (watching_ == 0 && NobodyLeads()) {
    SummonLocked();
  }
}

bool Reactor::OnLentThread() const {
  return std::find(waits_in_progress.begin(), waits_in_progress.end(), this) !=
         waits_in_progress.end();
}

void Reactor::Wake() {
  absl::MutexLock lock(&mu_);
  for (Waiter* waiter : followers_) {
    waiter->signalled = true;
    waiter->wake.Signal();
  }
  // The leader looks again after each delivery of its own.
  if (leader_waits_ && !Leads()) Ring(nudge_fd_);
}

void Reactor::Stop() {
  std::list<Worker> workers;
  std::unordered_map<uint64_t, std::shared_ptr<Channel>> channels;
  {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
    Ring(stop_fd_);
    Ring(nudge_fd_);
    for (Waiter* waiter : followers_) waiter->wake.Signal();
    workers.swap(workers_);
  }
  for (Worker& worker : workers) worker.thread.join();
  absl::MutexLock lock(&mu_);
  // A thread in Wait may be about to give up the lead.
  mu_.Await(absl::Condition(this, &Reactor::NobodyLeads));
  channels.swap(channels_);
  ready_.clear();
  tasks_.clear();
}

}  // namespace disttrain::transport
