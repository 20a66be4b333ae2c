# SPDX-License-Identifier: Apache-2.0
"""disttrain-worker as a process among others: how it meets, reports, and leaves.

Ranks are started by hand, as a controller would: rank 0 is the agent, the others
are observers, over Unix sockets. Waiting is always for a condition.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

WORKER = os.environ["DISTTRAIN_WORKER"]


class Rank:

    def __init__(self, job, rank, overrides):
        self.rank = rank
        self.log = os.path.join(job.folder, f"log{rank}")
        self.termination = os.path.join(job.folder, f"termination{rank}")
        role, index = ("agent", 0) if rank == 0 else ("observer", rank - 1)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DISTTRAIN_")}
        environment.update({
            "RANK": str(rank), "WORLD_SIZE": str(job.world_size), "DISTTRAIN_JOB": "default/test",
            "DISTTRAIN_JOB_UID": "uid", "DISTTRAIN_ATTEMPT": "0", "DISTTRAIN_INCARNATION": "0",
            "DISTTRAIN_ROLE": role, "DISTTRAIN_ROLE_INDEX": str(index), "DISTTRAIN_POD_NAME": f"test-{role}-{index}",
            "DISTTRAIN_RENDEZVOUS": f"unix:{job.folder}/rendezvous.sock", "DISTTRAIN_RENDEZVOUS_TIMEOUT": "120",
            "DISTTRAIN_PROGRAM": "reinforce", "DISTTRAIN_PARAMETERS": json.dumps(job.parameters),
            "DISTTRAIN_METRICS_PORT": "0", "DISTTRAIN_REPORT_INTERVAL": "1",
            "DISTTRAIN_TERMINATION_MESSAGE_PATH": self.termination})
        environment.update(overrides(rank) if callable(overrides) else overrides)
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([WORKER], env=environment, stdout=log, stderr=log)

    def lines(self):
        with open(self.log, encoding="utf-8") as file:
            return [json.loads(line) for line in file.read().splitlines() if line.startswith("{")]

    def find(self, message):
        return next((line for line in self.lines() if line["msg"].startswith(message)), None)

    def text(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def message(self):
        with open(self.termination, encoding="utf-8") as file:
            return json.load(file)

    def leave(self, seconds=60):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"rank {self.rank} is still there:\n{self.text()}") from None


class Job:

    def __init__(self, parameters, world_size=3, overrides=None, ranks=None):
        self.folder = tempfile.mkdtemp(prefix="dt-")
        self.parameters = parameters
        self.world_size = world_size
        self.ranks = [Rank(self, rank, overrides or {}) for rank in (range(world_size) if ranks is None else ranks)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for rank in self.ranks:
            rank.process.kill()
            rank.process.wait()
        shutil.rmtree(self.folder)

    def codes(self):
        return [rank.leave() for rank in self.ranks]

    def logs(self):
        return "\n".join(f"--- rank {rank.rank}\n{rank.text()}" for rank in self.ranks)

    def wait_for(self, message, rank=0, seconds=120):
        deadline = time.monotonic() + seconds
        while True:
            found = self.ranks[rank].find(message)
            if found:
                return found
            if time.monotonic() > deadline or self.ranks[rank].process.poll() is not None:
                raise AssertionError(f"rank {rank} did not say {message!r}:\n{self.logs()}")
            time.sleep(0.02)

    def episodes(self):
        return [line["msg"] for line in self.ranks[0].lines() if line["msg"].startswith("Episode ")]


# It goes on until somebody ends it.
ENDLESS = {"episodes": 1000000, "reward_threshold": 1e9, "log_interval": 1}


class WorkerProcess(unittest.TestCase):

    def test_all_ranks_leave_with_0_when_the_program_is_done(self):
        with Job({"reward_threshold": 10, "log_interval": 1}) as job:
            self.assertEqual(job.codes(), [0, 0, 0], job.logs())
            self.assertRegex(job.ranks[0].text(), r"Solved! Running reward is now 10\.\d+!")
            self.assertRegex(job.episodes()[0], r"^Episode 1\tLast reward: \d+\.\d\d\tAverage reward: \d+\.\d\d$")
            last = job.ranks[0].message()
            self.assertEqual((last["exitCode"], last["step"]), (0, len(job.episodes())))
            self.assertGreater(last["reward"], 10)
            for rank in job.ranks[1:]:
                self.assertFalse(os.path.exists(rank.termination))

    def test_the_same_seed_gives_the_same_run(self):
        parameters = {"episodes": 12, "log_interval": 1, "require_solved": False}
        runs = []
        for _ in range(2):
            with Job(parameters) as job:
                self.assertEqual(job.codes(), [0, 0, 0], job.logs())
                runs.append(job.episodes())
        self.assertEqual(len(runs[0]), 12)
        self.assertEqual(runs[0], runs[1])

    def test_a_quorum_goes_on_without_the_slowest(self):
        with Job({"episodes": 10, "quorum": 1, "log_interval": 1, "require_solved": False}) as job:
            self.assertEqual(job.codes(), [0, 0, 0], job.logs())
            self.assertEqual(len(job.episodes()), 10)

    def test_a_killed_rank_makes_all_others_leave_with_75_and_its_name(self):
        for victim in (1, 0):
            with self.subTest(victim=victim), Job(ENDLESS) as job:
                job.wait_for("Episode 3")
                job.ranks[victim].process.send_signal(signal.SIGKILL)
                for rank in job.ranks:
                    if rank.rank == victim:
                        continue
                    self.assertEqual(rank.leave(5), 75, job.logs())
                    message = rank.message()
                    self.assertEqual(message["failedRank"], victim, job.logs())
                    self.assertEqual((message["rank"], message["exitCode"]), (rank.rank, 75))
                    self.assertIn(f"rank {victim}", message["cause"])

    def test_what_the_program_throws_is_told_to_all(self):
        with Job({"episodes": 2}) as job:
            self.assertEqual(job.codes(), [1, 75, 75], job.logs())
            cause = "not solved after 2 episodes: running reward"
            self.assertTrue(job.ranks[0].message()["cause"].startswith(cause))
            self.assertEqual(job.ranks[0].message()["step"], 2)
            for rank in job.ranks[1:]:
                self.assertIn(cause, rank.message()["cause"])
                self.assertEqual(rank.message()["failedRank"], 0)

    def test_a_signal_stops_every_rank_within_the_grace(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number), Job(ENDLESS) as job:
                job.wait_for("Episode 3")
                for rank in job.ranks:
                    rank.process.send_signal(number)
                self.assertEqual(job.codes(), [75, 75, 75], job.logs())
                self.assertIn("told to stop by " + number.name, job.ranks[0].message()["cause"])

    def test_a_signal_to_one_rank_ends_the_attempt(self):
        with Job(ENDLESS) as job:
            job.wait_for("Episode 3")
            job.ranks[2].process.send_signal(signal.SIGTERM)
            self.assertEqual(job.codes(), [75, 75, 75], job.logs())
            self.assertEqual(job.ranks[0].message()["failedRank"], 2)
            self.assertIn("told to stop by SIGTERM", job.ranks[0].message()["cause"])

    def test_a_signal_ends_the_wait_for_ranks_that_are_missing(self):
        with Job(ENDLESS, ranks=[0, 1]) as job:
            for rank in job.ranks:
                job.wait_for("metrics are served", rank=rank.rank)
            for rank in job.ranks:
                rank.process.send_signal(signal.SIGTERM)
            self.assertEqual(job.codes(), [75, 75], job.logs())

    def test_a_rank_that_never_starts_is_named(self):
        with Job({}, ranks=[0, 1], overrides={"DISTTRAIN_RENDEZVOUS_TIMEOUT": "2"}) as job:
            self.assertEqual(job.codes(), [75, 75], job.logs())
            for rank in job.ranks:
                self.assertRegex(rank.message()["cause"], r"rank 2\b.*missing|missing.*\b2\b")

    def test_mistakes_in_program_parameters_and_roles_are_not_restarted(self):
        cases = [
            ({"gama": 1}, {}, "spec.parameters.gama: unknown parameter, did you mean gamma?"),
            ({"seed": "x"}, {}, 'spec.parameters.seed is "x", must be an integer'),
            ({}, {"DISTTRAIN_PROGRAM": "reinfroce"}, "did you mean reinforce?"),
            ({}, {"RANK": "7"}, "RANK"),
        ]
        for parameters, overrides, cause in cases:
            with self.subTest(cause=cause), Job(parameters, ranks=[1], overrides=overrides) as job:
                self.assertEqual(job.codes(), [78], job.logs())
                self.assertIn(cause, job.ranks[0].message()["cause"])
                self.assertEqual(job.ranks[0].message()["exitCode"], 78)
        with Job({"quorum": 3}) as job:
            self.assertEqual(job.codes(), [78, 75, 75], job.logs())
            self.assertIn("spec.parameters.quorum is 3, must be at most 2", job.ranks[1].message()["cause"])
        with Job({}, overrides=lambda rank: {"DISTTRAIN_ROLE": "observer", "DISTTRAIN_ROLE_INDEX": str(rank)}) as job:
            self.assertEqual(set(job.codes()) - {75}, {78}, job.logs())
            self.assertIn("role agent is missing (it runs the program)", job.logs())

    def test_it_shows_metrics_health_and_calls_over_http(self):
        with Job(ENDLESS) as job:
            job.wait_for("Episode 3")
            port = job.wait_for("metrics are served")["port"]

            def get(path):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
                    return answer.read().decode()

            metrics = get("/metrics")
            steps = re.search(r"^disttrain_train_steps_total\{[^}]*role=\"agent\"[^}]*\} (\S+)$", metrics, re.M)
            self.assertGreaterEqual(float(steps.group(1)), 3, metrics)
            for name in ("disttrain_rl_episode_reward_mean", "disttrain_rl_episode_reward", "disttrain_train_loss",
                         "disttrain_rl_env_steps_total", "disttrain_rpc_calls_total", "process_resident_memory_bytes"):
                self.assertIn("\n" + name, metrics)
            self.assertEqual(get("/healthz"), "ok\n")
            self.assertEqual(get("/readyz"), "ok\n")
            json.loads(get("/debug/calls"))

    def test_it_is_not_ready_before_all_ranks_have_met(self):
        with Job(ENDLESS, ranks=[0]) as job:
            port = job.wait_for("metrics are served")["port"]
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=30)
            self.assertEqual(refused.exception.code, 503)
            refused.exception.close()


class CommandLine(unittest.TestCase):

    def run_worker(self, *words):
        return subprocess.run([WORKER, *words], text=True, capture_output=True, timeout=60, check=False)

    def test_it_lists_its_programs(self):
        done = self.run_worker("--list-programs")
        self.assertEqual(done.returncode, 0, done.stderr)
        (program,) = json.loads(done.stdout)["programs"]
        self.assertEqual((program["name"], program["driver"]), ("reinforce", "agent"))
        self.assertEqual([role["name"] for role in program["roles"]], ["agent", "observer"])
        gamma = program["parameters"][0]
        self.assertEqual((gamma["name"], gamma["type"], gamma["default"], gamma["maximum"]), ("gamma", "number", 0.99, 1))

    def test_it_explains_itself(self):
        self.assertIn("Usage: disttrain-worker", self.run_worker("--help").stdout)
        self.assertRegex(self.run_worker("--version").stdout, r"^disttrain-worker \d+\.\d+\.\d+\n$")

    def test_it_refuses_other_words_with_64(self):
        done = self.run_worker("--list")
        self.assertEqual(done.returncode, 64)
        self.assertIn("--list", done.stderr)


if __name__ == "__main__":
    unittest.main()
