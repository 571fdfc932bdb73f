"""The table on several caches: what the Leiden thesis states of a distributed cache, for daemons
that are peers and for daemons with a shared tier (reproduce_cluster.py). Runs with the same seed
have the same requests, so they are compared in pairs.
"""

import leiden_model as model
import reproduce_cluster as cluster
import verdict
from paper_table import Paper, Row, cannot
from reproduce_cluster import ALONE, PEERS, SHARED
from reproduce_leiden_rows import larger, ms, percent, values
from statements import join, plus_minus
from verdict import decide, decide_exactly

SAME_RATIO = 0.02  # "the same": hit ratios within two points
NAMES = {PEERS: "with --peers", SHARED: "with --shared", ALONE: "alone"}
NO_MEMCACHED = "memcached is not installed here"


def times(result, sharing, threads, caches):
    sharing = ALONE if caches == 1 else sharing
    return values(result, cluster.cell(result.scale, sharing, threads, caches), "mean_us")


def described(result, sharing):
    return join((f"{threads} threads: " + join(
        f"{caches} cache{'s' if caches > 1 else ''} {ms(times(result, sharing, threads, caches))}"
        for caches in result.scale.caches) for threads in result.scale.threads), "; ")


def row_distributed(result, sharing):
    place = f"Abstract; 4.3.3, figure 10; 6 ({NAMES[sharing]})"
    states = "Distributing the cache decreases performance, by the forwarding of requests"
    if sharing not in result.sharings:
        return cannot(place, states, NO_MEMCACHED)
    return Row(place, states, "with two and three caches the mean is larger than with one, at each "
               "number of threads; LRU", described(result, sharing),
               decide([larger(times(result, sharing, threads, caches),
                              times(result, sharing, threads, 1))
                       for threads in result.scale.threads for caches in result.scale.caches[1:]]))


def row_three(result, sharing):
    place = f"4.3.3, figure 10 ({NAMES[sharing]})"
    states = "Three distributed caches seem to serve faster than two, over time"
    if sharing not in result.sharings:
        return cannot(place, states, NO_MEMCACHED)
    return Row(place, states, "the mean of three is smaller than that of two, at each number of "
               "threads", described(result, sharing),
               decide([larger(times(result, sharing, threads, 2),
                              times(result, sharing, threads, 3))
                       for threads in result.scale.threads]))


def full_answers(result, sharing, caches):
    """Bodies that the service sent, by seed."""
    threads = result.scale.threads[0]
    return [run.middleware["full"]
            for run in result.runs[cluster.cell(result.scale, sharing, threads, caches)]]


def row_fetches(result, sharing):
    place, most = f"fetches {NAMES[sharing]}", result.scale.caches[-1]
    states = f"{most} caches have the service send fewer bodies than {most} that share nothing"
    if sharing not in result.sharings:
        return cannot(place, states, NO_MEMCACHED)._replace(ours=True)
    lines = [("1 cache", full_answers(result, ALONE, 1)),
             (f"{most} {NAMES[sharing]}", full_answers(result, sharing, most)),
             (f"{most} alone", full_answers(result, ALONE, most))]
    return Row(place, states, f"with each seed; {result.scale.threads[0]} threads",
               join(f"{name} {plus_minus(some, '%.0f')}" for name, some in lines)
               + f" of {result.scale.requests} requests",
               decide([larger(lines[2][1], lines[1][1])]), ours=True)


def row_memory(result):
    scale = result.scale
    few, most = scale.threads[0], scale.caches[-1]
    one, peers, alone = (values(result, one, "hit_ratio") for one in (
        cluster.one_cache(scale, few, scale.small),
        cluster.cell(scale, PEERS, few, most, scale.small),
        cluster.cell(scale, ALONE, few, most, scale.small)))
    return Row("memory with --peers",
               f"where memory is short, that of {most} peers adds up: their hit ratio is larger "
               "than that of one cache, and of as many that share nothing",
               f"{scale.small:g} MB each; of the GETs", f"1 cache {percent(one)}, {most} peers "
               f"{percent(peers)}, {most} alone {percent(alone)}",
               decide([larger(peers, one), larger(peers, alone)]), ours=True)


def row_ratio(result, sharing):
    most, few = result.scale.caches[-1], result.scale.threads[0]
    place = f"hit ratio {NAMES[sharing]}"
    states = f"{most} caches have the hit ratio of one"
    if sharing not in result.sharings:
        return cannot(place, states, NO_MEMCACHED)._replace(ours=True)
    one, many = (values(result, cluster.cell(result.scale, *what), "hit_ratio")
                 for what in ((ALONE, few, 1), (sharing, few, most)))
    return Row(place, states, f"within {100 * SAME_RATIO:g} points (equivalence)",
               f"{percent(one)} and {percent(many)}",
               decide([verdict.equal(verdict.paired(many, one), SAME_RATIO)]), ours=True)


def row_stale(result):
    runs = [run for some in result.runs.values() for run in some]
    stale, reads = (sum(run.tallies[name] for run in runs) for name in ("stale", "reads"))
    return Row("stale data", "No answer is older than the last write of its endpoint that was "
               "answered before the request, whichever daemon had it", "none of any run",
               f"{stale:,} of {reads:,}", decide_exactly(stale == 0), ours=True)


def rows(result):
    both = (PEERS, SHARED)
    return ([row_distributed(result, sharing) for sharing in both]
            + [row_three(result, sharing) for sharing in both]
            + [row_fetches(result, sharing) for sharing in both]
            + [row_ratio(result, sharing) for sharing in both]
            + [row_memory(result), row_stale(result)])


def paper(result, took):
    scale = result.scale
    return Paper("cluster", "Proxy Caching in Accenture’s Employee Evolution Tree Project, "
                 "on several daemons", [
                     "The statements on a distributed cache, for daemons that are peers (--peers) "
                     "and for daemons with memcached (--shared). Clients send their requests to "
                     "each daemon in turn; each daemon has LRU and 2.5 GB. Service, endpoints, "
                     "writes and the check of each answer are those of the section on the thesis; "
                     f"{scale.requests:,} requests on {' and '.join(map(str, scale.threads))} "
                     f"threads, means of {len(scale.seeds)} runs. Every GET is validated at the "
                     "service, so a hit saves the body and not the request, and the tier, which "
                     "keeps fresh responses alone, has none of them. "
                     "Daemons, memcached, "
                     "clients and service share the processors of this machine, so more daemons "
                     f"have no more processors; the service’s responses take "
                     f"{1000 * scale.latency:g} ms. Requests are drawn by Zipf’s law with the "
                     f"exponent {model.EXPONENT}."], rows(result), took)
