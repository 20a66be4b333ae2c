# SPDX-License-Identifier: Apache-2.0
"""One of the programs that are compared; what it answers is in contender.h."""

import json
import os
import subprocess


class Contender:
    """Runs from construction to close(); its errors are exceptions here."""

    def __init__(self, name, command):
        self.name = name
        self._command = command
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         text=True)
        word, peer = self._read().split()
        if word != "ready":
            raise RuntimeError(f"{command}: did not say that it is ready")
        self._peer = int(peer)

    def place(self, caller, peer):
        """Binds all threads of both ends to one core each; later ones follow their makers."""
        for pid, core in ((self._process.pid, caller), (self._peer, peer)):
            for thread in os.listdir(f"/proc/{pid}/task"):
                os.sched_setaffinity(int(thread), {core})

    def round_trips(self, floats, calls):
        """The seconds of each of so many calls."""
        return self._ask(f"round_trip {floats} {calls}")

    def memory(self):
        """Peak resident bytes of the caller and of its peer."""
        return self._ask("memory")

    def close(self):
        self._process.stdin.close()
        self._process.wait(timeout=60)
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
