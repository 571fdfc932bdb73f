#!/usr/bin/env python3
"""Models many daemons on a trace, and measures what a hit at a peer costs: the figures of docs/SCALE.md.

Each request goes to a daemon that is drawn at random; all have a cache of --pages pages with LRU. What a daemon does
not have it fetches
- alone: from the origin;
- owners: from the URL's owner among the daemons of its group, which fetches it from the origin and stores it;
- and copies: the same, and stores itself what it has fetched from peers for the third time (FETCH.md, "Peers").
The first half of the requests is not counted. Groups have 16 daemons, the most that --peers takes, and once as many
as there are. Beside the model, where the two have to agree, are hit ratios of `sunproxy simulate`: of one daemon's
requests in its own cache (alone), and of all requests in the memory of a group as one cache (owners, one group).

Loss: with copies and groups of 16, one, four or eight daemons of each group are lost after three quarters of the
requests; the next owners take their URLs, and the next daemons their clients.

Cost: two daemons with --peers before a scripted origin on loopback. CPU time of both, of a hit of 1 KiB and of one at
the peer.

TRACE: any that `sunproxy trace convert` reads; by default 2,000,000 requests for 400,000 URLs by Zipf's law with the
constant 0.9 are generated.

Exit status: 0; 1 after an error.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import http_servers
from server import Failure, Server, family_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
from ports import free_port  # noqa: E402

GROUP = 16  # the most daemons of --peers
HOT = 3     # ORIGIN_FILL_HOT
WINDOW = 100  # the requests around a loss are counted in hundredths of all


class Lru:
    def __init__(self, pages):
        self.pages, self.kept = pages, {}

    def has(self, url):
        """Also makes it the latest."""
        if url not in self.kept:
            return False
        del self.kept[url]
        self.kept[url] = True
        return True

    def store(self, url):
        self.kept[url] = True
        if len(self.kept) > self.pages:
            del self.kept[next(iter(self.kept))]


class Fleet:
    """Daemons in groups. `size` 1: each is alone."""

    def __init__(self, count, size, pages, copies):
        self.count, self.size, self.copies = count, size, copies
        self.caches = [Lru(pages) for _ in range(count)]
        self.fetched = [{} for _ in range(count)]  # from peers, by URL
        self.lost = set()
        self.asked = [0] * count  # by peers

    def owner(self, daemon, url):
        """By a hash of URL and daemon, as rendezvous hashing: that of the URL's owners in order that is there."""
        first = daemon - daemon % self.size
        mixed = url * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
        for turn in range(self.size):
            mixed = (mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
            owner = first + (mixed >> 32) * self.size // (1 << 32)
            if owner not in self.lost:
                return owner
        return daemon

    def request(self, daemon, url):
        """0: hit, 1: hit at the owner, 2: from the origin."""
        while daemon in self.lost:
            daemon = daemon - daemon % self.size + (daemon + 1) % self.size
        if self.caches[daemon].has(url):
            return 0
        owner = self.owner(daemon, url)
        if owner == daemon:
            self.caches[daemon].store(url)
            return 2
        self.asked[owner] += 1
        where = 1
        if not self.caches[owner].has(url):
            self.caches[owner].store(url)
            where = 2
        if self.copies:
            fetched = self.fetched[daemon]
            fetched[url] = fetched.get(url, 0) + 1
            if fetched[url] >= HOT:
                self.caches[daemon].store(url)
        return where


def run_fleet(fleet, requests):
    """(shares of hits, hits at the owner, and the origin, requests of the busiest owner as a factor of the mean)."""
    drawn, found = random.Random(1), [0, 0, 0]
    for number, url in enumerate(requests):
        where = fleet.request(drawn.randrange(fleet.count), url)
        if number >= len(requests) // 2:
            found[where] += 1
        elif number == len(requests) // 2 - 1:
            fleet.asked = [0] * fleet.count
    total = sum(found)
    busiest = max(fleet.asked) * fleet.count / sum(fleet.asked) if sum(fleet.asked) else 0
    return [n / total for n in found], busiest, sum(fleet.asked) / total


def run_loss(fleet, requests, lost):
    """The origin's share before the first `lost` daemons of each group are lost, and in windows after it."""
    drawn, window = random.Random(1), max(1, len(requests) // WINDOW)
    shares, fetches = [], 0
    for number, url in enumerate(requests):
        if number == len(requests) * 3 // 4 // window * window:
            fleet.lost = {daemon for daemon in range(fleet.count) if daemon % fleet.size < lost}
            first = len(shares)
        fetches += fleet.request(drawn.randrange(fleet.count), url) == 2
        if number % window == window - 1:
            shares.append(fetches / window)
            fetches = 0
    return sum(shares[first - 5:first]) / 5, shares[first], shares[first + 4], shares[-1]


def cpu_seconds(server):
    return sum(time.clock_gettime((~pid << 3) | 2) for pid in family_of(server.process.pid))


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder, self.build = args, folder, args.build.resolve()
        self.servers = []

    def sunproxy(self, *argv):
        run = subprocess.run([str(word) for word in (self.build / "sunproxy", *argv)], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, check=False)
        if run.returncode:
            raise Failure(run.stderr)
        return run.stdout

    def read_requests(self):
        """Numbers of URLs, in the order of the requests."""
        path = self.folder / "trace.urls"
        if self.args.trace:
            self.sunproxy("trace", "convert", "--to", "urls", "-o", path, self.args.trace)
        else:
            self.sunproxy("trace", "generate", "zipf", "-n", self.args.requests, "--urls", self.args.requests // 5,
                          "--constant", "0.9", "--to", "urls", "-o", path)
        numbers = {}
        with open(path, encoding="utf-8") as file:
            return [numbers.setdefault(line.split("\t")[0].rstrip("\n"), len(numbers) + 1) for line in file]

    def simulated(self, requests, pages):
        path = self.folder / "part.urls"
        path.write_text("".join(f"http://a.test/{url}\n" for url in requests))
        answer = json.loads(self.sunproxy("simulate", "--policy", "lru", "--capacity", pages, "--ignore-sizes",
                                          "--warmup", "50%", "--json", path))
        return answer["traces"][0]["results"][0]["hit_ratio"]

    def print_row(self, name, count, fleet, requests, simulated):
        shares, busiest, asked = run_fleet(fleet, requests)
        print(f"| {count} | {name} | " + " | ".join(f"{100 * share:.1f}" for share in shares)
              + (f" | {100 * simulated:.1f}" if simulated is not None else " | ")
              + (f" | {busiest:.2f} | {100 * asked:.1f} |" if asked else " | | |"), flush=True)

    def model(self):
        requests, pages = self.read_requests(), self.args.pages
        print(f"{len(requests):,} requests for {max(requests):,} URLs; each daemon has space for {pages:,} pages. In "
              "percent of the requests:\n\n"
              "| daemons | | hit | hit at the owner | origin | `simulate` | busiest owner / mean | asked of owners |\n"
              "|---|---|---|---|---|---|---|---|")
        for count in self.args.daemons:
            drawn = random.Random(1)
            own = [url for url in requests if drawn.randrange(count) == 0]
            self.print_row("alone", count, Fleet(count, 1, pages, False), requests, self.simulated(own, pages))
            for size in sorted({min(count, GROUP), count} - {1}):
                together = f"one group of {size}" if size == count else f"groups of {size}"
                pooled = self.simulated(requests, size * pages) if size == count else None
                self.print_row(f"owners, {together}", count, Fleet(count, size, pages, False), requests, pooled)
                self.print_row(f"and copies, {together}", count, Fleet(count, size, pages, True), requests, None)
        self.losses(requests, self.args.daemons[-1])

    def losses(self, requests, count):
        size = min(count, GROUP)
        print(f"\nThe same with copies and {count} daemons in groups of {size}, of each of which some are lost. Requests "
              "that the origin gets, in percent:\n\n"
              "| lost of a group | before | in the next hundredth of all requests | in the fifth | in the last |\n"
              "|---|---|---|---|---|")
        for lost in sorted({size // 16, size // 4, size // 2} - {0}):
            shares = run_loss(Fleet(count, size, self.args.pages, True), requests, lost)
            print(f"| {lost} | " + " | ".join(f"{100 * share:.1f}" for share in shares) + " |", flush=True)

    # ---- what a hit at a peer costs

    def start_peers(self, origin):
        (self.folder / "key").write_text("a key of more than sixteen bytes\n")
        (self.folder / "key").chmod(0o600)
        ports = [free_port(), free_port()]
        urls = ",".join(f"http://127.0.0.1:{port}" for port in ports)
        for number, port in enumerate(ports):
            server = Server(f"peer{number}", [
                self.build / "sunproxyd", "--no-rpcbind", "--listen", "none", "--socket", "none", "--workers", "1",
                "--http", f"127.0.0.1:{port}", "--allow-net", "127.0.0.0/8", "--allow-port", "any", "--peers", urls,
                "--peer-key-file", self.folder / "key"], port, self.folder)
            self.servers.append(server)
        for server in self.servers[1:]:
            server.wait_until_listening()
        self.prefix = f"http://127.0.0.1:{origin.port}/fault/size:1024?page="
        return self.servers[1:]

    def load(self, server, *options):
        run = subprocess.run([str(word) for word in (
            self.build / "tests/bench/load", "--protocol", "http", "--port", server.port, "--bytes", 1024, "--prefix",
            self.prefix, "--connections", 32, "--keys", self.args.keys, *options)], stdout=subprocess.PIPE, check=False)
        if run.returncode:
            raise Failure(f"the load on {server.name} failed: {run.stdout.decode()}")

    def cpu_us(self, peers, server, requests, *options):
        """CPU time of all of them for each request."""
        before = sum(cpu_seconds(peer) for peer in peers)
        self.load(server, *options)
        return 1e6 * (sum(cpu_seconds(peer) for peer in peers) - before) / requests

    def cost(self):
        origin = http_servers.start_origin(self.build, self.folder)
        self.servers.append(origin)
        first, second = peers = self.start_peers(origin)
        self.load(first, "--fill")  # each page is at its owner
        keys = self.args.keys
        mixed = self.cpu_us(peers, second, keys, "--fill")  # half of the requests are for pages of the first one
        for _ in range(2):  # from the third time on all are hits of the second one's own
            self.load(second, "--fill")
        hit = self.cpu_us(peers, second, keys, "--fill")
        print(f"\nA hit of 1 KiB takes {hit:.0f} us of CPU time with 32 connections; of {keys:,} pages that are "
              f"requested once of one of two daemons, half are at the other one: {mixed:.0f} us in the mean, so "
              f"{2 * mixed - hit:.0f} us for a hit at a peer, both daemons together.", flush=True)

    def stop(self):
        for server in self.servers:
            server.stop()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", nargs="?", type=pathlib.Path, metavar="TRACE")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="folder of the programs")
    parser.add_argument("--requests", type=int, default=2000000, help="of the generated trace (2,000,000)")
    parser.add_argument("--pages", type=int, default=1000, help="that a daemon has space for (1,000)")
    parser.add_argument("--daemons", type=lambda text: [int(word) for word in text.split(",")],
                        default=[1, 4, 16, 96], help="numbers of daemons (1,4,16,96)")
    parser.add_argument("--keys", type=int, default=20000, help="pages of the measurement of cost (20,000)")
    return parser.parse_args()


def main():
    args = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="sunproxy-fleet-") as folder:
        bench = Bench(args, pathlib.Path(folder))
        try:
            bench.model()
            bench.cost()
        except (Failure, OSError) as failure:
            print(f"fleet: {failure}", file=sys.stderr)
            return 1
        finally:
            bench.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
