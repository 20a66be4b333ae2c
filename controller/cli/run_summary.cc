// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/run_summary.h"

#include <cstdint>

#include "controller/cli/progress_line.h"
#include "fmt/format.h"
#include "proto/contract/termination_message.h"
#include "proto/runtime/utf8.h"

namespace disttrain {
namespace {

std::string TextAt(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : "";
}

int64_t IntegerAt(const Json& object, const char* key, int64_t fallback) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer()
             ? found->get<int64_t>()
             : fallback;
}

// The newest failure marked as a root cause; null: none.
Json RootCause(const Json& status) {
  const Json failures = status.value("failures", Json::array());
  Json newest;
  for (const Json& failure : failures) {
    if (!failure.is_object() || failure.value("rootCause", false) != true) {
      continue;
    }
    if (newest.is_null() ||
        IntegerAt(failure, "attempt", 0) > IntegerAt(newest, "attempt", 0)) {
      newest = failure;
    }
  }
  return newest;
}

std::string HowItEnded(const Json& failure) {
  const std::string signal = TextAt(failure, "signal");
  if (!signal.empty()) return fmt::format("killed by SIG{}", signal);
  const std::string reason = TextAt(failure, "reason");
  if (failure.contains("exitCode") && failure["exitCode"].is_number_integer()) {
    const auto code = failure["exitCode"].get<int>();
    return reason.empty() || reason == "Error"
               ? fmt::format("exit code {}", code)
               : fmt::format("{} (exit code {})", reason, code);
  }
  return reason.empty() ? "lost" : reason;
}

// A worker's JSON line is for machines: its cause is what a person wants.
std::string Cause(const Json& failure) {
  const std::string message = TextAt(failure, "message");
  const auto parsed = ParseTerminationMessage(message);
  return Printable(parsed.has_value() ? parsed->cause : message);
}

}  // namespace

std::optional<JobOutcome> OutcomeOf(const Json& status) {
  for (const Json& condition : status.value("conditions", Json::array())) {
    const std::string type = TextAt(condition, "type");
    if ((type == "Complete" || type == "Failed") &&
        TextAt(condition, "status") == "True") {
      return JobOutcome{.complete = type == "Complete",
                        .reason = TextAt(condition, "reason"),
                        .message = TextAt(condition, "message")};
    }
  }
  return std::nullopt;
}

std::string SummaryLine(const std::string& job, const Json& status,
                        const JobOutcome& outcome, absl::Duration elapsed) {
  const int64_t attempts = IntegerAt(status, "attempt", 0) + 1;
  const std::string time =
      elapsed < absl::Minutes(2)
          ? fmt::format("{} s", absl::ToInt64Seconds(elapsed))
          : ClockText(elapsed);
  std::string line =
      fmt::format("{}: {} – {} in {}, {} attempt{}", job,
                  outcome.complete ? "Complete" : "Failed", outcome.reason,
                  time, attempts, attempts == 1 ? "" : "s");
  const JobProgress progress = ProgressOf({{"status", status}});
  if (!progress.reward.empty()) {
    line += fmt::format("; reward {}", progress.reward);
  } else if (!progress.loss.empty()) {
    line += fmt::format("; loss {}", progress.loss);
  }
  if (progress.step.has_value()) {
    const bool figure = !progress.reward.empty() || !progress.loss.empty();
    line += fmt::format("{} step {}", figure ? " at" : ";", *progress.step);
  }
  return line;
}

std::string RootCauseLine(const Json& status, const JobOutcome& outcome) {
  const Json failure = RootCause(status);
  if (failure.is_null()) {
    return fmt::format(
        "root cause: {}",
        Printable(outcome.message.empty() ? outcome.reason : outcome.message));
  }
  const std::string how = HowItEnded(failure);
  const std::string cause = Cause(failure);
  std::string line = fmt::format(
      "root cause: rank {} ({}, pod {}): ", IntegerAt(failure, "rank", -1),
      TextAt(failure, "role"), TextAt(failure, "pod"));
  if (cause.empty()) return line + how;
  // The controller has put in what a rank that said nothing would have said.
  return cause.starts_with(how) ? line + cause
                                : fmt::format("{}{}: {}", line, how, cause);
}

std::string RootCausePod(const Json& status) {
  const Json failure = RootCause(status);
  return failure.is_null() ? "" : TextAt(failure, "pod");
}

}  // namespace disttrain
