"""The table of the Leiden study: each figure and stated result of "Proxy Caching in Accenture's
Employee Evolution Tree Project". See reproduce_leiden.py for what is run, and verdict.py for
verdicts. Runs with the same seed have the same requests, so they are compared in pairs.
"""

import statistics

import leiden_model as model
import reproduce_leiden as leiden
import verdict
from paper_table import Paper, Row, cannot
from statements import all_in, enumerate_words, join, plus_minus
from verdict import all_of, decide, decide_exactly, decide_groups, decide_somewhere

# The criteria.
DROP = 0.05          # "does not drop": the mean of all is not smaller by this share
MUCH = 0.10          # "much worse": a latency that is higher by this share
SAME_RATIO = 0.01    # "nearly identical": hit ratios within a point
SIMILAR = 0.15       # "similarly": latencies within this share of each other
ABOUT = 0.03         # "roughly 78 %": within this many points
ENOUGH = 0.9         # of the hit ratio of the full cache, as the thesis has it
CONSIDERABLY = 0.05  # "considerably worse": five points
STATED_RATIO = 0.78
# Where sunproxyd differs from the thesis's cache, which keeps an entry that was validated.
NEW_PAGE = ("After a 304 sunproxyd stores the response in place of the one it has, and a policy "
            "sees a new page: counts of LFU and GDSF start again at each hit")


def values(result, cell, name, at=-1):
    """Of `name` after a number of requests (by default all), by seed."""
    return [run.after[at][name] for run in result.runs[cell]]


def ms(some):
    return plus_minus([us / 1000 for us in some], "%.2f") + " ms"


def percent(some):
    return plus_minus([100 * ratio for ratio in some]) + " %"


def larger(a, b, factor=1.0):
    """That a is larger than the factor times b, in pairs."""
    return verdict.above(verdict.paired(a, b, factor))


# By how they decide, as the thesis has them.
SIMPLE, SOPHISTICATED = ("lru", "lfu"), ("gds", "gdsf", "tinylfu")


def others(result, policy):
    return [one for one in result.scale.policies if one != policy]


def sophisticated(result):
    return [one for one in SOPHISTICATED if one in result.scale.policies]


# ---- section 3.4: figures 3, 4 and 5 -------------------------------------------------------------

def traced(result, holds):
    """The verdict on steps of the trace, which show nothing unless its first three GETs were
    stored."""
    stored = all(how == "full" and "stored" in status for _, status, how in result.trace[:3])
    return decide_exactly(holds if stored else None)


def row_fresh(result):
    request, status, how = result.trace[3]
    return Row("3.4, figure 3", "A GET of a cached endpoint is tagged; the middleware knows the "
               "tag and answers 304; the cache answers with its entry",
               "the middleware answers 304 without the service, and the body is the cache’s",
               f"{request}, stored before: Cache-Status {status}",
               traced(result, how == "known" and "fwd-status=304" in status))


def row_invalidating(result):
    changed, pool, other = result.trace[5:8]
    return Row("3.4, figure 4; 3.2",
               "A write empties all tags of its pool, and none of another pool",
               "after it, GETs of two endpoints of the pool reach the service, and one of another "
               "pool does not",
               join(f"{request}: {how}" for request, _, how in (changed, pool, other)),
               traced(result, [changed[2], pool[2], other[2]] == ["full", "compared", "known"]))


def row_stale(result):
    request, status, how = result.trace[5]
    return Row("3.4, figure 5", "A GET after the write finds another tag: the backend’s response "
               "is sent, and the cache updates its entry",
               "the answer is a new one of the service, which is stored",
               f"{request}: {how}, Cache-Status {status}",
               traced(result, how == "full" and "fwd-status=304" not in status
                      and "stored" in status))


def row_compared(result):
    request, status, how = result.trace[6]
    return Row("3.2", "If the tag is empty but the entry still valid, the middleware compares "
               "again and answers 304: bytes are saved, latency is not necessarily",
               "an endpoint of the pool that the write did not change is answered "
               "304 by the service", f"{request}: {how}, Cache-Status {status}",
               traced(result, how == "compared" and "fwd-status=304" in status))


def row_validator(result):
    runs = [run for some in result.runs.values() for run in some]
    stale, reads = (sum(run.tallies[name] for run in runs) for name in ("stale", "reads"))
    return Row("stale data (4.1 describes a validator and states no result)",
               "No answer is older than the last write of its "
               "endpoint that was answered before the request", "none of any run",
               f"{stale} of {reads:,}", decide_exactly(stale == 0 if reads else None), ours=True)


# ---- 4.3.1: figures 6, 7 and 8 -------------------------------------------------------------------

def request_values(result, policy, name, at=-1):
    return values(result, leiden.request_cell(result.scale, policy), name, at)


def row_no_drop(result):
    comparisons = [larger(request_values(result, policy, "mean_us"),
                          request_values(result, policy, "mean_us", 0), 1 - DROP)
                   for policy in result.scale.policies]
    first, last = result.scale.counts[0], result.scale.counts[-1]
    return Row("4.3.1, figure 6", "More requests do not lower the latency",
               f"with each policy the mean over {last:,} requests is not {100 * DROP:.0f} % below "
               f"that over the first {first:,}; one client, an empty cache at first", join(
                   f"{policy.upper()} {ms(request_values(result, policy, 'mean_us', 0))} and "
                   f"{ms(request_values(result, policy, 'mean_us'))}"
                   for policy in result.scale.policies), decide(comparisons))


def compare_with_backend(result, cell_of):
    """(comparisons that each policy is slower than the backend alone, texts)"""
    backend = values(result, cell_of(leiden.BACKEND), "mean_us")
    cells = {policy: values(result, cell_of(policy), "mean_us") for policy in result.scale.policies}
    return ([larger(some, backend) for some in cells.values()],
            f"backend {ms(backend)}, " + join(f"{policy.upper()} {ms(some)}"
                                              for policy, some in cells.items()))


def row_overhead(result):
    comparisons, text = compare_with_backend(result,
                                             lambda name: leiden.request_cell(result.scale, name))
    return Row("4.3.1, figure 6", "An answer from the cache is not faster than one of the backend; "
               "the cache even slows answers down",
               "with each policy the mean is larger than that of the backend alone", text,
               decide(comparisons))


def row_tinylfu(result):
    def cells(policy):
        return [leiden.request_cell(result.scale, policy)] + [
            leiden.thread_cell(result.scale, policy, threads) for threads in result.scale.threads]

    comparisons, texts = [], []
    for own, *rest in zip(cells("tinylfu"), *(cells(policy)
                                              for policy in others(result, "tinylfu"))):
        mean = [statistics.mean(some) for some in zip(*(values(result, cell, "mean_us")
                                                        for cell in rest))]
        comparisons.append(larger(values(result, own, "mean_us"), mean, 1 + MUCH))
        ratio = statistics.mean(values(result, own, "mean_us")) / statistics.mean(mean)
        texts.append(f"{own.clients} thread{'' if own.clients == 1 else 's'}: {ratio:.2f} times")
    return Row("4.3.1", "TinyLFU sometimes performs much worse than the other policies, probably "
               "by the mutex of its Bloom filter", f"its latency is more than {100 * MUCH:.0f} % "
               "above the mean of the others’, at one number of threads or more; it does not hold "
               "if that is refuted at each", "TinyLFU’s latency by the others’ mean, "
               + join(texts), decide_somewhere(comparisons))


def rise(result, name, what, figure):
    groups, texts = {}, []
    for policy in result.scale.policies:
        line = [request_values(result, policy, name, at) for at in range(len(result.scale.counts))]
        groups[policy] = [larger(b, a) for a, b in zip(line, line[1:])]
        texts.append(f"{policy.upper()} " + " to ".join(percent(some)
                                                        for some in (line[0], line[-1])))
    return Row(f"4.3.1, {figure}", f"The {what} increases with the number of requests",
               f"from each of {enumerate_words(result.scale.counts)} requests to the next, with "
               "each policy",
               join(texts),
               all_in(groups))


def same(result, name, what, figure):
    cells = {policy: values(result, leiden.thread_cell(result.scale, policy,
                                                       result.scale.threads[0]), name)
             for policy in result.scale.policies}
    comparisons = [verdict.equal(verdict.paired(cells[a], cells[b]), SAME_RATIO)
                   for n, a in enumerate(result.scale.policies)
                   for b in result.scale.policies[n + 1:]]
    return Row(f"4.3.1, {figure}", f"The {what} is nearly identical for all policies",
               f"each two within {100 * SAME_RATIO:g} point (equivalence), "
               f"{result.scale.requests:,} requests",
               join(f"{policy.upper()} {percent(some)}" for policy, some in cells.items()),
               decide(comparisons))


def row_rise_of_hits(result):
    return rise(result, "hit_ratio", "hit ratio", "figure 7")


def row_same_hits(result):
    return same(result, "hit_ratio", "hit ratio", "figure 7")


def row_rise_of_bytes(result):
    return rise(result, "byte_hit_ratio", "byte hit ratio", "figure 8")


def row_same_bytes(result):
    return same(result, "byte_hit_ratio", "byte hit ratio", "figure 8")


def row_no_eviction(result):
    full = [run.evictions for cell, some in result.runs.items() if cell.megabytes == leiden.FULL_MB
            and cell.policy != leiden.BACKEND for run in some]
    return Row("4.3.1", "With 2.5 GB no entry is evicted", "no eviction in any run of that size",
               f"{sum(full)} evictions in {len(full)} runs",
               decide_exactly(sum(full) == 0 if full else None))


def row_capacity_arithmetic(capacity=2.5e9, response=20e3):
    return Row("4.3.1", "With 20 KB for each response, 2.5 GB hold those of over 10⁵ endpoints",
               "2.5 GB / 20 KB",
               f"{capacity / response:,.0f}", decide_exactly(capacity / response > 1e5))


# ---- 4.3.2 and 4.3.3: figures 9 and 10 -----------------------------------------------------------

def thread_values(result, policy, threads, caches=1):
    return values(result, leiden.thread_cell(result.scale, policy, threads, caches), "mean_us")


def assess_rise(result, names):
    groups = [larger(thread_values(result, name, b), thread_values(result, name, a))
              for name in names for a, b in zip(result.scale.threads, result.scale.threads[1:])]
    return decide(groups), join(f"{name.upper() if name != leiden.BACKEND else name} "
                                + " to ".join(
                                    ms(thread_values(result, name, threads))
                                    for threads in result.scale.threads) for name in names)


def row_threads(result):
    found, text = assess_rise(result, result.scale.policies)
    return Row("4.3.2, figure 9",
               "The latency increases with the number of threads, for each policy",
               f"{result.scale.requests:,} requests, "
               f"{enumerate_words(result.scale.threads)} threads", text, found)


def row_threads_similar(result):
    comparisons, worst = [], 0
    for threads in result.scale.threads:
        cells = [thread_values(result, policy, threads) for policy in result.scale.policies]
        mean = [statistics.mean(some) for some in zip(*cells)]
        comparisons += [one for some in cells for one in verdict.within_factors(verdict.paired,
                                                                                some, mean,
                                                                                1 - SIMILAR,
                                                                                1 + SIMILAR)]
        worst = max(worst, *(abs(statistics.mean(some) / statistics.mean(mean) - 1)
                             for some in cells))
    return Row("4.3.2, figure 9", "It does so similarly for each policy",
               f"at each number of threads within {100 * SIMILAR:.0f} % of the policies’ mean "
               "(equivalence)",
               f"apart by at most {100 * worst:.1f} %", decide(comparisons))


def row_backend_threads(result):
    found, text = assess_rise(result, [leiden.BACKEND])
    return Row("4.3.2, figure 9",
               "The latency of the backend alone increases with the number of threads",
               f"{enumerate_words(result.scale.threads)} threads", text, found)


def row_backend_better(result):
    comparisons, texts = [], []
    for threads in result.scale.threads:
        some, text = compare_with_backend(result,
                                          lambda name, n=threads: leiden.thread_cell(result.scale,
                                                                                     name, n))
        comparisons += some
        texts.append(f"{threads} threads: {text}")
    return Row("4.3.2, figure 9",
               "For each number of threads the backend alone performs better than the cache",
               "its mean is smaller than that of each policy", "; ".join(texts),
               decide(comparisons))


def describe_caches(result):
    return "; ".join(f"{threads} threads: " + join(
        f"{caches} cache{'' if caches == 1 else 's'} "
        f"{ms(thread_values(result, 'lru', threads, caches))}"
        for caches in result.scale.caches) for threads in result.scale.threads)


def row_distributed(result):
    comparisons = [larger(thread_values(result, "lru", threads, caches),
                          thread_values(result, "lru", threads))
                   for threads in result.scale.threads for caches in result.scale.caches[1:]]
    return Row("Abstract; 4.3.3, figure 10; 6",
               "Distributing the cache decreases performance, by the forwarding of requests",
               "with two and three caches the mean is larger than with one, at each number of "
               "threads; LRU",
               describe_caches(result), decide(comparisons))


def row_three(result):
    comparisons = [larger(thread_values(result, "lru", threads, 2),
                          thread_values(result, "lru", threads, 3))
                   for threads in result.scale.threads]
    return Row("4.3.3, figure 10",
               "Three distributed caches seem to serve faster than two, over time",
               "the mean of three is smaller than that of two, at each number of threads",
               describe_caches(result),
               decide(comparisons))


# ---- 4.3.4: figure 11 ----------------------------------------------------------------------------

def full_ratio(result, policy, name="hit_ratio"):
    return values(result, leiden.thread_cell(result.scale, policy, result.scale.threads[0]), name)


def size_ratio(result, policy, size):
    return values(result, leiden.size_cell(result.scale, policy, size), "hit_ratio")


def row_ratio(result):
    lines = {policy: full_ratio(result, policy) for policy in result.scale.policies}
    comparisons = [verdict.equal(verdict.of_mean([one - STATED_RATIO for one in some]), ABOUT)
                   for some in lines.values()]
    every = full_ratio(result, "lru", "hits_of_all")
    return Row("4.3.4",
               "15,000 requests on 4 threads have a hit ratio of roughly 78 % with all policies",
               f"of the GETs, within {100 * ABOUT:g} points. The number of endpoints is chosen so "
               "that it is near; the table tests that it is so for all policies",
               join(f"{policy.upper()} {percent(some)}" for policy, some in lines.items())
               + f". Of all requests, as 2.3.5 defines it, LRU has {percent(every)}; 80 % are "
               "GETs, so 78 % of all would be 97.5 % of these", decide(comparisons))


def describe_sizes(result):
    return "; ".join(f"{size:g} MB: "
                     + join(f"{policy.upper()} {percent(size_ratio(result, policy, size))}"
                            for policy in result.scale.policies) for size in result.scale.megabytes)


def row_enough(result):
    size = result.scale.megabytes[-1]
    comparisons = [larger(size_ratio(result, policy, size), full_ratio(result, policy), ENOUGH)
                   for policy in result.scale.policies]
    return Row("4.3.4, figure 11", "7 MB (7×10⁶ bytes) are sufficient for 90 % of the hit ratio "
               "of the full cache, with each policy",
               f"with {size:g} MB the ratio is above 90 % of that with 2.5 GB; 4 threads",
               join(f"{policy.upper()} {percent(size_ratio(result, policy, size))}, full "
                    f"{percent(full_ratio(result, policy))}"
                    for policy in result.scale.policies)
               + ". The thesis states no number of bytes that all its responses have; that of the "
               f"endpoints here is {sum(model.make_sizes().values()) / 1e6:.1f} MB",
               decide(comparisons))


def small_sizes(result):
    return result.scale.megabytes[:-1]


def row_lfu(result):
    groups = {size: [larger([a - b for a, b in zip(size_ratio(result, other, size),
                                                   size_ratio(result, "lfu", size))],
                            [CONSIDERABLY] * len(result.scale.seeds))
                     for other in others(result, "lfu")]
              for size in small_sizes(result)}
    return Row("4.3.4, figure 11",
               "Below 7 MB LFU performs considerably worse than the other policies",
               f"by more than {100 * CONSIDERABLY:.0f} points than each, at "
               f"{enumerate_words(small_sizes(result))} MB",
               f"{describe_sizes(result)}. {NEW_PAGE}, so LFU evicts what LRU evicts",
               all_in(groups))


def row_tinylfu_small(result):
    groups = {(size, other): [larger(size_ratio(result, "tinylfu", size),
                                     size_ratio(result, other, size))]
              for size in small_sizes(result) for other in others(result, "tinylfu")}
    return Row("4.3.4, figure 11",
               "Below 7 MB TinyLFU performs slightly better than the other policies",
               f"its ratio is larger than each other one’s, at "
               f"{enumerate_words(small_sizes(result))} MB",
               describe_sizes(result),
               decide_groups(groups))


def row_sophisticated(result):
    comparisons = [larger(size_ratio(result, policy, size), size_ratio(result, simple, size))
                   for size in small_sizes(result) for policy in sophisticated(result)
                   for simple in SIMPLE]
    return Row("3.3.2", "Expected: GDS, GDSF and TinyLFU perform better than LRU and LFU",
               f"their hit ratios are larger, at "
               f"{enumerate_words(small_sizes(result))} MB, where the policy "
               "matters",
               f"{describe_sizes(result)}. {NEW_PAGE}", decide(comparisons))


# ---- section 6 -----------------------------------------------------------------------------------

def row_policies(result):
    parts = [row_same_hits(result), row_same_bytes(result), row_no_eviction(result)]
    return Row("Abstract; 6",
               "The choice of the eviction policy matters very little, since no entry is evicted",
               "the rows on equal ratios (figures 7 and 8) and on evictions hold",
               join(part.verdict.value for part in parts), all_of(part.verdict for part in parts))


def row_simple_faster(result):
    groups, texts = {}, []
    for simple in SIMPLE:
        for other in sophisticated(result):
            groups[simple, other] = [larger(thread_values(result, other, threads),
                                            thread_values(result, simple, threads))
                                     for threads in result.scale.threads]
    for threads in result.scale.threads:
        texts.append(f"{threads} threads: "
                     + join(f"{policy.upper()} {ms(thread_values(result, policy, threads))}"
                            for policy in result.scale.policies))
    return Row("6", "LRU and LFU perform slightly better than the other policies, since they "
               "compute less",
               "their latency is smaller than that of GDS, GDSF and TinyLFU, each pair at one "
               "number of threads at least and at none the reverse", "; ".join(texts),
               decide_groups(groups))


def row_conclusion(result):
    parts = [row_overhead(result), row_backend_better(result)]
    return Row("Abstract; 6", "The application is no faster with a proxy cache",
               "both rows on the cache and the backend alone (figures 6 and 9) hold",
               join(part.verdict.value for part in parts), all_of(part.verdict for part in parts))


def row_expensive(result):
    cached, backend = (values(result, leiden.expensive_cell(result.scale, name), "mean_us")
                       for name in ("lru", leiden.BACKEND))
    return Row("6, second scenario",
               "A proxy cache might reduce the latency where a response is expensive to generate",
               f"with {1000 * result.scale.generate:g} ms for each response that the service "
               "generates, the mean with LRU is smaller than that of the backend alone",
               f"{ms(cached)} and {ms(backend)}",
               decide([larger(backend, cached)]))


EXPECTED = cannot("3.3.1",
                  "Expected: the overhead of the cache is small beside an answer of the backend",
                  "An expectation without a number. The rows on figures 6 and 9 measure what came "
                  "of it.")
COMPLEXITY = cannot("3.3.3", "A check of freshness is O(1), an invalidation O(n) in the tags of "
                    "the largest pool; pools scale over machines",
                    "Properties of the author’s middleware; the thesis measures no times of it.")
SMALL_RESPONSES = cannot("4.3.1", "Responses are small: many under 1 KB, almost all under 20 KB",
                         "The responses here are made after this statement, so this is no "
                         "evidence.")


def rows(result):
    diagram = "It shows a design and no result."
    return [
        cannot("2.3.1, figure 1", "The places at which a cache can be", diagram),
        cannot("3.2, figure 2", "The cache control middleware", diagram
               + " The middleware is written after it."),
        row_compared(result), EXPECTED, row_sophisticated(result), COMPLEXITY, row_fresh(result),
        row_invalidating(result), row_stale(result),
        row_validator(result),
        row_no_drop(result), row_overhead(result),
        row_rise_of_hits(result), row_same_hits(result), row_rise_of_bytes(result),
        row_same_bytes(result),
        row_no_eviction(result), SMALL_RESPONSES, row_capacity_arithmetic(), row_tinylfu(result),
        row_threads(result), row_threads_similar(result), row_backend_threads(result),
        row_backend_better(result),
        row_distributed(result), row_three(result),
        row_ratio(result), row_enough(result), row_lfu(result), row_tinylfu_small(result),
        row_policies(result), row_simple_faster(result), row_conclusion(result),
        cannot("6, first scenario",
               "A cache might be of use where much data comes from a distant server",
               "A conjecture without a measurement. The GENI study measures such a case, with a "
               "cache that does not validate at every request."),
        row_expensive(result),
        cannot("6, third scenario", "A cache might be easier to deploy than code to optimise",
               "A statement on the work of developers."),
        cannot("6", "0.5 GB of an Azure B-series machine, 3.7 dollars a month, are enough instead "
               "of 83.95",
               "Prices and machines of Azure. That 7 MB are enough is above."),
    ]


def paper(result, took):
    scale, sizes = result.scale, model.make_sizes()
    small = sum(size < 1000 for size in sizes.values()) / len(sizes)
    return Paper("leiden", "Proxy Caching in Accenture’s Employee Evolution Tree Project", [
        "One to three sunproxyd are reverse proxies before a REST service with the thesis’s cache "
        "control middleware, which validates every GET by its entity tag; every hit is a "
        f"validated one. {NEW_PAGE}. The thesis states 100 users, but neither the number of "
        "endpoints nor their sizes, nor what a write changes, nor the times of its network and "
        f"backend. Here the service has {len(sizes):,} endpoints with "
        f"{sum(sizes.values()) / 1e6:.1f} MB, of which {100 * small:.0f} % are under 1 KB and but "
        f"for lists none over 20 KB, and each of its responses takes {1000 * scale.latency:g} ms. "
        f"80 % of the requests are GETs, by Zipf’s law with YCSB’s exponent of {model.EXPONENT}.",
        f"Figures 6 to 8 have {enumerate_words(f'{n:,}' for n in scale.counts)} requests of one "
        f"client, figures 9 to 11 {scale.requests:,} on {enumerate_words(scale.threads)} threads "
        f"(figure 11 on {leiden.THREADS}); the text has no other axis. Means of {len(scale.seeds)} "
        "runs with other requests each. Clients, caches and backend share the processors of this "
        "machine."
        + (" A smoke test: few requests." if scale.smoke else "")], rows(result), took)
