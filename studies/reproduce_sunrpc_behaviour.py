"""Section 4.2.3 of the Sun RPC paper, the behaviour at run time: rows of its table."""

from paper_table import Row
from replays import mean
from reproduce_sunrpc_terms import AUTHORS, correlation, hits, place
from statements import describe_groups, groups_of_pairs, join, name, plus_minus
from verdict import (above, all_of, decide, decide_exactly, decide_groups, decide_somewhere,
                     exactly, of_mean)


def best_hits(part):
    groups = groups_of_pairs([("lru", other) for other in part.policies if other != "lru"],
                             part.sizes,
                             lambda p, size: hits(part, p, size))
    return Row(place("4.2.3, Figure 9", part),
               "the chart of LRU has the most empty space, that is, the most hits",
               "more hits than each other policy at some sizes, fewer at none",
               describe_groups(groups),
               decide_groups(groups))


def anomalies(part, policy):
    """Requests that hit with one size and miss with the next larger one; one a run."""
    return [sum(a == "hit" and b != "hit" for small, large in zip(part.sizes, part.sizes[1:])
                for a, b in zip(part.runs[policy, small][run].outcomes,
                                part.runs[policy, large][run].outcomes))
            for run in range(len(part.none))]


def hit_then_missed(part):
    found = {policy: anomalies(part, policy) for policy in ("fifo", "rand", "lru")}
    return Row(place("4.2.3", part),
               "with FIFO and RAND there are requests that hit in a cache and miss in a larger one",
               "more than none with each, over successive sizes",
               join(f"{name(p)} {plus_minus(line, '%.0f')}" for p, line in found.items()),
               decide([above(of_mean(found[p])) for p in ("fifo", "rand")]))


def stack(part):
    found = anomalies(part, "lru")
    return Row(place("4.2.3", part),
               "with LRU no request hits in a cache and misses in a larger one",
               "none: LRU is a stack algorithm", f"{sum(found)} in {len(found)} runs",
               decide_exactly(sum(found) == 0),
               ours=True)


def rises(lines):
    """Comparisons, one for each capacity after the first: "the misses are more than with one URL
    less"; `lines` are the misses by capacity, one list a run, of which a policy without chance has
    one."""
    steps = [[b - a for a, b in zip(line, line[1:])] for line in lines]
    return [above(of_mean(step) if len(step) > 1 else exactly(step[0])) for step in zip(*steps)]


def describe_rises(dataset, policy, lines):
    means = [mean(column) for column in zip(*lines)]
    up = [b - a for a, b in zip(means, means[1:])]
    count = sum(step > 0 for step in up)
    return (f"{AUTHORS if dataset == 'authors' else dataset}, {name(policy)}: "
            + (f"{count} of {len(up)} steps rise, by at most {max(up):.1f} misses" if count
               else f"none of {len(up)} steps rises"))


def belady(study):
    found = [decide_somewhere([one for misses in study.misses.values()
                               for one in rises(misses[policy])])
             for policy in ("fifo", "rand")]
    seeds = len(next(iter(study.misses.values()))["rand"])
    return Row("4.2.3", "this is Belady's anomaly (a larger cache has more misses in all), with "
               "FIFO and RAND",
               "with each, a capacity at which one URL more has more misses, of all capacities and "
               f"data sets (simulated; RAND: the mean of {seeds} seeds)",
               join((describe_rises(dataset, policy, lines)
                     for dataset, misses in study.misses.items()
                     for policy, lines in misses.items()), "; "), all_of(found))


def first_eviction(run):
    """The number of the first request that caused an eviction; None: there was none."""
    return next((n for n, outcome in enumerate(run.outcomes, 1) if outcome == "evicted"), None)


def initial_misses(part):
    return [first_eviction(part.runs["lru", size][0]) for size in part.sizes]


def closer_lines(study):
    lines = {dataset: initial_misses(part) for dataset, part in study.parts.items()}
    text = join((f"{dataset}: {join(map(str, line))}" for dataset, line in lines.items()), "; ")
    known = all(n is not None for line in lines.values() for n in line)
    spans = {dataset: line[-1] - line[0] for dataset, line in lines.items()} if known else {}
    return Row("4.2.3, Figure 9", "initial cache miss lines are closer to each other in dataset2",
               "fewer requests between the first evictions of the smallest and the largest cache",
               f"first eviction by size, {text}. The order of requests is made here",
               decide_exactly(spans["dataset2"] < spans["dataset1"] if known else None))


def spacing(part):
    """Requests between the first evictions of successive sizes with the same step, and new URLs by
    request there."""
    line = [(size, n, part.runs["lru", size][0].capacity)
            for size, n in zip(part.sizes, initial_misses(part))]
    line = [one for one in line if one[1] is not None and one[0] <= 50]
    return [(b[1] - a[1], (b[2] - a[2]) / (b[1] - a[1])) for a, b in zip(line, line[1:])
            if b[1] > a[1]]


def variable_lines(part):
    gaps = [gap for gap, _ in spacing(part)]
    return Row(place("4.2.3, Figure 9", part),
               "initial cache miss lines are spaced variably for equal steps of size",
               "the largest gap is more than twice the smallest", "gaps in requests: "
               + join(map(str, gaps)),
               decide_exactly(max(gaps) > 2 * min(gaps) if len(gaps) > 1 else None))


def proportional_lines(part):
    found = spacing(part)
    r = correlation([gap for gap, _ in found],
                    [slope for _, slope in found]) if len(found) > 2 else None
    return Row(place("4.2.3, Figure 9", part),
               "these gaps are proportional to the slope of the frontier of new URLs",
               "a positive correlation of gap and new URLs per request in it",
               "too few lines" if r is None else
               f"r = {r:.2f}: a steep frontier fills the cache soon, so for equal steps the gap is "
               "inverse to the slope",
               decide_exactly(None if r is None else r > 0))
