#!/usr/bin/env python3
"""Measures misses with many fetches in flight to an origin with a latency of 100 ms, beside nginx.

The contestants are sunproxyd over RPC, sunproxyd over HTTP as a reverse proxy, and nginx with proxy_pass and
a cold cache, where it is installed. All have two threads or processes and keep connections to the origin. Every
request is for a new page of 1 KiB. They take turns in rounds.

Prints, by the number of fetches in flight:
- requests per second and CPU time per miss (medians of the rounds), which is the kernel's account of all
  processes of a server. 16 fetches of 100 ms are at most 160 per second, 256 at most 2,560; beyond that the
  processors decide, which server, origin and load share;
- memory of the server for each fetch in flight: its resident memory while that many wait for the origin, less
  that at the start, by their number. No page is cached then;
- the largest number in flight without an error.

Exit status: 0 when everything was measured; 1 after an error.
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
import http_servers  # noqa: E402
from ports import free_port  # noqa: E402
from server import Failure, Server, family_of  # noqa: E402

IN_FLIGHT = (16, 256, 4096, 10000)
MORE = (11000, 12500, 15000, 17500)  # for the largest number without an error
DEPTH = 250  # the most calls outstanding on a connection over RPC
PATIENCE = "300s"  # time limits, so that a busy machine is no error
BYTES = 1024
LATENCY = "100ms"
HELD_SECONDS = 4  # latency where memory is measured, more for many fetches: all are sent by then
SENT_A_SECOND = 1000  # at least, also on a busy machine
MEMORY = "16G"  # a bound that does not bind
# Over HTTP a fetch takes a descriptor for its client and one for its origin (server/limits/descriptor_plan.h).
OWN_DESCRIPTORS = 700  # of sunproxyd for other purposes
DESCRIPTORS = 2 * max(MORE) + OWN_DESCRIPTORS


class Origin(Server):
    def __init__(self, build, folder, name, latency):
        port = free_port()
        super().__init__(name, [build / "tests/origin/origin", "--quiet", "--http-port", str(port), "--latency",
                                latency, "--size-min", str(BYTES), "--size-max", str(BYTES), "--header",
                                "Cache-Control: max-age=3600"], port, folder)
        self.wait_until_listening()

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


class Sunproxyd:
    """`over` is rpc2 or http."""

    def __init__(self, over):
        self.over = over
        self.name = "sunproxyd, " + {"rpc2": "RPC", "http": "HTTP"}[over]

    def may_have(self, in_flight):
        """With this limit of open files?"""
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return self.over == "rpc2" or 2 * in_flight + OWN_DESCRIPTORS <= limit

    def start(self, build, folder, origin, in_flight):
        port = free_port()
        connections = in_flight // 64 + 16 if self.over == "rpc2" else in_flight + 16
        front = (["--listen", "127.0.0.1", "--port", str(port)] if self.over == "rpc2" else
                 ["--listen", "none", "--http", f"127.0.0.1:{port}", "--origin", f"/=http://127.0.0.1:{origin.port}"])
        fetches = str(in_flight)
        return Server("sunproxyd",
                      [build / "sunproxyd", *front, "--socket", "none", "--no-rpcbind", "--workers", "2",
                       "--capacity-bytes", "2G", "--allow-net", "127.0.0.0/8", "--allow-port", "any",
                       "--max-connections", str(connections), "--max-connections-per-client", "0", "--max-tunnels",
                       "0", "--max-fetches", fetches, "--max-fetches-waiting", fetches, "--max-fetches-per-client",
                       "0", "--max-fetches-per-origin", fetches, "--max-idle-per-origin", fetches,
                       "--max-fetches-queued", "100000", "--max-transit", MEMORY, "--connect-timeout", PATIENCE,
                       "--first-byte-timeout", PATIENCE, "--stall-timeout", PATIENCE, "--fetch-timeout", PATIENCE],
                      port, folder).wait_until_listening()

    def load(self, origin, in_flight):
        """Options of the load."""
        if self.over == "http":
            return ["--protocol", "http", "--connections", str(in_flight), "--depth", "1"], ""
        # All in flight: as many on each connection.
        connections = next(n for n in range(-(-in_flight // DEPTH), in_flight + 1) if in_flight % n == 0)
        return (["--protocol", "rpc2", "--connections", str(connections), "--depth", str(in_flight // connections)],
                f"http://127.0.0.1:{origin.port}")


class Nginx:
    """Its pages are files in memory."""

    name = "nginx"

    @staticmethod
    def may_have(_in_flight):
        return True  # each of its processes has half of them

    @staticmethod
    def memory(folder):
        return pathlib.Path("/dev/shm") / f"{folder.parent.name}-{folder.name}"

    @staticmethod
    def start(_build, folder, origin, in_flight):
        port = free_port()
        (folder / "nginx.conf").write_text(f"""
daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.error; worker_processes 2;
{"user root;" if os.getuid() == 0 else ""}
events {{ worker_connections {2 * in_flight + 512}; }}
http {{
  access_log off; keepalive_requests 1000000000;
  proxy_cache_path {Nginx.memory(folder)} keys_zone=pages:64m max_size=2g inactive=1h use_temp_path=off;
  proxy_temp_path {folder}/proxy; client_body_temp_path {folder}/body;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream origin {{ server 127.0.0.1:{origin.port}; keepalive {in_flight}; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=8192 reuseport;
    location / {{ proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection "";
                  proxy_cache pages; proxy_connect_timeout 75s; proxy_read_timeout {PATIENCE}; }}
  }}
}}""")
        return Server("nginx", [shutil.which("nginx"), "-p", folder, "-c", folder / "nginx.conf"], port,
                      folder).wait_until_listening()

    @staticmethod
    def load(_origin, in_flight):
        return ["--protocol", "http", "--connections", str(in_flight), "--depth", "1"], ""


def cpu_seconds(server):
    """The kernel's account of all its processes (clock_getcpuclockid(3)), finer than its ticks."""
    return sum(time.clock_gettime((~pid << 3) | 2) for pid in family_of(server.process.pid))


def resident_bytes(server):
    """Of all its processes; what they share counts once."""
    total = 0
    for pid in family_of(server.process.pid):
        with open(f"/proc/{pid}/smaps_rollup") as f:
            total += sum(int(line.split()[1]) for line in f if line.startswith("Pss:"))
    return total * 1024


class Bench:
    def __init__(self, args, folder):
        self.build, self.args, self.folder, self.number = args.build.resolve(), args, folder, 0
        self.servers = []

    def start(self, contestant, origin, in_flight):
        self.number += 1
        folder = self.folder / str(self.number)
        folder.mkdir()
        server = contestant.start(self.build, folder, origin, in_flight)
        self.servers.append(server)
        return server

    def origin(self, latency):
        self.number += 1
        origin = Origin(self.build, self.folder, f"origin{self.number}", latency)
        self.servers.append(origin)
        return origin

    def stop(self):
        for server in self.servers:
            server.stop()
        for number in range(self.number + 1):
            shutil.rmtree(Nginx.memory(self.folder / str(number)), ignore_errors=True)

    def begin_load(self, contestant, server, origin, in_flight, requests):
        """New pages each time: their URLs have the number of this call."""
        self.number += 1
        options, base = contestant.load(origin, in_flight)
        return subprocess.Popen(
            [self.build / "tests/bench/load", "--port", str(server.port), "--bytes", str(BYTES), "--prefix",
             f"{base}/{self.number}/", "--fill", "--keys", str(requests), "--timeout", "300", *options],
            stdout=subprocess.PIPE, text=True)

    @staticmethod
    def end_load(process):
        out, _ = process.communicate()
        return json.loads(out) if out.startswith("{") else {"errors": -1, "first_error": "no result"}

    def measure(self, contestant, server, origin, in_flight):
        requests = max(self.args.seconds * in_flight * 2, 320) if in_flight > 16 else 160 * self.args.seconds
        before = cpu_seconds(server)
        result = self.end_load(self.begin_load(contestant, server, origin, in_flight, requests))
        result["cpu_us"] = 1e6 * (cpu_seconds(server) - before) / requests
        return result

    def hold(self, contestant, origin, in_flight, seconds):
        """(bytes by fetch, None) with all of them in flight at once, or (None, why not)."""
        server = self.start(contestant, origin, in_flight)
        before, kept = resident_bytes(server), origin.descriptors()
        process = self.begin_load(contestant, server, origin, in_flight, in_flight)
        held, end = 0, time.monotonic() + 2 * seconds
        while held < in_flight and time.monotonic() < end and process.poll() is None:
            time.sleep(0.05)
            held = origin.descriptors() - kept
        memory = resident_bytes(server) - before
        result = self.end_load(process)
        server.stop()
        if result["errors"]:
            return None, result.get("first_error", "errors")
        if held < in_flight:
            return None, f"only {held} were in flight at once"
        return memory / in_flight, None


def measure_rounds(bench, contestants, in_flight):
    """{name: [result]}; a contestant with an error is left out. Each has an origin of its own: the connections
    that all of them keep would need more ports than there are to one address."""
    if not contestants:
        return {}
    origins = {contestant.name: bench.origin(LATENCY) for contestant in contestants}
    servers = {contestant.name: bench.start(contestant, origins[contestant.name], in_flight)
               for contestant in contestants}
    results = {name: [] for name in servers}
    for turn in range(bench.args.rounds):
        order = contestants[turn % len(contestants):] + contestants[:turn % len(contestants)]
        for contestant in order:
            if results[contestant.name] is None:
                continue
            result = bench.measure(contestant, servers[contestant.name], origins[contestant.name], in_flight)
            if result["errors"]:
                print(f"{contestant.name}, {in_flight}: {result['errors']} errors, the first: "
                      f"{result.get('first_error')}", flush=True)
                results[contestant.name] = None
            else:
                results[contestant.name].append(result)
    for server in [*servers.values(), *origins.values()]:
        server.stop()
    return results


def median(runs, key):
    return statistics.median(run[key] for run in runs)


def cell(runs):
    if not runs:
        return f"{'-':>24}"
    return f"{median(runs, 'requests_per_second'):>12.0f}/s{median(runs, 'cpu_us'):>7.0f} us"


def print_heading(what, contestants):
    print(f"\n{what}:\n{'in flight':<12}" + "".join(f"{contestant.name:>24}" for contestant in contestants))


def measure_rates(bench, contestants, numbers):
    results = {}
    print_heading("Requests per second and CPU per miss", contestants)
    for in_flight in numbers:
        able = [contestant for contestant in contestants if contestant.may_have(in_flight)]
        results[in_flight] = measure_rounds(bench, able, in_flight)
        print(f"{in_flight:<12}" + "".join(cell(results[in_flight].get(c.name)) for c in contestants), flush=True)
    return results


def measure_memory(bench, contestants, numbers):
    held = {contestant.name: {} for contestant in contestants}
    largest = {contestant.name: (0, None) for contestant in contestants}
    print_heading("Memory for each fetch in flight, KiB", contestants)
    for in_flight in numbers:
        cells = []
        for contestant in contestants:
            if largest[contestant.name][1] is None:
                # Each contestant has an origin of its own: no connection of another one counts.
                seconds = max(bench.args.held, in_flight // SENT_A_SECOND)
                origin = bench.origin(f"{seconds}s")
                memory, why = bench.hold(contestant, origin, in_flight, seconds)
                origin.stop()
                held[contestant.name][in_flight] = memory
                largest[contestant.name] = (in_flight if why is None else largest[contestant.name][0], why)
            memory = held[contestant.name].get(in_flight)
            cells.append(f"{'-' if memory is None else f'{memory / 1024:.1f}':>24}")
        print(f"{in_flight:<12}" + "".join(cells), flush=True)
    print("\nLargest number in flight without an error, of those above:")
    for contestant in contestants:
        number, why = largest[contestant.name]
        print(f"{contestant.name:<20}{number:>8}" + (f"; beyond: {why}" if why else ""))
    return held, largest


def measure_all(bench, contestants, numbers, more):
    results = {}
    if "rates" not in bench.args.skip:
        results["rounds"] = measure_rates(bench, contestants, numbers)
    if "memory" not in bench.args.skip:
        results["bytes"], results["largest"] = measure_memory(bench, contestants, (*numbers, *more))
    return results


def raise_descriptors():
    """Raises the limit of open files, which servers, origin and load inherit; it needs CAP_SYS_RESOURCE to go
    beyond the hard limit. Returns the limit then."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = int(pathlib.Path("/proc/sys/fs/nr_open").read_text())
    if hard == resource.RLIM_INFINITY:
        hard = most
    for wanted in (max(hard, min(DESCRIPTORS, most)), hard):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))
            return wanted
        except (ValueError, OSError):
            continue
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def with_the_most(numbers, limit):
    """Before the first of the numbers that the limit does not permit over HTTP, the largest that it does."""
    most = (limit - OWN_DESCRIPTORS) // 2
    beyond = [number for number in numbers if number > most]
    return [number for number in numbers if number <= most] + ([most] if beyond else []) + beyond


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each contestant (3)")
    parser.add_argument("--seconds", type=int, default=2, help="length of a turn, about (2)")
    parser.add_argument("--in-flight", type=int, nargs="+", default=IN_FLIGHT, metavar="N", help="(16 256 4096 10000)")
    parser.add_argument("--only", metavar="NAME", action="append",
                        help="contestants whose names contain it; may be repeated (default: all)")
    parser.add_argument("--skip", choices=("rates", "memory"), action="append", default=[])
    parser.add_argument("--smoke", action="store_true", help="does it all work? small numbers, no figures to quote")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write every run there")
    return parser.parse_args()


def main():
    args = parse_arguments()
    os.environ["PATH"] += ":/usr/sbin:/sbin"  # daemons are where an ordinary user's path does not lead
    args.held = 2 if args.smoke else HELD_SECONDS
    contestants = [Sunproxyd("rpc2"), Sunproxyd("http")]
    if args.smoke:
        args.rounds = 1
    if shutil.which("nginx"):
        contestants.append(Nginx())
    else:
        print("nginx is not installed (package nginx-light): left out")
    contestants = [c for c in contestants if not args.only or any(name in c.name for name in args.only)]
    limit = raise_descriptors()
    print(f"The limit of open files is {limit} for each process" +
          ("." if limit >= DESCRIPTORS else f", and could not be raised to {DESCRIPTORS}."))
    numbers, more = ((4, 64), (100,)) if args.smoke else (with_the_most(args.in_flight, limit), MORE)
    with tempfile.TemporaryDirectory(prefix="sunproxy-misses-") as folder:
        bench = Bench(args, pathlib.Path(folder))
        try:
            results = measure_all(bench, contestants, numbers, more)
        except (Failure, OSError) as failure:
            print(f"misses: {failure}", file=sys.stderr)
            return 1
        finally:
            bench.stop()
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
