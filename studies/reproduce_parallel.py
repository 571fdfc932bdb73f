"""The study of parallelism: what is run, and what is kept of it.

After "Exploiting Parallelism in a Proxy Server", whose traces are 164, 328, 656 and 1,324 unique
URLs. All contestants (reproduce_parallel_runs.py) fetch the same URLs from a local origin. It draws
a latency and a size once for each URL from seeded log-normal distributions; each answer ends its
connection, as answers of different hosts do. The latencies of the study of speed-ups are 1/31 of
those with which throughput is compared. That one has a mean of 0.5 s, as 64 threads and 128
requests per second in the paper imply.
"""

import collections
import math
import random

import harness
import reproduce_parallel_runs

# At most this many fetches are in flight in all runs that take place at once.
IN_FLIGHT = 16
# A body: median and sigma of a log-normal distribution, and the largest one.
SIZE = (12000, 1.0, 1 << 20)
SEED = 1

# Traces by their URLs; numbers of threads; runs; latencies of the origin, scaled and real; the
# trace of the real latency, and the one for asyncio's own executor; the two cases of weak scaling,
# each a trace and a number of threads; milliseconds of a measurement of the table, their number,
# and the entries of a large table; the traces on which layouts of the pool's table are compared;
# threads and operations of the list.
Extent = collections.namedtuple("Extent", "traces threads repeats latency real_latency real_trace "
                                "own_trace weak table_ms table_repeats many_entries aligned_traces "
                                "list_threads list_operations")
FULL = Extent([164, 328, 656, 1324], [1, 2, 4, 8, 16, 32, 64], 5, "lognormal:14ms:0.5",
              "lognormal:440ms:0.5", 656,
              164, ((328, 32), (656, 64)), 100, 7, 100000, [328, 656], [1, 2, 4, 8], 100000)
SMOKE = Extent([8, 16], [1, 8, 16, 64], 2, "lognormal:1ms:0.5", "lognormal:5ms:0.5", 16, 8,
               ((8, 16), (16, 64)), 5, 2,
               2000, [8, 16], [1, 2, 4, 8], 1000)

# How the daemon's table is laid out and locked, for measurements of ours: tables with a mutex or a
# read-write lock each.
NODES = 4096
PAPER_ENTRIES = 1324
TABLE_THREADS = 16
# Threads with which the paper compares layouts of its table.
ALIGNED_THREADS = 16
LIST_LOCKS = ["rwlock", "mutex", "node-mutex"]
LAYOUTS = [("aligned", "mutex", 16), ("as-is", "mutex", 16), ("misaligned", "mutex", 16),
           ("all-aligned", "mutex", 16)]
LOCKS = [("as-is", lock, parts) for parts in (1, 16, NODES) for lock in ("mutex", "rwlock")]
LOOKUPS = (50, 90)

# Times and the like: mean, standard deviation and number of measurements.
Mean = collections.namedtuple("Mean", "mean sd runs")

# runs is {(contestant, trace, threads): [Run]}; real likewise {contestant: [Run]}; table is
# {(layout, lock, parts, lookups, entries): [operations per second of CPU time]}; lists is {(lock,
# threads): [seconds]};
# origin_cpu: seconds a request.
Study = collections.namedtuple("Study",
                               "extent contestants runs real table lists aiohttp origin_cpu")


def mean_of(values):
    mean = sum(values) / len(values)
    if len(values) < 2:
        return Mean(mean, 0, len(values))
    return Mean(mean, math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1)),
                len(values))


def write_sizes(path, count):
    """The table of sizes for the origin, which looks URLs up without their port, too."""
    draw = random.Random(SEED)
    median, sigma, largest = SIZE
    sizes = [min(largest, round(draw.lognormvariate(math.log(median), sigma)))
             for _ in range(count)]
    path.write_text("".join(f"http://127.0.0.1/parallel/{n}\t{size}\n"
                            for n, size in enumerate(sizes)))


def start_origin(children, folder, latency, extent):
    folder.mkdir(parents=True)
    sizes = folder / "sizes.tsv"
    write_sizes(sizes, max(*extent.traces, extent.real_trace))
    return harness.Origin(children, folder / "origin", "--latency", latency, "--seed", SEED,
                          "--sizes", sizes,
                          "--header", "Connection: close")


def start_contest(children, folder, latency, extent, python):
    origin = start_origin(children, folder, latency, extent)
    return reproduce_parallel_runs.Contest(children, folder, origin, python)


def run_speed_ups(contest, extent, contestants):
    """Runs with few threads take place side by side: they use little CPU."""
    results = collections.defaultdict(list)
    for threads in extent.threads:
        wanted = [(contestant, trace, threads, seed) for seed in range(extent.repeats)
                  for trace in sorted(extent.traces, reverse=True) for contestant in contestants]
        wanted += [("workers", extent.real_trace, threads, seed) for seed in range(extent.repeats)
                   if extent.real_trace in extent.traces]
        if threads in (extent.threads[0], ALIGNED_THREADS):
            wanted += [("misaligned", trace, threads, seed) for seed in range(extent.repeats)
                       for trace in extent.aligned_traces]
        found = harness.run_all(contest.run, wanted, max(1, IN_FLIGHT // threads))
        for contestant, trace, _, seed in wanted:
            results[contestant, trace, threads].append(found[contestant, trace, threads, seed])
    return dict(results)


def run_real(contest, extent, contestants):
    """With the web's latency, the most threads, and at once, since all of them wait most of the
    time. "own" is asyncio with the executor that it makes itself."""
    threads = extent.threads[-1]
    wanted = [("executor", extent.own_trace, 0, seed) for seed in range(extent.repeats)]
    wanted += [(contestant, extent.real_trace, threads, seed) for seed in range(extent.repeats)
               for contestant in contestants]
    found = harness.run_all(contest.run, wanted, 3)
    results = {contestant: [found[contestant, extent.real_trace, threads, seed]
                            for seed in range(extent.repeats)]
               for contestant in contestants}
    results["own"] = [found["executor", extent.own_trace, 0, seed]
                      for seed in range(extent.repeats)]
    return results


def run_table(children, folder, extent):
    """One measurement at a time, those to be compared one after the other."""
    wanted = [(*case, lookups, PAPER_ENTRIES, TABLE_THREADS) for lookups in LOOKUPS
              for case in LAYOUTS + LOCKS]
    wanted += [(*case, lookups, extent.many_entries, TABLE_THREADS) for lookups in LOOKUPS
               for case in LAYOUTS]
    wanted = list(dict.fromkeys(wanted))
    results = collections.defaultdict(list)
    for seed in range(extent.table_repeats):
        for case in wanted if seed % 2 == 0 else reversed(wanted):
            rate = reproduce_parallel_runs.measure_table(children, folder, case, extent.table_ms,
                                                         seed)
            results[case[:5]].append(rate)
    return dict(results)


def run_lists(children, folder, extent):
    """One measurement at a time, those to be compared one after the other."""
    results = collections.defaultdict(list)
    for seed in range(extent.repeats):
        for threads in extent.list_threads:
            for lock in LIST_LOCKS if seed % 2 == 0 else reversed(LIST_LOCKS):
                results[lock, threads].append(reproduce_parallel_runs.measure_list(
                    children, folder, lock, threads, extent.list_operations, seed))
    return dict(results)


def perform(children, folder, extent):
    python, aiohttp = reproduce_parallel_runs.find_python()
    contestants = ["pool", "sunproxyd", "executor"] + (["aiohttp"] if aiohttp else [])
    if not aiohttp:
        print("parallelism: aiohttp is not installed (Debian: python3-aiohttp): the study goes on "
              "without it")
    scaled = start_contest(children, folder / "scaled", extent.latency, extent, python)
    runs = run_speed_ups(scaled, extent, contestants)
    requests = sum(run.requests for some in runs.values() for run in some)
    origin_cpu = reproduce_parallel_runs.cpu_seconds(scaled.origin.child.pid) / requests
    real_contest = start_contest(children, folder / "real", extent.real_latency, extent, python)
    real = run_real(real_contest, extent, contestants)
    table = run_table(children, folder, extent)
    lists = run_lists(children, folder, extent)
    return Study(extent, contestants, runs, real, table, lists, aiohttp, origin_cpu)


# ---- what follows from the runs ------------------------------------------------------------------

def rates(runs):
    """Requests per second, one a run."""
    return [run.requests / run.seconds for run in runs]


def throughput(runs):
    """Requests per second."""
    return mean_of(rates(runs))


def speed_ups(study, contestant, trace, threads):
    """Of each run over the one with one thread of the same number."""
    one = study.runs[contestant, trace, study.extent.threads[0]]
    many = study.runs[contestant, trace, threads]
    return [a.seconds / b.seconds for a, b in zip(one, many)]


def speed_up(study, contestant, trace, threads):
    return mean_of(speed_ups(study, contestant, trace, threads))


def efficiency(study, contestant, trace, threads):
    s = speed_up(study, contestant, trace, threads)
    return Mean(s.mean / threads, s.sd / threads, s.runs)


def cores_used(runs):
    """CPU time by wall time."""
    return sum(run.cpu_seconds for run in runs) / sum(run.seconds for run in runs)
