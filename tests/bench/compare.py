#!/usr/bin/env python3
"""Compare two builds, in turns: CPU time of hits and misses, memory of a page, the simulator.

Both daemons run at once and take turns, round by round, on one CPU with the load generator and the
origin, so that other load on the machine falls on both. The table has medians, and the ratio of the
medians with the 95 % interval of the paired turns, if there are five. With --starts it is the
interval of the starts, since two processes of one program differ by the layout of their memory. A
miss is a URL that has not been requested before, fetched from an origin on loopback.

Memory is measured twice: divided by all pages, with what a daemon allocates once as their number
grows, and by the pages of the second half, which is what a further page takes.

With --users the daemon of the new build asks for a user, whose credentials each request has, and has
a rule with a list of a million hosts that the request's is not one of.

With --rules the daemon of the new build has rules of many kinds, all but one of which are for other
URLs than those that are requested.

The simulators are the programs tests/bench/trial of both builds. They run one policy over a trace of
4 million requests by Zipf's law that is made here; reading the trace is a row of its own.

Exit status: 0 when everything was measured; 1 after any error.
"""

import argparse
import base64
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

import bench

HIT_CASES = ((1024, 32), (1024, 1000), (20480, 32))
MISS_CASES = ((1024, 1), (1024, 16), (20480, 16))

PARTS = ("hits", "misses", "memory", "simulator")
POLICIES = "lru,fifo,slru,2q,arc,sieve,s3-fifo,w-tinylfu,gdsf"
CAPACITY = 40000
URLS = 1000000
MISS_US = 0.5  # of the origin's CPU, per hit: beyond that it was asked for some


RULES = ("path=/application{0}/*; cookie=session; pass=yes",
         "path=*.type{0}; remove-parameter=utm_*; sort-parameters=yes",
         "host=host{0}.example.com; remove-cookie=_ga*; grace=1h",
         "path=/folder{0}/*; field=User-Agent: *bot*; deny=403")


USER = ("reader", "a long enough password")
CREDENTIALS = "Proxy-Authorization: Basic " + base64.b64encode(":".join(USER).encode()).decode()


def rule_options(count):
    """The first one concerns each request."""
    rules = ["remove-cookie=_ga*", *(RULES[i % len(RULES)].format(i) for i in range(1, count))]
    return [word for rule in rules[:count] for word in ("--rule", rule)]


class Comparison(bench.Bench):
    def __init__(self, builds, plan, folder):
        super().__init__(builds["new"], plan, folder)
        self.builds, self.first_key = builds, bench.KEYS

    def user_options(self):
        """Of users with one hash: it costs the first request of a connection at most."""
        users, hosts = (os.path.join(self.folder, name) for name in ("users", "hosts"))
        text = subprocess.run(["openssl", "passwd", "-5", USER[1]], check=True,
                              capture_output=True).stdout.decode()
        with open(users, "w", encoding="ascii") as file:
            file.write(f"{USER[0]}:{text}")
        os.chmod(users, 0o600)
        with open(hosts, "w", encoding="ascii") as file:
            file.writelines(f"host{i}.domain{i % 1000}.example\n" for i in range(1000000))
        return ("--users", users, "--rule", f"host-list={hosts}; user={USER[0]}; deny=403")

    def start_build(self, name, capacity):
        self.build = self.builds[name]
        try:
            options = rule_options(self.plan.rules if name == "new" else 0)
            if self.plan.users and name == "new":
                options += self.user_options()
            server = self.start_sunproxyd(capacity, *options, protocol=self.plan.protocol)
        finally:
            self.build = self.builds["new"]
        server.name = name
        return server

    def load(self, server, *arguments, **more):
        """By the load generator of the same build, since version 2 may differ."""
        self.build = self.builds[server.name]
        try:
            if self.plan.users and server.name == "new":
                arguments += ("--field", CREDENTIALS)
            return super().load(server, *arguments, **more)
        finally:
            self.build = self.builds["new"]

    def run_turns(self, servers, run):
        """{name: values} of run(server), a number, for each server in each round."""
        values = {server.name: [] for server in servers}
        for turn in range(self.plan.rounds):
            for server in servers if turn % 2 == 0 else servers[::-1]:
                server.pin(self.cpus[0])
                values[server.name].append(run(server))
        return values

    def hits(self, servers, size, connections):
        for server in servers:
            self.fill(server, size, bench.KEYS)

        def run(server):
            before = self.origin_seconds(size)
            answer = self.load(server, size, "--connections", connections, "--keys", bench.KEYS,
                               "--requests", self.plan.requests, "--warm-up", self.plan.warm_up,
                               cpu=self.cpus[0])
            if (self.origin_seconds(size) - before) * 1e6 > MISS_US * self.plan.requests:
                raise bench.Failure(f"{server.name}: not all of {size} bytes were hits")
            return answer["server_cpu_us"]

        return self.run_turns(servers, run)

    def origin_seconds(self, size):
        """CPU time of an origin: clock_getcpuclockid(3)."""
        return time.clock_gettime(~self.origins[size].pid << 3 | 2)

    def misses(self, servers, size, connections):
        self.origins[size].pin(self.cpus[0])

        def run(server):
            self.first_key += self.plan.misses
            return self.load(server, size, "--fill", "--keys", self.plan.misses, "--first-key",
                             self.first_key, "--connections", connections, "--timeout", 120,
                             cpu=self.cpus[0])["server_cpu_us"]

        return self.run_turns(servers, run)

    def page_bytes(self, name):
        """Resident bytes a page beyond URL, headers and body: of all pages, and of a further one."""
        size, pages = 1024, self.plan.memory_pages
        server = self.start_build(name, 1 << 30)
        self.fill(server, size, bench.KEYS)
        resident = [bench.resident_bytes(server.pid)]
        for part in range(2):
            self.fill(server, size, pages, first=bench.KEYS + part * pages)
            resident.append(bench.resident_bytes(server.pid))
        probe = self.load(server, size, "--requests", 2 * pages, "--warm-up", 0, "--keys",
                          2 * pages, "--first-key", bench.KEYS)
        server.stop()
        content = probe["key_bytes"] + probe["header_bytes"] + size
        return [(resident[last] - resident[first]) / pages - content
                for first, last in ((0, 1), (1, 2))]

    # ---- the simulator -----------------------------------------------------------------------

    def make_trace(self):
        path = os.path.join(self.folder, "zipf.oracleGeneral")
        subprocess.run([self.program("sunproxy"), "trace", "generate", "zipf", "-n",
                        str(self.plan.trace_requests), "--urls", str(URLS), "--constant", "1",
                        "--seed", "1", "--rate", "10000", "--to", "oracle", "-o", path], check=True)
        return path

    def trial(self, name, path, policy):
        argv = [os.path.join(self.builds[name], "tests", "bench", "trial"), path, policy,
                str(CAPACITY)]
        run = subprocess.run(argv, stdout=subprocess.PIPE, check=False,
                             preexec_fn=lambda: os.sched_setaffinity(0, {self.cpus[0]}))
        if run.returncode:
            raise bench.Failure(f"{argv[0]} ended with status {run.returncode}")
        return json.loads(run.stdout)

    def simulations(self, path, policy):
        """{name: answers of trial}."""
        answers = {name: [] for name in self.builds}
        for turn in range(self.plan.simulations):
            for name in sorted(answers, reverse=turn % 2 == 0):
                answers[name].append(self.trial(name, path, policy))
        return answers


def interval(values, turns=1):
    """Of the ratio, in 95 %: of the geometric mean of the turns' ratios, as they are paired. The
    turns of one start of the servers count as one."""
    logs = [math.log(new / old) for old, new in zip(values["old"], values["new"])]
    logs = [statistics.mean(logs[i:i + turns]) for i in range(0, len(logs), turns)]
    if len(logs) < 5:
        return ""
    # 2.8 at four degrees of freedom, 2.1 at 19: Student's t, within 1 %.
    t = 1.96 + 2.4 / (len(logs) - 1) + 3.8 / (len(logs) - 1) ** 2
    half = t * statistics.stdev(logs) / math.sqrt(len(logs))
    mean = statistics.mean(logs)
    return f"{math.exp(mean - half):.3f}-{math.exp(mean + half):.3f}"


def print_row(what, values, unit, turns=1):
    old, new = statistics.median(values["old"]), statistics.median(values["new"])
    spread = max(values["old"] + values["new"]) / min(values["old"] + values["new"])
    print(f"{what:<46}{old:>9.2f}{new:>9.2f} {unit:<6}{new / old:>7.3f}{interval(values, turns):>13}"
          f"{spread:>9.2f}", flush=True)


def milliseconds(answers, key):
    return {name: [1e3 * answer[key] for answer in runs] for name, runs in answers.items()}


def server_cases(run, parts):
    """What of a pair of servers is measured, with its name."""
    for what, cases, measure in (("hit", HIT_CASES, run.hits), ("miss", MISS_CASES, run.misses)):
        if ("hits" if what == "hit" else "misses") in parts:
            for size, connections in cases:
                yield f"{what}, {size} bytes, {connections} connections", measure, size, connections


def compare_servers(run, parts):
    """Each start of a program has another layout in memory, which alone is a difference."""
    figures = {}
    for start in range(run.plan.starts):
        names = ("old", "new") if start % 2 == 0 else ("new", "old")
        servers = [run.start_build(name, 512 << 20) for name in names]
        for what, measure, size, connections in server_cases(run, parts):
            values = figures.setdefault(what, {"old": [], "new": []})
            for name, more in measure(servers, size, connections).items():
                values[name] += more
        for server in servers:
            server.stop()
    for what, values in figures.items():
        print_row(what, values, "us", run.plan.rounds if run.plan.starts > 1 else 1)


def compare_memory(run):
    figures = {name: run.page_bytes(name) for name in ("old", "new")}
    for i, what in enumerate(("page of 1 KiB, memory beyond its content",
                              "one more page, likewise")):
        print_row(what, {name: [values[i]] for name, values in figures.items()}, "bytes")


def compare_simulators(run, policies):
    path = run.make_trace()
    loads = {name: [] for name in run.builds}
    for policy in policies:
        answers = run.simulations(path, policy)
        print_row(f"simulation, {policy}", milliseconds(answers, "run_cpu_s"), "ms")
        for name, values in milliseconds(answers, "load_cpu_s").items():
            loads[name] += values
    print_row("reading its trace", loads, "ms")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--old", required=True, metavar="BUILD",
                        help="folder with the programs of the other build")
    parser.add_argument("--new", metavar="BUILD", help="that of this one (build/release)",
                        default=os.path.join(bench.ROOT, "build", "release"))
    parser.add_argument("--only", metavar="PARTS", help=f"of {','.join(PARTS)}",
                        default=",".join(PARTS))
    parser.add_argument("--policy", metavar="LIST", help=f"simulated ({POLICIES})",
                        default=POLICIES)
    parser.add_argument("--rounds", type=int, default=5, help="turns of each build (5)")
    parser.add_argument("--starts", type=int, default=1,
                        help="of each server, with that number of turns each (1)")
    parser.add_argument("--simulations", type=int, default=15,
                        help="turns of each simulation, which is short (15)")
    parser.add_argument("--http", action="store_true", help="requests over HTTP, instead of RPC")
    parser.add_argument("--rules", type=int, default=0, metavar="N",
                        help="rules of the new build's daemon (0)")
    parser.add_argument("--users", action="store_true",
                        help="users and a list of hosts for the new build's daemon, over HTTP")
    parser.add_argument("--quick", action="store_true", help="fewer requests")
    args = parser.parse_args()
    args.only = args.only.split(",")
    args.http = args.http or args.users
    if not set(args.only) <= set(PARTS):
        parser.error(f"--only takes {', '.join(PARTS)}")
    return args


def main():
    args = parse_arguments()
    plan = bench.Plan(argparse.Namespace(rounds=args.rounds, quick=args.quick, smoke=False))
    plan.misses = 5000 if args.quick else 15000
    plan.trace_requests = 1000000 if args.quick else 4000000
    plan.simulations = args.simulations
    plan.starts = args.starts
    plan.rules = args.rules
    plan.users = args.users
    plan.protocol = "http" if args.http else "rpc2"
    with tempfile.TemporaryDirectory() as folder:
        builds = {"old": os.path.abspath(args.old), "new": os.path.abspath(args.new)}
        run = Comparison(builds, plan, folder)
        try:
            print(f"{'':<46}{'old':>9}{'new':>9} {'':<6}{'ratio':>7}{'95 %':>13}{'max/min':>9}")
            if set(args.only) & {"hits", "misses", "memory"}:
                for size in sorted({size for size, _ in HIT_CASES + MISS_CASES}):
                    run.start_origin(size)
            if set(args.only) & {"hits", "misses"}:
                compare_servers(run, args.only)
            if "memory" in args.only:
                compare_memory(run)
            if "simulator" in args.only:
                compare_simulators(run, args.policy.split(","))
        except (bench.Failure, OSError, subprocess.CalledProcessError) as error:
            print(f"compare.py: {error}", file=sys.stderr)
            return 1
        finally:
            run.stop_all()
    return 0


if __name__ == "__main__":
    sys.exit(main())
