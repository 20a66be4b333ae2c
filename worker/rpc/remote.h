// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "worker/rpc/arguments.h"
#include "worker/rpc/future.h"
#include "worker/rpc/registry.h"
#include "worker/rpc/served_call.h"
#include "worker/rpc/value.h"

namespace disttrain::rpc {

// What peers may create and call of a class; filled by DISTTRAIN_REMOTE.
template <class T>
struct RemoteTraits;

template <class T>
concept RemoteClass = requires {
  RemoteTraits<T>::kName;
};

// Most parameters of a constructor that peers can use.
inline constexpr size_t kMaxConstructorArguments = 8;

namespace internal {

template <class M>
struct MethodTraits;

template <class R, class C, class... P>
struct MethodTraits<R (C::*)(P...)> {
  using Class = C;
  using Returned = R;
  // What the caller's future holds.
  using Result = typename FutureValue<R>::type;
  using Values = std::tuple<std::remove_cvref_t<P>...>;
  static constexpr size_t kArity = sizeof...(P);
};
template <class R, class C, class... P>
struct MethodTraits<R (C::*)(P...) const> : MethodTraits<R (C::*)(P...)> {};
template <class R, class C, class... P>
struct MethodTraits<R (C::*)(P...) noexcept> : MethodTraits<R (C::*)(P...)> {};
template <class R, class C, class... P>
struct MethodTraits<R (C::*)(P...) const noexcept>
    : MethodTraits<R (C::*)(P...)> {};

template <class Tuple>
struct AllTransportable;
template <class... T>
struct AllTransportable<std::tuple<T...>>
    : std::bool_constant<(Transportable<T> && ...)> {};

template <class... T>
std::tuple<T...> DecodeAll(const Arguments& arguments,
                           std::type_identity<std::tuple<T...>>) {
  return arguments.All<T...>();
}

// Decodes, calls, answers: the callee's part of one method.
template <class T, auto M>
void RunMethod(void* object, const Arguments& arguments, ServedCall& call) {
  using Traits = MethodTraits<decltype(M)>;
  using Returned = typename Traits::Returned;
  auto values =
      DecodeAll(arguments, std::type_identity<typename Traits::Values>());
  T& target = *static_cast<T*>(object);
  const auto invoke = [&]() -> Returned {
    return std::apply(
        [&](auto&... value) -> Returned {
          return std::invoke(M, target, std::move(value)...);
        },
        values);
  };
  if constexpr (FutureValue<Returned>::kIsFuture) {
    const auto state = invoke().state();
    call.AfterMethod();
    call.ReturnLater(state, [state, served = call.shared_from_this()] {
      try {
        if (state->error() != nullptr) std::rethrow_exception(state->error());
        served->Return(state->value());
      } catch (...) {
        served->Fail(std::current_exception());
      }
    });
  } else if constexpr (std::is_void_v<Returned>) {
    invoke();
    call.AfterMethod();
    call.Return(std::monostate());
  } else {
    const std::remove_cvref_t<Returned> result = invoke();
    call.AfterMethod();
    call.Return(result);
  }
}

template <class R>
std::string ResultName() {
  return Codec<Stored<R>>::Name();
}

template <class... T>
std::string ParameterNames(std::type_identity<std::tuple<T...>>) {
  std::string names;
  ((names += (names.empty() ? "" : ", ") + Codec<T>::Name()), ...);
  return names;
}

template <auto M>
std::string Signature(std::string_view label) {
  using Traits = MethodTraits<decltype(M)>;
  return std::string(label) + "(" +
         ParameterNames(std::type_identity<typename Traits::Values>()) +
         ") -> " + ResultName<std::remove_cvref_t<typename Traits::Result>>();
}

// One argument of a constructor, of whatever type the constructor wants.
struct AnyValue {
  const Arguments* arguments = nullptr;
  size_t index = 0;

  template <class U>
  requires Transportable<U>
  operator U() const {  // NOLINT(google-explicit-constructor)
    return arguments->Get<U>(index);
  }
};

template <size_t>
using AnyValueAt = AnyValue;

template <class T, size_t... I>
std::shared_ptr<void> CreateWith(const Arguments& arguments,
                                 std::index_sequence<I...>) {
  if constexpr (std::is_constructible_v<T, AnyValueAt<I>...>) {
    return std::shared_ptr<void>(
        std::shared_ptr<T>(new T(AnyValue{&arguments, I}...)));
  } else {
    ThrowNoConstructor(RemoteTraits<T>::kName, sizeof...(I));
  }
}

template <class T, size_t N = 0>
std::shared_ptr<void> CreateObject(const Arguments& arguments) {
  if (arguments.size() == N) {
    return CreateWith<T>(arguments, std::make_index_sequence<N>());
  }
  if constexpr (N < kMaxConstructorArguments) {
    return CreateObject<T, N + 1>(arguments);
  } else {
    ThrowNoConstructor(RemoteTraits<T>::kName, arguments.size());
  }
}

template <RemoteClass T>
struct AddMethod {
  ClassEntry* entry;

  template <auto M>
  void operator()(std::string_view label) const {
    using Traits = MethodTraits<decltype(M)>;
    static_assert(AllTransportable<typename Traits::Values>::value,
                  "a parameter of this method cannot travel (see Codec)");
    static_assert(
        Transportable<Stored<std::remove_cvref_t<typename Traits::Result>>>,
        "the result of this method cannot travel (see Codec)");
    entry->methods.push_back(
        {.label = label,
         .name = label.substr(RemoteTraits<T>::kName.size() + 1),
         .signature = Signature<M>(label),
         .run = &RunMethod<T, M>});
  }
};

// The entry of T: the same object on each call.
template <RemoteClass T>
const ClassEntry& EntryOf() {
  static const ClassEntry entry = [] {
    ClassEntry made{.name = RemoteTraits<T>::kName,
                    .type = typeid(T),
                    .methods = {},
                    .create = &CreateObject<T>};
    RemoteTraits<T>::ForEachMethod(AddMethod<T>{&made});
    return made;
  }();
  return entry;
}

// Finds the listed name of a method pointer; "" if it is not listed.
template <class M>
struct FindLabel {
  M wanted;
  std::string_view* label;

  template <auto Listed>
  void operator()(std::string_view name) const {
    if constexpr (std::is_same_v<std::remove_const_t<decltype(Listed)>, M>) {
      if (Listed == wanted) *label = name;
    }
  }
};

template <class T, class M>
std::string_view LabelOf(M method) {
  std::string_view label;
  RemoteTraits<T>::ForEachMethod(FindLabel<M>{method, &label});
  return label;
}

}  // namespace internal

// The classes that a process serves: rpc::Remotes<Agent, Observer>().
template <RemoteClass... T>
Registry Remotes() {
  return Registry({&internal::EntryOf<T>()...});
}

}  // namespace disttrain::rpc

// What peers may call of a class, at global namespace scope:
//   DISTTRAIN_REMOTE(Observer, RunEpisode, Reset);
// `Class` is registered under the name as it is written; every process of a job
// must write it alike. Methods are public, not overloaded, not templates;
// parameters and results are values that travel (see value.h), and a method may
// return a Future of one. Methods run concurrently: the class locks for itself.
#define DISTTRAIN_REMOTE(Class, ...)                            \
  template <>                                                   \
  struct disttrain::rpc::RemoteTraits<Class> {                  \
    static constexpr std::string_view kName = #Class;           \
    template <class Visit>                                      \
    static void ForEachMethod(Visit visit) {                    \
      static_cast<void>(visit);                                 \
      DISTTRAIN_RPC_FOR_EACH_(Class __VA_OPT__(, ) __VA_ARGS__) \
    }                                                           \
  }

#define DISTTRAIN_RPC_METHOD_(Class, Method) \
  visit.template operator()<&Class::Method>(#Class "." #Method);

#define DISTTRAIN_RPC_PARENS_ ()
#define DISTTRAIN_RPC_EXPAND_(...)               \
  DISTTRAIN_RPC_EXPAND3_(DISTTRAIN_RPC_EXPAND3_( \
      DISTTRAIN_RPC_EXPAND3_(DISTTRAIN_RPC_EXPAND3_(__VA_ARGS__))))
#define DISTTRAIN_RPC_EXPAND3_(...)              \
  DISTTRAIN_RPC_EXPAND2_(DISTTRAIN_RPC_EXPAND2_( \
      DISTTRAIN_RPC_EXPAND2_(DISTTRAIN_RPC_EXPAND2_(__VA_ARGS__))))
#define DISTTRAIN_RPC_EXPAND2_(...)              \
  DISTTRAIN_RPC_EXPAND1_(DISTTRAIN_RPC_EXPAND1_( \
      DISTTRAIN_RPC_EXPAND1_(DISTTRAIN_RPC_EXPAND1_(__VA_ARGS__))))
#define DISTTRAIN_RPC_EXPAND1_(...) __VA_ARGS__
#define DISTTRAIN_RPC_FOR_EACH_(Class, ...) \
  __VA_OPT__(DISTTRAIN_RPC_EXPAND_(DISTTRAIN_RPC_STEP_(Class, __VA_ARGS__)))
#define DISTTRAIN_RPC_STEP_(Class, Method, ...) \
  DISTTRAIN_RPC_METHOD_(Class, Method)          \
  __VA_OPT__(DISTTRAIN_RPC_AGAIN_ DISTTRAIN_RPC_PARENS_(Class, __VA_ARGS__))
#define DISTTRAIN_RPC_AGAIN_() DISTTRAIN_RPC_STEP_
