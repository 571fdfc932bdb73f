#!/usr/bin/env python3
"""Measure what a hit costs, in CPU time and in memory, beside a floor and a neighbour.

The contestants are sunproxyd, memcached where it is installed, and the floor: a bare epoll server
that writes as many bytes and knows nothing of RPC. All have as many threads, and the floor has as
many answers in memory as the others have pages, for a body that comes from memory costs more than
one that the CPU has at hand. They take turns in rounds; the table has medians. Server and load share
one CPU: with a CPU each, the same server costs up to twice as much for reasons of the machine's
(other caches to fetch from, a CPU to be woken); that is printed too, as a second column. CPU time is
the kernel's account of the server's process, user and system.

Exit status: 0 when everything was measured, be the goals reached or not; 1 after any error.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "tests"))
from ports import free_port  # noqa: E402
from server import Failure, Server  # noqa: E402

SIZES = (1024, 20480)
GOAL_RATIO = {1024: 1.40, 20480: 1.25}  # of the bare server's CPU time
GOAL_OVERHEAD = 192  # bytes a page
KEYS = 1000
DEPTH = 4  # calls outstanding on each connection, where that is measured
THREADS = "2"


class Plan:
    """How much is measured."""

    def __init__(self, args):
        self.connections = (32, 1000, 5000)
        self.rounds = args.rounds
        self.requests = 120000
        self.warm_up = 10000
        self.memory_pages = 100000
        self.columns = ("one", "two")
        if args.quick:
            self.requests, self.memory_pages = 40000, 20000
            self.connections, self.columns = (32, 5000), ("one",)
        if args.smoke:
            self.rounds, self.requests, self.warm_up = 1, 2000, 200
            self.memory_pages = 1000
            self.connections, self.columns = (32, 300), ("one",)


def resident_bytes(pid):
    with open(f"/proc/{pid}/smaps_rollup") as f:
        for line in f:
            if line.startswith("Rss:"):
                return int(line.split()[1]) * 1024
    raise Failure(f"no resident size of process {pid}")


class LoadedServer(Server):
    """A server, and how the load generator is to speak with it."""

    def __init__(self, name, argv, port, protocol, folder, log):
        super().__init__(name, argv, port, folder, log=log, output=subprocess.PIPE)
        self.protocol, self.pid = protocol, self.process.pid

    def stop(self):
        super().stop()
        self.process.stdout.close()


class Bench:
    def __init__(self, build, plan, folder):
        self.build, self.plan, self.folder = build, plan, folder
        self.cpus = sorted(os.sched_getaffinity(0))
        self.servers = []
        self.origins = {}

    def program(self, *parts):
        path = os.path.join(self.build, *parts)
        if not os.access(path, os.X_OK):
            raise Failure(f"{path} is not built; try: make programs bench-programs origin")
        return path

    def start(self, name, argv, port, protocol):
        server = LoadedServer(name, argv, port, protocol, pathlib.Path(self.folder),
                              f"log.{len(self.servers)}")
        self.servers.append(server)
        return server

    def stop_all(self):
        for server in self.servers:
            server.stop()

    def start_origin(self, size):
        port = free_port()
        argv = [self.program("tests", "origin", "origin"), "--quiet", "--http-port", str(port),
                "--size-min", str(size), "--size-max", str(size),
                "--header", "Cache-Control: max-age=86400"]
        self.origins[size] = self.start("origin", argv, port, None).wait_until_listening()

    def start_sunproxyd(self, capacity, *options, protocol="rpc2"):
        port = free_port()
        path = os.path.join(self.folder, f"admin.{port}")
        argv = [self.program("sunproxyd"), "--no-rpcbind", "--port", str(port), "--socket", path,
                "--workers", THREADS, "--shards", THREADS, "--policy", "lru",
                "--capacity-bytes", str(capacity), "--allow-net", "127.0.0.0/8",
                "--max-connections-per-client", "0", *options]
        if protocol == "http":
            port = free_port()
            argv += ["--http", f"127.0.0.1:{port}"]
        return self.start("sunproxyd", argv, port, protocol).wait_until_listening()

    def start_memcached(self, capacity):
        """None where it is not installed."""
        path = shutil.which("memcached")
        if not path:
            return None
        port = free_port()
        argv = [path, "-t", THREADS, "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-c", "8192",
                "-m", str(capacity >> 20)]
        if os.getuid() == 0:
            argv += ["-u", "nobody"]
        return self.start("memcached", argv, port, "memcached").wait_until_listening()

    def start_bare(self, reply_bytes, answers):
        argv = [self.program("tests", "bench", "bare"), "--bytes", str(reply_bytes),
                "--answers", str(answers), "--threads", THREADS]
        server = self.start("bare", argv, 0, "bare")
        server.port = int(server.process.stdout.readline() or 0)
        return server.wait_until_listening()

    def prefix(self, size):
        return f"http://127.0.0.1:{self.origins[size].port}/bench/"

    def load(self, server, size, *more, cpu=None, expect=None):
        """Runs the load generator; its answer as a dictionary."""
        argv = [self.program("tests", "bench", "load"), "--protocol", server.protocol,
                "--port", str(server.port), "--bytes", str(expect or size),
                "--prefix", self.prefix(size), "--server-pid", str(server.pid),
                *(str(word) for word in more)]
        pinned = (lambda: os.sched_setaffinity(0, {cpu})) if cpu is not None else None
        run = subprocess.run(argv, stdout=subprocess.PIPE, preexec_fn=pinned, check=False)
        if not run.stdout:
            raise Failure(f"the load on {server.name} ended with status {run.returncode}")
        answer = json.loads(run.stdout)
        if answer["errors"] or run.returncode:
            raise Failure(f"{server.name}, {size} bytes, {' '.join(argv[9:])}: "
                          f"{answer['errors']} errors, first {answer.get('first_error')}")
        return answer

    def fill(self, server, size, keys, first=0):
        """Every key once, from the origin or by set, over a few connections."""
        return self.load(server, size, "--fill", "--keys", keys, "--first-key", first,
                         "--connections", 16, "--timeout", 120)

    # ---- time ------------------------------------------------------------------------------

    def measure_time(self):
        """Tables of runs: results[column][size, connections, depth][name] is a list."""
        plan = self.plan
        sunproxyd = self.start_sunproxyd(512 << 20)
        memcached = self.start_memcached(512 << 20)
        contestants, reply_bytes = {}, {}
        for size in SIZES:
            servers = [server for server in (sunproxyd, memcached) if server]
            for server in servers:
                self.fill(server, size, KEYS)
            probe = self.load(sunproxyd, size, "--requests", 1000, "--warm-up", 0)
            reply_bytes[size] = round(probe["reply_bytes"])
            contestants[size] = [sunproxyd, self.start_bare(reply_bytes[size], KEYS)] + servers[1:]
        results = {}
        for column in plan.columns:
            cpus = (self.cpus[0], self.cpus[0] if column == "one" else self.cpus[1])
            results[column] = {}
            for size in SIZES:
                cases = [(connections, 1) for connections in plan.connections]
                if column == "one":
                    cases += [(connections, DEPTH) for connections in plan.connections]
                for connections, depth in cases:
                    results[column][size, connections, depth] = self.take_turns(
                        contestants[size], size, reply_bytes[size], connections, depth, cpus)
        return results

    def take_turns(self, servers, size, reply_bytes, connections, depth, cpus):
        runs = {server.name: [] for server in servers}
        for turn in range(self.plan.rounds):
            for server in servers[turn % len(servers):] + servers[:turn % len(servers)]:
                server.pin(cpus[0])
                runs[server.name].append(self.load(
                    server, size, "--connections", connections, "--depth", depth, "--keys", KEYS,
                    "--requests", self.plan.requests, "--warm-up", self.plan.warm_up,
                    cpu=cpus[1], expect=reply_bytes if server.protocol == "bare" else None))
        return runs

    # ---- memory ----------------------------------------------------------------------------

    def measure_memory(self):
        """Resident bytes a page beyond URL, headers and body: {name: bytes}."""
        size, pages, overheads = SIZES[0], self.plan.memory_pages, {}
        for start in (self.start_sunproxyd, self.start_memcached):
            server = start(1 << 30)
            if not server:
                continue
            self.fill(server, size, KEYS)  # what a server allocates once, for its work
            before = resident_bytes(server.pid)
            self.fill(server, size, pages, first=KEYS)
            grown = resident_bytes(server.pid) - before
            probe = self.load(server, size, "--requests", pages, "--warm-up", 0,
                              "--keys", pages, "--first-key", KEYS)  # all there?
            own = probe["key_bytes"] + probe["header_bytes"] + size
            overheads[server.name] = grown / pages - own
            server.stop()
        return overheads


# ---- telling ---------------------------------------------------------------------------------


def median(runs, key):
    return statistics.median(run[key] for run in runs)


def print_times(results, columns):
    names = ("sunproxyd", "bare", "memcached")
    two = "two" in columns
    print("Server CPU, microseconds per request (median), and thousands of requests per second:\n")
    print(f"{'':>30}{'server and load on one CPU':^48}{'on a CPU each' if two else '':^48}".rstrip())
    head = "".join(f"{name:>16}" for name in names)
    print(f"{'body':>8}{'connections':>14}{'depth':>8}{head}{head if two else ''}")
    for case in results["one"]:
        size, connections, depth = case
        line = f"{size:>8}{connections:>14}{depth:>8}"
        for column in columns:
            runs = results[column].get(case, {})
            for name in names:
                cell = "-"
                if name in runs:
                    cell = (f"{median(runs[name], 'server_cpu_us'):.2f}"
                            f" {median(runs[name], 'requests_per_second') / 1000:6.0f}k")
                line += f"{cell:>16}"
        print(line)
    print()


def tell(goal, measured, reached):
    print(f"  {'reached' if reached else 'MISSED':<8} {goal}: {measured}")


def print_goals(results, overheads, plan):
    print("Goals, on one CPU:")
    for case, runs in results["one"].items():
        size, connections, depth = case
        ours = median(runs["sunproxyd"], "server_cpu_us")
        bare = median(runs["bare"], "server_cpu_us")
        where = f"{size} bytes, {connections} connections" + (
            f", {depth} calls outstanding on each" if depth > 1 else "")
        tell(f"at most {GOAL_RATIO[size]:.2f} of bare at {where}", f"{ours / bare:.2f}",
             ours / bare <= GOAL_RATIO[size])
        if "memcached" in runs:
            theirs = median(runs["memcached"], "server_cpu_us")
            tell(f"below memcached at {where}", f"{ours / theirs:.2f} of it", ours < theirs)
    tell(f"at most {GOAL_OVERHEAD} bytes a page beyond URL, headers and body "
         f"({plan.memory_pages} pages of {SIZES[0]} bytes)",
         ", ".join(f"{name} {value:.0f}" for name, value in overheads.items()),
         overheads["sunproxyd"] <= GOAL_OVERHEAD)
    most = max(plan.connections)
    tell(f"{most} connections served without one error", "no error", True)
    if not shutil.which("memcached"):
        print("  memcached is not installed: nothing was compared with it")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"),
                        help="folder with the programs (build/release)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each contestant (3)")
    parser.add_argument("--quick", action="store_true", help="fewer requests, one column")
    parser.add_argument("--smoke", action="store_true",
                        help="does it all work? tiny counts, in a few seconds; no figures to quote")
    parser.add_argument("--json", metavar="FILE", help="write every single run there")
    return parser.parse_args()


def write_json(path, results, overheads):
    runs = [{"column": column, "body": case[0], "server": name, **run}
            for column, cases in results.items() for case, by_name in cases.items()
            for name, list_of_runs in by_name.items() for run in list_of_runs]
    with open(path, "w") as f:
        json.dump({"runs": runs, "overhead_bytes_a_page": overheads}, f, indent=1)


def main():
    args = parse_arguments()
    plan = Plan(args)
    with tempfile.TemporaryDirectory(prefix="sunproxy-bench-") as folder:
        bench = Bench(os.path.abspath(args.build), plan, folder)
        if len(bench.cpus) < 2:
            plan.columns = ("one",)
        try:
            for size in SIZES:
                bench.start_origin(size)
            results = bench.measure_time()
            overheads = bench.measure_memory()
        except (Failure, OSError) as failure:
            print(f"bench: {failure}", file=sys.stderr)
            return 1
        finally:
            bench.stop_all()
    if args.smoke:
        print("bench: every contestant was filled and answered without an error")
        return 0
    print_times(results, plan.columns)
    print_goals(results, overheads, plan)
    if args.json:
        write_json(args.json, results, overheads)
    return 0


if __name__ == "__main__":
    sys.exit(main())
