// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/informer.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "controller/local/memory_api.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"

namespace disttrain {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Json Secret(const std::string& name, const std::string& owner_uid = "") {
  Json object = {{"metadata", {{"name", name}}}, {"data", {{"k", "v"}}}};
  if (!owner_uid.empty()) {
    object["metadata"]["ownerReferences"] = Json::array(
        {{{"uid", owner_uid}, {"name", "o"}, {"controller", true}}});
  }
  return object;
}

class InformerTest : public testing::Test {
 protected:
  InformerTest()
      : api_(clock_),
        informer_(api_, clock_, {Resource::kSecrets, "", "", nullptr},
                  [this](const Json& object) {
                    const absl::MutexLock lock(&mu_);
                    changed_.push_back(KeyOf(object));
                  }) {}

  Json Create(const std::string& name, const std::string& owner_uid = "") {
    return api_.Create(Resource::kSecrets, Secret(name, owner_uid)).value();
  }
  void Delete(const std::string& name) {
    ASSERT_TRUE(api_.Delete(Resource::kSecrets, "default", name, {}).ok());
  }
  std::vector<std::string> TakeChanged() {
    const absl::MutexLock lock(&mu_);
    return std::exchange(changed_, {});
  }

  FakeClock clock_;
  MemoryApi api_;
  absl::Mutex mu_;
  std::vector<std::string> changed_ ABSL_GUARDED_BY(mu_);
  Informer informer_;
};

TEST_F(InformerTest, AListFillsTheCacheAndTellsEachObject) {
  Create("a");
  Create("b");
  EXPECT_FALSE(informer_.Synced());
  ASSERT_TRUE(informer_.Relist().ok());
  EXPECT_TRUE(informer_.Synced());
  EXPECT_THAT(TakeChanged(), ElementsAre("default/a", "default/b"));
  EXPECT_TRUE(informer_.Get("default", "a"));
  EXPECT_FALSE(informer_.Get("default", "c"));
  ASSERT_TRUE(informer_.Relist().ok());
  EXPECT_THAT(TakeChanged(), IsEmpty()) << "nothing has changed";
}

TEST_F(InformerTest, AListTellsWhatHasVanished) {
  Create("a");
  Create("b");
  ASSERT_TRUE(informer_.Relist().ok());
  TakeChanged();
  Delete("a");
  ASSERT_TRUE(informer_.Relist().ok());
  EXPECT_THAT(TakeChanged(), ElementsAre("default/a"));
  EXPECT_FALSE(informer_.Get("default", "a"));
}

TEST_F(InformerTest, ChildrenAreFoundByTheUidOfTheirOwner) {
  const std::string one = Create("one")["metadata"]["uid"];
  const std::string two = Create("two")["metadata"]["uid"];
  Create("a", one);
  Create("b", two);
  Create("c", one);
  ASSERT_TRUE(informer_.Relist().ok());
  std::vector<std::string> keys;
  for (const Json& child : informer_.OwnedBy(one)) keys.push_back(KeyOf(child));
  EXPECT_THAT(keys, ElementsAre("default/a", "default/c"));
  EXPECT_THAT(informer_.OwnedBy("nobody"), IsEmpty());
}

TEST_F(InformerTest, OurOwnWritesAreSeenAtOnce) {
  ASSERT_TRUE(informer_.Relist().ok());
  const Json created = Create("a");
  EXPECT_FALSE(informer_.Get("default", "a"));
  informer_.Remember(created);
  EXPECT_TRUE(informer_.Get("default", "a"));
}

TEST_F(InformerTest, AnObjectWhoseEndWasToldIsNotRememberedAgain) {
  const Json created = Create("a");
  Delete("a");
  ASSERT_TRUE(informer_.Relist().ok());
  informer_.Remember(created);
  EXPECT_FALSE(informer_.Get("default", "a"));
}

TEST_F(InformerTest, AnOlderVersionDoesNotReplaceANewerOne) {
  Create("a");
  ASSERT_TRUE(informer_.Relist().ok());
  const Json old = *informer_.Get("default", "a");
  const Json patched =
      api_.Patch(Resource::kSecrets, "default", "a", {{"data", {{"k", "w"}}}})
          .value();
  informer_.Remember(patched);
  informer_.Remember(old);
  EXPECT_EQ(informer_.Get("default", "a")->at("data").at("k"), "w");
}

TEST_F(InformerTest, RunFollowsTheWatchAndListsAgainAfterGone) {
  std::atomic<bool> stop = false;
  std::thread thread([&] { informer_.Run([&] { return stop.load(); }); });
  const auto eventually = [](const std::function<bool()>& condition) {
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    while (!condition() && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(2));
    }
    return condition();
  };
  Create("a");
  EXPECT_TRUE(
      eventually([&] { return informer_.Get("default", "a").has_value(); }));
  // The watch ends; meanwhile one goes, one comes, and the history is lost.
  api_.CloseWatches();
  Delete("a");
  Create("b");
  api_.Compact();
  EXPECT_TRUE(eventually([&] {
    return !informer_.Get("default", "a") &&
           informer_.Get("default", "b").has_value();
  }));
  stop = true;
  thread.join();
}

TEST(InformerKeys, AreNamespaceAndName) {
  EXPECT_EQ(KeyOf(Json::parse(R"({"metadata":{"namespace":"n","name":"x"}})")),
            "n/x");
  EXPECT_EQ(SplitKey("n/x"), (std::pair<std::string, std::string>("n", "x")));
  for (const char* odd :
       {"null", "[]", R"({"metadata":3})",
        R"({"metadata":{"ownerReferences":[3,{"controller":"x"}]}})"}) {
    EXPECT_EQ(KeyOf(Json::parse(odd)), "/");
    EXPECT_EQ(ControllerOf(Json::parse(odd)).second, "");
  }
}

}  // namespace
}  // namespace disttrain
