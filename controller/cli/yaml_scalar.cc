// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/yaml_scalar.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include "fmt/format.h"

namespace disttrain {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool AllDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit);
}

std::string_view WithoutSign(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return text;
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool IsFloat(std::string_view text) {
  text = WithoutSign(text);
  const size_t exponent = text.find_first_of("eE");
  if (exponent != std::string_view::npos) {
    if (!AllDigits(WithoutSign(text.substr(exponent + 1)))) return false;
    text = text.substr(0, exponent);
  }
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos) return AllDigits(text);
  const std::string_view whole = text.substr(0, dot);
  const std::string_view fraction = text.substr(dot + 1);
  if (whole.empty()) return AllDigits(fraction);
  return AllDigits(whole) && (fraction.empty() || AllDigits(fraction));
}

absl::StatusOr<Json> Float(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  double value = 0;
  const auto result =
      std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ec != std::errc() || !std::isfinite(value)) {
    return absl::InvalidArgumentError(
        fmt::format("{} is beyond the range of a number", text));
  }
  return Json(value);
}

// Absent if `digits` are no number of that base in 64 bits.
std::optional<Json> Integer(std::string_view digits, bool negative, int base) {
  uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto result = std::from_chars(digits.data(), end, value, base);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  if (!negative) return Json(value);
  constexpr uint64_t kLowest = uint64_t{1} << 63;
  if (value > kLowest) return std::nullopt;
  return Json(static_cast<int64_t>(~value + 1));
}

absl::StatusOr<Json> DecimalInteger(std::string_view text) {
  const std::string_view digits = WithoutSign(text);
  if (digits.size() > 1 && digits.front() == '0') {
    return absl::InvalidArgumentError(fmt::format(
        "{0} is octal for some YAML parsers and decimal for others; drop the "
        "leading zeros, write 0o... for octal, or put it in quotes",
        text));
  }
  if (auto value = Integer(digits, text.starts_with('-'), 10)) return *value;
  return Float(text);
}

// 0o17 or 0x1F; absent if it is neither.
std::optional<Json> PrefixedInteger(std::string_view text) {
  if (text.size() < 3) return std::nullopt;
  if (text.starts_with("0o")) return Integer(text.substr(2), false, 8);
  if (text.starts_with("0x")) return Integer(text.substr(2), false, 16);
  return std::nullopt;
}

template <size_t N>
bool OneOf(std::string_view text, const std::array<std::string_view, N>& set) {
  return std::find(set.begin(), set.end(), text) != set.end();
}

// ".inf" in any of the ways in which its letters may be written.
bool IsInfOrNan(std::string_view text) {
  constexpr std::array<std::string_view, 6> kWords = {".inf", ".Inf", ".INF",
                                                      ".nan", ".NaN", ".NAN"};
  return OneOf(WithoutSign(text), kWords);
}

}  // namespace

absl::StatusOr<Json> PlainScalar(std::string_view text) {
  constexpr std::array<std::string_view, 5> kNulls = {"", "~", "null", "Null",
                                                      "NULL"};
  constexpr std::array<std::string_view, 3> kTrue = {"true", "True", "TRUE"};
  constexpr std::array<std::string_view, 3> kFalse = {"false", "False",
                                                      "FALSE"};
  if (OneOf(text, kNulls)) return Json();
  if (OneOf(text, kTrue)) return Json(true);
  if (OneOf(text, kFalse)) return Json(false);
  if (IsInfOrNan(text)) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not a number that JSON can carry", text));
  }
  if (AllDigits(WithoutSign(text))) return DecimalInteger(text);
  if (auto value = PrefixedInteger(text)) return *value;
  if (IsFloat(text)) return Float(text);
  return Json(std::string(text));
}

bool NeedsQuotes(std::string_view text) {
  constexpr std::array<std::string_view, 10> kWords = {
      "true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan"};
  std::string lower;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool harmless =
        std::isalnum(byte) || c == '-' || c == '_' || c == '.' || c == '/';
    if (!harmless) return true;
    lower += static_cast<char>(std::tolower(byte));
  }
  // Numbers, dates and the like begin with a digit, a sign or a dot.
  if (text.empty() || !(std::isalpha(static_cast<unsigned char>(text[0])) ||
                        text[0] == '/' || text[0] == '_')) {
    return true;
  }
  return OneOf(lower, kWords);
}

}  // namespace disttrain
