# SPDX-License-Identifier: Apache-2.0
"""The reinforce program on torch's Python RPC and Gymnasium, as its tutorial has it.

torch_reinforce.py OBSERVERS EPISODES

An agent and so many observers, each a process. Every step is one call of an observer to the agent
(action) and one more (reward). Prints the environment steps per second, from the end of the first
episode on. https://pytorch.org/tutorials/intermediate/rpc_tutorial.html
"""

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

    def __init__(self):
        self.id = rpc.get_worker_info().id
        self.env = gymnasium.make("CartPole-v1")
        self.env.reset(seed=SEED + self.id)

    def run_episode(self, agent):
        state, _ = self.env.reset()
        for _ in range(MAX_STEPS):
            action = agent.rpc_sync(timeout=0).select_action(self.id, torch.from_numpy(state))
            state, reward, terminated, truncated, _ = self.env.step(action)
            agent.rpc_sync(timeout=0).report_reward(self.id, reward)
            if terminated or truncated:
                return


class Agent:

    def __init__(self, observers):
        self.reference = rpc.RRef(self)
        self.policy = Policy()
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=1e-2)
        self.observers = [rpc.remote(f"observer{i}", Observer) for i in range(observers)]
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


def run(rank, observers, episodes, port):
    torch.set_num_threads(1)
    torch.manual_seed(SEED + rank)
    # Not 0: that is the timeout of the meeting, too.
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://127.0.0.1:{port}", rpc_timeout=3600)
    rpc.init_rpc("agent" if rank == 0 else f"observer{rank - 1}", rank=rank,
                 world_size=observers + 1, rpc_backend_options=options)
    if rank == 0:
        agent = Agent(observers)
        agent.run_episode()
        start = time.perf_counter()
        steps = sum(agent.run_episode() for _ in range(episodes))
        print(steps / (time.perf_counter() - start), flush=True)
    rpc.shutdown()


if __name__ == "__main__":
    count, number = map(int, sys.argv[1:])
    multiprocessing.spawn(run, args=(count, number, free_port()), nprocs=count + 1)
