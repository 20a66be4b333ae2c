// SPDX-License-Identifier: Apache-2.0
#include "controller/api/pattern.h"

#include "fmt/format.h"
#include "re2/re2.h"

namespace disttrain {
namespace {

RE2::Options PatternOptions() {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(int64_t{1} << 20);
  return options;
}

}  // namespace

absl::Status CheckPattern(const std::string& pattern) {
  const RE2 expression(pattern, PatternOptions());
  if (expression.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("not a regular expression: {}", expression.error()));
}

bool PatternMatches(const std::string& pattern, std::string_view text) {
  const RE2 expression(pattern, PatternOptions());
  return expression.ok() &&
         RE2::PartialMatch(re2::StringPiece(text.data(), text.size()),
                           expression);
}

}  // namespace disttrain
