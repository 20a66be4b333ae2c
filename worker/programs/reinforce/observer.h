// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "worker/programs/reinforce/agent.h"
#include "worker/programs/reinforce/cartpole.h"
#include "worker/rpc/remote.h"
#include "worker/rpc/rref.h"

namespace disttrain {

// Owns one CartPole environment and runs an episode in it when told to, asking
// the agent for every action. Lives on an observer rank.
//
// Threads: not thread-safe; one episode at a time.
class Observer {
 public:
  // `id` is the observer's rank; its environment's seed is seed + id, so that
  // no two observers see the same start states.
  Observer(int64_t id, int64_t seed);

  // Returns the episode's sum of rewards.
  // Throws: rpc::Error if the agent cannot be asked.
  // Blocking: one call to the agent for each of at most `max_steps` steps.
  double RunEpisode(const rpc::RRef<Agent>& agent, int64_t max_steps);

 private:
  const int64_t id_;
  reinforce::CartPole cart_pole_;
};

DISTTRAIN_REMOTE(Observer, RunEpisode);

}  // namespace disttrain
