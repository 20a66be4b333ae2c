// SPDX-License-Identifier: Apache-2.0
#include "controller/local/memory_api.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"

namespace disttrain {
namespace {

using ::testing::ElementsAre;

Json Named(const std::string& name, const Json& more = Json::object()) {
  Json object = {{"metadata", {{"name", name}}}};
  object.merge_patch(more);
  return object;
}

Json Pod(const std::string& name, const Json& more = Json::object()) {
  Json pod = Named(name, {{"spec", {{"containers", {{{"name", "c"}}}}}}});
  pod.merge_patch(more);
  return pod;
}

Json OwnedBy(const std::string& uid) {
  return {{"metadata", {{"ownerReferences", {{{"uid", uid}}}}}}};
}

class MemoryApiTest : public testing::Test {
 protected:
  MemoryApiTest() : api_(clock_) {}

  Json Create(Resource resource, const Json& object) {
    auto created = api_.Create(resource, object);
    EXPECT_TRUE(created.ok()) << created.status();
    return created.ok() ? *created : Json();
  }
  bool Exists(Resource resource, const std::string& name) {
    return api_.Get(resource, "default", name).ok();
  }

  // What a watch from `version` tells: "ADDED a".
  std::vector<std::string> Watched(Resource resource,
                                   const std::string& version,
                                   const std::string& selector = "") {
    std::vector<std::string> told;
    bool asked = false;
    const absl::Status status = api_.Watch(
        resource, "", selector, version,
        [&told](const WatchEvent& event) {
          const char* names[] = {"ADDED ", "MODIFIED ", "DELETED ",
                                 "BOOKMARK "};
          told.emplace_back(names[static_cast<int>(event.type)]);
          told.back() += event.object["metadata"].value("name", "");
        },
        // Once through: everything that is there by now.
        [&asked] { return std::exchange(asked, true); });
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
    return told;
  }

  FakeClock clock_;
  MemoryApi api_;
};

TEST_F(MemoryApiTest, GivesObjectsTheirIdentity) {
  const Json a =
      Create(Resource::kServices, Named("a", {{"spec", {{"x", 1}}}}));
  const Json b = Create(Resource::kServices, Named("b"));
  EXPECT_EQ(a["metadata"]["namespace"], "default");
  EXPECT_EQ(a["metadata"]["creationTimestamp"], "2026-01-05T10:00:00Z");
  EXPECT_EQ(a["metadata"]["generation"], 1);
  EXPECT_NE(a["metadata"]["uid"], b["metadata"]["uid"]);
  EXPECT_NE(a["metadata"]["resourceVersion"], b["metadata"]["resourceVersion"]);
}

TEST_F(MemoryApiTest, RefusesWhatExistsAndWhatIsNoObject) {
  Create(Resource::kServices, Named("a"));
  EXPECT_TRUE(absl::IsAlreadyExists(
      api_.Create(Resource::kServices, Named("a")).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      api_.Create(Resource::kServices, Json::object()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      api_.Create(Resource::kPods, Named("p")).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      api_.List(Resource::kPods, "", "no selector").status()));
  EXPECT_TRUE(
      absl::IsNotFound(api_.Get(Resource::kPods, "default", "x").status()));
}

TEST_F(MemoryApiTest, ADryRunStoresNothing) {
  EXPECT_TRUE(api_.Create(Resource::kPods, Pod("p"), /*dry_run=*/true).ok());
  EXPECT_FALSE(Exists(Resource::kPods, "p"));
}

TEST_F(MemoryApiTest, TheGenerationMovesWithTheSpecOnly) {
  Json job = Create(Resource::kDistTrainingJobs,
                    Named("j", {{"spec", {{"suspend", false}}},
                                {"status", {{"phase", "Forged"}}}}));
  EXPECT_FALSE(job.contains("status")) << "only through the subresource";
  job["status"]["phase"] = "Running";
  job["spec"]["suspend"] = true;
  Json updated = *api_.UpdateStatus(Resource::kDistTrainingJobs, job);
  EXPECT_EQ(updated["metadata"]["generation"], 1);
  EXPECT_EQ(updated["spec"]["suspend"], false) << "only the status is taken";
  updated = *api_.Patch(Resource::kDistTrainingJobs, "default", "j",
                        {{"metadata", {{"labels", {{"a", "b"}}}}},
                         {"status", {{"phase", "Forged"}}}});
  EXPECT_EQ(updated["metadata"]["generation"], 1);
  EXPECT_EQ(updated["status"]["phase"], "Running");
  updated = *api_.Patch(Resource::kDistTrainingJobs, "default", "j",
                        {{"spec", {{"suspend", true}}}});
  EXPECT_EQ(updated["metadata"]["generation"], 2);
}

TEST_F(MemoryApiTest, AStaleWriteIsAConflict) {
  Json job = Create(Resource::kDistTrainingJobs, Named("j"));
  job["status"]["phase"] = "Pending";
  ASSERT_TRUE(api_.UpdateStatus(Resource::kDistTrainingJobs, job).ok());
  job["status"]["phase"] = "Running";
  EXPECT_TRUE(absl::IsAborted(
      api_.UpdateStatus(Resource::kDistTrainingJobs, job).status()));
  job["metadata"].erase("resourceVersion");
  EXPECT_TRUE(api_.UpdateStatus(Resource::kDistTrainingJobs, job).ok());
  job["metadata"]["uid"] = "another";
  EXPECT_TRUE(absl::IsAborted(
      api_.UpdateStatus(Resource::kDistTrainingJobs, job).status()));
}

TEST_F(MemoryApiTest, AWriteThatChangesNothingIsNoEvent) {
  const Json job = Create(Resource::kDistTrainingJobs, Named("j"));
  Json written = job;
  written["status"] = {{"phase", "Running"}};
  const Json first = *api_.UpdateStatus(Resource::kDistTrainingJobs, written);
  const Json second = *api_.UpdateStatus(Resource::kDistTrainingJobs, first);
  EXPECT_EQ(first, second);
}

TEST_F(MemoryApiTest, ApplyCreatesOrMerges) {
  ASSERT_TRUE(api_.Apply(Resource::kServices,
                         Named("s", {{"spec", {{"a", 1}, {"b", 1}}}}))
                  .ok());
  const Json merged =
      *api_.Apply(Resource::kServices, Named("s", {{"spec", {{"b", 2}}}}));
  EXPECT_EQ(merged["spec"], (Json{{"a", 1}, {"b", 2}}));
}

TEST_F(MemoryApiTest, LabelsSelect) {
  Create(Resource::kPods,
         Pod("a", {{"metadata", {{"labels", {{"k", "v"}, {"m", "n"}}}}}}));
  Create(Resource::kPods, Pod("b", {{"metadata", {{"labels", {{"k", "v"}}}}}}));
  Create(Resource::kPods, Pod("c"));
  EXPECT_EQ(api_.List(Resource::kPods, "", "k=v")->items.size(), 2u);
  EXPECT_EQ(api_.List(Resource::kPods, "", "k=v,m=n")->items.size(), 1u);
  EXPECT_EQ(api_.List(Resource::kPods, "other", "")->items.size(), 0u);
}

TEST_F(MemoryApiTest, ABoundPodStaysUntilItsKubeletHasEndedIt) {
  Create(Resource::kPods,
         Pod("p", {{"spec", {{"terminationGracePeriodSeconds", 20}}}}));
  ASSERT_TRUE(api_.Bind("default", "p", "n1").ok());
  EXPECT_FALSE(api_.Bind("default", "p", "n2").ok());
  ASSERT_TRUE(api_.Delete(Resource::kPods, "default", "p", {}).ok());
  const Json pod = *api_.Get(Resource::kPods, "default", "p");
  EXPECT_EQ(pod["metadata"]["deletionTimestamp"], "2026-01-05T10:00:20Z");
  EXPECT_EQ(pod["metadata"]["deletionGracePeriodSeconds"], 20);
  DeleteOptions now;
  now.grace_seconds = 0;
  ASSERT_TRUE(api_.Delete(Resource::kPods, "default", "p", now).ok());
  EXPECT_FALSE(Exists(Resource::kPods, "p"));
}

TEST_F(MemoryApiTest, APodThatRunsNowhereVanishesAtOnce) {
  Create(Resource::kPods, Pod("unbound"));
  ASSERT_TRUE(api_.Delete(Resource::kPods, "default", "unbound", {}).ok());
  EXPECT_FALSE(Exists(Resource::kPods, "unbound"));
  Json done = Create(Resource::kPods, Pod("done"));
  done = *api_.Bind("default", "done", "n1");
  done["status"]["phase"] = "Succeeded";
  ASSERT_TRUE(api_.UpdateStatus(Resource::kPods, done).ok());
  ASSERT_TRUE(api_.Delete(Resource::kPods, "default", "done", {}).ok());
  EXPECT_FALSE(Exists(Resource::kPods, "done"));
}

TEST_F(MemoryApiTest, ADeleteCanInsistOnAUid) {
  Create(Resource::kPods, Pod("p"));
  DeleteOptions options;
  options.uid = "another";
  EXPECT_TRUE(
      absl::IsAborted(api_.Delete(Resource::kPods, "default", "p", options)));
  EXPECT_TRUE(Exists(Resource::kPods, "p"));
}

TEST_F(MemoryApiTest, ChildrenGoWithTheirLastOwner) {
  const std::string one =
      Create(Resource::kDistTrainingJobs, Named("one"))["metadata"]["uid"];
  const std::string two =
      Create(Resource::kDistTrainingJobs, Named("two"))["metadata"]["uid"];
  Create(Resource::kServices, Named("child", OwnedBy(one)));
  Create(Resource::kServices,
         Named("both",
               {{"metadata",
                 {{"ownerReferences", {{{"uid", one}}, {{"uid", two}}}}}}}));
  Create(Resource::kPods, Pod("running", OwnedBy(one)));
  ASSERT_TRUE(api_.Bind("default", "running", "n1").ok());
  ASSERT_TRUE(
      api_.Delete(Resource::kDistTrainingJobs, "default", "one", {}).ok());
  EXPECT_FALSE(Exists(Resource::kServices, "child"));
  EXPECT_TRUE(Exists(Resource::kServices, "both"));
  EXPECT_TRUE(api_.Get(Resource::kPods, "default", "running")
                  ->at("metadata")
                  .contains("deletionTimestamp"));
  ASSERT_TRUE(
      api_.Delete(Resource::kDistTrainingJobs, "default", "two", {}).ok());
  EXPECT_FALSE(Exists(Resource::kServices, "both"));
  // Made for an owner that is gone already (K22).
  EXPECT_TRUE(
      api_.Create(Resource::kServices, Named("late", OwnedBy(one))).ok());
  EXPECT_FALSE(Exists(Resource::kServices, "late"));
}

TEST_F(MemoryApiTest, AWatchTellsWhatCameAfterItsVersion) {
  Create(Resource::kPods, Pod("a"));
  const std::string version =
      api_.List(Resource::kPods, "", "")->resource_version;
  Create(Resource::kPods, Pod("b", {{"metadata", {{"labels", {{"k", "v"}}}}}}));
  Create(Resource::kServices, Named("s"));
  ASSERT_TRUE(api_.Bind("default", "a", "n1").ok());
  ASSERT_TRUE(api_.Delete(Resource::kPods, "default", "b", {}).ok());
  EXPECT_THAT(Watched(Resource::kPods, version),
              ElementsAre("ADDED b", "MODIFIED a", "DELETED b"));
  EXPECT_THAT(Watched(Resource::kPods, version, "k=v"),
              ElementsAre("ADDED b", "DELETED b"));
}

TEST_F(MemoryApiTest, AWatchThatComesTooLateIsGone) {
  MemoryApiOptions options;
  options.history = 2;
  MemoryApi small(clock_, options);
  const auto watch = [&small](const std::string& version) {
    return small.Watch(
        Resource::kServices, "", "", version, [](const WatchEvent&) {},
        [asked = false]() mutable { return std::exchange(asked, true); });
  };
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(small.Create(Resource::kServices, Named(name)).ok());
  }
  EXPECT_TRUE(absl::IsOutOfRange(watch("0")));
  EXPECT_TRUE(absl::IsCancelled(watch("1"))) << "nothing was missed since 1";
  small.Compact();
  EXPECT_TRUE(absl::IsOutOfRange(watch("3")));
  EXPECT_TRUE(absl::IsInvalidArgument(watch("x")));
}

TEST_F(MemoryApiTest, AnIdleWatchGetsABookmark) {
  Create(Resource::kServices, Named("s"));
  int asked = 0;
  std::vector<std::string> versions;
  const absl::Status status = api_.Watch(
      Resource::kPods, "", "", "0",
      [&versions](const WatchEvent& event) {
        EXPECT_EQ(event.type, WatchEventType::kBookmark);
        versions.push_back(event.object["metadata"]["resourceVersion"]);
      },
      [this, &asked] {
        clock_.Advance(absl::Seconds(30));
        return ++asked > 3;
      });
  EXPECT_TRUE(absl::IsCancelled(status));
  EXPECT_THAT(versions, ElementsAre("1"));
}

TEST_F(MemoryApiTest, WatchersSeeEveryChangeUnderThreads) {
  std::atomic<int> added = 0;
  std::thread watcher([&] {
    const absl::Status status = api_.Watch(
        Resource::kServices, "", "", "0",
        [&added](const WatchEvent& event) {
          if (event.type == WatchEventType::kAdded) ++added;
        },
        [&added] { return added == 400; });
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
  });
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([this, i] {
      for (int k = 0; k < 100; ++k) {
        const std::string name = fmt::format("s{}-{}", i, k);
        ASSERT_TRUE(api_.Create(Resource::kServices, Named(name)).ok());
        ASSERT_TRUE(api_.List(Resource::kServices, "", "").ok());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  watcher.join();
  EXPECT_EQ(added, 400);
}

}  // namespace
}  // namespace disttrain
