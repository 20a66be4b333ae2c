// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/restart_policy.h"

#include <algorithm>

#include "controller/api/pattern.h"
#include "fmt/format.h"
#include "proto/contract/exit_code.h"

namespace disttrain {
namespace {

// How long a victim's root cause may take to show: the kubelet reports a
// container's end within a few seconds.
constexpr absl::Duration kVictimGrace = absl::Seconds(10);

bool IsExit(const PodFailure& failure, ExitCode code) {
  return failure.exit_code == static_cast<int>(code);
}

template <typename T>
bool Contains(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool MatchesCode(const FailureRule& rule, const PodFailure& failure) {
  if (rule.exit_codes.empty() && rule.exit_code_ranges.empty()) return true;
  if (!failure.exit_code) return false;
  const int code = *failure.exit_code;
  return Contains(rule.exit_codes, code) ||
         std::any_of(rule.exit_code_ranges.begin(), rule.exit_code_ranges.end(),
                     [code](const std::pair<int, int>& range) {
                       return range.first <= code && code <= range.second;
                     });
}

bool Matches(const FailureRule& rule, const PodFailure& failure) {
  // The one condition of a pod that tells of failures.
  const bool condition =
      rule.conditions.empty() ||
      (failure.disruption && failure.reason != "Deleted" &&
       Contains(rule.conditions, std::string("DisruptionTarget")));
  return condition && MatchesCode(rule, failure) &&
         (rule.reasons.empty() || Contains(rule.reasons, failure.reason)) &&
         (rule.roles.empty() || Contains(rule.roles, failure.role)) &&
         (rule.message_pattern.empty() ||
          PatternMatches(rule.message_pattern, failure.message));
}

Verdict FromTable(const PodFailure& failure) {
  if (failure.disruption) return {FailureAction::kRestartFree, "", ""};
  if (failure.config_error) {
    return {FailureAction::kFail, "ImageConfigError", ""};
  }
  if (failure.victim) return {FailureAction::kRestartFree, "", ""};
  if (IsExit(failure, ExitCode::kUsage) || IsExit(failure, ExitCode::kData) ||
      IsExit(failure, ExitCode::kConfig)) {
    return {FailureAction::kFail, "NonRetryableExit", ""};
  }
  return {FailureAction::kRestart, "", ""};
}

// Never started training although its ranks had all the time they get.
bool IsRendezvousTimeout(const JobSpec& spec,
                         const std::vector<PodFailure>& failures,
                         const AttemptFacts& facts) {
  if (spec.program.empty() || facts.ever_running) return false;
  const absl::Duration timeout = absl::Seconds(spec.rendezvous.timeout_seconds);
  return std::any_of(failures.begin(), failures.end(),
                     [timeout](const PodFailure& failure) {
                       return failure.created != absl::InfinitePast() &&
                              failure.time - failure.created >= timeout;
                     });
}

// The cause is the rank that was waited for, not rank 0, which says so.
void BlameMissing(const JobSpec& spec, int rank, AttemptFailure& failure) {
  for (size_t role = 0; role < spec.roles.size(); ++role) {
    const int pods = spec.roles[role].replicas;
    const int index = (rank - FirstRank(spec, role, 0)) /
                      ProcessesPerPod(spec.roles[role], spec.main_container);
    if (rank < FirstRank(spec, role, 0) || index >= pods) continue;
    PodFailure missing;
    missing.role = spec.roles[role].name;
    missing.index = index;
    missing.rank = rank;
    missing.reason = failure.root.reason;
    missing.time = failure.root.time;
    missing.created = failure.root.created;
    missing.message = fmt::format("it never joined: {}", failure.root.message);
    failure.root = missing;
    failure.root_known = true;
    return;
  }
}

AttemptFailure OnlyVictims(const JobSpec& spec,
                           const std::vector<PodFailure>& failures,
                           const AttemptFacts& facts) {
  // Rank 0 serves the rendezvous: it knows most.
  const auto first = std::min_element(
      failures.begin(), failures.end(),
      [](const PodFailure& a, const PodFailure& b) {
        return std::pair(a.rank != 0, a.time) < std::pair(b.rank != 0, b.time);
      });
  AttemptFailure result;
  result.root = *first;
  result.root_known = false;
  result.verdict = Classify(spec.failure_policy, *first);
  result.reason = "PeerLost";
  if (IsRendezvousTimeout(spec, failures, facts)) {
    result.reason = "RendezvousTimeout";
    result.verdict.action = FailureAction::kRestart;
    if (facts.missing) BlameMissing(spec, *facts.missing, result);
  }
  return result;
}

}  // namespace

Verdict Classify(const FailurePolicy& policy, const PodFailure& failure) {
  for (const FailureRule& rule : policy.rules) {
    if (Matches(rule, failure)) return {rule.action, "PolicyFail", rule.name};
  }
  const bool program_exit = !failure.disruption && !failure.victim &&
                            failure.exit_code && *failure.exit_code >= 1 &&
                            *failure.exit_code <= 127;
  if (policy.preset == "KubeflowExitCode" && program_exit) {
    return {FailureAction::kFail, "NonRetryableExit", ""};
  }
  return FromTable(failure);
}

std::optional<AttemptFailure> JudgeAttempt(
    const JobSpec& spec, const std::vector<PodFailure>& failures,
    const AttemptFacts& facts, absl::Time* wait_until) {
  // What will fail again whatever is done goes before what came first.
  std::vector<PodFailure> permanent;
  for (const PodFailure& failure : failures) {
    if (!failure.victim &&
        Classify(spec.failure_policy, failure).action == FailureAction::kFail) {
      permanent.push_back(failure);
    }
  }
  const std::vector<PodFailure>& candidates =
      permanent.empty() ? failures : permanent;
  if (const auto root = RootCause(candidates, facts.hint)) {
    AttemptFailure result;
    result.root = candidates[*root];
    result.verdict = Classify(spec.failure_policy, result.root);
    result.reason = result.root.reason;
    return result;
  }
  const auto first = std::min_element(
      failures.begin(), failures.end(),
      [](const PodFailure& a, const PodFailure& b) { return a.time < b.time; });
  // A worker's clock may be wrong; ours bounds the wait.
  const absl::Time due = std::min(first->time, facts.now) + kVictimGrace;
  if (!facts.all_left && facts.now < due) {
    *wait_until = due;
    return std::nullopt;
  }
  return OnlyVictims(spec, failures, facts);
}

std::optional<std::string> TakeRestart(const FailurePolicy& policy,
                                       FailureAction action,
                                       RestartCounts& counts) {
  const bool counted = action == FailureAction::kRestart;
  int& used = counted ? counts.counted : counts.disruptions;
  if (used >= (counted ? policy.max_restarts : policy.max_disruptions)) {
    return counted ? "MaxRestartsExceeded" : "TooManyDisruptions";
  }
  ++used;
  ++counts.total;
  return std::nullopt;
}

absl::Duration BackoffBefore(const RestartBackoff& backoff, int n) {
  if (n <= 1) return absl::ZeroDuration();
  // 2^30 s is beyond every legal maximum.
  const int doublings = std::min(n - 2, 30);
  return std::min(
      absl::Seconds(backoff.initial_seconds) * (int64_t{1} << doublings),
      absl::Seconds(backoff.max_seconds));
}

std::string ActionName(FailureAction action) {
  switch (action) {
    case FailureAction::kFail:
      return "Fail";
    case FailureAction::kRestart:
      return "Restart";
    case FailureAction::kRestartFree:
      return "RestartFree";
    case FailureAction::kIgnore:
      return "Ignore";
  }
  return "";
}

}  // namespace disttrain
