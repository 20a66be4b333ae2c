// SPDX-License-Identifier: Apache-2.0
#include "worker/rpc/call_table.h"

#include <algorithm>

namespace disttrain::rpc::internal {

bool CallTable::AddOutgoing(const Outgoing& call) {
  absl::MutexLock lock(&mu_);
  const bool first = call->deadline < earliest_;
  if (first) earliest_ = call->deadline;
  outgoing_.emplace(call->id, call);
  return first;
}

void CallTable::Detach(const Outgoing& call) {
  if (call->kept.empty()) return;
  detached_.emplace(call->id, Detached{call->peer.rank, call->peer.incarnation,
                                       std::move(call->kept)});
}

CallTable::Outgoing CallTable::TakeOutgoing(uint64_t id, bool detach) {
  absl::MutexLock lock(&mu_);
  const auto it = outgoing_.find(id);
  if (it == outgoing_.end()) return nullptr;
  Outgoing call = std::move(it->second);
  outgoing_.erase(it);
  if (detach) Detach(call);
  return call;
}

bool CallTable::IsOutgoingTo(uint64_t id, int rank, int incarnation) const {
  absl::MutexLock lock(&mu_);
  const auto it = outgoing_.find(id);
  return it != outgoing_.end() && it->second->peer.rank == rank &&
         it->second->peer.incarnation == incarnation;
}

std::vector<CallTable::Outgoing> CallTable::TakeOutgoingIf(
    const std::function<bool(const OutgoingCall&)>& matches) {
  absl::MutexLock lock(&mu_);
  std::vector<Outgoing> taken;
  for (auto it = outgoing_.begin(); it != outgoing_.end();) {
    if (matches(*it->second)) {
      Detach(it->second);
      taken.push_back(std::move(it->second));
      outgoing_.erase(it++);
    } else {
      ++it;
    }
  }
  return taken;
}

std::pair<std::vector<uint64_t>, absl::Time> CallTable::Due(absl::Time now) {
  absl::MutexLock lock(&mu_);
  std::vector<uint64_t> due;
  earliest_ = absl::InfiniteFuture();
  for (const auto& [id, call] : outgoing_) {
    if (call->deadline <= now) {
      due.push_back(id);
    } else {
      earliest_ = std::min(earliest_, call->deadline);
    }
  }
  return {std::move(due), earliest_};
}

std::vector<std::shared_ptr<ReferenceState>> CallTable::DropDetached(
    uint64_t id) {
  absl::MutexLock lock(&mu_);
  const auto it = detached_.find(id);
  if (it == detached_.end()) return {};
  auto kept = std::move(it->second.kept);
  detached_.erase(it);
  return kept;
}

std::vector<std::shared_ptr<ReferenceState>> CallTable::DropDetachedOf(
    int rank, int incarnation) {
  absl::MutexLock lock(&mu_);
  std::vector<std::shared_ptr<ReferenceState>> all;
  for (auto it = detached_.begin(); it != detached_.end();) {
    if (it->second.rank == rank && it->second.incarnation == incarnation) {
      for (auto& state : it->second.kept) all.push_back(std::move(state));
      detached_.erase(it++);
    } else {
      ++it;
    }
  }
  return all;
}

CallTable::Admission CallTable::AddIncoming(const Incoming& call,
                                            size_t limit) {
  absl::MutexLock lock(&mu_);
  if (incoming_.size() >= limit) return Admission::kFull;
  const IncomingKey key{call->caller().rank, call->caller().incarnation,
                        call->call_id()};
  if (!early_cancels_.empty() && early_cancels_.contains(key)) {
    return Admission::kCancelled;
  }
  return incoming_.emplace(key, call).second ? Admission::kAdmitted
                                             : Admission::kDuplicate;
}

CallTable::Incoming CallTable::FindCancelled(const Peer& caller, uint64_t id) {
  absl::MutexLock lock(&mu_);
  const IncomingKey key{caller.rank, caller.incarnation, id};
  const auto it = incoming_.find(key);
  if (it != incoming_.end()) return it->second;
  if (!early_cancels_.insert(key).second) return nullptr;
  early_cancel_order_.push_back(key);
  if (early_cancel_order_.size() > kEarlyCancels) {
    early_cancels_.erase(early_cancel_order_.front());
    early_cancel_order_.pop_front();
  }
  return nullptr;
}

CallTable::Incoming CallTable::FindIncoming(const Peer& caller,
                                            uint64_t id) const {
  absl::MutexLock lock(&mu_);
  const auto it =
      incoming_.find(IncomingKey{caller.rank, caller.incarnation, id});
  return it == incoming_.end() ? nullptr : it->second;
}

void CallTable::RemoveIncoming(const ServedCall& call) {
  Incoming removed;  // destroyed after the lock
  absl::MutexLock lock(&mu_);
  const auto it = incoming_.find(IncomingKey{
      call.caller().rank, call.caller().incarnation, call.call_id()});
  if (it == incoming_.end() || it->second.get() != &call) return;
  removed = std::move(it->second);
  incoming_.erase(it);
}

std::vector<CallTable::Incoming> CallTable::IncomingOf(
    const Peer* caller) const {
  absl::MutexLock lock(&mu_);
  std::vector<Incoming> calls;
  for (const auto& [key, call] : incoming_) {
    if (caller == nullptr ||
        (caller->rank == key.rank && caller->incarnation == key.incarnation)) {
      calls.push_back(call);
    }
  }
  return calls;
}

std::vector<CallSnapshot> CallTable::AllOutgoing() const {
  absl::MutexLock lock(&mu_);
  std::vector<CallSnapshot> calls;
  calls.reserve(outgoing_.size());
  for (const auto& [id, call] : outgoing_) {
    calls.push_back({.label = std::string(call->label),
                     .peer = call->peer,
                     .start = call->start,
                     .deadline = call->deadline});
  }
  std::sort(calls.begin(), calls.end(),
            [](const auto& a, const auto& b) { return a.start < b.start; });
  return calls;
}

size_t CallTable::outgoing_count() const {
  absl::MutexLock lock(&mu_);
  return outgoing_.size();
}

size_t CallTable::incoming_count() const {
  absl::MutexLock lock(&mu_);
  return incoming_.size();
}

bool CallTable::WaitIdle(absl::Time deadline) const {
  absl::MutexLock lock(&mu_);
  return mu_.AwaitWithDeadline(absl::Condition(this, &CallTable::Idle),
                               deadline);
}

}  // namespace disttrain::rpc::internal
