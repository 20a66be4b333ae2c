// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "controller/reconcile/plan_steps.h"
#include "fmt/format.h"

namespace disttrain {
namespace {

void End(PlanState& state, bool complete, const std::string& reason,
         const std::string& message) {
  JobStatus& status = state.status();
  const absl::Time now = state.now;
  const char* other = complete ? condition::kFailed : condition::kComplete;
  SetCondition(status, {condition::kRunning, "False", "Finished"}, now);
  SetCondition(status,
               {complete ? condition::kComplete : condition::kFailed, "True",
                reason, message},
               now);
  SetCondition(status, {other, "False", complete ? "Completed" : "JobFailed"},
               now);
  status.phase = complete ? "Complete" : "Failed";
  status.message = Shorten(message, 1024);
  status.completion_time = now;
  if (!status.start_time) status.start_time = status.attempt_start_time;
  status.restarts.next_retry.reset();
  state.decision.events.push_back({!complete, status.phase, message});
  state.decision.reason = fmt::format("{}: {}", reason, message);
  CleanUp(state);
}

// What still holds resources. A sidecar keeps a pod whose main container is
// done.
bool HoldsResources(const PodView& pod) { return !Finished(pod); }

std::optional<int64_t> TimeToLive(const Cleanup& cleanup, bool failed) {
  if (failed && cleanup.ttl_seconds_after_failed) {
    return cleanup.ttl_seconds_after_failed;
  }
  return cleanup.ttl_seconds_after_finished;
}

}  // namespace

void Complete(PlanState& state, const std::string& reason,
              const std::string& message) {
  End(state, true, reason, message);
}

void Fail(PlanState& state, const std::string& reason,
          const std::string& message) {
  End(state, false, reason, message);
}

void CleanUp(PlanState& state) {
  const Cleanup& cleanup = state.spec().cleanup;
  if (cleanup.pod_policy != CleanupPodPolicy::kNone) {
    const bool all = cleanup.pod_policy == CleanupPodPolicy::kAll;
    for (const PodView& pod : state.observed.pods) {
      if (all || HoldsResources(pod)) DeletePodOnce(state, pod);
    }
    if (state.observed.service_attempt) {
      Act(state, DeleteService{});
    }
  }
  const auto ttl =
      TimeToLive(cleanup, IsTrue(state.status(), condition::kFailed));
  if (!ttl || !state.status().completion_time) return;
  const absl::Time due = *state.status().completion_time + absl::Seconds(*ttl);
  if (due <= state.now) {
    Act(state, DeleteJob{});
  } else {
    RequeueAt(state, due);
  }
}

}  // namespace disttrain
