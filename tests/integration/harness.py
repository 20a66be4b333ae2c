# SPDX-License-Identifier: Apache-2.0
"""Runs `dtj` as a user would, and looks at its processes from outside.

Only the standard library is used. Waiting is always for a condition, with a
generous deadline; times are never asserted, except where the product promises
a bound (five seconds until survivors leave, ten until orphans are gone).
"""

import json
import os
import signal
import subprocess
import tempfile
import time
import unittest
import uuid

SOURCE_DIR = os.environ.get(
    "DISTTRAIN_SOURCE_DIR",
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD_DIR = os.environ.get("DISTTRAIN_BUILD_DIR", os.path.join(SOURCE_DIR, "build"))
DTJ = os.path.join(BUILD_DIR, "bin", "dtj")
WORKER = os.path.join(BUILD_DIR, "bin", "disttrain-worker")


def wait_for(condition, what, seconds=60.0):
    """Returns the first true value of condition(); fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.02)


class Process:
    """A process as /proc shows it: a pid whose start time pins its identity."""

    def __init__(self, pid, environment):
        self.pid = pid
        self.environment = environment

    @property
    def rank(self):
        return int(self.environment["RANK"])

    @property
    def attempt(self):
        return int(self.environment["DISTTRAIN_ATTEMPT"])

    @property
    def incarnation(self):
        return int(self.environment["DISTTRAIN_INCARNATION"])

    def alive(self):
        try:
            with open(f"/proc/{self.pid}/stat", encoding="utf-8", errors="replace") as stat:
                return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    def kill(self, number=signal.SIGKILL):
        os.kill(self.pid, number)


def ranks_of(job):
    """Every live process that belongs to the job of that name."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                raw = file.read().decode(errors="replace")
        except OSError:
            continue
        environment = dict(item.split("=", 1) for item in raw.split("\0") if "=" in item)
        if environment.get("DISTTRAIN_JOB", "").endswith("/" + job):
            process = Process(int(entry), environment)
            if process.alive():
                found.append(process)
    return sorted(found, key=lambda process: (process.attempt, process.rank))


class DtjTest(unittest.TestCase):
    """Gives each test a state folder of its own and leaves no process behind."""

    maxDiff = None

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="dtj-test-")
        self.folder = self._folder.name
        # A name of its own: it marks this test's ranks among all processes.
        self.job = "t" + uuid.uuid4().hex[:10]
        self._started = []

    def tearDown(self):
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        wait_for(lambda: not self.ranks(), "all ranks of the test to be gone")
        self._folder.cleanup()

    def environment(self):
        return {**os.environ, "XDG_STATE_HOME": self.folder, "NO_COLOR": "1"}

    def ranks(self):
        return ranks_of(self.job)

    def start_run(self, *arguments, manifest="manifests/cartpole.yaml"):
        """Starts `dtj run` of this test's job; returns the process."""
        process = subprocess.Popen(
            [DTJ, "run", "-f", manifest, "--set", f"metadata.name={self.job}", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=self.environment(), cwd=SOURCE_DIR)
        self._started.append(process)
        return process

    def run_job(self, *arguments, manifest="manifests/cartpole.yaml", seconds=400):
        """`dtj run -o json` to its end: (exit status, status object, standard error)."""
        process = self.start_run("-o", "json", *arguments, manifest=manifest)
        return self.finish(process, seconds)

    def finish(self, process, seconds=400):
        output, errors = process.communicate(timeout=seconds)
        try:
            status = json.loads(output)
        except ValueError:
            self.fail(f"standard output is not one JSON object:\n{output}\n--\n{errors}")
        return process.returncode, status, errors

    def dtj(self, *arguments, seconds=120, stdin=None):
        """Runs `dtj` to its end: (exit status, standard output, standard error)."""
        done = subprocess.run(
            [DTJ, *arguments], capture_output=True, text=True, env=self.environment(),
            cwd=SOURCE_DIR, timeout=seconds, input=stdin, check=False)
        return done.returncode, done.stdout, done.stderr

    def wait_for_ranks(self, count, attempt=0):
        """The processes of an attempt, once all of them are alive."""
        def all_alive():
            ranks = [rank for rank in self.ranks() if rank.attempt == attempt]
            return ranks if len(ranks) == count else None
        return wait_for(all_alive, f"{count} ranks of attempt {attempt}")

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def logs(self):
        """All log lines of this test's ranks: {pod name: text}."""
        found = {}
        for folder, _, names in os.walk(self.folder):
            for name in names:
                if name.endswith(".log"):
                    with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                        found[name[:-len(".log")]] = file.read()
        return found
