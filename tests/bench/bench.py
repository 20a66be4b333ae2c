#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures disttrain beside its peers and writes RESULTS.md.

    make bench                     everything
    tests/bench/bench.py --quick   a few calls of each, to see that it runs
    … --peers-python .venv/bin/python   and torch's RPC, by a Python that has requirements.txt

Machines are shared and noisy, so figures of different runs are not compared:
all contenders take turns within one run, a short series each, and a ratio is
the median over the rounds of one contender's median to the raw socket's in the
same round.
"""

import argparse
import itertools
import os
import sys

import cartpole_job
import report
from contender import Contender

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE_DIR = os.path.dirname(os.path.dirname(HERE))

# What is sent and sent back: a name, float32s, calls in a round, rounds.
PAYLOADS = [("4 floats", 4, 500, 20), ("64 KiB", 16 << 10, 200, 10), ("64 MiB", 16 << 20, 2, 8)]
SOCKETS = ["unix", "tcp"]
# Where the two ends run decides more than anything else, so the scheduler is not asked. Cores of the
# caller and of its peer, as indices into those that there are.
PLACES = [("two cores", (0, 1)), ("one core", (0, 0))]
# The first is what the others are compared to.
PROGRAMS = [("raw socket", "raw_socket"), ("disttrain RPC", "disttrain_rpc"),
            ("gRPC C++ unary", "grpc_unary")]
PYTHON_PROGRAMS = [("torch Python RPC", "torch_rpc.py")]
ROSTER_RANKS = 512


def take_turns(contenders, floats, calls, rounds):
    """The seconds of all calls: {name: [[of the first round], …]}."""
    for contender in contenders:
        contender.round_trips(floats, min(calls, 50))  # connections, pools, pages
    series = {contender.name: [] for contender in contenders}
    for number in range(rounds):
        # Nobody is always the first after the same neighbour.
        turn = number % len(contenders)
        for contender in contenders[turn:] + contenders[:turn]:
            series[contender.name].append(contender.round_trips(floats, calls))
    return series


def start_contenders(build_dir, peers_python, socket):
    commands = [(name, [os.path.join(build_dir, "bench", program)]) for name, program in PROGRAMS]
    if peers_python:
        commands += [(name, [peers_python, "-B", "-W", "ignore", os.path.join(HERE, program)])
                     for name, program in PYTHON_PROGRAMS]
    return [Contender(name, command + [socket]) for name, command in commands]


def measure_round_trips(build_dir, peers_python, quick):
    """[(socket, cores, payload, bytes, series)] and the peak memory [(socket, name, ours, peer's)]."""
    measured, memory = [], []
    cores = sorted(os.sched_getaffinity(0))
    for socket in SOCKETS:
        contenders = start_contenders(build_dir, peers_python, socket)
        try:
            for (place, ends), (payload, floats, calls, rounds) in itertools.product(PLACES, PAYLOADS):
                if max(ends) >= len(cores):
                    continue
                say(f"round trips of {payload} over {socket} on {place}")
                for contender in contenders:
                    contender.place(*(cores[end] for end in ends))
                if quick:
                    calls, rounds = min(calls, 20), 2
                measured.append((socket, place, payload, 4 * floats,
                                 take_turns(contenders, floats, calls, rounds)))
            memory += [(socket, contender.name, *contender.memory()) for contender in contenders]
        finally:
            for contender in contenders:
                contender.close()
    return measured, memory


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build-dir", default=os.path.join(SOURCE_DIR, "build"))
    parser.add_argument("--output", default=os.path.join(HERE, "RESULTS.md"))
    parser.add_argument("--peers-python")
    parser.add_argument("--quick", action="store_true", help="only to see that it runs")
    arguments = parser.parse_args()

    round_trips, memory = measure_round_trips(arguments.build_dir, arguments.peers_python,
                                              arguments.quick)
    ranks = 16 if arguments.quick else ROSTER_RANKS
    say(f"a roster of {ranks} ranks")
    roster = cartpole_job.roster_seconds(arguments.build_dir, ranks, 2 if arguments.quick else 5)
    say("whole jobs")
    jobs = cartpole_job.measure(arguments.build_dir, arguments.peers_python,
                                [2] if arguments.quick else [1, 2, 4, 8], episodes=200)

    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write(report.render(SOURCE_DIR, round_trips, memory,
                                 (ranks, roster), jobs))
    say(f"wrote {arguments.output}")


if __name__ == "__main__":
    main()
