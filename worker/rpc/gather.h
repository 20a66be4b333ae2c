// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "worker/rpc/error.h"
#include "worker/rpc/future.h"
#include "worker/rpc/rref.h"

namespace disttrain::rpc {

// One member's answer to one call of a group.
template <class R>
struct MemberResult {
  Peer peer;
  R value;
};
template <>
struct MemberResult<void> {
  Peer peer;
};

namespace internal {

// Counts results as they come. Threads: thread-safe.
class Countdown {
 public:
  // Order of arrival, from 0. A failure ends any wait.
  size_t Arrive(bool failed) {
    size_t order = 0;
    std::shared_ptr<State<void>> reached;
    {
      absl::MutexLock lock(&mu_);
      order = arrived_++;
      if (failed) ++failures_;
      if (arrived_ >= wanted_ || failed) reached = std::move(reached_);
    }
    if (reached != nullptr) reached->Set({});
    return order;
  }
  // One failure has been thrown.
  void ForgetFailure() {
    absl::MutexLock lock(&mu_);
    --failures_;
  }
  // Waits until `count` have arrived, or one has failed.
  void WaitFor(size_t count) {
    const auto reached = std::make_shared<State<void>>();
    {
      absl::MutexLock lock(&mu_);
      if (arrived_ >= count || failures_ > 0) return;
      wanted_ = count;
      reached_ = reached;
    }
    reached->WaitOrThrow();
  }

 private:
  absl::Mutex mu_;
  size_t arrived_ ABSL_GUARDED_BY(mu_) = 0;
  size_t failures_ ABSL_GUARDED_BY(mu_) = 0;
  size_t wanted_ ABSL_GUARDED_BY(mu_) = SIZE_MAX;
  std::shared_ptr<State<void>> reached_ ABSL_GUARDED_BY(mu_);
};

// A result that nobody has taken yet: the member is busy.
struct Uncollected {
  std::shared_ptr<FutureState> state;
  uint64_t token = 0;
};

template <class T>
struct GroupMember {
  Peer peer;
  RRef<T> object;  // empty: lost
  Uncollected busy;
  // Its object in the peer's new life, while it is made.
  std::shared_ptr<State<RRef<T>>> coming;
};

// Shared by a group and its rounds, which may outlive it.
template <class T>
struct GroupMembers {
  absl::Mutex mu;
  std::vector<GroupMember<T>> members ABSL_GUARDED_BY(mu);  // by rank
  uint64_t next_token ABSL_GUARDED_BY(mu) = 1;

  // The member's result has been taken; `lost`: it is gone too.
  void Collected(int rank, uint64_t token, bool lost) {
    absl::MutexLock lock(&mu);
    for (GroupMember<T>& member : members) {
      if (member.peer.rank != rank || member.busy.token != token) continue;
      member.busy = {};
      if (lost) member.object = RRef<T>();
    }
  }
};

}  // namespace internal

// The answers to one call of a group, as they come. Results that nobody takes
// stay with their members and come out in a later round.
//
// Threads: one at a time.
template <class T, class R>
class Gather {
 public:
  using Result = MemberResult<R>;
  struct Pending {
    Peer peer;
    Future<R> future;
    uint64_t token = 0;
  };

  Gather(std::shared_ptr<internal::GroupMembers<T>> members,
         std::vector<Pending> pending)
      : members_(std::move(members)),
        pending_(std::move(pending)),
        countdown_(std::make_shared<internal::Countdown>()),
        order_(std::make_shared<Order>(pending_.size())) {
    for (size_t i = 0; i < pending_.size(); ++i) {
      internal::FutureState* const state = pending_[i].future.state().get();
      state->OnReady([i, state, replaceable = pending_[i].peer.replaceable,
                      order = order_, countdown = countdown_] {
        const bool failed = Fails(state->error(), replaceable);
        order->arrival[i].store(countdown->Arrive(failed) + 1);
      });
    }
  }

  // Members that were called in this round or are still busy from an earlier
  // one: the most results that can come.
  size_t size() const { return pending_.size(); }

  // Waits for every member.
  std::vector<Result> All() { return First(pending_.size()); }

  // Waits for `count` members (or all, if there are fewer) and gives their
  // results, sorted by rank. Throws a member's error as soon as it comes; the
  // others' results stay. The loss of a replaceable member is no error: it
  // counts as one of the `count`, without a result, so there may be none.
  std::vector<Result> First(size_t count) {
    count = std::min(count, pending_.size() - taken_);
    countdown_->WaitFor(taken_ + count);
    std::vector<size_t> arrived = Arrived();
    ThrowFailure(arrived);
    arrived.resize(std::min(count, arrived.size()));
    std::vector<Result> results;
    for (const size_t index : arrived) Take(index, results);
    std::sort(results.begin(), results.end(),
              [](const Result& a, const Result& b) {
                return a.peer.rank < b.peer.rank;
              });
    return results;
  }

  // Waits for one member, whichever is first; for the next one if it is lost.
  // Throws std::logic_error if none is left.
  Result Any() {
    while (taken_ < pending_.size()) {
      std::vector<Result> results = First(1);
      if (!results.empty()) return std::move(results.front());
    }
    throw std::logic_error("Any: the group has no member to wait for");
  }

 private:
  struct Order {
    explicit Order(size_t size) : arrival(size) {}
    std::vector<std::atomic<size_t>> arrival;  // 0: not yet; else order + 1
  };

  static bool Fails(const std::exception_ptr& error, bool replaceable) {
    return error != nullptr &&
           !(replaceable && internal::CodeOf(error) == ErrorCode::kPeerLost);
  }

  void ThrowFailure(const std::vector<size_t>& arrived) {
    for (const size_t index : arrived) {
      const auto state = pending_[index].future.state();
      if (!Fails(state->error(), pending_[index].peer.replaceable)) continue;
      countdown_->ForgetFailure();
      Collect(index);
      std::rethrow_exception(state->error());
    }
  }

  // Those that are here and not taken, earliest first.
  std::vector<size_t> Arrived() const {
    std::vector<std::pair<size_t, size_t>> keyed;
    for (size_t i = 0; i < pending_.size(); ++i) {
      if (!pending_[i].future.valid() || !pending_[i].future.Ready()) continue;
      // One that has no number yet is later than those that have.
      keyed.emplace_back(order_->arrival[i].load() - 1, i);
    }
    std::sort(keyed.begin(), keyed.end());
    std::vector<size_t> arrived;
    arrived.reserve(keyed.size());
    for (const auto& [at, i] : keyed) arrived.push_back(i);
    return arrived;
  }

  // The member is free again, or lost.
  Pending Collect(size_t index) {
    Pending one = std::exchange(pending_[index], {});
    ++taken_;
    const std::exception_ptr error = one.future.state()->error();
    members_->Collected(
        one.peer.rank, one.token,
        error != nullptr && internal::CodeOf(error) == ErrorCode::kPeerLost);
    return one;
  }

  void Take(size_t index, std::vector<Result>& results) {
    Pending one = Collect(index);
    if (one.future.state()->error() != nullptr) return;  // lost
    if constexpr (std::is_void_v<R>) {
      results.push_back({one.peer});
    } else {
      results.push_back({one.peer, std::move(one.future).Get()});
    }
  }

  std::shared_ptr<internal::GroupMembers<T>> members_;
  std::vector<Pending> pending_;
  std::shared_ptr<internal::Countdown> countdown_;
  std::shared_ptr<Order> order_;
  size_t taken_ = 0;
};

}  // namespace disttrain::rpc
