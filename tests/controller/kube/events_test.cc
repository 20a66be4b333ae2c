// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/events.h"

#include "controller/local/memory_api.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"

namespace disttrain {
namespace {

TEST(EventRecorder, TheSameEventIsOneObjectWithACount) {
  FakeClock clock;
  MemoryApi api(clock);
  EventRecorder recorder(api, clock);
  const Json job = {
      {"apiVersion", "disttrain.dev/v1alpha1"},
      {"kind", "DistTrainingJob"},
      {"metadata", {{"name", "x"}, {"namespace", "ml"}, {"uid", "u"}}}};
  // An image that cannot be pulled for five minutes, seen each second.
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(
        recorder.Record(job, {true, "ImagePull", "back-off pulling x"}).ok());
    clock.Advance(absl::Seconds(1));
  }
  auto events = api.List(Resource::kEvents, "ml", "");
  ASSERT_EQ(events->items.size(), 1u);
  EXPECT_EQ(events->items[0]["count"], 1) << "one write in ten minutes";
  clock.Advance(absl::Minutes(10));
  ASSERT_TRUE(
      recorder.Record(job, {true, "ImagePull", "back-off pulling x"}).ok());
  ASSERT_TRUE(recorder.Record(job, {false, "Running", "all joined"}).ok());
  events = api.List(Resource::kEvents, "ml", "");
  ASSERT_EQ(events->items.size(), 2u);
  int counted = 0;
  for (const Json& event : events->items) {
    EXPECT_EQ(event["involvedObject"]["uid"], "u");
    if (event["reason"] == "ImagePull") {
      counted = event["count"];
      EXPECT_EQ(event["type"], "Warning");
    }
  }
  EXPECT_EQ(counted, 301);
}

}  // namespace
}  // namespace disttrain
