// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/reinforce/cartpole.h"

#include <cmath>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/programs/recording.h"

namespace disttrain::reinforce {
namespace {

// Equal, or neighbours in float32.
bool WithinOneUlp(float a, float b) {
  return a == b || std::nextafter(a, b) == b;
}

void ExpectObservation(const CartPole::Observation& actual,
                       const nlohmann::json& expected) {
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_TRUE(WithinOneUlp(actual[i], expected[i].get<float>()))
        << "component " << i << " is " << actual[i] << ", Gymnasium has "
        << expected[i];
  }
}

TEST(CartPole, FollowsTrajectoriesRecordedFromGymnasium) {
  const nlohmann::json recording = Recording("cartpole.json");
  std::set<std::pair<bool, bool>> endings;
  size_t steps = 0;
  for (const nlohmann::json& episode : recording["episodes"]) {
    SCOPED_TRACE(episode["name"].get<std::string>());
    CartPole cart_pole(0);
    const auto& observations = episode["observations"];
    ExpectObservation(cart_pole.Reset(episode["start"].get<CartPole::State>()),
                      observations[0]);
    const size_t length = episode["actions"].size();
    for (size_t i = 0; i < length; ++i) {
      SCOPED_TRACE(i);
      const CartPole::Transition step =
          cart_pole.Step(episode["actions"][i].get<int64_t>());
      ExpectObservation(step.observation, observations[i + 1]);
      EXPECT_EQ(step.reward, episode["rewards"][i].get<double>());
      const bool last = i + 1 == length;
      EXPECT_EQ(step.terminated, last && episode["terminated"].get<bool>());
      EXPECT_EQ(step.truncated, last && episode["truncated"].get<bool>());
      if (last) endings.emplace(step.terminated, step.truncated);
    }
    steps += length;
  }
  EXPECT_GT(steps, 1000U);
  EXPECT_EQ(endings.size(), 2U);  // both kinds of ending were recorded
}

TEST(CartPole, StartsUniformlyWithinFiveHundredths) {
  CartPole cart_pole(1);
  double smallest = 1;
  double largest = -1;
  double sum = 0;
  for (int i = 0; i < 1000; ++i) {
    for (const double value : (cart_pole.Reset(), cart_pole.state())) {
      smallest = std::min(smallest, value);
      largest = std::max(largest, value);
      sum += value;
    }
  }
  EXPECT_GE(smallest, -0.05);
  EXPECT_LT(smallest, -0.0499);
  EXPECT_LT(largest, 0.05);
  EXPECT_GT(largest, 0.0499);
  EXPECT_NEAR(sum / 4000, 0, 0.002);
}

TEST(CartPole, StartsTheSameForTheSameSeedOnly) {
  CartPole one(1);
  CartPole again(1);
  CartPole other(2);
  const auto first = one.Reset();
  EXPECT_EQ(first, again.Reset());
  EXPECT_NE(first, other.Reset());
  EXPECT_NE(first, one.Reset());  // the next episode starts elsewhere
}

TEST(CartPole, CountsTheTimeLimitFromTheLastReset) {
  CartPole cart_pole(1);
  cart_pole.Reset({});
  EXPECT_FALSE(cart_pole.Step(0).truncated);
  cart_pole.Reset();
  for (int64_t i = 1; i < CartPole::kTimeLimit; ++i) {
    ASSERT_FALSE(cart_pole.Step(i % 2).truncated);
  }
  EXPECT_TRUE(cart_pole.Step(0).truncated);
}

TEST(CartPole, RefusesAnActionItDoesNotHave) {
  CartPole cart_pole(1);
  cart_pole.Reset();
  try {
    cart_pole.Step(2);
    FAIL() << "action 2 was taken";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "action is 2, must be 0 (left) or 1 (right)");
  }
}

}  // namespace
}  // namespace disttrain::reinforce
