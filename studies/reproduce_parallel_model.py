"""A model of the contestants of the parallelism study, which extrapolates to more cores. Not a
measurement.

A closed network with N fetches in flight: a delay Z, in which a fetch waits for its origin; cores,
which all fetches share; and for contestants that do most of their work in one thread at a time a
station for that. Mean value analysis (Reiser and Lavenberg, 1980) computes the throughput. C cores
with a demand D in all are a station with the demand D / C and a delay of D (C - 1) / C (Seidmann,
Schweitzer, Shalev-Oren, 1987).
"""

import collections

# What a fetch takes: seconds of waiting; of CPU that any core can do; of CPU that one thread at a
# time does.
Demand = collections.namedtuple("Demand", "delay parallel serial")

# The threads that do one contestant's work one at a time: aiohttp's event loop, Python's global
# lock, and the daemon's fetcher. The pool has none.
SERIAL = {"pool": False, "sunproxyd": True, "executor": True, "aiohttp": True}


def throughput(demand, fetches, cores):
    """Fetches per second with that many in flight."""
    delay = demand.delay + demand.parallel * (cores - 1) / cores
    stations = [demand.parallel / cores, demand.serial]
    queues = [0.0 for _ in stations]
    rate = 0.0
    for n in range(1, fetches + 1):
        times = [d * (1 + queue) for d, queue in zip(stations, queues)]
        rate = n / (delay + sum(times))
        queues = [rate * t for t in times]
    return rate


def demand_of(contestant, one_thread, contestant_cpu, other_cpu):
    """`one_thread` seconds a fetch take with one thread, `contestant_cpu` of them the contestant's
    on a CPU, `other_cpu` the origin's."""
    serial = contestant_cpu if SERIAL[contestant] else 0.0
    parallel = other_cpu + (0.0 if SERIAL[contestant] else contestant_cpu)
    return Demand(max(0.0, one_thread - contestant_cpu - other_cpu), parallel, serial)


def limit(demand, cores):
    """Fetches per second that no number of threads exceeds."""
    return 1 / max(demand.parallel / cores, demand.serial, 1e-9)
