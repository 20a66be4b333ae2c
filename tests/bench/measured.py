# SPDX-License-Identifier: Apache-2.0
"""What a run of bench.py has measured, and how figures come of it."""

import dataclasses
import statistics
from typing import NamedTuple


class Calls(NamedTuple):
    """One call after the other, of all contenders in turns."""
    socket: str
    place: str
    payload: str
    bytes: int
    seconds: dict  # {name: [[of each call] of each round]}


class Load(NamedTuple):
    """Many small calls at once, of all contenders in turns."""
    socket: str
    place: str
    name: str
    answers: dict  # {name: [{"seconds": [of each call], "total": of all} of each round]}


class Outcome(NamedTuple):
    """A run until CartPole was solved, or was not."""
    seconds: float
    episodes: int
    solved: bool


@dataclasses.dataclass
class Measured:
    round_trips: list = dataclasses.field(default_factory=list)
    loads: list = dataclasses.field(default_factory=list)
    memory: list = dataclasses.field(default_factory=list)  # (socket, name, caller's bytes, peer's)
    roster_ranks: int = 0
    roster_seconds: list = dataclasses.field(default_factory=list)
    jobs: list = dataclasses.field(default_factory=list)  # of cartpole_job.measure
    solved: list = dataclasses.field(default_factory=list)  # an Outcome for each seed
    torch_solved: list = dataclasses.field(default_factory=list)


def percentile(values, share):
    """The value that `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def flat(rounds):
    return [value for one_round in rounds for value in one_round]


def ratio_to(base, series):
    """The median over the rounds of the medians' ratio: noise that lasts hits both."""
    return statistics.median(statistics.median(ours) / statistics.median(theirs)
                             for ours, theirs in zip(series, base))


def calls_per_second(rounds):
    """The median over the rounds of a Load's answers."""
    return statistics.median(len(answer["seconds"]) / answer["total"] for answer in rounds)
