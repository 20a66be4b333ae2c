// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/log_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace disttrain {
namespace {

using ::testing::ElementsAre;

class LogFollowerTest : public testing::Test {
 protected:
  LogFollowerTest() {
    std::string folder = testing::TempDir() + "/follow-XXXXXX";
    folder_ = mkdtemp(folder.data());
  }
  ~LogFollowerTest() override { std::filesystem::remove_all(folder_); }

  StartedPod Pod(const std::string& name) const {
    return {.name = name, .role = "r", .log_path = folder_ + "/" + name};
  }
  void Append(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name, std::ios::app) << text;
  }
  LogFollower::OnLine Collect() {
    return [this](const StartedPod& pod, std::string_view line) {
      lines_.push_back(pod.name + ":" + std::string(line));
    };
  }

  std::string folder_;
  std::vector<std::string> lines_;
  LogFollower follower_;
};

TEST_F(LogFollowerTest, GivesEachLineOnceAsFilesGrow) {
  follower_.Add(Pod("a"));
  follower_.Add(Pod("b"));
  EXPECT_FALSE(follower_.Poll(Collect()));  // no file yet
  Append("a", "one\ntw");
  follower_.Poll(Collect());
  Append("a", "o\n");
  Append("b", "\n");
  follower_.Poll(Collect());
  follower_.Poll(Collect());
  EXPECT_THAT(lines_, ElementsAre("a:one", "a:two", "b:"));
}

TEST_F(LogFollowerTest, GivesALastLineWithoutNewlineAtTheEnd) {
  follower_.Add(Pod("a"));
  Append("a", "one\nlast");
  follower_.Finish(Collect());
  follower_.Finish(Collect());
  EXPECT_THAT(lines_, ElementsAre("a:one", "a:last"));
}

TEST_F(LogFollowerTest, CutsLinesThatAreTooLongAndLosesNothing) {
  follower_.Add(Pod("a"));
  const std::string line(200'000, 'x');
  Append("a", line + "\nend\n");
  std::string all;
  size_t longest = 0;
  follower_.Finish([&](const StartedPod&, std::string_view piece) {
    all += piece;
    longest = std::max(longest, piece.size());
  });
  EXPECT_EQ(all, line + "end");
  EXPECT_EQ(longest, 65536u);
}

TEST_F(LogFollowerTest, ReadsAFloodInBoundedRounds) {
  follower_.Add(Pod("a"));
  for (int i = 0; i < 100; ++i) Append("a", std::string(99'999, 'x') + "\n");
  size_t bytes = 0;
  const auto count = [&](const StartedPod&, std::string_view piece) {
    bytes += piece.size();
  };
  int rounds = 1;
  while (follower_.Poll(count)) {
    EXPECT_LE(bytes, size_t{256 << 10} * static_cast<size_t>(rounds));
    ++rounds;
  }
  EXPECT_EQ(bytes, 9'999'900u);
}

}  // namespace
}  // namespace disttrain
