"""The table of "Exploiting Parallelism in a Proxy Server" with its pages on disk: what the paper
states of its thread pool, for a sunproxyd that writes each page to its store (reproduce_stored.py).

The criteria are those of reproduce_parallel_rows.py.
"""

import reproduce_parallel as parallel
import reproduce_parallel_rows as claims
from paper_table import Paper, Row, cannot
from replays import mean
from reproduce_parallel_rows import SAME, TIMES, WEAK, efficiencies
from statements import join, plus_minus
from verdict import above, decide, decide_exactly, equal, paired, unpaired, within_factors

ORDER = 10  # "an order of magnitude"
NAMES = {"pool": "with a store", "sunproxyd": "without one", "executor": "asyncio, executor"}


def described(rates):
    return join(f"{NAMES[name]} {plus_minus(rates[name])}" for name in NAMES) + " requests/s"


def throughput(study):
    rates = {name: parallel.rates(runs) for name, runs in study.real.items()}
    ratio = mean(rates["pool"]) / mean(rates["executor"])
    return Row("Abstract, Figure 6, Conclusion",
               "128 requests/s with 64 threads against asyncio's 40, about 3 times",
               f"from {TIMES[0]} to {TIMES[1]} times, with a mean latency of 0.5 s",
               f"{ratio:.2f} times: {described(rates)}",
               decide(within_factors(unpaired, rates["pool"], rates["executor"], *TIMES)))


def weak_scaling(study):
    a, b = (efficiencies(study, "pool", *pair) for pair in study.extent.weak)
    (urls, threads), (more_urls, more_threads) = study.extent.weak
    return Row("Abstract, Results, Conclusion",
               "nearly weak scaling: efficiency 0.81 with 328 requests and 32 threads, 0.79 with "
               "656 and 64", f"the two differ by less than {WEAK}",
               f"{plus_minus(a, '%.2f')} with {urls} URLs and {threads} threads, "
               f"{plus_minus(b, '%.2f')} with {more_urls} and {more_threads}",
               decide([equal(paired(b, a), WEAK)]))


def from_disk(result):
    """Beside a latency of 0.5 s in the mean, which is what one after the other would take."""
    study = result.study
    web = [threads_seconds(run, study.extent.threads[-1]) for run in study.real["pool"]]
    return Row("Introduction", "a page from disk is an order of magnitude faster than from the web",
               f"{ORDER} times and more, one request after the other, behind a start of the daemon "
               "(the kernel has the file in memory); from the web as the runs with 64 threads show",
               f"{mean(result.from_disk) * 1e6:.0f} us from disk, "
               f"{mean(result.from_memory) * 1e6:.0f} us from the daemon's memory, "
               f"{mean(web):.3f} s from the web: {mean(web) / mean(result.from_disk):,.0f} times",
               decide([above(paired(web, result.from_disk, ORDER))]))


def threads_seconds(run, threads):
    """How long one request waits, of a run with that many at a time."""
    return run.seconds * threads / run.requests


def all_written(result):
    written, asked = result.written
    return Row("the store", "each page that is fetched is on disk, and found there after a start",
               "as many pages written as requests; each request of a daemon that starts with such "
               "a store is a hit", f"{written:,} of {asked:,} written",
               decide_exactly(written == asked), ours=True)


def costs_nothing(result):
    rates = {name: parallel.rates(runs) for name, runs in result.study.real.items()}
    return Row("the cost of the store",
               "with pages on disk as many requests per second are served as without",
               f"within {100 * SAME:.0f} %, 64 threads, a mean latency of 0.5 s", described(rates),
               decide(within_factors(unpaired, rates["pool"], rates["sunproxyd"], 1 - SAME,
                                     1 + SAME)), ours=True)


ON_STUDY = [
    throughput, claims.slope_above_one, claims.degrades,
    claims.better("Abstract, Figure 4",
                  "the pool has greater speed-ups than asyncio for higher numbers of threads",
                  lambda *args: parallel.speed_ups(*args)),
    claims.better("Abstract, Figure 5", "the pool is more efficient than asyncio", efficiencies),
    claims.pool_efficiency, claims.slow_fall, weak_scaling, claims.throughput_rises,
    claims.throughput_diminishes, claims.gains_diminish,
]
FILES = cannot("Implementation", "a page is a file whose name is the hash of its URL",
               "a description; a store has segments of many pages and an index in memory")

SETUP = ("The statements on the thread pool, for a sunproxyd that writes each page that it fetches "
         "to its store before the run ends (--store, --store-admit all); a thread is a fetch in "
         "flight. Lists of {traces} unique URLs, 1 to 64 threads, {repeats} runs each, against an "
         "origin with a latency drawn once for each URL: {latency}, and for the throughput "
         "{real_latency}. asyncio runs blocking fetches in an executor of that many threads, and "
         "keeps nothing.")


CORES_NOTE = (
    f"This machine has {claims.CORES} cores; the paper's had many. Fetches wait for their origin "
    "and need no core meanwhile, so speed-up and efficiency are those of the latency, up to where "
    "the CPU time of a fetch, 16 times as large beside the scaled latency as beside the web's, fills "
    "the cores. Other work on the machine widens the intervals.")


def paper(result, seconds):
    extent = result.study.extent
    setup = SETUP.format(traces=" and ".join(map(str, extent.traces)), repeats=extent.repeats,
                         latency=extent.latency, real_latency=extent.real_latency)
    rows = [from_disk(result), FILES] + [row(result.study) for row in ON_STUDY]
    return Paper("stored", "Exploiting Parallelism in a Proxy Server, with its pages on disk",
                 [setup, CORES_NOTE], rows + [all_written(result), costs_nothing(result)],
                 seconds)
