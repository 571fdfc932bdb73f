"""The table of "Exploiting Parallelism in a Proxy Server": its figures, tables and stated results.

Where the text says "flat", "slowly", "sharply" or "nearly" without a number, the number is chosen
here. Runs of one contestant are independent of those of another. Do not change a criterion because
of a result.
"""

import os

import reproduce_parallel as study_of
from paper_table import Paper, Row, cannot
from replays import mean
from statements import all_in, count_of, join, plus_minus
from verdict import (above, below, decide, decide_groups, equal, of_mean, paired, unpaired,
                     within_factors)

# "About 3 times": rounded.
TIMES = (2.5, 3.5)
# Times of figure 3, relative to one mutex and one thread: within this factor of the published ones.
SHAPE = 1.5
# "Flat", as a ratio of two speed-ups.
FLAT = (0.8, 1.25)
# "Constant": slopes within this share of the first one.
CONSTANT = 0.25
# "Flat or rising": efficiency does not fall by more, from one number of threads to the next.
FALL = 0.05
# "Slowly falling": twice the threads keep at least this share of the efficiency.
SLOW = 0.75
# "Sharply": 64 threads have less than this share of the efficiency of 8.
SHARP = 0.5
# "Nearly weak scaling", "only slightly": a difference of efficiencies; 0.02 in the paper.
WEAK = 0.05
# "About 9 %": rounded to tens, so from 5 to 15 %.
ALIGNED = (1.05, 1.15)
# "The same" throughput, for statements of ours.
SAME = 0.1

NAMES = {"pool": "thread pool", "sunproxyd": "sunproxyd", "executor": "asyncio, executor",
         "aiohttp": "asyncio, aiohttp",
         "own": "asyncio, its own executor", "workers": "sunproxyd's workers",
         "misaligned": "thread pool, misaligned"}
LOCK_NAMES = {"rwlock": "read-write lock", "mutex": "one mutex", "node-mutex": "a mutex per node"}
# Figure 3, in seconds, by threads.
FIGURE_3 = {"rwlock": [2.48, 4.97, 4.69, 4.71], "mutex": [2.50, 5.13, 5.04, 5.11],
            "node-mutex": [12.00, 29.60, 17.00, 12.00]}


def own_threads():
    """As asyncio's own executor computes it (Python 3.8 and later)."""
    return min(32, (os.cpu_count() or 1) + 4)


def steps(threads, low, high):
    inside = [t for t in threads if low <= t <= high]
    return list(zip(inside, inside[1:]))


def slopes(study, contestant, trace, a, b):
    """How much the speed-up rises for each thread more; one a run."""
    first, second = (study_of.speed_ups(study, contestant, trace, t) for t in (a, b))
    return [(y - x) / (b - a) for x, y in zip(first, second)]


def largest(study):
    return max(study.extent.traces)


def efficiencies(study, contestant, trace, threads):
    return [s / threads for s in study_of.speed_ups(study, contestant, trace, threads)]


def by_trace(study, line):
    """"164 URLs: ...; 328 URLs: ..." of line(trace), a list of lists of runs."""
    return join((f"{trace} URLs: " + join(plus_minus(values, "%.2f") for values in line(trace))
                 for trace in study.extent.traces), "; ")


def decided(groups):
    """The counts of a statement of which every comparison must hold."""
    return decided_by_group({n: [one] for n, one in enumerate(
        one for group in groups.values() for one in group)})


def decided_by_group(groups):
    """The counts of a statement of which one comparison of each group must hold."""
    held, failed, open_, _ = count_of(groups)
    return (f"{held} of {held + failed + open_} comparisons as stated, {failed} against it, "
            f"{open_} undecided. ")


# ---- abstract and figure 6 -----------------------------------------------------------------------

def throughput(study):
    rates = {name: study_of.rates(runs) for name, runs in study.real.items()}
    ratio = mean(rates["pool"]) / mean(rates["executor"])
    return Row("Abstract, Figure 6, Conclusion",
               "128 requests/s with 64 threads against asyncio's 40, about 3 times",
               f"from {TIMES[0]} to {TIMES[1]} times, with a mean latency of 0.5 s, which 64 "
               "threads and 128 requests/s imply",
               f"{ratio:.2f} times: " + join(f"{NAMES[name]} {plus_minus(rate)}"
                                             for name, rate in rates.items())
               + f" requests/s. asyncio's own executor has {own_threads()} threads on this "
               "machine; on 12 cores it has 16",
               decide(within_factors(unpaired, rates["pool"], rates["executor"], *TIMES)))


def better(place, states, figure):
    def assess(study):
        groups = {trace: [above(unpaired(figure(study, "pool", trace, t),
                                         figure(study, "executor", trace, t)))
                          for t in study.extent.threads if t >= 16]
                  for trace in study.extent.traces}
        last = study.extent.threads[-1]
        return Row(place, states, "higher with 16 threads and more; no number of threads is "
                   "against it, and some are for it, with each trace", decided_by_group(groups)
                   + f"Pool and asyncio with {last} threads, " + by_trace(
                       study, lambda trace: [figure(study, name, trace, last)
                                             for name in ("pool", "executor")]),
                   decide_groups(groups))
    return assess


def throughput_rises(study):
    """Of throughput, the slope over the one of the first step."""
    groups, threads = {}, study.extent.threads
    for trace in study.extent.traces:
        first = slopes(study, "pool", trace, *threads[:2])
        groups[trace] = [equal(of_mean([b / a - 1
                                        for a, b in zip(first, slopes(study, "pool",
                                                                      trace, *step))]), CONSTANT)
                         for step in steps(threads, threads[1], 16)]
    return Row("Figure 6", "the throughput rises at a near constant rate up to 16 threads",
               f"each step's slope is within {100 * CONSTANT:.0f} % of the first one's, with each "
               "trace",
               decided(groups) + f"Requests/s, {largest(study)} URLs: " + join(
                   f"{t}: {plus_minus(study_of.rates(study.runs['pool', largest(study), t]))}"
                   for t in threads),
               all_in(groups))


def throughput_diminishes(study):
    return gains_diminish(study, "Figure 6", "beyond 16 threads the throughput rises less")


# ---- figure 4: speed-up --------------------------------------------------------------------------

def slope_above_one(study):
    groups = {trace: [above(of_mean(slopes(study, "pool", trace, *step)), 1)
                      for step in steps(study.extent.threads, 1, 16)]
              for trace in study.extent.traces}
    return Row("Figure 4", "the pool's speed-up has a slope above 1 for all sizes up to 16 threads",
               "each step of threads, with each trace", decided(groups) + by_trace(
                   study, lambda trace: [slopes(study, "pool", trace, *step)
                                         for step in steps(study.extent.threads, 1, 16)]),
               all_in(groups))


def degrades(study):
    groups = {trace: [below(of_mean(slopes(study, "pool", trace, *step)))
                      for step in steps(study.extent.threads, 16, 64)]
              for trace in study.extent.traces}
    return Row("Figure 4", "from 16 threads on additional threads degrade the pool's performance",
               "the speed-up falls at each further step, with each trace",
               decided(groups) + by_trace(
                   study, lambda trace: [study_of.speed_ups(study, "pool", trace, t)
                                         for t in study.extent.threads if t >= 16]), all_in(groups))


def gains_diminish(study, place="Conclusion", states="great speed-up up to 16 threads, then the "
                   "gains diminish"):
    groups = {}
    for trace in study.extent.traces:
        before = slopes(study, "pool", trace, 8, 16)
        groups[trace] = [above(paired(before, slopes(study, "pool", trace, *step)))
                         for step in steps(study.extent.threads, 16, 64)]
    return Row(place, states, "the slope from 8 to 16 threads is larger than that of each further "
               "step, with each trace",
               decided(groups) + "Slopes: "
               + by_trace(study, lambda trace: [slopes(study, "pool", trace, *step) for step
                          in steps(study.extent.threads, 8, 64)]), all_in(groups))


def asyncio_slope(study):
    groups = {trace: [below(of_mean(slopes(study, "executor", trace, *step)), 1)
                      for step in steps(study.extent.threads, 1, 64)]
              for trace in study.extent.traces}
    return Row("Figure 4", "asyncio's speed-up has a slope below 1 for all sizes",
               "each step of threads, with each trace",
               decided(groups)
               + by_trace(study, lambda trace: [slopes(study, "executor", trace, *step) for step in
                          steps(study.extent.threads, 1, 64)]), all_in(groups))


def asyncio_constant(study):
    groups = {}
    for trace in study.extent.traces:
        first = slopes(study, "executor", trace, *study.extent.threads[:2])
        groups[trace] = [equal(of_mean([b / a - 1 for a, b in zip(first, slopes(study, "executor",
                                                                                trace, *step))]),
                               CONSTANT) for step in steps(study.extent.threads,
                                                           study.extent.threads[1], 8)]
    return Row("Figure 4", "asyncio's gain is constant up to 8 threads",
               f"each step's slope is within {100 * CONSTANT:.0f} % of the first one's, with each "
               "trace",
               decided(groups)
               + by_trace(study, lambda trace: [slopes(study, "executor", trace, *step) for step in
                          steps(study.extent.threads, 1, 8)]), all_in(groups))


def asyncio_degrades(study):
    groups = {trace: [below(of_mean(slopes(study, "executor", trace, *step)))
                      for step in steps(study.extent.threads, 8, 16)]
              for trace in study.extent.traces}
    return Row("Figure 4", "after 8 threads asyncio's performance degrades",
               "the speed-up falls from 8 to 16 threads, with each trace", decided(groups)
               + "With 8 and 16 threads, "
               + by_trace(study, lambda trace: [study_of.speed_ups(study, "executor", trace, t)
                                                for t in (8, 16)]),
               all_in(groups))


def asyncio_flat(study):
    found, trace = [], largest(study)
    for one in study.extent.traces:
        found += within_factors(paired, study_of.speed_ups(study, "executor", one, 64),
                                study_of.speed_ups(study, "executor", one, 16), *FLAT)
    cores = study_of.cores_used(study.runs["executor", trace, study.extent.threads[-1]])
    return Row("Results, Figures 4 and 6",
               "after 16 threads asyncio's speed-up and throughput are flat",
               f"64 threads have {FLAT[0]} to {FLAT[1]} times the speed-up of 16, with each trace",
               "with 16 and 64 threads, "
               + by_trace(study, lambda one: [study_of.speed_ups(study, "executor", one, t)
                                              for t in (16, 64)])
               + f". With 64 threads Python used {cores:.2f} cores of the one that its global lock "
               "permits", decide(found))


# ---- figure 3: locks of a list -------------------------------------------------------------------

def list_times(study, lock, threads):
    return study.lists[lock, threads]


def lists_text(study):
    return join((f"{LOCK_NAMES[lock]} " + join(plus_minus(list_times(study, lock, t), "%.2f")
                                               for t in study.extent.list_threads)
                 for lock in FIGURE_3), "; ") + " s"


def lists_place():
    return "Figure 3 (from Pacheco)"


def list_reads(study):
    groups = {t: [above(paired(list_times(study, other, t), list_times(study, "rwlock", t)))
                  for other in ("mutex", "node-mutex")] for t in study.extent.list_threads}
    return Row(lists_place(),
               "a read-write lock is the fastest with 80 % lookups (2.48, 4.97, 4.69, 4.71 s with "
               "1, 2, 4 and 8 threads; one mutex 2.50, 5.13, 5.04, 5.11; a mutex per node 12.00, "
               "29.60, 17.00, 12.00)",
               "faster than both others at each number of threads",
               decided(groups) + f"With {join(map(str, study.extent.list_threads))} threads: "
               f"{lists_text(study)}",
               all_in(groups))


def list_nodes(study):
    groups = {t: [above(paired(list_times(study, "node-mutex", t), list_times(study, other, t)))
                  for other in ("mutex", "rwlock")] for t in study.extent.list_threads}
    times = {t: mean(list_times(study, "node-mutex", t)) / mean(list_times(study, "mutex", t))
             for t in study.extent.list_threads}
    return Row(lists_place(),
               "a mutex per node is the slowest: 4.8, 5.8, 3.4 and 2.3 times one mutex",
               "slower than both others at each number of threads",
               decided(groups) + join((f"{x:.2f} times with {t}" for t, x in times.items()))
               + " threads", all_in(groups))


def list_threads(study):
    first, *more = study.extent.list_threads
    groups = {lock: [above(paired(list_times(study, lock, t), list_times(study, lock, first)))
                     for t in more]
              for lock in ("rwlock", "mutex")}
    return Row(lists_place(),
               "with a lock for the list more threads take longer than one: about twice as long",
               "longer with 2, 4 and 8 threads than with 1, with either lock",
               decided(groups) + join((f"{LOCK_NAMES[lock]}: " + join(
                   f"{mean(list_times(study, lock, t)) / mean(list_times(study, lock, first)):.2f} "
                   f"times with {t}"
                   for t in more) for lock in groups), "; "), all_in(groups))


def list_shape(study):
    base, found, texts = list_times(study, "mutex", 1), [], []
    for lock, line in FIGURE_3.items():
        for threads, seconds in zip(study.extent.list_threads, line):
            wanted = seconds / FIGURE_3["mutex"][0]
            found += within_factors(paired, list_times(study, lock, threads), base, wanted / SHAPE,
                                    wanted * SHAPE)
        texts.append(f"{LOCK_NAMES[lock]} " + join(
            f"{mean(list_times(study, lock, t)) / mean(base):.2f} ({s / FIGURE_3['mutex'][0]:.2f})"
            for t, s in zip(study.extent.list_threads, line)))
    return Row(lists_place(), "the twelve times",
               f"each over that of one mutex and one thread, within a factor of {SHAPE} "
               "of the published ratio", "ratios, published in brackets: " + join(texts, "; "),
               decide(found))


# ---- figure 5: efficiency ------------------------------------------------------------------------

def asyncio_efficiency(study):
    groups = {trace: [below(paired(efficiencies(study, "executor", trace, 64),
                                   efficiencies(study, "executor", trace, 8), SHARP))]
              for trace in study.extent.traces}
    return Row("Figure 5, Conclusion",
               "asyncio's efficiency falls sharply past 8 threads, for all sizes",
               f"64 threads have less than {100 * SHARP:.0f} % of the efficiency of 8, with each "
               "trace",
               "with 8, 16, 32 and 64 threads, " + by_trace(study, lambda trace: [
                   efficiencies(study, "executor", trace, t) for t in study.extent.threads
                   if t >= 8]), all_in(groups))


def pool_efficiency(study):
    groups = {trace: [above(paired(efficiencies(study, "pool", trace, b),
                                   efficiencies(study, "pool", trace, a)), -FALL)
                      for a, b in steps(study.extent.threads, 1, 8)]
              for trace in study.extent.traces}
    return Row("Figure 5", "the pool's efficiency is flat or rises up to 8 threads",
               f"it does not fall by {FALL} at any step, with each trace",
               decided(groups) + by_trace(
                   study, lambda trace: [efficiencies(study, "pool", trace, t)
                                         for t in study.extent.threads if t <= 8]),
               all_in(groups))


def slow_fall(study):
    groups = {}
    for trace in study.extent.traces:
        pairs = steps(study.extent.threads, 8, 64)
        line = {t: efficiencies(study, "pool", trace, t) for t in study.extent.threads if t >= 8}
        groups[trace] = [above(paired(line[8], line[study.extent.threads[-1]]))]
        groups[trace] += [above(paired(line[b], line[a], SLOW)) for a, b in pairs]
    return Row("Figure 5", "then it falls slowly",
               f"it is lower with 64 threads than with 8, and each step keeps at least "
               f"{100 * SLOW:.0f} %, with each trace",
               decided(groups) + by_trace(study, lambda trace: [
                   efficiencies(study, "pool", trace, t) for t in study.extent.threads if t >= 8]),
               all_in(groups))


def weak_scaling(study):
    first, second = study.extent.weak
    a, b = efficiencies(study, "pool", *first), efficiencies(study, "pool", *second)
    own = [efficiencies(study, "sunproxyd", *pair) for pair in (first, second)]
    return Row("Abstract, Results, Conclusion",
               "nearly weak scaling: efficiency 0.81 with 328 requests and 32 threads, "
               "0.79 with 656 and 64", f"the two differ by less than {WEAK}",
               f"{plus_minus(a, '%.2f')} with {first[0]} URLs and {first[1]} threads, "
               f"{plus_minus(b, '%.2f')} with {second[0]} and {second[1]}; sunproxyd "
               f"{mean(own[0]):.2f} and {mean(own[1]):.2f}",
               decide([equal(paired(b, a), WEAK)]))


# ---- the table of alignment ----------------------------------------------------------------------

def alignment(study):
    found, texts = [], []
    for trace in study.extent.aligned_traces:
        a, b = (efficiencies(study, name, trace, study_of.ALIGNED_THREADS)
                for name in ("pool", "misaligned"))
        found += within_factors(unpaired, a, b, *ALIGNED)
        texts.append(f"{trace} URLs: {plus_minus(a, '%.3f')} aligned, {plus_minus(b, '%.3f')} "
                     f"misaligned ({100 * (mean(a) / mean(b) - 1):+.1f} %)")
    return Row("Results, the second table",
               "aligned entries of the table improve the efficiency with 16 threads by about "
               "9 %: 1.1269 against 1.0268 (328 URLs), 1.5362 against 1.4168 (656)",
               f"by {100 * (ALIGNED[0] - 1):.0f} to {100 * (ALIGNED[1] - 1):.0f} %, with both "
               "sizes; entries of 8 bytes, and of 12 bytes with an unused character",
               join(texts, "; ")
               + ". A fetch takes milliseconds, a lookup less than a microsecond", decide(found))


# ---- ours ----------------------------------------------------------------------------------------

def table_ratio(study, case, other):
    """Of two cases of the table, measured in turns: case over other, one a run."""
    return [a / b for a, b in zip(study.table[case], study.table[other])]


def table_alignment(study):
    found, texts = [], []
    for lookups in study_of.LOOKUPS:
        for entries in (study_of.PAPER_ENTRIES, study.extent.many_entries):
            ratio = table_ratio(study, ("aligned", "mutex", 16, lookups, entries),
                                ("misaligned", "mutex", 16, lookups, entries))
            found.append(above(of_mean(ratio), 1))
            texts.append(f"{plus_minus([100 * (r - 1) for r in ratio])} % with {entries} entries, "
                         f"{lookups} % lookups")
    return Row("the daemon's table by itself",
               "entries that begin at a cache line give more operations per second of CPU "
               "time than entries 40 bytes behind it",
               "with 1,324 and more entries, and each share of lookups",
               join(texts), decide(found), ours=True)


def same_throughput(study):
    pool = study_of.rates(study.real["pool"])
    others = {name: study_of.rates(study.real[name]) for name in ("sunproxyd", "executor")}
    return Row("the web's latency", "with 64 threads and a mean latency of 0.5 s the pool, "
               "sunproxyd and asyncio with an executor of 64 threads serve the same",
               f"within {100 * SAME:.0f} % of the pool",
               join(f"{NAMES[name]} {plus_minus(rate)}"
                    for name, rate in [("pool", pool), *others.items()])
               + " requests/s", decide([one for rate in others.values()
                                        for one in within_factors(unpaired, rate, pool, 1 - SAME,
                                                                  1 + SAME)]), ours=True)


DIAGRAMS = cannot("Figures 1, 2 and 7", "a model of a proxy, a thread pool, a terminal",
                  "they show no result")
MOTIVES = cannot("Introduction", "a thread per request is wasteful; a page from disk is an order "
                 "of magnitude faster than from the web",
                 "the paper measures neither, and takes the second from a list of latencies")
ENTRY_LOCKS = cannot("Implementation", "a mutex for each entry of the table has a significant "
                     "overhead, and takes storage",
                     "the paper measures it with a list alone: see Figure 3")
LFU = cannot("Implementation", "LFU, linear probing and the periodic purge are robust",
             "the paper measures no hit ratio: "
             "all of its URLs are unique")
REASON = cannot("Results", "read-write locks possibly explain the diminishing speed-up; a lock per "
                "partition would be better",
                "suppositions; the paper measures neither")
GIL = cannot("Results", "Python's global lock perhaps restricts the number of threads",
             "a supposition; the CPU time that "
             "Python used stands with asyncio's flat speed-up")
NETWORK = cannot("Network Implementation",
                 "up to 100 clients, a time-out of 300 s, a database, a periodic purge",
                 "a description; the paper measures nothing of it")

STATEMENTS = [
    throughput, DIAGRAMS, MOTIVES, ENTRY_LOCKS, LFU, slope_above_one, degrades, asyncio_slope,
    asyncio_constant, asyncio_degrades,
    better("Abstract, Figure 4",
           "the pool has greater speed-ups than asyncio for higher numbers of threads",
           lambda *args: study_of.speed_ups(*args)),
    list_reads, list_nodes, list_threads, list_shape, asyncio_efficiency,
    better("Abstract, Figure 5", "the pool is more efficient than asyncio", efficiencies),
    pool_efficiency, slow_fall, weak_scaling, throughput_rises, throughput_diminishes, REASON,
    asyncio_flat, GIL, alignment,
    NETWORK, gains_diminish, table_alignment, same_throughput,
]

CORES = os.cpu_count() or 1
CORES_NOTE = (
    f"This machine has {CORES} core{'' if CORES == 1 else 's'}; the paper's had many. Fetches wait "
    "for their origin and need no core meanwhile, so speed-up and efficiency are those of the "
    "latency, up to where the CPU time of a fetch, 31 times as large beside the scaled latency as "
    "beside the web's, fills the cores. This lowers the figures at 32 and 64 threads. Of locks and "
    "of the table no more threads than cores are at work at once, so contention and false sharing "
    "are smaller than on the paper's machine.")
SETUP = ("Lists of 164, 328, 656 and 1,324 unique URLs, 1 to 64 threads, {repeats} runs each, "
         "against a local origin with a latency drawn once for each URL: {latency}, 1/31 of the "
         "web's, and for the throughput {real_latency}. The pool is a server of this project with "
         "libcurl; asyncio runs blocking fetches in an executor of that many threads, as the paper "
         "describes it. Figure 3 is a sorted list of 1,000 keys with 100,000 operations, 80 % "
         "lookups.")


def paper(study, seconds):
    rows = [one if isinstance(one, Row) else one(study) for one in STATEMENTS]
    return Paper("parallel", "Exploiting Parallelism in a Proxy Server",
                 [SETUP.format(**study.extent._asdict()), CORES_NOTE], rows, seconds)
