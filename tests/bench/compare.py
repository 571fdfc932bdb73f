#!/usr/bin/env python3
"""Compare two builds of sunproxyd, in turns: CPU time of hits and misses, memory of a page.

Both daemons run at once and take turns, round by round, on one CPU with the load generator and the
origin, so that other load on the machine falls on both. The table has medians, and the ratio of the
medians. A miss is a URL that has not been requested before, fetched from an origin on loopback.

Exit status: 0 when everything was measured; 1 after any error.
"""

import argparse
import os
import statistics
import sys
import tempfile

import bench

HIT_CASES = ((1024, 32), (1024, 1000), (20480, 32))
MISS_CASES = ((1024, 1), (1024, 16), (20480, 16))


class Comparison(bench.Bench):
    def __init__(self, builds, plan, folder):
        super().__init__(builds["new"], plan, folder)
        self.builds, self.first_key = builds, bench.KEYS

    def start_build(self, name, capacity):
        self.build = self.builds[name]
        try:
            server = self.start_sunproxyd(capacity)
        finally:
            self.build = self.builds["new"]
        server.name = name
        return server

    def load(self, server, *arguments, **more):
        """By the load generator of the same build, since version 2 may differ."""
        self.build = self.builds[server.name]
        try:
            return super().load(server, *arguments, **more)
        finally:
            self.build = self.builds["new"]

    def run_turns(self, servers, run):
        """{name: values} of run(server), a number, for each server in each round."""
        values = {server.name: [] for server in servers}
        for turn in range(self.plan.rounds):
            for server in servers if turn % 2 == 0 else servers[::-1]:
                bench.pin(server.pid, self.cpus[0])
                values[server.name].append(run(server))
        return values

    def hits(self, servers, size, connections):
        for server in servers:
            self.fill(server, size, bench.KEYS)
        return self.run_turns(servers, lambda server: self.load(
            server, size, "--connections", connections, "--keys", bench.KEYS, "--requests",
            self.plan.requests, "--warm-up", self.plan.warm_up, cpu=self.cpus[0])["server_cpu_us"])

    def misses(self, servers, size, connections):
        bench.pin(self.origins[size].pid, self.cpus[0])

        def run(server):
            self.first_key += self.plan.misses
            return self.load(server, size, "--fill", "--keys", self.plan.misses, "--first-key",
                             self.first_key, "--connections", connections, "--timeout", 120,
                             cpu=self.cpus[0])["server_cpu_us"]

        return self.run_turns(servers, run)

    def page_bytes(self, name):
        """Resident bytes a page beyond URL, headers and body."""
        size, pages = 1024, self.plan.memory_pages
        server = self.start_build(name, 1 << 30)
        self.fill(server, size, bench.KEYS)
        before = bench.resident_bytes(server.pid)
        self.fill(server, size, pages, first=bench.KEYS)
        grown = bench.resident_bytes(server.pid) - before
        probe = self.load(server, size, "--requests", pages, "--warm-up", 0, "--keys", pages,
                          "--first-key", bench.KEYS)
        server.stop()
        return grown / pages - (probe["key_bytes"] + probe["header_bytes"] + size)


def print_row(what, values, unit):
    old, new = statistics.median(values["old"]), statistics.median(values["new"])
    spread = max(values["old"] + values["new"]) / min(values["old"] + values["new"])
    print(f"{what:<46}{old:>9.2f}{new:>9.2f} {unit:<6}{new / old:>7.3f}{spread:>9.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--old", required=True, metavar="BUILD",
                        help="folder with the programs of the other build")
    parser.add_argument("--new", metavar="BUILD", help="that of this one (build/release)",
                        default=os.path.join(bench.ROOT, "build", "release"))
    parser.add_argument("--rounds", type=int, default=5, help="turns of each build (5)")
    parser.add_argument("--quick", action="store_true", help="fewer requests")
    args = parser.parse_args()
    plan = bench.Plan(argparse.Namespace(rounds=args.rounds, quick=args.quick, smoke=False))
    plan.misses = 5000 if args.quick else 15000
    with tempfile.TemporaryDirectory() as folder:
        run = Comparison({"old": args.old, "new": args.new}, plan, folder)
        try:
            for size in sorted({size for size, _ in HIT_CASES + MISS_CASES}):
                run.start_origin(size)
            servers = [run.start_build(name, 512 << 20) for name in ("old", "new")]
            print(f"{'':<46}{'old':>9}{'new':>9} {'':<6}{'ratio':>7}{'max/min':>9}")
            for size, connections in HIT_CASES:
                print_row(f"hit, {size} bytes, {connections} connections",
                          run.hits(servers, size, connections), "us")
            for size, connections in MISS_CASES:
                print_row(f"miss, {size} bytes, {connections} connections",
                          run.misses(servers, size, connections), "us")
            print_row("page of 1 KiB, memory beyond its content",
                      {name: [run.page_bytes(name)] for name in ("old", "new")}, "bytes")
        except (bench.Failure, OSError) as error:
            print(f"compare.py: {error}", file=sys.stderr)
            return 1
        finally:
            run.stop_all()
    return 0


if __name__ == "__main__":
    sys.exit(main())
