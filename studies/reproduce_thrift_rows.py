"""The table of the Thrift study: its figures and stated results, the criteria, and the verdicts.

Where the text says "substantial", "very good" or "optimum" without a number, the number is chosen
here. A hit ratio without chance is equal in all runs, and compared as a number. Do not change a
criterion because of a result.
"""

import math

from paper_table import Paper, Row, cannot
from replays import mean, ratios, times
from reproduce_thrift import LOOP, LOOP_CAPACITY
from statements import all_in, describe_groups, groups_of_pairs, join, name, plus_minus, steps_up
from verdict import (Comparison, above, below, decide, decide_exactly, decide_groups, equal,
                     of_mean, paired)

# The size for which the text states the optimum, in KB, and that optimum: all but the first request
# for a page.
OPTIMUM_KB, OPTIMUM = 192, 100 * 125 / 150
# "Optimum": within this many points of it.
NEAR = 5
# A larger cache may have a hit ratio that is lower by this many points at a step, or a time that is
# longer by this share of that without a cache.
STEP_POINTS, STEP_TIME = 2, 0.02
# "Substantial": a hit ratio by this many points, a time by this share of that without a cache.
POINTS, SHARE = 10, 0.2
# "Negligible": the time that remains is at most this share of that without a cache; the optimum is
# 1/6.
REMAINS = 0.25
# "An order of magnitude".
MAGNITUDE = 10

ORDER = ["lru", "rand", "lfu"]


def hits(part, policy, kb):
    return ratios(part.runs[policy, kb])


def ms(part, policy, kb):
    return times(part.runs[policy, kb])


def by_size(part, values, form):
    """"64 KB: LRU 12.0, RAND ...; 128 KB: ..." """
    return join((f"{kb} KB: " + join(f"{name(policy)} {plus_minus(values(part, policy, kb), form)}"
                                     for policy in part.policies) for kb in part.sizes), "; ")


def never_falls(part, values, slack, sign):
    """Comparisons for "it improves with the size": no step is worse by the slack, the last size is
    better than the first."""
    found = {}
    for policy in part.policies:
        steps = steps_up(part.sizes, lambda kb, p=policy: values(part, p, kb), sign)
        found[policy] = [Comparison(one.estimate, -slack, math.inf)
                         for one in steps[:-1]] + steps[-1:]
    return found


# ---- the statements ------------------------------------------------------------------------------

def evictions_needed(study):
    largest = max(study.extent.kb)
    totals = {workload: sum(sizes) for workload, sizes in study.bytes.items()}
    return Row("Experiment Description",
               "each size is smaller than all pages of each workload together",
               "bytes of all pages exceed the largest cache",
               join(f"{workload}: {total / 1024:.0f} KB" for workload, total in totals.items())
               + f"; largest cache {largest} KB. The pages are made here so that this is true",
               decide_exactly(all(total > largest << 10 for total in totals.values())))


def hit_and_miss(run):
    """Mean times of a run's hits and of its other requests, in milliseconds; None without hits."""
    hit = [us / 1000 for us, outcome in zip(run.us, run.outcomes) if outcome == "hit"]
    miss = [us / 1000 for us, outcome in zip(run.us, run.outcomes) if outcome != "hit"]
    return (mean(hit), mean(miss)) if hit and miss else None


def magnitude(study):
    found, texts = [], []
    for workload, part in study.parts.items():
        pairs = [pair for pair in map(hit_and_miss, part.runs["lru", part.sizes[-1]]) if pair]
        hit, miss = zip(*pairs) if pairs else ([0.0], [0.0])
        found.append(above(paired(miss, hit, MAGNITUDE)))
        texts.append(f"{workload}: a hit takes {plus_minus(hit, '%.2f')} ms, a miss "
                     f"{plus_minus(miss)} ms")
    return Row("Introduction",
               "the cache is an order of magnitude faster than the origin (an expectation)",
               f"a miss takes more than {MAGNITUDE} times a hit (LRU, the largest cache)",
               join(texts, "; ") + ". The origin's latency is chosen here", decide(found))


def loop(study):
    lru, rand = study.loop["lru"], study.loop["rand"]
    return Row("Cache Replacement Policies",
               "A-B-C-D in a loop and three pages in the cache: LRU always evicts the "
               "required page; RAND has no such extreme case",
               "LRU hits nothing, RAND something (simulated)",
               f"{len(LOOP)} requests, capacity {LOOP_CAPACITY}: LRU {lru:.0f} hits, RAND "
               f"{rand:.1f}",
               decide_exactly(lru == 0 and rand > 0))


def expected_random(study):
    part = study.parts["random"]
    groups = {(policy, "rand"): [Comparison(paired(hits(part, policy, kb),
                                                   hits(part, "rand", kb)), -STEP_POINTS,
                                            math.inf) for kb in part.sizes]
              for policy in ("lru", "lfu")}
    return Row("Experiment Description",
               "LRU and LFU are at least as good as RAND on the random workload (an "
               "expectation)",
               f"no hit ratio is lower than RAND's by more than {STEP_POINTS} points, at any size",
               by_size(part, hits, "%.1f") + " %", all_in(groups))


def expected_repeated(study):
    part = study.parts["repeated"]
    groups = groups_of_pairs([("lru", "rand"), ("lfu", "rand")], part.sizes,
                             lambda p, kb: hits(part, p, kb))
    return Row("Experiment Description",
               "LRU and LFU outperform RAND on the repeated workload (an expectation; the "
               "text's figure 2 shows otherwise for LFU)",
               "a higher hit ratio at some sizes, a lower one at none",
               describe_groups(groups), decide_groups(groups))


def rises_random(study):
    part = study.parts["random"]
    groups = never_falls(part, hits, STEP_POINTS, 1)
    return Row("Figure 1", "random workload: the hit ratio of all policies rises with the size",
               f"no step falls by {STEP_POINTS} points, and the largest cache hits more than the "
               "smallest",
               by_size(part, hits, "%.1f") + " %", all_in(groups))


def small_random(study):
    part = study.parts["random"]
    kb = part.sizes[0]
    found = [above(paired(hits(part, policy, kb), hits(part, "lru", kb)))
             for policy in ("rand", "lfu")]
    return Row("Figure 1",
               "random workload: with the smallest cache RAND and LFU hit more than LRU",
               f"both hit ratios are higher with {kb} KB",
               join(f"{name(p)} {plus_minus(hits(part, p, kb))} %" for p in part.policies),
               decide(found))


def large_pages(study):
    every, without = study.refusing
    half = study.extent.kb[0] // 2
    return Row("Figure 1, Result Analysis",
               "the reason: with a small cache a large page evicts several smaller ones, "
               "and LRU hits less",
               f"LRU with {2 * half} KB hits more if pages over {half} KB are not stored "
               "(simulated)",
               f"{every:.1f} % with all pages, {without:.1f} % without the large ones",
               decide_exactly(without > every))


def large_random(study):
    part = study.parts["random"]
    found = [above(paired(hits(part, "lru", kb), hits(part, policy, kb)))
             for kb in part.sizes if kb >= OPTIMUM_KB for policy in ("rand", "lfu")]
    return Row("Figure 1", "random workload: with a sufficiently large cache LRU is the best",
               f"the highest hit ratio with {OPTIMUM_KB} KB and more",
               join((f"{kb} KB: " + join(f"{name(p)} {plus_minus(hits(part, p, kb))} %"
                                         for p in part.policies)
                     for kb in part.sizes if kb >= OPTIMUM_KB), "; "), decide(found))


def optimum(study):
    part = study.parts["repeated"]
    found = [equal(of_mean([ratio - OPTIMUM for ratio in hits(part, policy, OPTIMUM_KB)]), NEAR)
             for policy in ("lru", "rand")]
    return Row("Figure 2", f"repeated workload: LRU and RAND have the optimum with {OPTIMUM_KB} KB",
               f"within {NEAR} points of {OPTIMUM:.1f} %, which is every request but the first for "
               "each page",
               join(f"{name(p)} {plus_minus(hits(part, p, OPTIMUM_KB))} %"
                    for p in ("lru", "rand")), decide(found))


def lfu_worse(study):
    part = study.parts["repeated"]
    found = [above(paired(hits(part, policy, kb), hits(part, "lfu", kb)))
             for policy in ("lru", "rand")
             for kb in part.sizes]
    return Row("Figure 2",
               "repeated workload: LFU is worse than the other two, even with the largest cache",
               "the lowest hit ratio, at each size", by_size(part, hits, "%.1f") + " %",
               decide(found))


def lfu_flat(study):
    part = study.parts["repeated"]
    first = part.sizes[0]
    gains = [b - a for a, b in zip(hits(part, "lfu", first), hits(part, "lfu", OPTIMUM_KB))]
    return Row("Figure 2",
               "repeated workload: LFU's hit ratio does not rise substantially with the size",
               f"from {first} to {OPTIMUM_KB} KB by less than {POINTS} points",
               f"by {plus_minus(gains)} points (LRU "
               + plus_minus([b - a for a, b in zip(hits(part, "lru", first),
                                                   hits(part, "lru", OPTIMUM_KB))]) + ")",
               decide([below(of_mean(gains), POINTS)]))


def none_slowest(workload, place):
    def assess(study):
        part = study.parts[workload]
        found = [above(paired(times(part.none), ms(part, policy, kb))) for policy in part.policies
                 for kb in part.sizes]
        slowest = max(mean(ms(part, policy, kb)) for policy in part.policies for kb in part.sizes)
        return Row(place, f"{workload} workload: the response time is worst without a cache",
                   "longer than with each policy at each size",
                   f"{plus_minus(times(part.none))} ms without a cache; at most {slowest:.1f} ms "
                   "with one",
                   decide(found))
    return assess


def falls_with_size(workload, place):
    def assess(study):
        part = study.parts[workload]
        groups = never_falls(part, ms, STEP_TIME * mean(times(part.none)), -1)
        return Row(place, f"{workload} workload: the response time falls as the cache grows, "
                   "whatever the policy",
                   f"no step is slower by {100 * STEP_TIME:.0f} % of the time without a cache, and "
                   "the largest cache is faster than the smallest", by_size(part, ms, "%.1f")
                   + " ms", all_in(groups))
    return assess


def share_saved(part, policy, first, last):
    """By how much the time falls from one size to another, of that without a cache; one a run."""
    return [(a - b) / none for a, b, none in zip(ms(part, policy, first), ms(part, policy, last),
                                                 times(part.none))]


def not_substantial(study):
    part = study.parts["random"]
    first = part.sizes[0]
    saved = {policy: share_saved(part, policy, first, OPTIMUM_KB) for policy in part.policies}
    return Row("Figure 3", "random workload: the response time does not fall substantially",
               f"from {first} to {OPTIMUM_KB} KB by less than {100 * SHARE:.0f} % of the time "
               "without a cache",
               join(f"{name(p)} {plus_minus([100 * s for s in share])} %"
                    for p, share in saved.items()),
               decide([below(of_mean(share), SHARE) for share in saved.values()]))


def negligible(study):
    part = study.parts["repeated"]
    remains = {policy: [100 * t / none for t, none in zip(ms(part, policy, OPTIMUM_KB),
                                                          times(part.none))]
               for policy in ("lru", "rand")}
    return Row("Figure 4",
               "repeated workload: LRU and RAND give a very good response time as the cache grows",
               f"with {OPTIMUM_KB} KB at most {100 * REMAINS:.0f} % of that without a cache",
               join(f"{name(p)} {plus_minus(r)} %" for p, r in remains.items()),
               decide([below(of_mean(r), 100 * REMAINS) for r in remains.values()]))


def lfu_fast_when_small(study):
    part = study.parts["repeated"]
    kb = part.sizes[0]
    margin = SHARE * mean(times(part.none))
    found = [above(paired(ms(part, policy, kb), ms(part, "lfu", kb)), margin)
             for policy in ("lru", "rand")]
    return Row("Figure 4", "repeated workload: LFU's response time is substantially smaller with "
               "the smallest cache",
               f"with {kb} KB by more than {100 * SHARE:.0f} % of the time without a cache",
               join(f"{name(p)} {plus_minus(ms(part, p, kb))} ms" for p in part.policies),
               decide(found))


def lfu_gains_less(study):
    part = study.parts["repeated"]
    first = part.sizes[0]
    saved = {policy: share_saved(part, policy, first, OPTIMUM_KB) for policy in part.policies}
    found = [above(paired(saved[policy], saved["lfu"])) for policy in ("lru", "rand")]
    return Row("Figure 4",
               "repeated workload: LFU's response time falls less with the size than the others'",
               f"from {first} to {OPTIMUM_KB} KB",
               join(f"{name(p)} by {plus_minus([100 * s for s in share])} % of no cache"
                    for p, share in saved.items()),
               decide(found))


def order(figure, values, none, sign):
    """The order of conclusion 1 by hit ratio or by response time."""
    def assess(study):
        found, texts = [], []
        for workload, part in study.parts.items():
            lines = [values(part, policy, OPTIMUM_KB) for policy in ORDER] + [none(part)]
            found += [above(of_mean([sign * (a - b) for a, b in zip(x, y)]))
                      for x, y in zip(lines, lines[1:])]
            texts.append(f"{workload}: " + join(f"{label} {plus_minus(line)}"
                                                for label, line
                                                in zip(["LRU", "RAND", "LFU", "none"], lines)))
        return Row("Conclusion 1", f"the order is LRU, Random, LFU, no cache; by {figure}",
                   f"each better than the next, with {OPTIMUM_KB} KB (the appropriate size of the "
                   "text), on both workloads", join(texts, "; "), decide(found))
    return assess


def depends(study):
    part = study.parts["random"]
    spread = {kb: max(mean(hits(part, p, kb)) for p in part.policies) - min(mean(hits(part, p, kb))
                                                                           for p in part.policies)
              for kb in part.sizes}
    best = {kb: max(part.policies, key=lambda p, size=kb: mean(hits(part, p, size)))
            for kb in part.sizes}
    change = [b - a for a, b in zip(hits(part, "lru", part.sizes[0]),
                                    hits(part, "lru", part.sizes[-1]))]
    other = study.parts["repeated"]
    found = [above(of_mean(change)), above(paired(hits(other, "lru", OPTIMUM_KB),
                                                  hits(part, "lru", OPTIMUM_KB)))]
    return Row("Conclusion 2", "the performance depends on workload and size; LRU gets better as "
               "the size increases",
               "LRU's hit ratio rises from the smallest to the largest cache, and differs between "
               "the workloads",
               f"LRU rises by {plus_minus(change)} points; the best policy by size: "
               + join(f"{kb} KB {name(p)} (spread {spread[kb]:.1f} points)"
                      for kb, p in best.items())
               + f"; with {OPTIMUM_KB} KB LRU hits {plus_minus(hits(part, 'lru', OPTIMUM_KB))} % "
               f"and {plus_minus(hits(other, 'lru', OPTIMUM_KB))} %", decide(found))


def more_memory(study):
    found, texts = [], []
    for workload, part in study.parts.items():
        first, last = part.sizes[0], part.sizes[-1]
        for policy in part.policies:
            found.append(above(paired(hits(part, policy, last), hits(part, policy, first))))
            found.append(above(paired(ms(part, policy, first), ms(part, policy, last))))
        texts.append(f"{workload}: " + join(
            f"{name(p)} {mean(hits(part, p, first)):.1f} to {mean(hits(part, p, last)):.1f} %, "
            f"{mean(ms(part, p, first)):.1f} to {mean(ms(part, p, last)):.1f} ms"
            for p in part.policies))
    return Row("Conclusion 3",
               "more memory improves response time and hit ratio with any algorithm",
               "from the smallest to the largest cache, on both workloads", join(texts, "; "),
               decide(found))


# ---- ours ----------------------------------------------------------------------------------------

def other(study, workload, policy, kb):
    return study.others[workload, policy, kb]


def describe_others(study, workload, sizes):
    return join((f"{kb} KB: "
                 + join(f"{name(policy)} {plus_minus(other(study, workload, policy, kb))}"
                        for policy in ORDER) for kb in sizes), "; ") + " %"


def others_small(study):
    kb = study.extent.kb[0]
    found = [above(paired(other(study, "random", policy, kb), other(study, "random", "lru", kb)))
             for policy in ("rand", "lfu")]
    return Row(f"{study.extent.others} other workloads",
               "random workload: with the smallest cache RAND and LFU hit more "
               "than LRU, whatever pages and requests are drawn",
               f"in the mean, with {kb} KB (simulated)",
               describe_others(study, "random", [kb]), decide(found), ours=True)


def others_large(study):
    sizes = [kb for kb in study.extent.kb if kb >= OPTIMUM_KB]
    found = [above(paired(other(study, "random", "lru", kb), other(study, "random", policy, kb)))
             for kb in sizes for policy in ("rand", "lfu")]
    return Row(f"{study.extent.others} other workloads",
               "random workload: with a large cache LRU is the best, whatever "
               "is drawn", f"in the mean, with {OPTIMUM_KB} KB and more (simulated)",
               describe_others(study, "random", sizes), decide(found), ours=True)


def others_repeated(study):
    found = [equal(of_mean([ratio - OPTIMUM for ratio in other(study, "repeated", policy,
                                                               OPTIMUM_KB)]), NEAR)
             for policy in ("lru", "rand")]
    found += [above(paired(other(study, "repeated", policy, kb),
                           other(study, "repeated", "lfu", kb)))
              for policy in ("lru", "rand") for kb in study.extent.kb]
    return Row(f"{study.extent.others} other workloads",
               f"repeated workload: LRU and RAND have the optimum with "
               f"{OPTIMUM_KB} KB and LFU is the worst at each size, whatever is drawn",
               f"in the mean; the optimum within {NEAR} points (simulated)",
               describe_others(study, "repeated", study.extent.kb), decide(found), ours=True)


COMPLEXITY = cannot(
    "Cache Replacement Policies",
    "get and put in O(1) with LRU and RAND; put of LFU in O(n) when the cache is full",
    "properties of the authors' data structures; the report measures no times of operations")
CURVES = cannot(
    "Figures 1 to 4, values", "the curves",
    "the text has no numbers, and the figures are not in it; the statements on them follow")
LFU_O1 = cannot("Conclusion 1", "LFU would perform better with a put in O(1)",
                "a supposition of the authors, without a measurement; LFU of sunproxy is another "
                "implementation")

STATEMENTS = [
    magnitude, loop, COMPLEXITY, evictions_needed, expected_random, expected_repeated, CURVES,
    rises_random,
    small_random, large_pages, large_random, optimum, lfu_worse, lfu_flat,
    none_slowest("random", "Figure 3"),
    falls_with_size("random", "Figure 3"), not_substantial, negligible,
    falls_with_size("repeated", "Figure 4"),
    lfu_fast_when_small, lfu_gains_less, order("hit ratio", hits, lambda part: ratios(part.none),
                                               1),
    order("response time", ms, lambda part: times(part.none), -1), LFU_O1, depends, more_memory,
    others_small, others_large, others_repeated,
]

SETUP = (
    "25 pages and 150 requests a workload: 150 random draws, and five sets of five pages, each "
    "page six times in random order (datasets/thrift). The report does not state the sizes of its "
    "pages; those here are log-normal with a median of 12 KB, so that each set fits into 192 KB, "
    "which the optimum of figure 2 needs, and all pages exceed 256 KB.",
    "The report names 64, 192 and 256 KB where it describes the experiment and 64, 128 and 192 KB "
    "where it describes the results; all four are run, {runs} times each, live over RPC. The "
    "report's servers fetched from the web over a wireless network; here an origin on the same "
    "machine has a latency drawn once for each URL ({latency}) and {bandwidth} bytes per second "
    "for each connection. RAND draws each victim anew.")


def rows(study):
    return [one if isinstance(one, Row) else one(study) for one in STATEMENTS]


def paper(study, seconds):
    return Paper("thrift", "RPC-Based Proxy Server (Thrift)",
                 [text.format(**study.extent._asdict()) for text in SETUP], rows(study), seconds)
