#!/usr/bin/env python3
"""Repeats the evaluations of published studies, and states which of their claims hold.

Started by studies/reproduce.sh. The Sun RPC paper and the Thrift study: every run is a replay over RPC
against a daemon of its own, which fetches from a local origin with a latency like that of the web;
several runs take place at once. The claims and their criteria are in reproduce_claims.py, the paper's
numbers in reproduce_published.py, the page in reproduce_page.py. Each further study (MORE_STUDIES) has
modules of its own: what it runs, its table, and its part of the page. A paper's table is one list of rows
(paper_table.py), whose verdicts are those of verdict.py; the page, the JSON and docs/REPRODUCTION.md
(document.py) have it from there.

The authors' own requests are replayed too, if $SUNPROXY_DATASETS (by default ../shared/datasets) has
the folder sunrpc-paper.
"""

import argparse
import collections
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import textwrap
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "scripts"))
import document
import harness
import paper_table
import reproduce_claims as claims
import reproduce_geni
import reproduce_geni_page
import reproduce_geni_rows
import reproduce_leiden
import reproduce_leiden_page
import reproduce_leiden_rows
import reproduce_page
import reproduce_parallel
import reproduce_parallel_claims
import reproduce_parallel_page
import verdict

OUT = pathlib.Path("build/reproduce")
DATASETS = pathlib.Path(os.environ.get("SUNPROXY_DATASETS", "../shared/datasets"))
POLICIES = ["lru", "lfu", "fifo", "rand", "maxs"]
AT_ONCE = 4
MINUTES = 30  # of one study, on a busy machine; an idle one needs 10 at most
# The Thrift study's RAND draws each victim anew.
THRIFT_POLICIES = {"lru": "lru", "lfu": "lfu", "rand": "rand:draw=each"}

# The extent: sizes in per cent of the URLs, sizes in KB, runs averaged of the data sets and of the
# workloads, the latency of the origin, options of replay. A smoke test only shows that everything works.
Scale = collections.namedtuple("Scale", "percent kb repeats runs latency options")
FULL = Scale([10, 20, 30, 40, 50, 80], [64, 128, 192, 256], 3, 5, "lognormal:20ms:0.5", [])
SMOKE = Scale([10, 20, 30], [64, 256], 2, 2, "1ms", ["--limit", 60])

# Further studies. `how` is what it does, in a few words. perform(children, folder, scale) gives the result,
# paper(result, seconds) its table (paper_table.Paper); section(result) and as_json(result) are what the page and the
# JSON have of it beside the table.
OVER_HTTP = "over HTTP, against origins with a limited link"
Study = collections.namedtuple("Study", "how full smoke perform paper section as_json")
MORE_STUDIES = {
    "geni": Study(OVER_HTTP, reproduce_geni.FULL, reproduce_geni.SMOKE, reproduce_geni.perform,
                  reproduce_geni_rows.paper, reproduce_geni_page.section, reproduce_geni_page.as_json),
    "leiden": Study("over HTTP, before a REST service", reproduce_leiden.FULL, reproduce_leiden.SMOKE, reproduce_leiden.perform,
                    reproduce_leiden_rows.paper, reproduce_leiden_page.section, reproduce_leiden_page.as_json),
    "parallel": Study("threads and fetches in flight, against an origin with a scaled latency",
                      reproduce_parallel.FULL, reproduce_parallel.SMOKE, reproduce_parallel.perform,
                      lambda result, seconds: from_claims("parallel", "Exploiting Parallelism in a Proxy Server",
                                                 reproduce_parallel_claims.assess(result), seconds),
                      reproduce_parallel_page.section, reproduce_parallel_page.as_json),
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

def from_claims(key, title, rows, seconds):
    """The table of a study whose rows are claims.Row."""
    def row(claim, finding, place):
        return paper_table.Row(place, claim.published, claim.criterion, finding.measured,
                               verdict.decide_exactly(finding.holds))

    found = []
    for one in rows:
        place = one.claim.source if one.claim.about == key else f"{one.claim.source}, {one.claim.about}"
        found.append(row(one.claim, one.finding, place))
        if one.own:
            found.append(row(one.claim, one.own, f"{place}, the authors' own requests"))
    return paper_table.Paper(key, title, [], found, seconds)


def print_paper(paper):
    """The table of a paper, as wide as the terminal."""
    width = min(140, max(80, shutil.get_terminal_size((100, 24)).columns))
    left = (width - 16) // 2
    print(f"\n{paper.title}\n{'-' * width}")
    for row in paper.rows:
        about = textwrap.wrap(f"{paper_table.place_of(row)}: {row.states}", left - 2)
        found = textwrap.wrap(row.measured, width - 16 - left)
        labels = textwrap.wrap(row.verdict.value, 15)
        for a, label, b in itertools.zip_longest(about, labels, found, fillvalue=""):
            print(f"{a:{left}}{label:16}{b}".rstrip())
        print()
    print(paper_table.tally(paper.rows))


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


def replays_papers(replays, seconds):
    """The tables of the two papers that the replays repeat."""
    thrift = [row for row in replays.rows if row.claim.source == "Thrift"]
    rpc = [row for row in replays.rows if row.claim.source != "Thrift"]
    return [from_claims("rpc", "RPC-Based Web Proxy Server: Implementation and Evaluation using Sun RPC and libcurl",
                        rpc, seconds),
            from_claims("thrift", "RPC-Based Proxy Server (Apache Thrift)", thrift, seconds)]


def bound(minutes, what):
    """Ends the work with a Failure if it is not over after so many minutes; 0 lifts the bound."""
    def end(*_):
        raise harness.Failure(f"{what} took more than {minutes:g} minutes, the limit of --minutes")

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, 60 * minutes)


def reproduce(children, out, wanted, smoke, at_once, to_document, minutes):
    started, load = time.monotonic(), os.getloadavg()[0]
    scale = SMOKE if smoke else FULL
    bound(minutes, "rpc")
    replays = perform_replays(children, out, scale, at_once) if "rpc" in wanted else None
    papers = replays_papers(replays, time.monotonic() - started) if replays else []
    results = {}
    for name, study in MORE_STUDIES.items():
        if name in wanted:
            print(f"{name}: {study.how}")
            begun = time.monotonic()
            bound(minutes, name)
            results[name] = study.perform(children, out / name, study.smoke if smoke else study.full)
            papers.append(study.paper(results[name], time.monotonic() - begun))
    bound(0, "")
    for paper in papers:
        print_paper(paper)
    print()
    run = reproduce_page.Run(papers, smoke, time.monotonic() - started, version(), load)
    page, data = out / "reproduce.html", out / "reproduce.json"
    page.write_text(reproduce_page.page(
        run, replays, scale, {name: MORE_STUDIES[name].section(result) for name, result in results.items()}))
    data.write_text(json.dumps(reproduce_page.as_json(
        run, replays, {name: MORE_STUDIES[name].as_json(result) for name, result in results.items()}), indent=1))
    if replays:
        print_notes(replays)
    if smoke:
        print("A smoke test: nothing here is a result.")
    print(f"Took {run.seconds:.0f} s. The page, with tables and figures: {page}\nThe numbers: {data}")
    if to_document:
        write_document(to_document, run)


def write_document(path, run):
    """Renews the sections of the papers that were repeated."""
    if run.smoke:
        raise harness.Failure(f"{path} is not written by a smoke test")
    text = path.read_text() if path.exists() else ""
    path.write_text(document.update(text, run.papers, reproduce_page.circumstances(run)))
    print(f"The tables of the papers: {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--at-once", type=int, default=AT_ONCE, choices=range(1, 33), metavar="N",
                        help=f"replays at a time ({AT_ONCE})")
    parser.add_argument("--minutes", type=float, default=MINUTES, metavar="N",
                        help=f"end with a failure if one study takes longer ({MINUTES})")
    parser.add_argument("--out", type=pathlib.Path, default=OUT, metavar="DIR",
                        help=f"where page and logs go; empty, or in build/ ({OUT})")
    parser.add_argument("--document", type=pathlib.Path, metavar="FILE",
                        help="renew the tables of this document, too (docs/REPRODUCTION.md)")
    parser.add_argument("--smoke", action="store_true",
                        help="few requests, sizes and runs: shows that it works, not what holds")
    parser.add_argument("--study", action="append", choices=STUDIES,
                        help="only this; may be repeated (rpc: the Sun RPC paper and the Thrift study)")
    args = parser.parse_args()
    return harness.perform("reproduce", args.out, lambda children: reproduce(
        children, args.out, args.study or STUDIES, args.smoke, args.at_once, args.document, args.minutes))


if __name__ == "__main__":
    sys.exit(main())
