// SPDX-License-Identifier: Apache-2.0
#include "controller/api/field_error.h"

#include <algorithm>

#include "fmt/format.h"

namespace disttrain {
namespace {

bool IsPlainName(const std::string& key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

}  // namespace

absl::Status ToStatus(const std::vector<FieldError>& errors) {
  if (errors.empty()) return absl::OkStatus();
  std::string lines;
  for (const FieldError& error : errors) {
    if (!lines.empty()) lines += '\n';
    lines += error.message;
  }
  return absl::InvalidArgumentError(lines);
}

std::string RejectionReason(const std::vector<FieldError>& errors) {
  return errors.empty() ? "" : errors.front().reason;
}

std::string Join(const std::string& path, const std::string& key) {
  if (!IsPlainName(key)) return fmt::format("{}[\"{}\"]", path, key);
  return path.empty() ? key : fmt::format("{}.{}", path, key);
}

std::string Join(const std::string& path, size_t index) {
  return fmt::format("{}[{}]", path, index);
}

bool IsWithin(const std::string& path, const std::string& outer) {
  return path.starts_with(outer) &&
         (path.size() == outer.size() || path[outer.size()] == '.' ||
          path[outer.size()] == '[');
}

}  // namespace disttrain
