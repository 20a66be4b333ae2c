// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/reinforce/agent.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "ATen/Functions.h"
#include "fmt/format.h"
#include "worker/programs/reinforce/returns.h"

namespace disttrain {
namespace {

constexpr int64_t kStateSize = 4;
constexpr double kRunningShare = 0.05;

reinforce::Policy::Observation ObservationFrom(const at::Tensor& state) {
  if (state.scalar_type() != at::kFloat || state.dim() != 1 ||
      state.size(0) != kStateSize) {
    throw std::invalid_argument(fmt::format(
        "state is {} of {} dimensions, must be float32 [{}]",
        c10::toString(state.scalar_type()), state.dim(), kStateSize));
  }
  const at::Tensor contiguous = state.contiguous();
  reinforce::Policy::Observation observation;
  std::copy_n(contiguous.const_data_ptr<float>(), kStateSize,
              observation.begin());
  return observation;
}

// A tensor [rows, columns] that owns a copy of `values`.
template <class T>
at::Tensor Rows(const std::vector<T>& values, int64_t columns,
                at::ScalarType type) {
  const auto rows = static_cast<int64_t>(values.size()) / columns;
  at::Tensor tensor = at::empty({rows, columns}, type);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<T>());
  return tensor;
}

std::mt19937_64 GeneratorFor(int64_t seed, int64_t observer) {
  std::seed_seq sequence{static_cast<uint32_t>(seed),
                         static_cast<uint32_t>(seed >> 32),
                         static_cast<uint32_t>(observer)};
  return std::mt19937_64(sequence);
}

}  // namespace

Agent::Agent(const ReinforceParameters& parameters)
    : parameters_(parameters),
      policy_({.hidden = parameters.hidden,
               .dropout = parameters.dropout,
               .learning_rate = parameters.learning_rate,
               .seed = parameters.seed}) {}

int64_t Agent::SelectAction(int64_t observer, const at::Tensor& state,
                            std::optional<double> last_reward) {
  const reinforce::Policy::Observation observation = ObservationFrom(state);
  absl::MutexLock lock(&mu_);
  Trajectory& episode = TrajectoryOf(observer);
  if (last_reward.has_value()) {
    episode.rewards.push_back(*last_reward);
  } else {
    episode.states.clear();
    episode.masks.clear();
    episode.actions.clear();
    episode.rewards.clear();
    episode.ended = false;
  }
  if (episode.ended || episode.rewards.size() != episode.actions.size()) {
    throw std::logic_error(
        fmt::format("observer {} has {} rewards for {} actions: its episode "
                    "was not started "
                    "without a reward",
                    observer, episode.rewards.size(), episode.actions.size()));
  }
  const reinforce::Policy::Choice choice =
      policy_.Act(observation, episode.generator);
  episode.states.insert(episode.states.end(), observation.begin(),
                        observation.end());
  episode.masks.insert(episode.masks.end(), choice.mask.begin(),
                       choice.mask.end());
  episode.actions.push_back(choice.action);
  return choice.action;
}

void Agent::EndEpisode(int64_t observer, double last_reward) {
  absl::MutexLock lock(&mu_);
  Trajectory& episode = TrajectoryOf(observer);
  episode.rewards.push_back(last_reward);
  episode.ended = true;
}

Agent::Episode Agent::FinishEpisode(std::vector<int64_t> observers) {
  std::sort(observers.begin(), observers.end());
  absl::MutexLock lock(&mu_);
  const reinforce::Batch batch = BatchOf(observers);
  Episode result;
  result.min_reward = std::numeric_limits<double>::infinity();
  for (const int64_t observer : observers) {
    const std::vector<double>& rewards = TrajectoryOf(observer).rewards;
    result.min_reward =
        std::min(result.min_reward,
                 std::accumulate(rewards.begin(), rewards.end(), 0.0));
    TrajectoryOf(observer).ended = false;
  }
  running_reward_ =
      kRunningShare * result.min_reward + (1 - kRunningShare) * running_reward_;
  result.running_reward = running_reward_;
  result.steps = batch.states.size(0);
  const reinforce::Policy::Update update = policy_.Learn(batch);
  result.loss = update.loss;
  result.gradient_norm = update.gradient_norm;
  return result;
}

std::vector<at::Tensor> Agent::Weights() const {
  absl::MutexLock lock(&mu_);
  std::vector<at::Tensor> weights;
  for (const auto& [name, value] : policy_.NamedParameters()) {
    weights.push_back(value.detach().clone());
  }
  return weights;
}

Agent::Trajectory& Agent::TrajectoryOf(int64_t observer) {
  const auto found = trajectories_.find(observer);
  if (found != trajectories_.end()) return found->second;
  Trajectory episode;
  episode.generator = GeneratorFor(parameters_.seed, observer);
  return trajectories_.emplace(observer, std::move(episode)).first->second;
}

reinforce::Batch Agent::BatchOf(const std::vector<int64_t>& observers) {
  std::vector<at::Tensor> states;
  std::vector<at::Tensor> masks;
  std::vector<at::Tensor> actions;
  std::vector<double> returns;
  for (const int64_t observer : observers) {
    const Trajectory& episode = TrajectoryOf(observer);
    if (!episode.ended || episode.rewards.size() != episode.actions.size()) {
      throw std::logic_error(fmt::format(
          "the episode of observer {} has not ended: it has {} rewards "
          "for {} actions",
          observer, episode.rewards.size(), episode.actions.size()));
    }
    states.push_back(Rows(episode.states, kStateSize, at::kFloat));
    masks.push_back(Rows(episode.masks, parameters_.hidden, at::kFloat));
    actions.push_back(Rows(episode.actions, 1, at::kLong));
    const auto own =
        reinforce::DiscountedReturns(episode.rewards, parameters_.gamma);
    returns.insert(returns.end(), own.begin(), own.end());
  }
  reinforce::Normalize(returns);
  return {.states = at::cat(states),
          .actions = at::cat(actions).squeeze(1),
          .masks = at::cat(masks),
          .returns = Rows(returns, 1, at::kDouble).squeeze(1).to(at::kFloat)};
}

}  // namespace disttrain
