// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "controller/api/job.h"

// Reading JSON that others wrote: what is missing or of another type is absent.
namespace disttrain::json {

inline const Json& At(const Json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

inline std::string Text(const Json& object, const char* key) {
  const Json& value = At(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

inline std::optional<int64_t> Integer(const Json& object, const char* key) {
  const Json& value = At(object, key);
  if (!value.is_number_integer()) return std::nullopt;
  return value.get<int64_t>();
}

inline int Int(const Json& object, const char* key) {
  const int64_t value = Integer(object, key).value_or(0);
  if (value < 0 || value > std::numeric_limits<int>::max()) return 0;
  return static_cast<int>(value);
}

inline bool Bool(const Json& object, const char* key) {
  const Json& value = At(object, key);
  return value.is_boolean() && value.get<bool>();
}

// An array's elements; nothing if it is none.
inline const Json& Array(const Json& object, const char* key) {
  static const Json empty = Json::array();
  const Json& value = At(object, key);
  return value.is_array() ? value : empty;
}

}  // namespace disttrain::json
