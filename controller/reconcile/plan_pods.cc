// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "controller/reconcile/plan_steps.h"

namespace disttrain {
namespace {

// True if all pods of the role that `role` starts after run, or have run.
bool MayStart(const PlanState& state, const JobStatus& status,
              const Role& role) {
  if (role.start_after.empty()) return true;
  for (size_t i = 0; i < state.spec().roles.size(); ++i) {
    const Role& earlier = state.spec().roles[i];
    if (earlier.name != role.start_after) continue;
    for (int index = 0; index < earlier.replicas; ++index) {
      const int rank = FirstRank(state.spec(), i, index);
      if (status.roles[i].succeeded_ranks.count(rank) > 0) continue;
      const PodView* pod = CurrentPod(state, earlier.name, index);
      if (pod == nullptr || !pod->main_started) return false;
    }
  }
  return true;
}

void CreateMissing(PlanState& state, size_t position) {
  JobStatus& status = state.status();
  RoleStatus& known = status.roles[position];
  const Role& role = state.spec().roles[position];
  for (int index = 0; index < role.replicas; ++index) {
    const int rank = FirstRank(state.spec(), position, index);
    if (known.succeeded_ranks.count(rank) > 0) continue;
    if (CurrentPod(state, role.name, index) != nullptr) {
      known.retry_times.erase(rank);
      continue;
    }
    const auto retry = known.retry_times.find(rank);
    if (retry != known.retry_times.end() && retry->second > state.now) {
      RequeueAt(state, retry->second);
      continue;
    }
    const auto incarnation = known.incarnations.find(rank);
    Act(state,
        CreatePod{
            position, index, status.attempt,
            incarnation == known.incarnations.end() ? 0 : incarnation->second});
  }
}

}  // namespace

void PlanPods(PlanState& state) {
  JobStatus& status = state.status();
  for (const PodView* pod : state.old) DeletePodOnce(state, *pod);
  if (status.restarts.next_retry && *status.restarts.next_retry > state.now) {
    RequeueAt(state, *status.restarts.next_retry);
    return;
  }
  status.restarts.next_retry.reset();
  if (state.observed.service_attempt != status.attempt) {
    Act(state, EnsureService{status.attempt});
  }
  const size_t before = state.decision.actions.size();
  for (size_t role = 0; role < state.spec().roles.size(); ++role) {
    if (MayStart(state, status, state.spec().roles[role])) {
      CreateMissing(state, role);
    }
  }
  if (state.decision.actions.size() > before && !status.attempt_start_time) {
    status.attempt_start_time = state.now;
    if (const auto due = state.spec().deadlines.pending_seconds; due > 0) {
      RequeueAt(state, state.now + absl::Seconds(due));
    }
  }
}

}  // namespace disttrain
