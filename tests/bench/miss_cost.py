#!/usr/bin/env python3
"""Measures the CPU time of a miss over HTTP, beside Traffic Server, nginx and Varnish.

All are reverse proxies before one origin on loopback (http_servers.py); those that are not installed are left
out. Server, origin and load share one CPU. The load has 16 connections, and requests each page once. The servers
take turns in rounds. CPU time is the kernel's account of all processes of a server. Other work on the machine
changes the requests per second, which are not printed, and the CPU time of a request little.

Prints, by the bytes of a page:
- filling: CPU per miss while a cache of 2 GiB fills, for each part of the pages;
- full: CPU per miss of a cache of 192 MiB that is full, and evicts.

--many PAGES: CPU per miss, and in what part of a growing cache, up to that number of pages of 100 bytes.

And for pages whose sizes have a log-normal distribution (median 10 KiB), with wrk:
- churn: resident memory as a ratio of a capacity of 256 MiB after each page has been replaced about four times,
  and CPU per miss.

A virtual machine's host backs memory when it is first touched, and that time is the toucher's. So as much memory
as is measured is touched and freed before each server starts.

--old BUILD measures the daemon of another build, too: "old". --variant NAME:LD_PRELOAD=LIBRARY measures the
daemon with another allocator.

Exit status: 0 when everything was measured; 1 after an error.
"""
import argparse
import json
import mmap
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import http_servers
from server import Failure, family_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONNECTIONS = 16
FULL = 192 << 20  # capacity of the cache that evicts
# Bytes of a page, misses in a part, parts while filling, misses in a turn of a full cache.
CHURN = 256 << 20
CHURN_REQUESTS = 160000
CASES = ((1024, 30000, 8, 30000), (20480, 8000, 6, 15000), (1 << 20, 300, 4, 600))

SIZES = """
local n = 0
math.randomseed(7)
request = function()
  local normal = math.sqrt(-2 * math.log(1 - math.random())) * math.cos(2 * math.pi * math.random())
  n = n + 1
  return wrk.format(nil, string.format("/fault/size:%d?churn=%d-%d", math.min(1048576, 10240 * math.exp(normal)), START, n))
end
"""


class Contestant:
    """One server with one capacity, and the pages that it has been asked for."""

    def __init__(self, bench, name, capacity):
        self.bench, self.asked = bench, 0
        folder = bench.folder / f"{name}-{bench.number()}"
        folder.mkdir()
        warm(min(3 << 30, 2 * capacity))
        environment = dict(os.environ)
        build = bench.args.build
        if name.startswith("old"):
            build = bench.args.old
        if name in bench.args.variant:
            environment.update(bench.args.variant[name])
        start = http_servers.STARTERS.get(name)
        options = {} if start else {"environment": environment}
        self.server = (start or http_servers.start_sunproxyd)(folder, bench.origin.port, build.resolve(),
                                                              capacity=capacity, **options)
        bench.servers.append(self.server)
        self.server.wait_until_listening()
        self.server.pin(bench.cpu)

    def miss(self, size, count):
        """CPU microseconds per miss."""
        before = cpu_seconds(self.server)
        argv = [self.bench.args.build / "tests/bench/load", "--protocol", "http", "--port", self.server.port,
                "--bytes", size, "--prefix", f"/fault/size:{size}?page=", "--fill", "--keys", count, "--first-key",
                self.asked, "--connections", CONNECTIONS, "--timeout", 600]
        self.asked += count
        run = subprocess.run([str(word) for word in argv], stdout=subprocess.PIPE, text=True, check=False,
                             preexec_fn=lambda: os.sched_setaffinity(0, {self.bench.cpu}))
        if run.returncode:
            raise Failure(f"the load on {self.server.name} failed: {run.stdout}")
        return 1e6 * (cpu_seconds(self.server) - before) / count

    def churn(self, requests):
        """CPU microseconds per miss."""
        script = self.bench.folder / "churn.lua"
        before, total = cpu_seconds(self.server), 0
        while total < requests:
            script.write_text(f"local START = {total}\n" + SIZES)
            run = subprocess.run(["wrk", "-t", "1", "-c", str(CONNECTIONS), "-d", "5s", "-s", script,
                                  f"http://127.0.0.1:{self.server.port}"], stdout=subprocess.PIPE, text=True,
                                 check=True, preexec_fn=lambda: os.sched_setaffinity(0, {self.bench.cpu}))
            total += int(re.search(r"(\d+) requests in", run.stdout)[1])
        return 1e6 * (cpu_seconds(self.server) - before) / total

    def resident(self):
        return sum(resident_bytes(pid) for pid in family_of(self.server.process.pid))

    def stop(self):
        self.server.stop()


def warm(size):
    with mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE):
        pass


def cpu_seconds(server):
    return sum(time.clock_gettime((~pid << 3) | 2) for pid in family_of(server.process.pid))


def resident_bytes(pid):
    with open(f"/proc/{pid}/smaps_rollup") as f:
        return 1024 * sum(int(line.split()[1]) for line in f if line.startswith("Rss:"))


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder, self.count = args, folder, 0
        self.cpu = max(os.sched_getaffinity(0)) if args.cpu is None else args.cpu
        self.servers = []
        self.origin = http_servers.start_origin(args.build.resolve(), folder)
        self.origin.pin(self.cpu)
        self.servers.append(self.origin)

    def number(self):
        self.count += 1
        return self.count

    def stop(self):
        for server in self.servers:
            server.stop()

    def names(self):
        own = ["sunproxyd", *(["old"] if self.args.old else []), *self.args.variant]
        peers = ["trafficserver", "nginx", "varnish"]
        for name in peers:
            if not http_servers.installed(name) and (not self.args.only or name in self.args.only):
                print(f"{name} is not installed (package {http_servers.PEERS[name]}): left out")
        return [name for name in own + [peer for peer in peers if http_servers.installed(peer)]
                if not self.args.only or name in self.args.only]

    def take_turns(self, names, measure):
        results = {name: [] for name in names}
        for turn in range(self.args.rounds):
            for name in names[turn % len(names):] + names[:turn % len(names)]:
                results[name].append(measure(name))
        return results

    def filling(self, names, size, count, parts):
        """{name: [[CPU of each part] of each round]}; each server begins empty and fills alone."""
        def measure(name):
            contestant = Contestant(self, name, 2 << 30)
            try:
                contestant.miss(size, max(100, count // 20))
                return [contestant.miss(size, count) for _ in range(parts)]
            finally:
                contestant.stop()
        return self.take_turns(names, measure)

    def full(self, names, size, count):
        """({name: [CPU of each round]}, {name: resident bytes})."""
        contestants = {}
        for name in names:
            contestants[name] = Contestant(self, name, FULL)
            contestants[name].miss(size, int(1.5 * FULL / (size + 300)))
        results = self.take_turns(names, lambda name: contestants[name].miss(size, count))
        resident = {name: contestant.resident() for name, contestant in contestants.items()}
        for contestant in contestants.values():
            contestant.stop()
        return results, resident


    def many(self, names, pages):
        """{name: [(pages so far, CPU of the last part)]} of pages of 100 bytes that all stay."""
        results = {}
        for name in names:
            contestant = Contestant(self, name, max(1 << 30, pages * 1024))
            results[name] = []
            while contestant.asked < pages:
                part = min(max(10000, contestant.asked), 1000000, pages - contestant.asked)
                cpu = contestant.miss(100, part)
                results[name].append((contestant.asked, cpu))
            contestant.stop()
        return results

    def churn(self, names):
        """{name: (CPU, resident bytes)}"""
        results = {}
        for name in names:
            contestant = Contestant(self, name, CHURN)
            cpu = contestant.churn(CHURN_REQUESTS * self.args.scale)
            results[name] = cpu, contestant.resident()
            contestant.stop()
        return results


def row(title, cells):
    print(f"{title:<34}" + "".join(f"{cell:>15}" for cell in cells), flush=True)


def measure(bench, sizes):
    names = bench.names()
    results = {}
    row("CPU per miss, us", names)
    for size, count, parts, turn in CASES:
        if size not in sizes:
            continue
        count, turn = max(50, int(count * bench.args.scale)), max(50, int(turn * bench.args.scale))
        if "filling" not in bench.args.skip:
            found = results[f"filling {size}"] = bench.filling(names, size, count, parts)
            for part in range(parts):
                row(f"filling, {size} bytes, {(part + 1) * count} pages",
                    [f"{statistics.median(run[part] for run in found[name]):.1f}" for name in names])
        if "full" not in bench.args.skip:
            found, resident = bench.full(names, size, turn)
            results[f"full {size}"], results[f"resident {size}"] = found, resident
            row(f"full, {size} bytes", [f"{statistics.median(found[name]):.1f}" for name in names])
            row("  resident / capacity", [f"{resident[name] / FULL:.2f}" for name in names])
    if bench.args.many:
        found = results["many"] = bench.many(names, bench.args.many)
        for i, (pages, _) in enumerate(found[names[0]]):
            row(f"many, 100 bytes, {pages} pages", [f"{found[name][i][1]:.1f}" for name in names])
    if "churn" not in bench.args.skip:
        found = results["churn"] = bench.churn(names)
        row("churn, sizes log-normal", [f"{found[name][0]:.1f}" for name in names])
        row("  resident / capacity", [f"{found[name][1] / CHURN:.2f}" for name in names])
    return results


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--old", type=pathlib.Path, help="folder with the programs of another build")
    parser.add_argument("--variant", metavar="NAME:VARIABLE=VALUE,...", action="append", default=[],
                        help="the daemon with variables of the environment, as LD_PRELOAD; may be repeated")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each server (3)")
    parser.add_argument("--only", metavar="NAME", action="append",
                        help="servers to measure; may be repeated (default: all installed)")
    parser.add_argument("--bytes", type=int, nargs="*", choices=[case[0] for case in CASES],
                        default=[case[0] for case in CASES], help="of a page; none: only churn")
    parser.add_argument("--many", type=int, metavar="PAGES",
                        help="also misses of 100 bytes until this number of pages is stored, a KiB of memory for each")
    parser.add_argument("--scale", type=float, default=1, help="as a factor of the number of misses (1)")
    parser.add_argument("--cpu", type=int, help="the CPU to use (the last one)")
    parser.add_argument("--skip", choices=("filling", "full", "churn"), action="append", default=[])
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write every run there")
    args = parser.parse_args()
    variants = [text.split(":", 1) for text in args.variant]
    args.variant = {name: dict(pair.split("=", 1) for pair in pairs.split(",")) for name, pairs in variants}
    return args


def main():
    args = parse_arguments()
    os.environ["PATH"] += ":/usr/sbin:/sbin"  # daemons are where an ordinary user's path does not lead
    with tempfile.TemporaryDirectory(prefix="sunproxy-miss-cost-") as folder:
        bench = None
        try:
            bench = Bench(args, pathlib.Path(folder))
            results = measure(bench, args.bytes)
        except (Failure, OSError) as failure:
            print(f"miss_cost: {failure}", file=sys.stderr)
            return 1
        finally:
            if bench:
                bench.stop()
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
