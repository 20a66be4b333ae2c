// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "controller/reconcile/plan_steps.h"
#include "fmt/format.h"

namespace disttrain {
namespace {

// One entry for each role of the spec, in its order; what was known of a role
// of that name stays.
void AlignRoles(const JobSpec& spec, JobStatus& status) {
  std::vector<RoleStatus> aligned;
  for (const Role& role : spec.roles) {
    const auto known = std::find_if(
        status.roles.begin(), status.roles.end(),
        [&role](const RoleStatus& r) { return r.name == role.name; });
    RoleStatus entry = known == status.roles.end() ? RoleStatus{} : *known;
    entry.name = role.name;
    entry.desired = role.replicas;
    aligned.push_back(std::move(entry));
  }
  status.roles = std::move(aligned);
}

std::optional<size_t> RolePosition(const JobSpec& spec,
                                   const std::string& name) {
  for (size_t i = 0; i < spec.roles.size(); ++i) {
    if (spec.roles[i].name == name) return i;
  }
  return std::nullopt;
}

int ExpectedIncarnation(const RoleStatus& role, int rank) {
  const auto found = role.incarnations.find(rank);
  return found == role.incarnations.end() ? 0 : found->second;
}

}  // namespace

const PodView* CurrentPod(const PlanState& state, const std::string& role,
                          int index) {
  const auto found = state.current.find({role, index});
  return found == state.current.end() ? nullptr : found->second;
}

int PodCount(const JobSpec& spec) {
  int pods = 0;
  for (const Role& role : spec.roles) pods += role.replicas;
  return pods;
}

bool SortPods(PlanState& state) {
  JobStatus& status = state.status();
  AlignRoles(state.spec(), status);
  for (const PodView& pod : state.observed.pods) {
    if (pod.attempt > status.attempt) return false;
    const auto role = RolePosition(state.spec(), pod.role);
    // Scaled down, or of a role that is no more.
    const bool wanted = role && pod.role_index >= 0 &&
                        pod.role_index < state.spec().roles[*role].replicas;
    if (!wanted || pod.attempt < status.attempt) {
      state.old.push_back(&pod);
      continue;
    }
    const int incarnation = ExpectedIncarnation(
        status.roles[*role], FirstRank(state.spec(), *role, pod.role_index));
    if (pod.incarnation > incarnation) return false;
    if (pod.incarnation == incarnation) {
      state.current[{pod.role, pod.role_index}] = &pod;
    } else {
      state.old.push_back(&pod);
    }
  }
  return true;
}

void RecordSuccesses(PlanState& state) {
  for (const auto& [at, pod] : state.current) {
    if (!Succeeded(*pod)) continue;
    const auto role = RolePosition(state.spec(), pod->role);
    const int first = FirstRank(state.spec(), *role, pod->role_index);
    const int processes =
        ProcessesPerPod(state.spec().roles[*role], state.spec().main_container);
    for (int rank = first; rank < first + processes; ++rank) {
      state.status().roles[*role].succeeded_ranks.insert(rank);
    }
  }
}

void CountPods(PlanState& state) {
  JobStatus& status = state.status();
  int ready = 0;
  int done = 0;
  for (size_t i = 0; i < status.roles.size(); ++i) {
    RoleStatus& role = status.roles[i];
    role.active = role.ready = 0;
    int failed = 0;
    for (const auto& [at, pod] : state.current) {
      if (pod->role != role.name) continue;
      if (pod->phase == PodPhase::kFailed) ++failed;
      if (Finished(*pod) || Succeeded(*pod) || pod->being_deleted) continue;
      ++role.active;
      if (pod->ready) ++role.ready;
    }
    // What the end found stays, however the pods are cleaned up.
    if (!IsTerminal(status)) role.failed = failed;
    role.succeeded = static_cast<int>(role.succeeded_ranks.size()) /
                     std::max(ProcessesPerPod(state.spec().roles[i],
                                              state.spec().main_container),
                              1);
    ready += role.ready;
    done += role.succeeded;
  }
  status.ready_text =
      fmt::format("{}/{}", ready + done, PodCount(state.spec()));
}

}  // namespace disttrain
