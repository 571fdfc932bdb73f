#!/usr/bin/env python3
"""Measure how fast the simulator is, from a binary trace to the result, beside libCacheSim.

The trace is Zipf's law over a million pages, seeded; room is for 100,000, and every size is taken as
1. Each policy is a process of its own, of which all CPU time counts, loading included. libCacheSim
runs on the same trace, in turns with us, where its Python package (libcachesim) is installed:
SIMULATOR_PYTHON names the interpreter that has it. Medians of the rounds are told.

Exit status: 0 when everything was measured, be the goals reached or not; 1 after any error.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SUNPROXY = os.path.join(ROOT, os.environ.get("SUNPROXY_BUILD", "build/release"), "sunproxy")
PYTHON = os.environ.get("SIMULATOR_PYTHON", sys.executable)

# Ours, theirs, and what theirs did in million requests a second where the goals were set.
POLICIES = (
    ("sieve", "Sieve", 10.1), ("fifo", "FIFO", 7.6), ("lru", "LRU", 6.1), ("arc", "ARC", 5.5),
    ("lfu", "LFU", 3.8), ("s3-fifo", "S3FIFO", 3.7), ("2q", "TwoQ", 3.6), ("opt", "Belady", 3.5),
    ("w-tinylfu", "WTinyLFU", 2.9), ("gdsf", "GDSF", 1.2), ("lru-k", "LRUK", 0.9),
)
GOAL = 2  # times as fast
GOAL_SWEEP = 1.9  # times as fast on two processors
GOAL_BYTES = 40  # beyond the trace, for each distinct page

THEIRS = """
import sys
import libcachesim as l
path, name, room = sys.argv[1], sys.argv[2], int(sys.argv[3])
param = l.ReaderInitParam()
param.ignore_obj_size = True
reader = l.TraceReader(trace=path, trace_type=l.TraceType.ORACLE_GENERAL_TRACE,
                       reader_init_params=param)
print(getattr(l, name)(room).process_trace(reader)[0])
"""


def run(argv):
    """Runs a program: what it printed, its CPU seconds, its elapsed seconds, its peak in KiB."""
    reader, writer = os.pipe()
    begun = os.times().elapsed
    child = subprocess.Popen([str(a) for a in argv], stdout=writer)
    os.close(writer)
    with os.fdopen(reader) as output:
        text = output.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{argv[0]} ended with {child.returncode}")
    return text, usage.ru_utime + usage.ru_stime, os.times().elapsed - begun, usage.ru_maxrss


def ours(trace, policy, room):
    text, cpu, _, peak = run([SUNPROXY, "simulate", trace, "--policy", policy, "--capacity", room,
                              "--ignore-sizes", "--json", "-j", "1"])
    result = json.loads(text)["traces"][0]["results"][0]
    return {"cpu": cpu, "peak": peak, "misses": result["misses"], "alone": result["cpu_us"] / 1e6}


def theirs(trace, policy, room):
    text, cpu, _, peak = run([PYTHON, "-c", THEIRS, trace, policy, room])
    return {"cpu": cpu, "peak": peak, "miss_ratio": float(text)}


def has_libcachesim():
    return subprocess.run([PYTHON, "-c", "import libcachesim"], capture_output=True,
                          check=False).returncode == 0


def median(runs, what):
    return statistics.median(r[what] for r in runs)


def compare(trace, requests, room, rounds):
    beside = has_libcachesim()
    if not beside:
        print("libCacheSim is not installed (pip install libcachesim): its column tells what it "
              "did where the goals were set")
    print(f"{'policy':12}{'M requests/s':>14}{'without load':>14}{'libCacheSim':>13}{'times':>7}"
          f"{'goal':>6}{'misses':>12}")
    for name, other, known in POLICIES:
        mine, others = [], []
        for _ in range(rounds):
            mine.append(ours(trace, name, room))
            if beside:
                others.append(theirs(trace, other, room))
        speed = requests / 1e6 / median(mine, "cpu")
        reference = requests / 1e6 / median(others, "cpu") if beside else known
        misses = mine[0]["misses"]
        agrees = ""
        if beside:
            same = abs(others[0]["miss_ratio"] - misses / requests) < 1e-6
            agrees = "  as theirs" if same else f"  theirs {others[0]['miss_ratio'] * requests:.0f}"
        print(f"{name:12}{speed:14.1f}{requests / 1e6 / median(mine, 'alone'):14.1f}"
              f"{reference:13.1f}{speed / reference:7.1f}"
              f"{'  yes' if speed >= GOAL * reference else '   no':>6}{misses:12}{agrees}")


def memory(trace, requests, distinct, room):
    """What a run takes beyond the trace: the peak with a policy less that with none."""
    bare = ours(trace, "none", room)["peak"]
    for name in ("lru", "gdsf"):
        for pages in (room, distinct):
            more = max(0, ours(trace, name, pages)["peak"] - bare) * 1024 / distinct
            print(f"memory, {name} with room for {pages}: {more:.1f} bytes a distinct page"
                  f" ({'within' if more <= GOAL_BYTES else 'over'} {GOAL_BYTES})")


def sweep(trace, processors):
    policies = ",".join(p[0] for p in POLICIES[:10])
    sizes = "1%,2%,3%,5%,7%,10%,15%,20%,30%,50%"
    elapsed = {}
    for jobs in (1, 2):
        _, cpu, elapsed[jobs], _ = run([SUNPROXY, "simulate", trace, "--policy", policies,
                                        "--capacity", sizes, "--limit", 2000000, "--ignore-sizes",
                                        "--csv", "-j", jobs])
    times = elapsed[1] / elapsed[2]
    print(f"sweep of 10 policies by 10 sizes: {elapsed[1]:.1f} s on one processor, "
          f"{elapsed[2]:.1f} s on two of {processors}: {times:.2f} times as fast "
          f"(goal {GOAL_SWEEP})")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=20000000)
    parser.add_argument("--urls", type=int, default=1000000)
    parser.add_argument("--room", type=int, default=100000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--smoke", action="store_true", help="only see that it works")
    args = parser.parse_args()
    if args.smoke:
        args.requests, args.urls, args.room, args.rounds = 20000, 2000, 200, 1
    with tempfile.TemporaryDirectory(prefix="sunproxy-bench-") as folder:
        trace = os.path.join(folder, "zipf.oracleGeneral")
        run([SUNPROXY, "trace", "generate", "zipf", "-n", args.requests, "--urls", args.urls,
             "--to", "oracle", "-o", trace])
        text = run([SUNPROXY, "simulate", trace, "--policy", "none", "--capacity", 1, "--json",
                    "--ignore-sizes"])[0]
        distinct = json.loads(text)["traces"][0]["distinct_urls"]
        print(f"{args.requests} requests by Zipf's law for {distinct} pages, room for {args.room}, "
              f"sizes taken as 1; CPU time of the whole process, median of {args.rounds}")
        compare(trace, args.requests, args.room, args.rounds)
        memory(trace, args.requests, distinct, args.room)
        sweep(trace, os.cpu_count())
    return 0


if __name__ == "__main__":
    sys.exit(main())
