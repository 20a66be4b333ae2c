# SPDX-License-Identifier: Apache-2.0
"""The protocol of contender.h for contenders in Python."""

import json
import sys
import time


def peak_resident_bytes(pid):
    """The kernel's high-water mark ("VmHWM", proc(5))."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        line = next(line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def serve(prepare, peer):
    """Answers requests until the end of standard input.

    prepare(floats) gives the call to measure: a function without arguments that returns when a
    payload of so many float32 has been there and back. `peer`: its process id.
    """
    print("ready", peer, flush=True)
    for line in sys.stdin:
        request, *numbers = line.split()
        if request == "memory":
            answer = [peak_resident_bytes("self"), peak_resident_bytes(peer)]
        elif request == "round_trip":
            floats, calls = map(int, numbers)
            answer = _round_trips(prepare(floats), calls)
        else:
            sys.exit(f"unknown request {line!r}")
        print(json.dumps(answer), flush=True)


def _round_trips(call, calls):
    seconds = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return seconds
