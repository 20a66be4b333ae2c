# SPDX-License-Identifier: Apache-2.0
"""Measures whole jobs: real `dtj run`, real processes."""

import datetime
import glob
import json
import os
import subprocess
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
# Enough for a steady figure: at some 250 steps a second.
TORCH_EPISODES = 60


def roster_seconds(build_dir, ranks, times):
    """Seconds until all ranks have met, once for each time."""
    program = os.path.join(build_dir, "bench", "roster")
    return [float(subprocess.run([program, str(ranks)], check=True, capture_output=True,
                                 text=True).stdout) for _ in range(times)]


def measure(build_dir, peers_python, observer_counts, episodes):
    """[{observers, start_seconds, steps_per_second, memory: {role: bytes}, torch_steps_per_second}]"""
    runs = []
    for count in observer_counts:
        runs.append(_run(build_dir, count, episodes))
        runs[-1]["torch_steps_per_second"] = (
            _torch_steps_per_second(peers_python, count) if peers_python else None)
    return runs


def _torch_steps_per_second(python, observers):
    command = [python, "-B", "-W", "ignore", os.path.join(HERE, "torch_reinforce.py"), "speed",
               str(observers), str(TORCH_EPISODES)]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def _run(build_dir, observers, episodes):
    with tempfile.TemporaryDirectory(prefix="disttrain-bench-") as folder:
        settings = {"roles[1].replicas": observers, "parameters.episodes": episodes,
                    "parameters.log_interval": 1, "parameters.reward_threshold": 1e9,
                    "failurePolicy.maxRestarts": 0}
        command = dtj_command(build_dir, folder, settings)
        started = time.time()
        # It fails by design, at its last episode: no reward is enough.
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env={**os.environ, "XDG_STATE_HOME": folder})
        ports, memory = {}, {}
        while process.poll() is None:
            _sample_memory(folder, ports, memory)
            time.sleep(0.1)  # seldom: what is measured needs the cores
        ended = lines(folder, "agent", "env_steps")
        if len(ended) != episodes:
            raise RuntimeError(f"{len(ended)} of {episodes} episodes: {' '.join(command)}")
        steps = sum(episode["env_steps"] for episode in ended[1:])
        return {"observers": observers, "start_seconds": ended[0]["ts"] - started,
                "steps_per_second": steps / (ended[-1]["ts"] - ended[0]["ts"]), "memory": memory}


def dtj_command(build_dir, folder, settings):
    """Runs manifests/cartpole.yaml with {path: value} set; its logs go to `folder`."""
    command = [os.path.join(build_dir, "bin", "dtj"), "run", "-q", "--no-progress", "-f",
               os.path.join(HERE, "..", "..", "manifests", "cartpole.yaml"), "--log-dir", folder]
    for path, value in settings.items():
        command += ["--set", f"{path}={value}"]
    return command


def lines(folder, role, field):
    """The role's log lines that have that field; ts in seconds."""
    found = []
    for path in glob.glob(os.path.join(folder, f"*-{role}-0.log")):
        with open(path, encoding="utf-8") as file:
            for line in file:
                if line.endswith("\n") and f'"{field}"' in line:
                    record = json.loads(line)
                    moment = datetime.datetime.fromisoformat(record["ts"].replace("Z", "+00:00"))
                    found.append({**record, "ts": moment.timestamp()})
    return found


def _sample_memory(folder, ports, memory):
    """Raises memory[role] to what the rank's own /metrics says now; `ports` keeps where that is."""
    for role in ("agent", "observer"):
        if role not in ports:
            served = lines(folder, role, "port")
            if not served:
                continue  # it is starting
            ports[role] = served[0]["port"]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{ports[role]}/metrics", timeout=5) as answer:
                text = answer.read().decode()
        except OSError:
            continue  # it is leaving
        name = "process_resident_memory_bytes "
        memory[role] = max([memory.get(role, 0)] + [float(line[len(name):])
                           for line in text.splitlines() if line.startswith(name)])
