"""What the two studies claim, and what is asked of a measurement for a claim to hold.

The Sun RPC paper is "RPC-Based Web Proxy Server: Implementation and Evaluation using Sun RPC and
libcurl"; `source` is its section. Where it says "significant" or "almost" without a number, the
number is chosen here. Of the Thrift study only the facts of datasets/thrift/README.md and the claim
below are known. Do not change a criterion because of a result: a claim that does not hold is a result.

There are three verdicts. A claim is made of comparisons, grouped by what is compared (two policies, the
steps of one policy). A comparison within the measured spread is a tie, which decides nothing. A claim
does not hold if any comparison is against it. It holds if none is, and each group has a comparison that
supports it. Otherwise it is undecided.
"""

import collections
import math

# Two access times tie unless they differ by more than this share of the time without a cache, and by
# more than SPREADS standard errors of their difference over repeated runs.
NOISE = 0.02
SPREADS = 2
# "No significant gain" beyond a size: so much of the time that the largest cache saves is saved.
SATURATED = 0.95
# "Almost inverse": the coefficient of correlation.
MIRROR = -0.95
# Published ratios on a data set that was made after published figures: percentage points.
POINTS = 1.0

# Replays of the same requests: ratios and times are means over `runs` of them, with standard deviations;
# `hits` and `outcomes` (what the log says of each request, or None) are those of the first.
Run = collections.namedtuple("Run", "capacity requests hits hit_ratio byte_hit_ratio mean_us outcomes "
                             "us_sd hit_sd runs", defaults=(0, 0, 1))
# All replays of a trace: runs is {(policy, size): Run}, the size in per cent of the URLs.
Part = collections.namedtuple("Part", "name policies sizes none runs")
# What came of a claim; `holds` is None where it is undecided.
Finding = collections.namedtuple("Finding", "holds measured")
Claim = collections.namedtuple("Claim", "about source published criterion assess")


def ms(us):
    return f"{us / 1000:.1f} ms"


def percent(ratio):
    return f"{100 * ratio:.1f} %"


def join(words):
    return ", ".join(words)


def time(part, policy, size):
    return part.runs[policy, size].mean_us


def variance(run):
    """Of the mean time, in square microseconds."""
    return run.us_sd ** 2 / run.runs


def margin(none, *runs):
    """By how many microseconds the times of two of the runs may differ and still tie."""
    pairs = sorted(map(variance, runs))[-2:]
    return max(NOISE * none.mean_us, SPREADS * math.sqrt(sum(pairs)))


def vote(difference, limit):
    """1: supports the claim; -1: is against it; 0: a tie."""
    return 0 if abs(difference) <= limit else 1 if difference > 0 else -1


def decide(groups):
    """The verdict on {group: [vote]}: see the top of this file."""
    votes = list(groups.values())
    if any(v < 0 for group in votes for v in group):
        return False
    return True if votes and all(any(v > 0 for v in group) for group in votes) else None


def compare(part, size, faster, slower):
    """The vote on the first being faster."""
    a, b = part.runs[faster, size], part.runs[slower, size]
    return vote(b.mean_us - a.mean_us, margin(part.none, a, b))


# ---- the Sun RPC paper ---------------------------------------------------------------------------

def assess_pairs(part, pairs):
    """Is the first of each pair the faster one, at every size?"""
    groups = {(a, b): [compare(part, size, a, b) for size in part.sizes] for a, b in pairs}
    wrong = [(time(part, a, size) - time(part, b, size), size, a, b)
             for (a, b), votes in groups.items() for size, v in zip(part.sizes, votes) if v < 0]
    votes = [v for group in groups.values() for v in group]
    text = f"{votes.count(1)} of {len(votes)} comparisons are as claimed, {votes.count(0)} are ties"
    tied = [pair for pair, group in groups.items() if not any(group)]
    if tied:
        text += "; tied at all sizes: " + join(f"{a.upper()} and {b.upper()}" for a, b in tied)
    if wrong:
        excess, size, a, b = max(wrong)
        count = collections.Counter((a, b) for _, _, a, b in wrong)
        text += ("; against it: "
                 + join(f"{a.upper()} behind {b.upper()} at {n} of {len(part.sizes)} sizes"
                        for (a, b), n in count.items())
                 + f"; most of all at {size} %, by {ms(excess)} ({a.upper()} "
                 f"{ms(time(part, a, size))}, {b.upper()} {ms(time(part, b, size))})")
    return Finding(decide(groups), text)


def assess_best(part, best):
    return assess_pairs(part, [(best, other) for other in part.policies if other != best])


def assess_worst(part, worst):
    return assess_pairs(part, [(other, worst) for other in part.policies if other != worst])


def assess_order(part, order):
    """RAND is excepted, as in the paper: its place is stated, and decides nothing."""
    strict = [policy for policy in order if policy != "rand"]
    pairs = [(a, b) for i, a in enumerate(strict) for b in strict[i + 1:]]
    finding = assess_pairs(part, pairs)
    place = order.index("rand")
    inside = sum(compare(part, size, order[place - 1], "rand") >= 0
                 and compare(part, size, "rand", order[place + 1]) >= 0 for size in part.sizes)
    return Finding(finding.holds, f"{finding.measured}. RAND between its neighbours at {inside} of "
                   f"{len(part.sizes)} sizes")


def assess_knee(part, knee):
    last = part.sizes[-1]
    shares, groups = {}, {}
    for policy in part.policies:
        saved = part.none.mean_us - time(part, policy, last)
        at_knee = part.none.mean_us - time(part, policy, knee)
        limit = margin(part.none, part.runs[policy, knee], part.runs[policy, last])
        shares[policy] = at_knee / saved if saved > 0 else 0
        groups[policy] = [vote(at_knee - SATURATED * saved, limit) if saved > 0 else 0]
    return Finding(decide(groups), f"saved at {knee} % of what is saved at {last} %: "
                   + join(f"{p.upper()} {percent(s)}" for p, s in shares.items()))


def assess_falls(part):
    steps = list(zip(part.sizes, part.sizes[1:]))
    groups = {p: [vote(time(part, p, a) - time(part, p, b),
                       margin(part.none, part.runs[p, a], part.runs[p, b])) for a, b in steps]
              for p in part.policies}
    wrong = [(time(part, p, b) - time(part, p, a), p, a, b)
             for p, votes in groups.items() for (a, b), v in zip(steps, votes) if v < 0]
    votes = [v for group in groups.values() for v in group]
    text = (f"{votes.count(1)} of {len(votes)} steps to a larger cache save time, "
            f"{votes.count(0)} are ties")
    if wrong:
        excess, policy, a, b = max(wrong)
        text += f"; {policy.upper()} is slower at {b} % than at {a} %, by {ms(excess)}"
    return Finding(decide(groups), text)


def assess_spread(part):
    spread = {size: max(time(part, p, size) for p in part.policies)
              - min(time(part, p, size) for p in part.policies) for size in part.sizes}
    # The difference of two differences: twice the variance.
    limit = math.sqrt(2) * margin(part.none, *part.runs.values())
    votes = [vote(spread[a] - spread[b], limit) for a, b in zip(part.sizes, part.sizes[1:])]
    # Small steps may tie: from the first size to the last they add up.
    votes.append(vote(spread[part.sizes[0]] - spread[part.sizes[-1]], limit))
    text = "slowest less fastest: " + join(f"{ms(s)} at {size} %" for size, s in spread.items())
    return Finding(decide({"sizes": votes}), text)


def assess_no_cache(part, times):
    size = part.sizes[0]
    slowest = max(part.policies, key=lambda p: time(part, p, size))
    ratio = part.none.mean_us / time(part, slowest, size)
    # The slowest has at most the time at which the ratio is that of the claim.
    holds = vote(part.none.mean_us / (times - 0.5) - time(part, slowest, size),
                 margin(part.none, part.runs[slowest, size], part.none))
    return Finding(decide({size: [holds]}),
                   f"{ratio:.1f} times ({ms(part.none.mean_us)}; {slowest.upper()} at {size} %: "
                   f"{ms(time(part, slowest, size))})")


def correlation(xs, ys):
    """Pearson's; 0 where nothing varies."""
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    above = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys))
    below = math.sqrt(sum((x - x_mean) ** 2 for x in xs) * sum((y - y_mean) ** 2 for y in ys))
    return above / below if below > 0 else 0


def assess_mirror(part):
    runs = list(part.runs.values())
    r = correlation([run.hit_ratio for run in runs], [run.mean_us for run in runs])
    return Finding(r <= MIRROR, f"r = {r:.3f} over {len(runs)} runs")


def assess_lru_ratio(part, size, capacity, published):
    """The authors' own requests must give the authors' own figure; others may be near."""
    run = part.runs["lru", size]
    if run.capacity != capacity:
        return Finding(None, f"{size} % are {run.capacity} URLs here")
    got = 100 * run.hit_ratio
    exact = part.name != "dataset1"
    holds = round(got, 1) == published if exact else abs(got - published) <= POINTS
    apart = round(round(got, 1) - published, 1)
    return Finding(holds, f"{got:.1f} % ({run.hits} of {run.requests}), "
                   + (f"{apart:+.1f} points" if apart else "the same"))


def assess_maxs_between(first, second):
    def relative(part, size):
        return time(part, "maxs", size) / part.none.mean_us

    def limit(part, size):
        return margin(part.none, part.runs["maxs", size]) / part.none.mean_us

    sizes = first.sizes
    votes = [vote(relative(first, s) - relative(second, s), max(limit(first, s), limit(second, s)))
             for s in sizes]
    return Finding(decide({"maxs": votes}), "MAXS in per cent of no cache, dataset1 and dataset2: "
                   + join(f"{100 * relative(first, s):.0f} and {100 * relative(second, s):.0f} "
                          f"at {s} %" for s in sizes))


def anomalies(part, policy):
    """Requests that hit with one size and miss with the next larger one."""
    count = 0
    for a, b in zip(part.sizes, part.sizes[1:]):
        small, large = part.runs[policy, a].outcomes, part.runs[policy, b].outcomes
        count += sum(s == "hit" and t != "hit" for s, t in zip(small, large))
    return count


def assess_belady(*parts):
    counts = {p: [anomalies(part, p) for part in parts] for p in ("fifo", "rand", "lru")}
    holds = sum(counts["fifo"]) > 0 and sum(counts["rand"]) > 0
    return Finding(holds, "requests that hit and, in the next larger cache, miss, on dataset1 and "
                   "dataset2: " + join(f"{p.upper()} {' and '.join(map(str, c))}"
                                       for p, c in counts.items()))


def first_eviction(run):
    """The number of the first request that caused an eviction; None: there was none."""
    return next((n for n, o in enumerate(run.outcomes, 1) if o == "evicted"), None)


def assess_first_evictions(*parts):
    lines = [[first_eviction(part.runs["lru", size]) for size in part.sizes] for part in parts]
    text = "the cache is full at request " + "; ".join(
        f"{part.name}: " + join(str(n) for n in line) for part, line in zip(parts, lines))
    if any(n is None for line in lines for n in line):
        return Finding(None, text + " (not every cache was filled)")
    return Finding(lines[1][-1] - lines[1][0] < lines[0][-1] - lines[0][0], text)


TIES = "at each size"
NOTE = (f"Two access times tie if they differ by at most {100 * NOISE:.0f} % of the time without a cache, "
        f"or by at most {SPREADS} standard errors over the repeated runs. Ties decide nothing: a claim "
        "without a decided comparison is undecided.")
AUTHORS_NOTE = ("The sizes of the pages that the authors requested are unknown; random sizes are used instead. "
                "So the results for MAXS on these requests are not evidence for or against a claim.")
ORDERS = {"dataset1": ["lru", "lfu", "fifo", "rand", "maxs"],
          "dataset2": ["lru", "fifo", "lfu", "rand", "maxs"]}
KNEES = {"dataset1": 20, "dataset2": 30}
NO_CACHE = {"dataset1": 4, "dataset2": 2}


def of_dataset(name):
    order, knee, times = ORDERS[name], KNEES[name], NO_CACHE[name]
    claims = [
        Claim(name, "4.2.1", "LRU is the fastest at all sizes",
              f"LRU against each other policy, {TIES}", lambda part: assess_best(part, "lru")),
        Claim(name, "4.2.1", "The order is " + join(p.upper() for p in order)
              + ", RAND not always in its place",
              f"each of LRU, LFU, FIFO and MAXS against each, {TIES}",
              lambda part: assess_order(part, order)),
        Claim(name, "4.2.1", "MAXS is the slowest", f"each other policy against MAXS, {TIES}",
              lambda part: assess_worst(part, "maxs")),
        Claim(name, "4.2.1", f"No significant gain in time past {knee} % of the URLs",
              f"each policy saves, at {knee} %, {100 * SATURATED:.0f} % of what it saves at the "
              "largest size", lambda part: assess_knee(part, knee)),
        Claim(name, "4.2.1", "Access time falls as the cache grows, with all policies",
              "from each size to the next", assess_falls),
        Claim(name, "4.2.1", "The policies differ most at 10 %, and then less and less",
              "from each size to the next", assess_spread),
        Claim(name, "4.2.1", f"Without a cache it takes {times} times the time of the slowest "
              "policy with the smallest cache",
              f"at least {times} times, rounded to a whole number",
              lambda part: assess_no_cache(part, times)),
        Claim(name, "4.2.2", "Hit ratio and access time are almost mirror images",
              f"correlation of {MIRROR} or below over all policies and sizes", assess_mirror),
    ]
    if name == "dataset1":
        for size, capacity, ratio in ((10, 7, 85.6), (20, 14, 90.5)):
            claims.append(Claim(
                name, "logs", f"LRU has a hit ratio of {ratio} % with a capacity of {capacity} URLs",
                f"within {POINTS:.0f} point; exactly, of the authors' own requests",
                lambda part, s=size, n=capacity, r=ratio: assess_lru_ratio(part, s, n, r)))
    return claims


ACROSS = [
    Claim("both", "4.2.1", "MAXS does relatively better on dataset2 than on dataset1",
          "its time over that without a cache is no higher on dataset2, at each size; "
          f"differences of up to {100 * NOISE:.0f} points, or within the spread, are ties", assess_maxs_between),
    Claim("both", "4.2.3", "With FIFO and RAND, pages that a cache hits are missed by a larger one",
          "at least one such request with each", assess_belady),
    Claim("both", "4.2.3", "Caches of dataset2 are filled at points closer to each other",
          "fewer requests between the first evictions of the smallest and the largest cache",
          assess_first_evictions),
]


# ---- the Thrift study ----------------------------------------------------------------------------

# A policy at a size, of several runs: means, and standard deviations of runs.
Mean = collections.namedtuple("Mean", "runs hit_ratio hit_sd byte_hit_ratio mean_us us_sd")
# means is {(policy, size): Mean}, the size in bytes.
Workload = collections.namedtuple("Workload", "name policies sizes none means")


def mean_of(runs):
    def mean(values):
        return sum(values) / len(values)

    def sd(values):
        if len(values) < 2:
            return 0
        return math.sqrt(sum((v - mean(values)) ** 2 for v in values) / (len(values) - 1))

    ratios, times = [r.hit_ratio for r in runs], [r.mean_us for r in runs]
    return Mean(len(runs), mean(ratios), sd(ratios), mean([r.byte_hit_ratio for r in runs]),
                mean(times), sd(times))


def average(runs):
    """The Run of several replays of the same requests."""
    mean = mean_of(runs)
    return runs[0]._replace(hit_ratio=mean.hit_ratio, byte_hit_ratio=mean.byte_hit_ratio,
                            mean_us=mean.mean_us, us_sd=mean.us_sd, hit_sd=mean.hit_sd, runs=len(runs))


def unsteadiness(workloads):
    """How much runs of the same requests without a cache differ: the largest standard deviation, as a
    share of the mean."""
    return max(w.none.us_sd / w.none.mean_us for w in workloads.values())


def assess_lfu_weak(workload):
    texts, lowest, groups = [], 0, collections.defaultdict(list)
    for size in workload.sizes:
        ratios = {p: workload.means[p, size].hit_ratio for p in workload.policies}
        lfu = ratios.pop("lfu")
        for other, ratio in ratios.items():
            a, b = workload.means["lfu", size], workload.means[other, size]
            limit = SPREADS * math.sqrt(a.hit_sd ** 2 / a.runs + b.hit_sd ** 2 / b.runs)
            groups[other].append(vote(ratio - lfu, limit))
        lowest += all(votes[-1] > 0 for votes in groups.values())
        texts.append(f"{size // 1024} KB: LFU {percent(lfu)}, "
                     + join(f"{p.upper()} {percent(r)}" for p, r in ratios.items()))
    sizes = len(workload.sizes)
    return Finding(decide(groups), f"the lowest at {lowest} of {sizes} sizes. " + "; ".join(texts))


THRIFT = [
    Claim("repeated", "Thrift", "LFU is weak on the repeated workload",
          "LFU's hit ratio against each other policy's, at each size (mean of the runs)",
          assess_lfu_weak),
]


# Two sizes of a workload of which the larger one hits less, as simulated: what each policy does with both,
# and with the larger one if pages that do not fit the smaller one are refused. Of the pages, how many
# are larger than either size.
Simulated = collections.namedtuple("Simulated", "hit_ratio evictions")
Fall = collections.namedtuple("Fall", "workload small large pages too_large_for_small too_large_for_large "
                              "at_small at_large refusing")


# ---- all of it -----------------------------------------------------------------------------------

# A claim, what came of it, and what came of it with the authors' own requests (or None).
Row = collections.namedtuple("Row", "claim finding own")


def assess_all(parts, authors, workloads):
    """parts: {name: Part}; authors: a Part of the authors' own dataset1, or None."""
    rows = []
    for name in ("dataset1", "dataset2"):
        for claim in of_dataset(name):
            own = claim.assess(authors) if authors and name == "dataset1" else None
            rows.append(Row(claim, claim.assess(parts[name]), own))
    for claim in ACROSS:
        rows.append(Row(claim, claim.assess(parts["dataset1"], parts["dataset2"]), None))
    for claim in THRIFT:
        rows.append(Row(claim, claim.assess(workloads[claim.about]), None))
    return rows
