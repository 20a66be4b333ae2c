// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "worker/rpc/call.h"
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

struct GroupOptions {
  // For the creation of the members' objects.
  CallOptions creation = {};
  // True for roles with `restart: Rank`: a lost member is left out until
  // Rejoin. False: its PeerLost comes out of the round.
  bool members_may_be_lost = false;
};

namespace internal {

// Counts results as they come. Threads: thread-safe.
class Countdown {
 public:
  Countdown() : reached_(std::make_shared<State<void>>()) {}

  // Order of arrival, from 0.
  size_t Arrive() {
    size_t order = 0;
    bool enough = false;
    {
      absl::MutexLock lock(&mu_);
      order = arrived_++;
      enough = arrived_ >= wanted_;
    }
    if (enough) reached_->Set({});
    return order;
  }
  // Waits until `count` have arrived.
  void WaitFor(size_t count) {
    bool enough = false;
    {
      absl::MutexLock lock(&mu_);
      wanted_ = count;
      enough = arrived_ >= wanted_;
    }
    if (!enough) reached_->WaitOrThrow();
  }

 private:
  absl::Mutex mu_;
  size_t arrived_ ABSL_GUARDED_BY(mu_) = 0;
  size_t wanted_ ABSL_GUARDED_BY(mu_) = SIZE_MAX;
  std::shared_ptr<State<void>> reached_;
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
};

// Shared by a group and its rounds, which may outlive it.
template <class T>
struct GroupMembers {
  absl::Mutex mu;
  std::vector<GroupMember<T>> members ABSL_GUARDED_BY(mu);  // by rank
  uint64_t next_token ABSL_GUARDED_BY(mu) = 1;
  bool may_be_lost = false;

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
      pending_[i].future.state()->OnReady(
          [i, order = order_, countdown = countdown_] {
            // Written before Arrive: whoever counts it may read it.
            order->arrival[i].store(countdown->Arrive() + 1);
          });
    }
  }

  // Members that were called in this round or are still busy from an earlier
  // one: the most results that can come.
  size_t size() const { return pending_.size(); }

  // Waits for every member.
  std::vector<Result> All() { return First(pending_.size()); }

  // Waits for `count` members (or all, if there are fewer) and gives their
  // results, sorted by rank. Throws the first error of a member; if members may
  // be lost, a loss counts as one of the `count`, without a result, and only
  // the loss of all is an error.
  std::vector<Result> First(size_t count) {
    count = std::min(count, pending_.size());
    countdown_->WaitFor(taken_ + count);
    std::vector<Result> results;
    std::exception_ptr lost;
    for (const size_t index : FirstArrived(count)) {
      Take(index, results, lost);
    }
    if (results.empty() && lost != nullptr) std::rethrow_exception(lost);
    std::sort(results.begin(), results.end(),
              [](const Result& a, const Result& b) {
                return a.peer.rank < b.peer.rank;
              });
    return results;
  }

  // Waits for one member, whichever is first.
  Result Any() {
    std::vector<Result> results = First(1);
    if (results.empty()) {
      throw std::logic_error("Any: the group has no member to wait for");
    }
    return std::move(results.front());
  }

 private:
  struct Order {
    explicit Order(size_t size) : arrival(size) {}
    std::vector<std::atomic<size_t>> arrival;  // 0: not yet; else order + 1
  };

  // The `count` earliest of those that are here and not taken.
  std::vector<size_t> FirstArrived(size_t count) const {
    std::vector<size_t> arrived;
    for (size_t i = 0; i < pending_.size(); ++i) {
      if (pending_[i].future.valid() && pending_[i].future.Ready()) {
        arrived.push_back(i);
      }
    }
    // An arrival that has no number yet is later than those that have.
    const auto key = [&](size_t i) { return order_->arrival[i].load() - 1; };
    std::vector<std::pair<size_t, size_t>> keyed;
    for (const size_t i : arrived) keyed.emplace_back(key(i), i);
    std::sort(keyed.begin(), keyed.end());
    if (keyed.size() > count) keyed.resize(count);
    std::vector<size_t> first;
    for (const auto& [at, i] : keyed) first.push_back(i);
    return first;
  }

  void Take(size_t index, std::vector<Result>& results,
            std::exception_ptr& lost) {
    Pending one = std::move(pending_[index]);
    pending_[index].future = Future<R>();
    ++taken_;
    const std::exception_ptr error = one.future.state()->error();
    const bool peer_lost =
        error != nullptr && internal::CodeOf(error) == ErrorCode::kPeerLost;
    members_->Collected(one.peer.rank, one.token, peer_lost);
    if (peer_lost && members_->may_be_lost) {
      lost = error;
      return;
    }
    if (error != nullptr) std::rethrow_exception(error);
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

// One T on each of several peers, called together.
//
// A member has at most one call of the group in flight. One that is still busy
// with an earlier call, or whose result nobody has taken, is not called again:
// its late result comes out in the round that asks next. (A late result of a
// call with another result type is dropped once it is there.)
//
// Threads: one at a time. The creating thread needs an agent.
template <class T>
class Group {
 public:
  // Makes the objects, in parallel. `arguments(peer)` gives the constructor's
  // argument, or a std::tuple of them. Throws the first member's error, by
  // rank; it names the member.
  template <class Factory>
  requires std::is_invocable_v<Factory&, const Peer&> Group(
      std::vector<Peer> peers, Factory arguments, GroupOptions options = {})
      : members_(std::make_shared<internal::GroupMembers<T>>()),
        options_(options),
        create_([arguments = std::move(arguments),
                 options](const Peer& peer) mutable {
          return Create(peer, options.creation, arguments(peer));
        }) {
    std::sort(peers.begin(), peers.end(),
              [](const Peer& a, const Peer& b) { return a.rank < b.rank; });
    members_->may_be_lost = options_.members_may_be_lost;
    std::vector<Future<RRef<T>>> made;
    made.reserve(peers.size());
    for (const Peer& peer : peers) made.push_back(create_(peer));
    for (size_t i = 0; i < peers.size(); ++i) {
      RRef<T> object = std::move(made[i]).Get();
      absl::MutexLock lock(&members_->mu);
      members_->members.push_back({peers[i], std::move(object), {}});
    }
  }

  // The same with constructors that take no argument.
  explicit Group(std::vector<Peer> peers, GroupOptions options = {})
      : Group(
            std::move(peers), [](const Peer&) { return std::tuple<>(); },
            options) {}

  size_t size() const {
    absl::MutexLock lock(&members_->mu);
    return members_->members.size();
  }

  // Each member's object, by rank; empty for lost members.
  std::vector<RRef<T>> Objects() const {
    absl::MutexLock lock(&members_->mu);
    std::vector<RRef<T>> objects;
    for (const auto& member : members_->members) {
      objects.push_back(member.object);
    }
    return objects;
  }

  // Calls a method on every member that is not busy; the same arguments for
  // all. Does not wait.
  template <class M, class... A>
  auto Call(M method, const A&... arguments) {
    return CallWith({}, method, arguments...);
  }

  template <class M, class... A>
  Gather<T, internal::ResultOf<M>> CallWith(const CallOptions& options,
                                            M method, const A&... arguments) {
    using R = internal::ResultOf<M>;
    std::vector<typename Gather<T, R>::Pending> pending;
    for (auto& member : Snapshot()) {
      auto carried =
          std::dynamic_pointer_cast<internal::State<R>>(member.busy.state);
      if (carried != nullptr) {
        pending.push_back({member.peer, Future<R>(carried), member.busy.token});
        continue;
      }
      const bool free =
          member.busy.state == nullptr || member.busy.state->ready();
      if (!member.object.valid() || !free) continue;
      Future<R> future =
          member.object.With(options).Async(method, arguments...);
      const uint64_t token = SetBusy(member.peer.rank, future.state());
      pending.push_back({member.peer, std::move(future), token});
    }
    return Gather<T, R>(members_, std::move(pending));
  }

  // A rank came back: gets its T again, made like the first ones. `peer` is its
  // new life. Blocking: until it is there. Throws: rpc::Error.
  void Rejoin(const Peer& peer) {
    RRef<T> object = create_(peer).Get();
    absl::MutexLock lock(&members_->mu);
    for (auto& member : members_->members) {
      if (member.peer.rank != peer.rank) continue;
      member = {peer, std::move(object), {}};
      return;
    }
    members_->members.push_back({peer, std::move(object), {}});
    std::sort(
        members_->members.begin(), members_->members.end(),
        [](const auto& a, const auto& b) { return a.peer.rank < b.peer.rank; });
  }

 private:
  template <class A>
  static Future<RRef<T>> Create(const Peer& peer, const CallOptions& options,
                                A&& argument) {
    return RemoteAsync<T>(peer, options, std::forward<A>(argument));
  }
  template <class... A>
  static Future<RRef<T>> Create(const Peer& peer, const CallOptions& options,
                                std::tuple<A...> arguments) {
    return std::apply(
        [&](auto&... argument) {
          return RemoteAsync<T>(peer, options, argument...);
        },
        arguments);
  }

  std::vector<internal::GroupMember<T>> Snapshot() const {
    absl::MutexLock lock(&members_->mu);
    return members_->members;
  }

  uint64_t SetBusy(int rank, std::shared_ptr<internal::FutureState> state) {
    absl::MutexLock lock(&members_->mu);
    const uint64_t token = members_->next_token++;
    for (auto& member : members_->members) {
      if (member.peer.rank == rank) member.busy = {std::move(state), token};
    }
    return token;
  }

  std::shared_ptr<internal::GroupMembers<T>> members_;
  GroupOptions options_;
  std::function<Future<RRef<T>>(const Peer&)> create_;
};

}  // namespace disttrain::rpc
