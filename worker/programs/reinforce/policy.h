// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ATen/core/Tensor.h"

namespace disttrain::reinforce {

struct PolicyOptions {
  int64_t hidden = 128;
  double dropout = 0.6;
  double learning_rate = 1e-2;
  int64_t seed = 543;  // of the initial weights
};

// What an episode left behind, one row a step, all observers one after another.
struct Batch {
  at::Tensor states;   // float32 [steps, 4]
  at::Tensor actions;  // int64 [steps]
  at::Tensor masks;    // float32 [steps, hidden]: 0 (dropped) or 1 / (1 - p)
  at::Tensor returns;  // float32 [steps]
};

// Linear(4, hidden) -> Dropout -> ReLU -> Linear(hidden, 2) -> softmax, trained
// by Adam. Dropout is active when acting too, so its masks are kept: learning
// goes through the network once, for all steps, with the masks that acted.
//
// Threads: not thread-safe; Act may run on several threads while Learn does
// not.
class Policy {
 public:
  using Observation = std::array<float, 4>;

  // Weights and biases start as torch's do: uniform in +-1/sqrt(inputs).
  explicit Policy(const PolicyOptions& options);
  ~Policy();

  struct Choice {
    int64_t action = 0;
    std::vector<float> mask;  // [hidden]
    std::array<float, 2> probabilities = {};
  };

  // Samples a mask and an action, both from `generator`.
  Choice Act(const Observation& observation, std::mt19937_64& generator) const;

  // Probabilities of the actions, float32 [steps, 2], with a graph.
  at::Tensor Forward(const at::Tensor& states, const at::Tensor& masks) const;

  // sum(-log probability of the action * return), a scalar with a graph.
  at::Tensor Loss(const Batch& batch) const;

  struct Update {
    double loss = 0;
    double gradient_norm = 0;  // 2-norm over all parameters
  };

  // One step of Adam on Loss(batch).
  Update Learn(const Batch& batch);

  // "fc1.weight" [hidden, 4], "fc1.bias", "fc2.weight" [2, hidden], "fc2.bias";
  // the tensors are the policy's own.
  std::vector<std::pair<std::string, at::Tensor>> NamedParameters() const;

 private:
  struct Network;
  std::unique_ptr<Network> network_;
};

}  // namespace disttrain::reinforce
