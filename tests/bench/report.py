# SPDX-License-Identifier: Apache-2.0
"""Turns what was measured into RESULTS.md."""

import datetime
import statistics

from machine import machine, versions
from measured import calls_per_second, flat, percentile, ratio_to


def torch_columns(run):
    """What the same program does on torch's RPC, and how many times as much ours does."""
    theirs = run["torch_steps_per_second"]
    if theirs is None:
        return ["not measured", ""]
    return [f"{theirs:.0f}", f"{run['steps_per_second'] / theirs:.0f} ×"]


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def duration(seconds):
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-2 else f"{seconds * 1e6:.1f} µs"


def mebibytes(size):
    return f"{size / 2**20:.0f} MiB"


def round_trip_rows(measured):
    for socket, place, payload, size, by_name in measured:
        base = next(iter(by_name.values()))
        for name, rounds in by_name.items():
            calls = flat(rounds)
            median = statistics.median(calls)
            # There and back again.
            speed = f"{2 * size / median / 1e9:.2f} GB/s" if size >= 1 << 20 else ""
            yield [socket, place, payload, name, duration(median), duration(percentile(calls, 0.99)),
                   f"{ratio_to(base, rounds):.2f}", speed]


def load_rows(loads):
    for socket, place, load, answers in loads:
        for name, rounds in answers.items():
            calls = flat(answer["seconds"] for answer in rounds)
            yield [socket, place, load, name, f"{calls_per_second(rounds):.0f}",
                   duration(statistics.median(calls)), duration(percentile(calls, 0.99))]


def spread(values, show):
    return [show(pick(values)) for pick in (statistics.median, min, max)]


def solved_row(name, outcomes):
    """Median, least and most; a run that was stopped lasted longer than it did."""
    seconds = [outcome.seconds for outcome in outcomes]
    limits = {outcome.seconds for outcome in outcomes if not outcome.solved}
    more = {outcome.episodes for outcome in outcomes if not outcome.solved}
    show = lambda value: f"{'> ' if limits and value >= min(limits) else ''}{value:.1f} s"
    count = lambda value: f"{'> ' if more and value >= min(more) else ''}{value:.0f}"
    return [name, str(len(outcomes)), str(sum(outcome.solved for outcome in outcomes)),
            *spread(seconds, show), *spread([outcome.episodes for outcome in outcomes], count)]


def calls_part(measured, images):
    return [
        "## There and back\n",
        "A tensor of float32 to another process and back, one call after the other. *on*: the two "
        "ends run on one core each, or share one. *own choice*: Ray and Monarch do not let one choose; "
        "beside them the raw socket and disttrain run over TCP. Ray's own processes (raylet, "
        "gcs_server and others) are not bound to a core; large arrays go through memory that it shares "
        "between both ends, and come out read-only.\n",
        *images[:2],
        table(["socket", "on", "payload", "", "median", "p99", "ratio", "both ways"],
              round_trip_rows(measured.round_trips)),
        "## Many calls at once\n",
        "4 floats there and back, again: by one thread that keeps so many calls in flight and waits "
        "for the oldest, or by 16 threads, one call after the other each. gRPC's calls in "
        "flight use its callback API on both ends. *calls a second*: the median over the rounds.\n",
        images[2],
        table(["socket", "on", "calls", "", "calls a second", "median", "p99"],
              load_rows(measured.loads)),
        "Peak resident memory after all that, 64 MiB tensors included:\n",
        table(["socket", "", "caller", "peer"],
              [[socket, name, mebibytes(caller), mebibytes(peer)]
               for socket, name, caller, peer in measured.memory]),
    ]


def jobs_part(measured, images):
    parts = [
        "## Whole jobs\n",
        f"A roster of {measured.roster_ranks} ranks, each with a connection of its own, completes in "
        f"{statistics.median(measured.roster_seconds):.2f} s (median of "
        f"{len(measured.roster_seconds)}).\n",
        "`dtj run -f manifests/cartpole.yaml` with its agent and so many observers. *start*: from the "
        "command to the end of the first episode.\n",
        images[3],
        table(["observers", "start", "environment steps a second", "torch's RPC and Gymnasium", "ratio",
               "resident: agent", "observer"],
              [[str(run["observers"]), f"{run['start_seconds']:.2f} s",
                f"{run['steps_per_second']:.0f}", *torch_columns(run),
                mebibytes(run["memory"]["agent"]), mebibytes(run["memory"]["observer"])]
               for run in measured.jobs]),
        "Until it is solved, two observers, a run for each seed; from the command to its end. A run "
        "that was stopped unsolved counts as *longer than* it was.\n",
    ]
    rows = [solved_row("`dtj run`", measured.solved)]
    if measured.torch_solved:
        rows.append(solved_row("torch's RPC and Gymnasium", measured.torch_solved))
    parts.append(table(["", "runs", "solved", "median", "least", "most", "episodes: median", "least",
                        "most"], rows))
    return parts


def render(source_dir, peers_python, measured, charts):
    """`charts`: {what it shows: file name}, in the order of the tables."""
    images = [f"![{title}]({file_name})\n" for title, file_name in charts.items()]
    return "\n".join([
        "# What `make bench` measured last\n",
        f"{datetime.date.today()} · {machine()} · {versions(source_dir, peers_python)}\n",
        "All contenders of a table took turns within one run. *ratio*: to the raw socket of the same "
        "kind, the median over all rounds of the medians' ratio. Figures of different runs do not "
        "compare.\n",
        *calls_part(measured, images),
        *jobs_part(measured, images),
    ])
