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
};

// One T on each of several peers, called together.
//
// A member has at most one call of the group in flight. One that is still busy
// with an earlier call, or whose result nobody has taken, is not called again:
// its late result comes out in the round that asks next. (A late result of a
// call with another result type is dropped once it is there.)
//
// The loss of a member is an error of the round, unless its peer is
// replaceable: then the group goes on with the rest, and a rank that comes back
// gets its T again, made like the first one. It takes part from the first round
// that begins after that.
//
// Threads: one at a time, each with an agent.
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
        core_(internal::CurrentCore()),
        create_([arguments = std::move(arguments),
                 options](const Peer& peer) mutable {
          return Create(peer, options.creation, arguments(peer));
        }) {
    std::sort(peers.begin(), peers.end(),
              [](const Peer& a, const Peer& b) { return a.rank < b.rank; });
    for (const Peer& peer : peers) Make(members_->members.emplace_back(), peer);
    for (auto& member : members_->members) Adopt(member);
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

  // Blocking: only while all members are lost and one of them may come back,
  // until it has. Throws what its constructor threw; rpc::Cancelled when the
  // agent ends meanwhile.
  template <class M, class... A>
  Gather<T, internal::ResultOf<M>> CallWith(const CallOptions& options,
                                            M method, const A&... arguments) {
    using R = internal::ResultOf<M>;
    Renew(nullptr);
    auto pending = Start<R>(options, method, arguments...);
    while (pending.empty() && AllAreAway()) {
      const auto change = internal::NextReturn(core_);
      Renew(change);
      pending = Start<R>(options, method, arguments...);
      if (pending.empty()) change->WaitOrThrow();
    }
    return Gather<T, R>(members_, std::move(pending));
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

  using Member = internal::GroupMember<T>;

  void Make(Member& member, const Peer& peer) const {
    member = {peer, {}, {}, create_(peer).state()};
  }

  // Takes the object, once it has been made. Throws why not, but for a loss
  // that may be made good.
  static void Adopt(Member& member) {
    const Future<RRef<T>> made(std::exchange(member.coming, nullptr));
    try {
      member.object = made.Get();
    } catch (const PeerLost&) {
      if (!member.peer.replaceable) throw;
    }
  }

  // Looks which members have come back; `change` is resolved when one that is
  // being made is ready.
  void Renew(const std::shared_ptr<internal::State<void>>& change) {
    for (Member& member : Snapshot()) {
      if (!member.peer.replaceable) continue;
      const auto before = member.coming;
      if (member.coming != nullptr && member.coming->ready()) Adopt(member);
      const auto life = internal::LivingPeer(*core_, member.peer.rank);
      if (life.has_value() && life->incarnation > member.peer.incarnation) {
        Make(member, *life);
      }
      if (member.coming != nullptr && change != nullptr) {
        member.coming->OnReady([change] { change->Set({}); });
      }
      if (member.coming != before) Store(member);
    }
  }

  // Calls those that are free, and goes on with those that are busy.
  template <class R, class M, class... A>
  std::vector<typename Gather<T, R>::Pending> Start(const CallOptions& options,
                                                    M method,
                                                    const A&... arguments) {
    std::vector<typename Gather<T, R>::Pending> pending;
    for (Member& member : Snapshot()) {
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
    return pending;
  }

  // All are lost, and one of them may come back.
  bool AllAreAway() const {
    absl::MutexLock lock(&members_->mu);
    const std::vector<Member>& all = members_->members;
    return std::none_of(all.begin(), all.end(),
                        [](const Member& m) { return m.object.valid(); }) &&
           std::any_of(all.begin(), all.end(),
                       [](const Member& m) { return m.peer.replaceable; });
  }

  std::vector<Member> Snapshot() const {
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

  void Store(const Member& renewed) {
    absl::MutexLock lock(&members_->mu);
    for (Member& member : members_->members) {
      if (member.peer.rank == renewed.peer.rank) member = renewed;
    }
  }

  std::shared_ptr<internal::GroupMembers<T>> members_;
  std::shared_ptr<internal::Core> core_;
  std::function<Future<RRef<T>>(const Peer&)> create_;
};

}  // namespace disttrain::rpc
