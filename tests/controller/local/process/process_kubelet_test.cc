// SPDX-License-Identifier: Apache-2.0
#include "controller/local/process_kubelet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"
#include "controller/local/supervisor_main.h"

namespace disttrain {
namespace {

using ::testing::HasSubstr;

template <typename Condition>
bool Eventually(Condition condition) {
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return true;
}

class ProcessKubeletTest : public testing::Test {
 protected:
  ProcessKubeletTest() {
    std::string folder = testing::TempDir() + "/kubelet-XXXXXX";
    folder_ = mkdtemp(folder.data());
    KubeletOptions options;
    options.log_dir = folder_;
    options.message_dir = folder_;
    options.host_env = {"PATH=/usr/bin:/bin"};
    options.max_grace = absl::Seconds(5);
    options.on_start = [this](const StartedPod& pod) {
      const absl::MutexLock lock(&mu_);
      started_.push_back(pod);
    };
    options.on_warning = [this](const std::string& text) {
      const absl::MutexLock lock(&mu_);
      warnings_ += text + "\n";
    };
    auto kubelet = ProcessKubelet::Start(api_, std::move(options));
    EXPECT_TRUE(kubelet.ok()) << kubelet.status();
    kubelet_ = *std::move(kubelet);
  }
  ~ProcessKubeletTest() override {
    kubelet_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Create(const std::string& name, const std::string& script,
              int grace = 30) {
    const Json pod = {
        {"apiVersion", "v1"},
        {"kind", "Pod"},
        {"metadata",
         {{"name", name},
          {"namespace", "default"},
          {"labels",
           {{"disttrain.dev/role", "observer"},
            {"disttrain.dev/replica-index", "1"},
            {"disttrain.dev/rank", "2"},
            {"disttrain.dev/attempt", "3"}}}}},
        {"spec",
         {{"terminationGracePeriodSeconds", grace},
          {"containers",
           Json::array({{{"name", "worker"},
                         {"command", {"/bin/sh", "-c", script}},
                         {"env", Json::array({{{"name", "DIR"},
                                               {"value", folder_}}})}}})}}}};
    const auto created = api_.Create(Resource::kPods, pod);
    ASSERT_TRUE(created.ok()) << created.status();
  }

  Json Status(const std::string& name) {
    const auto pod = api_.Get(Resource::kPods, "default", name);
    return pod.ok() ? (*pod)["status"] : Json();
  }

  Json AwaitPhase(const std::string& name, const std::string& phase) {
    EXPECT_TRUE(Eventually([&] {
      const Json status = Status(name);
      return !status.is_null() && status["phase"] == phase;
    })) << Status(name).dump();
    return Status(name);
  }

  Json AwaitEnd(const std::string& name, const std::string& phase) {
    return AwaitPhase(name,
                      phase)["containerStatuses"][0]["state"]["terminated"];
  }

  bool Gone(const std::string& name) { return Status(name).is_null(); }
  bool Exists(const std::string& name) const {
    return std::filesystem::exists(folder_ + "/" + name);
  }

  std::string folder_;
  SystemClock clock_;
  MemoryApi api_{clock_};
  absl::Mutex mu_;
  std::vector<StartedPod> started_;
  std::string warnings_;
  std::unique_ptr<ProcessKubelet> kubelet_;
};

TEST_F(ProcessKubeletTest, RunsAPodToItsGoodEnd) {
  Create("p", "while ! test -e $DIR/go; do sleep 0.01; done");
  const Json running = AwaitPhase("p", "Running");
  EXPECT_EQ(running["containerStatuses"][0]["ready"], true);
  EXPECT_TRUE(running["containerStatuses"][0]["state"]["running"].contains(
      "startedAt"));
  EXPECT_FALSE(kubelet_->Idle());
  EXPECT_EQ((*api_.Get(Resource::kPods, "default", "p"))["spec"]["nodeName"],
            "local");
  std::ofstream(folder_ + "/go") << "";
  const Json end = AwaitEnd("p", "Succeeded");
  EXPECT_EQ(end["exitCode"], 0);
  EXPECT_EQ(end["reason"], "Completed");
  EXPECT_TRUE(Eventually([&] { return kubelet_->Idle(); }));
  const absl::MutexLock lock(&mu_);
  ASSERT_EQ(started_.size(), 1u);
  EXPECT_EQ(started_[0].role, "observer");
  EXPECT_EQ(started_[0].role_index, 1);
  EXPECT_EQ(started_[0].rank, 2);
  EXPECT_EQ(started_[0].attempt, 3);
  EXPECT_EQ(started_[0].log_path, folder_ + "/p.log");
}

TEST_F(ProcessKubeletTest, ReportsExitCodeSignalAndTerminationMessage) {
  Create("code",
         "printf 'no data' > $DISTTRAIN_TERMINATION_MESSAGE_PATH; exit 65");
  Create("signal", "kill -SEGV $$$$");
  const Json code = AwaitEnd("code", "Failed");
  EXPECT_EQ(code["exitCode"], 65);
  EXPECT_EQ(code["message"], "no data");
  EXPECT_EQ(code["reason"], "Error");
  const Json signal = AwaitEnd("signal", "Failed");
  EXPECT_EQ(signal["exitCode"], 139);
  EXPECT_EQ(signal["signal"], 11);
}

TEST_F(ProcessKubeletTest, ACommandThatCannotStartIsAStartError) {
  Json pod = {
      {"metadata", {{"name", "p"}, {"namespace", "default"}}},
      {"spec",
       {{"containers",
         Json::array({{{"name", "worker"}, {"command", {"/no/such"}}}})}}}};
  ASSERT_TRUE(api_.Create(Resource::kPods, pod).ok());
  const Json end = AwaitEnd("p", "Failed");
  EXPECT_EQ(end["reason"], "StartError");
  EXPECT_EQ(end["exitCode"], 128);
  EXPECT_EQ(end["message"], "/no/such: No such file or directory");
}

TEST_F(ProcessKubeletTest, APodThatNeedsAClusterFailsForGoodWithTheReason) {
  Json pod = {
      {"metadata", {{"name", "p"}, {"namespace", "default"}}},
      {"spec",
       {{"containers", Json::array({{{"name", "a"}}, {{"name", "b"}}})}}}};
  ASSERT_TRUE(api_.Create(Resource::kPods, pod).ok());
  const Json end = AwaitEnd("p", "Failed");
  EXPECT_EQ(end["reason"], "UnsupportedLocally");
  EXPECT_EQ(end["exitCode"], 78);
  EXPECT_THAT(end["message"].get<std::string>(), HasSubstr("2 containers"));
}

TEST_F(ProcessKubeletTest, ADeletedPodGetsSigtermAndVanishesAfterItsEnd) {
  Create("p",
         "trap 'touch $DIR/termed; exit 75' TERM; touch $DIR/up; "
         "sleep 1000 & wait");
  ASSERT_TRUE(Eventually([&] { return Exists("up"); }));
  ASSERT_TRUE(api_.Delete(Resource::kPods, "default", "p", {}).ok());
  EXPECT_TRUE(Eventually([&] { return Gone("p"); }));
  EXPECT_TRUE(Exists("termed"));
  EXPECT_TRUE(Eventually([&] { return kubelet_->Idle(); }));
}

TEST_F(ProcessKubeletTest, APodThatIgnoresSigtermIsKilledAfterItsGrace) {
  Create("p", "trap '' TERM; touch $DIR/up; while :; do sleep 1; done",
         /*grace=*/1);
  ASSERT_TRUE(Eventually([&] { return Exists("up"); }));
  ASSERT_TRUE(api_.Delete(Resource::kPods, "default", "p", {}).ok());
  EXPECT_TRUE(Eventually([&] { return Gone("p"); }));
}

TEST_F(ProcessKubeletTest, APodDeletedByForceLosesItsProcess) {
  Create("p", "trap '' TERM; touch $DIR/up; while :; do sleep 1; done");
  ASSERT_TRUE(Eventually([&] { return Exists("up"); }));
  ASSERT_TRUE(api_.Delete(Resource::kPods, "default", "p",
                          {.uid = "", .grace_seconds = 0})
                  .ok());
  EXPECT_TRUE(Eventually([&] { return kubelet_->Idle(); }));
}

TEST_F(ProcessKubeletTest, TerminateEndsAllAndStartsNoMore) {
  Create("p", "trap 'exit 75' TERM; touch $DIR/up; sleep 1000 & wait");
  ASSERT_TRUE(Eventually([&] { return Exists("up"); }));
  kubelet_->Terminate();
  EXPECT_EQ(AwaitEnd("p", "Failed")["exitCode"], 75);
  Create("late", "touch $DIR/late-started");
  EXPECT_TRUE(Eventually([&] { return kubelet_->Idle(); }));
  kubelet_.reset();
  EXPECT_FALSE(Exists("late-started"));
}

TEST_F(ProcessKubeletTest, KillDoesNotWait) {
  Create("p", "trap '' TERM; touch $DIR/up; while :; do sleep 1; done");
  ASSERT_TRUE(Eventually([&] { return Exists("up"); }));
  kubelet_->Kill();
  EXPECT_EQ(AwaitEnd("p", "Failed")["signal"], 9);
}

TEST_F(ProcessKubeletTest, GoesOnAfterTheServerForgotItsHistory) {
  Create("a", "exit 0");
  AwaitPhase("a", "Succeeded");
  api_.Compact();
  Create("b", "exit 0");
  AwaitPhase("b", "Succeeded");
}

}  // namespace
}  // namespace disttrain

int main(int argc, char** argv) {
  if (const auto exit_code = disttrain::RunIfSupervisor(argc, argv)) {
    return *exit_code;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
