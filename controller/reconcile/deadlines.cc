// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/deadlines.h"

#include <algorithm>

#include "controller/reconcile/plan_steps.h"
#include "fmt/format.h"
#include "proto/contract/labels.h"

namespace disttrain {
namespace {

// True if `due` has passed; else a timer is armed for exactly then.
bool Passed(PlanState& state, const std::optional<absl::Time>& due) {
  if (!due) return false;
  if (*due <= state.now) return true;
  RequeueAt(state, *due);
  return false;
}

// An attempt that hangs: nobody failed, so rank 0 stands for all.
AttemptFailure NoProgress(const PlanState& state, const JobStatus& status) {
  const Role& first = state.spec().roles.front();
  AttemptFailure failure;
  failure.root_known = false;
  failure.reason = "NoProgress";
  failure.root.role = first.name;
  failure.root.pod = PodName(state.job.name, first.name, 0, status.attempt, 0);
  failure.root.reason = failure.reason;
  failure.root.time = state.now;
  failure.root.message = fmt::format("no step for {} s; the last one was {}",
                                     state.spec().deadlines.progress_seconds,
                                     status.training.step.value_or(0));
  return failure;
}

}  // namespace

std::optional<absl::Time> PendingDue(const JobSpec& spec,
                                     const JobStatus& status) {
  if (spec.deadlines.pending_seconds <= 0 || !status.attempt_start_time ||
      IsTrue(status, condition::kRunning)) {
    return std::nullopt;
  }
  return *status.attempt_start_time +
         absl::Seconds(spec.deadlines.pending_seconds);
}

std::optional<absl::Time> ActiveDue(const JobSpec& spec,
                                    const JobStatus& status, absl::Time now) {
  if (spec.deadlines.active_seconds <= 0) return std::nullopt;
  const absl::Duration left =
      absl::Seconds(spec.deadlines.active_seconds) - ActiveTime(status, now);
  if (left > absl::ZeroDuration() && !IsTrue(status, condition::kRunning)) {
    return std::nullopt;
  }
  return now + left;
}

std::optional<absl::Time> ProgressDue(const JobSpec& spec,
                                      const JobStatus& status) {
  if (spec.deadlines.progress_seconds <= 0 || spec.program.empty() ||
      !IsTrue(status, condition::kRunning)) {
    return std::nullopt;
  }
  const absl::Time running =
      FindCondition(status, condition::kRunning)->last_transition;
  return std::max(running, status.training.last_step.value_or(running)) +
         absl::Seconds(spec.deadlines.progress_seconds);
}

bool PlanDeadlines(PlanState& state) {
  JobStatus& status = state.status();
  if (Passed(state, PendingDue(state.spec(), status))) {
    const std::string holds = WhatHolds(state);
    Fail(state, "PendingDeadlineExceeded",
         fmt::format("not running after pendingSeconds {}{}{}",
                     state.spec().deadlines.pending_seconds,
                     holds.empty() ? "" : ": ", holds));
    return true;
  }
  if (Passed(state, ActiveDue(state.spec(), status, state.now))) {
    Fail(state, "DeadlineExceeded",
         fmt::format("activeSeconds {} are used up",
                     state.spec().deadlines.active_seconds));
    return true;
  }
  if (Passed(state, ProgressDue(state.spec(), status))) {
    EndAttempt(state, NoProgress(state, status));
    return true;
  }
  return false;
}

}  // namespace disttrain
