// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace disttrain {

// The key-value store behind c10d::Store, with the meanings of c10d's TCPStore.
//
// Limits are checked before memory is taken: a key that is empty or too long is
// INVALID_ARGUMENT; a value or a store that would be too large is
// RESOURCE_EXHAUSTED, and nothing changes.
// Threads: thread-compatible.
class KeyValue {
 public:
  struct Limits {
    size_t key_bytes = size_t{1} << 10;
    size_t value_bytes = size_t{8} << 20;
    // Keys and values together.
    size_t total_bytes = size_t{256} << 20;
  };

  KeyValue() : KeyValue(Limits{}) {}
  explicit KeyValue(const Limits& limits) : limits_(limits) {}

  // INVALID_ARGUMENT if no key can look like this.
  absl::Status CheckKey(std::string_view key) const;

  absl::Status Set(const std::string& key, const std::string& value);

  // Appends to the value; an absent key counts as "".
  absl::Status Append(const std::string& key, const std::string& value);

  // Null if the key is absent. Valid until the next change.
  const std::string* Find(const std::string& key) const;

  // Adds to a decimal number; an absent key counts as 0. Gives back the sum.
  // INVALID_ARGUMENT: the value is no number. OUT_OF_RANGE: the sum does not
  // fit into 64 bits.
  absl::StatusOr<int64_t> Add(const std::string& key, int64_t amount);

  // If the value equals `expected`, or the key is absent and `expected` is
  // empty, stores `desired`. Gives back the value after the call; if the key
  // is absent still, `expected`.
  absl::StatusOr<std::string> CompareSet(const std::string& key,
                                         const std::string& expected,
                                         const std::string& desired);

  // True if the key existed.
  bool Delete(const std::string& key);

  int64_t Count() const { return static_cast<int64_t>(values_.size()); }

  // Bytes of all keys and values.
  size_t bytes() const { return bytes_; }

 private:
  const Limits limits_;
  std::unordered_map<std::string, std::string> values_;
  size_t bytes_ = 0;
};

// Of a message of the rendezvous: the largest value, and what stands around it.
inline constexpr int kMaxMessageBytes =
    static_cast<int>(KeyValue::Limits{}.value_bytes) + (64 << 10);

}  // namespace disttrain
