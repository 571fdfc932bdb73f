"""The contestants of the parallelism study: each fetches a list of URLs from an origin with N
threads.

What a thread is: of the pool server (tests/bench/pool_main.c) one of its threads; of asyncio with
an executor one of the executor's; of asyncio with aiohttp, and of sunproxyd, a fetch in flight,
since both fetch in one thread whatever their number. sunproxyd's workers, which serve clients, are
varied apart. Every run has a new process and so an empty cache.
"""

import collections
import json
import socket
import subprocess
import sys
import time

import harness

ASYNCIO = harness.TOP / "tests/bench/asyncio"
TIMEOUT_SECONDS = 300
# Requests that the clients of sunproxyd have outstanding: as many as the most threads.
CLIENTS = 64

# Wall time from the first request to the last answer, and the CPU time of the contestant.
Run = collections.namedtuple("Run", "requests seconds cpu_seconds")


def find_python():
    """An interpreter that has aiohttp, and aiohttp's version; this interpreter and None without.
    Debian's package is for Debian's own interpreter."""
    probe = "import aiohttp; print(aiohttp.__version__)"
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            done = subprocess.run([python, "-I", "-c", probe], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL,
                                  check=False)
        except OSError:
            continue
        if done.returncode == 0:
            return python, done.stdout.decode().strip()
    return sys.executable, None


def cpu_seconds(pid):
    """The kernel's account of all threads of a process (clock_getcpuclockid(3))."""
    return time.clock_gettime((~pid << 3) | 2)


class Contest:
    """Runs contestants against one origin; `folder` is its own, `urls` lists by length."""

    def __init__(self, children, folder, origin, python):
        self.children, self.folder, self.origin, self.python = children, folder, origin, python
        self.contestants = {"pool": self._pool, "misaligned": self._misaligned,
                            "sunproxyd": self._sunproxyd,
                            "workers": self._workers, "executor": self._executor,
                            "aiohttp": self._aiohttp}

    def urls(self, count):
        return [f"http://127.0.0.1:{self.origin.http}/parallel/{n}" for n in range(count)]

    def run(self, contestant, count, threads, seed):
        """One run over `count` URLs. The seed is the number of the run."""
        name = f"{contestant}-{count}-{threads}-{seed}"
        path = self.folder / f"{name}.urls"
        path.write_text("".join(url + "\n" for url in self.urls(count)))
        result = self.contestants[contestant](path, name, threads)
        if result.requests != count:
            raise harness.Failure(f"{contestant} with {threads} threads: {count - result.requests} "
                                  f"of {count} requests failed; see {self.folder}/{name}.*")
        return result

    # ---- asyncio ---------------------------------------------------------------------------------

    def _script(self, script, path, name, threads):
        output = self.children.run([self.python, ASYNCIO / script, threads, path],
                                   self.folder / f"{name}.err",
                                   self.folder / f"{name}.json")
        result = json.loads(output)
        return Run(result["requests"] - result["failures"], result["seconds"],
                   result["cpu_seconds"])

    def _executor(self, path, name, threads):
        return self._script("executor.py", path, name, threads)

    def _aiohttp(self, path, name, threads):
        return self._script("with_aiohttp.py", path, name, threads)

    # ---- the pool server -------------------------------------------------------------------------

    def _misaligned(self, path, name, threads):
        return self._pool(path, name, threads, "--entry-bytes", 12)

    def _pool(self, path, name, threads, *options):
        port_file, log = self.folder / f"{name}.port", self.folder / f"{name}.log"
        child = self.children.start([harness.BUILD / "tests/bench/pool", "--threads",
                                     threads, *options], log, port_file,
                                    die_with_us=True)
        try:
            harness.wait_for(lambda: port_file.read_text().endswith("\n"), child, "pool", log)
            with socket.create_connection(("127.0.0.1", int(port_file.read_text())),
                                          TIMEOUT_SECONDS) as client:
                return self._ask_pool(client, child.pid, path.read_bytes())
        finally:
            self.children.end(child)

    @staticmethod
    def _ask_pool(client, pid, requests):
        """Answers are short: they stay in the socket until all requests have been sent."""
        cpu, began = cpu_seconds(pid), time.monotonic()
        client.sendall(requests)
        with client.makefile("rb") as answers:
            good = sum(answers.readline()[:-1].isdigit() for _ in range(requests.count(b"\n")))
        return Run(good, time.monotonic() - began, cpu_seconds(pid) - cpu)

    # ---- sunproxyd -------------------------------------------------------------------------------

    def look(self, daemon, name):
        """A daemon has served its run and is about to end."""

    def _daemon(self, path, name, fetches, workers, *options):
        daemon = harness.Daemon(self.children, self.folder, name, self.origin, "--workers", workers,
                                "--max-fetches", fetches, "--max-fetches-waiting", fetches,
                                "--max-fetches-per-client", 0, "--max-fetches-per-origin", fetches,
                                "--max-idle-per-origin", fetches, *options)
        try:
            cpu = cpu_seconds(daemon.child.pid)
            output = self.children.run(
                [harness.BUILD / "sunproxy", "replay", path, "--socket", daemon.path, "--jobs",
                 CLIENTS,
                 "--json"], self.folder / f"{name}.err", self.folder / f"{name}.json")
            cpu = cpu_seconds(daemon.child.pid) - cpu
            self.look(daemon, name)
        finally:
            self.children.end(daemon.child)
        result, = json.loads(output)["runs"]
        # A hit would mean that the cache was not empty.
        return Run(int(result["requests"] - result["failures"] - result["hits"]),
                   result["total_us"] / 1e6, cpu)

    def _sunproxyd(self, path, name, threads):
        return self._daemon(path, name, threads, 1)

    def _workers(self, path, name, threads):
        return self._daemon(path, name, CLIENTS, threads)


# ---- the table -----------------------------------------------------------------------------------

# What a case of measure_table() has, in this order.
TABLE_OPTIONS = ("--layout", "--lock", "--parts", "--lookups", "--entries", "--threads")


def measure_table(children, folder, case, milliseconds, seed):
    """Operations of cache/table per second of CPU time, which other load on the machine hardly
    changes; see tests/bench/table.py for all of it."""
    name = "-".join(map(str, ("table", *case[:5], seed)))
    options = [word for pair in zip(TABLE_OPTIONS, case) for word in pair]
    output = children.run([harness.BUILD / "tests/bench/table", *options, "--milliseconds",
                           milliseconds], folder / f"{name}.err", folder / f"{name}.json")
    return 1e9 / json.loads(output)["cpu_ns"]


# ---- the list ------------------------------------------------------------------------------------

def measure_list(children, folder, lock, threads, operations, seed):
    """Seconds of wall time for all operations on a list of 1,000 keys
    (tests/bench/list_bench.h)."""
    name = f"list-{lock}-{threads}-{seed}"
    output = children.run([harness.BUILD / "tests/bench/list", "--lock", lock, "--threads", threads,
                           "--operations", operations, "--seed", seed], folder / f"{name}.err",
                          folder / f"{name}.json")
    return json.loads(output)["seconds"]
