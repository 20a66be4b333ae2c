// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <optional>
#include <utility>

#include "controller/api/names.h"
#include "controller/api/parse_spec.h"
#include "controller/api/validate_job.h"

namespace disttrain {
namespace {

constexpr size_t kMaxCriteria = 256;

StringRule ShortText(const std::string& expected) {
  return {[](const std::string& text) {
            return !text.empty() && text.size() <= 128;
          },
          expected};
}

// "1-63", both within 1..255 and in order.
std::optional<std::pair<int, int>> ParseRange(const std::string& text) {
  std::pair<int, int> range;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, range.first);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') {
    return std::nullopt;
  }
  const auto last = std::from_chars(first.ptr + 1, end, range.second);
  if (last.ec != std::errc() || last.ptr != end) return std::nullopt;
  if (range.first < 1 || range.first > range.second || range.second > 255) {
    return std::nullopt;
  }
  return range;
}

void ReadExitCodes(ObjectReader& reader, FailureRule& rule) {
  reader.ReadList("exitCodes", kMaxCriteria,
                  [&](const Json& code, const std::string& path) {
                    if (code.is_number_integer() && code >= 1 && code <= 255) {
                      rule.exit_codes.push_back(code.get<int>());
                    } else {
                      reader.Add(MustBe(
                          path, code, "an integer in [1, 255] (0 is success)"));
                    }
                  });
  reader.ReadList(
      "exitCodeRanges", kMaxCriteria,
      [&](const Json& range, const std::string& path) {
        const auto parsed = range.is_string()
                                ? ParseRange(range.get<std::string>())
                                : std::nullopt;
        if (parsed.has_value()) {
          rule.exit_code_ranges.push_back(*parsed);
        } else {
          reader.Add(
              MustBe(path, range, "a range within 1..255 such as \"1-63\""));
        }
      });
}

void ReadRule(ObjectReader& reader, FailureRule& rule) {
  if (reader.Require("name")) {
    reader.Read("name", rule.name,
                {[](const std::string& name) { return IsRfc1123Label(name); },
                 "a lower-case label of at most 63 characters"});
  }
  if (reader.Require("action")) {
    reader.ReadChoice<FailureAction>(
        "action", rule.action,
        {{"Fail", FailureAction::kFail},
         {"Restart", FailureAction::kRestart},
         {"RestartFree", FailureAction::kRestartFree},
         {"Ignore", FailureAction::kIgnore}});
  }
  ReadExitCodes(reader, rule);
  reader.Read("reasons", rule.reasons, kMaxCriteria,
              ShortText("a reason such as OOMKilled"));
  reader.Read("conditions", rule.conditions, kMaxCriteria,
              ShortText("a pod condition such as DisruptionTarget"));
  reader.Read("roles", rule.roles, kMaxRoles, ShortText("the name of a role"));
  reader.Read("messagePattern", rule.message_pattern);
}

}  // namespace

void ReadFailurePolicy(ObjectReader& reader, FailurePolicy& policy) {
  reader.Read("maxRestarts", policy.max_restarts, {0, 999});
  reader.Read("maxDisruptions", policy.max_disruptions, {0, 9999});
  reader.ReadChoice("method", policy.method, {"Auto", "Recreate", "InPlace"});
  reader.ReadChoice("preset", policy.preset, {"Default", "KubeflowExitCode"});
  reader.Read("backoff", [&](ObjectReader& backoff) {
    RestartBackoff& waits = policy.backoff;
    backoff.Read("initialSeconds", waits.initial_seconds, {0, 86400});
    backoff.Read("maxSeconds", waits.max_seconds, {0, 86400});
    backoff.Read("resetAfterSeconds", waits.reset_after_seconds, {});
  });
  reader.ReadList("rules", kMaxRules,
                  [&](const Json& element, const std::string& path) {
                    ObjectReader rule(element, path, reader.errors());
                    ReadRule(rule, policy.rules.emplace_back());
                    rule.Done();
                  });
}

}  // namespace disttrain
