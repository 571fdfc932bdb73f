"""The study of parallelism with its pages on disk, as the paper's server has them.

After "Exploiting Parallelism in a Proxy Server", whose server writes each page that it fetches to a
file. Here sunproxyd writes each to its store at once (--store, --store-admit all). It has the place
of the thread pool in the rows of reproduce_parallel_rows.py; asyncio, which keeps nothing, is the
other contestant. URLs, latencies and sizes are those of reproduce_parallel.py.

Beside that a daemon that starts again with such a store serves all URLs from it, one after the
other: the paper takes a page from disk to be an order of magnitude faster than from the web.
"""

import collections
import itertools
import json
import time

import harness
import reproduce_parallel as parallel
import reproduce_parallel_runs

# traces, threads, repeats, latency, real_latency, real_trace and weak as reproduce_parallel.Extent
# has them; urls: that are read from disk.
Extent = collections.namedtuple("Extent", "traces threads repeats latency real_latency real_trace "
                                "weak urls")
FULL = Extent([328, 656], [1, 2, 4, 8, 16, 32, 64], 3, "lognormal:28ms:0.5", "lognormal:440ms:0.5",
              656, ((328, 32), (656, 64)), 656)
SMOKE = Extent([8, 16], [1, 8, 16, 64], 2, "lognormal:1ms:0.5", "lognormal:5ms:0.5", 16,
               ((8, 16), (16, 64)), 8)

# At most this many fetches are in flight in all runs that take place at once.
IN_FLIGHT = 64

# study is a reproduce_parallel.Study in which the pool is sunproxyd with a store; from_disk and
# from_memory: seconds of each request, by run; written: (pages written, requests) of all runs.
Result = collections.namedtuple("Result", "study from_disk from_memory written")


class Contest(reproduce_parallel_runs.Contest):
    def __init__(self, children, folder, origin, python):
        super().__init__(children, folder, origin, python)
        self.contestants["pool"] = self._stored
        self.written = collections.Counter()

    def options(self, name):
        folder = self.folder / f"{name}.store"
        folder.mkdir(exist_ok=True)
        return "--store", folder, "--store-size", "1G", "--store-admit", "all"

    def look(self, daemon, name):
        """Pages that are on disk, once nothing waits to be written."""
        if (self.folder / f"{name}.store").exists():
            self.written[name] = self.await_statistic(daemon, name, "store_writes_written",
                                                      self.count_of(name))

    def count_of(self, name):
        return (self.folder / f"{name}.urls").read_text().count("\n")

    def await_statistic(self, daemon, name, key, value):
        end = time.monotonic() + harness.READY_SECONDS
        for look in itertools.count():
            text = self.children.run([harness.BUILD / "sunproxy", "stat", "--json", "--socket",
                                      daemon.path], self.folder / f"{name}.err",
                                     self.folder / f"{name}-{key}-{look}.json")
            found = json.loads(text)[key]
            if found >= value or time.monotonic() > end:
                return found
            time.sleep(0.01)

    def _stored(self, path, name, threads):
        return self._daemon(path, name, threads, 1, *self.options(name))

    def read(self, count, seed):
        """A daemon that starts again with its store: seconds of a request from disk, and then from
        memory."""
        name = f"read-{count}-{seed}"
        path = self.folder / f"{name}.urls"
        path.write_text("".join(url + "\n" for url in self.urls(count)))
        self._stored(path, name, 64)
        daemon = harness.Daemon(self.children, self.folder, f"{name}-again", self.origin,
                                *self.options(name))
        try:
            self.await_statistic(daemon, name, "store_loaded", 1)
            return [self._hits(daemon, path, f"{name}-{place}", count)
                    for place in ("disk", "memory")]
        finally:
            self.children.end(daemon.child)

    def _hits(self, daemon, path, name, count):
        output = self.children.run([harness.BUILD / "sunproxy", "replay", path, "--socket",
                                    daemon.path, "--json"], self.folder / f"{name}.err",
                                   self.folder / f"{name}.json")
        result, = json.loads(output)["runs"]
        if result["hits"] != count:
            raise harness.Failure(f"{count - result['hits']} of {count} pages were not there; see "
                                  f"{self.folder}/{name}.*")
        return result["total_us"] / 1e6 / count


def start_contest(children, folder, latency, extent, python):
    origin = parallel.start_origin(children, folder, latency, extent)
    return Contest(children, folder, origin, python)


def perform(children, folder, extent):
    python, _ = reproduce_parallel_runs.find_python()
    scaled = start_contest(children, folder / "scaled", extent.latency, extent, python)
    runs = collections.defaultdict(list)
    for threads in extent.threads:
        wanted = [(contestant, trace, threads, seed) for seed in range(extent.repeats)
                  for trace in sorted(extent.traces, reverse=True)
                  for contestant in ("pool", "executor")]
        found = harness.run_all(scaled.run, wanted, max(1, IN_FLIGHT // threads))
        for contestant, trace, _, seed in wanted:
            runs[contestant, trace, threads].append(found[contestant, trace, threads, seed])
    web = start_contest(children, folder / "real", extent.real_latency, extent, python)
    names = ["pool", "sunproxyd", "executor"]
    wanted = [(name, extent.real_trace, extent.threads[-1], seed)
              for seed in range(extent.repeats) for name in names]
    found = harness.run_all(web.run, wanted, 3)
    real = {name: [found[one] for one in wanted if one[0] == name] for name in names}
    reads = [web.read(extent.urls, seed) for seed in range(extent.repeats)]
    written = scaled.written + web.written
    asked = sum(contest.count_of(name) for contest in (scaled, web) for name in contest.written)
    return Result(parallel.Study(extent, names, dict(runs), real, {}, {}, None, 0),
                  [disk for disk, _ in reads], [memory for _, memory in reads],
                  (written.total(), asked))
