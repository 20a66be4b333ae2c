// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/plan.h"

#include <algorithm>

#include "controller/reconcile/plan_steps.h"
#include "controller/reconcile/success_policy.h"
#include "fmt/format.h"

namespace disttrain {
namespace {

constexpr char kOurs[] = "disttrain.dev/controller";

bool PlanAcceptance(PlanState& state) {
  JobStatus& status = state.status();
  if (state.observed.rejection) {
    const Rejection& rejection = *state.observed.rejection;
    SetCondition(
        status,
        {condition::kAccepted, "False", rejection.reason, rejection.message},
        state.now);
    Fail(state, rejection.reason, rejection.message);
    return true;
  }
  // Else DeriveConditions says that a name is taken; saying both in turn would
  // move the transition time, and write, each time.
  if (!absl::IsAlreadyExists(state.observed.last_error)) {
    SetCondition(status, {condition::kAccepted, "True", "Valid"}, state.now);
  }
  status.template_hash = state.observed.template_hash;
  status.resolved = state.observed.resolved;
  return false;
}

bool PlanSuccess(PlanState& state) {
  const auto success = CheckSuccess(state.spec(), state.status());
  if (!success) return false;
  if (success->stop_training) {
    Act(state, StopTraining{state.status().attempt, success->message});
  }
  Complete(state, success->reason, success->message);
  return true;
}

// Rank 0 serves its rendezvous from soon after its start.
bool CanBePolled(const PlanState& state) {
  if (state.spec().program.empty() || !state.observed.has_progress_source ||
      state.spec().roles.empty() || state.spec().suspend ||
      IsTerminal(state.decision.status)) {
    return false;
  }
  const PodView* pod = CurrentPod(state, state.spec().roles.front().name, 0);
  return pod != nullptr && pod->main_running;
}

void PlanRunningJob(PlanState& state) {
  if (PlanAcceptance(state) || PlanSuspend(state)) return;
  RecordSuccesses(state);
  if (state.observed.report) {
    MergeReport(state.spec(), *state.observed.report, state.status());
  }
  MergeFinalFigures(state);
  CountPods(state);
  // Before failures: with Rank0, what the others do once rank 0 is done does
  // not matter.
  if (PlanSuccess(state) || PlanFailures(state)) return;
  DeriveConditions(state);
  if (PlanDeadlines(state)) return;
  PlanPods(state);
}

}  // namespace

void RequeueAt(PlanState& state, absl::Time time) {
  state.decision.requeue_at = std::min(state.decision.requeue_at, time);
}

void Act(PlanState& state, Action action) {
  state.decision.actions.push_back(std::move(action));
}

void DeletePodOnce(PlanState& state, const PodView& pod) {
  if (pod.being_deleted) return;
  Act(state, DeletePod{pod.name, pod.uid});
}

void BeginNextAttempt(PlanState& state) {
  JobStatus& status = state.status();
  ++status.attempt;
  status.attempt_start_time.reset();
  status.training.last_step.reset();
  status.training.target_reports = 0;
  for (RoleStatus& role : status.roles) {
    role.succeeded_ranks.clear();
    role.incarnations.clear();
    role.in_a_row.clear();
    role.retry_times.clear();
    role.active = role.ready = role.succeeded = role.failed = 0;
  }
}

Decision Plan(const Job& job, const Observed& observed, absl::Time now) {
  PlanState state{job, observed, now, {}, {}, {}};
  state.status() = StatusFromJson(job.status);
  if (job.spec.managed_by != kOurs) {
    state.decision.reason = "managed by " + job.spec.managed_by;
    return state.decision;
  }
  if (job.being_deleted) {
    state.decision.reason = "being deleted";
    return state.decision;
  }
  if (!SortPods(state)) {
    state.decision.stale = true;
    state.decision.reason = "a pod is of a later attempt than the job we know";
    return state.decision;
  }
  state.status().observed_generation = job.generation;
  if (IsTerminal(state.status())) {
    // Edits after the end are ignored, also those that make no sense.
    if (!state.observed.rejection) CountPods(state);
    CleanUp(state);
  } else {
    PlanRunningJob(state);
    if (!IsTerminal(state.status())) DeriveConditions(state);
    state.decision.poll = CanBePolled(state);
  }
  if (state.decision.reason.empty()) {
    state.decision.reason = state.status().message;
  }
  return state.decision;
}

}  // namespace disttrain
