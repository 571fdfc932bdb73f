#!/usr/bin/env python3
"""Replays the shipped data sets with every policy and size, and prints what came of it.

Started by scripts/demo.sh from the project's top folder. A run is one replay of one data set with
one policy and one size. Runs wait for the origin most of the time, so several go on at once, each
against a daemon of its own.
"""

import argparse
import concurrent.futures
import ctypes
import json
import os
import pathlib
import queue
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

BUILD = pathlib.Path("build/release")
LOGS = pathlib.Path("build/demo")
DATASETS = ["dataset1", "dataset2"]
POLICIES = ["lru", "lfu", "fifo", "rand", "maxs"]
PERCENT = [10, 20, 30, 40, 50, 80]
DAEMONS = 4
LATENCY = "lognormal:20ms:0.5"
READY_SECONDS = 20
PROGRAM = 0x23451111
STOPPED_BY = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


class Failure(Exception):
    """A sentence for the user."""


class Children:
    """Everything that was started, each in a process group of its own, to be stopped by pid."""

    def __init__(self):
        self.lock = threading.Lock()
        self.running = []
        self.stopping = False

    def start(self, argv, log, output=None, die_with_us=False):
        """A program whose complaints go to a log, and its output to a file of its own or there."""
        def die_with_parent():
            ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG

        with self.lock, open(log, "ab") as err, open(output or log, "ab") as out:
            if self.stopping:
                raise Failure("interrupted")
            child = subprocess.Popen(
                [str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                start_new_session=True, preexec_fn=die_with_parent if die_with_us else None)
            self.running.append(child)
        return child

    def run(self, argv, log, output):
        """Waits for the program; its output as text. Fails with its last words if it fails."""
        child = self.start(argv, log, output)
        status = child.wait()
        with self.lock:
            self.running.remove(child)
        if status != 0:
            raise Failure(f"{argv[0]} ended with status {status}:\n{last_words(log)}")
        return output.read_text()

    def stop(self):
        """The last to start is the first to stop, so that nobody misses what it still needs."""
        with self.lock:
            self.stopping = True
            children = list(reversed(self.running))
        for child in children:
            if child.poll() is None:
                child.terminate()
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def last_words(log):
    return "\n".join("    " + line for line in log.read_text(errors="replace").splitlines()[-5:])


def wait_for(condition, child, what, log):
    """Until it is true; fails when the child ends or takes too long."""
    end = time.monotonic() + READY_SECONDS
    while not condition():
        if child.poll() is not None or time.monotonic() > end:
            raise Failure(f"{what} does not start; its log {log} ends with\n{last_words(log)}")
        time.sleep(0.02)


# ---- what the replays need -----------------------------------------------------------------------

def has_program(name):
    return shutil.which(name) is not None


def rpcbind_answers():
    try:
        socket.create_connection(("127.0.0.1", 111), 1).close()
        return True
    except OSError:
        return False


def registered():
    """Is some sunproxyd registered with rpcbind?"""
    if not has_program("rpcinfo"):
        return False
    listing = subprocess.run(["rpcinfo", "-p", "127.0.0.1"], capture_output=True, text=True,
                             timeout=10, check=False).stdout
    return any(line.split()[:1] == [str(PROGRAM)] for line in listing.splitlines())


def start_rpcbind(children):
    """Whether the first daemon should register; says why not."""
    if not rpcbind_answers():
        if not has_program("rpcbind"):
            print("rpcbind: not installed; going on without")
            return False
        if os.geteuid() != 0:
            print("rpcbind: none runs, and only root can start one; going on without")
            return False
        log = LOGS / "rpcbind.log"
        child = children.start(["rpcbind", "-f"], log, die_with_us=True)
        try:
            wait_for(rpcbind_answers, child, "rpcbind", log)
        except Failure:
            print(f"rpcbind: does not answer, see {log}; going on without")
            return False
        print("rpcbind: started, until the demo ends")
        return True
    if registered():
        print("rpcbind: runs, and knows another sunproxyd, which is left alone")
        return False
    print("rpcbind: runs")
    return True


def start_origin(children):
    """Ports for http and https."""
    sizes = LOGS / "sizes.tsv"
    sizes.write_text("".join(pathlib.Path("datasets", name, "sizes.tsv").read_text()
                             for name in DATASETS))
    ports_file, log = LOGS / "origin.ports", LOGS / "origin.log"
    child = children.start(
        [BUILD / "tests/origin/origin", "--ports-file", ports_file, "--tls-dir", LOGS,
         "--sizes", sizes, "--latency", LATENCY, "--max-seconds", 1800, "--quiet"],
        log, die_with_us=True)
    wait_for(lambda: ports_file.exists() and len(ports_file.read_text().split()) == 4, child,
             "the origin", log)
    ports = dict(line.split() for line in ports_file.read_text().splitlines())
    print(f"origin: http on port {ports['http']}, https on {ports['https']}, latency {LATENCY}")
    return ports


def start_daemon(children, number, ports, register):
    """The socket of a new daemon."""
    path, log = LOGS / f"daemon{number}.sock", LOGS / f"daemon{number}.log"
    argv = [BUILD / "sunproxyd", "--listen", "127.0.0.1", "--port", 0, "--socket", path,
            "--shards", 1, "--workers", 1, "--allow-net", "127.0.0.0/8",
            "--connect-to", f":80:127.0.0.1:{ports['http']}",
            "--connect-to", f":443:127.0.0.1:{ports['https']}", "--cacert", LOGS / "ca.pem"]
    child = children.start(argv if register else argv + ["--no-rpcbind"], log, die_with_us=True)

    def answers():
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(str(path)) == 0

    wait_for(answers, child, "sunproxyd", log)
    return path


# ---- the runs ------------------------------------------------------------------------------------

def rooms(distinct):
    return [max(1, round(distinct * percent / 100)) for percent in PERCENT]


def replay(children, sockets, dataset, policy, room):
    """One run; what the client measured."""
    path = sockets.get()
    try:
        name = f"{dataset}-{policy}-{room}" if room else f"{dataset}-none"
        argv = [BUILD / "sunproxy", "replay", f"datasets/{dataset}/History", "--socket", path,
                "--policy", policy, "--log", LOGS / f"{name}.log", "--json"]
        if room:
            argv += ["--capacity", room]
        result = json.loads(children.run(argv, LOGS / f"{name}.err", LOGS / f"{name}.json"))
        if result["runs"][0]["failures"]:
            raise Failure(f"{result['runs'][0]['failures']} requests failed; see {LOGS}/{name}.log")
        return result
    finally:
        sockets.put(path)


def replay_all(children, sockets, at_once):
    """(dataset, policy, room) to what was measured; the longest runs begin first."""
    wanted = [(dataset, "none", 0) for dataset in DATASETS]
    for dataset in DATASETS:
        urls = len(pathlib.Path("datasets", dataset, "sizes.tsv").read_text().splitlines())
        wanted += [(dataset, policy, room) for room in rooms(urls) for policy in POLICIES]
    results = {}
    pool = concurrent.futures.ThreadPoolExecutor(at_once)
    try:
        runs = {pool.submit(replay, children, sockets, *run): run for run in wanted}
        for done in concurrent.futures.as_completed(runs):
            results[runs[done]] = done.result()
            show_progress(len(results), len(wanted))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return results


def show_progress(done, total):
    if sys.stdout.isatty():
        print(f"\r{done} of {total} runs\033[K" if done < total else "\r\033[K", end="", flush=True)


# ---- what is printed -----------------------------------------------------------------------------

def print_table(title, columns, rows):
    print(f"  {title}")
    print("    " + f"{'':10}" + "".join(f"{c:>11}" for c in columns))
    for name, cells in rows:
        print("    " + f"{name:10}" + "".join(f"{c:>11}" for c in cells))
    print()


def print_dataset(dataset, results):
    none = results[dataset, "none", 0]
    own = {(policy, room): r for (d, policy, room), r in results.items() if d == dataset and room}
    sizes = sorted({room for _, room in own})
    columns = [f"{percent} % ({room})" for percent, room in zip(PERCENT, sizes)]

    def table(title, figure, scale):
        def cell(result):
            return f"{result['runs'][0][figure] * scale:.1f}"

        rows = [(policy, [cell(own[policy, room]) for room in sizes]) for policy in POLICIES]
        print_table(title, columns, rows + [("no cache", [cell(none)])])

    print(f"{dataset}: {none['requests']} requests for {none['distinct_urls']} URLs. Columns: the "
          "cache's room, as a share of the\nURLs (and as their number).\n")
    table("hit ratio, per cent", "hit_ratio", 100)
    table("byte hit ratio, per cent", "byte_hit_ratio", 100)
    table("mean access time, ms", "mean_us", 0.001)
    times = sorted((none["runs"][0]["mean_us"] / r["runs"][0]["mean_us"], policy, room)
                   for (policy, room), r in own.items())
    slow, fast = times[0], times[-1]
    print(f"  With a cache pages came {slow[0]:.1f} times ({slow[1]}, room for {slow[2]}) to "
          f"{fast[0]:.1f} times ({fast[1]}, {fast[2]}) as fast\n  as without.\n")


def demo(children, daemons):
    started = time.monotonic()
    register = start_rpcbind(children)
    ports = start_origin(children)
    sockets = queue.SimpleQueue()
    for number in range(1, daemons + 1):
        sockets.put(start_daemon(children, number, ports, register and number == 1))
    runs = len(DATASETS) * (len(POLICIES) * len(PERCENT) + 1)
    print(f"sunproxyd: {daemons}, so that {daemons} of the {runs} replays run at a time"
          + ("; the first is registered" if register and registered() else ""))
    results = replay_all(children, sockets, daemons)
    print()
    for dataset in DATASETS:
        print_dataset(dataset, results)
    print(f"Took {time.monotonic() - started:.0f} s. {LOGS}/ has a log of every replay, a line a "
          "request\n(DATASET-POLICY-ROOM.log), what was measured (.json), and the logs of origin "
          "and\ndaemons.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--daemons", type=int, default=DAEMONS, choices=range(1, 33), metavar="N",
                        help=f"replays at a time, each against a daemon of its own ({DAEMONS})")
    args = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    children = Children()

    def handle(handler):
        for number in STOPPED_BY:
            signal.signal(number, handler)

    def interrupt(number, _):
        handle(signal.SIG_IGN)  # stopping is not interrupted
        raise SystemExit(128 + number)

    handle(interrupt)
    try:
        shutil.rmtree(LOGS, ignore_errors=True)
        LOGS.mkdir(parents=True, exist_ok=True)
        demo(children, args.daemons)
        return 0
    except (Failure, OSError) as e:
        print(f"demo: {e}", file=sys.stderr)
        return 70
    except SystemExit:
        print("\ndemo: interrupted; stopping what was started", file=sys.stderr)
        raise
    finally:
        handle(signal.SIG_IGN)
        children.stop()


if __name__ == "__main__":
    sys.exit(main())
