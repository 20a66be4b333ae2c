#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures disttrain beside its peers; writes RESULTS.md and its charts.

    make bench                     everything
    tests/bench/bench.py --quick   a few calls of each, to see that it runs
    … --peers-python .venv/bin/python   and the peers, by a Python that has requirements.txt

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
import charts
import report
import solve
from contender import OURS, OWN_CHOICE, TORCH, Contender, Program
from measured import Calls, Load, Measured

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE_DIR = os.path.dirname(os.path.dirname(HERE))

# What is sent and sent back: a name, float32s, calls in a round, rounds.
PAYLOADS = [("4 floats", 4, 500, 20), ("64 KiB", 16 << 10, 200, 10), ("64 MiB", 16 << 20, 2, 8)]
# Calls at once: a name, the request (contender.h), its number. Each with so many calls in a round.
LOADS = [("1 in flight", "in_flight", 1), ("8 in flight", "in_flight", 8),
         ("64 in flight", "in_flight", 64), ("16 threads", "callers", 16)]
LOAD_FLOATS, LOAD_CALLS, LOAD_ROUNDS = 4, 1600, 5
# Where the two ends run decides more than anything else, so the scheduler is not asked. Cores of the
# caller and of its peer, as indices into those that there are.
PLACES = [("two cores", (0, 1)), ("one core", (0, 0))]

# Those of one kind of socket take turns. Frameworks that do not let one choose have turns of their
# own, with two of the others: their daemons would take time from the rest.
SOCKETS = ["unix", "tcp", OWN_CHOICE]
ALL_SOCKETS = {"unix": "unix", "tcp": "tcp", OWN_CHOICE: "tcp"}
# The first is what the others are compared to.
PROGRAMS = [
    Program("raw socket", "raw_socket", ALL_SOCKETS, asynchronous=False),
    Program(OURS, "disttrain_rpc", ALL_SOCKETS),
    Program("gRPC C++", "grpc_unary"),
    Program(TORCH, "torch_rpc.py"),
    Program("Ray actor", "ray_actor.py", {OWN_CHOICE: ""}),
    Program("Monarch endpoint", "monarch_endpoint.py", {OWN_CHOICE: ""}),
]
ROSTER_RANKS = 512
SOLVE_SEEDS = [1, 2, 3, 4, 5]
# For the program on torch's RPC, all seeds together.
TORCH_SOLVE_SECONDS = 180


def take_turns(contenders, ask, rounds):
    """What each contender answers to ask(contender): {name: [in the first round, …]}."""
    answers = {contender.name: [] for contender in contenders}
    for number in range(rounds):
        # Nobody is always the first after the same neighbour.
        turn = number % len(contenders)
        for contender in contenders[turn:] + contenders[:turn]:
            answers[contender.name].append(ask(contender))
    return answers


def measure_round_trips(contenders, payload, quick):
    name, floats, calls, rounds = payload
    if quick:
        calls, rounds = min(calls, 20), 2
    for contender in contenders:
        contender.round_trips(floats, min(calls, 50))  # connections, pools, pages
    return take_turns(contenders, lambda contender: contender.round_trips(floats, calls), rounds)


def measure_load(contenders, load, quick):
    name, request, number = load
    calls, rounds = (320, 1) if quick else (LOAD_CALLS, LOAD_ROUNDS)
    contenders = [contender for contender in contenders if contender.asynchronous]
    ask = lambda contender: contender.at_once(request, LOAD_FLOATS, calls, number)
    take_turns(contenders, ask, 1)  # threads, pools
    return take_turns(contenders, ask, rounds)


def measure_socket(socket, contenders, quick, measured):
    """Adds to `measured` what the contenders do, wherever they can be."""
    cores = sorted(os.sched_getaffinity(0))
    for place, ends in PLACES:
        if max(ends) >= len(cores):
            continue
        for contender in contenders:
            contender.place(*(cores[end] for end in ends))
        for payload in PAYLOADS:
            say(f"round trips of {payload[0]}, {socket}, {place}")
            measured.round_trips.append(Calls(socket, place, payload[0], 4 * payload[1],
                                              measure_round_trips(contenders, payload, quick)))
        for load in LOADS:
            say(f"{load[0]}, {socket}, {place}")
            measured.loads.append(Load(socket, place, load[0], measure_load(contenders, load, quick)))
    measured.memory += [(socket, contender.name, *contender.memory()) for contender in contenders]


def measure_sockets(build_dir, peers_python, quick, measured):
    for socket in SOCKETS:
        programs = [program for program in PROGRAMS if socket in program.sockets
                    and (peers_python or not program.needs_peers())]
        if socket == OWN_CHOICE and not peers_python:
            continue
        contenders = []
        try:
            for program in programs:
                contenders.append(Contender(program, build_dir, peers_python, socket))
            measure_socket(socket, contenders, quick, measured)
        finally:
            for contender in contenders:
                contender.close()


def measure_jobs(build_dir, peers_python, quick, measured):
    measured.roster_ranks = 16 if quick else ROSTER_RANKS
    say(f"a roster of {measured.roster_ranks} ranks")
    measured.roster_seconds = cartpole_job.roster_seconds(build_dir, measured.roster_ranks,
                                                          2 if quick else 5)
    say("whole jobs")
    measured.jobs = cartpole_job.measure(build_dir, peers_python, [2] if quick else [1, 2, 4, 8],
                                         episodes=200)
    say("until CartPole is solved")
    measured.solved = solve.by_disttrain(build_dir, SOLVE_SEEDS[:1] if quick else SOLVE_SEEDS)
    if peers_python:
        budget = 20 if quick else TORCH_SOLVE_SECONDS
        say(f"the same on torch's RPC, in at most {budget} s")
        measured.torch_solved = solve.by_torch(peers_python, SOLVE_SEEDS, budget)


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build-dir", default=os.path.join(SOURCE_DIR, "build"))
    parser.add_argument("--output", default=os.path.join(HERE, "RESULTS.md"),
                        help="the charts are written beside it")
    parser.add_argument("--peers-python")
    parser.add_argument("--quick", action="store_true", help="only to see that it runs")
    arguments = parser.parse_args()

    measured = Measured()
    what = (arguments.build_dir, arguments.peers_python, arguments.quick, measured)
    measure_sockets(*what)
    measure_jobs(*what)

    names = charts.write(measured, os.path.dirname(os.path.abspath(arguments.output)))
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write(report.render(SOURCE_DIR, arguments.peers_python, measured, names))
    say(f"wrote {arguments.output} and {', '.join(names.values())}")


if __name__ == "__main__":
    main()
