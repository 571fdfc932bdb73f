"""The Sun RPC paper: what is run, and what is kept of it.

"RPC-Based Web Proxy Server: Implementation and Evaluation using Sun RPC and libcurl". Two data
sets, five policies, capacities of 10 to 80 % of the distinct URLs as in the paper, and for its
statement on the ends 1 URL and all of them. The requests of its dataset1 are replayed too, if
$SUNPROXY_DATASETS (by default ../shared/datasets) has the folder sunrpc-paper.
"""

import collections
import os
import pathlib

import harness
import replays
from replays import Part, Trace

DATASETS = pathlib.Path(os.environ.get("SUNPROXY_DATASETS", "../shared/datasets"))
POLICIES = ["lru", "lfu", "fifo", "rand", "maxs"]
# Sizes of a Part beside those in per cent of the paper: 1 URL, and all of them.
ONE, ALL = 0, 100

# Capacities in per cent of the URLs; runs; latency and bandwidth of the origin; options of replay;
# replays at a time; seeds of RAND in the simulation of all capacities.
Extent = collections.namedtuple("Extent", "percent repeats latency bandwidth options at_once seeds")
FULL = Extent([10, 20, 30, 40, 50, 80], 5, "lognormal:15ms:0.5", 4000000, [], 8, 20)
SMOKE = Extent([20, 30], 2, "1ms", 100000000, ["--limit", 60], 4, 2)

# parts: {name: Part}; authors: a Part of the requests that the authors published, or None; log: the
# outcomes that their server logged with LRU and 7 URLs, or None; sizes: {name: {url: bytes}} of the
# shipped data sets;
# misses: {name: {policy: [misses with one URL more each]}} of FIFO, and {name: [of each seed]} of
# RAND, simulated.
Study = collections.namedtuple("Study", "extent parts authors log sizes misses")


def shipped(name):
    return Trace(f"datasets/{name}/History", f"datasets/{name}/sizes.tsv", [])


def find_traces():
    traces = {name: shipped(name) for name in ("dataset1", "dataset2")}
    path = DATASETS / "sunrpc-paper/dataset1-urls.txt"
    if path.exists():
        # The sizes of these pages are unknown: the origin draws them.
        traces["authors"] = Trace(path, None, [])
    return traces


def read_sizes(trace):
    lines = pathlib.Path(trace.sizes).read_text().splitlines()
    return {url: int(size) for url, size in (line.split("\t") for line in lines)}


def read_authors_log():
    """What the authors' server wrote of each request, in the words of our logs; None if it is not
    at hand."""
    path = DATASETS / "sunrpc-paper/LRU_CacheSize7_test1.txt"
    words = {"New Cache Block for": "miss", "Cache Hit for": "hit",
             "Evicted Cache Block of": "evicted"}
    if not path.exists():
        return None
    starts = (line.split(":", 1)[0] for line in path.read_text().splitlines())
    return [words[start] for start in starts if start in words]


def count_urls(trace):
    if trace.sizes:
        return len(read_sizes(trace))
    return len(set(pathlib.Path(trace.path).read_text().split()))


def capacities(trace, extent):
    """{size of the Part: URLs}"""
    urls = count_urls(trace)
    return {**dict(zip(extent.percent, harness.capacities(urls, extent.percent))), ONE: 1,
            ALL: urls}


def plan(bench, extent):
    """Arguments of Bench.run for all replays, the longest ones first."""
    seeds = range(1, extent.repeats + 1)
    wanted = [(name, "none", None, seed) for name in bench.traces for seed in seeds]
    for name, trace in bench.traces.items():
        wanted += [(name, policy, capacity, seed) for seed in seeds
                   for capacity in sorted(capacities(trace, extent).values())
                   for policy in POLICIES]
    return wanted


def gather(name, trace, extent, results):
    def runs(policy, capacity):
        return [results[name, policy, capacity, seed] for seed in range(1, extent.repeats + 1)]

    return Part(name, POLICIES, extent.percent, runs("none", None),
                {(policy, size): runs(policy, capacity) for policy in POLICIES
                 for size, capacity in capacities(trace, extent).items()})


def simulate_misses(children, out, name, trace, seeds):
    """Misses with each capacity from 1 URL to all of them: of FIFO, and of RAND with each seed."""
    every = range(1, count_urls(trace) + 1)

    def misses(policy, *options):
        found = replays.simulate(children, out,
                                 f"anomaly-{name}-{policy}{''.join(map(str, options))}", trace,
                                 [policy], every, *options)
        return [found[policy, capacity]["misses"] for capacity in every]

    return {"fifo": [misses("fifo")],
            "rand": [misses("rand", "--seeds", 1, "--seed", seed) for seed in range(1, seeds + 1)]}


def perform(children, folder, extent):
    folder.mkdir(parents=True)
    traces = find_traces()
    if "authors" not in traces:
        print(f"without the authors' own requests: {DATASETS}/sunrpc-paper does not exist")
    bench = replays.Bench(children, folder, traces, extent.options,
                          ["--latency", extent.latency, "--bandwidth", extent.bandwidth])
    results = bench.run_all(plan(bench, extent), extent.at_once)
    bench.close()
    parts = {name: gather(name, trace, extent, results) for name, trace in traces.items()}
    authors = parts.pop("authors", None)
    return Study(extent, parts, authors, read_authors_log(),
                 {name: read_sizes(traces[name]) for name in parts},
                 {name: simulate_misses(children, folder, name, trace, extent.seeds)
                  for name, trace in traces.items()})
