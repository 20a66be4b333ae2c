// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/parameters.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "nlohmann/json.hpp"

namespace disttrain {
namespace {

using Json = nlohmann::json;

constexpr char kPath[] = "spec.parameters";

const char* TypeName(const ParameterValue& value) {
  static constexpr const char* kNames[] = {"boolean", "integer", "number",
                                           "string"};
  return kNames[value.index()];
}

std::string Expectation(const ParameterInfo& info) {
  std::string text =
      fmt::format("{} {}", info.default_value.index() == 1 ? "an" : "a",
                  TypeName(info.default_value));
  const Range& range = info.range;
  if (range.min > -std::numeric_limits<double>::infinity()) {
    text += fmt::format(" {} {}", range.min_included ? ">=" : ">", range.min);
  }
  if (range.max < std::numeric_limits<double>::infinity()) {
    text += fmt::format("{} {} {}",
                        text.find('>') == std::string::npos ? "" : " and",
                        range.max_included ? "<=" : "<", range.max);
  }
  return text;
}

// The value if it has the parameter's type and lies in its range.
std::optional<ParameterValue> Convert(const ParameterInfo& info,
                                      const Json& json) {
  switch (info.default_value.index()) {
    case 0:
      if (json.is_boolean()) return json.get<bool>();
      return std::nullopt;
    case 1: {
      const bool fits =
          json.is_number_integer() &&
          (!json.is_number_unsigned() ||
           json.get<uint64_t>() <=
               static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
      if (!fits) return std::nullopt;
      const auto value = json.get<int64_t>();
      if (!info.range.Contains(static_cast<double>(value))) return std::nullopt;
      return value;
    }
    case 2:
      if (!json.is_number()) return std::nullopt;
      if (!info.range.Contains(json.get<double>())) return std::nullopt;
      return json.get<double>();
    default:
      if (json.is_string()) return json.get<std::string>();
      return std::nullopt;
  }
}

// A value for a message, cut short.
std::string Shown(const Json& json) {
  constexpr size_t kLongest = 80;
  std::string text =
      json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

absl::StatusOr<Json> ParseObject(std::string_view text) {
  if (text.size() > kMaxParametersBytes) {
    return absl::InvalidArgumentError(
        fmt::format("{} has {} bytes, must have at most {}", kPath, text.size(),
                    kMaxParametersBytes));
  }
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return absl::InvalidArgumentError(fmt::format("{} is not JSON", kPath));
  }
  if (!json.is_object()) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is {}, must be an object of names and values", kPath, Shown(json)));
  }
  return json;
}

std::string Unknown(const std::string& name,
                    const std::vector<ParameterInfo>& known) {
  std::vector<std::string> names;
  for (const ParameterInfo& info : known) names.push_back(info.name);
  std::sort(names.begin(), names.end());
  return fmt::format(
      "{}.{}: unknown parameter{} (known: {})", kPath, name,
      DidYouMean(name, names),
      names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

absl::Status Check(const std::vector<ParameterInfo>& known,
                   const Json& object) {
  std::vector<std::string> mistakes;
  for (const auto& entry : object.items()) {
    const std::string& name = entry.key();
    const Json& value = entry.value();
    const auto info =
        std::find_if(known.begin(), known.end(),
                     [&name](const auto& i) { return i.name == name; });
    if (info == known.end()) {
      mistakes.push_back(Unknown(name, known));
    } else if (!Convert(*info, value).has_value()) {
      mistakes.push_back(fmt::format("{}.{} is {}, must be {}", kPath, name,
                                     Shown(value), Expectation(*info)));
    }
  }
  if (mistakes.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}", fmt::join(mistakes, "; ")));
}

std::string Normalized(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c == '_' || c == '-') continue;
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

// Levenshtein's distance.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

bool Range::Contains(double value) const {
  return (min_included ? value >= min : value > min) &&
         (max_included ? value <= max : value < max);
}

std::vector<ParameterInfo> ParameterList::Infos() const {
  std::vector<ParameterInfo> infos;
  infos.reserve(fields_.size());
  for (const Field& field : fields_) infos.push_back(field.info);
  return infos;
}

absl::Status ParameterList::Assign(std::string_view json) {
  absl::StatusOr<Json> object = ParseObject(json);
  if (!object.ok()) return object.status();
  if (absl::Status status = Check(Infos(), *object); !status.ok())
    return status;
  for (Field& field : fields_) {
    const auto found = object->find(field.info.name);
    if (found == object->end()) continue;
    const ParameterValue value = *Convert(field.info, *found);
    std::visit(
        [&](auto* member) {
          *member = std::get<std::remove_pointer_t<decltype(member)>>(value);
        },
        field.member);
  }
  return absl::OkStatus();
}

absl::Status CheckParameters(const std::vector<ParameterInfo>& known,
                             std::string_view json) {
  absl::StatusOr<Json> object = ParseObject(json);
  if (!object.ok()) return object.status();
  return Check(known, *object);
}

Json ToJson(const std::vector<ParameterInfo>& parameters) {
  Json list = Json::array();
  for (const ParameterInfo& info : parameters) {
    Json item = {{"name", info.name},
                 {"type", TypeName(info.default_value)},
                 {"meaning", info.meaning}};
    std::visit([&](const auto& value) { item["default"] = value; },
               info.default_value);
    const Range& range = info.range;
    if (range.min > -std::numeric_limits<double>::infinity()) {
      item[range.min_included ? "minimum" : "exclusiveMinimum"] = range.min;
    }
    if (range.max < std::numeric_limits<double>::infinity()) {
      item[range.max_included ? "maximum" : "exclusiveMaximum"] = range.max;
    }
    list.push_back(std::move(item));
  }
  return list;
}

std::string DidYouMean(std::string_view name,
                       const std::vector<std::string>& known) {
  constexpr size_t kLongest = 64;  // the distance costs the product of lengths
  if (name.size() > kLongest) return "";
  const std::string wanted = Normalized(name);
  size_t best = std::max<size_t>(1, wanted.size() / 3) + 1;
  const std::string* closest = nullptr;
  for (const std::string& candidate : known) {
    const size_t distance = EditDistance(wanted, Normalized(candidate));
    if (distance < best) {
      best = distance;
      closest = &candidate;
    }
  }
  return closest == nullptr ? "" : fmt::format(", did you mean {}?", *closest);
}

}  // namespace disttrain
