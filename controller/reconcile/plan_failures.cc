// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "controller/reconcile/plan_steps.h"
#include "fmt/format.h"
#include "proto/contract/labels.h"

namespace disttrain {
namespace {

// Records of failures beside the root cause, per attempt.
constexpr size_t kMaxOthers = 3;
constexpr absl::Duration kRankVictimGrace = absl::Seconds(10);

FailureRecord RecordOf(const PodFailure& failure, int attempt,
                       const Verdict& verdict) {
  FailureRecord record;
  record.attempt = attempt;
  record.rank = failure.rank;
  record.role = failure.role;
  record.pod = failure.pod;
  record.node = failure.node;
  record.time = failure.time;
  record.exit_code = failure.exit_code;
  record.signal = failure.signal;
  record.reason = failure.reason;
  record.message = failure.message;
  record.action = ActionName(verdict.action);
  record.counted = verdict.action == FailureAction::kRestart;
  return record;
}

std::optional<absl::Time> ConfigErrorSince(const PlanState& state,
                                           const PodView& pod) {
  const auto found = state.observed.config_error_since.find(pod.uid);
  if (found == state.observed.config_error_since.end()) return std::nullopt;
  return found->second;
}

// The failure of pod `index` of a role, if it has failed.
std::optional<PodFailure> FailureAt(PlanState& state, size_t role, int index) {
  const Role& spec = state.spec().roles[role];
  const RoleStatus& known = state.status().roles[role];
  const int rank = FirstRank(state.spec(), role, index);
  if (known.succeeded_ranks.count(rank) > 0) return std::nullopt;
  const PodView* pod = CurrentPod(state, spec.name, index);
  if (pod != nullptr) {
    if (IsConfigError(*pod)) {
      RequeueAt(state, state.now + absl::Seconds(30));
    }
    return FailureOf(*pod, ConfigErrorSince(state, *pod), state.now);
  }
  // Before Running a pod may simply not have been made yet.
  if (!IsTrue(state.status(), condition::kRunning) ||
      known.retry_times.count(rank) > 0) {
    return std::nullopt;
  }
  const auto incarnation = known.incarnations.find(rank);
  return MissingPod(
      spec.name, index, rank,
      PodName(
          state.job.name, spec.name, index, state.status().attempt,
          incarnation == known.incarnations.end() ? 0 : incarnation->second),
      state.now);
}

std::vector<PodFailure> FailuresOf(PlanState& state, RestartScope scope,
                                   bool* all_left) {
  std::vector<PodFailure> failures;
  *all_left = true;
  for (size_t role = 0; role < state.spec().roles.size(); ++role) {
    if (state.spec().roles[role].restart != scope) continue;
    for (int index = 0; index < state.spec().roles[role].replicas; ++index) {
      if (auto failure = FailureAt(state, role, index)) {
        failures.push_back(*std::move(failure));
      } else if (const PodView* pod =
                     CurrentPod(state, state.spec().roles[role].name, index)) {
        *all_left = *all_left && Succeeded(*pod);
      }
    }
  }
  return failures;
}

// The pods of a gang whose loss the policy ignores count for nothing.
void DropIgnored(const FailurePolicy& policy,
                 std::vector<PodFailure>& failures) {
  failures.erase(std::remove_if(failures.begin(), failures.end(),
                                [&policy](const PodFailure& failure) {
                                  return Classify(policy, failure).action ==
                                         FailureAction::kIgnore;
                                }),
                 failures.end());
}

void Remember(PlanState& state, const AttemptFailure& judged,
              const std::vector<PodFailure>& failures) {
  size_t others = 0;
  for (const PodFailure& failure : failures) {
    if (failure.victim || failure.pod == judged.root.pod) continue;
    if (++others > kMaxOthers) break;
    AddFailure(state.status(),
               RecordOf(failure, state.status().attempt,
                        Classify(state.spec().failure_policy, failure)));
  }
}

// Restarts one rank of a role with restart: Rank. True: the job has failed.
bool RestartRank(PlanState& state, size_t role, const PodFailure& failure) {
  JobStatus& status = state.status();
  const FailurePolicy& policy = state.spec().failure_policy;
  Verdict verdict = Classify(policy, failure);
  if (verdict.action == FailureAction::kIgnore) return false;
  FailureRecord record = RecordOf(failure, status.attempt, verdict);
  record.root_cause = true;
  AddFailure(status, record);
  status.restarts.last_reason = failure.reason;
  if (verdict.action == FailureAction::kFail) {
    Fail(state, verdict.failed_reason, Describe(failure));
    return true;
  }
  if (const auto spent = TakeRestart(policy, verdict.action, status.restarts)) {
    Fail(state, *spent, Describe(failure));
    return true;
  }
  RoleStatus& known = status.roles[role];
  const int rank = FirstRank(state.spec(), role, failure.index);
  if (failure.created != absl::InfinitePast() &&
      failure.time - failure.created >=
          absl::Seconds(policy.backoff.reset_after_seconds)) {
    known.in_a_row.erase(rank);
  }
  const absl::Duration wait =
      BackoffBefore(policy.backoff, ++known.in_a_row[rank]);
  ++known.incarnations[rank];
  known.retry_times[rank] = state.now + wait;
  state.decision.events.push_back(
      {true, "RankRestarting",
       fmt::format("{} (pod {}{}{})", Describe(failure), failure.pod,
                   failure.node.empty() ? "" : ", node ", failure.node)});
  const auto gone = state.current.find({failure.role, failure.index});
  if (gone != state.current.end()) {
    state.old.push_back(gone->second);
    state.current.erase(gone);
  }
  return false;
}

bool PlanRankRestarts(PlanState& state) {
  bool all_left = false;
  for (const PodFailure& failure :
       FailuresOf(state, RestartScope::kRank, &all_left)) {
    // If the whole attempt ends, that shows within seconds.
    const absl::Time due = std::min(failure.time, state.now) + kRankVictimGrace;
    if (failure.victim && state.now < due) {
      RequeueAt(state, due);
      continue;
    }
    const auto role = std::find_if(
        state.spec().roles.begin(), state.spec().roles.end(),
        [&failure](const Role& r) { return r.name == failure.role; });
    const auto position =
        static_cast<size_t>(role - state.spec().roles.begin());
    if (RestartRank(state, position, failure)) return true;
  }
  return false;
}

std::string Outcome(const AttemptFailure& failure, const std::string& budget) {
  std::string text = Describe(failure.root);
  if (failure.reason == "OOMKilled" || failure.reason == "RendezvousTimeout" ||
      failure.reason == "NoProgress") {
    text += fmt::format(" ({})", failure.reason);
  }
  return budget.empty() ? text : text + "; " + budget;
}

std::string BudgetText(const FailurePolicy& policy, FailureAction action) {
  return action == FailureAction::kRestart
             ? fmt::format("maxRestarts {} is used up", policy.max_restarts)
             : fmt::format("maxDisruptions {} is used up",
                           policy.max_disruptions);
}

bool RanLongEnough(const PlanState& state, const JobStatus& status) {
  const Condition* running = FindCondition(status, condition::kRunning);
  return running != nullptr && running->status == "True" &&
         state.now - running->last_transition >=
             absl::Seconds(
                 state.spec().failure_policy.backoff.reset_after_seconds);
}

}  // namespace

void EndAttempt(PlanState& state, const AttemptFailure& failure) {
  JobStatus& status = state.status();
  const FailurePolicy& policy = state.spec().failure_policy;
  FailureRecord record =
      RecordOf(failure.root, status.attempt, failure.verdict);
  // A rank that never joined may have no pod to name.
  if (record.pod.empty()) {
    record.pod = PodName(state.job.name, record.role, failure.root.index,
                         status.attempt, 0);
  }
  record.root_cause = failure.root_known;
  record.reason = failure.reason;
  AddFailure(status, record);
  status.restarts.last_reason = failure.reason;
  if (failure.verdict.action == FailureAction::kFail) {
    Fail(state, failure.verdict.failed_reason, Outcome(failure, ""));
    return;
  }
  if (const auto spent =
          TakeRestart(policy, failure.verdict.action, status.restarts)) {
    const bool named =
        failure.reason == "RendezvousTimeout" || failure.reason == "NoProgress";
    Fail(state, named ? failure.reason : *spent,
         Outcome(failure, BudgetText(policy, failure.verdict.action)));
    return;
  }
  if (RanLongEnough(state, status)) status.restarts.in_a_row = 0;
  const absl::Duration wait =
      BackoffBefore(policy.backoff, ++status.restarts.in_a_row);
  status.restarts.next_retry = state.now + wait;
  RequeueAt(state, state.now + wait);
  SetCondition(
      status,
      {condition::kRunning, "False", "Restarting", Outcome(failure, "")},
      state.now);
  BeginNextAttempt(state);
  for (const auto& [at, pod] : state.current) DeletePodOnce(state, *pod);
  state.current.clear();
  state.decision.events.push_back(
      {true, "Restarting",
       fmt::format("attempt {}: {} (pod {}{}{})", status.attempt,
                   Describe(failure.root), record.pod,
                   record.node.empty() ? "" : ", node ", record.node)});
  state.decision.reason = Outcome(failure, "");
}

bool PlanFailures(PlanState& state) {
  AttemptFacts facts;
  facts.now = state.now;
  facts.ever_running = IsTrue(state.status(), condition::kRunning);
  const auto& report = state.observed.report;
  if (report && report->attempt == state.status().attempt) {
    const v1::Progress& progress = report->progress;
    if (progress.has_failure()) facts.hint = progress.failure().rank();
    if (progress.missing_ranks_size() > 0) {
      facts.missing = progress.missing_ranks(0);
    }
  }
  std::vector<PodFailure> failures =
      FailuresOf(state, RestartScope::kGang, &facts.all_left);
  DropIgnored(state.spec().failure_policy, failures);
  if (failures.empty()) return PlanRankRestarts(state);
  absl::Time wait_until = absl::InfiniteFuture();
  const auto judged = JudgeAttempt(state.spec(), failures, facts, &wait_until);
  if (!judged) {
    RequeueAt(state, wait_until);
    return true;
  }
  Remember(state, *judged, failures);
  EndAttempt(state, *judged);
  return true;
}

}  // namespace disttrain
