#!/usr/bin/env python3
"""Sends a real daemon's HTTP front requests for resources that change, from an origin that fails, stalls
and restarts, during purges, writes and changes of policy and capacity; verifies every response.

  http_soak.py [--seconds N] [--points N] [--lanes N] [--seed N] [--daemon-option=OPTION]...

A response must have the whole body of one version, with its checksum, of the resource that was asked
for; must not be older than its lifetime, a purge or a write allow; and may fail only where the origin
fails. At each point the daemon is at rest: its memory, descriptors and threads have to stay flat. Exit
status: 0 when all of that holds; 130 after Ctrl-C; 1 otherwise. The programs come from $SUNPROXY_BUILD
(build/release).
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "scripts"))
import harness  # noqa: E402
import http_load  # noqa: E402
import http_model  # noqa: E402
from http_wire import NoResponse, Wire  # noqa: E402

DAEMON_OPTIONS = [
    "--no-rpcbind", "--listen", "127.0.0.1", "--port", 0, "--http", "127.0.0.1:0", "--workers", 2,
    "--capacity-urls", 100, "--capacity-bytes", "8M", "--max-page", "2M", "--access-log", "/dev/null",
    "--allow-net", "127.0.0.0/8",
    # Stalled origins are given up soon, but not those on a busy machine.
    "--first-byte-timeout", "3s", "--stall-timeout", "3s",
]
POLICIES = ["lru", "fifo", "gdsf", "s3-fifo", "arc", "tinylfu", "none"]
USUAL = ["--policy", "lru", "--capacity-urls", "100", "--capacity-bytes", "8M"]
RESTART_SECONDS = 3.0   # from a restart of the origin to the next one
CHANGE_SECONDS = 0.02   # from a change of a resource to the next one
REST_SECONDS = 60       # the longest wait for the daemon to come to rest
PRUNE_SECONDS = 1.2     # libcurl looks for connections that have been closed once a second
SETTLE_SECONDS = 0.1    # in which the daemon closes the connection that asked whether it is at rest
MOST_RESTS = 5          # of a point
FLAT_BYTES = 8 << 20    # that memory may grow by, and
FLAT_SHARE = 0.1        # this share of it
MAPPING = re.compile(r"([0-9a-f]+)-[0-9a-f]+ ")
TSAN_HEAP = range(0x7B0000000000, 0x7C0000000000)  # of x86-64 (tsan_platform.h)
SELDOM = 10             # seconds of load for which every row of the summary has to occur


class Origin:
    """The origin's process, which is killed and started again on the same socket."""

    def __init__(self, folder):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(512)
        self.port = self.listener.getsockname()[1]
        self.path = folder / "versions"
        self.versions = http_model.Versions(self.path)
        self.log = folder / "origin.log"
        self.process = None

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, HERE / "http_origin.py", str(self.listener.fileno()), self.path],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[self.listener.fileno()])
        with socket.create_connection(("127.0.0.1", self.port), 30) as s:
            s.sendall(b"GET /ready HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            if not s.recv(100):
                raise harness.Failure(f"the origin does not answer: {harness.last_words(self.log)}")

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


def tsan_heap(proc):
    """Bytes of ThreadSanitizer's heap; 0 in other builds."""
    size, within = 0, False
    for line in (proc / "smaps").read_text().splitlines():
        if bounds := MAPPING.match(line):
            within = int(bounds[1], 16) in TSAN_HEAP
        elif within and line.startswith("Anonymous:"):
            size += int(line.split()[1]) * 1024
    return size


def own_memory(proc):
    """Bytes that the daemon holds. Those of ThreadSanitizer are its heap alone: its tables grow with the
    addresses that were ever in use. In 60 s the whole grew from 63 to 87 MiB, the heap stayed between 9
    and 12 MiB, and a release daemon as a whole between 6 and 11."""
    _, resident, shared, *_ = (int(text) for text in (proc / "statm").read_text().split())
    return tsan_heap(proc) or (resident - shared) * os.sysconf("SC_PAGE_SIZE")


class Daemon:
    def __init__(self, children, folder, port, options):
        self.socket = folder / "soak.sock"
        self.local = str(folder / "http.sock")
        self.log = folder / "daemon.log"
        self.process = children.start(
            [harness.BUILD / "sunproxyd", *DAEMON_OPTIONS, "--socket", self.socket, "--http",
             f"unix:{self.local}", "--connect-to", f":80:127.0.0.1:{port}", *options],
            self.log, die_with_us=True)
        harness.wait_for(lambda: self.address() and self.socket.exists(), self.process, "sunproxyd",
                         self.log)

    def address(self):
        found = re.search(r"serving HTTP on 127\.0\.0\.1:(\d+)", self.log.read_text())
        return found and ("127.0.0.1", int(found[1]))

    def administrate(self, command, *arguments):
        """sunproxy with these arguments; its output."""
        done = subprocess.run([harness.BUILD / "sunproxy", command, "--socket", self.socket, *arguments],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        if done.returncode != 0 and not (command == "purge" and done.returncode == 1):
            raise harness.Failure(f"sunproxy {command} {arguments}: {done.stderr}")
        return done.stdout

    def measure(self):
        """(own memory, descriptors, threads)."""
        proc = pathlib.Path(f"/proc/{self.process.pid}")
        return (own_memory(proc), len(os.listdir(proc / "fd")), len(os.listdir(proc / "task")))


class Soak:
    def __init__(self, args, children, folder):
        self.args = args
        self.origin = Origin(folder)
        self.origin.start()
        self.daemon = Daemon(children, folder, self.origin.port, args.daemon_option)
        self.load = http_load.Load(self.origin.versions, self.daemon.address(), self.daemon.local)
        self.random = random.Random(args.seed)
        self.halt = threading.Event()

    # ---- what goes on beside the load ------------------------------------------------------

    def background(self, step, pause):
        """A thread that makes a step, and again after a pause, while the phase lasts."""
        def run():
            try:
                while not self.halt.wait(pause):
                    step()
            except Exception as error:  # whatever it is, the run must not pass
                self.load.fail(step.__name__, f"{type(error).__name__}: {error}")
                raise

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def change(self):
        """Another version of a resource, where neither writes nor purges make it."""
        kind = self.random.choice([k for k in http_model.KINDS if not http_model.KINDS[k].kept])
        self.load.versions.change(kind, self.random.randrange(http_model.NUMBERS))

    def purge(self):
        """Nothing older than a purge is used after it."""
        kind = self.random.choice(["purged", "tagged", "expired"])
        number = self.random.randrange(http_model.NUMBERS)
        version = self.load.versions.change(kind, number)
        url = f"http://{http_load.HOST}/{kind}/{number}"
        tag = f"Surrogate-Key: {http_model.tag_of(kind, number)}"
        if kind == "tagged":
            self.purge_over_http(url, tag)
        elif kind == "expired":
            self.purge_over_http(url, "Purge: soft", *self.random.choice([[], [tag]]))
        elif self.random.random() < 0.5:
            self.daemon.administrate("purge", *self.random.choice([[], ["--prefix"]]), url)
        else:
            self.purge_over_http(url, *self.random.choice([[], ["Purge: prefix"]]))
        self.load.raise_floor(kind, number, version)
        self.load.count(kind)

    def purge_over_http(self, url, *fields):
        wire = Wire(self.daemon.local)
        lines = [f"PURGE {url} HTTP/1.1", f"Host: {http_load.HOST}", *fields]
        wire.send("".join(f"{line}\r\n" for line in [*lines, ""]).encode())
        response = wire.receive()
        wire.close()
        if response.status not in (200, 404):
            raise harness.Failure(f"{lines}: status {response.status}")

    def configure(self):
        if self.random.random() < 0.5:
            self.daemon.administrate("set", "--policy", self.random.choice(POLICIES))
        else:
            self.daemon.administrate("set", "--capacity-urls", str(self.random.randrange(20, 200)),
                                     "--capacity-bytes", str(self.random.randrange(2, 12) << 20))
        self.load.count("configured")

    def restart(self):
        self.load.origin_is_down()
        self.origin.stop()
        self.origin.start()
        self.load.origin_is_up()
        self.load.count("origin restarted")

    # ---- phases ----------------------------------------------------------------------------

    def phase(self, seconds, seed):
        self.halt.clear()
        threads = [self.background(self.change, CHANGE_SECONDS), self.background(self.purge, 0.05),
                   self.background(self.configure, 0.4), self.background(self.restart, RESTART_SECONDS)]
        try:
            self.load.run(self.args.lanes, seconds, seed)
        finally:
            self.halt.set()
            for thread in threads:
                thread.join()

    def stat(self):
        return json.loads(self.daemon.administrate("stat", "--json"))

    def rest(self):
        """Waits until nothing is under way, empties the cache and closes connections to the origin."""
        end = time.monotonic() + REST_SECONDS
        while True:
            stat = self.stat()
            if stat["connections"] == 1 and stat["fetches_active"] == stat["fetches_queued"] == 0:
                break
            if time.monotonic() > end:
                raise harness.Failure(f"the daemon does not come to rest: {stat['connections']} "
                                      f"connections, {stat['fetches_active']} fetches")
            time.sleep(0.05)
        self.daemon.administrate("set", *USUAL)
        self.daemon.administrate("purge", "--all")
        self.restart()
        time.sleep(PRUNE_SECONDS)
        wire = Wire(self.daemon.local)
        wire.send(f"GET http://{http_load.HOST}/none HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        wire.receive()
        wire.close()
        while self.stat()["connections"] > 1 and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(SETTLE_SECONDS)

    def measure_at_rest(self, points):
        """Descriptors and threads that differ from the first point's are looked at again after another
        rest: a leak stays."""
        for _ in range(MOST_RESTS):
            self.rest()
            point = self.daemon.measure()
            if not points or point[1:] == points[0][1:]:
                break
        return point

    def run(self):
        points = []
        print(f"{'seconds':>8} {'responses':>10} {'MiB':>8} {'own MiB':>8} {'descriptors':>12} "
              f"{'threads':>8}")
        for n in range(self.args.points):
            self.phase(self.args.seconds / self.args.points, self.args.seed + n)
            if self.load.stop.is_set():
                break
            points.append(self.measure_at_rest(points))
            own, descriptors, threads = points[-1]
            print(f"{self.args.seconds / self.args.points * (n + 1):8.0f} {self.responses():10} "
                  f"{self.load.bytes >> 20:8} {own / (1 << 20):8.1f} {descriptors:12} {threads:8}",
                  flush=True)
        return points

    def responses(self):
        return sum(n for what, n in self.load.counts.items() if what.startswith("status "))

    def judge(self, points):
        """Sentences on what is not as it has to be."""
        wrong = list(self.load.failures[:http_load.MOST_FAILURES])
        if len(points) < self.args.points:
            wrong.append("not finished")
        if points:
            first = points[0]
            for own, descriptors, threads in points[1:]:
                if (descriptors, threads) != first[1:]:
                    wrong.append(f"{descriptors} descriptors and {threads} threads, not {first[1:]}")
            half = max(own for own, _, _ in points[:(len(points) + 1) // 2])
            if points[-1][0] > half * (1 + FLAT_SHARE) + FLAT_BYTES:
                wrong.append(f"memory grows: {points[-1][0]} bytes after {half}")
        rows = ["hit", "forwarded", "forwarded, stale", "forwarded, collapsed", "status 200", "status 206",
                "status 304", "error of a faulty origin", "broken off", "written", "purged", "tagged", "expired",
                "configured", "origin restarted", "vanished", "request bodies", "only-if-cached, not cached"]
        if self.args.seconds >= SELDOM:
            wrong += [f"no response, or step, of the kind: {row}" for row in rows
                      if not self.load.counts[row]]
        return wrong


def soak(args, children, folder):
    run = Soak(args, children, folder)
    try:
        points = run.run()
    except NoResponse as why:
        raise harness.Failure(f"the daemon does not answer: {why}") from why
    finally:
        run.origin.stop()
    print("\nresponses and steps:")
    for what, number in sorted(run.load.counts.items()):
        print(f"{number:12}  {what}")
    wrong = run.judge(points)
    if run.daemon.process.poll() is not None:
        wrong.append(f"sunproxyd ended: {harness.last_words(run.daemon.log)}")
    children.end(run.daemon.process)
    if run.daemon.process.returncode != 0:
        wrong.append(f"sunproxyd ended with {run.daemon.process.returncode}:\n"
                     + harness.last_words(run.daemon.log))
    print(f"\n{len(wrong)} unexpected")
    for what in wrong:
        print(f"http_soak: {what}", file=sys.stderr)
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--points", type=int, default=6)
    parser.add_argument("--lanes", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--daemon-option", action="append", default=[])
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    children = harness.Children()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sunproxy-soak."))
    try:
        return soak(args, children, folder)
    except harness.Failure as failure:
        print(f"http_soak: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        children.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
