"""The bachelor thesis "Proxy Caching in Accenture's Employee Evolution Tree Project" (Leiden), its
question on several caches, with the means of sunproxyd for it.

The thesis distributes a cache by forwarding each request to the one that the hash of its path
picks. Here clients send their requests to each daemon in turn. Daemons that are each other's peers
(--peers) ask the owner of a URL before the service; daemons with a shared tier (--shared) ask
memcached. "alone" are daemons that know nothing of each other. Service, endpoints and requests are
those of reproduce_leiden.py.
"""

import collections
import json
import shutil
import socket
import time

import harness
import reproduce_leiden as leiden

# One run: how the caches share; the rest is leiden.Cell's.
Cell = collections.namedtuple("Cell", "sharing megabytes requests clients caches generate policy",
                              defaults=(0, "lru"))
# counts, latency and seeds as leiden.Scale has them; threads: clients; caches: numbers of them;
# small: megabytes of each cache where memory is short.
Scale = collections.namedtuple("Scale", "counts threads caches requests small latency seeds smoke")
FULL = Scale([], [4, 16], [1, 2, 3], 1500, 0.2, 0.0005, [1, 2, 3], False)
SMOKE = Scale([], [2, 4], [1, 2, 3], 90, 0.1, 0.0005, [1], True)
ALONE, PEERS, SHARED = "alone", "peers", "shared"
KEY = "a key of more than sixteen bytes\n"

Result = collections.namedtuple("Result", "scale runs sharings")


def cell(scale, sharing, threads, caches, megabytes=leiden.FULL_MB):
    return Cell(sharing, megabytes, scale.requests, threads, caches)


def one_cache(scale, threads, megabytes=leiden.FULL_MB):
    return cell(scale, ALONE, threads, 1, megabytes)


def cells(scale, sharings):
    few, most = scale.threads[0], scale.caches[-1]
    wanted = [cell(scale, sharing, threads, caches) for threads in scale.threads
              for sharing in sharings for caches in scale.caches[1:]]
    wanted += [one_cache(scale, threads) for threads in scale.threads]
    wanted += [cell(scale, ALONE, few, most), one_cache(scale, few, scale.small)]
    wanted += [cell(scale, sharing, few, most, scale.small) for sharing in (ALONE, PEERS)]
    return wanted


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


class Memcached:
    def __init__(self, children, folder):
        self.port, log = free_port(), folder / "memcached.log"
        self.child = children.start([shutil.which("memcached"), "-l", "127.0.0.1", "-p", self.port,
                                     "-U", 0, "-u", "nobody"], log, die_with_us=True)
        harness.wait_for(self._answers, self.child, "memcached", log)

    def _answers(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0


class Study(leiden.Study):
    turns = ("--turns",)

    def start(self, folder, cell, seed, latency):
        service = harness.Service(self.children, folder, "service", "leiden_service.py", latency,
                                  cell.generate)
        key = folder / "key"
        key.write_text(KEY)
        key.chmod(0o600)
        servers = [Memcached(self.children, folder)] if cell.sharing == SHARED else []
        urls = [f"http://127.0.0.1:{free_port()}" for _ in range(cell.caches)]
        caches = []
        for number, url in enumerate(urls):
            options = {ALONE: [],
                       PEERS: ["--http", url[len("http://"):], "--peers", ",".join(urls),
                               "--peer-self", url, "--peer-key-file", key],
                       SHARED: ["--shared", ",".join(f"memcached://127.0.0.1:{one.port}"
                                                     for one in servers),
                                "--shared-key-file", key]}[cell.sharing]
            caches.append(self.cache(folder, str(number), service.port, "--policy", cell.policy,
                                     "--seed", seed, "--capacity-bytes",
                                     int(cell.megabytes * 10 ** 6), *options))
        if cell.sharing == PEERS:
            self.await_peers(folder, caches)
        return service, caches, [cache.port for cache in caches], servers

    def await_peers(self, folder, caches):
        """Until each daemon has told each other one that it is there."""
        end, look = time.monotonic() + harness.READY_SECONDS, 0
        for number in range(len(caches)):
            while not self.has_peers(folder, number, look):
                look += 1
                if time.monotonic() > end:
                    raise harness.Failure(f"the peers are not up; see {folder}")
                time.sleep(0.05)

    def has_peers(self, folder, number, look):
        text = self.children.run([harness.BUILD / "sunproxy", "origin", "--json", "--socket",
                                  folder / f"{number}.sock"], folder / "peers.log",
                                 folder / f"peers-{number}-{look}.json")
        return {member["state"] for member in json.loads(text)
                if member["row"] == "peers"} <= {"up", "this daemon"}


def perform(children, out, scale):
    out.mkdir()
    sharings = [PEERS] + ([SHARED] if shutil.which("memcached") else [])
    study = Study(children, out, scale)
    # In turns, in an order that each seed reverses.
    wanted = [(one, seed, scale.latency) for number, seed in enumerate(scale.seeds)
              for one in cells(scale, sharings)[::-1 if number % 2 else 1]]
    found = harness.run_all(study.run, wanted, 1)
    runs = collections.defaultdict(list)
    for (one, _, _), run in sorted(found.items(), key=lambda item: item[0][1]):
        runs[one].append(run)
    failures = sum(run.tallies["failures"] for some in runs.values() for run in some)
    if failures:
        raise harness.Failure(f"{failures} requests failed; see {out}")
    return Result(scale, dict(runs), sharings)
