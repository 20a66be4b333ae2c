// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/reinforce/cartpole.h"

#include <cmath>
#include <numbers>
#include <stdexcept>

#include "fmt/format.h"
#include "worker/programs/reinforce/uniform.h"

namespace disttrain::reinforce {
namespace {

constexpr double kGravity = 9.8;
constexpr double kPoleMass = 0.1;
constexpr double kTotalMass = 1.0 + kPoleMass;
constexpr double kHalfLength = 0.5;
constexpr double kPoleMassLength = kPoleMass * kHalfLength;
constexpr double kForce = 10.0;
constexpr double kTau = 0.02;
constexpr double kPositionLimit = 2.4;
constexpr double kAngleLimit = 12 * 2 * std::numbers::pi / 360;
constexpr double kStartLimit = 0.05;

}  // namespace

CartPole::Observation CartPole::Reset() {
  State state;
  for (double& value : state) {
    value = (2 * Uniform(generator_) - 1) * kStartLimit;
  }
  return Reset(state);
}

CartPole::Observation CartPole::Reset(const State& state) {
  state_ = state;
  steps_ = 0;
  return Observed();
}

CartPole::Transition CartPole::Step(int64_t action) {
  if (action < 0 || action >= kActions) {
    throw std::invalid_argument(
        fmt::format("action is {}, must be 0 (left) or 1 (right)", action));
  }
  auto& [x, x_dot, theta, theta_dot] = state_;
  const double force = action == 1 ? kForce : -kForce;
  const double cosine = std::cos(theta);
  const double sine = std::sin(theta);
  const double push =
      (force + kPoleMassLength * (theta_dot * theta_dot) * sine) / kTotalMass;
  const double theta_acceleration =
      (kGravity * sine - cosine * push) /
      (kHalfLength * (4.0 / 3.0 - kPoleMass * (cosine * cosine) / kTotalMass));
  const double x_acceleration =
      push - kPoleMassLength * theta_acceleration * cosine / kTotalMass;
  x += kTau * x_dot;
  x_dot += kTau * x_acceleration;
  theta += kTau * theta_dot;
  theta_dot += kTau * theta_acceleration;
  ++steps_;
  return {.observation = Observed(),
          .reward = 1.0,
          .terminated =
              std::abs(x) > kPositionLimit || std::abs(theta) > kAngleLimit,
          .truncated = steps_ >= kTimeLimit};
}

CartPole::Observation CartPole::Observed() const {
  Observation observation;
  for (size_t i = 0; i < state_.size(); ++i) {
    observation[i] = static_cast<float>(state_[i]);
  }
  return observation;
}

}  // namespace disttrain::reinforce
