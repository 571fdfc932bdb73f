"""What the rows of the Sun RPC paper have in common: figures of a Part and their names."""

import statistics

from replays import ratios, times
from reproduce_sunrpc import ALL, ONE

MADE = "The data set is made here from the published figures, so this is no evidence"
AUTHORS = "the authors' requests"


def hits(part, policy, size):
    return ratios(part.runs[policy, size])


def ms(part, policy, size):
    return times(part.runs[policy, size])


def label(size):
    return {ONE: "1 URL", ALL: "100 %"}.get(size, f"{size} %")


def place(text, part):
    """Where it is in the paper, and of which requests."""
    return f"{text}, {AUTHORS if part.name == 'authors' else part.name}"


def correlation(xs, ys):
    """Pearson's; 0 where nothing varies."""
    if len(set(xs)) < 2 or len(set(ys)) < 2:
        return 0.0
    return statistics.correlation(xs, ys)
