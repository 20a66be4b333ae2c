// SPDX-License-Identifier: Apache-2.0
#include "controller/local/termination_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace disttrain {
namespace {

class TerminationFile : public testing::Test {
 protected:
  TerminationFile() {
    std::string folder = testing::TempDir() + "/message-XXXXXX";
    folder_ = mkdtemp(folder.data());
  }
  ~TerminationFile() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& text) const {
    std::string path = folder_ + "/file";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  std::string folder_;
};

TEST_F(TerminationFile, IsCutAtTheLimitAndMadeValid) {
  EXPECT_EQ(ReadTerminationMessage(Write("lost rank 2")), "lost rank 2");
  EXPECT_EQ(ReadTerminationMessage(Write(std::string(10000, 'x'))),
            std::string(4096, 'x'));
  EXPECT_EQ(ReadTerminationMessage(Write("a\xff"
                                         "b")),
            "a\xEF\xBF\xBD"
            "b");
}

TEST_F(TerminationFile, IsEmptyIfItIsNoRegularFile) {
  EXPECT_EQ(ReadTerminationMessage(folder_ + "/none"), "");
  EXPECT_EQ(ReadTerminationMessage(folder_), "");
  const std::string fifo = folder_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(ReadTerminationMessage(fifo), "");
  std::filesystem::create_symlink("/etc/passwd", folder_ + "/link");
  EXPECT_EQ(ReadTerminationMessage(folder_ + "/link"), "");
}

TEST_F(TerminationFile, TheTailOfALogIsWholeLines) {
  EXPECT_EQ(TailOfLog(Write("one\ntwo\n")), "one\ntwo");
  EXPECT_EQ(TailOfLog(Write("")), "");
  EXPECT_EQ(TailOfLog(Write(std::string(3000, 'x') + "\nlast\n")), "last");
  std::string many;
  for (int i = 1; i <= 100; ++i) many += std::to_string(i) + "\n";
  const std::string tail = TailOfLog(Write(many));
  EXPECT_EQ(tail.substr(0, 6), "21\n22\n");
  EXPECT_EQ(tail.substr(tail.size() - 4), "\n100");
}

}  // namespace
}  // namespace disttrain
