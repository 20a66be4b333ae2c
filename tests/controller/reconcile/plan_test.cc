// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/contract/labels.h"
#include "tests/controller/reconcile/now.h"

namespace disttrain {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Job JobWith(int observers, const JobStatus& status = {}) {
  Job job;
  job.name = "cartpole";
  job.uid = "u";
  Role agent;
  agent.name = "agent";
  Role observer;
  observer.name = "observer";
  observer.replicas = observers;
  job.spec.roles = {agent, observer};
  job.status = ToJson(status);
  return job;
}

PodView PodOf(const std::string& role, int index, int attempt = 0,
              int incarnation = 0) {
  PodView pod;
  pod.name = PodName("cartpole", role, index, attempt, incarnation);
  pod.uid = "uid-" + pod.name;
  pod.role = role;
  pod.role_index = index;
  pod.rank = role == "agent" ? 0 : 1 + index;
  pod.attempt = attempt;
  pod.incarnation = incarnation;
  return pod;
}

PodView Running(const std::string& role, int index, int attempt = 0,
                int incarnation = 0) {
  PodView pod = PodOf(role, index, attempt, incarnation);
  pod.phase = PodPhase::kRunning;
  pod.bound = pod.ready = pod.main_running = pod.main_started = true;
  pod.creation_time = kNow - absl::Minutes(5);
  return pod;
}

PodView Failed(PodView pod, int code) {
  pod.phase = PodPhase::kFailed;
  pod.main_running = pod.ready = false;
  pod.exit_code = code;
  pod.finished_at = kNow;
  pod.reason = "Error";
  return pod;
}

JobStatus RunningStatus(int attempt = 0) {
  JobStatus status;
  status.attempt = attempt;
  status.attempt_start_time = kNow - absl::Minutes(5);
  SetCondition(status, {condition::kRunning, "True", "AllRanksJoined"},
               kNow - absl::Minutes(4));
  return status;
}

Observed With(std::vector<PodView> pods) {
  Observed observed;
  observed.pods = std::move(pods);
  observed.service_attempt = 0;
  return observed;
}

DeletePod Deletes(const std::string& name) { return {name, "uid-" + name}; }

TEST(Plan, MakesServiceAndPodsInTheOrderOfRanks) {
  Observed observed;
  const Decision decision = Plan(JobWith(2), observed, kNow);
  EXPECT_THAT(decision.actions, ElementsAre(Action(EnsureService{0}),
                                            Action(CreatePod{0, 0, 0, 0}),
                                            Action(CreatePod{1, 0, 0, 0}),
                                            Action(CreatePod{1, 1, 0, 0})));
  EXPECT_EQ(decision.status.attempt_start_time, kNow);
  EXPECT_EQ(decision.status.phase, "Pending");
}

TEST(Plan, WaitsForTheRoleThatAnotherStartsAfter) {
  Job job = JobWith(1);
  job.spec.roles[1].start_after = "agent";
  EXPECT_THAT(Plan(job, With({}), kNow).actions,
              ElementsAre(Action(CreatePod{0, 0, 0, 0})));
  EXPECT_THAT(Plan(job, With({PodOf("agent", 0)}), kNow).actions, IsEmpty());
  EXPECT_THAT(Plan(job, With({Running("agent", 0)}), kNow).actions,
              ElementsAre(Action(CreatePod{1, 0, 0, 0})));
}

TEST(Plan, DeletesPodsOfAnEarlierAttempt) {
  Observed observed = With({Running("agent", 0, 0), Running("agent", 0, 1),
                            Running("observer", 0, 1)});
  observed.service_attempt = 1;
  const Decision decision = Plan(JobWith(1, RunningStatus(1)), observed, kNow);
  EXPECT_THAT(decision.actions,
              ElementsAre(Action(Deletes("cartpole-agent-0"))));
}

TEST(Plan, DoesNothingWhenThePodsAreAheadOfTheJob) {
  const Decision decision =
      Plan(JobWith(1, RunningStatus(0)), With({Running("agent", 0, 1)}), kNow);
  EXPECT_TRUE(decision.stale);
  EXPECT_THAT(decision.actions, IsEmpty());
}

TEST(Plan, LeavesOthersJobsAlone) {
  Job job = JobWith(1);
  job.spec.managed_by = "kueue.x-k8s.io/multikueue";
  const Decision decision = Plan(job, {}, kNow);
  EXPECT_THAT(decision.actions, IsEmpty());
  EXPECT_EQ(ToJson(decision.status), ToJson(StatusFromJson(job.status)));
}

TEST(Plan, TheAttemptMovesBeforeAnythingIsDeleted) {
  const Decision decision = Plan(
      JobWith(1, RunningStatus()),
      With({Running("agent", 0), Failed(Running("observer", 0), 137)}), kNow);
  EXPECT_EQ(decision.status.attempt, 1);
  EXPECT_EQ(decision.status.restarts.counted, 1);
  EXPECT_EQ(decision.status.phase, "Restarting");
  EXPECT_THAT(decision.actions,
              UnorderedElementsAre(Action(Deletes("cartpole-agent-0")),
                                   Action(Deletes("cartpole-observer-0"))));
  EXPECT_EQ(decision.requeue_at, kNow) << "the first restart is immediate";
}

TEST(Plan, TheSecondRestartInARowWaits) {
  JobStatus status = RunningStatus(1);
  status.restarts = {1, 1, 0, 1, "Error", std::nullopt};
  const Observed failed =
      With({Running("agent", 0, 1), Failed(Running("observer", 0, 1), 1)});
  const Decision decision = Plan(JobWith(1, status), failed, kNow);
  EXPECT_EQ(decision.status.restarts.next_retry, kNow + absl::Seconds(5));
  const Decision waiting = Plan(JobWith(1, decision.status), With({}), kNow);
  EXPECT_THAT(waiting.actions, IsEmpty());
  EXPECT_EQ(waiting.requeue_at, kNow + absl::Seconds(5));
  const Decision due =
      Plan(JobWith(1, decision.status), With({}), kNow + absl::Seconds(5));
  EXPECT_EQ(due.actions.size(), 3u);
  EXPECT_EQ(due.status.restarts.next_retry, std::nullopt);
}

TEST(Plan, AHealthyPeriodResetsTheWait) {
  JobStatus status = RunningStatus(1);
  status.restarts = {4, 3, 1, 4, "Error", std::nullopt};
  Job job = JobWith(1, status);
  job.spec.failure_policy.max_restarts = 9;
  job.spec.failure_policy.backoff.reset_after_seconds = 240;
  const Decision decision = Plan(
      job, With({Running("agent", 0, 1), Failed(Running("observer", 0, 1), 1)}),
      kNow);
  EXPECT_EQ(decision.status.restarts.in_a_row, 1);
  EXPECT_EQ(decision.requeue_at, kNow);
}

TEST(PlanRankRestart, OnlyThatRankIsMadeAgain) {
  Job job = JobWith(2, RunningStatus());
  job.spec.roles[1].restart = RestartScope::kRank;
  const Decision decision =
      Plan(job,
           With({Running("agent", 0), Failed(Running("observer", 0), 137),
                 Running("observer", 1)}),
           kNow);
  EXPECT_EQ(decision.status.attempt, 0);
  EXPECT_EQ(decision.status.phase, "Running");
  EXPECT_EQ(decision.status.roles[1].incarnations,
            (std::map<int, int>{{1, 1}}));
  EXPECT_EQ(decision.status.restarts.counted, 1);
  EXPECT_THAT(decision.actions,
              ElementsAre(Action(Deletes("cartpole-observer-0")),
                          Action(CreatePod{1, 0, 0, 1})));
  // Its successor is lost too: the second in a row waits.
  Job again = job;
  again.status = ToJson(decision.status);
  const Decision second =
      Plan(again,
           With({Running("agent", 0), Failed(Running("observer", 0, 0, 1), 1),
                 Running("observer", 1)}),
           kNow + absl::Seconds(30));
  EXPECT_THAT(second.actions,
              ElementsAre(Action(Deletes("cartpole-observer-0-i1"))));
  EXPECT_EQ(second.requeue_at, kNow + absl::Seconds(35));
  EXPECT_EQ(second.status.roles[1].incarnations.at(1), 2);
}

TEST(PlanRankRestart, TheGangsEndEndsItToo) {
  Job job = JobWith(1, RunningStatus());
  job.spec.roles[1].restart = RestartScope::kRank;
  const Decision decision = Plan(job,
                                 With({Failed(Running("agent", 0), 1),
                                       Failed(Running("observer", 0), 75)}),
                                 kNow);
  EXPECT_EQ(decision.status.attempt, 1);
  EXPECT_THAT(decision.status.roles[1].incarnations, IsEmpty());
  EXPECT_EQ(decision.status.restarts.total, 1);
}

TEST(PlanSuspend, ASuspendedJobGetsNothing) {
  Job job = JobWith(1);
  job.spec.suspend = true;
  const Decision decision = Plan(job, {}, kNow);
  EXPECT_THAT(decision.actions, IsEmpty());
  EXPECT_TRUE(IsTrue(decision.status, condition::kSuspended));
  EXPECT_EQ(decision.status.phase, "Suspended");
  EXPECT_EQ(decision.requeue_at, absl::InfiniteFuture());
}

TEST(PlanSuspend, PodsGoFirstAndResumingIsANewAttempt) {
  Job job = JobWith(1, RunningStatus());
  job.spec.suspend = true;
  const Decision going =
      Plan(job, With({Running("agent", 0), Running("observer", 0)}), kNow);
  EXPECT_EQ(FindCondition(going.status, condition::kSuspended)->reason,
            "Suspending");
  EXPECT_THAT(going.actions,
              ElementsAre(Action(StopTraining{0, "the job was suspended"}),
                          Action(Deletes("cartpole-agent-0")),
                          Action(Deletes("cartpole-observer-0")),
                          Action(DeleteService{})));
  job.status = ToJson(going.status);
  const Decision gone = Plan(job, {}, kNow + absl::Seconds(5));
  EXPECT_TRUE(IsTrue(gone.status, condition::kSuspended));
  EXPECT_EQ(gone.status.active_seconds, 240);
  job.status = ToJson(gone.status);
  job.spec.suspend = false;
  const Decision resumed = Plan(job, {}, kNow + absl::Hours(1));
  EXPECT_EQ(resumed.status.attempt, 1);
  EXPECT_EQ(FindCondition(resumed.status, condition::kSuspended)->reason,
            "Resumed");
  EXPECT_EQ(resumed.status.restarts.total, 0) << "no restart was used";
  EXPECT_THAT(resumed.actions, IsEmpty()) << "the status is written first";
  EXPECT_EQ(resumed.requeue_at, kNow + absl::Hours(1));
}

TEST(PlanSuspend, APodOnALostNodeCountsAsGoneAfterItsGrace) {
  Job job = JobWith(1, RunningStatus());
  job.spec.suspend = true;
  PodView stuck = Running("agent", 0);
  stuck.being_deleted = true;
  stuck.deletion_time = kNow;
  const Decision waiting = Plan(job, With({stuck}), kNow);
  EXPECT_FALSE(IsTrue(waiting.status, condition::kSuspended));
  EXPECT_EQ(waiting.requeue_at, kNow + absl::Seconds(60));
  const Decision lost = Plan(job, With({stuck}), kNow + absl::Seconds(60));
  EXPECT_TRUE(IsTrue(lost.status, condition::kSuspended));
}

ProgressReport ReportAt(absl::Time time, v1::Progress::State state,
                        int attempt = 0) {
  ProgressReport report;
  report.progress.set_state(state);
  report.progress.set_world_size(2);
  report.progress.set_joined(2);
  report.attempt = attempt;
  report.time = time;
  return report;
}

Job ProgramJob(const JobStatus& status = {}) {
  Job job = JobWith(1, status);
  job.spec.program = "reinforce";
  return job;
}

TEST(PlanProgress, AJobWithAProgramRunsOnceAllRanksHaveJoined) {
  JobStatus status;
  status.attempt_start_time = kNow;
  Observed observed = With({Running("agent", 0), Running("observer", 0)});
  observed.has_progress_source = true;
  const Decision started = Plan(ProgramJob(status), observed, kNow);
  EXPECT_EQ(started.status.phase, "Starting");
  EXPECT_TRUE(started.poll);
  observed.report = ReportAt(kNow, v1::Progress::STATE_JOINING);
  observed.report->progress.set_joined(1);
  observed.report->progress.add_missing_ranks(1);
  EXPECT_EQ(Plan(ProgramJob(status), observed, kNow).status.message,
            "attempt 0: 1/2 ranks joined; rank 1 is missing");
  observed.report = ReportAt(kNow, v1::Progress::STATE_RUNNING);
  const Decision running = Plan(ProgramJob(status), observed, kNow);
  EXPECT_EQ(running.status.phase, "Running");
  EXPECT_EQ(running.status.start_time, kNow);
  observed.report = ReportAt(kNow, v1::Progress::STATE_RUNNING, /*attempt=*/7);
  EXPECT_EQ(Plan(ProgramJob(status), observed, kNow).status.phase, "Starting")
      << "another attempt's report says nothing";
}

TEST(PlanProgress, ReachingTheTargetStopsTheTraining) {
  Job job = ProgramJob(RunningStatus());
  job.spec.success_policy.metric =
      MetricTarget{"reward", "GreaterOrEqual", 475, 2};
  Observed observed = With({Running("agent", 0), Running("observer", 0)});
  observed.has_progress_source = true;
  observed.report = ReportAt(kNow, v1::Progress::STATE_RUNNING);
  observed.report->progress.mutable_training()->set_reward(480);
  const Decision first = Plan(job, observed, kNow);
  EXPECT_EQ(first.status.phase, "Running");
  EXPECT_EQ(first.status.training.target_reports, 1);
  job.status = ToJson(first.status);
  EXPECT_EQ(Plan(job, observed, kNow).status.training.target_reports, 1)
      << "the same report counts once";
  observed.report->time = kNow + absl::Seconds(10);
  const Decision second = Plan(job, observed, kNow + absl::Seconds(10));
  EXPECT_EQ(FindCondition(second.status, condition::kComplete)->reason,
            "TargetMetricReached");
  EXPECT_EQ(second.status.message, "reward 480 reached the target 475");
  EXPECT_EQ(second.actions.front(),
            Action(StopTraining{0, "reward 480 reached the target 475"}));
}

TEST(PlanProgress, NoStepForTooLongIsACountedRestart) {
  JobStatus status = RunningStatus();
  status.training.step = 40;
  status.training.last_step = kNow - absl::Seconds(10);
  Job job = ProgramJob(status);
  job.spec.deadlines.progress_seconds = 60;
  job.spec.failure_policy.max_restarts = 1;
  const Observed observed = With({Running("agent", 0), Running("observer", 0)});
  EXPECT_EQ(Plan(job, observed, kNow).requeue_at, kNow + absl::Seconds(50));
  const Decision late = Plan(job, observed, kNow + absl::Seconds(50));
  EXPECT_EQ(late.status.attempt, 1);
  EXPECT_EQ(late.status.restarts.counted, 1);
  EXPECT_EQ(late.status.restarts.last_reason, "NoProgress");
  job.spec.failure_policy.max_restarts = 0;
  const Decision spent = Plan(job, observed, kNow + absl::Seconds(50));
  EXPECT_EQ(FindCondition(spent.status, condition::kFailed)->reason,
            "NoProgress");
}

TEST(PlanConditions, ErrorsOfTheApiShowInTheStatus) {
  Observed observed;
  observed.last_error = absl::ResourceExhaustedError("exceeded quota: gpu");
  const Decision quota = Plan(JobWith(1), observed, kNow);
  EXPECT_EQ(FindCondition(quota.status, condition::kScheduled)->reason,
            "QuotaExceeded");
  EXPECT_EQ(quota.status.message, "exceeded quota: gpu");
  observed.last_error = absl::AlreadyExistsError("pod x is not ours");
  const Decision conflict = Plan(JobWith(1), observed, kNow);
  EXPECT_EQ(FindCondition(conflict.status, condition::kAccepted)->reason,
            "NameConflict");
  EXPECT_FALSE(IsTerminal(conflict.status));
  Job job = JobWith(1);
  job.status = ToJson(conflict.status);
  EXPECT_EQ(ToJson(Plan(job, observed, kNow + absl::Seconds(5)).status),
            job.status)
      << "a conflict that lasts is written once";
}

TEST(PlanConditions, ARejectedJobFailsWithItsReason) {
  Observed observed;
  observed.rejection =
      Rejection{"ReservedVariable", "spec.roles[0]...: RANK is ours to set"};
  const Decision decision = Plan(JobWith(1), observed, kNow);
  EXPECT_EQ(FindCondition(decision.status, condition::kAccepted)->status,
            "False");
  EXPECT_EQ(FindCondition(decision.status, condition::kFailed)->reason,
            "ReservedVariable");
  EXPECT_THAT(decision.actions, IsEmpty());
}

// K38: which pods the end deletes.
TEST(PlanCleanUp, EachPolicyDeletesItsOwnSet) {
  JobStatus status = RunningStatus();
  status.completion_time = kNow;
  SetCondition(status, {condition::kFailed, "True", "PolicyFail"}, kNow);
  PodView pending = PodOf("observer", 0);
  PodView running = Running("observer", 1);
  PodView succeeded = Running("observer", 2);
  succeeded.phase = PodPhase::kSucceeded;
  succeeded.exit_code = 0;
  const PodView failed = Failed(Running("agent", 0), 1);
  const std::map<CleanupPodPolicy, size_t> deleted = {
      {CleanupPodPolicy::kNone, 0},
      {CleanupPodPolicy::kRunning, 2},
      {CleanupPodPolicy::kAll, 4}};
  for (const auto& [policy, count] : deleted) {
    Job job = JobWith(3, status);
    job.spec.cleanup.pod_policy = policy;
    Observed observed = With({failed, pending, running, succeeded});
    observed.service_attempt.reset();
    EXPECT_EQ(Plan(job, observed, kNow).actions.size(), count);
  }
}

}  // namespace
}  // namespace disttrain
