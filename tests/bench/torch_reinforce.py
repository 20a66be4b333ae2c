# SPDX-License-Identifier: Apache-2.0
"""The reinforce program on torch's Python RPC and Gymnasium, as its tutorial has it.

torch_reinforce.py speed OBSERVERS EPISODES        the environment steps per second, from the end
                                                   of the first episode on
torch_reinforce.py solve OBSERVERS SEED SECONDS    {"solved": within so long, "episodes": so far}

An agent and so many observers, each a process. Every step is one call of an observer to the agent
(action) and one more (reward). https://pytorch.org/tutorials/intermediate/rpc_tutorial.html
"""

import json
import sys
import time

import gymnasium
import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as multiprocessing
from torch.distributions import Categorical

from torch_rpc import free_port

GAMMA = 0.99
MAX_STEPS = 10000
SEED = 543
# What CartPole-v1 calls solved.
REWARD_THRESHOLD = 475.0


class Policy(torch.nn.Module):

    def __init__(self):
        super().__init__()
        self.affine1 = torch.nn.Linear(4, 128)
        self.dropout = torch.nn.Dropout(p=0.6)
        self.affine2 = torch.nn.Linear(128, 2)

    def forward(self, state):
        hidden = torch.relu(self.dropout(self.affine1(state)))
        return torch.softmax(self.affine2(hidden), dim=1)


class Observer:

    def __init__(self, seed):
        self.id = rpc.get_worker_info().id
        self.env = gymnasium.make("CartPole-v1")
        self.env.reset(seed=seed + self.id)

    def run_episode(self, agent):
        state, _ = self.env.reset()
        for _ in range(MAX_STEPS):
            action = agent.rpc_sync(timeout=0).select_action(self.id, torch.from_numpy(state))
            state, reward, terminated, truncated, _ = self.env.step(action)
            agent.rpc_sync(timeout=0).report_reward(self.id, reward)
            if terminated or truncated:
                return


class Agent:

    def __init__(self, observers, seed):
        self.reference = rpc.RRef(self)
        self.policy = Policy()
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=1e-2)
        self.observers = [rpc.remote(f"observer{i}", Observer, args=(seed,)) for i in range(observers)]
        self.running_reward = 0.0
        self.rewards = {i + 1: [] for i in range(observers)}
        self.log_probabilities = {i + 1: [] for i in range(observers)}

    def select_action(self, observer, state):
        choice = Categorical(self.policy(state.float().unsqueeze(0)))
        action = choice.sample()
        self.log_probabilities[observer].append(choice.log_prob(action))
        return action.item()

    def report_reward(self, observer, reward):
        self.rewards[observer].append(reward)

    def run_episode(self):
        """All observers' episodes and one update. Returns the environment steps."""
        for call in [observer.rpc_async(timeout=0).run_episode(self.reference)
                     for observer in self.observers]:
            call.wait()
        loss = sum(self._loss(observer) for observer in self.rewards)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        steps = sum(map(len, self.rewards.values()))
        least = min(map(sum, self.rewards.values()))
        self.running_reward = 0.05 * least + 0.95 * self.running_reward
        for observer in self.rewards:
            self.rewards[observer].clear()
            self.log_probabilities[observer].clear()
        return steps

    def _loss(self, observer):
        returns, following = [], 0.0
        for reward in reversed(self.rewards[observer]):
            following = reward + GAMMA * following
            returns.insert(0, following)
        values = torch.tensor(returns)
        values = (values - values.mean()) / (values.std() + torch.finfo(torch.float32).eps)
        return sum(-log * value for log, value in zip(self.log_probabilities[observer], values))


def measure_speed(agent, episodes):
    agent.run_episode()
    start = time.perf_counter()
    steps = sum(agent.run_episode() for _ in range(episodes))
    print(steps / (time.perf_counter() - start), flush=True)


def solve(agent, deadline):
    episodes = 0
    while agent.running_reward <= REWARD_THRESHOLD and time.time() < deadline:
        agent.run_episode()
        episodes += 1
    print(json.dumps({"solved": agent.running_reward > REWARD_THRESHOLD, "episodes": episodes}),
          flush=True)


def run(rank, observers, port, seed, task, number):
    """One process; task(agent, number) is the agent's."""
    torch.set_num_threads(1)
    torch.manual_seed(seed + rank)
    # Not 0: that is the timeout of the meeting, too.
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://127.0.0.1:{port}", rpc_timeout=3600)
    rpc.init_rpc("agent" if rank == 0 else f"observer{rank - 1}", rank=rank,
                 world_size=observers + 1, rpc_backend_options=options)
    if rank == 0:
        task(Agent(observers, seed), number)
    rpc.shutdown()


def main(request, observers, *numbers):
    if request == "speed":
        what = (SEED, measure_speed, int(numbers[0]))
    else:
        what = (int(numbers[0]), solve, time.time() + float(numbers[1]))
    multiprocessing.spawn(run, args=(int(observers), free_port(), *what), nprocs=int(observers) + 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
