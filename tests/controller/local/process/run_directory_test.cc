// SPDX-License-Identifier: Apache-2.0
#include "controller/local/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "proto/runtime/status.h"

namespace disttrain {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class RunDirectoryTest : public testing::Test {
 protected:
  RunDirectoryTest() {
    std::string folder = testing::TempDir() + "/runs-XXXXXX";
    runs_ = mkdtemp(folder.data());
  }
  ~RunDirectoryTest() override { std::filesystem::remove_all(runs_); }

  std::string runs_;
};

GetEnv Environment(const std::string& name, const std::string& value) {
  return [=](const char* wanted) -> std::optional<std::string> {
    if (wanted == name) return value;
    return std::nullopt;
  };
}

TEST_F(RunDirectoryTest, IsFoundAgainWithItsPodsAndItsJob) {
  auto run = RunDirectory::Create(runs_, "cartpole", "u1", "");
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_TRUE(run->AddPod({.name = "cartpole-observer-1",
                           .role = "observer",
                           .role_index = 1,
                           .rank = 2,
                           .log_path = run->log_dir() + "/x.log"})
                  .ok());
  ASSERT_TRUE(run->WriteJob({{"status", {{"phase", "Complete"}}}}).ok());

  const auto runs = ListRuns(runs_);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].name, "cartpole-u1");
  EXPECT_EQ(runs[0].job, "cartpole");
  EXPECT_TRUE(runs[0].running);
  EXPECT_EQ(ReadJob(runs[0])["status"]["phase"], "Complete");
  const auto pods = ReadPods(runs[0]);
  ASSERT_TRUE(pods.ok()) << pods.status();
  ASSERT_EQ(pods->size(), 1u);
  EXPECT_EQ((*pods)[0].role, "observer");
  EXPECT_EQ((*pods)[0].rank, 2);
  EXPECT_EQ((*pods)[0].log_path, run->log_dir() + "/x.log");
}

TEST_F(RunDirectoryTest, IsForItsOwnerOnly) {
  const auto run = RunDirectory::Create(runs_, "cartpole", "u1", "");
  ASSERT_TRUE(run.ok()) << run.status();
  struct stat info {};
  ASSERT_EQ(stat(run->path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(RunDirectoryTest, TheNewestComesFirstAndTheOldestGo) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(RunDirectory::Create(runs_, "job", std::to_string(i), "").ok());
  }
  EXPECT_EQ(ListRuns(runs_).front().name, "job-4");
  PruneRuns(runs_, /*keep=*/2);
  const auto left = ListRuns(runs_);
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0].name, "job-4");
  EXPECT_EQ(left[1].name, "job-3");
}

TEST_F(RunDirectoryTest, ARunThatGoesOnIsNotPruned) {
  const auto run = RunDirectory::Create(runs_, "job", "old", "");
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_TRUE(RunDirectory::Create(runs_, "job", "new", "").ok());
  PruneRuns(runs_, /*keep=*/1);
  EXPECT_EQ(ListRuns(runs_).size(), 2u);
}

TEST_F(RunDirectoryTest, SkipsFoldersThatAreNoRuns) {
  std::filesystem::create_directories(runs_ + "/empty");
  std::filesystem::create_directories(runs_ + "/broken");
  std::ofstream(runs_ + "/broken/run.json") << "{";
  EXPECT_TRUE(ListRuns(runs_).empty());
  EXPECT_TRUE(ListRuns(runs_ + "/none").empty());
}

TEST_F(RunDirectoryTest, NamesTheFolderThatCannotBeMade) {
  std::ofstream(runs_ + "/file") << "x";
  const auto run = RunDirectory::Create(runs_ + "/file", "job", "u", "");
  EXPECT_THAT(Message(run.status()), HasSubstr(runs_ + "/file/job-u"));
}

TEST(RunsFolder, FollowsTheXdgRules) {
  EXPECT_EQ(*RunsFolder(Environment("XDG_STATE_HOME", "/s")),
            "/s/disttrain/runs");
  EXPECT_EQ(*RunsFolder(Environment("HOME", "/home/a")),
            "/home/a/.local/state/disttrain/runs");
  EXPECT_FALSE(RunsFolder(Environment("OTHER", "x")).ok());
}

TEST(SocketFolder, IsShortAndPrivateWhateverTheEnvironmentSays) {
  const std::string long_path = "/tmp/" + std::string(200, 'x');
  for (const std::string& runtime :
       {std::string("/tmp"), long_path, std::string("/no/such/folder"),
        std::string("relative"), std::string()}) {
    const auto folder =
        MakeSocketFolder(Environment("XDG_RUNTIME_DIR", runtime));
    ASSERT_TRUE(folder.ok()) << folder.status();
    EXPECT_THAT(*folder, StartsWith("/tmp/dtj-"));
    struct stat info {};
    ASSERT_EQ(stat(folder->c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    std::filesystem::remove(*folder);
  }
}

}  // namespace
}  // namespace disttrain
