#!/usr/bin/env python3
"""Measure the simulator beside libCacheSim, and what it takes by itself.

The workload is 20 million requests by Zipf's law (constant 1) over a million pages, of which some
0.9 million are requested, with a capacity of 100000, as an oracleGeneral trace. For each policy that
both have, `sunproxy simulate` and libCacheSim take turns on the same file and the same CPU, and the
medians of their CPU times are compared. Ours is that of the whole process. Of libCacheSim, whose
loop in C is called through its Python package, the time is taken from opening the file to the
result: Python's own start is not held against it. Misses must be equal where our rules are
libCacheSim's, miss for miss.

With --huge a whole trace of 100 million requests for some millions of pages with sizes is simulated too, at
five policies and two sizes in bytes on all CPUs (2.4 GB of disk, some minutes).

Memory is that which the process has for itself (RssAnon), beyond the loaded trace for us (with the
numbers of next requests where the policy needs the future), beyond the interpreter for libCacheSim,
by page in the cache at the end.

libCacheSim comes from PyPI into build/bench/venv; where it cannot be had, the rest is measured.

Exit status: 0 when everything was measured, be the goals reached or not; 1 after any error, or when
misses that must be equal are not.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VENV = os.path.join(ROOT, "build", "bench", "venv")
PACKAGE = "libcachesim==0.3.5"

GOAL_RATIO = 2.0
GOAL_TEXT = 10.0  # millions of requests per second
GOAL_BINARY = 100.0
GOAL_SPEED_UP = 1.9
GOAL_PAGE_BYTES = 40  # by distinct page and policy, beyond the loaded trace
SHARES = (0.5, 1.0)  # memory is printed for these shares of the pages as well
GOAL_BYTES = 24 << 30  # for HUGE requests
HUGE = 100_000_000
FULL_REQUEST_BYTES = 8  # sizes, which this comparison passes over, and the next requests of opt

# Ours, libCacheSim's, and whether the same misses are expected: its W-TinyLFU, LFUDA, Random and
# Size depend on its own hashes, clocks and heap, and its LIRS is another rule.
POLICIES = (
    ("lru", "LRU", True),
    ("fifo", "FIFO", True),
    ("lfu", "LFU", True),
    ("clock", "Clock", True),
    ("slru", "SLRU", True),
    ("2q", "TwoQ", True),
    ("lru-k", "LRUK", True),
    ("arc", "ARC", True),
    ("sieve", "Sieve", True),
    ("s3-fifo", "S3FIFO", True),
    ("gdsf", "GDSF", True),
    ("opt", "Belady", True),
    ("lirs", "LIRS", False),
    ("w-tinylfu", "WTinyLFU", False),
    ("lfuda", "LFUDA", False),
    ("rand:draw=each", "Random", False),
    ("maxs", "Size", False),
)

HUGE_POLICIES = ("lru", "s3-fifo", "lirs", "gdsf", "opt")

SWEEP = ("lru", "fifo", "lfu", "clock", "slru", "2q", "arc", "sieve", "s3-fifo", "gdsf")

THEIR_RUN = """
import json, sys, time
import libcachesim

def own_bytes():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("RssAnon:"))

before, begun = own_bytes(), time.process_time()
reader = libcachesim.TraceReader(sys.argv[1], libcachesim.TraceType.ORACLE_GENERAL_TRACE,
                                 libcachesim.ReaderInitParam(ignore_obj_size=True))
assert reader.c_reader  # or the loop would be Python's
cache = getattr(libcachesim, sys.argv[2])(int(sys.argv[3]))
missed, _ = cache.process_trace(reader)
json.dump({"cpu_s": time.process_time() - begun, "bytes": own_bytes() - before,
           "pages": cache.get_n_obj(), "miss_ratio": missed}, sys.stdout)
"""


class Failure(Exception):
    """Something that was to be measured could not be."""


class Plan:
    """How much is measured."""

    def __init__(self, args):
        self.requests, self.pages, self.capacity = 20_000_000, 1_000_000, 100_000
        self.rounds, self.name = args.rounds, "full"
        if args.quick:
            self.requests, self.name = 2_000_000, "quick"
        if args.smoke:
            self.requests, self.pages, self.capacity = 20_000, 1000, 100
            self.rounds, self.name = 1, "smoke"


def run(argv, cpus=None):
    """Runs a program on those CPUs: its output, CPU seconds, seconds, and resident bytes at most."""
    pinned = (lambda: os.sched_setaffinity(0, cpus)) if cpus else None
    with tempfile.TemporaryFile() as out:
        begun = time.monotonic()
        with subprocess.Popen(argv, stdout=out, stdin=subprocess.DEVNULL,
                              preexec_fn=pinned) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - begun
        if process.returncode:
            raise Failure(f"{' '.join(argv[:2])} ended with status {process.returncode}")
        out.seek(0)
        text = out.read().decode()
    return text, usage.ru_utime + usage.ru_stime, seconds, usage.ru_maxrss * 1024


def find_libcachesim():
    """The Python that has it, or None with a word why."""
    python = os.path.join(VENV, "bin", "python")
    probe = [python, "-c", "import libcachesim"]
    if os.path.exists(python) and subprocess.run(probe, stderr=subprocess.DEVNULL,
                                                 check=False).returncode == 0:
        return python
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run([python, "-m", "pip", "-q", "--disable-pip-version-check", "install",
                        PACKAGE], check=True, stderr=subprocess.DEVNULL)
        subprocess.run(probe, check=True)
    except (OSError, subprocess.CalledProcessError):
        print(f"{PACKAGE} cannot be had (python3-venv, PyPI): nothing is compared with it\n")
        shutil.rmtree(VENV, ignore_errors=True)
        return None
    return python


class Bench:
    def __init__(self, build, plan, folder, python):
        self.build, self.plan, self.folder, self.python = build, plan, folder, python
        self.cpus = sorted(os.sched_getaffinity(0))
        self.binary = os.path.join(folder, "zipf.oracleGeneral")
        self.text = os.path.join(folder, "zipf.urls")

    def program(self, *parts):
        path = os.path.join(self.build, *parts)
        if not os.access(path, os.X_OK):
            raise Failure(f"{path} is not built; try: make programs bench-programs")
        return path

    def generate(self):
        for path, form, rate in ((self.binary, "oracle", ["--rate", "10000"]),
                                 (self.text, "urls", [])):
            run([self.program("sunproxy"), "trace", "generate", "zipf",
                 "-n", str(self.plan.requests), "--urls", str(self.plan.pages), "--constant", "1",
                 "--seed", "1", "--to", form, "-o", path, *rate])

    # ---- one run -----------------------------------------------------------------------------

    def run_ours(self, policy):
        text, cpu_s, *_ = run([self.program("sunproxy"), "simulate", "--policy", policy,
                              "--capacity", str(self.plan.capacity), "--ignore-sizes", "-j", "1",
                              "--json", self.binary], {self.cpus[0]})
        result = json.loads(text)["traces"][0]["results"][0]
        return {"cpu_s": cpu_s, "misses": result["misses"]}

    def run_theirs(self, policy):
        text, *_ = run([self.python, "-c", THEIR_RUN, self.binary, policy,
                          str(self.plan.capacity)], {self.cpus[0]})
        answer = json.loads(text)
        answer["misses"] = round(answer["miss_ratio"] * self.plan.requests)
        answer["page_bytes"] = answer["bytes"] / max(1, answer["pages"])
        return answer

    def trial(self, path, *policy):
        text, *_ = run([self.program("tests", "bench", "trial"), path, *policy], {self.cpus[0]})
        return json.loads(text)

    # ---- everything --------------------------------------------------------------------------

    def compare(self, ours, theirs, equal):
        turns = {"ours": [], "theirs": []}
        for turn in range(self.plan.rounds):
            contestants = ["ours", "theirs"] if turn % 2 == 0 else ["theirs", "ours"]
            for name in contestants:
                if name == "ours":
                    turns[name].append(self.run_ours(ours))
                elif self.python:
                    turns[name].append(self.run_theirs(theirs))
        trial = self.trial(self.binary, ours, str(self.plan.capacity))
        shares = {share: self.trial(self.binary, ours, str(max(1, round(trial["distinct"] * share))))
                 for share in SHARES}
        row = {"policy": ours, "expect_equal": equal, "turns": turns,
               "misses": turns["ours"][0]["misses"],
               "speed": self.speed(turns["ours"]),
               "page_bytes": trial["run_bytes"] / max(1, trial["pages"]),
               "distinct_page_bytes": trial["run_bytes"] / trial["distinct"],
               "shares": {share: other["run_bytes"] / trial["distinct"]
                         for share, other in shares.items()},
               "run_bytes": trial["run_bytes"]}
        if self.python:
            row["their_misses"] = turns["theirs"][0]["misses"]
            row["their_speed"] = self.speed(turns["theirs"])
            row["their_page_bytes"] = statistics.median(t["page_bytes"] for t in turns["theirs"])
            row["ratio"] = row["speed"] / row["their_speed"]
        return row

    def speed(self, turns):
        """Millions of requests per second of CPU time."""
        return self.plan.requests / 1e6 / statistics.median(turn["cpu_s"] for turn in turns)

    def measure_reading(self):
        """{name: millions of requests per second, bytes kept by request}."""
        reading = {}
        for name, path in (("oracleGeneral", self.binary), ("URL list", self.text)):
            trials = [self.trial(path) for _ in range(max(3, self.plan.rounds))]
            reading[name] = {
                "speed": self.plan.requests / 1e6 / max(
                    1e-3, statistics.median(t["load_cpu_s"] for t in trials)),
                "request_bytes": trials[0]["load_bytes"] / self.plan.requests}
        return reading

    def measure_sweep(self):
        """By CPUs, a sweep over ten policies and ten sizes: seconds, and of CPU time."""
        share = self.plan.pages // 20
        sizes = ",".join(str(share * (i + 1) // 5) for i in range(10))
        seconds = {1: [], 2: []}
        counts = (1, 2) if len(self.cpus) > 1 else (1,)
        for _ in range(1 if self.plan.name == "full" else self.plan.rounds):
            for count in counts:
                _, cpu_s, taken, _ = run([self.program("sunproxy"), "simulate", "--policy",
                                   ",".join(SWEEP), "--capacity", sizes, "--ignore-sizes",
                                   "-j", str(count), "--json", self.binary],
                                  set(self.cpus[:count]))
                seconds[count].append((taken, cpu_s))
        return {count: [statistics.median(column) for column in zip(*turns)]
                for count, turns in seconds.items() if turns}


    def measure_huge(self):
        """The whole of it: pages asked for, seconds, of CPU time, and resident bytes at most."""
        path = os.path.join(self.folder, "huge.oracleGeneral")
        run([self.program("sunproxy"), "trace", "generate", "zipf", "-n", str(HUGE), "--urls",
             "10000000", "--constant", "1", "--seed", "1", "--rate", "10000",
             "--sizes", "lognormal:10000:1.5", "--to", "oracle", "-o", path])
        text, cpu_s, seconds, resident = run(
            [self.program("sunproxy"), "simulate", "--policy", ",".join(HUGE_POLICIES),
             "--capacity", "1GB,10GB", "--count-bytes", "body", "--json", path])
        os.unlink(path)
        trace = json.loads(text)["traces"][0]
        if trace["requests"] != HUGE:
            raise Failure(f"{trace['requests']} requests were simulated instead of {HUGE}")
        return {"distinct": trace["distinct_urls"], "cpu_s": cpu_s, "seconds": seconds,
                "resident_bytes": resident}


# ---- telling ---------------------------------------------------------------------------------


def print_rows(rows, plan):
    print(f"{plan.requests / 1e6:g} million requests, capacity {plan.capacity} pages; millions of "
          "requests per second of CPU time, from\nthe file to the result (medians of "
          f"{plan.rounds}), and bytes by page in the cache:\n")
    print(f"{'policy':<15}{'sunproxy':>10}{'libCacheSim':>13}{'ratio':>8}{'bytes':>8}{'theirs':>8}"
          f"{'misses':>12}{'theirs':>12}")
    for row in rows:
        line = f"{row['policy']:<15}{row['speed']:>10.1f}"
        if "ratio" in row:
            same = row["misses"] == row["their_misses"]
            word = "equal" if same else ("DIFFERENT" if row["expect_equal"] else "its own rule")
            line += (f"{row['their_speed']:>13.1f}{row['ratio']:>8.2f}{row['page_bytes']:>8.0f}"
                     f"{row['their_page_bytes']:>8.0f}{row['misses']:>12}{row['their_misses']:>12}"
                     f"  {word}")
        else:
            line += f"{'-':>13}{'-':>8}{row['page_bytes']:>8.0f}{'-':>8}{row['misses']:>12}"
        print(line)
    print()


def print_rest(reading, sweep):
    for name, figures in reading.items():
        print(f"Reading {name}: {figures['speed']:.1f} million requests per second of CPU time, "
              f"{figures['request_bytes']:.1f} bytes a request kept.")
    print(f"A sweep of {len(SWEEP)} policies by 10 sizes: " + ", ".join(
        f"{seconds:.2f} s on {'one CPU' if count == 1 else 'two'} ({cpu_s:.2f} s of CPU time)"
        for count, (seconds, cpu_s) in sweep.items()) + ".")
    print()


def tell(goal, measured, reached):
    print(f"  {'reached' if reached else 'MISSED':<8} {goal}: {measured}")


def print_huge(huge):
    print(f"{HUGE // 10**6} million requests for {huge['distinct']} pages, {len(HUGE_POLICIES)} "
          f"policies by 2 sizes in bytes: {huge['seconds']:.1f} s ({huge['cpu_s']:.1f} s of CPU "
          f"time), {huge['resident_bytes'] / 2**30:.2f} GiB resident at most.")
    print()


def print_goals(rows, reading, sweep, huge, plan):
    print("Goals:")
    compared = sorted((row for row in rows if "ratio" in row), key=lambda row: row["ratio"])
    for row in compared:
        if row["ratio"] < GOAL_RATIO:
            tell(f"at least {GOAL_RATIO:g} times libCacheSim, {row['policy']}",
                 f"{row['ratio']:.2f}", False)
    if compared and compared[0]["ratio"] >= GOAL_RATIO:
        tell(f"at least {GOAL_RATIO:g} times libCacheSim on each of {len(compared)} policies",
             f"least {compared[0]['ratio']:.2f} ({compared[0]['policy']})", True)
    for name, goal in (("URL list", GOAL_TEXT), ("oracleGeneral", GOAL_BINARY)):
        tell(f"{goal:g} million requests a second from {name}", f"{reading[name]['speed']:.1f}",
             reading[name]["speed"] >= goal)
    most = max(rows, key=lambda row: row["distinct_page_bytes"])
    goal = f"at most {GOAL_PAGE_BYTES} bytes by distinct page and policy beyond the trace"
    tell(f"{goal}, capacity {plan.capacity}",
         f"most {most['distinct_page_bytes']:.1f} ({most['policy']})",
         most["distinct_page_bytes"] <= GOAL_PAGE_BYTES)
    for share in SHARES:
        over = sorted(((row["shares"][share], row["policy"]) for row in rows), reverse=True)
        beyond = [f"{policy} {size:.0f}" for size, policy in over if size > GOAL_PAGE_BYTES]
        tell(f"{goal}, capacity of {'half of them' if share == 0.5 else 'all'}",
             ", ".join(beyond) or f"most {over[0][0]:.1f} ({over[0][1]})", not beyond)
    if 2 in sweep:
        tell(f"a sweep on two CPUs at {GOAL_SPEED_UP:g} times one", f"{sweep[1][0] / sweep[2][0]:.2f}; "
             f"by CPU time alone, as on a machine with nothing else to do, "
             f"{2 * sweep[1][1] / sweep[2][1]:.2f}", sweep[1][0] / sweep[2][0] >= GOAL_SPEED_UP)
    goal = f"{HUGE // 10**6} million requests in {GOAL_BYTES >> 30} GiB"
    if huge:
        tell(goal, f"{huge['resident_bytes'] / 2**30:.2f} GiB resident at most",
             huge["resident_bytes"] <= GOAL_BYTES)
        return
    need = HUGE * (reading["oracleGeneral"]["request_bytes"] + FULL_REQUEST_BYTES +
                   most["run_bytes"] / plan.requests)
    tell(goal, f"{need / 2**30:.1f} GiB, reckoned from this one's bytes a request, with sizes and "
         "next requests, and the largest policy; --huge measures it", need <= GOAL_BYTES)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"),
                        help="folder with the programs (build/release)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each contestant (3)")
    parser.add_argument("--policy", metavar="LIST", help="only those, by our names")
    parser.add_argument("--quick", action="store_true", help="2 million requests instead of 20")
    parser.add_argument("--huge", action="store_true",
                        help=f"simulate {HUGE // 10**6} million requests as well")
    parser.add_argument("--smoke", action="store_true",
                        help="does it all work? tiny counts, no libCacheSim; no figures to quote")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    return parser.parse_args()


def main():
    args = parse_arguments()
    plan = Plan(args)
    wanted = args.policy.split(",") if args.policy else [row[0].split(":")[0] for row in POLICIES]
    with tempfile.TemporaryDirectory(prefix="sunproxy-bench-") as folder:
        try:
            bench = Bench(args.build, plan, folder, None if args.smoke else find_libcachesim())
            bench.generate()
            rows = [bench.compare(*row) for row in POLICIES if row[0].split(":")[0] in wanted]
            if not rows:
                raise Failure(f"no policy of the comparison is among {args.policy}")
            reading = bench.measure_reading()
            sweep = bench.measure_sweep()
            huge = bench.measure_huge() if args.huge else None
        except (Failure, OSError) as failure:
            print(f"bench: {failure}", file=sys.stderr)
            return 1
    if args.smoke:
        print("bench: the simulator ran every policy without an error")
        return 0
    print_rows(rows, plan)
    print_rest(reading, sweep)
    if huge:
        print_huge(huge)
    print_goals(rows, reading, sweep, huge, plan)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({"rows": rows, "reading": reading, "sweep": sweep, "huge": huge}, f, indent=1)
    unequal = [row["policy"] for row in rows
               if row["expect_equal"] and row["misses"] != row.get("their_misses", row["misses"])]
    if unequal:
        print(f"bench: misses that must be equal are not: {', '.join(unequal)}", file=sys.stderr)
    return 1 if unequal else 0


if __name__ == "__main__":
    sys.exit(main())
