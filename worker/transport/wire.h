// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"

namespace disttrain::transport {

// Appends `value` in little-endian order.
template <typename T>
void AppendLittleEndian(std::string& out, T value) {
  static_assert(std::is_unsigned_v<T>);
  for (size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<char>(static_cast<uint8_t>(value >> (8 * i))));
  }
}

// `bytes` holds at least sizeof(T) bytes from `offset` on.
template <typename T>
T LittleEndian(absl::string_view bytes, size_t offset) {
  static_assert(std::is_unsigned_v<T>);
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value |= uint64_t{static_cast<uint8_t>(bytes[offset + i])} << (8 * i);
  }
  return static_cast<T>(value);
}

}  // namespace disttrain::transport
