#!/usr/bin/env python3
"""Measure how often the intervals of `sunproxy advise` hold.

A draw is two parts of a log of equal numbers of requests, the second right after the first. The
first is given to advise; the recommended policy and size meet the second, from an empty cache, with
header fields of a length that is drawn from the law that advise assumes (lognormal around 300 bytes,
a factor of 2 for one standard deviation). No two draws share a request. In some draws a daemon
replays the second part; in the others it is simulated. A URL has one size in both parts, that of its
first request, since the origin serves one.

The logs are those that ship, generated ones, and those of --traces FOLDER that are there; the others
are named as absent. Printed by log and in sum: how many intervals for 68 and for 95 % cover the ratio
that came, for the hit ratio and the byte hit ratio.

Exit status: 0 if in sum both cover within five percentage points of what they say; 1 if not, or
after an error.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/bench")]
from ports import free_port  # noqa: E402
from server import Failure, Server  # noqa: E402

POLICIES = "lru,gdsf"
MOST_BYTES = 4000000  # of a page; larger ones count as this
HEADER_MEDIAN, HEADER_FACTOR = 300, 2
LEVELS = (68, 95)
NOMINAL = (68.27, 95)
TOLERANCE = 5  # percentage points

# Files of --traces, requests of a part, draws at most.
RECORDED = (
    ("cloudPhysicsIO.oracleGeneral.bin", 1000, 24),
    ("twitter-cluster52-1m.oracleGeneral.bin.zst", 2000, 30),
    ("caffeine-adaptsize-request.trace.xz", 1000, 24),
    ("epa-http.txt", 800, 24),
    ("rita-dnscat2-http.log.gz", 600, 14),
    ("elastic-apache_logs.log", 600, 7),
    ("hurence-access.log", 400, 4),
    ("cache2k-web07.trace.xz", 1000, 20),
)
SHIPPED = ("dataset1", "dataset2")

# Name, workload, constant, law of the sizes, numbers of requests of a pair, URLs.
GENERATED = (
    ("zipf, 54 bytes", "zipf", 0.8, "fixed:54", (1000, 2000, 4000), 1000),
    ("zipf, lognormal 8 KB", "zipf", 0.9, "lognormal:8000:1.2", (1000, 2000, 4000), 1000),
    ("zipf, pareto 1 KB", "zipf", 1.0, "pareto:1000:1.1", (1000, 3000), 1000),
    ("zipf, lognormal 400 KB", "zipf", 0.7, "lognormal:400000:1.2", (600, 1600), 300),
    ("ycsb-d, 1 KB", "ycsb-d", 0.99, "fixed:1000", (2000, 4000), 1000),
    ("ycsb-e, 1 KB", "ycsb-e", 0.99, "fixed:1000", (2000, 4000), 1000),
    ("zipf, no sizes", "zipf", 0.8, "none", (1000, 3000), 700),
)
DRIFT = "popularity that drifts"

Draw = collections.namedtuple("Draw", "log goal low high ratio live promised kept")


class Calibration:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.build = ROOT / args.build
        self.draws, self.number = [], 0

    # ---- programs

    def sunproxy(self, *arguments):
        done = subprocess.run([self.build / "sunproxy", *map(str, arguments)], capture_output=True,
                              timeout=600, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Failure(f"sunproxy {' '.join(map(str, arguments))}: {done.stderr.decode()}")
        return done.stdout

    @staticmethod
    def wait_for(path, server):
        while not path.exists():
            if server.process.poll() is not None:
                raise Failure(f"{server.name} does not start: {server.log.read_text()[-500:]}")
            time.sleep(0.02)

    def start_origin(self, sizes, padding):
        ports = self.folder / "ports"
        ports.unlink(missing_ok=True)
        origin = Server("origin", [self.build / "tests/origin/origin", "--ports-file", ports,
                                   "--tls-dir", self.folder, "--quiet", "--max-seconds", "600",
                                   *(["--sizes", sizes] if sizes else []),
                                   *(["--header", f"X-Padding: {'x' * padding}"] if padding else [])],
                        0, self.folder)
        self.wait_for(ports, origin)
        return origin, dict(line.split() for line in ports.read_text().splitlines())

    def start_daemon(self, port, origin):
        (self.folder / "socket").unlink(missing_ok=True)
        daemon = Server("sunproxyd", [self.build / "sunproxyd", "--no-rpcbind", "--port", str(port),
                                      "--listen", "127.0.0.1", "--freshness", "off", "--socket",
                                      self.folder / "socket", "--connect-to",
                                      f":80:127.0.0.1:{origin['http']}", "--connect-to",
                                      f":443:127.0.0.1:{origin['https']}", "--cacert",
                                      self.folder / "ca.pem", "--allow-net", "127.0.0.0/8"],
                        port, self.folder)
        self.wait_for(self.folder / "socket", daemon)
        return daemon

    # ---- one draw

    def write(self, name, requests):
        path = self.folder / name
        path.write_text("".join(url + (f"\t{size}" if size is not None else "") + "\n"
                                for url, size in requests))
        return path

    def replay(self, path, requests, best, header, sized):
        """The live ratios by goal, and the bytes of header fields that the pages had."""
        sizes = None
        if sized:
            sizes = self.folder / "sizes.tsv"
            sizes.write_text("".join(f"{url}\t{size}\n" for url, size in dict(requests).items()))
        kept = None
        for padding in (0, None):  # first how long the head is without one
            if padding is None:
                padding = max(0, header - kept - len("X-Padding: \r\n"))
            origin, ports = self.start_origin(sizes, padding)
            daemon = None
            try:
                daemon = self.start_daemon(free_port(), ports)
                ask = ("--socket", self.folder / "socket")
                head = self.sunproxy("get", *ask, "-i", requests[0][0]).partition(b"\r\n\r\n")[0]
                kept = len(head)
                if padding == 0 and header > kept + len("X-Padding: \r\n"):
                    continue
                capacity = (f"{best['capacity_bytes']}B" if sized else best["capacity_urls"])
                live = json.loads(self.sunproxy("replay", *ask, "--json", "--policy", best["policy"],
                                                "--capacity", capacity, path))["mean"]
                return {"hit_ratio": live["hit_ratio_with_coalesced"],
                        "byte_hit_ratio": live["byte_hit_ratio_with_coalesced"]}, kept
            finally:
                if daemon:
                    daemon.stop()
                origin.stop()
        raise Failure("no replay")

    def simulate(self, path, best, header, sized):
        capacity = f"{best['capacity_bytes']}B" if sized else best["capacity_urls"]
        sizes = ("--count-bytes", "whole", "--header-bytes", header) if sized else ()
        out = json.loads(self.sunproxy("simulate", "--json", "-j1", "--policy", best["policy"],
                                       "--capacity", capacity, *sizes, path))
        return out["traces"][0]["results"][0]

    def draw(self, log, pair):
        dice = random.Random(f"{self.args.seed} {self.number}")
        sized = pair[0][1] is not None
        first = {}
        pair = [(url, first.setdefault(url, size)) for url, size in pair]
        half = len(pair) // 2
        known = self.write("known.txt", pair[:half])
        to_come = self.write("to-come.txt", pair[half:])
        share = dice.choice(("0.9", "0.8", "0.5"))
        advice = json.loads(self.sunproxy("advise", "--json", "-j1", "--policy", POLICIES, "--share",
                                          share, known))
        live_draw = self.args.live and self.number % self.args.live == 0
        self.number += 1
        header = min(65000, round(HEADER_MEDIAN * HEADER_FACTOR ** dice.gauss(0, 1)))
        for best in (advice, advice["other_goal"]):
            if not best or not best["policy"]:
                continue
            goal = best["goal"]
            if live_draw and best is advice:
                ratios, kept = self.replay(to_come, pair[half:], best, header, sized)
                live = True
            else:
                ratios, kept = self.simulate(to_come, best, header, sized), header
                live = False
            interval = best["interval"]
            promised = next(p for p in best["policies"] if p["policy"] == best["policy"])[goal]
            self.draws.append(Draw(log, goal, [interval[f"low_{l}"] for l in LEVELS],
                                   [interval[f"high_{l}"] for l in LEVELS], ratios[goal], live,
                                   promised, kept))
            if self.args.json:
                with self.args.json.open("a") as file:
                    file.write(json.dumps({"log": log, "goal": goal, "interval": interval,
                                           "ratio": ratios[goal], "promised": promised,
                                           "live": live, "header": kept, "requests": half}) + "\n")

    # ---- logs

    def requests_of(self, path):
        table = self.folder / "table.tsv"
        self.sunproxy("trace", "convert", path, "-o", table)
        lines = table.read_text().splitlines()
        names = lines[0].split("\t")
        url, size = names.index("url" if "url" in names else "id"), None
        if "size" in names:
            size = names.index("size")
        for line in lines[1:]:
            row = line.split("\t")
            known = size is not None and row[size].isdigit()
            name = row[url] if "url" in names else f"http://h/{row[url]}"
            yield name, min(MOST_BYTES, int(row[size])) if known else None

    def pairs(self, requests, part, most):
        """Pairs that share no request, spread over the log."""
        count = min(most, len(requests) // (2 * part))
        for i in range(count):
            start = (len(requests) - 2 * part) * i // max(1, count - 1) if count > 1 else 0
            yield requests[start:start + 2 * part]

    def measure(self, log, path, part, most):
        requests = list(self.requests_of(path))
        sizes = dict.fromkeys(url for url, _ in requests)
        for url, size in requests:
            sizes[url] = size if sizes[url] is None else sizes[url]
        known = sorted(size for size in sizes.values() if size is not None)
        median = known[len(known) // 2] if len(known) * 2 > len(sizes) else None
        requests = [(url, None if median is None else median if sizes[url] is None else sizes[url])
                    for url, _ in requests]
        for pair in self.pairs(requests, part or len(requests) // 2, most):
            self.draw(log, pair)

    def generate(self, workload, constant, sizes, requests, urls, seed):
        path = self.folder / "generated.tsv"
        self.sunproxy("trace", "generate", workload, "-n", requests, "--urls", urls, "--constant",
                      constant, "--seed", seed, "--sizes", sizes, "-o", path)
        return path

    def drifting(self, seed):
        """Pages come into fashion and go out of it, a hundred requests at a time, as long ago."""
        dice = random.Random(seed)
        pages = [(f"http://h/{n}", int(dice.lognormvariate(8, 1.2)) + 1) for n in range(600)]
        steady = 0.5 / (1 - 0.97 ** 2) ** 0.5
        strength = [dice.gauss(0, steady) for _ in pages]
        requests = []
        for _ in range(30):
            strength = [0.97 * s + dice.gauss(0, 0.5) for s in strength]
            requests += dice.choices(pages, [2.718281828 ** (1.2 * s) for s in strength], k=100)
        return requests

    def measure_all(self):
        absent = []
        wanted = self.args.log.lower()
        for name in SHIPPED:
            if wanted not in name:
                continue
            self.measure(name, ROOT / "datasets" / name / "History", None, 1)
        for name, part, most in RECORDED:
            if wanted not in name.lower():
                continue
            path = self.args.traces / name
            if path.exists():
                self.measure(name.split(".")[0], path, part, max(1, round(most * self.args.scale)))
            else:
                absent.append(name)
        each = max(1, round(self.args.draws * self.args.scale))
        for number, (name, workload, constant, sizes, lengths, urls) in enumerate(GENERATED):
            for i in range(each if wanted in name else 0):
                path = self.generate(workload, constant, sizes, lengths[i % len(lengths)], urls,
                                     100000 * self.args.seed + 1000 * number + i + 1)
                self.measure(name, path, None, 1)
        for i in range(each if wanted in DRIFT else 0):
            self.draw(DRIFT, self.drifting(100000 * self.args.seed + i + 1))
        return absent


def covered(draws, level):
    return sum(d.low[level] - 1e-6 <= d.ratio <= d.high[level] + 1e-6 for d in draws)


def print_row(name, draws):
    width = [100 * sum(d.high[i] - d.low[i] for d in draws) / 2 / len(draws) for i in range(2)]
    off = 100 * sum(abs(d.ratio - d.promised) for d in draws) / len(draws)
    print(f"{name:34.34} {len(draws):6} {sum(d.live for d in draws):5} "
          + " ".join(f"{100 * covered(draws, i) / len(draws):7.1f} {width[i]:6.1f}" for i in range(2))
          + f" {off:7.1f}")


def print_table(draws, absent):
    print(f"{'log':34} {'draws':>6} {'live':>5} {'in 68 %':>7} {'+-':>6} {'in 95 %':>7} {'+-':>6} "
          f"{'off by':>7}")
    for goal in ("hit_ratio", "byte_hit_ratio"):
        print(goal)
        own = [d for d in draws if d.goal == goal]
        for log in dict.fromkeys(d.log for d in own):
            print_row("  " + log, [d for d in own if d.log == log])
        print_row("  all", own)
    print_row("all", draws)
    live = [d for d in draws if d.live]
    if live:
        print_row("live", live)
    print("absent: " + (", ".join(absent) or "none"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default="build/release", help="whose programs are run")
    parser.add_argument("--traces", type=pathlib.Path, default=pathlib.Path("/nonexistent"),
                        help="folder with recorded traces")
    parser.add_argument("--draws", type=int, default=36, help="of each generated log (36)")
    parser.add_argument("--scale", type=float, default=1, help="share of all draws (1)")
    parser.add_argument("--live", type=int, default=10, help="each N-th draw is live; 0: none (10)")
    parser.add_argument("--log", default="", help="only logs with this in their names")
    parser.add_argument("--seed", type=int, default=0, help="of the generated logs (0)")
    parser.add_argument("--json", type=pathlib.Path, help="write a line for each interval")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="calibrate.") as folder:
        calibration = Calibration(args, pathlib.Path(folder))
        try:
            absent = calibration.measure_all()
        except Failure as failure:
            print(f"calibrate: {failure}", file=sys.stderr)
            return 1
    print_table(calibration.draws, absent)
    for i, level in enumerate(NOMINAL):
        share = 100 * covered(calibration.draws, i) / len(calibration.draws)
        if abs(share - level) > TOLERANCE:
            print(f"calibrate: {share:.1f} % of the intervals for {level:.0f} % cover", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    os.environ.pop("SUNPROXY_SERVER", None)
    sys.exit(main())
