#!/usr/bin/env python3
"""Measures what hits from disk cost sunproxyd, beside nginx, Traffic Server and Squid.

All are reverse proxies before one origin on loopback, with their pages in a folder each on the same
disk; those that are not installed are left out. Each has one worker, and memory of its own for a
twentieth of the pages; nginx has none. It fails if sunproxyd, as its metrics say, has read less than
nine tenths of the pages of a turn from disk, ten times. sunproxyd is measured twice, as it reads by io_uring
and by threads. nginx is measured with "sendfile off", its default,
with "sendfile on; tcp_nopush on", and with "aio threads", with which a read does not delay other
requests. Squid has the rock store.

Server and load share one CPU. The load has 8 connections and asks for each page once, in a mixed
order. Servers take turns in rounds:

- cold: the kernel has nothing of the files in memory (POSIX_FADV_DONTNEED) before each turn;
- warm: the kernel has read all files. Traffic Server reads past the kernel's memory in either case.

Prints CPU per hit, the median of its time and hits per second, as medians, and sunproxyd's CPU as a
ratio of each, with the 95 % interval of the paired turns. CPU time is the kernel's account of all
processes of a server. A turn in which sunproxyd has read less from disk is measured again, and those
of the other servers are not: the line of sunproxyd says how many were.

--limit measures a working set of ten times the memory, in its place: each server is in a memory
cgroup of that size with ten times as many bytes of pages, of which it is asked for any. Needs
root.

Exit status: 0 when everything was measured, whatever the figures are; 1 after an error.
"""
import argparse
import functools
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import http_servers
from compare import interval
from http_servers import Failure, Server, free_port
from server import family_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ((1024, 5000), (20480, 3000), (1 << 20, 200))  # bytes of a body, pages
STATES = ("cold", "warm")
CONNECTIONS = 8
IN_MEMORY = 1 / 20  # of the pages, in the memory of a server's own
FROM_DISK = 0.9  # of sunproxyd's hits, at least
TRIES = 10  # of a turn with fewer
LONGEST = 60  # seconds, of a turn
MISS_US = 1  # of the origin's CPU, per hit: beyond that it was asked for more than a twentieth of the pages


# ---- servers ---------------------------------------------------------------------------------------

def start_sunproxyd(folder, origin, args, size, memory, reads="ring"):
    port, metrics = free_port(), free_port()
    server = Server(folder.name,
                    [args.build / "sunproxyd", "--listen", "none", "--socket", "none", "--no-rpcbind",
                     "--http", f"127.0.0.1:{port}", "--origin", f"/=http://127.0.0.1:{origin.port}",
                     "--metrics", f"127.0.0.1:{metrics}", "--allow-net", "127.0.0.0/8",
                     "--allow-port", "any", "--workers", "1", "--capacity-bytes", str(memory),
                     "--max-page", str(size), "--max-connections-per-client", "0",
                     "--max-fetches-per-origin", "256", "--store", folder / "store",
                     "--store-size", "8G", "--store-admit", "all", "--store-reads", reads], port, folder)
    server.metrics = metrics
    return server


def start_by_threads(*args):
    return start_sunproxyd(*args, reads="threads")


def start_nginx(folder, origin, _args, _size, _memory, reading="sendfile off;"):
    port = free_port()
    (folder / "store").mkdir(exist_ok=True)
    (folder / "nginx.conf").write_text(f"""
daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.error; worker_processes 1;
{"user root;" if os.getuid() == 0 else ""}
worker_rlimit_nofile 65536;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000000; {reading}
  open_file_cache max=10000; open_file_cache_valid 1h;
  proxy_cache_path {folder}/store levels=1:2 keys_zone=pages:64m max_size=8g inactive=1h use_temp_path=off;
  proxy_temp_path {folder}/proxy; client_body_temp_path {folder}/body;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream origin {{ server 127.0.0.1:{origin.port}; keepalive 64; }}
  server {{
    listen 127.0.0.1:{port} backlog=8192;
    location / {{ proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection "";
                  proxy_cache pages; }}
  }}
}}""")
    return Server(folder.name, [shutil.which("nginx"), "-p", folder, "-c", folder / "nginx.conf"], port, folder)


def start_nginx_sendfile(*args):
    return start_nginx(*args, reading="sendfile on; tcp_nopush on;")


def start_nginx_aio(*args):
    return start_nginx(*args, reading="aio threads;")


def start_trafficserver(folder, origin, args, _size, memory):
    return http_servers.start_trafficserver(folder, origin.port, args.build, capacity=4 << 30, memory=memory)


def start_squid(folder, origin, _args, _size, memory):
    """Squid's rock store has one process more, which reads."""
    port = free_port()
    store = folder / "store"
    store.mkdir(exist_ok=True)
    (folder / "squid.conf").write_text(f"""
http_port 127.0.0.1:{port} accel defaultsite=127.0.0.1 no-vhost
cache_peer 127.0.0.1 parent {origin.port} 0 no-query originserver
http_access allow all
cache_mem {memory >> 10} KB
maximum_object_size_in_memory 512 KB
maximum_object_size 2 MB
cache_dir rock {store} 4096 max-size=2097152
access_log none
cache_log stdio:/dev/stderr
pid_filename {folder}/squid.pid
coredump_dir {folder}
shutdown_lifetime 1 seconds
max_filedescriptors 16384
""")
    if os.getuid() == 0:  # its processes have a user of their own
        for path in (folder, store):
            shutil.chown(path, "proxy")
    command = ["/usr/sbin/squid", "-n", "sunproxydisk", "-f", folder / "squid.conf"]
    if not any(store.iterdir()):
        subprocess.run([*command, "-z", "--foreground"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=60)
    return Server(folder.name, [*command, "--foreground"], port, folder)


STARTERS = {"sunproxyd": start_sunproxyd, "threads": start_by_threads, "nginx": start_nginx,
            "nginx-sendfile": start_nginx_sendfile, "nginx-aio": start_nginx_aio,
            "trafficserver": start_trafficserver, "squid": start_squid}
PROGRAMS = {"sunproxyd": "true", "threads": "true", "nginx": "nginx", "nginx-sendfile": "nginx",
            "nginx-aio": "nginx", "trafficserver": "/usr/bin/traffic_server", "squid": "/usr/sbin/squid"}


def records_read(server):
    """Of sunproxyd's store, however; None of another server."""
    if not hasattr(server, "metrics"):
        return None
    with socket.create_connection(("127.0.0.1", server.metrics), LONGEST) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        lines = connection.makefile().read().splitlines()
    return sum(int(line.split()[-1]) for line in lines if line.startswith("sunproxy_store_records_read_total"))


def cpu_seconds(server):
    """The kernel's account of all processes, to the nanosecond: clock_getcpuclockid(3)."""
    return sum(time.clock_gettime(~pid << 3 | 2) for pid in family_of(server.process.pid))


# ---- the memory of the kernel ------------------------------------------------------------------------

def files_of(folder):
    return [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size]


def forget(folder):
    """Nothing of these files is in memory; what is to be written is written before."""
    os.sync()
    for path in files_of(folder):
        fd = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def remember(folder):
    for path in files_of(folder):
        if path.stat().st_blocks * 512 >= path.stat().st_size // 2:  # else there are holes
            with open(path, "rb") as file:
                while file.read(1 << 20):
                    pass


class Group:
    """A memory cgroup, of either version."""

    def __init__(self, limit):
        base = pathlib.Path("/sys/fs/cgroup")
        self.path = (base / "memory" if (base / "memory").is_dir() else base) / f"sunproxy-disk-{os.getpid()}"
        self.path.mkdir()
        name = "memory.limit_in_bytes" if (base / "memory").is_dir() else "memory.max"
        (self.path / name).write_text(str(limit))

    def add(self, server):
        for pid in family_of(server.process.pid):
            (self.path / "cgroup.procs").write_text(str(pid))

    def remove(self):
        for _ in range(100):
            try:
                self.path.rmdir()
                return
            except OSError:
                time.sleep(0.1)


# ---- measuring ---------------------------------------------------------------------------------------

class Bench:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.cpu = min(os.sched_getaffinity(0))
        self.names = [name for name in STARTERS if not args.only or name in args.only]
        for name in list(self.names):
            if not shutil.which(PROGRAMS[name]):
                print(f"{name} is not installed: left out")
                self.names.remove(name)

    def load(self, server, size, pages, *how):
        argv = [self.args.build / "tests/bench/load", "--protocol", "http", "--port", str(server.port),
                "--bytes", str(size), "--prefix", f"/fault/size:{size}?page=", "--keys", str(pages),
                "--connections", str(CONNECTIONS), *how]
        try:
            done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, timeout=LONGEST,
                                  preexec_fn=lambda: os.sched_setaffinity(0, {self.cpu}))
            result = json.loads(done.stdout)
        except (ValueError, subprocess.TimeoutExpired):
            raise Failure(f"the load on {server.name} failed, or took more than {LONGEST} s") from None
        if result["errors"]:
            raise Failure(f"{server.name}: {result['errors']} errors: {result.get('first_error')}: "
                          + server.log.read_text(errors="replace")[-300:])
        return result

    def measure(self, server, size, pages, *how, prepare=lambda: None):
        """A turn, once more where sunproxyd has not used its disk for a while: a read took too long.

        The result has how often, as "repeated"; those turns count in nothing else."""
        for repeated in range(TRIES):
            prepare()
            result = self.turn(server, size, pages, *how)
            result["repeated"] = repeated
            if result["from_disk"] is None or result["from_disk"] >= FROM_DISK * result["requests"]:
                return result
            time.sleep(1)
        raise Failure(f"{server.name}: {result['from_disk']} records were read from disk in "
                      f"{result['requests']} requests")

    def turn(self, server, size, pages, *how):
        server.pin(self.cpu)
        read = records_read(server)
        before = cpu_seconds(server), cpu_seconds(self.origin)
        result = self.load(server, size, pages, *how)
        after = cpu_seconds(server), cpu_seconds(self.origin)
        result["from_disk"] = None if read is None else records_read(server) - read
        result["cpu_us"], result["origin_us"] = ((new - old) * 1e6 / result["requests"]
                                                 for old, new in zip(before, after))
        return result

    def start(self, name, origin, size, memory):
        folder = self.folder / f"{name}-{size}"
        folder.mkdir(exist_ok=True)
        return STARTERS[name](folder, origin, self.args, size, memory).wait_until_listening()

    def fill(self, server, size, pages):
        """Until nothing more is fetched, or three times: Squid does not keep each page at once."""
        for _ in range(3):
            before = cpu_seconds(self.origin)
            self.load(server, size, pages, "--fill")
            time.sleep(1.5)
            if (cpu_seconds(self.origin) - before) * 1e6 < MISS_US * pages:
                return


def print_case(title, results):
    ours = results.get("sunproxyd")
    print(f"\n{title}: CPU per hit, median of its time, hits/s; sunproxyd's as ratios of it")
    for name, runs in results.items():
        cpu, median, rate = (statistics.median(run[key] for run in runs)
                             for key in ("cpu_us", "median_us", "requests_per_second"))
        line = f"  {name:<16}{cpu:>9.2f} us{median:>8.0f} us{rate:>9.0f}/s"
        if ours and name != "sunproxyd":
            ratios, times = ([a[key] / b[key] for a, b in zip(ours, runs)] for key in ("cpu_us", "median_us"))
            turns = {"new": [run["cpu_us"] for run in ours], "old": [run["cpu_us"] for run in runs]}
            line += f"{statistics.median(ratios):>7.2f} {interval(turns):<12} time {statistics.median(times):.2f}"
        if statistics.median(run["origin_us"] for run in runs) > MISS_US:
            line += "  (not all were hits)"
        repeated = sum(run["repeated"] for run in runs)
        if repeated:
            line += f"  ({repeated} of {repeated + len(runs)} turns were not from disk, and were repeated)"
        print(line, flush=True)


def measure_case(bench, origin, size, pages):
    servers, names = {}, []
    try:
        for name in bench.names:
            try:
                servers[name] = bench.start(name, origin, size, int(IN_MEMORY * pages) * (size + 1024))
                bench.fill(servers[name], size, pages)
                names.append(name)
            except Failure as failure:
                print(f"{name} is left out: {failure}", flush=True)
        results = {state: {name: [] for name in names} for state in STATES}
        for turn in range(bench.args.rounds):
            order = names[turn % len(names):] + names[:turn % len(names)]
            for state in STATES:
                for name in order:
                    folder = servers[name].log.parent
                    prepare = functools.partial(forget if state == "cold" else remember, folder)
                    results[state][name].append(
                        bench.measure(servers[name], size, pages, "--once", prepare=prepare))
        for state in STATES:
            print_case(f"{size} bytes, {state}", results[state])
    finally:
        for server in servers.values():
            server.stop()
            shutil.rmtree(server.log.parent, ignore_errors=True)
    return results


def measure_limit(bench, origin, limit, size=20480):
    """One server at a time, since each has ten times the memory on disk."""
    pages = 10 * limit // size
    results = {}
    for name in bench.names:
        group, server = Group(limit), None
        try:
            server = bench.start(name, origin, size, limit // 2)
            bench.fill(server, size, pages)
            forget(server.log.parent)
            group.add(server)
            requests = str(bench.args.requests)
            results[name] = [bench.measure(server, size, pages, "--warm-up", requests, "--requests", requests)
                             for _ in range(bench.args.rounds)]
        finally:
            if server:
                server.stop()
                shutil.rmtree(server.log.parent, ignore_errors=True)
            group.remove()
    print_case(f"{pages} pages of {size} bytes, ten times the memory", results)
    return results


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each server (5)")
    parser.add_argument("--only", metavar="NAME", action="append", choices=STARTERS,
                        help="servers to measure; may be repeated (default: all installed)")
    parser.add_argument("--bytes", type=int, action="append", help="sizes to measure; may be repeated (all)")
    parser.add_argument("--limit", type=int, metavar="MIB", help="memory of each server; measures ten times as much")
    parser.add_argument("--requests", type=int, default=100000, help="of a turn with --limit (100000)")
    parser.add_argument("--folder", type=pathlib.Path, help="on the disk that is measured (the working folder)",
                        default=pathlib.Path("."))
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write every run there")
    args = parser.parse_args()
    args.build = args.build.resolve()
    return args


def main():
    args = parse_arguments()
    results = {}
    with tempfile.TemporaryDirectory(prefix="sunproxy-disk-", dir=args.folder.resolve()) as folder:
        os.chmod(folder, 0o755)
        bench = Bench(args, pathlib.Path(folder))
        origin = None
        try:
            origin = bench.origin = http_servers.start_origin(args.build, bench.folder)
            if args.limit:
                results["limit"] = measure_limit(bench, origin, args.limit << 20)
            else:
                for size, pages in CASES:
                    if not args.bytes or size in args.bytes:
                        results[size] = measure_case(bench, origin, size, pages)
        except (Failure, OSError, subprocess.SubprocessError) as failure:
            print(f"disk: {failure}", file=sys.stderr)
            return 1
        finally:
            if origin:
                origin.stop()
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
