#!/usr/bin/env python3
"""Measures the forward proxy under a flood of wrong passwords, and with long lists of hosts.

- Flood: one client sends 100,000 requests a minute with wrong passwords, from 127.0.0.2, while another one, from
  127.0.0.3, requests a page as a user that has been checked, and each second once as a user that has not. Prints
  what the daemon answers, its CPU time, and the times of the other client, beside those without a flood. Hashes
  are those of `sunproxy passwd` (yescrypt).
- Lists: the start and a reload of a daemon with a rule that has a list of 1,000,000 hosts, and its memory, beside a
  daemon without it. The list has one name more at the reload.

--seconds: duration of the flood, 60 by default. --smoke: does it work? Tiny counts, no figures to quote.

Exit status: 0 when everything was measured; 1 after an error.
"""
import argparse
import base64
import collections
import multiprocessing
import pathlib
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import http_servers
from server import Failure, Server, family_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
from ports import free_port  # noqa: E402

FLOOD, OTHER = "127.0.0.2", "127.0.0.3"
RATE = 100000 / 60
CONNECTIONS = 1500  # of the flood: more than checks that can wait
PAUSE = 0.01  # between two requests of the user that has been checked


def basic(name, password):
    return "Proxy-Authorization: Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def request(url, credentials):
    return f"GET {url} HTTP/1.1\r\nHost: {url.split('/')[2]}\r\n{credentials}\r\n\r\n".encode()


def resident_bytes(pid, field="VmRSS"):
    with open(f"/proc/{pid}/status") as f:
        return 1024 * sum(int(line.split()[1]) for line in f if line.startswith(field + ":"))


# ---- the client that floods, a process of its own


class Flood:
    """Sends requests at a rate, each on a connection that has none outstanding."""

    def __init__(self, port, url):
        self.port, self.url, self.number = port, url, 0
        self.selector, self.free, self.found = selectors.DefaultSelector(), collections.deque(), collections.Counter()

    def open(self):
        connection = socket.socket()
        connection.bind((FLOOD, 0))
        connection.connect(("127.0.0.1", self.port))
        self.selector.register(connection, selectors.EVENT_READ)
        return connection

    def send(self):
        if not self.free and len(self.selector.get_map()) < CONNECTIONS:
            self.free.append(self.open())
        if not self.free:
            self.found["not sent"] += 1
            return
        connection = self.free.popleft()
        self.number += 1
        connection.sendall(request(self.url, basic(f"user{self.number % 100}", f"wrong{self.number}")))
        self.found["sent"] += 1

    def receive(self, wait):
        for key, _ in self.selector.select(wait):
            answer = key.fileobj.recv(65536)  # short answers: one piece
            if answer.startswith(b"HTTP/1.1 "):
                self.found[answer[9:12].decode()] += 1
            if not answer or b"connection: close" in answer.lower():
                self.selector.unregister(key.fileobj)
                key.fileobj.close()
            else:
                self.free.append(key.fileobj)

    def run(self, seconds, results):
        began = time.monotonic()
        while (now := time.monotonic() - began) < seconds:
            while self.found["sent"] + self.found["not sent"] < now * RATE:
                self.send()
            self.receive(0.001)
        results.put(dict(self.found))


def flood(port, url, seconds, results):
    Flood(port, url).run(seconds, results)


# ---- the other client


class Client:
    def __init__(self, port):
        self.socket = socket.socket()
        self.socket.settimeout(60)
        self.socket.bind((OTHER, 0))
        self.socket.connect(("127.0.0.1", port))

    def get(self, url, credentials):
        """(status, seconds) of a response that has a length."""
        began = time.monotonic()
        self.socket.sendall(request(url, credentials))
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self.more()
        head, _, body = answer.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
        while len(body) < int(fields[b"content-length"]):
            body += self.more()
        return int(head[9:12]), time.monotonic() - began

    def more(self):
        data = self.socket.recv(65536)
        if not data:
            raise Failure("the daemon has closed the connection of the user that has been checked")
        return data


class Bench:
    def __init__(self, args, folder):
        self.build, self.args, self.folder = args.build.resolve(), args, folder
        self.servers = []
        self.origin = http_servers.start_origin(self.build, folder)
        self.servers.append(self.origin)
        self.url = f"http://127.0.0.1:{self.origin.port}/fault/size:1024?page=1"

    def stop(self):
        for server in self.servers:
            server.stop()

    def start(self, name, *lines):
        """A daemon with a configuration of these lines: (server, socket, seconds to its first connection)."""
        port, path = free_port(), self.folder / f"{name}.sock"
        (self.folder / f"{name}.conf").write_text("\n".join(
            (f"http = 127.0.0.1:{port}", f"socket = {path}", "listen = none", "no-rpcbind = yes", "workers = 2",
             "allow-net = 127.0.0.0/8", "allow-port = any", *lines)) + "\n")
        began = time.monotonic()
        server = Server(name, [self.build / "sunproxyd", "-c", self.folder / f"{name}.conf"], port, self.folder)
        self.servers.append(server)
        server.wait_until_listening()
        return server, path, time.monotonic() - began

    # ---- flood

    def write_users(self, count):
        users = self.folder / "users"
        for n in range(count):
            subprocess.run([self.build / "sunproxy", "passwd", "--stdin", users, f"user{n}"], input=b"right\n",
                           check=True, stdout=subprocess.DEVNULL)
        return users

    def hits(self, port, seconds, times):
        """Requests as a user that has been checked; appends seconds, or Failure."""
        try:
            client, end = Client(port), time.monotonic() + seconds
            while time.monotonic() < end:
                status, spent = client.get(self.url, basic("user0", "right"))
                if status != 200:
                    raise Failure(f"the user that has been checked gets status {status}")
                times.append(spent)
                time.sleep(PAUSE)
        except (Failure, OSError) as failure:
            times.append(failure)

    def first_checks(self, port, seconds, first, times):
        """Each second a request as a user that has not been checked; appends seconds, or Failure."""
        try:
            for n in range(first, first + seconds):
                status, spent = Client(port).get(self.url, basic(f"user{n}", "right"))
                if status != 200:
                    raise Failure(f"user{n} gets status {status}")
                times.append(spent)
                time.sleep(max(0, 1 - spent))
        except (Failure, OSError) as failure:
            times.append(failure)

    def period(self, server, seconds, first, floods):
        """What comes of some seconds: a dictionary."""
        results, hits, checks = multiprocessing.Queue(), [], []
        attacker = multiprocessing.Process(target=flood, args=(server.port, self.url, seconds, results), daemon=True)
        cpu, began = server.cpu_seconds(), time.monotonic()
        if floods:
            attacker.start()
        threads = [threading.Thread(target=self.hits, args=(server.port, seconds, hits)),
                   threading.Thread(target=self.first_checks, args=(server.port, seconds, first, checks))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = results.get(timeout=60) if floods else {}
        for spent in hits + checks:
            if isinstance(spent, Exception):
                raise Failure(str(spent))
        return {"flood": found, "cpu": (server.cpu_seconds() - cpu) / (time.monotonic() - began),
                "hits": hits, "checks": checks, "resident": resident_bytes(server.process.pid)}

    def flooding(self):
        seconds, quiet = self.args.seconds, min(self.args.seconds, 10)
        users = self.write_users(1 + seconds + quiet)
        server, _, _ = self.start("flooded", f"users = {users}")
        status, _ = Client(server.port).get(self.url, basic("user0", "right"))
        if status != 200:
            raise Failure(f"the first request gets status {status}")
        before = self.period(server, quiet, 1, False)
        during = self.period(server, seconds, 1 + quiet, True)
        found = during["flood"]
        print(f"\nWrong passwords: {found['sent']:,} requests in {seconds} s, of which "
              + ", ".join(f"{count:,} had status {status}" for status, count in sorted(found.items())
                          if status.isdigit())
              + f"; {found.get('not sent', 0):,} found no free connection.\n\n"
              "| | before | during the flood |\n|---|---|---|")
        for name, text in (
                ("CPU time of the daemon, of one CPU", lambda run: f"{100 * run['cpu']:.0f} %"),
                ("hit of a user that has been checked, median",
                 lambda run: f"{1000 * statistics.median(run['hits']):.1f} ms"),
                ("the same, 99th percentile", lambda run: f"{1000 * percentile(run['hits'], 99):.1f} ms"),
                ("first check of a user, median", lambda run: f"{1000 * statistics.median(run['checks']):.0f} ms"),
                ("the same, longest", lambda run: f"{1000 * max(run['checks']):.0f} ms"),
                ("resident memory", lambda run: f"{run['resident'] / 1e6:.1f} MB")):
            print(f"| {name} | {text(before)} | {text(during)} |", flush=True)
        server.stop()

    # ---- lists

    def lists(self):
        names = self.args.names
        print("\n| hosts in the list | start | resident | reload | resident after it | highest, daemon | "
              "highest, the process that reads files |\n|---|---|---|---|---|---|---|")
        for count in (0, names):
            hosts, lines = self.folder / "hosts", ()
            if count:
                with open(hosts, "w", encoding="ascii") as file:
                    file.writelines(f"host{i}.domain{i % 1000}.example\n" for i in range(count))
                lines = "[rule]", f"host-list = {hosts}", "deny = 403"
            server, path, started = self.start(f"list{count}", *lines)
            pid, resident = server.process.pid, resident_bytes(server.process.pid)
            if count:
                with open(hosts, "a", encoding="ascii") as file:
                    file.write("one.more.example\n")
            began = time.monotonic()
            subprocess.run([self.build / "sunproxy", "reload", "--socket", path], check=True,
                           stdout=subprocess.DEVNULL)
            reloaded = time.monotonic() - began
            reader = max(resident_bytes(child, "VmHWM") for child in family_of(pid)[1:])
            megabytes = (resident, resident_bytes(pid), resident_bytes(pid, "VmHWM"), reader)
            before, after, highest, reader = (f"{size / 1e6:.1f} MB" for size in megabytes)
            print(f"| {count:,} | {1000 * started:.0f} ms | {before} | {1000 * reloaded:.0f} ms | {after} | {highest} | "
                  f"{reader} |", flush=True)
            server.stop()


def percentile(values, percent):
    return sorted(values)[(len(values) - 1) * percent // 100]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="folder of the programs")
    parser.add_argument("--seconds", type=int, default=60, help="of the flood (60)")
    parser.add_argument("--names", type=int, default=1000000, help="hosts in the list (1,000,000)")
    parser.add_argument("--smoke", action="store_true", help="does it work? in a few seconds")
    args = parser.parse_args()
    if args.smoke:
        args.seconds, args.names = 1, 1000
    return args


def main():
    args = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="sunproxy-users-") as folder:
        bench = None
        try:
            bench = Bench(args, pathlib.Path(folder))
            bench.lists()
            bench.flooding()
        except (Failure, OSError, subprocess.CalledProcessError) as failure:
            print(f"users: {failure}", file=sys.stderr)
            return 1
        finally:
            if bench:
                bench.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
