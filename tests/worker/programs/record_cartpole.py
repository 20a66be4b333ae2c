# SPDX-License-Identifier: Apache-2.0
"""Records CartPole-v1 trajectories of Gymnasium: the expected values of cartpole_test.

    pip install gymnasium==1.4.0
    python record_cartpole.py > cartpole.json
"""
import json
import random

import gymnasium


def random_action(rng, _):
    return rng.randrange(2)


def balance(_, observation):
    """A linear controller that keeps the pole up until the time limit."""
    x, x_dot, theta, theta_dot = observation
    return int(theta + 0.3 * theta_dot + 0.01 * x + 0.05 * x_dot > 0)


def push_right(_, __):
    return 1


def drift(_, observation):
    """Keeps the pole up while the cart runs out of its track."""
    _, _, theta, theta_dot = observation
    return int(theta + 0.2 * theta_dot > 0.06)


def record(name, choose, seed):
    env = gymnasium.make("CartPole-v1")
    rng = random.Random(seed)
    observation, _ = env.reset(seed=seed)
    episode = {"name": name, "start": [float(v) for v in env.unwrapped.state], "actions": [],
               "observations": [[float(v) for v in observation]], "rewards": []}
    terminated = truncated = False
    while not (terminated or truncated):
        action = choose(rng, observation)
        observation, reward, terminated, truncated, _ = env.step(action)
        episode["actions"].append(action)
        episode["observations"].append([float(v) for v in observation])
        episode["rewards"].append(reward)
    episode["terminated"], episode["truncated"] = terminated, truncated
    return episode


episodes = [record("random", random_action, seed) for seed in range(8)]
episodes += [record("balance", balance, seed) for seed in (100, 101)]
episodes += [record("push right", push_right, 200), record("drift", drift, 300)]
print('{"gymnasium": "%s", "episodes": [' % gymnasium.__version__)
print(",\n".join(json.dumps(episode) for episode in episodes))
print("]}")
