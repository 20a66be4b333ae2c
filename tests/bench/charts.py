# SPDX-License-Identifier: Apache-2.0
"""The charts that go with RESULTS.md: one for each table of speeds."""

import os
import statistics

import plot
from contender import OURS, OWN_CHOICE, TORCH
from measured import calls_per_second, flat


def duration(seconds):
    if seconds < 0.9995e-3:
        return f"{seconds * 1e6:.3g} µs"
    return f"{seconds * 1e3:.3g} ms" if seconds < 0.9995 else f"{seconds:.3g} s"


def rate(number):
    return f"{number / 1000:.3g} k" if number >= 1000 else f"{number:.3g}"


def write(measured, folder):
    """Writes them; {what it shows: file name}, in the order of the tables."""
    names = dict.fromkeys(name for calls in measured.round_trips for name in calls.seconds)
    colours = plot.colours_of(names)
    drawn = {
        "round_trips.svg": ("4 floats there and back", round_trips(measured, "4 floats", colours)),
        "large.svg": ("64 MiB there and back", round_trips(measured, "64 MiB", colours)),
        "in_flight.svg": ("Small calls at once", in_flight(measured, colours)),
        "steps.svg": ("Environment steps per second", steps(measured, colours)),
    }
    for file_name, (_, document) in drawn.items():
        with open(os.path.join(folder, file_name), "w", encoding="utf-8") as file:
            file.write(document)
    return {title: file_name for file_name, (title, _) in drawn.items()}


def round_trips(measured, payload, colours):
    groups = [(f"{calls.socket}, {calls.place}",
               {name: statistics.median(flat(rounds)) for name, rounds in calls.seconds.items()})
              for calls in measured.round_trips if calls.payload == payload]
    return plot.grouped_bars(f"{payload} to another process and back",
                             "median time of a call, less is better", groups, colours, duration)


def in_flight(measured, colours):
    """Over TCP, or as the framework chooses; the caller and its peer where the first table has them."""
    place = measured.loads[0].place
    groups = {}
    for load in measured.loads:
        if load.place == place and load.socket in ("tcp", OWN_CHOICE):
            bars = groups.setdefault(load.name, {})
            for name, rounds in load.answers.items():
                bars.setdefault(name, calls_per_second(rounds))
    return plot.grouped_bars(f"4 floats there and back, many calls at once ({place})",
                             "calls per second over TCP, or as the framework chooses; more is better",
                             list(groups.items()), colours, rate)


def steps(measured, colours):
    groups = []
    for run in measured.jobs:
        bars = {OURS: run["steps_per_second"]}
        if run["torch_steps_per_second"] is not None:
            bars[TORCH] = run["torch_steps_per_second"]
        groups.append((f"{run['observers']} observers" if run["observers"] > 1 else "1 observer", bars))
    return plot.grouped_bars("CartPole with REINFORCE: an agent and its observers",
                             "environment steps per second (torch's with Gymnasium), more is better",
                             groups, colours, rate)
