"""What the two studies claim, and what is asked of a measurement for a claim to hold.

The Sun RPC paper is "RPC-Based Web Proxy Server: Implementation and Evaluation using Sun RPC and
libcurl"; `source` is its section. Where it says "significant" or "almost" and gives no number, the
number is chosen here. Of the Thrift study only what datasets/thrift/README.md and the claim below
tell is at hand. Nothing here is to be changed so that something comes out: a claim that does not
hold is a result.
"""

import collections
import math

# Two access times are told apart when they differ by more than this share of the time without a
# cache. Whether the machine was quiet enough for that, unsteadiness() says.
NOISE = 0.02
# "No significant gain" beyond a size: so much of the time that the largest cache saves is saved.
SATURATED = 0.95
# "Almost inverse": the coefficient of correlation.
MIRROR = -0.95
# Published ratios on a data set that was made after published figures: percentage points.
POINTS = 1.0

# One replay: `outcomes` is what the log says of each request, or None.
Run = collections.namedtuple("Run", "room requests hits hit_ratio byte_hit_ratio mean_us outcomes")
# All replays of a trace: runs is {(policy, size): Run}, the size in per cent of the URLs.
Part = collections.namedtuple("Part", "name policies sizes none runs")
# What came of a claim; `holds` is None when it was not to be judged.
Finding = collections.namedtuple("Finding", "holds measured")
Claim = collections.namedtuple("Claim", "about source published criterion judge")


def ms(us):
    return f"{us / 1000:.1f} ms"


def percent(ratio):
    return f"{100 * ratio:.1f} %"


def join(words):
    return ", ".join(words)


def time(part, policy, size):
    return part.runs[policy, size].mean_us


def noise(part):
    return NOISE * part.none.mean_us


def against(part, size, faster, slower):
    """By how many microseconds the one that should be faster is slower, beyond the noise; or 0."""
    excess = time(part, faster, size) - time(part, slower, size)
    return excess if excess > noise(part) else 0


# ---- the Sun RPC paper ---------------------------------------------------------------------------

def judge_pairs(part, pairs):
    """Is the first of each pair the faster one, at every size?"""
    compared = [(against(part, size, a, b), size, a, b) for size in part.sizes for a, b in pairs]
    wrong = [c for c in compared if c[0]]
    ties = sum(abs(time(part, a, size) - time(part, b, size)) <= noise(part)
               for _, size, a, b in compared)
    text = (f"{len(compared) - len(wrong)} of {len(compared)} comparisons are as claimed"
            + (f", {ties} of them too close to call" if ties else ""))
    if wrong:
        excess, size, a, b = max(wrong)
        count = collections.Counter((a, b) for _, _, a, b in wrong)
        text += ("; against it: "
                 + join(f"{a.upper()} behind {b.upper()} at {n} of {len(part.sizes)} sizes"
                        for (a, b), n in count.items())
                 + f"; most of all at {size} %, by {ms(excess)} ({a.upper()} "
                 f"{ms(time(part, a, size))}, {b.upper()} {ms(time(part, b, size))})")
    return Finding(not wrong, text)


def judge_best(part, best):
    return judge_pairs(part, [(best, other) for other in part.policies if other != best])


def judge_worst(part, worst):
    return judge_pairs(part, [(other, worst) for other in part.policies if other != worst])


def judge_order(part, order):
    """RAND is excepted, as the paper does: it is told where it came."""
    strict = [policy for policy in order if policy != "rand"]
    pairs = [(a, b) for i, a in enumerate(strict) for b in strict[i + 1:]]
    finding = judge_pairs(part, pairs)
    place = order.index("rand")
    inside = sum(not against(part, size, order[place - 1], "rand")
                 and not against(part, size, "rand", order[place + 1]) for size in part.sizes)
    return Finding(finding.holds, f"{finding.measured}. RAND between its neighbours at {inside} of "
                   f"{len(part.sizes)} sizes")


def judge_knee(part, knee):
    last = part.sizes[-1]
    shares = {}
    for policy in part.policies:
        saved = part.none.mean_us - time(part, policy, last)
        at_knee = part.none.mean_us - time(part, policy, knee)
        shares[policy] = at_knee / saved if saved > 0 else 0
    holds = all(share >= SATURATED for share in shares.values())
    return Finding(holds, f"saved at {knee} % of what is saved at {last} %: "
                   + join(f"{p.upper()} {percent(s)}" for p, s in shares.items()))


def judge_falls(part):
    steps = list(zip(part.sizes, part.sizes[1:]))
    wrong = [(time(part, p, b) - time(part, p, a), p, a, b)
             for p in part.policies for a, b in steps
             if time(part, p, b) - time(part, p, a) > noise(part)]
    text = (f"{len(steps) * len(part.policies) - len(wrong)} of "
            f"{len(steps) * len(part.policies)} steps to a larger cache cost no time")
    if wrong:
        excess, policy, a, b = max(wrong)
        text += f"; {policy.upper()} is slower at {b} % than at {a} %, by {ms(excess)}"
    return Finding(not wrong, text)


def judge_spread(part):
    spread = {size: max(time(part, p, size) for p in part.policies)
              - min(time(part, p, size) for p in part.policies) for size in part.sizes}
    holds = all(spread[b] <= spread[a] + noise(part) for a, b in zip(part.sizes, part.sizes[1:]))
    widest = max(spread, key=spread.get)
    text = "slowest less fastest: " + join(f"{ms(s)} at {size} %" for size, s in spread.items())
    if holds and widest != part.sizes[0]:
        text += f"; the most is at {widest} %, too close to call"
    return Finding(holds, text)


def judge_no_cache(part, times):
    size = part.sizes[0]
    slowest = max(part.policies, key=lambda p: time(part, p, size))
    ratio = part.none.mean_us / time(part, slowest, size)
    return Finding(ratio >= times - 0.5,
                   f"{ratio:.1f} times ({ms(part.none.mean_us)}; {slowest.upper()} at {size} %: "
                   f"{ms(time(part, slowest, size))})")


def correlation(xs, ys):
    """Pearson's; 0 where nothing varies."""
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    above = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys))
    below = math.sqrt(sum((x - x_mean) ** 2 for x in xs) * sum((y - y_mean) ** 2 for y in ys))
    return above / below if below > 0 else 0


def judge_mirror(part):
    runs = list(part.runs.values())
    r = correlation([run.hit_ratio for run in runs], [run.mean_us for run in runs])
    return Finding(r <= MIRROR, f"r = {r:.3f} over {len(runs)} runs")


def judge_lru_ratio(part, size, room, published):
    """The authors' own requests must give the authors' own figure; others may be near."""
    run = part.runs["lru", size]
    if run.room != room:
        return Finding(None, f"{size} % are {run.room} URLs here")
    got = 100 * run.hit_ratio
    exact = part.name != "dataset1"
    holds = round(got, 1) == published if exact else abs(got - published) <= POINTS
    apart = round(round(got, 1) - published, 1)
    return Finding(holds, f"{got:.1f} % ({run.hits} of {run.requests}), "
                   + (f"{apart:+.1f} points" if apart else "the same"))


def judge_maxs_between(first, second):
    def relative(part, size):
        return time(part, "maxs", size) / part.none.mean_us

    sizes = first.sizes
    holds = all(relative(second, s) <= relative(first, s) + NOISE for s in sizes)
    return Finding(holds, "MAXS in per cent of no cache, dataset1 and dataset2: "
                   + join(f"{100 * relative(first, s):.0f} and {100 * relative(second, s):.0f} "
                          f"at {s} %" for s in sizes))


def anomalies(part, policy):
    """Requests that hit with one size and miss with the next larger one."""
    count = 0
    for a, b in zip(part.sizes, part.sizes[1:]):
        small, large = part.runs[policy, a].outcomes, part.runs[policy, b].outcomes
        count += sum(s == "hit" and t != "hit" for s, t in zip(small, large))
    return count


def judge_belady(*parts):
    counts = {p: [anomalies(part, p) for part in parts] for p in ("fifo", "rand", "lru")}
    holds = sum(counts["fifo"]) > 0 and sum(counts["rand"]) > 0
    return Finding(holds, "requests that hit and, in the next larger cache, miss, on dataset1 and "
                   "dataset2: " + join(f"{p.upper()} {' and '.join(map(str, c))}"
                                       for p, c in counts.items()))


def first_eviction(run):
    """The number of the first request for which a page had to leave; None: none did."""
    return next((n for n, o in enumerate(run.outcomes, 1) if o == "evicted"), None)


def judge_first_evictions(*parts):
    lines = [[first_eviction(part.runs["lru", size]) for size in part.sizes] for part in parts]
    text = "the cache is full at request " + "; ".join(
        f"{part.name}: " + join(str(n) for n in line) for part, line in zip(parts, lines))
    if any(n is None for line in lines for n in line):
        return Finding(None, text + " (not every cache was filled)")
    return Finding(lines[1][-1] - lines[1][0] < lines[0][-1] - lines[0][0], text)


TIES = "at each size"
NOTE = (f"Two access times within {100 * NOISE:.0f} % of the time without a cache count as equal: too "
        "close to call, and not against a claim.")
AUTHORS_NOTE = ("The sizes of the pages that the authors requested are not known and were drawn: what is "
                "said of MAXS there is no evidence.")
ORDERS = {"dataset1": ["lru", "lfu", "fifo", "rand", "maxs"],
          "dataset2": ["lru", "fifo", "lfu", "rand", "maxs"]}
KNEES = {"dataset1": 20, "dataset2": 30}
NO_CACHE = {"dataset1": 4, "dataset2": 2}


def of_dataset(name):
    order, knee, times = ORDERS[name], KNEES[name], NO_CACHE[name]
    claims = [
        Claim(name, "4.2.1", "LRU is the fastest at all sizes",
              f"LRU is behind nobody, {TIES}", lambda part: judge_best(part, "lru")),
        Claim(name, "4.2.1", "The order is " + join(p.upper() for p in order)
              + ", RAND not always in its place",
              f"each of LRU, LFU, FIFO and MAXS against each, {TIES}",
              lambda part: judge_order(part, order)),
        Claim(name, "4.2.1", "MAXS is the slowest", f"MAXS is ahead of nobody, {TIES}",
              lambda part: judge_worst(part, "maxs")),
        Claim(name, "4.2.1", f"No significant gain in time past {knee} % of the URLs",
              f"each policy saves, at {knee} %, {100 * SATURATED:.0f} % of what it saves at the "
              "largest size", lambda part: judge_knee(part, knee)),
        Claim(name, "4.2.1", "Access time falls as the cache grows, with all policies",
              "from each size to the next", judge_falls),
        Claim(name, "4.2.1", "The policies differ most at 10 %, and then less and less",
              "from each size to the next", judge_spread),
        Claim(name, "4.2.1", f"Without a cache it takes {times} times the time of the slowest "
              "policy with the smallest cache",
              f"at least {times} times, rounded to a whole number",
              lambda part: judge_no_cache(part, times)),
        Claim(name, "4.2.2", "Hit ratio and access time are almost mirror images",
              f"correlation of {MIRROR} or below over all policies and sizes", judge_mirror),
    ]
    if name == "dataset1":
        for size, room, ratio in ((10, 7, 85.6), (20, 14, 90.5)):
            claims.append(Claim(
                name, "logs", f"LRU hits {ratio} % with room for {room} URLs",
                f"within {POINTS:.0f} point; exactly, of the authors' own requests",
                lambda part, s=size, n=room, r=ratio: judge_lru_ratio(part, s, n, r)))
    return claims


ACROSS = [
    Claim("both", "4.2.1", "MAXS does relatively better on dataset2 than on dataset1",
          "its time over that without a cache is no higher on dataset2, at each size; "
          f"{100 * NOISE:.0f} points count as equal", judge_maxs_between),
    Claim("both", "4.2.3", "With FIFO and RAND, pages that a cache hits are missed by a larger one",
          "at least one such request with each", judge_belady),
    Claim("both", "4.2.3", "Caches of dataset2 are filled at points closer to each other",
          "fewer requests between the first evictions of the smallest and the largest cache",
          judge_first_evictions),
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


def unsteadiness(workloads):
    """By how much runs of the same requests without a cache differ: the largest standard deviation,
    as a share of the mean."""
    return max(w.none.us_sd / w.none.mean_us for w in workloads.values())


def judge_lfu_weak(workload):
    texts, lowest = [], 0
    for size in workload.sizes:
        ratios = {p: workload.means[p, size].hit_ratio for p in workload.policies}
        lfu = ratios.pop("lfu")
        lowest += all(lfu < other for other in ratios.values())
        texts.append(f"{size // 1024} KB: LFU {percent(lfu)}, "
                     + join(f"{p.upper()} {percent(r)}" for p, r in ratios.items()))
    sizes = len(workload.sizes)
    return Finding(lowest == sizes, f"the lowest at {lowest} of {sizes} sizes. " + "; ".join(texts))


THRIFT = [
    Claim("repeated", "Thrift", "LFU is weak on the repeated workload",
          "LFU has the lowest hit ratio of the three policies at each size (mean of the runs)",
          judge_lfu_weak),
]


# ---- all of it -----------------------------------------------------------------------------------

# A claim, what came of it, and what came of it with the authors' own requests (or None).
Row = collections.namedtuple("Row", "claim finding own")


def judge_all(parts, authors, workloads):
    """parts: {name: Part}; authors: a Part of the authors' own dataset1, or None."""
    rows = []
    for name in ("dataset1", "dataset2"):
        for claim in of_dataset(name):
            own = claim.judge(authors) if authors and name == "dataset1" else None
            rows.append(Row(claim, claim.judge(parts[name]), own))
    for claim in ACROSS:
        rows.append(Row(claim, claim.judge(parts["dataset1"], parts["dataset2"]), None))
    for claim in THRIFT:
        rows.append(Row(claim, claim.judge(workloads[claim.about]), None))
    return rows
