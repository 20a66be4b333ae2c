// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/log_line.h"

#include <algorithm>
#include <array>

#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "proto/runtime/utf8.h"

namespace disttrain {
namespace {

using Json = nlohmann::json;

// Bound to every line of a rank, or shown in another way.
constexpr std::array kHiddenKeys = {
    "ts",   "level",       "msg",        "status",  "job", "job_uid",
    "role", "incarnation", "role_index", "attempt", "pod", "rank"};

// Tabs align columns and are harmless.
std::string PrintableWithTabs(std::string_view text) {
  std::string out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\t', begin), text.size());
    out += Printable(text.substr(begin, end - begin));
    if (end < text.size()) out += '\t';
    begin = end + 1;
  }
  return out;
}

std::string ValueText(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) {
    return fmt::format("{:.6g}", value.get<double>());
  }
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string LevelText(const Json& line) {
  const Json level = line.value("level", Json());
  if (level == "warn") return "warning: ";
  if (level == "error") return "error: ";
  return "";
}

std::string ReadableObject(const Json& line) {
  std::string text = LevelText(line) + line["msg"].get<std::string>();
  if (line.contains("status")) text += ": " + ValueText(line["status"]);
  // A message in columns already says, rounded, what its fields say exactly.
  if (text.find('\t') != std::string::npos) return text;
  for (const auto& [key, value] : line.items()) {
    if (std::find(kHiddenKeys.begin(), kHiddenKeys.end(), key) ==
        kHiddenKeys.end()) {
      text += fmt::format("  {}={}", key, ValueText(value));
    }
  }
  return text;
}

}  // namespace

std::string ReadableLogLine(std::string_view line) {
  if (!line.empty() && line.front() == '{') {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.contains("msg") && json["msg"].is_string()) {
      return PrintableWithTabs(ReadableObject(json));
    }
  }
  return PrintableWithTabs(line);
}

}  // namespace disttrain
