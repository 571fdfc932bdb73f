#!/usr/bin/env python3
"""Counts what an origin is asked for by 1 to 8 daemons, with --peers, with --shared, and without.

The daemons, the scripted origin and the clients run on loopback. Clients send requests for URLs by Zipf's law
with exponent 0.9, each to a daemon that is drawn at random, and verify each body. All daemons get the same load
in sum, whatever their number.

Prints a table as Markdown. For each number of daemons: the fetches from the origin, without, with --peers, and
with --shared and three memcached servers where memcached is installed; where each daemon has space for all URLs
(`large`), and where it has space for a part of them (`small`).

  tests/bench/cluster.py [--requests N] [--urls N] [--small PAGES] [--build BUILD] [--ways plain,peers,shared]
  tests/bench/cluster.py --latency   of requests that the tier answers, while a server of three is stopped or killed

Exit status: 0; 1 if a response was wrong.
"""
import argparse
import bisect
import itertools
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "tests"))
from ports import free_port  # noqa: E402

SIZE = 2000
SERVERS = 3
MEMCACHED = shutil.which("memcached", path=os.environ["PATH"] + ":/usr/sbin:/usr/bin")
LINE = 32
CONNECTIONS, PAGES = 8, 400  # of --latency, and of each
LONG_MS = 15


def text_of(url):
    """What the origin sends for a URL (tests/origin/body.c)."""
    value = 0xCBF29CE484222325
    for byte in url.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return b"".join(b"%016x %014x\n" % (value, n) for n in range(SIZE // LINE + 1))[:SIZE]


class Cluster:
    def __init__(self, plan, count, way, pages):
        self.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self.folder.name)
        self.processes = []
        origin = self.run(plan.build / "tests/origin/origin", "--ports-file", folder / "ports", "--tls-dir",
                          folder, "--log", folder / "log", "--quiet", "--max-seconds", "600")
        while not (folder / "ports").exists():
            if origin.poll() is not None:
                raise SystemExit("the origin does not start")
            time.sleep(0.02)
        port = dict(line.split() for line in (folder / "ports").read_text().splitlines())["http"]
        self.log = folder / "log"
        self.ports = [free_port() for _ in range(count)]
        (folder / "key").write_text("a key of more than sixteen bytes\n")
        (folder / "key").chmod(0o600)
        urls = ",".join(f"http://127.0.0.1:{port}" for port in self.ports)
        options_of = {"plain": [], "peers": ["--peers", urls, "--peer-key-file", folder / "key"],
                      "shared": ["--shared-key-file", folder / "key", "--shared"]}
        if way == "shared":
            servers = [free_port() for _ in range(SERVERS)]
            for own in servers:
                self.run(MEMCACHED, "-u", "nobody", "-l", "127.0.0.1", "-p", own)
                self.await_port(own)
            options_of[way].append(",".join(f"memcached://127.0.0.1:{own}" for own in servers))
        for n, own in enumerate(self.ports):
            options = list(options_of[way])
            options += ["--capacity-urls", pages] if pages else []
            self.run(plan.build / "sunproxyd", "--no-rpcbind", "--listen", "none", "--socket",
                     folder / f"socket{n}", "--http", f"127.0.0.1:{own}", "--workers", "1", "--shards", "1",
                     "--connect-to", f":80:127.0.0.1:{port}", "--allow-net", "127.0.0.0/8", *options)
        for own in self.ports:
            self.await_port(own)
        time.sleep(2.5)  # until each has told each other one that it is there

    def run(self, *argv):
        process = subprocess.Popen([str(a) for a in argv], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    @staticmethod
    def await_port(port):
        for _ in range(500):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise SystemExit("a daemon does not start")

    def fetched(self):
        return sum(1 for _ in open(self.log, "rb")) if self.log.exists() else 0

    def end(self):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            process.wait()
        self.folder.cleanup()


def get(connection, rest, url):
    """(the body, what follows)"""
    connection.sendall(f"GET {url} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    while b"\r\n\r\n" not in rest:
        rest += connection.recv(65536)
    head, _, rest = rest.partition(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n")
                  if line.startswith(b"content-length:"))
    while len(rest) < length:
        rest += connection.recv(65536)
    return rest[:length], rest[length:]


def load(plan, cluster, seed):
    """Sends a client's part of the requests. Returns how many responses were wrong."""
    generator = random.Random(seed)
    sums = list(itertools.accumulate((n + 1) ** -0.9 for n in range(plan.urls)))
    connections = [[socket.create_connection(("127.0.0.1", port)), b""] for port in cluster.ports]
    wrong = 0
    for _ in range(plan.requests // plan.clients):
        number = bisect.bisect(sums, generator.random() * sums[-1])
        url = (f"http://a.test/{number}?fault=size:{SIZE}"
               "&fault=header:Cache-Control%3a%20max-age%3d3600")
        chosen = generator.choice(connections)
        body, chosen[1] = get(chosen[0], chosen[1], url)
        wrong += body != text_of(url)
    for connection, _ in connections:
        connection.close()
    return wrong


def measure(plan, count, way, pages):
    cluster = Cluster(plan, count, way, pages)
    wrong = []
    try:
        threads = [threading.Thread(target=lambda n=n: wrong.append(load(plan, cluster, n)))
                   for n in range(plan.clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if sum(wrong) or len(wrong) < plan.clients:
            raise SystemExit(f"{sum(wrong)} responses were wrong, or a client has failed")
        return cluster.fetched()
    finally:
        cluster.end()


def latency(plan):
    """Requests of some connections for pages that are in the tier, and not in memory."""
    cluster = Cluster(plan, 2, "shared", 50)
    servers = [p for p in cluster.processes if "memcached" in p.args[0]]

    def work(number, part, times):
        connection, rest = socket.create_connection(("127.0.0.1", cluster.ports[number])), b""
        for n in range(part * PAGES, (part + 1) * PAGES):
            url = f"http://a.test/{n}?fault=size:{SIZE}&fault=header:Cache-Control%3a%20max-age%3d3600"
            begun = time.monotonic()
            body, rest = get(connection, rest, url)
            if body != text_of(url):
                raise SystemExit("a response was wrong")
            times.append((time.monotonic() - begun) * 1000)
        connection.close()

    def ask(what, number):
        times = []
        threads = [threading.Thread(target=work, args=(number, part, times)) for part in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if len(times) != CONNECTIONS * PAGES:
            raise SystemExit("a client has failed")
        times.sort()
        print(f"| {what} | {times[len(times) // 2]:.2f} | {times[len(times) * 99 // 100]:.2f} | "
              f"{times[-1]:.1f} | {sum(t > LONG_MS for t in times)} |")

    try:
        print(f"| | p50, ms | p99 | most | longer than {LONG_MS} ms |\n|---|---|---|---|---|")
        ask("fetched, and written to the tier", 0)
        ask("in the tier", 1)
        servers[0].send_signal(signal.SIGSTOP)
        ask("a server of three is stopped", 0)
        servers[0].send_signal(signal.SIGCONT)
        time.sleep(1)
        ask("it goes on", 0)
        servers[0].kill()
        ask("it is killed", 0)
    finally:
        cluster.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=20000)
    parser.add_argument("--urls", type=int, default=2000)
    parser.add_argument("--small", type=int, default=200, help="pages that a small daemon has space for")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--build", type=pathlib.Path, default=TOP / "build/release")
    parser.add_argument("--ways", default="plain,peers,shared" if MEMCACHED else "plain,peers")
    parser.add_argument("--latency", action="store_true")
    plan = parser.parse_args()
    if plan.latency:
        return latency(plan)
    ways = plan.ways.split(",")
    names = {"plain": "", "peers": ", `--peers`", "shared": ", `--shared`"}
    heads = [size + names[way] for size in ("large", "small") for way in ways]
    print(f"| daemons | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}")
    for count in (1, 2, 4, 8):
        row = [measure(plan, count, way, pages) for pages in (0, plan.small) for way in ways]
        print(f"| {count} | " + " | ".join(f"{n:,}" for n in row) + " |", flush=True)
    return 0


if __name__ == "__main__":
    os.chdir(TOP)
    sys.exit(main())
