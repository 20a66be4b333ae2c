// SPDX-License-Identifier: Apache-2.0
#include "worker/identity/env_reader.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "proto/runtime/utf8.h"

namespace disttrain {
namespace {

constexpr size_t kShownBytes = 64;

template <typename T>
std::optional<T> Number(const std::string& text) {
  T number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace

std::string Assignment(const char* name, const std::string& value) {
  return fmt::format("{}=\"{}\"", name,
                     Printable(Shortened(value, kShownBytes)));
}

std::optional<std::string> EnvReader::Text(const char* name) const {
  std::optional<std::string> text = get_env_(name);
  if (text && text->empty()) text.reset();
  return text;
}

std::optional<std::string> EnvReader::Word(const char* name, size_t max_bytes) {
  std::optional<std::string> text = Text(name);
  if (!text) return std::nullopt;
  const bool printable = std::all_of(text->begin(), text->end(),
                                     [](char c) { return c > 32 && c < 127; });
  if (printable && text->size() <= max_bytes) return text;
  Mistake(
      fmt::format("{} is not a word of at most {} printable ASCII "
                  "characters without spaces",
                  Assignment(name, *text), max_bytes));
  return std::nullopt;
}

std::optional<int> EnvReader::Int(const char* name, int min, int max) {
  const std::optional<std::string> text = get_env_(name);
  if (!text) return std::nullopt;
  const std::optional<int> number = Number<int>(*text);
  if (number && *number >= min && *number <= max) return number;
  Mistake(fmt::format("{} is not a whole number in [{}, {}]",
                      Assignment(name, *text), min, max));
  return std::nullopt;
}

std::optional<absl::Duration> EnvReader::Seconds(const char* name,
                                                 absl::Duration max) {
  const std::optional<std::string> text = get_env_(name);
  if (!text) return std::nullopt;
  const std::optional<double> number = Number<double>(*text);
  const double max_seconds = absl::ToDoubleSeconds(max);
  // Written so that NaN is refused.
  if (number && *number > 0 && *number <= max_seconds) {
    return absl::Seconds(*number);
  }
  Mistake(fmt::format("{} is not a number of seconds in (0, {:g}]",
                      Assignment(name, *text), max_seconds));
  return std::nullopt;
}

void EnvReader::Mistake(std::string mistake) {
  mistakes_.push_back(std::move(mistake));
}

absl::Status EnvReader::status() const {
  if (mistakes_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}", fmt::join(mistakes_, "; ")));
}

}  // namespace disttrain
