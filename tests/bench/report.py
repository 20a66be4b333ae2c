# SPDX-License-Identifier: Apache-2.0
"""Turns what was measured into RESULTS.md."""

import datetime
import os
import platform
import statistics
import subprocess


def percentile(values, share):
    """The value that `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def ratio_to(base, series):
    """The median over the rounds of the medians' ratio: noise that lasts hits both."""
    return statistics.median(statistics.median(ours) / statistics.median(theirs)
                             for ours, theirs in zip(series, base))


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


def round_trip_rows(measured):
    for socket, cores, payload, size, by_name in measured:
        base = next(iter(by_name.values()))
        for name, series in by_name.items():
            calls = [seconds for one_round in series for seconds in one_round]
            median = statistics.median(calls)
            # There and back again.
            speed = f"{2 * size / median / 1e9:.2f} GB/s" if size >= 1 << 20 else ""
            yield [socket, cores, payload, name, duration(median), duration(percentile(calls, 0.99)),
                   f"{ratio_to(base, series):.2f}", speed]


def _output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    with open("/etc/os-release", encoding="utf-8") as file:
        system = next(line.split("=", 1)[1].strip().strip('"') for line in file
                      if line.startswith("PRETTY_NAME="))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (f"{os.cpu_count()} × {models[0] if models else platform.machine()}, {memory:.0f} GiB, "
            f"{system}, Linux {platform.release()}")


def versions(source_dir):
    commit = _output("git", "-C", source_dir, "rev-parse", "--short", "HEAD")
    compiler = _output("c++", "--version").splitlines()[0]
    grpc = _output("pkg-config", "--modversion", "grpc++")
    return f"disttrain at {commit}, {compiler}, gRPC {grpc}"


def render(source_dir, round_trips, memory, roster, jobs):
    ranks, roster_times = roster
    mebibytes = lambda size: f"{size / 2**20:.0f} MiB"
    parts = [
        "# What `make bench` measured last\n",
        f"{datetime.date.today()} · {machine()} · {versions(source_dir)}\n",
        "All contenders of a table took turns within one run. *ratio*: to the raw socket of the same "
        "kind, the median over all rounds of the medians' ratio. Figures of different runs do not "
        "compare.\n",
        "## There and back\n",
        "A tensor of float32 to another process and back, one call after the other. *on*: the two "
        "ends run on one core each, or share one.\n",
        table(["socket", "on", "payload", "", "median", "p99", "ratio", "both ways"],
              round_trip_rows(round_trips)),
        "Peak resident memory after that, 64 MiB tensors included:\n",
        table(["socket", "", "caller", "peer"],
              [[socket, name, mebibytes(caller), mebibytes(peer)]
               for socket, name, caller, peer in memory]),
        "## Whole jobs\n",
        f"A roster of {ranks} ranks, each with a connection of its own, completes in "
        f"{statistics.median(roster_times):.2f} s (median of {len(roster_times)}).\n",
        "`dtj run -f manifests/cartpole.yaml` with its agent and so many observers. *start*: from the "
        "command to the end of the first episode.\n",
        table(["observers", "start", "environment steps a second", "torch's RPC and Gymnasium", "ratio",
               "resident: agent", "observer"],
              [[str(run["observers"]), f"{run['start_seconds']:.2f} s",
                f"{run['steps_per_second']:.0f}", *torch_columns(run),
                mebibytes(run["memory"]["agent"]), mebibytes(run["memory"]["observer"])]
               for run in jobs]),
    ]
    return "\n".join(parts)
