// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/reinforce/reinforce.h"

#include <stdexcept>

#include "fmt/format.h"
#include "worker/programs/reinforce/agent.h"
#include "worker/programs/reinforce/observer.h"
#include "worker/programs/reinforce/parameters.h"
#include "worker/rpc/rpc.h"

namespace disttrain {
namespace {

size_t QuorumOf(const ReinforceParameters& p,
                const std::vector<rpc::Peer>& observers) {
  const auto quorum = static_cast<size_t>(p.quorum);
  if (quorum <= observers.size()) {
    return quorum == 0 ? observers.size() : quorum;
  }
  throw ConfigError(
      fmt::format("spec.parameters.quorum is {}, must be at most {}, the "
                  "number of observers",
                  quorum, observers.size()));
}

void ReportEpisode(Program& program, const ReinforceParameters& p,
                   int64_t number, const Agent::Episode& episode) {
  program.Report({.step = number,
                  .total_steps = p.episodes,
                  .loss = episode.loss,
                  .reward = episode.running_reward,
                  .episode_reward = episode.min_reward,
                  .gradient_norm = episode.gradient_norm,
                  .learning_rate = p.learning_rate,
                  .environment_steps = episode.steps});
  if (number % p.log_interval != 0) return;
  program.log().Info(
      fmt::format("Episode {}\tLast reward: {:.2f}\tAverage reward: {:.2f}",
                  number, episode.min_reward, episode.running_reward),
      {{"episode", number},
       {"reward", episode.running_reward},
       {"episode_reward", episode.min_reward},
       {"env_steps", episode.steps}});
}

void ReportSolved(Program& program, int64_t number, double running_reward) {
  program.log().Info(
      fmt::format("Solved! Running reward is now {}!", running_reward),
      {{"episode", number}, {"reward", running_reward}});
}

void ReportNotSolved(Program& program, const ReinforceParameters& p,
                     double running_reward) {
  const std::string message = fmt::format(
      "not solved after {} episodes: running reward {:.2f}, wanted more than "
      "{}",
      p.episodes, running_reward, p.reward_threshold);
  if (p.require_solved) throw std::runtime_error(message);
  program.log().Warn(message, {{"reward", running_reward}});
}

}  // namespace

void Reinforce(Program& program) {
  const auto p = program.Parameters<ReinforceParameters>();
  const std::vector<rpc::Peer> peers = program.Role("observer");
  const size_t quorum = QuorumOf(p, peers);

  rpc::RRef<Agent> agent = rpc::Local<Agent>(p);
  rpc::Group<Observer> observers(peers, [&](const rpc::Peer& peer) {
    return std::make_tuple(int64_t{peer.rank}, p.seed);
  });

  double running_reward = 0;
  int64_t number = 1;
  while (number <= p.episodes) {
    if (program.StopRequested()) return;
    // No deadline: episodes get longer as the policy gets better, and a lost
    // observer is noticed anyway.
    const auto results =
        observers
            .CallWith({.timeout = absl::ZeroDuration()}, &Observer::RunEpisode,
                      agent, p.max_steps)
            .First(quorum);
    std::vector<int64_t> ranks;
    for (const auto& result : results) ranks.push_back(result.peer.rank);
    if (ranks.empty()) continue;  // all were lost, and the episode with them

    const Agent::Episode episode = agent->FinishEpisode(ranks);
    running_reward = episode.running_reward;
    ReportEpisode(program, p, number, episode);
    if (running_reward > p.reward_threshold) {
      ReportSolved(program, number, running_reward);
      return;
    }
    ++number;
  }
  ReportNotSolved(program, p, running_reward);
}

NamedProgram ReinforceProgram() {
  return {
      "reinforce",
      Reinforce,
      {.meaning = "CartPole-v1 by REINFORCE: one agent learns, observers play",
       .driver = "agent",
       .roles = {{.name = "agent", .max_replicas = 1},
                 {.name = "observer", .replaceable = true}},
       .parameters = Describe<ReinforceParameters>(),
       .remotes = rpc::Remotes<Agent, Observer>()}};
}

}  // namespace disttrain
