"""The table of the Sun RPC paper: its figures, tables and stated results, the criteria, and the
verdicts.

Where the text says "significant" or "almost" without a number, the number is chosen here. Times are
compared run by run, with equal seeds; a hit ratio without chance is equal in all runs, and compared
as a number. Do not change a criterion because of a result.
"""

import collections
import itertools
import math

import reproduce_published as published
import reproduce_sunrpc_data as data
from paper_table import Paper, Row, cannot
from replays import mean, times
from reproduce_sunrpc import ALL, ONE
from reproduce_sunrpc_behaviour import (belady, best_hits, closer_lines, hit_then_missed,
                                        proportional_lines, stack,
                                        variable_lines)
from reproduce_sunrpc_terms import correlation, hits, label, ms, place
from statements import (all_in, describe_groups, groups_of_pairs, join, name, plus_minus,
                        steps_up)
from verdict import (above, all_of, below, decide, decide_exactly, decide_groups, equal, of_mean,
                     paired,
                     within_factors)

# "No difference" between times: this share of the time without a cache.
NOISE = 0.02
# "No significant gain" beyond a size: so much of the time that the largest cache saves is saved.
SATURATED = 0.95
# "Almost inverse": the coefficient of correlation.
MIRROR = -0.95
# A hit ratio is that of figure 8 within N points: of a policy without chance on the authors'
# requests, of RAND there (the paper has one run of it), and of requests that were made here.
EXACT_POINTS, RAND_POINTS, MADE_POINTS = 1, 3, 5
TIMES = {"dataset1": 4, "dataset2": 2}
KNEE = {"dataset1": 20, "dataset2": 30}
ORDERS = {"dataset1": ["lru", "lfu", "fifo", "rand", "maxs"],
          "dataset2": ["lru", "fifo", "lfu", "rand", "maxs"]}


def order_of(part):
    return ORDERS["dataset2" if part.name == "dataset2" else "dataset1"]


def faster(part, pairs):
    """Groups for "the first of each pair is faster, at each size"."""
    return groups_of_pairs([(b, a) for a, b in pairs], part.sizes,
                           lambda p, size: ms(part, p, size))


def describe_faster(groups):
    return describe_groups(groups, lambda pair: f"{name(pair[1])} before {name(pair[0])}")


def by_policy(part, size, form="%.1f"):
    return join(f"{name(p)} {plus_minus(ms(part, p, size), form)}" for p in part.policies)


# ---- 4.2.1: access time --------------------------------------------------------------------------

def no_cache(part):
    factor = TIMES["dataset2" if part.name == "dataset2" else "dataset1"]
    size = part.sizes[0]
    slowest = max(part.policies, key=lambda p: mean(ms(part, p, size)))
    ratio = [none / slow for none, slow in zip(times(part.none), ms(part, slowest, size))]
    return Row(place("4.2.1", part),
               f"without a cache it takes {factor} times the time of the slowest policy with the "
               "smallest cache", f"{factor} times, rounded: from {factor - 0.5} to {factor + 0.5}",
               f"{plus_minus(ratio, '%.2f')} times ({mean(times(part.none)):.1f} ms; "
               f"{name(slowest)} at {label(size)} {mean(ms(part, slowest, size)):.1f} ms)",
               decide(within_factors(paired, times(part.none), ms(part, slowest, size),
                                     factor - 0.5, factor + 0.5)))


def falls(part):
    groups = {policy: steps_up(part.sizes, lambda size, p=policy: ms(part, p, size), -1)
              for policy in part.policies}
    return Row(place("4.2.1, Figure 7", part),
               "the access time falls as the cache grows, for all policies",
               "no step to the next size takes longer, and some are faster",
               describe_groups(groups, name),
               decide_groups(groups))


def spreads(part):
    """{size: [slowest less fastest policy of each run, ms]}"""
    return {size: [max(line) - min(line)
                   for line in zip(*(ms(part, p, size) for p in part.policies))]
            for size in (ONE, *part.sizes, ALL)}


def describe_spreads(part):
    return "slowest less fastest: " + join(f"{plus_minus(line)} ms at {label(size)}"
                                           for size, line in spreads(part).items())


def spread_falls(part):
    steps = steps_up(part.sizes, lambda size: spreads(part)[size], -1)
    return Row(place("4.2.1, Figure 7", part),
               "the difference between the policies falls as the cache grows",
               f"from {label(part.sizes[0])} on, no step is against it, and some are for it",
               describe_spreads(part),
               decide_groups({"spread": steps}))


def spread_peaks(part):
    found = spreads(part)
    first = part.sizes[0]
    return Row(place("4.2.1, Figure 7", part),
               "the difference rises rapidly and is largest at 10 %",
               "larger at 10 % than at each other size, 1 URL and 100 % among them",
               f"{plus_minus(found[first])} ms at {label(first)}, at most "
               f"{max(mean(line) for size, line in found.items() if size != first):.1f} ms "
               "elsewhere",
               decide([above(paired(found[first], line)) for size, line in found.items()
                       if size != first]))


def spread_ends(part):
    found, margin = spreads(part), NOISE * mean(times(part.none))
    equal_hits = all(len({hits(part, p, size)[0] for p in part.policies}) == 1
                     for size in (ONE, ALL))
    return Row(place("4.2.1, Figure 7", part), "the difference is zero with 1 entry and with 100 %",
               f"less than {100 * NOISE:.0f} % of the time without a cache",
               join(f"{plus_minus(found[size], '%.2f')} ms at {label(size)}" for size in (ONE, ALL))
               + f" ({margin:.2f} ms are the margin); hit ratios of all policies are "
               + ("equal at both" if equal_hits else "not equal"),
               decide([equal(of_mean(found[size]), margin) for size in (ONE, ALL)]))


def knee(part):
    size = KNEE["dataset2" if part.name == "dataset2" else "dataset1"]
    last = part.sizes[-1]
    lines = {policy: [(none - a) - SATURATED * (none - b)
                      for none, a, b in zip(times(part.none), ms(part, policy, size),
                                            ms(part, policy, last))]
             for policy in part.policies}
    none = mean(times(part.none))
    share = {p: (none - mean(ms(part, p, size))) / (none - mean(ms(part, p, last)))
             for p in part.policies}
    return Row(place("4.2.1, Figure 7", part), f"no significant gain in time after {size} %",
               f"at {size} % each policy saves {100 * SATURATED:.0f} % of what it saves at "
               f"{last} %",
               join(f"{name(p)} {100 * s:.1f} %" for p, s in share.items()),
               decide([above(of_mean(line)) for line in lines.values()]))


def lru_best(part):
    groups = faster(part, [("lru", other) for other in part.policies if other != "lru"])
    return Row(place("4.2.1, Figure 7", part), "LRU performs best at all sizes",
               "faster than each other policy; no size is against it, and some are for it",
               describe_faster(groups),
               decide_groups(groups))


def order(part):
    """RAND is excepted, as in the paper."""
    strict = [policy for policy in order_of(part) if policy != "rand"]
    groups = faster(part, list(itertools.combinations(strict, 2)))
    where = order_of(part).index("rand")
    before, after = order_of(part)[where - 1], order_of(part)[where + 1]
    inside = sum(mean(ms(part, before, size)) <= mean(ms(part, "rand", size))
                 <= mean(ms(part, after, size))
                 for size in part.sizes)
    return Row(place("4.2.1, Figure 7", part), "the order is " + join(map(name, order_of(part)))
               + ", RAND with exceptions" * (part.name != "dataset2"),
               "each policy but RAND is faster than those behind it; no size is against it, and "
               "some are for it",
               f"{describe_faster(groups)}. RAND stands between its neighbours at {inside} of "
               f"{len(part.sizes)} sizes. At {label(part.sizes[0])}: "
               f"{by_policy(part, part.sizes[0])} ms", decide_groups(groups))


def maxs_worst(part):
    groups = faster(part, [(other, "maxs") for other in part.policies if other != "maxs"])
    return Row(place("4.2.1, Figure 7", part), "MAXS performs worst",
               "slower than each other policy; no size is "
               "against it, and some are for it", describe_faster(groups), decide_groups(groups))


def misses_of_busiest(part, policy, size):
    found = []
    for run in part.runs[policy, size]:
        top = collections.Counter(run.urls).most_common(1)[0][0]
        found.append(sum(url == top and outcome != "hit"
                         for url, outcome in zip(run.urls, run.outcomes)))
    return found


def ping_pong(part):
    sizes = [size for size in part.sizes if size <= 50]
    found = {(p, size): misses_of_busiest(part, p, size) for p in part.policies for size in sizes}
    groups = {other: [above(paired(found["maxs", size], found[other, size])) for size in sizes]
              for other in part.policies if other != "maxs"}
    return Row(place("4.2.1", part),
               "the reason: MAXS evicts and stores the busiest page again and again",
               f"more misses of the busiest page than each other policy, up to {label(sizes[-1])}",
               "misses of the busiest page at " + join(
                   (f"{label(size)}: " + join(f"{name(p)} {mean(found[p, size]):.0f}"
                                              for p in part.policies)
                    for size in sizes), "; "),
               all_in(groups))


def maxs_between(study):
    first, second = study.parts["dataset1"], study.parts["dataset2"]

    def relative(part, size):
        return [100 * t / none for t, none in zip(ms(part, "maxs", size), times(part.none))]

    found = [above(paired(relative(first, size), relative(second, size))) for size in first.sizes]
    return Row("4.2.1", "MAXS performs relatively better on dataset2 than on dataset1",
               "a smaller share of the time without a cache; no size is against it, and some are "
               "for it",
               join(f"{mean(relative(first, size)):.0f} and {mean(relative(second, size)):.0f} % "
                    f"at {label(size)}"
                    for size in first.sizes), decide_groups({"maxs": found}))


# ---- 4.2.2: hit rate -----------------------------------------------------------------------------

def differences(part, policies):
    """{(policy, size): measured less published, points, one a run}"""
    printed = published.hit_ratios(part.name, part.sizes)
    return {(p, size): [ratio - value for ratio in hits(part, p, size)]
            for p in policies for size, value in zip(part.sizes, printed[p]) if value is not None}


def figure_8(part, policies, points, note=""):
    found = differences(part, policies)
    texts = [f"{name(p)} " + join(f"{mean(line):+.1f}" for (q, _), line in found.items() if q == p)
             for p in policies]
    return Row(place("Figure 8", part),
               f"the hit ratios of {join(map(name, policies))}, read from the figure "
               f"(±{published.READING} points)", f"equal within {points} points",
               "measured less published, points, by size: " + join(texts, "; ") + note,
               decide([equal(of_mean(line), points) for line in found.values()]))


def mirror(part):
    keys = [(p, size) for p in part.policies for size in part.sizes]
    found = [correlation([hits(part, *key)[run] for key in keys],
                         [ms(part, *key)[run] for key in keys])
             for run in range(len(part.none))]
    return Row(place("4.2.2, Figure 8", part),
               "the hit ratio is almost the inverse of the access time",
               f"correlation below {MIRROR} over all policies and sizes",
               f"r = {plus_minus(found, '%.3f')}",
               decide([below(of_mean(found), MIRROR)]))


def maxs_time(part):
    first, last = part.sizes[0], part.sizes[-1]

    def factors(line_of):
        return [a / b for a, b in zip(line_of(first), line_of(last))]

    in_time = factors(lambda size: ms(part, "maxs", size))
    in_misses = factors(lambda size: [100.0 - ratio for ratio in hits(part, "maxs", size)])
    return Row(place("4.2.2", part),
               "with MAXS the access time falls more rapidly than the hit ratio rises, since with "
               "few hits large pages are fetched more often",
               f"from {label(first)} to {label(last)} the time falls by a larger factor than the "
               "misses",
               f"time by {plus_minus(in_time, '%.2f')}, misses by {plus_minus(in_misses, '%.2f')}",
               decide([above(paired([math.log(t) for t in in_time],
                                    [math.log(m) for m in in_misses]))]))


# ---- logs and conclusion -------------------------------------------------------------------------

# The paper has neither the log nor the number of hits.
LOG = "the authors' log, which is not in the paper"


def logged(study):
    part = study.authors
    if not part or not study.log:
        return cannot(LOG, "LRU with 7 URLs: 853 of 997 requests hit",
                      "the log is not at hand")._replace(ours=True)
    own = [run.outcomes for run in part.runs["lru", part.sizes[0]]]
    count = len(own[0])
    differ = sum(a != b for outcomes in own for a, b in zip(outcomes, study.log))
    return Row(LOG, "LRU with 7 URLs: 853 of 997 requests hit (85.6 %)",
               "each request has the outcome of the log: hit, stored, or stored after an eviction",
               f"{part.runs['lru', part.sizes[0]][0].hits:.0f} of {count} hit; {differ} outcomes "
               f"differ in {len(own)} runs",
               decide_exactly(differ == 0), ours=True)


def lfu_depends(study):
    first = study.authors or study.parts["dataset1"]
    second = study.parts["dataset2"]
    groups = {**faster(first, [("lfu", "fifo")]),
              "dataset2": faster(second, [("fifo", "lfu")])["lfu", "fifo"]}
    return Row("Conclusion", "how good LFU is depends on the pattern: better than FIFO on "
               "dataset1, worse on dataset2",
               "faster and slower at some sizes, the reverse at none",
               describe_groups(groups, lambda group: "dataset2" if group == "dataset2"
                               else "dataset1"),
               decide_groups(groups))


def concluded(study, states, assess):
    """A statement of the conclusion that a statement on each data set makes."""
    found = [assess(part) for part in study.parts.values()]
    return Row("Conclusion", states, "the rows above on dataset1 and dataset2",
               join((f"{part.name}: {row.verdict.value}" for part, row in zip(study.parts.values(),
                                                                              found)), "; "),
               all_of(row.verdict for row in found))


STEEP = cannot("4.2.3, Figure 9, dataset2",
               "its frontier is steeper at first than that of dataset1, and its cache is full "
               "earlier", "the requests of dataset2 are not published")
SECONDS = cannot("4.2.1", "without a cache 707.35 s (dataset1) and 633.18 s (dataset2)",
                 "times of the web of that year from the authors' network; the origin here is on "
                 "the same machine")
SUDDEN = cannot("Figure 9, dataset2", "RAND shows a sudden empty space",
                "one run of a policy with chance, and the "
                "requests are not published")
AVERAGE = cannot("Conclusion", "most sites are small, 20 KB on average",
                 "the sizes of the authors' pages are not published")
DECENT = cannot("Conclusion", "FIFO is easy to implement and performs decently",
                "the text has no measure of that; "
                "see the order of the policies")

ACCESS = [no_cache, falls, spread_falls, spread_peaks, spread_ends, knee, lru_best, order,
          maxs_worst]

SETUP = (
    "Two data sets, five policies, capacities in URLs of 10 to 80 % of the distinct ones and, for "
    "the statement on the ends, 1 URL and all of them; {repeats} runs each, live over RPC, every "
    "replay against a daemon with an empty cache. An origin on the same machine has a latency "
    "drawn once for each URL ({latency}) and {bandwidth} bytes per second for each connection; the "
    "paper fetched from the web, {seconds} ms a page.",
    "The authors published the requests of their dataset1, but not the sizes of its pages, and "
    "nothing of dataset2. dataset1 and dataset2 here are made from the paper's figures "
    "(datasets/), so statements that these figures determine are not repeated with them. {authors}")
WITH_AUTHORS = ("The authors' requests are replayed too, with random sizes (1 to 16 KB), so MAXS "
                "on them is left out.")
WITHOUT_AUTHORS = "The authors' requests were not at hand."


def without_maxs(part):
    """The authors' requests: the sizes of their pages are not known, and MAXS depends on them."""
    return part and part._replace(policies=[p for p in part.policies if p != "maxs"])


def access_rows(part):
    return [one(part) for one in ACCESS]


def authors_access_rows(part):
    """Of the authors' requests without MAXS, which the other statements compare with."""
    strict = part._replace(policies=[p for p in part.policies if p != "maxs"])
    return [falls(strict), knee(strict), lru_best(strict), order_without_maxs(strict)]


def order_without_maxs(part):
    groups = faster(part, list(itertools.combinations(["lru", "lfu", "fifo"], 2)))
    return Row(place("4.2.1, Figure 7", part),
               "the order is LRU, LFU, FIFO (RAND and MAXS are left out)",
               "each policy is faster than those behind it; no size is against it, and some are "
               "for it",
               f"{describe_faster(groups)}. At {label(part.sizes[0])}: "
               f"{by_policy(part, part.sizes[0])} ms",
               decide_groups(groups))


def rows(study):
    parts, authors = list(study.parts.values()), without_maxs(study.authors)
    found = [*data.rows(study), SECONDS]
    for part in parts:
        found += access_rows(part)
    if authors:
        found += authors_access_rows(authors)
    found += [ping_pong(parts[0]), maxs_between(study)]
    if authors:
        found += [figure_8(authors, ["lru", "lfu", "fifo"], EXACT_POINTS),
                  figure_8(authors, ["rand"], RAND_POINTS, ". The paper has one run")]
    found.append(figure_8(study.parts["dataset2"], study.parts["dataset2"].policies, MADE_POINTS,
                          ". The requests are made here"))
    found += [mirror(part) for part in parts] + [maxs_time(part) for part in parts]
    for part in [*parts, *([authors] if authors else [])]:
        found += [hit_then_missed(part), stack(part)]
    found += [belady(study), *map(best_hits, [*parts, *([authors] if authors else [])]),
              closer_lines(study), STEEP, SUDDEN]
    lines = authors or parts[0]
    found += [variable_lines(lines), proportional_lines(lines), logged(study), data.skewed(study),
              AVERAGE,
              concluded(study, "LRU is best, whatever the pattern of requests", lru_best),
              lfu_depends(study),
              DECENT, concluded(study, "MAXS performs worst with a capacity in URLs", maxs_worst)]
    return sort_ours(found)


def sort_ours(found):
    """Those of the paper first."""
    return [row for row in found if not row.ours] + [row for row in found if row.ours]


def paper(study, seconds):
    seconds_a_page = join((f"{1000 * published.NO_CACHE_SECONDS[d] / published.REQUESTS[d]:.0f}"
                           for d in ("dataset1", "dataset2")), " and ")
    setup = [text.format(**study.extent._asdict(), seconds=seconds_a_page,
                         authors=WITH_AUTHORS if study.authors else WITHOUT_AUTHORS)
             for text in SETUP]
    return Paper("sunrpc", "RPC-Based Web Proxy Server: Implementation and Evaluation using Sun "
                 "RPC and libcurl",
                 setup, rows(study), seconds)
