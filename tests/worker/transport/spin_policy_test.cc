// SPDX-License-Identifier: Apache-2.0
#include "worker/transport/spin_policy.h"

#include <gtest/gtest.h>

namespace disttrain::transport {
namespace {

// How many of `turns` looks are worth their time, if none finds anything.
int SpinsInVain(SpinPolicy& policy, int turns) {
  int spins = 0;
  for (int i = 0; i < turns; ++i) {
    if (policy.Budget() == absl::ZeroDuration()) continue;
    ++spins;
    policy.Missed();
  }
  return spins;
}

TEST(SpinPolicy, SpinsFromTheStart) {
  EXPECT_EQ(SpinPolicy().Budget(), SpinPolicy::kSpin);
}

TEST(SpinPolicy, GivesUpWhatDoesNotPayAndTriesNowAndThen) {
  SpinPolicy policy;
  EXPECT_LT(SpinsInVain(policy, 100), 25);
  const int later = SpinsInVain(policy, 1000);
  EXPECT_GT(later, 0);
  EXPECT_LT(later, 50);
}

TEST(SpinPolicy, GoesOnWhileEveryOtherLookPays) {
  SpinPolicy policy;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(policy.Budget(), SpinPolicy::kSpin) << i;
    i % 2 == 0 ? policy.Missed() : policy.Found();
  }
}

TEST(SpinPolicy, ComesBackSoonOnceItPaysAgain) {
  SpinPolicy policy;
  SpinsInVain(policy, 100);
  while (policy.Budget() == absl::ZeroDuration()) {
  }
  policy.Found();
  EXPECT_EQ(policy.Budget(), SpinPolicy::kSpin);
}

}  // namespace
}  // namespace disttrain::transport
