// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "worker/rpc/value.h"

namespace disttrain::rpc::internal {

[[noreturn]] void ThrowWrongCount(size_t expected, size_t got);
[[noreturn]] void ThrowArgument(size_t index, const std::string& what);
[[noreturn]] void ThrowNoConstructor(std::string_view class_name, size_t count);

// The arguments of one request. Borrows the message.
class Arguments {
 public:
  explicit Arguments(const WireMessage& request) : request_(&request) {}

  size_t size() const;
  Reader at(size_t index) const;

  // One argument; a ValueError says which one it was.
  template <class T>
  T Get(size_t index) const {
    try {
      return Codec<T>::Decode(at(index));
    } catch (const ValueError& error) {
      ThrowArgument(index, error.what());
    }
  }

  // All, if there are as many as types.
  template <class... T>
  std::tuple<T...> All() const {
    if (size() != sizeof...(T)) ThrowWrongCount(sizeof...(T), size());
    return AllOf<T...>(std::index_sequence_for<T...>());
  }

 private:
  template <class... T, size_t... I>
  std::tuple<T...> AllOf(std::index_sequence<I...>) const {
    return std::tuple<T...>{Get<T>(I)...};
  }

  const WireMessage* request_;
};

}  // namespace disttrain::rpc::internal
