// SPDX-License-Identifier: Apache-2.0
#include "worker/rpc/reference_table.h"

#include <utility>

#include "fmt/format.h"
#include "worker/rpc/registry.h"

namespace disttrain::rpc::internal {
namespace {

ForkId ForkOf(const v1::Reference& reference) {
  return {reference.parent_rank(), reference.parent_incarnation(),
          reference.fork()};
}

template <typename Request>
std::unique_ptr<Request> AboutFork(const v1::Reference& reference) {
  auto request = std::make_unique<Request>();
  *request->mutable_object() = reference.object();
  request->set_fork(reference.fork());
  request->set_parent_rank(reference.parent_rank());
  request->set_parent_incarnation(reference.parent_incarnation());
  return request;
}

}  // namespace

ObjectId FromWire(const v1::ObjectId& id) {
  return {id.owner_rank(), id.owner_incarnation(), id.object()};
}

void ToWire(const ObjectId& id, v1::ObjectId& out) {
  out.set_owner_rank(id.owner_rank);
  out.set_owner_incarnation(id.owner_incarnation);
  out.set_object(id.object);
}

ReferencePtr ReferenceTable::Own(std::shared_ptr<void> value,
                                 const ClassEntry& entry,
                                 std::weak_ptr<Core> core) {
  auto state = std::make_shared<ReferenceState>();
  state->owner = self_;
  state->class_name = std::string(entry.name);
  state->value = std::move(value);
  state->entry = &entry;
  state->core = std::move(core);
  absl::MutexLock lock(&mu_);
  state->id = {self_.rank, self_.incarnation, NextNumber()};
  owned_[state->id.object].state = state;
  return state;
}

ReferencePtr ReferenceTable::Find(const v1::ObjectId& id) const {
  absl::MutexLock lock(&mu_);
  const auto it = owned_.find(id.object());
  if (it == owned_.end() || !IsMine(id.owner_rank(), id.owner_incarnation())) {
    return nullptr;
  }
  return it->second.state.lock();
}

bool ReferenceTable::AddFork(const v1::ObjectId& id, const ForkId& fork,
                             const Peer& holder) {
  absl::MutexLock lock(&mu_);
  const auto it = owned_.find(id.object());
  if (it == owned_.end() || !IsMine(id.owner_rank(), id.owner_incarnation())) {
    return false;
  }
  ReferencePtr state = it->second.state.lock();
  if (state == nullptr) return false;
  it->second.kept = std::move(state);
  it->second.forks[fork] = {holder.rank, holder.incarnation};
  return true;
}

ReferencePtr ReferenceTable::DropFork(const v1::ObjectId& id,
                                      const ForkId& fork) {
  absl::MutexLock lock(&mu_);
  const auto it = owned_.find(id.object());
  if (it == owned_.end() || !IsMine(id.owner_rank(), id.owner_incarnation())) {
    return nullptr;
  }
  if (it->second.forks.erase(fork) == 0 || !it->second.forks.empty()) {
    return nullptr;
  }
  return std::move(it->second.kept);
}

std::vector<ReferencePtr> ReferenceTable::DropHolder(const Peer& holder) {
  absl::MutexLock lock(&mu_);
  std::vector<ReferencePtr> dropped;
  const std::pair<int, int> gone{holder.rank, holder.incarnation};
  for (auto& [number, owned] : owned_) {
    std::erase_if(owned.forks,
                  [&](const auto& fork) { return fork.second == gone; });
    if (owned.forks.empty() && owned.kept != nullptr) {
      dropped.push_back(std::move(owned.kept));
    }
  }
  return dropped;
}

void ReferenceTable::EraseOwned(const ObjectId& id) {
  absl::MutexLock lock(&mu_);
  owned_.erase(id.object);
}

void ReferenceTable::Write(const ReferenceState& state, const Peer& to,
                           v1::Reference& out) {
  ToWire(state.id, *out.mutable_object());
  out.set_class_name(state.class_name);
  const bool to_owner = to.rank == state.id.owner_rank &&
                        to.incarnation == state.id.owner_incarnation;
  if (to_owner) return;
  absl::MutexLock lock(&mu_);
  const ForkId fork{self_.rank, self_.incarnation, NextNumber()};
  out.set_fork(fork.number);
  out.set_parent_rank(fork.parent_rank);
  out.set_parent_incarnation(fork.parent_incarnation);
  if (!state.local()) return;
  Owned& owned = owned_[state.id.object];
  owned.kept = owned.state.lock();  // alive: `state` is
  owned.forks[fork] = {to.rank, to.incarnation};
}

ReferencePtr ReferenceTable::Unwrite(const v1::Reference& written) {
  if (written.fork() == 0) return nullptr;
  return DropFork(written.object(), ForkOf(written));
}

absl::StatusOr<ReferenceTable::Claimed> ReferenceTable::Claim(
    const v1::Reference& reference, const Peer& from, const Peer* owner,
    std::weak_ptr<Core> core) {
  const ObjectId id = FromWire(reference.object());
  Claimed claimed;
  if (IsMine(id.owner_rank, id.owner_incarnation)) {
    claimed.state = Find(reference.object());
    if (claimed.state != nullptr) return claimed;
    return absl::NotFoundError(fmt::format(
        "object {} of class {} is gone: its last reference was released",
        id.object, reference.class_name()));
  }
  if (owner == nullptr) {
    return absl::UnavailableError(fmt::format(
        "the owner of the {} (rank {}, incarnation {}) was lost",
        reference.class_name(), id.owner_rank, id.owner_incarnation));
  }
  // Only the owner itself may say that a fork is noted already.
  const bool from_owner = from == *owner &&
                          reference.parent_rank() == owner->rank &&
                          reference.parent_incarnation() == owner->incarnation;
  absl::MutexLock lock(&mu_);
  std::weak_ptr<ReferenceState>& held = held_[id];
  claimed.state = held.lock();
  if (claimed.state != nullptr) {
    if (from_owner) claimed.release = AboutFork<v1::ReleaseRequest>(reference);
    return claimed;
  }
  claimed.state = std::make_shared<ReferenceState>();
  claimed.state->id = id;
  claimed.state->owner = *owner;
  claimed.state->class_name = reference.class_name();
  claimed.state->fork = ForkOf(reference);
  claimed.state->core = std::move(core);
  held = claimed.state;
  if (!from_owner) {
    claimed.ask = AboutFork<v1::ForkRequest>(reference);
    claimed.ask->set_request_id(NextNumber());
    pending_[id].request_id = claimed.ask->request_id();
  }
  return claimed;
}

ReferenceTable::Waiting ReferenceTable::AwaitFork(const ReferenceState& state,
                                                  Waiting waiting) {
  absl::MutexLock lock(&mu_);
  const auto it = pending_.find(state.id);
  if (it == pending_.end()) return waiting;
  it->second.waiting.push_back(std::move(waiting));
  return nullptr;
}

std::vector<ReferenceTable::Waiting> ReferenceTable::SettleFork(
    uint64_t request_id) {
  absl::MutexLock lock(&mu_);
  for (auto it = pending_.begin(); it != pending_.end(); ++it) {
    if (it->second.request_id != request_id) continue;
    std::vector<Waiting> waiting = std::move(it->second.waiting);
    pending_.erase(it);
    return waiting;
  }
  return {};
}

std::vector<ReferenceTable::Waiting> ReferenceTable::SettleForksOf(
    const Peer& owner) {
  absl::MutexLock lock(&mu_);
  std::vector<Waiting> all;
  for (auto it = pending_.begin(); it != pending_.end();) {
    if (it->first.owner_rank == owner.rank &&
        it->first.owner_incarnation == owner.incarnation) {
      for (Waiting& one : it->second.waiting) all.push_back(std::move(one));
      it = pending_.erase(it);
    } else {
      ++it;
    }
  }
  return all;
}

void ReferenceTable::EraseHandle(const ObjectId& id) {
  absl::MutexLock lock(&mu_);
  const auto it = held_.find(id);
  if (it != held_.end() && it->second.expired()) held_.erase(it);
}

ReferenceTable::Counts ReferenceTable::counts() const {
  absl::MutexLock lock(&mu_);
  Counts counts;
  counts.owned = static_cast<int64_t>(owned_.size());
  for (const auto& [number, owned] : owned_) {
    counts.forks += static_cast<int64_t>(owned.forks.size());
  }
  counts.held = static_cast<int64_t>(held_.size());
  counts.pending = static_cast<int64_t>(pending_.size());
  return counts;
}

}  // namespace disttrain::rpc::internal
