// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "worker/rpc/call.h"
#include "worker/rpc/future.h"
#include "worker/rpc/peer.h"
#include "worker/rpc/remote.h"

namespace disttrain::rpc {

namespace internal {

// Writes the arguments as the method's parameter types; starts the call.
template <class T, class M, class... A>
auto StartMethod(const std::shared_ptr<Core>& core,
                 const std::shared_ptr<ReferenceState>& target,
                 const CallOptions& options, bool synchronous, M method,
                 const A&... arguments) {
  using Traits = MethodTraits<M>;
  using R = std::remove_cvref_t<typename Traits::Result>;
  static_assert(std::is_base_of_v<typename Traits::Class, T>,
                "a method of another class");
  static_assert(sizeof...(A) == Traits::kArity,
                "the method takes another number of arguments");
  const std::string_view label = LabelOf<T>(method);
  if (label.empty()) {
    ThrowUnlisted(target->owner, RemoteTraits<T>::kName,
                  EntryOf<T>().ListMethods());
  }
  Request request(core, target, label,
                  label.substr(RemoteTraits<T>::kName.size() + 1));
  const auto add = [&]<class... P>(std::type_identity<std::tuple<P...>>) {
    static_assert((std::is_convertible_v<const A&, P> && ...),
                  "an argument is not convertible to the method's parameter");
    (request.template AddAs<P>(arguments), ...);
  };
  add(std::type_identity<typename Traits::Values>());
  auto state = std::make_shared<State<R>>();
  request.Start(state, options, synchronous);
  return Future<R>(std::move(state));
}

template <class M>
using ResultOf = std::remove_cvref_t<typename MethodTraits<M>::Result>;

}  // namespace internal

// A counted handle on an object that lives in one process of the job, its
// owner; may be an argument or a result of calls, and be handed on to third
// ranks. The object lives until the last handle anywhere is gone, or its owner
// is; handles of a lost process count no longer. An object that comes back to
// its owner is the same object.
//
// Threads: thread-safe like a std::shared_ptr (copies may be used in parallel).
// Destruction neither blocks nor sends; on the owner the last one destroys the
// object.
template <class T>
class RRef {
 public:
  RRef() = default;  // empty: valid() is false
  explicit RRef(std::shared_ptr<internal::ReferenceState> state)
      : state_(std::move(state)) {}

  bool valid() const { return state_ != nullptr; }
  // Where the object lives. A successor of a lost owner is another peer.
  const Peer& owner() const { return checked().owner; }
  bool is_local() const { return checked().local(); }

  // The object itself; only on its owner (InvalidArgument elsewhere).
  T& Value() const {
    if (!checked().local()) internal::ThrowNotLocal(*state_);
    return *static_cast<T*>(state_->value.get());
  }
  T* operator->() const { return &Value(); }
  T& operator*() const { return Value(); }

  // Calls a method that DISTTRAIN_REMOTE lists, and waits. Arguments convert to
  // the method's parameters and travel by value, tensors without a copy (a call
  // to an object that lives here shares their storage).
  // Blocking: until the result, or the deadline. On the owner the method runs
  // on this thread, and its deadline is only asked for (CurrentCall).
  // Throws: rpc::Error.
  template <class M, class... A>
  internal::ResultOf<M> Sync(M method, A&&... arguments) const {
    return With({}).Sync(method, std::forward<A>(arguments)...);
  }

  // The same without waiting. Tensors must not change until the result is
  // there. Throws only what is wrong on this side (InvalidArgument,
  // UnknownMethod).
  template <class M, class... A>
  Future<internal::ResultOf<M>> Async(M method, A&&... arguments) const {
    return With({}).Async(method, std::forward<A>(arguments)...);
  }

  // Calls with options: ref.With({.timeout = absl::Minutes(5)}).Sync(…).
  class Bound {
   public:
    Bound(const RRef& ref, const CallOptions& options)
        : ref_(ref), options_(options) {}

    template <class M, class... A>
    internal::ResultOf<M> Sync(M method, A&&... arguments) const {
      return Start(true, method, std::forward<A>(arguments)...).Get();
    }
    template <class M, class... A>
    Future<internal::ResultOf<M>> Async(M method, A&&... arguments) const {
      return Start(false, method, std::forward<A>(arguments)...);
    }

   private:
    template <class M, class... A>
    Future<internal::ResultOf<M>> Start(bool synchronous, M method,
                                        A&&... arguments) const {
      std::shared_ptr<internal::Core> core = ref_.checked().core.lock();
      if (core == nullptr) core = internal::CurrentCore();
      return internal::StartMethod<T>(core, ref_.state_, options_, synchronous,
                                      method, arguments...);
    }

    RRef ref_;
    CallOptions options_;
  };

  Bound With(const CallOptions& options) const { return Bound(*this, options); }

  bool operator==(const RRef& other) const { return state_ == other.state_; }

  const std::shared_ptr<internal::ReferenceState>& state() const {
    return state_;
  }

 private:
  const internal::ReferenceState& checked() const {
    if (state_ == nullptr) internal::ThrowEmpty(RemoteTraits<T>::kName);
    return *state_;
  }

  std::shared_ptr<internal::ReferenceState> state_;
};

template <class T>
struct Codec<RRef<T>> {
  static void Encode(const internal::Writer& writer, const RRef<T>& value) {
    writer.Reference(value.state());
  }
  static RRef<T> Decode(const internal::Reader& reader) {
    return RRef<T>(reader.Reference(RemoteTraits<T>::kName));
  }
  static std::string Name() {
    return "RRef<" + std::string(RemoteTraits<T>::kName) + ">";
  }
};

// Makes a T at `to` from arguments that travel, without waiting.
template <RemoteClass T, class... A>
Future<RRef<T>> RemoteAsync(const Peer& to, const CallOptions& options,
                            A&&... arguments) {
  static_assert(sizeof...(A) <= kMaxConstructorArguments,
                "peers can use constructors of at most 8 parameters");
  static_assert(std::is_constructible_v<T, A&&...>,
                "no constructor takes these arguments");
  internal::Request request(internal::CurrentCore(), to,
                            RemoteTraits<T>::kName);
  (request.template Add<internal::Wire<A>>(std::forward<A>(arguments)), ...);
  auto state = std::make_shared<internal::State<RRef<T>>>();
  request.Start(state, options, /*synchronous=*/false);
  return Future<RRef<T>>(std::move(state));
}

// Makes a T at `to` and waits until it is there. Its constructor gets the
// arguments by value and must be the only one that could take as many values
// that travel. Throws: rpc::Error, RemoteException if the constructor threw.
template <RemoteClass T, class... A>
RRef<T> Remote(const Peer& to, A&&... arguments) {
  return RemoteAsync<T>(to, {}, std::forward<A>(arguments)...).Get();
}
template <RemoteClass T, class... A>
RRef<T> Remote(int rank, A&&... arguments) {
  return Remote<T>(internal::PeerOf(*internal::CurrentCore(), rank),
                   std::forward<A>(arguments)...);
}

// Makes a T in this process, of arguments of any kind, so that it can be handed
// to others.
template <RemoteClass T, class... A>
RRef<T> Local(A&&... arguments) {
  return RRef<T>(
      internal::OwnObject(internal::CurrentCore(),
                          std::make_shared<T>(std::forward<A>(arguments)...),
                          internal::EntryOf<T>()));
}

}  // namespace disttrain::rpc
