// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <random>

namespace disttrain::reinforce {

// CartPole-v1 as Gymnasium has it: a pole on a cart, pushed left or right by
// 10 N every 0.02 s, reward 1 for every step, the failing one too.
//
// Threads: not thread-safe.
class CartPole {
 public:
  // Cart position (m), cart velocity (m/s), pole angle (rad), pole tip
  // velocity (rad/s). The state is float64, what is observed float32.
  using State = std::array<double, 4>;
  using Observation = std::array<float, 4>;

  static constexpr int kActions = 2;  // 0: push left, 1: push right
  static constexpr int64_t kTimeLimit = 500;

  struct Transition {
    Observation observation;
    double reward = 0;
    bool terminated = false;  // |position| > 2.4 m or |angle| > 12 degrees
    bool truncated = false;   // kTimeLimit steps since the reset
  };

  // The same seed gives the same start states on every machine.
  explicit CartPole(uint64_t seed) : generator_(seed) {}

  // Starts an episode with four values uniform in [-0.05, 0.05).
  Observation Reset();

  // Starts an episode from `state`.
  Observation Reset(const State& state);

  // One step of explicit Euler: positions advance by the old velocities.
  // `action` is in [0, kActions); checked.
  Transition Step(int64_t action);

  const State& state() const { return state_; }

 private:
  Observation Observed() const;

  std::mt19937_64 generator_;
  State state_ = {};
  int64_t steps_ = 0;
};

}  // namespace disttrain::reinforce
