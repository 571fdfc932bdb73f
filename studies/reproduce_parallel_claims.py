"""What "Exploiting Parallelism in a Proxy Server" claims, and what is asked of a measurement.

The criteria were chosen before the first run. Verdicts, votes and spreads are those of reproduce_claims.py.
Where the paper says "flat", "slowly" or "nearly" without a number, the number is chosen here.
"""

import math
import os

import reproduce_parallel as study_of
import reproduce_claims as claims
from reproduce_claims import Claim, Finding, Row, decide, vote

# "128 requests per second against 40" is a ratio of 3.2: at least this, 3 times, rounded.
TIMES = 2.5
PUBLISHED = (128, 40)
# "Flat": four times the threads give less than this many times the speed-up.
FLAT = 1.25
# "Flat or rising": efficiency does not fall by more, from one number of threads to the next.
FALL = 0.05
# "Slowly falling": twice the threads keep at least this share of the efficiency.
SLOW = 0.75
# "Nearly weak scaling": efficiency of twice the requests and threads, over that before; 0.975 in the paper.
WEAK = 0.95
# "About 9 % more efficient": more than half of that.
ALIGNED = 1.045

NAMES = {"pool": "thread pool", "sunproxyd": "sunproxyd", "executor": "asyncio, executor",
         "aiohttp": "asyncio, aiohttp", "own": "asyncio, its own executor", "workers": "sunproxyd's workers"}


def limit(*means):
    """By how much two means may differ and still tie."""
    return claims.SPREADS * math.sqrt(sum(m.sd ** 2 / m.runs for m in means))


def plus_minus(mean, form="%.2f"):
    return f"{form % mean.mean} ± {form % mean.sd}"


def steps(threads, low, high):
    inside = [t for t in threads if low <= t <= high]
    return list(zip(inside, inside[1:]))


def assess_throughput(study):
    rates = {name: study_of.throughput(runs) for name, runs in study.real.items()}
    pool, executor = rates["pool"], rates["executor"]
    holds = vote(pool.mean - TIMES * executor.mean, limit(pool, executor._replace(sd=TIMES * executor.sd)))
    text = f"{pool.mean / executor.mean:.2f} times: " + claims.join(
        f"{NAMES[name]} {plus_minus(rate, '%.1f')}" for name, rate in rates.items()) + " requests/s"
    return Finding(decide({"rates": [holds]}), text + (
        f". asyncio makes an executor of {own_threads()} threads on this machine if it is not given one; on one "
        "of 12 cores it has 16"))


def own_threads():
    """As asyncio's own executor computes it (Python 3.8 and later)."""
    return min(32, (os.cpu_count() or 1) + 4)


def slope(study, contestant, trace, a, b):
    """How much the speed-up rises for each thread more."""
    first, second = (study_of.speed_up(study, contestant, trace, t) for t in (a, b))
    spread = math.sqrt(first.sd ** 2 + second.sd ** 2) / (b - a)
    return study_of.Mean((second.mean - first.mean) / (b - a), spread, first.runs)


def largest(study):
    return max(study.extent.traces)


def assess_slope(study):
    groups, of_largest = {}, []
    for trace in study.extent.traces:
        slopes = [slope(study, "pool", trace, a, b) for a, b in steps(study.extent.threads, 1, 16)]
        groups[trace] = [vote(s.mean - 1, limit(s)) for s in slopes]
        of_largest = slopes
    votes = [v for group in groups.values() for v in group]
    return Finding(decide(groups), f"above 1 at {votes.count(1)} of {len(votes)} steps, below at "
                   f"{votes.count(-1)}, within the spread at {votes.count(0)}. {study.extent.traces[-1]} URLs, "
                   "steps up to 16 threads: " + claims.join(plus_minus(s) for s in of_largest))


def assess_smaller_gains(study):
    groups, texts = {}, []
    for trace in study.extent.traces:
        before = slope(study, "pool", trace, 8, 16)
        after = [slope(study, "pool", trace, a, b) for a, b in steps(study.extent.threads, 16, 64)]
        groups[trace] = [vote(before.mean - s.mean, limit(before, s)) for s in after]
        texts.append(f"{trace} URLs: {before.mean:.2f}, then " + " and ".join(f"{s.mean:.2f}" for s in after))
    return Finding(decide(groups), "slope from 8 to 16 threads, then at each further step: " + "; ".join(texts))


def assess_flat(study):
    groups, texts = {}, []
    for trace in study.extent.traces:
        a, b = (study_of.speed_up(study, "executor", trace, t) for t in (16, 64))
        groups[trace] = [vote(FLAT * a.mean - b.mean, limit(a._replace(sd=FLAT * a.sd), b))]
        texts.append(f"{trace} URLs: {a.mean:.1f} and {b.mean:.1f}")
    cores = study_of.cores_used(study.runs["executor", largest(study), study.extent.threads[-1]])
    return Finding(decide(groups), "speed-up with 16 and 64 threads: " + "; ".join(texts)
                   + f". With 64 threads Python used {cores:.2f} cores of the one that its global lock permits")


def assess_efficiency(study):
    groups, texts = {}, []
    for trace in study.extent.traces:
        line = {t: study_of.efficiency(study, "pool", trace, t) for t in study.extent.threads if t <= 8}
        groups[trace] = [vote(line[b].mean - line[a].mean + FALL, limit(line[a], line[b]))
                         for a, b in zip(line, list(line)[1:])]
        texts.append(f"{trace} URLs: " + claims.join(f"{e.mean:.2f}" for e in line.values()))
    return Finding(decide(groups), "up to 8 threads: " + "; ".join(texts))


def assess_slow_fall(study):
    groups, texts = {}, []
    for trace in study.extent.traces:
        line = {t: study_of.efficiency(study, "pool", trace, t) for t in study.extent.threads if t >= 8}
        pairs = list(zip(line.values(), list(line.values())[1:]))
        groups[trace, "falls"] = [vote(a.mean - b.mean, limit(a, b)) for a, b in pairs]
        groups[trace, "slowly"] = [vote(b.mean - SLOW * a.mean, limit(a._replace(sd=SLOW * a.sd), b))
                                   for a, b in pairs]
        texts.append(f"{trace} URLs: " + claims.join(f"{e.mean:.2f}" for e in line.values()))
    return Finding(decide(groups), "from 8 threads on: " + "; ".join(texts))


def assess_weak_scaling(study):
    first, second = study.extent.weak
    a, b = study_of.efficiency(study, "pool", *first), study_of.efficiency(study, "pool", *second)
    holds = vote(b.mean - WEAK * a.mean, limit(a._replace(sd=WEAK * a.sd), b))
    own = [study_of.efficiency(study, "sunproxyd", *pair) for pair in (first, second)]
    return Finding(decide({"weak": [holds]}),
                   f"efficiency {plus_minus(a)} with {first[0]} URLs and {first[1]} threads, {plus_minus(b)} with "
                   f"{second[0]} and {second[1]} ({b.mean / a.mean:.3f} of it); sunproxyd {own[0].mean:.2f} and "
                   f"{own[1].mean:.2f}")


def ratio_of(study, case, other):
    """Of two cases of the table, measured in turns: case over other."""
    pairs = zip(study.table[case], study.table[other])
    return study_of.mean_of([a / b for a, b in pairs])


def assess_alignment(study):
    groups, texts = {}, []
    for lookups in study_of.LOOKUPS:
        ratio = ratio_of(study, ("aligned", "mutex", 16, lookups, study_of.PAPER_ENTRIES),
                         ("misaligned", "mutex", 16, lookups, study_of.PAPER_ENTRIES))
        groups[lookups] = [vote(ratio.mean - ALIGNED, limit(ratio))]
        texts.append(f"{100 * (ratio.mean - 1):+.1f} ± {100 * ratio.sd:.1f} % with {lookups} % lookups")
    many = [ratio_of(study, ("aligned", "mutex", 16, lookups, study.extent.many_entries),
                     ("misaligned", "mutex", 16, lookups, study.extent.many_entries)) for lookups in study_of.LOOKUPS]
    return Finding(decide(groups), f"{study_of.PAPER_ENTRIES} entries, {study_of.TABLE_THREADS} threads, aligned "
                   "over misaligned: " + claims.join(texts) + f"; {study.extent.many_entries} entries: "
                   + " and ".join(f"{100 * (r.mean - 1):+.1f} ± {100 * r.sd:.1f} %" for r in many))


def assess_locks(study):
    groups, texts = {}, []
    for lookups in study_of.LOOKUPS:
        for parts, what in ((study_of.NODES, "each per node"), (1, "one read-write lock for all")):
            ratio = ratio_of(study, ("as-is", "rwlock", parts, lookups, study_of.PAPER_ENTRIES),
                             ("as-is", "mutex", study_of.NODES, lookups, study_of.PAPER_ENTRIES))
            if parts == study_of.NODES:
                groups[lookups] = [vote(ratio.mean - 1, limit(ratio))]
            texts.append(f"{ratio.mean:.2f} ± {ratio.sd:.2f} with {lookups} % lookups, {what}")
    return Finding(decide(groups),
                   "operations per second of CPU time over those of a mutex per node: " + claims.join(texts))


ABOUT, SOURCE = "parallel", "Parallelism"
CORES = os.cpu_count() or 1
CORES_NOTE = (
    f"This machine has {CORES} core{'' if CORES == 1 else 's'}. Fetches wait for their origin and need no core "
    "meanwhile, so the claims on speed-up, efficiency and weak scaling are those of the latency, up to where the CPU "
    "time of a fetch, 31 times as large beside the scaled latency as beside the web's, fills the cores. This lowers "
    "the figures at 32 and 64 threads. The claims on the table, on alignment and on locks are affected throughout: "
    "no more threads than cores use it at once, so contention and false sharing are smaller than with 16 cores.")


CLAIMS = [
    Claim(ABOUT, SOURCE, f"At 64 threads {PUBLISHED[0]} requests/s against asyncio's {PUBLISHED[1]}",
          f"the pool serves at least {TIMES} times as many (3.2 times, rounded), with a mean latency of 0.5 s",
          assess_throughput),
    Claim(ABOUT, SOURCE, "The speed-up has a slope above 1 up to 16 threads",
          "each step of threads, with each trace", assess_slope),
    Claim(ABOUT, SOURCE, "More than 16 threads gain less",
          "slope of each further step against that from 8 to 16, with each trace", assess_smaller_gains),
    Claim(ABOUT, SOURCE, "asyncio's speed-up is flat after 8 to 16 threads",
          f"64 threads have at most {FLAT} times the speed-up of 16, with each trace", assess_flat),
    Claim(ABOUT, SOURCE, "Efficiency is flat or rises up to 8 threads",
          f"it does not fall by more than {FALL} at any step, with each trace", assess_efficiency),
    Claim(ABOUT, SOURCE, "Then it falls slowly",
          f"each step falls, and keeps at least {100 * SLOW:.0f} %, with each trace", assess_slow_fall),
    Claim(ABOUT, SOURCE, "Nearly weak scaling: 0.81 with 328 requests and 32 threads, 0.79 with 656 and 64",
          f"the second is at least {WEAK} of the first", assess_weak_scaling),
    Claim(ABOUT, SOURCE, "A table with entries aligned to cache lines is about 9 % more efficient",
          f"at least {100 * (ALIGNED - 1):.1f} % more operations per second of CPU time, half of that, with each "
          "share of lookups",
          assess_alignment),
    Claim(ABOUT, SOURCE, "Read-write locks beat one mutex per node",
          "one of each per node, with each share of lookups", assess_locks),
]


def assess(study):
    """The rows of all claims."""
    return [Row(claim, claim.assess(study), None) for claim in CLAIMS]
