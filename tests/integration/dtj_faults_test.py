# SPDX-License-Identifier: Apache-2.0
"""Ranks and launchers that die, and what the others make of it."""

import json
import os
import signal
import socket
import subprocess
import time
import unittest

from harness import WORKER, DtjTest, wait_for

GANG = ("--set", "roles[1].restart=Gang")
RANK = ("--set", "failurePolicy.maxRestarts=999", "--set", "failurePolicy.backoff.initialSeconds=0")
ENDLESS = ("--set", "parameters.reward_threshold=100000", "--set", "parameters.episodes=1000000")


def root_cause(status):
    """The one entry of status.failures that is marked as the root cause."""
    return next(failure for failure in status["failures"] if failure["rootCause"])


class KilledRank(DtjTest):

    def kill_rank(self, victim, *arguments):
        """Kills one rank of a gang in the middle of an episode; returns the launcher."""
        process = self.start_run("-o", "json", *GANG, *arguments)
        ranks = self.wait_for_ranks(3)
        wait_for(lambda: any("Episode 10" in text for text in self.logs().values()), "the tenth episode")
        ranks[victim].kill(signal.SIGKILL)
        killed_at = time.monotonic()
        survivors = [rank for rank in ranks if rank.rank != victim]
        wait_for(lambda: not any(rank.alive() for rank in survivors), "the survivors to leave", 5)
        self.assertLess(time.monotonic() - killed_at, 5)
        return process

    def survivors_left_with_75(self, victim, status):
        failures = {failure["rank"]: failure for failure in status["failures"] if failure["attempt"] == 0}
        self.assertEqual(root_cause(status)["rank"], victim)
        self.assertEqual(root_cause(status)["signal"], "KILL")
        for rank in {0, 1, 2} - {victim}:
            if rank in failures:
                self.assertEqual(failures[rank]["exitCode"], 75)

    def restarts_and_is_solved(self, victim):
        process = self.kill_rank(victim, "--set", "parameters.log_interval=10")
        code, status, errors = self.finish(process)
        self.assertEqual(code, 0, errors)
        self.assertEqual(status["phase"], "Complete")
        self.assertEqual(status["attempt"], 1)
        self.assertEqual(status["restarts"]["counted"], 1)
        self.assertGreater(float(status["training"]["reward"]), 475)
        self.survivors_left_with_75(victim, status)

    def fails_and_names_the_rank(self, victim, role):
        process = self.kill_rank(victim, *ENDLESS, "--set", "failurePolicy.maxRestarts=0")
        code, status, errors = self.finish(process)
        self.assertEqual(code, 1, errors)
        self.assertEqual(status["phase"], "Failed")
        self.assertEqual(status["attempt"], 0)
        self.survivors_left_with_75(victim, status)
        self.assertEqual(root_cause(status)["role"], role)
        last = [line for line in errors.splitlines() if line.strip()]
        line = next(line for line in reversed(last) if "root cause" in line)
        self.assertIn(f"rank {victim}", line)
        self.assertIn(role, line)
        self.assertIn("SIGKILL", line)

    def test_an_observer_killed_in_an_episode_restarts_the_gang_which_solves_it(self):
        self.restarts_and_is_solved(victim=2)

    def test_the_agent_killed_restarts_the_gang_which_solves_it(self):
        self.restarts_and_is_solved(victim=0)

    def test_an_observer_killed_without_restarts_left_fails_the_job_by_name(self):
        self.fails_and_names_the_rank(victim=1, role="observer")

    def test_the_agent_killed_without_restarts_left_fails_the_job_by_name(self):
        self.fails_and_names_the_rank(victim=0, role="agent")


class ReplaceableRank(DtjTest):
    """Observers with restart: Rank, as in the manifest."""

    def observer(self, rank, incarnation):
        """The rank's process in that life, once it trains."""
        def found():
            for process in self.ranks():
                if (process.rank, process.incarnation) == (rank, incarnation):
                    return process
            return None
        return wait_for(found, f"incarnation {incarnation} of rank {rank}")

    def has_met(self, rank, incarnation):
        suffix = f"-i{incarnation}" if incarnation else ""
        name = f"{self.job}-observer-{rank - 1}{suffix}"
        return "all ranks have met" in self.logs().get(name, "")

    def test_one_killed_twenty_times_costs_its_episodes_alone(self):
        process = self.start_run("-o", "json", *RANK, "--set", "parameters.log_interval=10")
        agent = self.wait_for_ranks(3)[0]
        for incarnation in range(20):
            victim = self.observer(2, incarnation)
            # Some while they play, most while they start: else it is solved before the last one.
            if incarnation % 5 == 0:
                wait_for(lambda n=incarnation: self.has_met(2, n), f"incarnation {incarnation} to join")
            victim.kill()
        code, status, errors = self.finish(process)
        self.assertEqual(code, 0, errors)
        self.assertEqual(status["phase"], "Complete")
        self.assertEqual(status["attempt"], 0)
        self.assertGreater(float(status["training"]["reward"]), 475)
        self.assertEqual(status["restarts"]["counted"], 20)
        self.assertEqual(status["roles"][1]["incarnations"], {"2": 20})
        self.assertEqual(agent.attempt, 0)
        for failure in status["failures"]:
            self.assertEqual((failure["rank"], failure["signal"]), (2, "KILL"))

    def test_the_only_one_killed_is_waited_for(self):
        process = self.start_run("-o", "json", *RANK, "--set", "roles[1].replicas=1",
                                 "--set", "parameters.log_interval=10")
        self.wait_for_ranks(2)
        wait_for(lambda: any("Episode 10" in text for text in self.logs().values()), "the tenth episode")
        self.observer(1, 0).kill()
        code, status, errors = self.finish(process)
        self.assertEqual(code, 0, errors)
        self.assertEqual((status["phase"], status["attempt"]), ("Complete", 0))
        self.assertEqual(status["roles"][1]["incarnations"], {"1": 1})

    def test_one_told_to_stop_leaves_with_75_and_comes_back(self):
        process = self.start_run("-o", "json", *RANK, *ENDLESS)
        self.wait_for_ranks(3)
        wait_for(lambda: self.has_met(1, 0), "rank 1 to join")
        self.observer(1, 0).kill(signal.SIGTERM)
        wait_for(lambda: self.has_met(1, 1), "rank 1 to come back")
        process.send_signal(signal.SIGINT)
        code, status, errors = self.finish(process)
        self.assertEqual(code, 130, errors)
        self.assertEqual(status["attempt"], 0)
        self.assertEqual(status["failures"][0]["exitCode"], 75)

    def test_one_that_is_stopped_is_dropped_and_the_others_go_on(self):
        process = self.start_run("-o", "json", *RANK, *ENDLESS, "--set", "parameters.log_interval=1")
        self.wait_for_ranks(3)
        wait_for(lambda: self.has_met(2, 0), "rank 2 to join")
        victim = self.observer(2, 0)
        victim.kill(signal.SIGSTOP)
        wait_for(lambda: "a rank is lost" in self.logs().get(f"{self.job}-agent-0", ""),
                 "the agent to hear of it", 40)
        def episodes():
            return self.logs()[f"{self.job}-agent-0"].count("Episode ")
        before = episodes()
        wait_for(lambda: episodes() > before + 5, "training to go on")
        # What was taken for dead leaves when it wakes up, and its successor joins.
        victim.kill(signal.SIGCONT)
        wait_for(lambda: self.has_met(2, 1), "rank 2 to come back")
        process.send_signal(signal.SIGINT)
        code, status, errors = self.finish(process)
        self.assertEqual(code, 130, errors)
        self.assertEqual(status["attempt"], 0)

    def test_the_agent_killed_begins_a_new_attempt(self):
        process = self.start_run("-o", "json", *RANK, "--set", "parameters.log_interval=10")
        self.wait_for_ranks(3)[0].kill()
        code, status, errors = self.finish(process)
        self.assertEqual(code, 0, errors)
        self.assertEqual((status["phase"], status["attempt"]), ("Complete", 1))
        self.assertEqual(root_cause(status)["rank"], 0)


class RankThatNeverStarts(DtjTest):

    def run_with_observers(self, command):
        manifest = self.file("job.yaml", f"""
apiVersion: disttrain.dev/v1alpha1
kind: DistTrainingJob
metadata: {{name: never}}
spec:
  program: reinforce
  rendezvous: {{timeoutSeconds: 5}}
  failurePolicy: {{maxRestarts: 0}}
  roles:
  - {{name: agent}}
  - name: observer
    replicas: 1
    template: {{spec: {{containers: [{{name: worker, command: {json.dumps(command)}}}]}}}}
""")
        return self.run_job(manifest=manifest)

    def test_it_is_named_when_its_command_does_not_exist(self):
        code, status, errors = self.run_with_observers(["/no/such/program"])
        self.assertEqual(code, 1, errors)
        self.assertEqual((root_cause(status)["rank"], root_cause(status)["role"]), (1, "observer"))
        self.assertIn("/no/such/program", errors)

    def test_it_is_named_when_it_never_joins(self):
        code, status, errors = self.run_with_observers(["sleep", "1000"])
        self.assertEqual(code, 1, errors)
        self.assertEqual(status["phase"], "Failed")
        line = next(line for line in reversed(errors.splitlines()) if "root cause" in line)
        self.assertIn("rank 1", line)
        self.assertIn("observer", line)


class KilledLauncher(DtjTest):

    def test_no_rank_is_left_ten_seconds_after_the_launcher_was_killed(self):
        process = self.start_run(*ENDLESS)
        self.wait_for_ranks(3)
        wait_for(lambda: any("Episode 10" in text for text in self.logs().values()), "the tenth episode")
        process.kill()
        wait_for(lambda: not self.ranks(), "all ranks to be gone", 10)


class ProgramThatThrows(DtjTest):

    def test_its_message_is_in_the_root_cause_line(self):
        code, status, errors = self.run_job(
            "--set", "parameters.episodes=3", "--set", "failurePolicy.maxRestarts=0")
        self.assertEqual(code, 1, errors)
        self.assertEqual(root_cause(status)["exitCode"], 1)
        line = next(line for line in reversed(errors.splitlines()) if "root cause" in line)
        self.assertIn("not solved after 3 episodes", line)
        self.assertIn("agent", line)


class PortInUse(DtjTest):

    def test_a_worker_names_the_port_that_it_could_not_get(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            environment = {
                **os.environ, "RANK": "0", "WORLD_SIZE": "1", "DISTTRAIN_JOB": f"default/{self.job}",
                "DISTTRAIN_JOB_UID": "u", "DISTTRAIN_ATTEMPT": "0", "DISTTRAIN_ROLE": "agent",
                "DISTTRAIN_ROLE_INDEX": "0", "DISTTRAIN_PROGRAM": "reinforce",
                "DISTTRAIN_RENDEZVOUS": f"127.0.0.1:{port}", "DISTTRAIN_METRICS_PORT": "0",
                "DISTTRAIN_TERMINATION_MESSAGE_PATH": os.path.join(self.folder, "message")}
            done = subprocess.run([WORKER], env=environment, capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(str(port), done.stderr)
            self.assertRegex(done.stderr, "in use")


if __name__ == "__main__":
    unittest.main()
