# SPDX-License-Identifier: Apache-2.0
"""Records the gradient of one REINFORCE episode of two observers by PyTorch's autograd: the
expected values of policy_test. Weights, states, actions, dropout masks and rewards are fixed.

    pip install torch==2.11.0 numpy
    python record_policy_gradient.py > policy_gradient.json
"""
import json

import torch

GAMMA, DROPOUT, HIDDEN, STEPS = 0.99, 0.6, 128, (23, 14)

torch.manual_seed(7)
fc1, fc2 = torch.nn.Linear(4, HIDDEN), torch.nn.Linear(HIDDEN, 2)
log_probs, returns, observers = [], [], []
for steps in STEPS:
    states = torch.randn(steps, 4) * 0.5
    actions = torch.randint(0, 2, (steps,))
    kept = (torch.rand(steps, HIDDEN) >= DROPOUT).float()
    rewards = (torch.rand(steps) * 2).tolist()
    for t in range(steps):
        hidden = torch.relu(fc1(states[t:t + 1]) * (kept[t:t + 1] / (1 - DROPOUT)))
        probabilities = torch.softmax(fc2(hidden), dim=1)
        log_probs.append(torch.distributions.Categorical(probabilities).log_prob(actions[t]))
    later, discounted = 0.0, []
    for reward in reversed(rewards):
        later = reward + GAMMA * later
        discounted.insert(0, later)
    returns += discounted
    observers.append({
        "states": states.tolist(), "actions": actions.tolist(), "rewards": rewards,
        "kept": ["".join(str(int(v)) for v in row) for row in kept],
        "returns": discounted})
returns = torch.tensor(returns)
normalized = (returns - returns.mean()) / (returns.std() + torch.finfo(torch.float32).eps)
loss = torch.stack([-p * r for p, r in zip(log_probs, normalized)]).sum()
loss.backward()
named = [(f"{name}.{key}", value) for name, module in (("fc1", fc1), ("fc2", fc2))
         for key, value in module.named_parameters()]
print(json.dumps({
    "torch": torch.__version__.split("+")[0], "gamma": GAMMA, "dropout": DROPOUT,
    "hidden": HIDDEN, "observers": observers, "normalized_returns": normalized.tolist(),
    "loss": loss.item(), "weights": {name: value.tolist() for name, value in named},
    "gradients": {name: value.grad.tolist() for name, value in named}}))
