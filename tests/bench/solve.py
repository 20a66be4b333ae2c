# SPDX-License-Identifier: Apache-2.0
"""Measures how long CartPole takes until it is solved: a running reward above 475."""

import json
import os
import subprocess
import tempfile
import time

from cartpole_job import dtj_command, lines
from measured import Outcome

HERE = os.path.dirname(os.path.abspath(__file__))
# As in manifests/cartpole.yaml.
OBSERVERS = 2


def by_disttrain(build_dir, seeds):
    """An Outcome for each seed: real `dtj run`, from the command to its end."""
    return [_run(build_dir, seed) for seed in seeds]


def _run(build_dir, seed):
    with tempfile.TemporaryDirectory(prefix="disttrain-bench-") as folder:
        settings = {"parameters.seed": seed, "parameters.log_interval": 1, "failurePolicy.maxRestarts": 0}
        start = time.perf_counter()
        status = subprocess.run(dtj_command(build_dir, folder, settings), stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, check=False,
                                env={**os.environ, "XDG_STATE_HOME": folder}).returncode
        seconds = time.perf_counter() - start
        played = lines(folder, "agent", "env_steps")
        if not played:
            raise RuntimeError(f"seed {seed}: dtj ended with status {status} and no episode")
        return Outcome(seconds, len(played), status == 0)


def by_torch(python, seeds, budget):
    """The same on torch's RPC, until `budget` seconds are over: an Outcome for each seed begun."""
    outcomes, left = [], budget
    for seed in seeds:
        start = time.perf_counter()
        command = [python, "-B", "-W", "ignore", os.path.join(HERE, "torch_reinforce.py"), "solve",
                   str(OBSERVERS), str(seed), str(left)]
        answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                                           timeout=left + 120).stdout)
        seconds = time.perf_counter() - start
        outcomes.append(Outcome(seconds, answer["episodes"], answer["solved"]))
        left -= seconds
        if left < budget / 10:
            break
    return outcomes
