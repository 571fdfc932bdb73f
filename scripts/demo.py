#!/usr/bin/env python3
"""Replays the shipped data sets with every policy and size, and prints the results.

Started by scripts/demo.sh from the project's top folder. A run is one replay of one data set with
one policy and one size. Runs wait for the origin most of the time, so several take place at once, each
against a daemon of its own.
"""

import argparse
import pathlib
import queue
import sys
import time

import harness

LOGS = pathlib.Path("build/demo")
DATASETS = ["dataset1", "dataset2"]
POLICIES = ["lru", "lfu", "fifo", "rand", "maxs"]
PERCENT = [10, 20, 30, 40, 50, 80]
DAEMONS = 4  # for each data set
LATENCY = "lognormal:20ms:0.5"


# ---- the runs ------------------------------------------------------------------------------------

def replay(children, daemons, dataset, policy, capacity):
    """One run; what the client measured."""
    daemon = daemons[dataset].get()
    try:
        name = f"{dataset}-{policy}-{capacity}" if capacity else f"{dataset}-none"
        return harness.replay(children, daemon, f"datasets/{dataset}/History", policy, capacity or None,
                              LOGS, name)
    finally:
        daemons[dataset].put(daemon)


def replay_all(children, daemons, at_once):
    """(dataset, policy, capacity) to what was measured; the longest runs begin first."""
    wanted = [(dataset, "none", 0) for dataset in DATASETS]
    for dataset in DATASETS:
        urls = len(pathlib.Path("datasets", dataset, "sizes.tsv").read_text().splitlines())
        wanted += [(dataset, policy, capacity) for capacity in harness.capacities(urls, PERCENT)
                   for policy in POLICIES]
    return harness.run_all(lambda *run: replay(children, daemons, *run), wanted, at_once)


# ---- what is printed -----------------------------------------------------------------------------

def print_table(title, columns, rows):
    print(f"  {title}")
    print("    " + f"{'':10}" + "".join(f"{c:>11}" for c in columns))
    for name, cells in rows:
        print("    " + f"{name:10}" + "".join(f"{c:>11}" for c in cells))
    print()


def print_dataset(dataset, results):
    none = results[dataset, "none", 0]
    own = {(policy, capacity): r for (d, policy, capacity), r in results.items() if d == dataset and capacity}
    sizes = sorted({capacity for _, capacity in own})
    columns = [f"{percent} % ({capacity})" for percent, capacity in zip(PERCENT, sizes)]

    def table(title, figure, scale):
        def cell(result):
            return f"{result['runs'][0][figure] * scale:.1f}"

        rows = [(policy, [cell(own[policy, capacity]) for capacity in sizes]) for policy in POLICIES]
        print_table(title, columns, rows + [("no cache", [cell(none)])])

    print(f"{dataset}: {none['requests']} requests for {none['distinct_urls']} URLs. Columns: "
          "capacity, as\na share of the distinct URLs (and as their number).\n")
    table("hit ratio, per cent", "hit_ratio", 100)
    table("byte hit ratio, per cent", "byte_hit_ratio", 100)
    table("mean access time, ms", "mean_us", 0.001)
    times = sorted((none["runs"][0]["mean_us"] / r["runs"][0]["mean_us"], policy, capacity)
                   for (policy, capacity), r in own.items())
    slow, fast = times[0], times[-1]
    print(f"  Speedup over no cache: {slow[0]:.1f} ({slow[1]}, {slow[2]} URLs) to {fast[0]:.1f} "
          f"({fast[1]}, {fast[2]} URLs).\n")


def write_page(children, results):
    """The report on both data sets, simulated, with what was measured here."""
    page = LOGS / "report.html"
    argv = [harness.BUILD / "sunproxy", "report", "--separate", "-o", page, "--title",
            "Two browsing histories through a cache",
            "--capacity", ",".join(f"{percent}%" for percent in PERCENT)]
    argv += [f"datasets/{dataset}/History" for dataset in DATASETS]
    for dataset in DATASETS:
        argv += ["--sizes", f"datasets/{dataset}/sizes.tsv"]
    for dataset, policy, capacity in sorted(results):
        name = f"{dataset}-{policy}-{capacity}" if capacity else f"{dataset}-none"
        argv += ["--live", LOGS / f"{name}.json"]
    children.run(argv, LOGS / "report.err", LOGS / "report.out")
    return page


def demo(children, at_once):
    started = time.monotonic()
    register = harness.start_rpcbind(children, LOGS)
    daemons = {}
    for dataset in DATASETS:
        # An origin for each: the data sets share URLs, with different sizes.
        origin = harness.Origin(children, LOGS / dataset, "--latency", LATENCY,
                                "--sizes", f"datasets/{dataset}/sizes.tsv")
        print(f"origin of {dataset}: ports {origin.http} (http) and {origin.https} (https), "
              f"latency\n{LATENCY}")
        daemons[dataset] = queue.SimpleQueue()
        for number in range(1, at_once + 1):
            daemons[dataset].put(harness.Daemon(children, LOGS, f"{dataset}-{number}", origin,
                                                register=register))
            register = False
    runs = len(DATASETS) * (len(POLICIES) * len(PERCENT) + 1)
    print(f"sunproxyd: {at_once} for each; {runs} replays, {at_once} at a time"
          + ("; the first is registered" if harness.registered() else ""))
    results = replay_all(children, daemons, at_once)
    print()
    for dataset in DATASETS:
        print_dataset(dataset, results)
    page = write_page(children, results)
    print(f"Took {time.monotonic() - started:.0f} s. {LOGS}/ has a log of every replay with one line per\n"
          "request (DATASET-POLICY-CAPACITY.log), its results (.json), and the logs of\n"
          f"origins and daemons. A page with figures: {page}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--daemons", type=int, default=DAEMONS, choices=range(1, 33), metavar="N",
                        help=f"replays at a time, each against a daemon of its own ({DAEMONS})")
    args = parser.parse_args()
    return harness.perform("demo", LOGS, lambda children: demo(children, args.daemons))


if __name__ == "__main__":
    sys.exit(main())
