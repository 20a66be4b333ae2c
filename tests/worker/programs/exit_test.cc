// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/exit.h"

#include <fstream>
#include <sstream>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/contract/env.h"
#include "proto/contract/termination_message.h"
#include "proto/runtime/status.h"

namespace disttrain {
namespace {

std::string Contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(TerminationMessage, HoldsCauseCodeStepAndTheRankThatFailed) {
  const std::string path = testing::TempDir() + "/termination-message";
  const LeavingRank rank = {
      .path = path, .rank = 2, .role = "observer", .step = 40};
  ASSERT_TRUE(WriteTerminationMessage(rank, {.code = ExitCode::kPeerLost,
                                             .cause = "rank 0 was lost",
                                             .failed_rank = 0})
                  .ok());
  const auto message = ParseTerminationMessage(Contents(path));
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->rank, 2);
  EXPECT_EQ(message->role, "observer");
  EXPECT_EQ(message->cause, "rank 0 was lost");
  EXPECT_EQ(message->step, 40);
  EXPECT_EQ(message->exit_code, 75);
  EXPECT_EQ(message->failed_rank, 0);
}

TEST(TerminationMessage, NamesAFileItCannotWrite) {
  const absl::Status status =
      WriteTerminationMessage({.path = "/nowhere/at/all"}, {});
  EXPECT_EQ(
      Message(status),
      "DISTTRAIN_TERMINATION_MESSAGE_PATH=/nowhere/at/all cannot be written");
}

TEST(Ending, FollowsTheStatusOfTheSetUp) {
  EXPECT_EQ(EndingFor(absl::InvalidArgumentError("RANK is missing")),
            (Ending{.code = ExitCode::kConfig, .cause = "RANK is missing"}));
  EXPECT_EQ(EndingFor(absl::DeadlineExceededError("rank 1 is missing")).code,
            ExitCode::kPeerLost);
}

TEST(ExitTimer, RunsAtTheEarliestTimeItWasArmedFor) {
  absl::Notification expired;
  ExitTimer timer([&] { expired.Notify(); });
  timer.Arm(absl::Now() + absl::Hours(1));
  timer.Arm(absl::Now());
  timer.Arm(absl::Now() + absl::Hours(2));
  EXPECT_TRUE(expired.WaitForNotificationWithTimeout(absl::Seconds(30)));
}

TEST(ExitTimer, IsDisarmedByItsEnd) {
  bool expired = false;
  {
    ExitTimer timer([&] { expired = true; });
    timer.Arm(absl::Now() + absl::Hours(1));
  }
  EXPECT_FALSE(expired);
}

}  // namespace
}  // namespace disttrain
