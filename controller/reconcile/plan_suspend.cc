// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/plan_steps.h"

namespace disttrain {
namespace {

// On a node that is lost a pod stays Terminating for ever; it runs nothing that
// we could reach.
absl::Time LostAt(const PlanState& state, const PodView& pod) {
  return pod.deletion_time.value_or(absl::InfinitePast()) +
         state.observed.node_lost_grace;
}

bool StopPods(PlanState& state) {
  bool live = false;
  for (const PodView& pod : state.observed.pods) {
    DeletePodOnce(state, pod);
    if (pod.being_deleted && LostAt(state, pod) <= state.now) continue;
    if (Finished(pod) && !pod.being_deleted) continue;
    live = true;
    if (pod.being_deleted) RequeueAt(state, LostAt(state, pod));
  }
  return live;
}

void Suspend(PlanState& state) {
  JobStatus& status = state.status();
  const bool was_running = IsTrue(status, condition::kRunning);
  if (was_running) {
    Act(state, StopTraining{status.attempt, "the job was suspended"});
  }
  const bool live = StopPods(state);
  if (state.observed.service_attempt) {
    Act(state, DeleteService{});
  }
  const bool already = IsTrue(status, condition::kSuspended);
  SetCondition(status, {condition::kRunning, "False", "Suspended"}, state.now);
  SetCondition(status,
               {condition::kSuspended, live ? "Unknown" : "True",
                live ? "Suspending" : "Suspended"},
               state.now);
  status.restarts.next_retry.reset();
  if (!live && !already) {
    state.decision.events.push_back(
        {false, "Suspended", "all pods of the job are gone"});
  }
}

}  // namespace

bool PlanSuspend(PlanState& state) {
  JobStatus& status = state.status();
  if (state.spec().suspend) {
    Suspend(state);
    // The pods that go are no longer counted as this attempt's.
    for (RoleStatus& role : status.roles) role.active = role.ready = 0;
    status.ready_text = "0/" + std::to_string(PodCount(state.spec()));
    return true;
  }
  const Condition* suspended = FindCondition(status, condition::kSuspended);
  const bool resumes = suspended != nullptr && suspended->status != "False";
  SetCondition(status,
               {condition::kSuspended, "False",
                suspended == nullptr ? "NotSuspended"
                : resumes            ? "Resumed"
                                     : suspended->reason},
               state.now);
  if (!resumes) return false;
  SetCondition(status, {condition::kRunning, "False", "NotStarted"}, state.now);
  state.decision.events.push_back({false, "Resumed", "the job goes on"});
  // Pods with the names of this attempt may still be there.
  if (status.attempt_start_time) BeginNextAttempt(state);
  RequeueAt(state, state.now);
  return true;
}

}  // namespace disttrain
