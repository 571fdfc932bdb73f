#!/usr/bin/env python3
"""Measures what HTTP requests cost sunproxyd, beside nginx, Traffic Server, Varnish and Squid.

All are reverse proxies before one origin on loopback (http_servers.py); those that are not installed
are left out. wrk, which makes the load, is needed. Server and load share one CPU. Servers take turns
in rounds, and medians are printed. CPU time is the kernel's account of all processes of a server.

Prints:
- hits: CPU per request and requests per second, by size of the body and number of connections; of
  1 MiB also with two URLs alone, whose bodies stay in the processor's caches (hot); a turn has at
  least a second for each 1,000 connections, so that opening them is a small part of it;
- misses: the same for pages that are not in the cache, 16 connections, each URL once;
- interference: the 99th percentile of the time of a 1 KiB hit while other connections download
  large objects, which are hits too, and the downloads per second.

Exit status: 0 when everything was measured, whatever the figures are, or when wrk is not installed; 1
after an error.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import http_servers
from http_servers import Failure

ROOT = pathlib.Path(__file__).resolve().parents[2]

PAGES = 100  # URLs in turn; large bodies: fewer, so that all fit into every cache
HOT = 2      # likewise, of a row whose bodies stay in the processor's caches

# Bytes of the body, connections, URLs.
HITS = ((1024, 32, PAGES), (20480, 32, PAGES), (1 << 20, 32, PAGES), (1 << 20, 32, HOT),
        (1024, 1000, PAGES), (1024, 5000, PAGES))
LARGE = (1 << 20, 100 << 20)

CYCLE = """
local n, size, pages, thread = 0, %d, %d, 0
request = function()
  n = n + 1
  return wrk.format(nil, "/fault/size:" .. size .. "?page=" .. (n %% pages))
end
"""
UNIQUE = """
local n = 0
request = function()
  n = n + 1
  return wrk.format(nil, "/fault/size:%d?miss=%s-" .. n)
end
"""
REPORT = """
done = function(summary, latency, requests)
  io.write(string.format('{"requests": %d, "us": %d, "errors": %d, "p50": %d, "p99": %d}\\n',
    summary.requests, summary.duration,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status
      + summary.errors.timeout, latency:percentile(50), latency:percentile(99)))
end
"""


def pages_of(size):
    return max(2, min(PAGES, (200 << 20) // size))


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder, self.number = args, folder, 0
        self.servers = {}
        self.cpu = min(os.sched_getaffinity(0))

    def script(self, text):
        self.number += 1
        path = self.folder / f"{self.number}.lua"
        path.write_text(text + REPORT)
        return path

    def start_load(self, server, script, connections, seconds):
        argv = ["wrk", "--latency", "-t", "1", "-c", str(connections), "-d", f"{seconds}s",
                "--timeout", "30s", "-s", script, f"http://127.0.0.1:{server.port}"]
        return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True,
                                preexec_fn=lambda: os.sched_setaffinity(0, {self.cpu}))

    def finish_load(self, server, process):
        out, _ = process.communicate()
        found = re.search(r"^\{.*\}$", out, re.MULTILINE)
        if process.returncode or not found:
            raise Failure(f"the load on {server.name} failed: {out}")
        result = json.loads(found.group())
        if result["errors"]:
            raise Failure(f"{server.name}: {result['errors']} errors in {result['requests']} requests")
        return result

    def run(self, server, script, connections, seconds):
        """CPU microseconds per request, and requests per second."""
        server.pin(self.cpu)
        before = server.cpu_seconds()
        result = self.finish_load(server, self.start_load(server, script, connections, seconds))
        return {"cpu_us": (server.cpu_seconds() - before) * 1e6 / max(1, result["requests"]),
                "per_second": result["requests"] * 1e6 / result["us"], "p99_us": result["p99"]}

    def take_turns(self, measure):
        """{name: [result of each round]}"""
        results = {name: [] for name in self.servers}
        names = list(self.servers)
        for turn in range(self.args.rounds):
            for name in names[turn % len(names):] + names[:turn % len(names)]:
                results[name].append(measure(self.servers[name]))
        return results

    def fill(self, size):
        script = self.script(CYCLE % (size, pages_of(size)))
        for server in self.servers.values():
            self.finish_load(server, self.start_load(server, script, 4, 1))
            self.finish_load(server, self.start_load(server, script, 1, 2 if size < 1 << 24 else 5))

    def measure_hits(self, size, connections, pages):
        script = self.script(CYCLE % (size, pages))
        seconds = max(self.args.seconds, connections // 1000)
        return self.take_turns(lambda server: self.run(server, script, connections, seconds))

    def measure_misses(self, size):
        def measure(server):
            self.number += 1
            script = self.script(UNIQUE % (size, f"{server.name}-{self.number}"))
            return self.run(server, script, 16, self.args.seconds)
        return self.take_turns(measure)

    def measure_interference(self, size):
        small, large = (self.script(CYCLE % (each, pages_of(each))) for each in (1024, size))

        def measure(server):
            server.pin(self.cpu)
            downloads = self.start_load(server, large, 50, self.args.seconds + 2)
            hits = self.start_load(server, small, 8, self.args.seconds)
            result = self.finish_load(server, hits)
            other = self.finish_load(server, downloads)
            return {"p99_us": result["p99"], "per_second": other["requests"] * 1e6 / other["us"]}
        return self.take_turns(measure)


def median(runs, key):
    return statistics.median(run[key] for run in runs)


def print_row(title, results, cells):
    print(f"{title:<39}" + "".join(f"{cells(runs):>18}" for runs in results.values()))
    sys.stdout.flush()


def print_costs(title, results):
    print_row(title, results, lambda runs: f"{median(runs, 'cpu_us'):.2f} us "
                                           f"{median(runs, 'per_second') / 1000:.1f}k")


def print_ratios(results):
    ours = median(results["sunproxyd"], "cpu_us")
    print_row("  sunproxyd as a ratio of it", results,
              lambda runs: f"{ours / median(runs, 'cpu_us'):.2f}")


def row(text):
    size, connections = (int(number) for number in text.split(":"))
    if size < 1 or connections < 1:
        raise ValueError(text)
    return size, connections, pages_of(size)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each server (5)")
    parser.add_argument("--seconds", type=int, default=2, help="length of a turn (2)")
    parser.add_argument("--only", metavar="NAME", action="append",
                        help="servers to measure; may be repeated (default: all installed)")
    parser.add_argument("--hits", metavar="BYTES:CONNECTIONS", action="append", type=row,
                        help="hits to measure in place of the table's; may be repeated")
    parser.add_argument("--skip", choices=("hits", "misses", "interference"), action="append", default=[])
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write every run there")
    return parser.parse_args()


def start_servers(bench, origin):
    for name, start in http_servers.STARTERS.items():
        if bench.args.only and name not in bench.args.only:
            continue
        if not http_servers.installed(name):
            print(f"{name} is not installed (package {http_servers.PEERS[name]}): left out")
            continue
        folder = bench.folder / name
        folder.mkdir()
        bench.servers[name] = start(folder, origin.port, bench.args.build.resolve())
    for server in bench.servers.values():
        server.wait_until_listening()


def measure(bench):
    results = {}
    wanted = [] if "hits" in bench.args.skip else bench.args.hits or HITS
    print(f"{'CPU per request, requests/s':<39}"
          + "".join(f"{name:>18}" for name in bench.servers))
    for size in sorted({size for size, _, _ in wanted}):
        bench.fill(size)
    for size, connections, pages in wanted:
        title = f"hit, {size} bytes, {connections} connections" + (", hot" if pages < pages_of(size) else "")
        results[title] = bench.measure_hits(size, connections, pages)
        print_costs(title, results[title])
        if "sunproxyd" in results[title]:
            print_ratios(results[title])
    if "misses" not in bench.args.skip:
        for size in (1024, 20480):
            title = f"miss, {size} bytes, 16 connections"
            results[title] = bench.measure_misses(size)
            print_costs(title, results[title])
    if "interference" not in bench.args.skip:
        if not wanted:
            bench.fill(1024)
        print("p99 of a 1 KiB hit during 50 downloads, downloads/s")
        for size in LARGE:
            bench.fill(size)
            title = f"objects of {size >> 20} MiB"
            results[title] = bench.measure_interference(size)
            print_row(title, results[title],
                      lambda runs: f"{median(runs, 'p99_us') / 1000:.1f} ms "
                                   f"{median(runs, 'per_second'):.1f}")
    return results


def main():
    args = parse_arguments()
    if not shutil.which("wrk"):
        print("http: wrk is not installed (package wrk): nothing is measured over HTTP")
        return 0
    with tempfile.TemporaryDirectory(prefix="sunproxy-http-") as folder:
        bench = Bench(args, pathlib.Path(folder))
        origin = None
        try:
            origin = http_servers.start_origin(args.build.resolve(), bench.folder)
            start_servers(bench, origin)
            results = measure(bench)
        except (Failure, OSError) as failure:
            print(f"http: {failure}", file=sys.stderr)
            return 1
        finally:
            for server in [*bench.servers.values(), *([origin] if origin else [])]:
                server.stop()
            for name in bench.servers:
                shutil.rmtree(f"/dev/shm/{name}", ignore_errors=True)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
