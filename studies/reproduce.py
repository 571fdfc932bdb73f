#!/usr/bin/env python3
"""Repeats the evaluations of published studies, and states which of their claims hold.

Started by studies/reproduce.sh. The Sun RPC paper and the Thrift study: every run is a replay over RPC
against a daemon of its own, which fetches from a local origin with a latency like that of the web;
several runs take place at once. The claims and their criteria are in reproduce_claims.py, the paper's
numbers in reproduce_published.py, the page in reproduce_page.py. Each further study (MORE_STUDIES) has
modules of its own: what it runs, its claims, and its part of the page.

The authors' own requests are replayed too, if $SUNPROXY_DATASETS (by default ../shared/datasets) has
the folder sunrpc-paper.
"""

import argparse
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "scripts"))
import harness
import reproduce_claims as claims
import reproduce_geni
import reproduce_geni_claims
import reproduce_geni_page
import reproduce_leiden
import reproduce_leiden_claims
import reproduce_leiden_page
import reproduce_page
import reproduce_parallel
import reproduce_parallel_claims
import reproduce_parallel_page

OUT = pathlib.Path("build/reproduce")
DATASETS = pathlib.Path(os.environ.get("SUNPROXY_DATASETS", "../shared/datasets"))
POLICIES = ["lru", "lfu", "fifo", "rand", "maxs"]
AT_ONCE = 4
# The Thrift study's RAND draws each victim anew.
THRIFT_POLICIES = {"lru": "lru", "lfu": "lfu", "rand": "rand:draw=each"}

# The extent: sizes in per cent of the URLs, sizes in KB, runs averaged of the data sets and of the
# workloads, the latency of the origin, options of replay. A smoke test only shows that everything works.
Scale = collections.namedtuple("Scale", "percent kb repeats runs latency options")
FULL = Scale([10, 20, 30, 40, 50, 80], [64, 128, 192, 256], 3, 5, "lognormal:20ms:0.5", [])
SMOKE = Scale([10, 20, 30], [64, 256], 2, 2, "1ms", ["--limit", 60])

# Further studies. `how` is what it does, in a few words. perform(children, folder, scale) gives the result,
# assess(result) the rows of its claims; section(result) and as_json(result) are what the page and the JSON
# have of it.
OVER_HTTP = "over HTTP, against origins with a limited link"
Study = collections.namedtuple("Study", "how full smoke perform assess section as_json")
MORE_STUDIES = {
    "geni": Study(OVER_HTTP, reproduce_geni.FULL, reproduce_geni.SMOKE, reproduce_geni.perform,
                  reproduce_geni_claims.assess, reproduce_geni_page.section, reproduce_geni_page.as_json),
    "leiden": Study(OVER_HTTP, reproduce_leiden.FULL, reproduce_leiden.SMOKE, reproduce_leiden.perform,
                    reproduce_leiden_claims.assess, reproduce_leiden_page.section, reproduce_leiden_page.as_json),
    "parallel": Study("threads and fetches in flight, against an origin with a scaled latency",
                      reproduce_parallel.FULL, reproduce_parallel.SMOKE, reproduce_parallel.perform,
                      reproduce_parallel_claims.assess, reproduce_parallel_page.section,
                      reproduce_parallel_page.as_json),
}
STUDIES = ["rpc", *MORE_STUDIES]

# What the replays over RPC give: claims.Row of each claim; {name: claims.Part}; that of the authors' own
# requests, or None; {name: claims.Workload}; claims.Fall.
Replays = collections.namedtuple("Replays", "rows parts authors workloads fall")

# A trace: its path, options of the origin for sizes, options of the daemon.
Trace = collections.namedtuple("Trace", "path sizes options")


def thrift_trace(name):
    path = f"datasets/thrift/{name}.urls"
    return Trace(path, ["--sizes", path], ["--count-bytes", "body"])


def find_traces():
    traces = {name: Trace(f"datasets/{name}/History", ["--sizes", f"datasets/{name}/sizes.tsv"], [])
              for name in ("dataset1", "dataset2")}
    path = DATASETS / "sunrpc-paper/dataset1-urls.txt"
    if path.exists():
        # The sizes of these pages are unknown: the origin draws them.
        traces["authors"] = Trace(path, [], [])
    traces.update({name: thrift_trace(name) for name in ("random", "repeated")})
    return traces


def read_outcomes(log):
    lines = log.read_text(errors="replace").splitlines()
    column = lines[0].split("\t").index("outcome")
    return [line.split("\t")[column] for line in lines[1:]]


class Bench:
    """The traces, an origin for each, and the replays."""

    def __init__(self, children, out, scale):
        self.children = children
        self.out = out
        self.scale = scale
        self.traces = find_traces()
        self.origins = {
            name: harness.Origin(children, out / name, "--latency", scale.latency, *trace.sizes)
            for name, trace in self.traces.items()}

    def run(self, trace, policy, capacity, seed):
        """One replay against a daemon of its own; `capacity` as replay takes it, or None."""
        folder = self.out / trace
        name = "-".join(str(part) for part in
                        (policy.split(":")[0], capacity if capacity else "0", seed))
        daemon = harness.Daemon(self.children, folder, name, self.origins[trace], "--seed", seed,
                                *self.traces[trace].options)
        try:
            result = harness.replay(self.children, daemon, self.traces[trace].path, policy,
                                    capacity, folder, name, *self.scale.options)
        finally:
            self.children.end(daemon.child)
        one = result["runs"][0]
        return claims.Run(result["capacity_urls"], one["requests"], one["hits"], one["hit_ratio"],
                          one["byte_hit_ratio"], one["mean_us"],
                          read_outcomes(folder / f"{name}.log"))


def count_urls(trace):
    """Distinct URLs of a trace with a list or a table of sizes beside it."""
    path = pathlib.Path(trace.path)
    table = path.parent / "sizes.tsv" if path.name == "History" else path
    return len({line.split("\t")[0] for line in table.read_text().splitlines() if line})


def plan(bench):
    """Arguments of Bench.run for all replays, the longest ones first."""
    scale, wanted = bench.scale, []
    urls = [name for name in bench.traces if name not in ("random", "repeated")]
    seeds = range(1, scale.repeats + 1)
    wanted += [(name, "none", None, seed) for name in urls for seed in seeds]
    for name in urls:
        capacities = harness.capacities(count_urls(bench.traces[name]), scale.percent)
        wanted += [(name, policy, capacity, seed) for seed in seeds for capacity in capacities for policy in POLICIES]
    for name in ("random", "repeated"):
        for seed in range(1, scale.runs + 1):
            wanted.append((name, "none", None, seed))
            wanted += [(name, policy, f"{kb}K", seed) for kb in scale.kb
                       for policy in THRIFT_POLICIES.values()]
    return wanted


def gather_part(bench, name, results):
    if name not in bench.traces:
        return None
    def average(policy, capacity):
        return claims.average([results[name, policy, capacity, seed]
                               for seed in range(1, bench.scale.repeats + 1)])

    percent = bench.scale.percent
    capacities = harness.capacities(count_urls(bench.traces[name]), percent)
    return claims.Part(name, POLICIES, percent, average("none", None),
                       {(policy, share): average(policy, capacity)
                        for policy in POLICIES for share, capacity in zip(percent, capacities)})


def gather_workload(bench, name, results):
    def mean(policy, capacity):
        return claims.mean_of([results[name, policy, capacity, seed]
                               for seed in range(1, bench.scale.runs + 1)])

    return claims.Workload(name, list(THRIFT_POLICIES), [kb * 1024 for kb in bench.scale.kb],
                           mean("none", None),
                           {(policy, kb * 1024): mean(spec, f"{kb}K")
                            for policy, spec in THRIFT_POLICIES.items() for kb in bench.scale.kb})


# The random workload of the Thrift study: LRU and others hit less with the second of these sizes, in KB.
FALL = ("random", 64, 128)


def explain_fall(children, out):
    """Simulates the two sizes of FALL: claims.Fall."""
    name, small, large = FALL
    path = pathlib.Path(thrift_trace(name).path)
    policies = ",".join(THRIFT_POLICIES.values())
    names = {spec: policy for policy, spec in THRIFT_POLICIES.items()}
    sizes = list(dict(line.split("\t") for line in path.read_text().splitlines()).values())

    def simulate(kb, *options):
        argv = [harness.BUILD / "sunproxy", "simulate", "--json", "--policy", policies, "--capacity", f"{kb}K",
                "--count-bytes", "body", *options, path]
        log = out / f"simulate-{kb}{''.join(options)}"
        trace, = json.loads(children.run(argv, log.with_suffix(".err"), log.with_suffix(".json")))["traces"]
        return {names[r["policy"]]: claims.Simulated(r["hit_ratio"], r["evictions"])
                for r in sorted(trace["results"], key=lambda r: list(names).index(r["policy"]))}

    return claims.Fall(name, small * 1024, large * 1024, len(sizes),
                       sum(int(size) > small * 1024 for size in sizes),
                       sum(int(size) > large * 1024 for size in sizes),
                       simulate(small), simulate(large), simulate(large, "--max-page", f"{small}K"))


# ---- what is printed -----------------------------------------------------------------------------

def print_rows(rows):
    """The claims beside what was measured, as wide as the terminal."""
    width = min(140, max(80, shutil.get_terminal_size((100, 24)).columns))
    left = (width - 26) * 2 // 5
    right = width - 26 - left

    def line(about, verdict, published, measured):
        cells = zip_longest(textwrap.wrap(published, left), textwrap.wrap(measured, right))
        for n, (a, b) in enumerate(cells):
            print(f"{about if n == 0 else '':9} {verdict if n == 0 else '':15}{a:{left}}  {b}")

    line("", "", "published", "measured")
    print("-" * width)
    for row in rows:
        line(row.claim.about, reproduce_page.verdict(row.finding),
             row.claim.published, row.finding.measured)
        if row.own:
            line("", reproduce_page.verdict(row.own), "  the same, of the authors' own requests",
                 row.own.measured)
        print()


def zip_longest(first, second):
    rows = max(len(first), len(second), 1)
    return [(first[n] if n < len(first) else "", second[n] if n < len(second) else "")
            for n in range(rows)]


def version():
    """Of the daemon, as it states it."""
    return subprocess.run([harness.BUILD / "sunproxyd", "--version"], stdout=subprocess.PIPE,
                          check=True).stdout.decode().splitlines()[0]


def perform_replays(children, out, scale, at_once):
    """The Sun RPC paper and the Thrift study: Replays."""
    bench = Bench(children, out, scale)
    if "authors" not in bench.traces:
        print(f"without the authors' own requests: {DATASETS}/sunrpc-paper does not exist")
    wanted = plan(bench)
    print(f"origins: {len(bench.origins)}, latency {scale.latency}; {len(wanted)} replays, "
          f"{at_once} at a time, each against a sunproxyd of its own")
    results = harness.run_all(bench.run, wanted, at_once)
    parts = {name: gather_part(bench, name, results) for name in ("dataset1", "dataset2")}
    authors = gather_part(bench, "authors", results)
    workloads = {name: gather_workload(bench, name, results) for name in ("random", "repeated")}
    for origin in bench.origins.values():
        children.end(origin.child)
    return Replays(claims.assess_all(parts, authors, workloads), parts, authors, workloads,
                   explain_fall(children, out))


def print_notes(replays):
    unsteady = claims.unsteadiness(replays.workloads)
    print(textwrap.fill(
        f"{claims.NOTE} Runs of the same requests differed by {100 * unsteady:.1f} %"
        + (": the machine was busy, and verdicts on close times may differ from run to run."
           if unsteady > claims.NOISE else ".")
        + (f" {claims.AUTHORS_NOTE}" if replays.authors else ""), 100))


def reproduce(children, out, wanted, smoke, at_once):
    started = time.monotonic()
    scale = SMOKE if smoke else FULL
    replays = perform_replays(children, out, scale, at_once) if "rpc" in wanted else None
    results, rows = {}, list(replays.rows) if replays else []
    for name, study in MORE_STUDIES.items():
        if name in wanted:
            print(f"{reproduce_page.NAMES[name]}: {study.how}")
            results[name] = study.perform(children, out / name, study.smoke if smoke else study.full)
            rows += study.assess(results[name])
    print()
    print_rows(rows)
    run = reproduce_page.Run(rows, smoke, time.monotonic() - started, version())
    page, data = out / "reproduce.html", out / "reproduce.json"
    page.write_text(reproduce_page.page(
        run, replays, scale, [MORE_STUDIES[name].section(result) for name, result in results.items()]))
    data.write_text(json.dumps(reproduce_page.as_json(
        run, replays, {name: MORE_STUDIES[name].as_json(result) for name, result in results.items()}), indent=1))
    if replays:
        print_notes(replays)
    if smoke:
        print("A smoke test: nothing here is a result.")
    held, broken, open_ = reproduce_page.count_verdicts(rows)
    print(f"{held} of {len(rows)} claims hold here, {broken} do not, {open_} are undecided.\n"
          f"Took {run.seconds:.0f} s. The page, with tables and figures: {page}\nThe numbers: {data}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--at-once", type=int, default=AT_ONCE, choices=range(1, 33), metavar="N",
                        help=f"replays at a time ({AT_ONCE})")
    parser.add_argument("--out", type=pathlib.Path, default=OUT, metavar="DIR",
                        help=f"where page and logs go; empty, or in build/ ({OUT})")
    parser.add_argument("--smoke", action="store_true",
                        help="few requests, sizes and runs: shows that it works, not what holds")
    parser.add_argument("--study", action="append", choices=STUDIES,
                        help="only this; may be repeated (rpc: the Sun RPC paper and the Thrift study)")
    args = parser.parse_args()
    return harness.perform("reproduce", args.out, lambda children: reproduce(
        children, args.out, args.study or STUDIES, args.smoke, args.at_once))


if __name__ == "__main__":
    sys.exit(main())
