#!/usr/bin/env python3
"""Measures how far one machine goes: connections, small objects, purges, workers. Prints tables for docs/SCALE.md.

- Connections: as many as the limit of open files allows, less a tenth for the rest (--connections: at most 18,000).
  The daemon's resident memory of each, idle after a response, without what the kernel keeps; and the 99th
  percentile of the time of hits of 1 KiB while half of them are busy. Each has one request outstanding.
- Objects: memory of objects of 100 bytes in a cache, and the CPU time of a hit (tests/bench/objects).
- Purges: the longest time for which one holds a lock of a shard, in CPU time. Of two runs the lower value, since a
  hypervisor's time may count as the thread's.
- Workers: a start with 64 of them under the default limits, its memory, and its stop.

--long: 20 million objects in place of one million, which takes 6.3 GB and a minute. --smoke: does it work? Tiny
counts, no figures to quote.

Exit status: 0 when everything was measured; 1 after an error.
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import http_servers
from server import Failure, Server

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
from ports import free_port  # noqa: E402

BODY = 1024
KEYS = 1000
EXTRAPOLATED = 100000
PARTS = ("connections", "objects", "purges", "workers")


class Plan:
    """How much is measured."""

    def __init__(self, args):
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        allowed = args.connections if files == resource.RLIM_INFINITY else files - files // 10
        self.connections = min(args.connections, allowed)
        self.requests = 10 * self.connections
        self.objects = 20000000 if args.long else 1000000
        self.purged = (1000000, 16), (2000000, 1)  # objects, shards
        self.runs = 2  # of each
        if args.smoke:
            self.connections, self.requests, self.objects, self.purged = 200, 2000, 10000, ((10000, 2),)
            self.runs = 1


def resident_bytes(pid):
    with open(f"/proc/{pid}/smaps_rollup") as f:
        return 1024 * sum(int(line.split()[1]) for line in f if line.startswith("Rss:"))


def threads_of(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def run_json(argv):
    run = subprocess.run([str(word) for word in argv], stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode:
        raise Failure(f"{pathlib.Path(argv[0]).name} ended with status {run.returncode}: {run.stdout}")
    return json.loads(run.stdout)


class Bench:
    def __init__(self, build, plan, folder):
        self.build, self.plan, self.folder = build, plan, folder
        self.servers, self.held = [], []
        origin = http_servers.start_origin(build, folder)
        self.servers.append(origin)
        self.prefix = f"http://127.0.0.1:{origin.port}/fault/size:{BODY}?page="

    def start(self, name, *options):
        """A daemon with a listener for RPC and one for HTTP: (server, {protocol: port})."""
        ports = {"http": free_port(), "rpc2": free_port()}
        server = Server(name, [self.build / "sunproxyd", "--no-rpcbind", "--socket", "none", "--port", str(ports["rpc2"]),
                               "--http", f"127.0.0.1:{ports['http']}", "--allow-net", "127.0.0.0/8", "--allow-port",
                               "any", *options], ports["http"], self.folder)
        self.servers.append(server)
        return server.wait_until_listening(), ports

    def load(self, protocol, port, *options):
        return [str(word) for word in (self.build / "tests/bench/load", "--protocol", protocol, "--port", port, "--bytes",
                                       BODY, "--prefix", self.prefix, "--keys", KEYS, "--timeout", 120, *options)]

    def hold(self, protocol, port, connections):
        """Opens connections, each of which has one response and is idle then; they stay until let_go()."""
        client = subprocess.Popen(self.load(protocol, port, "--hold", "--connections", connections),
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.held.append(client)
        answer = json.loads(client.stdout.readline() or "{}")
        if answer.get("errors", 1):
            raise Failure(f"{connections} connections: {answer}")

    def let_go(self):
        while self.held:
            self.held.pop().communicate()

    def stop(self):
        self.let_go()
        for server in self.servers:
            server.stop()

    # ---- connections

    def idle(self, protocol):
        """(bytes of a connection, resident bytes with the first tenth of them)."""
        most = self.plan.connections
        first = most // 10
        server, ports = self.start(f"idle-{protocol}", "--workers", "2", "--max-connections", str(most + 16),
                                   "--max-connections-per-client", "0", "--max-fetches", "64", "--max-tunnels", "1",
                                   "--idle-timeout", "0")
        run_json(self.load(protocol, ports[protocol], "--fill", "--connections", 16))
        self.hold(protocol, ports[protocol], first)
        few = resident_bytes(server.process.pid)
        self.hold(protocol, ports[protocol], most - first)
        many = resident_bytes(server.process.pid)
        self.let_go()
        server.stop()
        return (many - few) / (most - first), few - first * (many - few) / (most - first)

    def busy(self, protocol):
        most = self.plan.connections // 2
        server, ports = self.start(f"busy-{protocol}", "--workers", "2", "--max-connections", str(most + 16),
                                   "--max-connections-per-client", "0", "--max-fetches", "64", "--max-tunnels", "1")
        run_json(self.load(protocol, ports[protocol], "--fill", "--connections", 16))
        answer = run_json(self.load(protocol, ports[protocol], "--connections", most, "--requests", self.plan.requests,
                                    "--warm-up", most, "--server-pid", server.process.pid))
        server.stop()
        return answer

    def connections(self):
        most = self.plan.connections
        print(f"\nIdle connections, {most:,} of them after a hit of 1 KiB each:\n\n"
              "| | bytes of a connection | of the daemon | of the daemon with 100,000, extrapolated |\n|---|---|---|---|")
        for protocol, name in (("http", "HTTP"), ("rpc2", "RPC")):
            each, base = self.idle(protocol)
            print(f"| {name} | {each:.0f} | {(base + each * most) / 1e6:.1f} MB | "
                  f"{(base + each * EXTRAPOLATED) / 1e6:.1f} MB |", flush=True)
        print(f"\nBusy connections, {most // 2:,} of them with one hit of 1 KiB outstanding on each; load and daemon "
              f"share {len(os.sched_getaffinity(0))} CPUs:\n\n"
              "| | hits per second | CPU of a hit | median | 99th percentile |\n|---|---|---|---|---|")
        for protocol, name in (("http", "HTTP"), ("rpc2", "RPC")):
            run = self.busy(protocol)
            print(f"| {name} | {run['requests_per_second']:,.0f} | {run['server_cpu_us']:.1f} us | "
                  f"{run['median_us'] / 1000:.0f} ms | {run['p99_us'] / 1000:.0f} ms |", flush=True)

    # ---- objects and purges

    def objects_program(self, *options):
        return run_json([self.build / "tests/bench/objects", *options])

    def objects(self):
        run = self.objects_program("--no-purges", "--objects", self.plan.objects, "--shards", 64)
        own = run["own_bytes"]
        print(f"\nObjects of 100 bytes, with URL and field lines {own} bytes, LRU:\n\n"
              "| objects | resident | of each | beside its own bytes | CPU of a look-up |\n|---|---|---|---|---|\n"
              f"| {run['objects']:,} | {run['resident_bytes'] * run['objects'] / 1e6:,.0f} MB | "
              f"{run['resident_bytes']:.0f} bytes | {run['resident_bytes'] - own:.0f} bytes | "
              f"{run['hit_cpu_ns'] / 1000:.2f} us |", flush=True)

    def purges(self):
        print("\nPurges; the longest hold of a lock of a shard is CPU time:\n\n"
              "| purge | objects in the cache | shards | concerned | holds | longest | CPU time |\n"
              "|---|---|---|---|---|---|---|")
        for objects, shards in self.plan.purged:
            runs = [self.objects_program("--objects", objects, "--shards", shards)["purges"] for _ in
                    range(self.plan.runs)]
            for rows in zip(*runs):
                row = min(rows, key=lambda row: row["longest_us"])
                print(f"| {row['purge']} | {objects:,} | {shards} | {row['objects']:,} | {row['holds']:,} | "
                      f"{row['longest_us']:.0f} us | {row['cpu_ms']:,.0f} ms |", flush=True)

    # ---- workers

    def workers(self):
        print("\nA start under the default limits, to the first connection that is accepted, and a stop:\n\n"
              "| workers | threads | start | resident | stop |\n|---|---|---|---|---|")
        for count in (2, 64):
            began = time.monotonic()
            server, ports = self.start(f"workers-{count}", "--workers", str(count))
            started = time.monotonic() - began
            run_json(self.load("http", ports["http"], "--fill", "--connections", min(256, 4 * count)))
            threads, resident = threads_of(server.process.pid), resident_bytes(server.process.pid)
            began = time.monotonic()
            server.stop()
            stopped = time.monotonic() - began
            if server.process.returncode:
                raise Failure(f"{count} workers: status {server.process.returncode}")
            print(f"| {count} | {threads} | {1000 * started:.0f} ms | {resident / 1e6:.1f} MB | "
                  f"{1000 * stopped:.0f} ms |", flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="folder of the programs")
    parser.add_argument("--connections", type=int, default=18000, help="at most (18,000)")
    parser.add_argument("--only", choices=PARTS, action="append", help="may be repeated (default: all)")
    parser.add_argument("--long", action="store_true", help="20 million objects")
    parser.add_argument("--smoke", action="store_true", help="does it work? in a few seconds")
    return parser.parse_args()


def main():
    args = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="sunproxy-scale-") as folder:
        bench = None
        try:
            bench = Bench(args.build.resolve(), Plan(args), pathlib.Path(folder))
            for part in PARTS:
                if not args.only or part in args.only:
                    getattr(bench, part)()
        except (Failure, OSError) as failure:
            print(f"scale: {failure}", file=sys.stderr)
            return 1
        finally:
            if bench:
                bench.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
