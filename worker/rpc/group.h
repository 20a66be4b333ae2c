// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "worker/rpc/call.h"
#include "worker/rpc/future.h"
#include "worker/rpc/gather.h"
#include "worker/rpc/rref.h"

namespace disttrain::rpc {

struct GroupOptions {
  // For the creation of the members' objects.
  CallOptions creation = {};
  // True for roles with `restart: Rank`: a lost member is left out until
  // Rejoin. False: its PeerLost comes out of the round.
  bool members_may_be_lost = false;
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

  uint64_t SetBusy(int rank,
                   const std::shared_ptr<internal::FutureState>& state) {
    absl::MutexLock lock(&members_->mu);
    const uint64_t token = members_->next_token++;
    for (auto& member : members_->members) {
      if (member.peer.rank == rank) member.busy = {state, token};
    }
    return token;
  }

  std::shared_ptr<internal::GroupMembers<T>> members_;
  GroupOptions options_;
  std::function<Future<RRef<T>>(const Peer&)> create_;
};

}  // namespace disttrain::rpc
