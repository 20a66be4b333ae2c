// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/work_queue.h"

#include <algorithm>

namespace disttrain {
namespace {

constexpr absl::Duration kFirstBackoff = absl::Milliseconds(5);
constexpr absl::Duration kMaxBackoff = absl::Seconds(1000);

std::string NamespaceOf(const std::string& key) {
  return key.substr(0, key.find('/'));
}

}  // namespace

void WorkQueue::Add(const std::string& key) {
  const absl::MutexLock lock(&mu_);
  AddLocked(key);
}

void WorkQueue::AddLocked(const std::string& key) {
  if (running_.count(key) > 0) {
    again_.insert(key);
    return;
  }
  if (!waiting_.emplace(key, clock_.Now()).second) return;
  ready_[NamespaceOf(key)].push_back(key);
  changed_.Signal();
}

void WorkQueue::AddAt(const std::string& key, absl::Time time) {
  if (time == absl::InfiniteFuture()) return;
  const absl::MutexLock lock(&mu_);
  AddAtLocked(key, time);
}

void WorkQueue::AddAtLocked(const std::string& key, absl::Time time) {
  const auto known = due_.find(key);
  if (known != due_.end()) {
    if (known->second <= time) return;
    timers_.erase({known->second, key});
  }
  due_[key] = time;
  timers_.emplace(time, key);
  // Every waiter: the one that is told may be waiting for another key.
  changed_.SignalAll();
}

void WorkQueue::AddBackingOff(const std::string& key) {
  const absl::MutexLock lock(&mu_);
  const int failures = std::min(failures_[key]++, 30);
  AddAtLocked(
      key, clock_.Now() +
               std::min(kFirstBackoff * (int64_t{1} << failures), kMaxBackoff));
}

void WorkQueue::ResetBackoff(const std::string& key) {
  const absl::MutexLock lock(&mu_);
  failures_.erase(key);
}

std::optional<std::string> WorkQueue::Next() {
  const absl::MutexLock lock(&mu_);
  while (!stopped_) {
    if (auto key = TakeReady()) return key;
    clock_.Wait(
        changed_, mu_,
        timers_.empty() ? absl::InfiniteFuture() : timers_.begin()->first);
  }
  return std::nullopt;
}

std::optional<std::string> WorkQueue::TryNext() {
  const absl::MutexLock lock(&mu_);
  return TakeReady();
}

void WorkQueue::MoveDue() {
  const absl::Time now = clock_.Now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const std::string key = timers_.begin()->second;
    timers_.erase(timers_.begin());
    due_.erase(key);
    AddLocked(key);
  }
}

std::optional<std::string> WorkQueue::TakeReady() {
  MoveDue();
  if (ready_.empty()) return std::nullopt;
  auto next = ready_.upper_bound(last_served_);
  if (next == ready_.end()) next = ready_.begin();
  last_served_ = next->first;
  std::string key = std::move(next->second.front());
  next->second.pop_front();
  if (next->second.empty()) ready_.erase(next);
  waiting_.erase(key);
  running_[key] = clock_.Now();
  return key;
}

void WorkQueue::Done(const std::string& key) {
  const absl::MutexLock lock(&mu_);
  running_.erase(key);
  if (again_.erase(key) > 0) AddLocked(key);
}

void WorkQueue::Forget(const std::string& key) {
  const absl::MutexLock lock(&mu_);
  failures_.erase(key);
  const auto known = due_.find(key);
  if (known == due_.end()) return;
  timers_.erase({known->second, key});
  due_.erase(known);
}

void WorkQueue::Stop() {
  const absl::MutexLock lock(&mu_);
  stopped_ = true;
  changed_.SignalAll();
}

absl::Time WorkQueue::NextDue() const {
  const absl::MutexLock lock(&mu_);
  return timers_.empty() ? absl::InfiniteFuture() : timers_.begin()->first;
}

absl::Duration WorkQueue::LongestWait() const {
  const absl::MutexLock lock(&mu_);
  absl::Duration longest = absl::ZeroDuration();
  const absl::Time now = clock_.Now();
  for (const auto* since : {&waiting_, &running_}) {
    for (const auto& [key, time] : *since) {
      longest = std::max(longest, now - time);
    }
  }
  return longest;
}

}  // namespace disttrain
