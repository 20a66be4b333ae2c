// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/reconciler.h"

#include "controller/reconcile/slow_start.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/job_world.h"

namespace disttrain {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Json Spec() {
  return Json::parse(R"({"roles": [{"name": "agent", "replicas": 2, "template":
      {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}}]})");
}

TEST(Reconciler, AForeignPodUnderOneOfOurNamesIsAConflictThatHeals) {
  JobWorld world;
  ASSERT_TRUE(world.api
                  .Create(Resource::kPods,
                          {{"metadata", {{"name", "cartpole-agent-0"}}},
                           {"spec", {{"containers", {{{"name", "x"}}}}}}})
                  .ok());
  world.Apply(Spec());
  world.Settle();
  EXPECT_EQ(world.ConditionOf("Accepted"), "False/NameConflict");
  EXPECT_THAT(world.Status().message, HasSubstr("cartpole-agent-0"));
  world.nodes.Vanish("cartpole-agent-0");
  world.Advance(absl::Seconds(5));
  EXPECT_EQ(world.ConditionOf("Accepted"), "True/Valid");
  EXPECT_EQ(world.nodes.Pods().size(), 2u);
}

TEST(Reconciler, APodOfAnotherJobWithOurLabelsIsLeftAlone) {
  JobWorld world;
  world.Apply(Spec());
  world.RunAll();
  Json foreign = world.nodes.Get("cartpole-agent-0");
  foreign["metadata"]["name"] = "stranger";
  foreign["metadata"].erase("ownerReferences");
  ASSERT_TRUE(world.api.Create(Resource::kPods, foreign).ok());
  world.nodes.End("cartpole-agent-0", {1});
  world.Settle();
  EXPECT_TRUE(world.nodes.Has("stranger"));
  EXPECT_EQ(world.Status().attempt, 1);
}

TEST(Reconciler, ALaterJobOfTheSameNameInheritsNothing) {
  JobWorld world;
  world.Apply(Spec());
  world.RunAll();
  world.nodes.End("cartpole-agent-0", {1});
  world.Settle();
  ASSERT_EQ(world.Status().attempt, 1);
  ASSERT_TRUE(
      world.api.Delete(Resource::kDistTrainingJobs, "default", "cartpole", {})
          .ok());
  world.Settle();
  world.nodes.FinishDeletions();
  EXPECT_THAT(world.nodes.Pods(), IsEmpty());
  world.Apply(Spec());
  world.RunAll();
  EXPECT_EQ(world.Status().attempt, 0);
  EXPECT_EQ(world.Status().phase, "Running");
}

TEST(Reconciler, AnInvalidJobSaysWhyAndMakesNothing) {
  JobWorld world;
  Json spec = Spec();
  spec["roles"][0]["replicas"] = 0;
  world.Apply(spec);
  world.Settle();
  EXPECT_EQ(world.Status().phase, "Failed");
  EXPECT_THAT(world.Status().message, HasSubstr("spec.roles[0].replicas"));
  EXPECT_THAT(world.nodes.Pods(), IsEmpty());
}

TEST(Reconciler, AJobIsSuspendedAndResumed) {
  JobWorld world;
  world.Apply(Spec());
  world.RunAll();
  world.Patch({{"spec", {{"suspend", true}}}});
  world.Settle();
  EXPECT_EQ(world.ConditionOf("Suspended"), "Unknown/Suspending");
  world.nodes.FinishDeletions();
  world.Settle();
  EXPECT_EQ(world.ConditionOf("Suspended"), "True/Suspended");
  EXPECT_THAT(world.nodes.Pods(), IsEmpty());
  world.Patch({{"spec", {{"suspend", false}}}});
  world.RunAll();
  EXPECT_EQ(world.Status().phase, "Running");
  EXPECT_TRUE(world.nodes.Has("cartpole-agent-0-r1"));
  EXPECT_EQ(world.Status().restarts.total, 0);
}

TEST(Reconciler, ReportsShowUpAsTraining) {
  JobWorld world(/*with_progress=*/true);
  Json spec = Spec();
  spec["program"] = "reinforce";
  world.Apply(spec);
  world.RunAll();
  EXPECT_EQ(world.Status().phase, "Starting");
  v1::Progress progress;
  progress.set_state(v1::Progress::STATE_RUNNING);
  progress.set_joined(2);
  progress.mutable_training()->set_step(10);
  progress.mutable_training()->set_total_steps(100);
  progress.mutable_training()->set_reward(21.5);
  world.Report(progress);
  world.Settle();
  EXPECT_EQ(world.Status().phase, "Running");
  world.Advance(absl::Seconds(10));
  progress.mutable_training()->set_step(30);
  progress.mutable_training()->set_reward(11.5);
  world.Report(progress);
  world.Settle();
  const JobStatus status = world.Status();
  EXPECT_EQ(status.training.step, 30);
  EXPECT_EQ(status.training.steps_per_second, 2.0);
  EXPECT_EQ(status.training.best_reward, 21.5);
  EXPECT_EQ(status.message, "attempt 0: 2/2 ranks joined, step 30");
  EXPECT_EQ(world.JobObject()["status"]["training"]["etaSeconds"], 35);
}

TEST(SlowStart, StopsAfterTheFirstBatchWithAnError) {
  std::atomic<int> calls = 0;
  const absl::Status status = SlowStart(1000, [&](size_t i) {
    ++calls;
    return i >= 3 ? absl::ResourceExhaustedError("quota") : absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(calls, 1 + 2 + 4);
  calls = 0;
  EXPECT_TRUE(SlowStart(300, [&](size_t) {
                ++calls;
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(calls, 300);
}

}  // namespace
}  // namespace disttrain
