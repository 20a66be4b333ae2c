// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/set_value.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "controller/api/closest_name.h"
#include "controller/api/field_error.h"
#include "controller/api/json_reader.h"
#include "controller/cli/manifest.h"
#include "controller/cli/yaml_scalar.h"
#include "fmt/format.h"
#include "proto/runtime/status.h"
#include "proto/runtime/utf8.h"

namespace disttrain {
namespace {

constexpr size_t kMaxSegments = 32;

// One step of a path: a key of an object, or the name or index of an element.
struct Segment {
  std::string key;
  std::optional<size_t> index;
};

absl::Status BadPath(std::string_view path, const std::string& why) {
  return absl::InvalidArgumentError(
      fmt::format("the path \"{}\" {}", Printable(path), why));
}

// "[3]" or "[\"a.b\"]"; moves `rest` behind it.
absl::StatusOr<Segment> Bracket(std::string_view path, std::string_view& rest) {
  if (rest.starts_with("[\"")) {
    const size_t end = rest.find("\"]");
    if (end == std::string_view::npos) return BadPath(path, "lacks a \"]");
    Segment segment{std::string(rest.substr(2, end - 2)), std::nullopt};
    rest.remove_prefix(end + 2);
    return segment;
  }
  const size_t end = rest.find(']');
  size_t index = 0;
  const char* last = rest.data() + std::min(end, rest.size());
  const auto result = std::from_chars(rest.data() + 1, last, index);
  if (end == std::string_view::npos || result.ec != std::errc() ||
      result.ptr != last) {
    return BadPath(path, "needs an index or a quoted key in its brackets");
  }
  rest.remove_prefix(end + 1);
  return Segment{"", index};
}

absl::StatusOr<std::vector<Segment>> SplitPath(std::string_view path) {
  std::vector<Segment> segments;
  std::string_view rest = path;
  bool expects_name = true;
  while (!rest.empty()) {
    if (rest.front() == '[' && !segments.empty()) {
      ASSIGN_OR_RETURN(Segment segment, Bracket(path, rest));
      segments.push_back(std::move(segment));
    } else {
      if (!expects_name) {
        if (rest.front() != '.') return BadPath(path, "lacks a dot after ]");
        rest.remove_prefix(1);
      }
      const std::string_view name = rest.substr(0, rest.find_first_of(".["));
      if (name.empty()) return BadPath(path, "has an empty name");
      segments.push_back({std::string(name), std::nullopt});
      rest.remove_prefix(name.size());
    }
    expects_name = false;
    if (segments.size() > kMaxSegments) return BadPath(path, "is too deep");
  }
  if (segments.empty()) return BadPath(path, "is empty");
  return segments;
}

// The element of `list` that the segment means; made if it is the next one.
absl::StatusOr<size_t> ElementOf(const Segment& segment, const std::string& at,
                                 Json& list) {
  if (segment.index.has_value()) {
    if (*segment.index > list.size()) {
      return absl::InvalidArgumentError(
          fmt::format("{} has {} elements, so [{}] is beyond its end", at,
                      list.size(), *segment.index));
    }
    if (*segment.index == list.size()) list.push_back(Json());
    return *segment.index;
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < list.size(); ++i) {
    const auto name =
        list[i].is_object() ? list[i].find("name") : list[i].end();
    if (!list[i].is_object() || name == list[i].end()) continue;
    if (*name == segment.key) return i;
    if (name->is_string()) names.push_back(*name);
  }
  return absl::InvalidArgumentError(
      fmt::format("{} has no element named {}{}", at, segment.key,
                  DidYouMean(segment.key, names)));
}

// Moves `node` and its path one step down.
absl::Status Descend(const Segment& segment, Json*& node, std::string& at) {
  if (node->is_null()) {
    *node = segment.index.has_value() ? Json::array() : Json::object();
  }
  if (node->is_array()) {
    ASSIGN_OR_RETURN(const size_t index, ElementOf(segment, at, *node));
    node = &(*node)[index];
    at = Join(at, index);
    return absl::OkStatus();
  }
  if (!node->is_object() || segment.index.has_value()) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is {}, not {}", at.empty() ? "the manifest" : at, Shown(*node),
        segment.index.has_value() ? "a list" : "an object"));
  }
  node = &(*node)[segment.key];
  at = Join(at, segment.key);
  return absl::OkStatus();
}

absl::StatusOr<Json> ParseValue(const std::string& text) {
  if (ValidUtf8(text) != text) {
    return absl::InvalidArgumentError("the value is not UTF-8 text");
  }
  if (text.empty()) return Json("");
  if (std::string_view("\"'[{").find(text.front()) != std::string_view::npos) {
    return ManifestFromYaml(text);
  }
  return PlainScalar(text);
}

absl::StatusOr<std::string> Apply(const std::string& argument, Json& manifest) {
  const size_t equals = argument.find('=');
  if (equals == std::string::npos) {
    return absl::InvalidArgumentError("must be path=value");
  }
  const std::string path = argument.substr(0, equals);
  if (ValidUtf8(path) != path) return BadPath(path, "is not UTF-8 text");
  ASSIGN_OR_RETURN(std::vector<Segment> segments, SplitPath(path));
  ASSIGN_OR_RETURN(Json value, ParseValue(argument.substr(equals + 1)));
  const std::string& first = segments.front().key;
  if (first != "spec" && first != "metadata") {
    segments.insert(segments.begin(), Segment{"spec", std::nullopt});
  }
  Json changed = manifest;
  Json* node = &changed;
  std::string at;
  for (const Segment& segment : segments) {
    RETURN_IF_ERROR(Descend(segment, node, at));
  }
  *node = std::move(value);
  manifest = std::move(changed);
  return at;
}

}  // namespace

absl::StatusOr<std::string> ApplySet(const std::string& argument,
                                     Json& manifest) {
  absl::StatusOr<std::string> path = Apply(argument, manifest);
  if (path.ok()) return path;
  return Annotate(path.status(), "--set " + Printable(argument));
}

}  // namespace disttrain
