// SPDX-License-Identifier: Apache-2.0
#include "worker/rendezvous/key_value.h"

#include <charconv>

#include "fmt/format.h"
#include "proto/runtime/status.h"
#include "worker/rendezvous/text.h"

namespace disttrain {
namespace {

constexpr size_t kShownBytes = 128;

}  // namespace

absl::Status KeyValue::CheckKey(std::string_view key) const {
  if (key.empty()) return absl::InvalidArgumentError("the key is empty");
  if (key.size() > limits_.key_bytes) {
    return absl::InvalidArgumentError(
        fmt::format("key '{}...' has {} bytes, the limit is {}",
                    OneLine(key, kShownBytes), key.size(), limits_.key_bytes));
  }
  return absl::OkStatus();
}

absl::Status KeyValue::Set(const std::string& key, const std::string& value) {
  RETURN_IF_ERROR(CheckKey(key));
  if (value.size() > limits_.value_bytes) {
    return absl::ResourceExhaustedError(fmt::format(
        "the value of key '{}' would have {} bytes, the limit is {}",
        OneLine(key, kShownBytes), value.size(), limits_.value_bytes));
  }
  const auto it = values_.find(key);
  const size_t before =
      it == values_.end() ? 0 : key.size() + it->second.size();
  const size_t total = bytes_ - before + key.size() + value.size();
  if (total > limits_.total_bytes) {
    return absl::ResourceExhaustedError(
        fmt::format("with key '{}' the store would have {} bytes, the limit is "
                    "{}; delete keys that are not needed any more",
                    OneLine(key, kShownBytes), total, limits_.total_bytes));
  }
  values_[key] = value;
  bytes_ = total;
  return absl::OkStatus();
}

absl::Status KeyValue::Append(const std::string& key,
                              const std::string& value) {
  const std::string* before = Find(key);
  return Set(key, before == nullptr ? value : *before + value);
}

const std::string* KeyValue::Find(const std::string& key) const {
  const auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

absl::StatusOr<int64_t> KeyValue::Add(const std::string& key, int64_t amount) {
  int64_t number = 0;
  if (const std::string* text = Find(key); text != nullptr) {
    const char* end = text->data() + text->size();
    const auto parsed = std::from_chars(text->data(), end, number);
    if (parsed.ec != std::errc() || parsed.ptr != end) {
      return absl::InvalidArgumentError(fmt::format(
          "key '{}' has the value '{}', which is no decimal number of 64 bits",
          OneLine(key, kShownBytes), OneLine(*text, kShownBytes)));
    }
  }
  int64_t sum = 0;
  if (__builtin_add_overflow(number, amount, &sum)) {
    return absl::OutOfRangeError(
        fmt::format("key '{}': {} + {} does not fit into 64 bits",
                    OneLine(key, kShownBytes), number, amount));
  }
  RETURN_IF_ERROR(Set(key, std::to_string(sum)));
  return sum;
}

absl::StatusOr<std::string> KeyValue::CompareSet(const std::string& key,
                                                 const std::string& expected,
                                                 const std::string& desired) {
  RETURN_IF_ERROR(CheckKey(key));
  const std::string* before = Find(key);
  const bool matches =
      before == nullptr ? expected.empty() : *before == expected;
  if (!matches) return before == nullptr ? expected : *before;
  RETURN_IF_ERROR(Set(key, desired));
  return desired;
}

bool KeyValue::Delete(const std::string& key) {
  const auto it = values_.find(key);
  if (it == values_.end()) return false;
  bytes_ -= key.size() + it->second.size();
  values_.erase(it);
  return true;
}

}  // namespace disttrain
