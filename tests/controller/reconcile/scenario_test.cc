// SPDX-License-Identifier: Apache-2.0
// The cases K1 to K15 of other operators' bugs, each from the trigger to the
// right behaviour, with the real reconcile code and an API server in memory.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/job_world.h"

namespace disttrain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One agent and `observers` observers that run a container of their own.
Json Spec(int observers = 2, Json more = Json::object()) {
  const Json pod = {
      {"spec",
       {{"containers",
         {{{"name", "main"}, {"image", "busybox"}, {"command", {"true"}}}}}}}};
  Json spec = {
      {"roles",
       {{{"name", "agent"}, {"replicas", 1}, {"template", pod}},
        {{"name", "observer"}, {"replicas", observers}, {"template", pod}}}}};
  spec.update(more);
  return spec;
}

const PodEnd kKilled = {137, 9};
const PodEnd kOutOfMemory = {137, 9, "OOMKilled"};
const PodEnd kDone = {0};

TEST(Scenario, PodsRunAndEndAndTheJobIsComplete) {
  JobWorld world;
  world.Apply(Spec());
  world.Settle();
  EXPECT_THAT(world.nodes.Pods(),
              ElementsAre("cartpole-agent-0", "cartpole-observer-0",
                          "cartpole-observer-1"));
  EXPECT_EQ(world.Status().phase, "Pending");
  world.RunAll();
  EXPECT_EQ(world.Status().phase, "Running");
  EXPECT_EQ(world.ConditionOf("Scheduled"), "True/AllPodsBound");
  EXPECT_EQ(world.Status().ready_text, "3/3");
  for (const std::string& pod : world.nodes.Pods()) {
    world.nodes.End(pod, kDone);
  }
  world.Settle();
  EXPECT_EQ(world.Status().phase, "Complete");
  EXPECT_EQ(world.ConditionOf("Complete"), "True/AllRanksSucceeded");
  EXPECT_EQ(world.ConditionOf("Running"), "False/Finished");
}

TEST(Scenario, AnIdleJobIsNotWrittenAgain) {
  JobWorld world;
  world.Apply(Spec());
  world.RunAll();
  const Json before = world.JobObject();
  world.RestartController();
  world.Advance(absl::Minutes(10));
  EXPECT_EQ(world.JobObject(), before);
}

TEST(ScenarioK1, RanksThatAreDoneAreNotStartedAgainWithoutTheirPods) {
  JobWorld world;
  world.Apply(Spec());
  world.RunAll();
  world.nodes.End("cartpole-observer-0", kDone);
  world.nodes.End("cartpole-observer-1", kDone);
  world.Settle();
  EXPECT_EQ(world.Status().roles[1].succeeded_ranks, (std::set<int>{1, 2}));
  world.nodes.Vanish("cartpole-observer-0");
  world.nodes.Vanish("cartpole-observer-1");
  world.nodes.End("cartpole-agent-0", kDone);
  const int creates = world.creates;
  world.RestartController();
  world.Settle();
  EXPECT_EQ(world.Status().phase, "Complete");
  EXPECT_EQ(world.creates, creates);
}

TEST(ScenarioK2, OutOfMemoryForEverUsesUpItsRestarts) {
  JobWorld world;
  world.Apply(Spec(1, {{"failurePolicy", {{"maxRestarts", 2}}}}));
  for (int attempt = 0; attempt < 3; ++attempt) {
    world.RunAll();
    ASSERT_EQ(world.Status().attempt, attempt);
    world.nodes.End(attempt == 0
                        ? "cartpole-observer-0"
                        : "cartpole-observer-0-r" + std::to_string(attempt),
                    kOutOfMemory);
    world.Settle();
    world.nodes.FinishDeletions();
    world.Advance(absl::Seconds(10));
  }
  const JobStatus status = world.Status();
  EXPECT_EQ(world.ConditionOf("Failed"), "True/MaxRestartsExceeded");
  EXPECT_EQ(status.attempt, 2);
  ASSERT_EQ(status.failures.size(), 3u);
  EXPECT_EQ(status.failures[0].reason, "OOMKilled");
  EXPECT_EQ(status.failures[0].attempt, 2);
  EXPECT_EQ(status.restarts.counted, 2);
  EXPECT_EQ(status.message,
            "rank 1 (observer): killed by SIGKILL: out of memory (OOMKilled); "
            "maxRestarts 2 is used up");
}

TEST(ScenarioK3, TheEndIsStickyWhateverHappensToTheChildren) {
  for (const bool complete : {true, false}) {
    JobWorld world;
    world.Apply(Spec(1, {{"failurePolicy", {{"maxRestarts", 0}}}}));
    world.RunAll();
    world.nodes.End("cartpole-agent-0", complete ? kDone : kKilled);
    if (complete) world.nodes.End("cartpole-observer-0", kDone);
    world.Settle();
    const std::string phase = world.Status().phase;
    EXPECT_EQ(phase, complete ? "Complete" : "Failed");
    const int creates = world.creates;
    for (const std::string& pod : world.nodes.Pods()) world.nodes.Vanish(pod);
    world.RestartController();
    world.Patch({{"metadata", {{"annotations", {{"touched", "yes"}}}}}});
    world.Advance(absl::Hours(1));
    EXPECT_EQ(world.Status().phase, phase);
    EXPECT_THAT(world.nodes.Pods(), IsEmpty());
    EXPECT_EQ(world.creates, creates);
  }
}

TEST(ScenarioK4, TheActiveDeadlineNeedsNoEventAndSurvivesARestart) {
  for (const bool restart : {false, true}) {
    JobWorld world;
    world.Apply(Spec(1, {{"deadlines", {{"activeSeconds", 5}}}}));
    world.RunAll();
    world.Advance(absl::Seconds(3));
    EXPECT_EQ(world.Status().phase, "Running");
    if (restart) world.RestartController();
    world.Advance(absl::Seconds(2));
    EXPECT_EQ(world.ConditionOf("Failed"), "True/DeadlineExceeded");
    world.nodes.FinishDeletions();
    EXPECT_THAT(world.nodes.Pods(), IsEmpty());
  }
}

TEST(ScenarioK5, TheTimeToLiveIsKept) {
  JobWorld world;
  world.Apply(Spec(1, {{"cleanup", {{"ttlSecondsAfterFinished", 3}}}}));
  world.RunAll();
  for (const std::string& pod : world.nodes.Pods()) {
    world.nodes.End(pod, kDone);
  }
  world.Settle();
  world.Advance(absl::Seconds(2));
  EXPECT_TRUE(world.JobExists());
  world.Advance(absl::Seconds(1));
  EXPECT_FALSE(world.JobExists());
  EXPECT_THAT(world.nodes.Pods(), IsEmpty()) << "children go with their owner";
}

TEST(ScenarioK5, AControllerThatWasDownDeletesAtItsStart) {
  JobWorld world;
  world.Apply(Spec(1));
  world.RunAll();
  for (const std::string& pod : world.nodes.Pods()) {
    world.nodes.End(pod, kDone);
  }
  world.Settle();
  // Edited after the end, while the controller is down.
  world.Patch({{"spec", {{"cleanup", {{"ttlSecondsAfterFinished", 3}}}}}});
  world.clock.Advance(absl::Hours(1));
  world.RestartController();
  world.Settle();
  EXPECT_FALSE(world.JobExists());
}

TEST(ScenarioK5, ZeroDeletesAtOnce) {
  JobWorld world;
  world.Apply(Spec(1, {{"cleanup", {{"ttlSecondsAfterFinished", 0}}}}));
  world.RunAll();
  for (const std::string& pod : world.nodes.Pods()) {
    world.nodes.End(pod, kDone);
  }
  world.Settle();
  EXPECT_FALSE(world.JobExists());
}

TEST(ScenarioK6, APodThatNeverDisappearsHoldsNobodyUp) {
  JobWorld world;
  world.Apply(Spec());
  world.RunAll();
  world.nodes.Delete("cartpole-observer-1");
  world.Advance(absl::Seconds(90));
  EXPECT_EQ(world.Status().attempt, 1);
  world.RunAll();
  EXPECT_EQ(world.Status().phase, "Running");
  EXPECT_TRUE(world.nodes.Has("cartpole-observer-1-r1"));
  EXPECT_EQ(world.Status().restarts.disruptions, 1);
  EXPECT_EQ(world.Status().failures[0].reason, "Deleted");
}

TEST(ScenarioK7, AShutDownNodeIsADisruption) {
  JobWorld world;
  world.Apply(Spec());
  world.RunAll();
  world.nodes.Reject("cartpole-observer-0", "NodeShutdown",
                     "Pod was rejected as the node is shutting down.");
  world.Settle();
  const JobStatus status = world.Status();
  EXPECT_EQ(status.attempt, 1);
  EXPECT_EQ(status.restarts.disruptions, 1);
  EXPECT_EQ(status.restarts.counted, 0);
}

TEST(ScenarioK8, APreemptionIsNamedWithPodAndNode) {
  JobWorld world;
  world.Apply(Spec());
  world.RunAll();
  world.nodes.SetCondition("cartpole-observer-0", "DisruptionTarget",
                           "PreemptionByScheduler",
                           "default-scheduler: preempting");
  world.Settle();
  const JobStatus status = world.Status();
  EXPECT_EQ(status.failures[0].reason, "Preempted");
  EXPECT_EQ(status.restarts.disruptions, 1);
  bool named = false;
  const auto events = world.api.List(Resource::kEvents, "default", "");
  ASSERT_TRUE(events.ok());
  for (const Json& event : events->items) {
    const std::string text = event["message"];
    named = named || (event["reason"] == "Restarting" &&
                      text.find("cartpole-observer-0") != text.npos &&
                      text.find("node-cartpole-observer-0") != text.npos);
  }
  EXPECT_TRUE(named);
}

TEST(ScenarioK9, AnEvictionRestartsAndAFinalFailureLeavesNothingRunning) {
  JobWorld world;
  world.Apply(Spec(3, {{"failurePolicy", {{"maxDisruptions", 1}}}}));
  world.RunAll();
  world.nodes.Reject("cartpole-observer-2", "Evicted", "low on memory");
  world.RunAll();
  EXPECT_EQ(world.Status().attempt, 1);
  EXPECT_EQ(world.ConditionOf("Failed"), "False/NotFinished");
  world.nodes.FinishDeletions();
  world.nodes.Reject("cartpole-observer-2-r1", "Evicted", "low on memory");
  world.Settle();
  EXPECT_EQ(world.ConditionOf("Failed"), "True/TooManyDisruptions");
  world.nodes.FinishDeletions();
  EXPECT_THAT(world.nodes.Pods(), ElementsAre("cartpole-observer-2-r1"))
      << "only the failed one is kept, for its log";
}

TEST(ScenarioK10, OneLostRankStartsTheWholeGangAgain) {
  const auto trigger = [](JobWorld& world, int way) {
    if (way == 0) world.nodes.End("cartpole-observer-1", {1});
    if (way == 1) world.nodes.Delete("cartpole-observer-1");
    if (way == 2) world.nodes.Vanish("cartpole-observer-1");
    if (way == 3) {
      world.nodes.SetCondition("cartpole-observer-1", "DisruptionTarget",
                               "EvictionByEvictionAPI", "drained");
    }
  };
  for (int way = 0; way < 4; ++way) {
    JobWorld world;
    world.Apply(Spec(3));
    world.RunAll();
    trigger(world, way);
    world.Settle();
    world.nodes.FinishDeletions();
    world.RunAll();
    EXPECT_THAT(world.nodes.Pods(),
                ElementsAre("cartpole-agent-0-r1", "cartpole-observer-0-r1",
                            "cartpole-observer-1-r1", "cartpole-observer-2-r1"))
        << "way " << way;
    EXPECT_EQ(world.Status().phase, "Running");
  }
}

TEST(ScenarioK11, AFailureDuringADowntimeIsHandledOnce) {
  JobWorld world;
  world.Apply(Spec());
  world.RunAll();
  world.nodes.End("cartpole-observer-0", kKilled);
  world.RestartController();
  world.Settle();
  world.RestartController();
  world.Settle();
  const JobStatus status = world.Status();
  EXPECT_EQ(status.attempt, 1);
  EXPECT_EQ(status.restarts.counted, 1);
  EXPECT_EQ(status.restarts.total, 1);
  EXPECT_EQ(status.failures.size(), 1u);
}

TEST(ScenarioK12, ThePendingDeadlineNamesWhatHoldsThePod) {
  JobWorld world;
  world.Apply(Spec(1, {{"deadlines", {{"pendingSeconds", 10}}}}));
  world.Settle();
  world.nodes.Run("cartpole-agent-0");
  world.nodes.Hold("cartpole-observer-0", "ContainerCreating",
                   "FailedMount: configmap \"x\" not found");
  world.Advance(absl::Seconds(9));
  EXPECT_EQ(world.ConditionOf("Failed"), "False/NotFinished");
  world.Advance(absl::Seconds(1));
  EXPECT_EQ(world.ConditionOf("Failed"), "True/PendingDeadlineExceeded");
  EXPECT_THAT(world.Status().message, AllOf(HasSubstr("cartpole-observer-0"),
                                            HasSubstr("FailedMount")));
}

TEST(ScenarioK14, ExitOneIsRestartedAndSeventyEightIsNot) {
  JobWorld world;
  world.Apply(Spec());
  world.RunAll();
  world.nodes.End("cartpole-observer-0", {1});
  world.Settle();
  EXPECT_EQ(world.Status().restarts.counted, 1);
  world.nodes.FinishDeletions();
  world.RunAll();
  world.nodes.End("cartpole-observer-0-r1", {78});
  world.Settle();
  EXPECT_EQ(world.ConditionOf("Failed"), "True/NonRetryableExit");
  EXPECT_EQ(world.Status().restarts.counted, 1);
}

TEST(ScenarioK14, TheKubeflowPresetTakesLowCodesForPermanent) {
  JobWorld world;
  world.Apply(Spec(1, {{"failurePolicy", {{"preset", "KubeflowExitCode"}}}}));
  world.RunAll();
  world.nodes.End("cartpole-observer-0", {1});
  world.Settle();
  EXPECT_EQ(world.ConditionOf("Failed"), "True/NonRetryableExit");
}

TEST(ScenarioK15, Rank0DecidesIfThePolicySaysSo) {
  JobWorld world;
  world.Apply(Spec(2, {{"successPolicy", {{"mode", "Rank0"}}}}));
  world.RunAll();
  world.nodes.End("cartpole-agent-0", kDone);
  // They lose rank 0; that is no failure of the job.
  world.nodes.End("cartpole-observer-0", {75});
  world.Settle();
  EXPECT_EQ(world.ConditionOf("Complete"), "True/Rank0Succeeded");
  world.nodes.FinishDeletions();
  EXPECT_THAT(world.nodes.Pods(),
              ElementsAre("cartpole-agent-0", "cartpole-observer-0"))
      << "the running one was ended";
}

TEST(ScenarioK15, AllRanksDoesNotWaitForReplaceableOnesThatAreAway) {
  JobWorld world;
  Json spec = Spec(2, {{"program", "reinforce"}});
  spec["roles"][1]["restart"] = "Rank";
  world.Apply(spec);
  world.RunAll();
  world.nodes.End("cartpole-observer-1", kDone);
  world.nodes.End("cartpole-observer-0", {1});
  world.Settle();
  EXPECT_EQ(world.Status().phase, "Running");
  world.nodes.End("cartpole-agent-0", kDone);
  world.Settle();
  EXPECT_EQ(world.ConditionOf("Complete"), "True/AllRanksSucceeded");
}

TEST(ScenarioK15, AllRanksWaitsForAll) {
  JobWorld world;
  world.Apply(Spec(2));
  world.RunAll();
  world.nodes.End("cartpole-agent-0", kDone);
  world.Advance(absl::Hours(1));
  EXPECT_EQ(world.Status().phase, "Running");
}

}  // namespace
}  // namespace disttrain
