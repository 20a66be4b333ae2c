# SPDX-License-Identifier: Apache-2.0
"""The protocol of contender.h for contenders in Python."""

import collections
import json
import sys
import threading
import time


def peak_resident_bytes(pid):
    """The kernel's high-water mark ("VmHWM", proc(5))."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        line = next(line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def serve(prepare, peer):
    """Answers requests until the end of standard input.

    prepare(floats) gives the call to measure: a function without arguments that starts sending a
    payload of so many float32, and returns one that returns when it has come back. `peer`: the
    other end's process id.
    """
    print("ready", peer, flush=True)
    for line in sys.stdin:
        request, *numbers = line.split()
        if request == "memory":
            answer = [peak_resident_bytes("self"), peak_resident_bytes(peer)]
        elif request in REQUESTS:
            floats, *numbers = map(int, numbers)
            answer = REQUESTS[request](prepare(floats), *numbers)
        else:
            sys.exit(f"unknown request {line!r}")
        print(json.dumps(answer), flush=True)


def _round_trips(start_call, calls):
    seconds = []
    for _ in range(calls):
        start = time.perf_counter()
        start_call()()
        seconds.append(time.perf_counter() - start)
    return seconds


def _in_flight(start_call, calls, depth):
    pending, seconds = collections.deque(), []
    begin = time.perf_counter()
    while len(seconds) < calls:
        if len(pending) < depth and len(seconds) + len(pending) < calls:
            start = time.perf_counter()
            pending.append((start, start_call()))
            continue
        start, wait = pending.popleft()
        wait()
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds, "total": time.perf_counter() - begin}


def _callers(start_call, calls, callers):
    everybody, shares = threading.Barrier(callers + 1), []

    def run():
        everybody.wait()
        shares.append(_round_trips(start_call, calls // callers))

    threads = [threading.Thread(target=run) for _ in range(callers)]
    for thread in threads:
        thread.start()
    everybody.wait()
    begin = time.perf_counter()
    for thread in threads:
        thread.join()
    total = time.perf_counter() - begin
    seconds = [value for share in shares for value in share]
    if len(seconds) != calls // callers * callers:
        sys.exit("calls have failed")
    return {"seconds": seconds, "total": total}


REQUESTS = {"round_trip": _round_trips, "in_flight": _in_flight, "callers": _callers}
