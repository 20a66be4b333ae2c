// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/reinforce/returns.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/programs/recording.h"

namespace disttrain::reinforce {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DiscountedReturns, AddLaterRewardsDiscounted) {
  EXPECT_THAT(DiscountedReturns({1, 2, 4}, 0.5), ElementsAre(3, 4, 4));
  EXPECT_THAT(DiscountedReturns({1, 2, 4}, 0), ElementsAre(1, 2, 4));
  EXPECT_THAT(DiscountedReturns({}, 0.5), IsEmpty());
}

TEST(DiscountedReturns, EqualWhatWasRecordedForEachObserverAlone) {
  const nlohmann::json recording = Recording("policy_gradient.json");
  std::vector<double> all;
  for (const auto& observer : recording["observers"]) {
    const auto returns =
        DiscountedReturns(observer["rewards"].get<std::vector<double>>(),
                          recording["gamma"].get<double>());
    const auto expected = observer["returns"].get<std::vector<double>>();
    ASSERT_EQ(returns.size(), expected.size());
    for (size_t i = 0; i < returns.size(); ++i) {
      EXPECT_NEAR(returns[i], expected[i], 1e-12);
    }
    all.insert(all.end(), returns.begin(), returns.end());
  }
  Normalize(all);
  const auto expected =
      recording["normalized_returns"].get<std::vector<double>>();
  ASSERT_EQ(all.size(), expected.size());
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_NEAR(all[i], expected[i], 1e-5);  // recorded in float32
  }
}

TEST(Normalize, UsesTheUnbiasedDeviation) {
  std::vector<double> returns = {1, 3};  // mean 2, deviation sqrt(2)
  Normalize(returns);
  EXPECT_NEAR(returns[0], -std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(returns[1], std::sqrt(0.5), 1e-6);
}

TEST(Normalize, MakesOneReturnZeroInsteadOfNan) {
  std::vector<double> returns = {17};
  Normalize(returns);
  EXPECT_THAT(returns, ElementsAre(0));
}

TEST(Normalize, LeavesEqualReturnsFinite) {
  std::vector<double> returns = {2, 2, 2};
  Normalize(returns);
  EXPECT_THAT(returns, ElementsAre(0, 0, 0));
}

TEST(Normalize, AcceptsNoReturns) {
  std::vector<double> returns;
  Normalize(returns);
  EXPECT_THAT(returns, IsEmpty());
}

}  // namespace
}  // namespace disttrain::reinforce
