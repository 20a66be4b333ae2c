// SPDX-License-Identifier: Apache-2.0
#include "controller/cli/display.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace disttrain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

JobProgress Training() {
  return {.job = "cartpole",
          .phase = "Running",
          .message = "m",
          .attempt = 0,
          .step = 312,
          .total_steps = 1500,
          .reward = "212.44",
          .loss = "",
          .steps_per_second = "6.12",
          .eta_seconds = 130};
}

TEST(ProgressLine, ShowsABarAndAllFiguresInTheWidthGiven) {
  EXPECT_EQ(ProgressLine(Training(), absl::Seconds(41), 92),
            "cartpole Running [====>               ]  312/1500  reward 212.4  "
            "6.1 steps/s  0:41  ETA 2:10");
}

TEST(ProgressLine, LeavesOutFromTheRightAndNeverGetsWider) {
  for (int width = 0; width <= 120; ++width) {
    EXPECT_LE(ProgressLine(Training(), absl::Seconds(41), width).size(),
              static_cast<size_t>(width));
  }
  const std::string narrow = ProgressLine(Training(), absl::Seconds(41), 50);
  EXPECT_THAT(narrow, HasSubstr("312/1500"));
  EXPECT_THAT(narrow, Not(HasSubstr("ETA")));
}

TEST(ProgressLine, SaysWhatIsWaitedForBeforeTheFirstStep) {
  EXPECT_EQ(ProgressLine({.job = "j",
                          .phase = "Starting",
                          .message = "1/3 ranks joined",
                          .attempt = 2},
                         absl::Seconds(3), 80),
            "j Starting r2  1/3 ranks joined  0:03");
}

TEST(ProgressOf, ReadsTheStatus) {
  const JobProgress progress = ProgressOf({{"metadata", {{"name", "j"}}},
                                           {"status",
                                            {{"phase", "Running"},
                                             {"attempt", 1},
                                             {"training",
                                              {{"step", 7},
                                               {"totalSteps", 9},
                                               {"reward", "1.5"},
                                               {"etaSeconds", 3}}}}}});
  EXPECT_EQ(progress.job, "j");
  EXPECT_EQ(progress.attempt, 1);
  EXPECT_EQ(progress.step, 7);
  EXPECT_EQ(progress.total_steps, 9);
  EXPECT_EQ(progress.reward, "1.5");
  EXPECT_EQ(progress.eta_seconds, 3);
  EXPECT_EQ(ProgressOf(Json::object()).phase, "Pending");
}

TEST(ClockText, CountsMinutesThenHours) {
  EXPECT_EQ(ClockText(absl::Seconds(5)), "0:05");
  EXPECT_EQ(ClockText(absl::Seconds(725)), "12:05");
  EXPECT_EQ(ClockText(absl::Seconds(11220)), "3:07:00");
  EXPECT_EQ(ClockText(-absl::Seconds(5)), "0:00");
}

TEST(Display, OnATerminalKeepsTheProgressLineBelowAndWipesIt) {
  std::ostringstream out;
  Display display(out, {.terminal = true, .width = [] { return 20; }});
  const JobProgress waiting{
      .job = "j", .phase = "Pending", .message = "", .attempt = 0};
  display.Progress(waiting, absl::Seconds(1));
  EXPECT_TRUE(display.Flush());
  EXPECT_EQ(out.str(), "\033[?7lj Pending  0:01\033[?7h");
  out.str("");
  display.Line("hello");
  display.Flush();
  EXPECT_EQ(out.str(), "\r\033[Khello\n\033[?7lj Pending  0:01\033[?7h");
  out.str("");
  display.Progress(waiting, absl::Seconds(1));
  display.Flush();
  EXPECT_EQ(out.str(), "");  // nothing changed: no flicker
  display.Wipe();
  EXPECT_EQ(out.str(), "\r\033[K");
}

TEST(Display, ElsewhereShowsProgressRarelyAndOnlyIfItChanged) {
  std::ostringstream out;
  Display display(out, {});
  JobProgress progress = Training();
  display.Progress(progress, absl::Seconds(1));
  progress.step = 313;
  display.Progress(progress, absl::Seconds(2));  // too soon
  display.Progress(progress, absl::Seconds(7));
  display.Progress(progress, absl::Seconds(20));  // unchanged
  display.Flush();
  EXPECT_EQ(out.str(),
            "cartpole Running  312/1500  reward 212.4  6.1 steps/s  0:01  ETA "
            "2:10\ncartpole Running  313/1500  reward 212.4  6.1 steps/s  0:07 "
            " ETA 2:10\n");
}

TEST(Display, PutsRoleAndIndexBeforeARanksLine) {
  std::ostringstream plain;
  Display display(plain, {});
  const StartedPod pod{
      .name = "p", .role = "observer", .role_index = 1, .rank = 2};
  display.RankLine(pod, "text");
  display.Flush();
  EXPECT_EQ(plain.str(), "[observer 1] text\n");
  std::ostringstream colour;
  Display coloured(colour, {.colour = true});
  coloured.RankLine(pod, "text");
  coloured.Flush();
  EXPECT_EQ(colour.str(), "\033[32m[observer 1]\033[0m text\n");
}

TEST(Display, SaysWhenItsReaderIsGone) {
  std::ostringstream out;
  Display display(out, {});
  EXPECT_TRUE(display.Flush());
  out.setstate(std::ios::badbit);
  display.Line("x");
  EXPECT_FALSE(display.Flush());
}

}  // namespace
}  // namespace disttrain
