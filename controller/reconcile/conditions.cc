// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "controller/reconcile/plan_steps.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

constexpr int kMaxNamedRanks = 5;

bool IsImagePull(const std::string& reason) {
  return reason == "ImagePullBackOff" || reason == "ErrImagePull";
}

const v1::Progress* ProgressOf(const PlanState& state,
                               const JobStatus& status) {
  const auto& report = state.observed.report;
  return report && report->attempt == status.attempt ? &report->progress
                                                     : nullptr;
}

int SucceededPods(const JobStatus& status) {
  int pods = 0;
  for (const RoleStatus& role : status.roles) pods += role.succeeded;
  return pods;
}

// Pods whose program is there, or is done.
int StartedPods(const PlanState& state, const JobStatus& status) {
  int pods = SucceededPods(status);
  for (const auto& [rank, pod] : state.current) {
    if (pod->main_running && !Succeeded(*pod)) ++pods;
  }
  return pods;
}

bool AllJoined(const PlanState& state, const JobStatus& status) {
  if (!state.spec().program.empty() && state.observed.has_progress_source) {
    const v1::Progress* progress = ProgressOf(state, status);
    return progress != nullptr &&
           (progress->state() == v1::Progress::STATE_RUNNING ||
            progress->state() == v1::Progress::STATE_FINISHED);
  }
  return StartedPods(state, status) == PodCount(state.spec());
}

void DeriveRunning(PlanState& state) {
  JobStatus& status = state.status();
  // While it is suspended its pods may still run to their end.
  if (state.spec().suspend || IsTrue(status, condition::kRunning)) return;
  if (status.attempt_start_time && AllJoined(state, status)) {
    SetCondition(status, {condition::kRunning, "True", "AllRanksJoined"},
                 state.now);
    if (!status.start_time) status.start_time = state.now;
    state.decision.events.push_back(
        {false, "Running",
         fmt::format("attempt {}: all {} ranks have joined", status.attempt,
                     WorldSize(state.spec()))});
    return;
  }
  if (FindCondition(status, condition::kRunning) == nullptr) {
    SetCondition(status, {condition::kRunning, "False", "NotStarted"},
                 state.now);
  }
}

Condition Scheduled(const PlanState& state, const JobStatus& status) {
  const absl::Status& error = state.observed.last_error;
  if (!error.ok() && !absl::IsAlreadyExists(error)) {
    const bool quota = absl::IsResourceExhausted(error);
    return {condition::kScheduled, "False",
            quota ? "QuotaExceeded" : "CreateFailed", Message(error)};
  }
  int bound = SucceededPods(status);
  for (const auto& [rank, pod] : state.current) {
    if (!pod->unschedulable_reason.empty() && !pod->bound) {
      return {condition::kScheduled, "False", "Unschedulable",
              WhatHolds(state)};
    }
    if (IsImagePull(pod->reason)) {
      return {condition::kScheduled, "False", "ImagePull", WhatHolds(state)};
    }
    if (pod->bound && !Succeeded(*pod)) ++bound;
  }
  if (bound == PodCount(state.spec())) {
    return {condition::kScheduled, "True", "AllPodsBound"};
  }
  return {condition::kScheduled, "False", "WaitingForPods"};
}

void DeriveEnds(PlanState& state) {
  JobStatus& status = state.status();
  for (const char* type : {condition::kComplete, condition::kFailed}) {
    if (FindCondition(status, type) == nullptr) {
      SetCondition(status, {type, "False", "NotFinished"}, state.now);
    }
  }
  const absl::Status& error = state.observed.last_error;
  if (absl::IsAlreadyExists(error)) {
    SetCondition(
        status, {condition::kAccepted, "False", "NameConflict", Message(error)},
        state.now);
  }
}

std::string Joined(const PlanState& state, const JobStatus& status) {
  const int world = WorldSize(state.spec());
  const v1::Progress* progress = ProgressOf(state, status);
  if (progress == nullptr) {
    return fmt::format("{}/{} pods run", StartedPods(state, status),
                       PodCount(state.spec()));
  }
  std::string text =
      fmt::format("{}/{} ranks joined", progress->joined(), world);
  const int missing = progress->missing_ranks_size();
  if (missing == 0) return text;
  const auto begin = progress->missing_ranks().begin();
  const auto end = begin + std::min(missing, kMaxNamedRanks);
  return text + fmt::format("; {} {}{} missing",
                            missing == 1 ? "rank" : "ranks",
                            fmt::join(begin, end, ", "),
                            missing > kMaxNamedRanks ? " and others are"
                            : missing == 1           ? " is"
                                                     : " are");
}

std::string MessageOf(const PlanState& state, const JobStatus& status) {
  const Condition* running = FindCondition(status, condition::kRunning);
  const Condition* suspended = FindCondition(status, condition::kSuspended);
  if (suspended != nullptr && suspended->status != "False") {
    return suspended->status == "True" ? "suspended"
                                       : "suspending: pods are ending";
  }
  if (running->status == "True") {
    std::string text =
        fmt::format("attempt {}: {}", status.attempt, Joined(state, status));
    if (status.training.step) {
      text += fmt::format(", step {}", *status.training.step);
    }
    return text;
  }
  if (!state.observed.last_error.ok()) {
    return Message(state.observed.last_error);
  }
  if (status.restarts.next_retry && *status.restarts.next_retry > state.now) {
    return fmt::format("attempt {} starts at {}: {}", status.attempt,
                       FormatTimestamp(*status.restarts.next_retry),
                       running->message);
  }
  const std::string holds = WhatHolds(state);
  std::string text =
      fmt::format("attempt {}: {}", status.attempt, Joined(state, status));
  if (!holds.empty()) text += "; " + holds;
  if (!running->message.empty()) text += "; before: " + running->message;
  return text;
}

std::string PhaseOf(const JobStatus& status) {
  const Condition* suspended = FindCondition(status, condition::kSuspended);
  if (suspended != nullptr && suspended->status != "False") return "Suspended";
  const Condition* running = FindCondition(status, condition::kRunning);
  if (running->status == "True") return "Running";
  if (running->reason == "Restarting") return "Restarting";
  return IsTrue(status, condition::kScheduled) ? "Starting" : "Pending";
}

}  // namespace

std::string WhatHolds(const PlanState& state) {
  for (const auto& [rank, pod] : state.current) {
    if (pod->main_started || Succeeded(*pod)) continue;
    if (!pod->bound && !pod->unschedulable_reason.empty()) {
      return fmt::format("{}: {}{}{}", pod->name, pod->unschedulable_reason,
                         pod->message.empty() ? "" : ": ", pod->message);
    }
    if (!pod->reason.empty()) {
      return fmt::format("{}: {}{}{}", pod->name, pod->reason,
                         pod->message.empty() ? "" : ": ", pod->message);
    }
  }
  for (const auto& [rank, pod] : state.current) {
    if (pod->main_started || Succeeded(*pod)) continue;
    return fmt::format(
        "{}: {}", pod->name,
        pod->bound ? "its container has not started" : "it has no node yet");
  }
  return "";
}

void DeriveConditions(PlanState& state) {
  JobStatus& status = state.status();
  DeriveRunning(state);
  DeriveEnds(state);
  SetCondition(status, Scheduled(state, status), state.now);
  status.phase = PhaseOf(status);
  status.message = Shorten(MessageOf(state, status), 1024);
}

}  // namespace disttrain
