// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/log_line.h"

#include <gtest/gtest.h>

namespace disttrain {
namespace {

TEST(LogLine, OfOursIsItsMessageAndItsFields) {
  EXPECT_EQ(
      ReadableLogLine(
          R"({"ts":"2026-01-05T10:00:00.182Z","level":"info","msg":"step done",)"
          R"("job":"ml/cartpole","role":"agent","rank":3,"attempt":0,)"
          R"("step":40,"loss":0.3125,"ok":true})"),
      "step done  loss=0.3125  ok=true  step=40");
}

TEST(LogLine, KeepsTheColumnsOfAMessageAndLeavesOutItsFields) {
  EXPECT_EQ(ReadableLogLine(
                R"({"level":"info","msg":"Episode 10\tLast reward: 12.00",)"
                R"("episode":10,"reward":12.0001})"),
            "Episode 10\tLast reward: 12.00");
}

TEST(LogLine, SaysWhatIsAWarningOrAnError) {
  EXPECT_EQ(ReadableLogLine(R"({"level":"warn","msg":"slow peer"})"),
            "warning: slow peer");
  EXPECT_EQ(ReadableLogLine(R"({"level":"error","msg":"call failed",)"
                            R"("status":"UNAVAILABLE: gone","peer":"a"})"),
            "error: call failed: UNAVAILABLE: gone  peer=a");
}

TEST(LogLine, OfAnyOtherProgramStaysAsItIs) {
  EXPECT_EQ(ReadableLogLine("epoch 3: loss 0.5"), "epoch 3: loss 0.5");
  EXPECT_EQ(ReadableLogLine("{not json"), "{not json");
  EXPECT_EQ(ReadableLogLine(R"({"msg":3})"), R"({"msg":3})");
  EXPECT_EQ(ReadableLogLine(R"([1,2])"), "[1,2]");
  EXPECT_EQ(ReadableLogLine(""), "");
}

TEST(LogLine, CannotMoveTheCursor) {
  for (const char* line : {"a\033[2Jb", "{\"msg\":\"a\\u001b[2Jb\"}", "a\rb",
                           "{\"msg\":\"a\\nb\"}", "a\xff"}) {
    const std::string text = ReadableLogLine(line);
    for (const char c : text) {
      EXPECT_FALSE(c == '\033' || c == '\r' || c == '\n') << line;
    }
  }
}

}  // namespace
}  // namespace disttrain
