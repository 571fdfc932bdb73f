#!/usr/bin/env python3
"""Measures cache/table by itself: where entries are in memory, and how they are locked.

Layouts: as-is is the daemon's, where malloc() puts entries and objects; aligned has entries at the beginning of
a cache line; misaligned has them 40 bytes behind it, so that a lookup reads two lines of each; all-aligned has
entries and objects at the beginning of a line. Locks: a mutex or a read-write lock for the whole table, for each
of 16 parts, as the cache's shards, or of 4,096. Each cell is a median of measurements in turns. Layouts: millions of
operations per second of CPU time, which other load on the machine hardly changes. Locks: per second, since threads
wait for them. The ratio in a cell is the median of the ratios to the layout or lock in the first line.

Exit status: 0 when everything was measured; 1 after an error.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
THREADS = (1, 2, 4, 8, 16, 32, 64)
LOOKUPS = (90, 50)
LAYOUTS = ("as-is", "aligned", "misaligned", "all-aligned")
LOCKS = tuple((lock, parts) for parts in (1, 16, 4096) for lock in ("mutex", "rwlock"))


def measure(args, what, threads, lookups, layout="as-is", lock="mutex", parts=16):
    """Operations per second of what is named: "cpu" or "wall" time."""
    run = subprocess.run(
        [args.build / "tests/bench/table", "--threads", str(threads), "--lookups", str(lookups), "--layout", layout,
         "--lock", lock, "--parts", str(parts), "--entries", str(args.entries), "--milliseconds",
         str(args.milliseconds)], stdout=subprocess.PIPE, check=True)
    result = json.loads(run.stdout)
    return 1e9 / result["cpu_ns"] if what == "cpu" else result["per_second"]


def take_turns(args, what, cases, threads, lookups):
    """{case: [operations per second of each round]}"""
    rates = {case: [] for case in cases}
    for turn in range(args.rounds):
        order = list(cases.items())
        for case, options in order if turn % 2 == 0 else reversed(order):
            rates[case].append(measure(args, what, threads, lookups, **options))
    return rates


def print_grid(args, what, title, cases, results):
    first = next(iter(cases))
    for lookups in LOOKUPS:
        print(f"\n{title}, {lookups} % lookups, {args.entries} entries:")
        print(f"{'threads':<20}" + "".join(f"{threads:>14}" for threads in args.threads), flush=True)
        lines = {case: f"{case:<20}" for case in cases}
        for threads in args.threads:
            rates = results[lookups, threads] = take_turns(args, what, cases, threads, lookups)
            for case in cases:
                ratio = statistics.median(a / b for a, b in zip(rates[case], rates[first]))
                lines[case] += f"{statistics.median(rates[case]) / 1e6:>8.2f} {ratio:>5.2f}"
        print("\n".join(lines.values()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--entries", type=int, default=100000, help="of all parts (100000)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each case (5)")
    parser.add_argument("--milliseconds", type=int, default=100, help="length of a turn (100)")
    parser.add_argument("--threads", type=int, nargs="+", default=THREADS, metavar="N", help="(1 2 4 8 16 32 64)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write every measurement there")
    args = parser.parse_args()
    print(f"cache/table on {os.cpu_count()} cores: millions of operations per second of CPU time (layouts) or of time\n"
          "(locks), and the ratio to the first line")
    layouts, locks = {}, {}
    try:
        cases = {name: {"layout": name} for name in LAYOUTS}
        print_grid(args, "cpu", "Layouts, 16 parts with a mutex each", cases, layouts)
        cases = {f"{lock}, {parts}": {"lock": lock, "parts": parts} for lock, parts in LOCKS}
        print_grid(args, "wall", "Locks", cases, locks)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"table: {error}", file=sys.stderr)
        return 1
    if args.json:
        args.json.write_text(json.dumps({what: [{"lookups": lookups, "threads": threads, "rates": rates}
                                                for (lookups, threads), rates in results.items()]
                                         for what, results in (("layouts", layouts), ("locks", locks))}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
