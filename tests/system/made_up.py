"""Measurements that are made up, for tests of verdicts: runs with exact means, with or without
noise."""

import random
import statistics
import sys

import harness

sys.path.append(str(harness.TOP / "studies"))
import replays
from verdict import Verdict

HOLDS, FAILS, UNDECIDED, CANNOT = Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED, Verdict.CANNOT


class Noise:
    """Values of runs with exactly this mean, and a standard deviation that is a share of it; in
    another order each time, so that pairs of runs have nothing in common."""

    def __init__(self, runs, sd=0.0):
        offsets = [n - (runs - 1) / 2 for n in range(runs)]
        self.offsets = [sd * offset / statistics.stdev(offsets) for offset in offsets]
        self.draw = random.Random(1)

    def values(self, mean):
        self.draw.shuffle(self.offsets)
        return [mean + offset * abs(mean) for offset in self.offsets]


def run(ratio, ms, outcomes=("hit",), urls=("u",), us=(1,), capacity=1):
    """A replays.Run with a hit ratio in per cent and a mean time in milliseconds."""
    return replays.Run(capacity, 1000, round(10 * ratio), ratio / 100, ratio / 100, 1000 * ms,
                       list(outcomes), list(urls),
                       list(us))


def verdicts(statements, study):
    """{name of the function, with a number if it is there more than once: Verdict} of all that are
    functions."""
    found = {}
    for one in statements:
        if callable(one):
            name = one.__name__ if one.__name__ != "assess" else one.__qualname__.split(".")[0]
            while name in found:
                name += "+"
            found[name] = one(study).verdict
    return found
