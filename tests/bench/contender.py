# SPDX-License-Identifier: Apache-2.0
"""One of the programs that are compared; what it answers is in contender.h."""

import json
import os
import subprocess
from typing import NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
# Not a choice: the program takes whatever its framework takes.
OWN_CHOICE = "own choice"
# Of programs that charts.py knows by their names.
OURS, TORCH = "disttrain RPC", "torch Python RPC"


class Program(NamedTuple):
    """A line of bench.py's list."""
    name: str
    # In the build's folder bench/, or a Python program in this one.
    file: str
    # What is passed on as its first argument, for each kind of socket that it takes part in.
    sockets: dict = {"unix": "unix", "tcp": "tcp"}
    arguments: tuple = ()
    # It can have more than one call at a time.
    asynchronous: bool = True

    def needs_peers(self):
        return self.file.endswith(".py")

    def command(self, build_dir, peers_python, socket):
        if self.needs_peers():
            start = [peers_python, "-B", "-W", "ignore", os.path.join(HERE, self.file)]
        else:
            start = [os.path.join(build_dir, "bench", self.file)]
        return [*start, self.sockets[socket], *self.arguments]


class Contender:
    """A program that runs, from construction to close(); its errors are exceptions here."""

    def __init__(self, program, build_dir, peers_python, socket):
        self.name = program.name
        self.asynchronous = program.asynchronous
        self._command = program.command(build_dir, peers_python, socket)
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         text=True)
        word, peer = self._read().split()
        if word != "ready":
            raise RuntimeError(f"{self._command}: did not say that it is ready")
        self._peer = int(peer)

    def place(self, caller, peer):
        """Binds all threads of both ends to one core each; later ones follow their makers."""
        for pid, core in ((self._process.pid, caller), (self._peer, peer)):
            for thread in os.listdir(f"/proc/{pid}/task"):
                try:
                    os.sched_setaffinity(int(thread), {core})
                except ProcessLookupError:
                    pass  # a thread that has ended meanwhile

    def round_trips(self, floats, calls):
        """The seconds of each of so many calls."""
        return self._ask(f"round_trip {floats} {calls}")

    def at_once(self, request, floats, calls, number):
        """`request`: in_flight or callers; so many. {"seconds": of each call, "total": of all}"""
        return self._ask(f"{request} {floats} {calls} {number}")

    def memory(self):
        """Peak resident bytes of the caller and of its peer."""
        return self._ask("memory")

    def close(self):
        self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        finally:
            self._process.kill()  # does nothing if it has ended
            self._process.stdout.close()

    def _ask(self, request):
        self._process.stdin.write(request + "\n")
        self._process.stdin.flush()
        return json.loads(self._read())

    def _read(self):
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._command} ended with status {self._process.wait()}")
        return line.strip()
