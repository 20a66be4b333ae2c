// SPDX-License-Identifier: Apache-2.0
#include "worker/programs/reinforce/agent.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include "ATen/Functions.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/programs/reinforce/cartpole.h"

namespace disttrain {
namespace {

using reinforce::CartPole;

// What an observer does in an episode, a step at a time.
class Player {
 public:
  Player(Agent& agent, int64_t id, int64_t seed)
      : agent_(agent), id_(id), cart_pole_(static_cast<uint64_t>(seed + id)) {}

  void Start() {
    Remember(cart_pole_.Reset());
    last_reward_.reset();
    over_ = false;
  }

  bool over() const { return over_; }

  void Step() {
    const auto transition =
        cart_pole_.Step(agent_.SelectAction(id_, state_, last_reward_));
    Remember(transition.observation);
    last_reward_ = transition.reward;
    over_ = transition.terminated || transition.truncated;
    if (over_) agent_.EndEpisode(id_, transition.reward);
  }

  void Play() {
    Start();
    while (!over()) Step();
  }

 private:
  void Remember(const CartPole::Observation& observation) {
    state_ = at::empty({4}, at::kFloat);
    std::copy(observation.begin(), observation.end(),
              state_.mutable_data_ptr<float>());
  }

  Agent& agent_;
  const int64_t id_;
  CartPole cart_pole_;
  at::Tensor state_;
  std::optional<double> last_reward_;
  bool over_ = true;
};

enum class Order { kOneAfterAnother, kBackwards, kInTurns, kThreads };

struct Record {
  std::vector<double> rewards;
  std::vector<at::Tensor> weights;
};

void PlayAll(std::vector<Player>& players, Order order) {
  if (order == Order::kOneAfterAnother) {
    for (Player& player : players) player.Play();
  } else if (order == Order::kBackwards) {
    for (auto player = players.rbegin(); player != players.rend(); ++player) {
      player->Play();
    }
  } else if (order == Order::kInTurns) {
    for (Player& player : players) player.Start();
    while (!std::all_of(players.begin(), players.end(),
                        [](const Player& player) { return player.over(); })) {
      for (Player& player : players) {
        if (!player.over()) player.Step();
      }
    }
  } else {
    std::vector<std::thread> threads;
    for (Player& player : players)
      threads.emplace_back([&player] { player.Play(); });
    for (std::thread& thread : threads) thread.join();
  }
}

Record RunEpisodes(int64_t seed, int64_t observers, int episodes, Order order) {
  ReinforceParameters parameters;
  parameters.seed = seed;
  Agent agent(parameters);
  std::vector<Player> players;
  std::vector<int64_t> ranks;
  for (int64_t rank = 1; rank <= observers; ++rank) {
    players.emplace_back(agent, rank, seed);
    ranks.push_back(rank);
  }
  if (order == Order::kBackwards) std::reverse(ranks.begin(), ranks.end());
  Record run;
  for (int i = 0; i < episodes; ++i) {
    PlayAll(players, order);
    run.rewards.push_back(agent.FinishEpisode(ranks).min_reward);
  }
  run.weights = agent.Weights();
  return run;
}

void ExpectSame(const Record& a, const Record& b) {
  EXPECT_EQ(a.rewards, b.rewards);
  for (size_t i = 0; i < a.weights.size(); ++i) {
    EXPECT_TRUE(at::equal(a.weights[i], b.weights[i]));
  }
}

TEST(Agent, GivesTheSameRunForTheSameSeed) {
  ExpectSame(RunEpisodes(543, 2, 15, Order::kInTurns),
             RunEpisodes(543, 2, 15, Order::kInTurns));
}

TEST(Agent, GivesTheSameRunWhateverTheTiming) {
  const Record reference = RunEpisodes(543, 3, 10, Order::kOneAfterAnother);
  ExpectSame(reference, RunEpisodes(543, 3, 10, Order::kBackwards));
  ExpectSame(reference, RunEpisodes(543, 3, 10, Order::kInTurns));
  ExpectSame(reference, RunEpisodes(543, 3, 10, Order::kThreads));
}

TEST(Agent, GivesAnotherRunForAnotherSeed) {
  EXPECT_NE(RunEpisodes(543, 2, 15, Order::kInTurns).rewards,
            RunEpisodes(544, 2, 15, Order::kInTurns).rewards);
}

TEST(Agent, LearnsToKeepThePoleUp) {
  const Record run = RunEpisodes(543, 2, 150, Order::kOneAfterAnother);
  const auto mean = [](auto begin, auto end) {
    return std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
  };
  const double first = mean(run.rewards.begin(), run.rewards.begin() + 30);
  const double last = mean(run.rewards.end() - 30, run.rewards.end());
  EXPECT_LT(first, 40);
  EXPECT_GT(last, 3 * first);
}

TEST(Agent, CountsTheWorstObserverAndSmoothsItFromZero) {
  Agent agent({});
  const at::Tensor state = at::zeros({4}, at::kFloat);
  agent.SelectAction(1, state, std::nullopt);
  agent.SelectAction(1, state, 2.0);
  agent.EndEpisode(1, 3.0);
  agent.SelectAction(2, state, std::nullopt);
  agent.EndEpisode(2, 4.0);
  const Agent::Episode episode = agent.FinishEpisode({1, 2});
  EXPECT_EQ(episode.min_reward, 4.0);
  EXPECT_DOUBLE_EQ(episode.running_reward, 0.05 * 4.0);
  EXPECT_EQ(episode.steps, 3);
}

TEST(Agent, ForgetsAnEpisodeThatWasBrokenOff) {
  Agent agent({});
  const at::Tensor state = at::zeros({4}, at::kFloat);
  agent.SelectAction(1, state, std::nullopt);
  agent.SelectAction(1, state, 10.0);
  agent.SelectAction(1, state, std::nullopt);
  agent.EndEpisode(1, 1.0);
  EXPECT_EQ(agent.FinishEpisode({1}).min_reward, 1.0);
}

TEST(Agent, LeavesTheEpisodesOfOthersAlone) {
  Agent agent({});
  const at::Tensor state = at::zeros({4}, at::kFloat);
  agent.SelectAction(2, state, std::nullopt);
  agent.SelectAction(1, state, std::nullopt);
  agent.EndEpisode(1, 1.0);
  agent.FinishEpisode({1});
  agent.SelectAction(2, state, 5.0);
  agent.EndEpisode(2, 6.0);
  EXPECT_EQ(agent.FinishEpisode({2}).min_reward, 11.0);
}

TEST(Agent, RefusesAnotherTypeOfState) {
  Agent agent({});
  try {
    agent.SelectAction(1, at::zeros({1, 4}, at::kDouble), std::nullopt);
    FAIL() << "a float64 state was taken";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "state is Double of 2 dimensions, must be float32 [4]");
  }
}

TEST(Agent, RefusesAnEpisodeThatHasNotEnded) {
  Agent agent({});
  agent.SelectAction(1, at::zeros({4}, at::kFloat), std::nullopt);
  EXPECT_THROW(agent.FinishEpisode({1}), std::logic_error);
  EXPECT_THROW(agent.FinishEpisode({7}), std::logic_error);
}

}  // namespace
}  // namespace disttrain
