// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/reinforce/observer.h"

#include <algorithm>
#include <optional>

#include "ATen/Functions.h"

namespace disttrain {
namespace {

at::Tensor TensorFrom(const reinforce::CartPole::Observation& observation) {
  at::Tensor tensor =
      at::empty({static_cast<int64_t>(observation.size())}, at::kFloat);
  std::copy(observation.begin(), observation.end(),
            tensor.mutable_data_ptr<float>());
  return tensor;
}

}  // namespace

Observer::Observer(int64_t id, int64_t seed)
    : id_(id), cart_pole_(static_cast<uint64_t>(seed + id)) {}

// State and last reward go in one call: one round trip a step.
double Observer::RunEpisode(const rpc::RRef<Agent>& agent, int64_t max_steps) {
  at::Tensor state = TensorFrom(cart_pole_.Reset());
  std::optional<double> last_reward;
  double sum = 0;
  for (int64_t step = 0; step < max_steps; ++step) {
    const int64_t action =
        agent.Sync(&Agent::SelectAction, id_, state, last_reward);
    const auto transition = cart_pole_.Step(action);
    state = TensorFrom(transition.observation);
    last_reward = transition.reward;
    sum += transition.reward;
    if (transition.terminated || transition.truncated) break;
  }
  agent.Sync(&Agent::EndEpisode, id_, *last_reward);
  return sum;
}

}  // namespace disttrain
