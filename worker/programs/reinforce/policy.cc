// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/reinforce/policy.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "worker/programs/reinforce/uniform.h"

namespace disttrain::reinforce {
namespace {

constexpr int64_t kInputs = 4;
constexpr int64_t kActions = 2;

std::vector<float> SampleMask(int64_t hidden, double dropout,
                              std::mt19937_64& generator) {
  const auto kept = static_cast<float>(1 / (1 - dropout));
  std::vector<float> mask(static_cast<size_t>(hidden));
  for (float& value : mask) {
    value = Uniform(generator) < dropout ? 0.0F : kept;
  }
  return mask;
}

std::array<float, 2> Softmax(const std::array<float, 2>& logits) {
  const float largest = std::max(logits[0], logits[1]);
  const float left = std::exp(logits[0] - largest);
  const float right = std::exp(logits[1] - largest);
  return {left / (left + right), right / (left + right)};
}

}  // namespace

struct Policy::Network : torch::nn::Module {
  explicit Network(const PolicyOptions& options)
      : hidden(options.hidden), dropout(options.dropout) {
    torch::manual_seed(static_cast<uint64_t>(options.seed));
    fc1 = register_module("fc1", torch::nn::Linear(kInputs, hidden));
    fc2 = register_module("fc2", torch::nn::Linear(hidden, kActions));
    optimizer = std::make_unique<torch::optim::Adam>(
        parameters(), torch::optim::AdamOptions(options.learning_rate));
  }

  int64_t hidden;
  double dropout;
  torch::nn::Linear fc1{nullptr};
  torch::nn::Linear fc2{nullptr};
  std::unique_ptr<torch::optim::Adam> optimizer;
};

Policy::Policy(const PolicyOptions& options)
    : network_(std::make_unique<Network>(options)) {}

Policy::~Policy() = default;

// Plain loops: for one row torch's dispatch costs ten times the arithmetic.
Policy::Choice Policy::Act(const Observation& observation,
                           std::mt19937_64& generator) const {
  Choice choice;
  choice.mask = SampleMask(network_->hidden, network_->dropout, generator);
  const float* weight1 = network_->fc1->weight.const_data_ptr<float>();
  const float* bias1 = network_->fc1->bias.const_data_ptr<float>();
  const float* weight2 = network_->fc2->weight.const_data_ptr<float>();
  const float* bias2 = network_->fc2->bias.const_data_ptr<float>();
  const auto hidden = static_cast<size_t>(network_->hidden);
  std::array<float, 2> logits = {bias2[0], bias2[1]};
  for (size_t unit = 0; unit < hidden; ++unit) {
    if (choice.mask[unit] == 0) continue;
    float sum = bias1[unit];
    for (size_t i = 0; i < observation.size(); ++i) {
      sum += weight1[unit * observation.size() + i] * observation[i];
    }
    const float activation = std::max(0.0F, sum * choice.mask[unit]);
    logits[0] += weight2[unit] * activation;
    logits[1] += weight2[hidden + unit] * activation;
  }
  choice.probabilities = Softmax(logits);
  choice.action = Uniform(generator) < choice.probabilities[0] ? 0 : 1;
  return choice;
}

at::Tensor Policy::Forward(const at::Tensor& states,
                           const at::Tensor& masks) const {
  const at::Tensor hidden = torch::relu(network_->fc1(states) * masks);
  return torch::softmax(network_->fc2(hidden), /*dim=*/1);
}

at::Tensor Policy::Loss(const Batch& batch) const {
  const at::Tensor probabilities = Forward(batch.states, batch.masks);
  const at::Tensor taken =
      probabilities.gather(/*dim=*/1, batch.actions.unsqueeze(1)).squeeze(1);
  return (-taken.log() * batch.returns).sum();
}

Policy::Update Policy::Learn(const Batch& batch) {
  network_->optimizer->zero_grad();
  const at::Tensor loss = Loss(batch);
  loss.backward();
  double squares = 0;
  for (const at::Tensor& parameter : network_->parameters()) {
    squares += parameter.grad().square().sum().item<double>();
  }
  network_->optimizer->step();
  return {.loss = loss.item<double>(), .gradient_norm = std::sqrt(squares)};
}

std::vector<std::pair<std::string, at::Tensor>> Policy::NamedParameters()
    const {
  std::vector<std::pair<std::string, at::Tensor>> result;
  for (const auto& item : network_->named_parameters()) {
    result.emplace_back(item.key(), item.value());
  }
  return result;
}

}  // namespace disttrain::reinforce
