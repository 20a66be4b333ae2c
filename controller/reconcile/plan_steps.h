// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "controller/reconcile/plan.h"
#include "controller/reconcile/restart_policy.h"

// The steps of Plan, in the order in which it takes them. Each works on the
// decision under construction; one that returns true has decided, and the later
// ones are skipped. Internal to controller/reconcile.
namespace disttrain {

struct PlanState {
  const Job& job;
  const Observed& observed;
  const absl::Time now;
  Decision decision;
  // Pods of the current attempt and of their rank's current incarnation.
  // By role and index.
  std::map<std::pair<std::string, int>, const PodView*> current;
  // All others: to be deleted.
  std::vector<const PodView*> old;

  JobStatus& status() { return decision.status; }
  const JobSpec& spec() const { return job.spec; }
};

// nullptr: none.
const PodView* CurrentPod(const PlanState& state, const std::string& role,
                          int index);
int PodCount(const JobSpec& spec);

// plan.cc
void RequeueAt(PlanState& state, absl::Time time);
void Act(PlanState& state, Action action);
void DeletePodOnce(PlanState& state, const PodView& pod);
// Starts to count for the next attempt: what belongs to one is reset.
void BeginNextAttempt(PlanState& state);

// plan_observe.cc: sorts pods, records successes, counts. False: our copy of
// the job is older than its pods.
bool SortPods(PlanState& state);
void CountPods(PlanState& state);
void RecordSuccesses(PlanState& state);

// training_status.cc
void MergeReport(const JobSpec& spec, const ProgressReport& report,
                 JobStatus& status);
// The figures that the driver left behind when it ended well.
void MergeFinalFigures(PlanState& state);

// plan_end.cc
void Complete(PlanState& state, const std::string& reason,
              const std::string& message);
void Fail(PlanState& state, const std::string& reason,
          const std::string& message);
// Cleans up after the end, and deletes the job when its time is over.
void CleanUp(PlanState& state);

// plan_suspend.cc
bool PlanSuspend(PlanState& state);

// plan_failures.cc
bool PlanFailures(PlanState& state);
// Begins the next attempt, or fails if the policy or the budget says so.
void EndAttempt(PlanState& state, const AttemptFailure& failure);

// deadlines.cc
bool PlanDeadlines(PlanState& state);

// plan_pods.cc
void PlanPods(PlanState& state);

// conditions.cc
void DeriveConditions(PlanState& state);
// The pod that everybody waits for, and why: "cartpole-agent-0:
// ImagePullBackOff: ..."; "" if none is known.
std::string WhatHolds(const PlanState& state);

}  // namespace disttrain
