"""The Thrift study: what is run, and what is kept of it.

"RPC-Based Proxy Server" (N. Goyal, S. Deshpande), on a proxy on Apache Thrift: two workloads of 150
requests for 25 pages, three policies and no cache, five runs. The text has caches of 64, 192 and
256 KB where it describes the experiment, and of 64, 128 and 192 KB where it describes the results:
all four are run.
"""

import collections
import pathlib
import sys

import harness
import replays
from replays import Part, Trace

sys.path.append(str(harness.TOP / "datasets"))
import generate

WORKLOADS = ["random", "repeated"]
# The study's RAND draws each victim anew.
POLICIES = {"lru": "lru", "rand": "rand:draw=each", "lfu": "lfu"}
BODIES = ["--count-bytes", "body"]
# The text's example: pages requested in a loop, and one page less in the cache.
LOOP, LOOP_CAPACITY = ["A", "B", "C", "D"] * 25, 3

# Sizes in KB; runs; latency and bandwidth of the origin; options of replay; replays at a time;
# other workloads that are simulated.
Extent = collections.namedtuple("Extent", "kb runs latency bandwidth options at_once others")
FULL = Extent([64, 128, 192, 256], 5, "lognormal:20ms:0.5", 4000000, [], 8, 100)
SMOKE = Extent([64, 192], 2, "1ms", 100000000, ["--limit", 60], 4, 2)

# parts: {workload: Part}, sizes in KB; bytes: {workload: [bytes of each page]}; loop: {policy: hits
# of LOOP};
# refusing: LRU's hit ratios with the smallest cache on the random workload, with all pages and
# without those larger than half of it, in per cent; others: {(workload, policy, KB): [hit ratio of
# each other workload, per cent]}.
Study = collections.namedtuple("Study", "extent parts bytes loop refusing others")


def trace_of(name):
    path = f"datasets/thrift/{name}.urls"
    return Trace(path, path, BODIES)


def plan(extent):
    wanted = [(name, "none", None, seed) for name in WORKLOADS
              for seed in range(1, extent.runs + 1)]
    return wanted + [(name, policy, f"{kb}K", seed) for kb in extent.kb for name in WORKLOADS
                     for policy in POLICIES.values() for seed in range(1, extent.runs + 1)]


def gather(name, extent, results):
    def runs(policy, capacity):
        return [results[name, policy, capacity, seed] for seed in range(1, extent.runs + 1)]

    return Part(name, list(POLICIES), extent.kb, runs("none", None),
                {(policy, kb): runs(spec, f"{kb}K") for policy, spec in POLICIES.items()
                 for kb in extent.kb})


def page_bytes(name):
    lines = pathlib.Path(trace_of(name).path).read_text().splitlines()
    return [int(size) for size in dict(line.split("\t") for line in lines).values()]


def simulate_loop(children, folder):
    path = folder / "loop.urls"
    path.write_text("".join(f"http://{page}.example.com/\n" for page in LOOP))
    found = replays.simulate(children, folder, "loop", Trace(path, None, []),
                             list(POLICIES.values()),
                             [LOOP_CAPACITY])
    return {policy: found[spec, LOOP_CAPACITY]["hits"] for policy, spec in POLICIES.items()}


def simulate_refusing(children, folder, extent):
    small = extent.kb[0]

    def lru(name, *options):
        found = replays.simulate(children, folder, name, trace_of("random"), ["lru"],
                                 [f"{small}K"], *BODIES, *options)
        return 100 * found["lru", small << 10]["hit_ratio"]

    return lru("all-pages"), lru("no-large-page", "--max-page", f"{small // 2}K")


def simulate_others(children, folder, extent):
    """Hit ratios of workloads drawn as those of datasets/thrift, with other seeds."""
    found = collections.defaultdict(list)
    path, capacities = folder / "other.urls", [f"{kb}K" for kb in extent.kb]
    for seed in range(generate.THRIFT_SEED + 1, generate.THRIFT_SEED + 1 + extent.others):
        for workload, text in generate.make_thrift(seed).items():
            path.write_text(text)
            results = replays.simulate(children, folder, f"other-{workload}-{seed}",
                                       Trace(path, path, []),
                                       list(POLICIES.values()), capacities, *BODIES)
            for policy, spec in POLICIES.items():
                for kb in extent.kb:
                    found[workload.split(".")[0], policy,
                          kb].append(100 * results[spec, kb << 10]["hit_ratio"])
    return dict(found)


def perform(children, folder, extent):
    folder.mkdir(parents=True)
    bench = replays.Bench(children, folder, {name: trace_of(name) for name in WORKLOADS},
                          extent.options,
                          ["--latency", extent.latency, "--bandwidth", extent.bandwidth])
    results = bench.run_all(plan(extent), extent.at_once)
    bench.close()
    return Study(extent, {name: gather(name, extent, results) for name in WORKLOADS},
                 {name: page_bytes(name) for name in WORKLOADS}, simulate_loop(children, folder),
                 simulate_refusing(children, folder, extent),
                 simulate_others(children, folder, extent))
