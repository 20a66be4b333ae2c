// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "controller/api/job.h"
#include "controller/reconcile/job_status.h"
#include "controller/reconcile/root_cause.h"

// What a failure leads to. Pure.
namespace disttrain {

// kRestart takes from failurePolicy.maxRestarts, kRestartFree from
// maxDisruptions.
struct Verdict {
  FailureAction action = FailureAction::kRestart;
  // Reason of the condition Failed if the action is kFail.
  std::string failed_reason;
  std::string rule;  // the rule that decided; "": the table
};

// The first rule of the policy that matches, else the preset, else the table of
// operators.md 2.4. KubeflowExitCode makes 1..127 permanent, except 75, which
// is only ever ours: a peer was lost.
Verdict Classify(const FailurePolicy& policy, const PodFailure& failure);

// An attempt that ended badly: what is recorded and what follows.
struct AttemptFailure {
  PodFailure root;
  bool root_known = true;  // false: every rank is a victim; `root` is the first
  Verdict verdict;
  std::string reason;  // "OOMKilled", "RendezvousTimeout", ...
};

struct AttemptFacts {
  bool all_left = false;      // no rank of the gang runs any more
  bool ever_running = false;  // all ranks had joined in this attempt
  std::optional<int> hint;    // the rank whose failure rank 0 broadcast
  // The first rank that had not joined when rank 0 was last asked.
  std::optional<int> missing;
  absl::Time now;
};

// The outcome of an attempt with these failures (>= 1). nullopt: only victims
// so far, and the one that they follow may still show; then *wait_until says
// when to decide without it.
std::optional<AttemptFailure> JudgeAttempt(
    const JobSpec& spec, const std::vector<PodFailure>& failures,
    const AttemptFacts& facts, absl::Time* wait_until);

// Takes one restart of that action from its budget in `counts`. nullopt: done;
// else the budget is spent, nothing was taken, and this is the reason
// (MaxRestartsExceeded, TooManyDisruptions).
std::optional<std::string> TakeRestart(const FailurePolicy& policy,
                                       FailureAction action,
                                       RestartCounts& counts);

// Wait before the n-th restart in a row, n >= 1: the first is immediate, the
// n-th waits initialSeconds * 2^(n-2), maxSeconds at most.
absl::Duration BackoffBefore(const RestartBackoff& backoff, int n);

// "Restart" and so on, as in the resource.
std::string ActionName(FailureAction action);

}  // namespace disttrain
