// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/programs/reinforce/parameters.h"
#include "worker/programs/reinforce/policy.h"
#include "worker/rpc/remote.h"

namespace disttrain {

// Owns the policy: chooses actions for all observers while their episodes run,
// and learns from the episodes when they have ended.
//
// The same seed and the same observers give the same run, whatever the timing:
// each observer has its own random numbers here, and episodes are learnt from
// in the order of the observers' ranks.
//
// Threads: thread-safe.
class Agent {
 public:
  explicit Agent(const ReinforceParameters& parameters);

  // The action for observer `observer` (its rank) in `state`, float32 [4].
  // `last_reward` is what its previous action earned; none starts an episode,
  // and forgets one that was broken off.
  // Throws std::invalid_argument: a state of another type or shape.
  int64_t SelectAction(int64_t observer, const at::Tensor& state,
                       std::optional<double> last_reward);

  // The episode of `observer` is over; its last action earned `last_reward`.
  void EndEpisode(int64_t observer, double last_reward);

  struct Episode {
    double min_reward = 0;      // the worst observer's sum of rewards
    double running_reward = 0;  // 0.05 min_reward + 0.95 of what it was; from 0
    int64_t steps = 0;          // of all observers together
    double loss = 0;
    double gradient_norm = 0;
  };

  // One learning step from the ended episodes of `observers` (ranks, not
  // empty). Throws std::logic_error if one of them has no ended episode.
  Episode FinishEpisode(std::vector<int64_t> observers);

  // The policy's parameters, copied, in their order.
  std::vector<at::Tensor> Weights() const;

 private:
  // The episode of one observer, a row a step.
  struct Trajectory {
    std::mt19937_64 generator;
    std::vector<float> states;  // 4 a step
    std::vector<float> masks;   // `hidden` a step
    std::vector<int64_t> actions;
    std::vector<double> rewards;  // one fewer than actions while running
    bool ended = false;
  };

  Trajectory& TrajectoryOf(int64_t observer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  reinforce::Batch BatchOf(const std::vector<int64_t>& observers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ReinforceParameters parameters_;
  mutable absl::Mutex mu_;
  reinforce::Policy policy_ ABSL_GUARDED_BY(mu_);
  std::map<int64_t, Trajectory> trajectories_ ABSL_GUARDED_BY(mu_);
  double running_reward_ ABSL_GUARDED_BY(mu_) = 0;
};

DISTTRAIN_REMOTE(Agent, SelectAction, EndEpisode);

}  // namespace disttrain
