"""What the tables of several papers share: means with their intervals, and comparisons of lists of
runs."""

import math

import verdict
from verdict import Estimate, above, of_mean, paired


def plus_minus(values, form="%.1f"):
    """The mean of runs, and half the width of its interval of 95 %, unless all are equal."""
    estimate = of_mean(values)
    half = verdict.half_width(estimate)
    text = form % (estimate.difference + 0.0)
    return text if half == 0 or len(values) < 2 else f"{text} ± {form % half}"


def join(words, separator=", "):
    return separator.join(map(str, words))


def enumerate_words(words):
    *most, last = map(str, words)
    return f"{join(most)} and {last}" if most else last


def name(policy):
    return policy.upper()


# What is equal in all runs, among several sizes: it decides nothing.
TIE = above(Estimate(0.0, math.inf, 1))


def larger_or_tie(a, b):
    """The comparison for "a is larger at some sizes and smaller at none"."""
    return TIE if a == b else above(paired(a, b))


def groups_of_pairs(pairs, sizes, values):
    """Comparisons for "of each pair the first is larger at some sizes and smaller at none": {pair:
    [Comparison by size]}; values(policy, size) is a list of runs."""
    return {(a, b): [larger_or_tie(values(a, size), values(b, size)) for size in sizes]
            for a, b in pairs}


def count_of(groups):
    """How many comparisons of {name: [Comparison]} are for a statement, against it and neither, at
    the levels by which decide_groups() decides on all of them; and {name: number against}."""
    every = sum(map(len, groups.values()))
    held = sum(verdict.decide([one], verdict.ALPHA / len(group)) is verdict.Verdict.HOLDS
               for group in groups.values() for one in group)
    against = {name: sum(verdict.decide([one], verdict.ALPHA / every) is verdict.Verdict.FAILS
                         for one in group)
               for name, group in groups.items()}
    failed = sum(against.values())
    return held, failed, every - held - failed, against


def all_in(groups):
    """The verdict on a statement of which every comparison of {name: [Comparison]} must hold."""
    return verdict.decide([one for group in groups.values() for one in group])


def describe_groups(groups, names=lambda group: " before ".join(map(name, group))):
    """How many comparisons are as stated, and which groups have some against it."""
    held, failed, open_, against = count_of(groups)
    text = (f"{held} of {held + failed + open_} comparisons as stated, {failed} against it, "
            f"{open_} undecided")
    wrong = [f"{names(group)} {count} of {len(groups[group])}" for group, count in against.items()
             if count]
    return text + (f" (against: {join(wrong)})" if wrong else "")


def steps_up(sizes, values, factor=1):
    """Comparisons for "it rises (factor -1: falls) from size to size": each step, and from the
    first to the last size."""
    pairs = list(zip(sizes, sizes[1:]))
    if len(sizes) > 2:
        pairs.append((sizes[0], sizes[-1]))
    return [above(of_mean([factor * (b - a) for a, b in zip(values(first), values(second))]))
            for first, second in pairs]

