# SPDX-License-Identifier: Apache-2.0
"""CartPole, solved by real processes from its job manifest."""

import json
import re
import signal
import unittest
import urllib.request

from harness import DtjTest, wait_for

# Reached within a few dozen episodes: for tests that need an end, not a solution.
EASY = ("--set", "parameters.reward_threshold=15")
# Never reached: for tests that look at a running job.
ENDLESS = ("--set", "parameters.reward_threshold=100000", "--set", "parameters.episodes=1000000")


class CartPole(DtjTest):

    def test_it_is_solved_within_1500_episodes(self):
        code, status, errors = self.run_job()
        self.assertEqual(code, 0, errors)
        self.assertEqual(status["phase"], "Complete")
        self.assertGreater(float(status["training"]["reward"]), 475)
        self.assertLessEqual(status["training"]["step"], 1500)
        self.assertEqual(status["attempt"], 0)
        self.assertIn("Solved! Running reward is now", errors)
        complete = [c for c in status["conditions"] if c["type"] == "Complete"]
        self.assertEqual([c["status"] for c in complete], ["True"])

    def test_the_same_seed_gives_the_same_run(self):
        runs = [self.run_job(*EASY, "--set", "parameters.seed=7") for _ in range(2)]
        self.assertEqual([code for code, _, _ in runs], [0, 0], runs[0][2])
        first, second = (status["training"] for _, status, _ in runs)
        self.assertEqual((first["step"], first["reward"]), (second["step"], second["reward"]))

    def test_another_seed_gives_another_run(self):
        runs = [self.run_job(*EASY, "--set", f"parameters.seed={seed}") for seed in (1, 2)]
        first, second = (status["training"] for _, status, _ in runs)
        self.assertNotEqual(first["reward"], second["reward"])

    def test_an_agent_with_one_and_with_four_observers(self):
        for observers in (1, 4):
            with self.subTest(observers=observers):
                code, status, errors = self.run_job(
                    *EASY, "--set", f"roles[1].replicas={observers}")
                self.assertEqual(code, 0, errors)
                self.assertEqual(status["roles"][1]["desired"], observers)

    def test_a_quorum_goes_on_without_the_slowest(self):
        code, status, errors = self.run_job(
            *EASY, "--set", "roles[1].replicas=3", "--set", "parameters.quorum=2")
        self.assertEqual(code, 0, errors)
        self.assertGreater(float(status["training"]["reward"]), 15)

    def test_the_job_is_solved_over_the_environment_that_torchrun_sets_too(self):
        process = self.start_run(*ENDLESS)
        for rank in self.wait_for_ranks(3):
            self.assertEqual(rank.environment["WORLD_SIZE"], "3")
            self.assertEqual(rank.environment["ROLE_NAME"], "agent" if rank.rank == 0 else "observer")
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


class Endpoints(DtjTest):

    def urls(self):
        """Base URLs of the ranks' HTTP servers, from their logs."""
        lines = "\n".join(self.logs().values())
        ports = re.findall(r'"msg":"metrics are served".*"port":(\d+)', lines)
        return [f"http://127.0.0.1:{port}" for port in ports]

    def get(self, url):
        with urllib.request.urlopen(url, timeout=30) as response:
            return response.status, response.headers.get("Content-Type"), response.read().decode()

    def test_every_rank_serves_metrics_and_probes(self):
        process = self.start_run(*ENDLESS)
        self.wait_for_ranks(3)
        urls = wait_for(lambda: self.urls() if len(self.urls()) == 3 else None, "three addresses in the logs")

        def agent_metrics():
            for url in urls:
                text = self.get(url + "/metrics")[2]
                episodes = re.search(r'^disttrain_rl_episodes_total\{[^}]*role="agent"[^}]*\} (\S+)', text, re.M)
                if episodes and float(episodes[1]) > 0:
                    return text
            return None

        text = wait_for(agent_metrics, "the agent's metrics to count an episode")
        for name in ("disttrain_rl_episode_reward_mean", "disttrain_train_loss", "disttrain_train_gradient_norm",
                     "disttrain_rpc_call_duration_seconds_count", "process_resident_memory_bytes"):
            self.assertRegex(text, rf"(?m)^{name}[{{ ]")
        for url in urls:
            self.assertEqual(self.get(url + "/healthz")[0], 200)
            self.assertEqual(self.get(url + "/readyz")[0], 200)
            self.assertIn("text/plain; version=0.0.4", self.get(url + "/metrics")[1])
            json.loads(self.get(url + "/debug/calls")[2])
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


class Interrupt(DtjTest):

    def test_sigint_ends_all_processes_and_the_run_with_130(self):
        self.interrupted_by(signal.SIGINT, 130)

    def test_sigterm_ends_all_processes_and_the_run_with_143(self):
        self.interrupted_by(signal.SIGTERM, 143)

    def interrupted_by(self, number, expected):
        process = self.start_run(*ENDLESS)
        self.wait_for_ranks(3)
        wait_for(lambda: any("Episode 10" in text for text in self.logs().values()), "the tenth episode")
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, expected, errors)
        self.assertEqual(self.ranks(), [])


class Logs(DtjTest):

    def test_logs_shows_the_last_run(self):
        code, _, errors = self.run_job(*EASY)
        self.assertEqual(code, 0, errors)
        code, output, errors = self.dtj("logs")
        self.assertEqual(code, 0, errors)
        self.assertIn("Solved!", output)

    def test_each_line_of_a_rank_is_shown_once_with_its_role_and_index(self):
        process = self.start_run(*EASY, "--set", "parameters.log_interval=1")
        output, errors = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, errors)
        shown = [line for line in (output + errors).splitlines() if re.search(r"Episode 3\t", line)]
        self.assertEqual(len(shown), 1, output + errors)
        self.assertIn("agent 0", shown[0])


if __name__ == "__main__":
    unittest.main()
