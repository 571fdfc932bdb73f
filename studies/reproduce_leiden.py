"""The bachelor thesis "Proxy Caching in Accenture's Employee Evolution Tree Project" (Leiden),
repeated over HTTP: a proxy cache before a REST backend whose middleware controls it by entity tags.

The thesis's cache sends every GET to the backend, with the entity tag of what it has, and serves
that if the answer is 304. sunproxyd does this with responses that have Cache-Control: no-cache. So
every hit here is a validated one, as there. leiden_service.py has the backend and the middleware,
leiden_model.py the endpoints.

With several caches a request reaches one of them, which forwards it to the one that the hash of the
path picks. sunproxyd has no such pool, so the two steps are two processes: the clients send what
the first cache has to that, and what another has to a sunproxyd that stores nothing and forwards to
it.

Figures 6 to 11 are images that the text of the thesis does not have; what it states of them is
repeated. Their numbers of requests and threads are given where the text does: 15,000 requests for
figures 9 to 11, 4 threads for figure 11.
"""

import collections
import http.client
import json
import re
import sys

import harness
import leiden_service

POLICIES = ["lru", "lfu", "gds", "gdsf", "tinylfu"]
FULL_MB = 2500   # 2.5 GB: the cache of all experiments but the last
BACKEND = "backend"

# One run: a policy or BACKEND (no cache), megabytes of each cache, requests, clients, caches, and
# seconds that the service takes to generate a response.
Cell = collections.namedtuple("Cell", "policy megabytes requests clients caches generate")
# counts: the numbers of requests after which figures 6 to 8 have a point; threads: those of figures
# 9 and 10;
# megabytes: sizes of figure 11; requests of figures 9 to 11; generate: seconds of an expensive
# response; latency: seconds of each response of the backend; seeds of the repeated runs; runs at a
# time of which times are compared.
Scale = collections.namedtuple("Scale", "policies counts threads caches megabytes requests "
                               "generate latency seeds at_once smoke")
FULL = Scale(POLICIES, [500, 1000, 1500], [4, 16], [1, 2, 3], [1, 3, 7], 15000, 0.005, 0.0005,
             [1, 2, 3], 1, False)
SMOKE = Scale(["lru", "lfu", "tinylfu"], [40, 80], [2, 4], [1, 2, 3], [0.1, 1], 120, 0.002, 0.0005,
              [1], 3, True)
THREADS = 4     # of figure 11
AT_ONCE = 2     # of figure 11, whose times are not used
EXPENSIVE_REQUESTS = 1000

# Of a run: leiden_load.py's tallies and, in `after`, its sums by number of requests; what the
# middleware counted; evictions of all caches.
Run = collections.namedtuple("Run", "tallies after middleware evictions")
# runs: {Cell: [Run by seed]}; trace: [(request, Cache-Status, what the middleware counted)] of
# figures 3 to 5.
Result = collections.namedtuple("Result", "scale runs trace")


def request_cell(scale, policy):
    """Figures 6, 7 and 8."""
    return Cell(policy, FULL_MB, scale.counts[-1], 1, 1, 0)


def thread_cell(scale, policy, threads, caches=1):
    """Figures 9 and 10."""
    return Cell(policy, FULL_MB, scale.requests, threads, caches, 0)


def size_cell(scale, policy, megabytes):
    """Figure 11."""
    return Cell(policy, megabytes, scale.requests, THREADS, 1, 0)


def expensive_cell(scale, policy):
    """Section 6, second scenario."""
    return Cell(policy, FULL_MB, min(EXPENSIVE_REQUESTS, scale.requests), 1, 1, scale.generate)


def timed_cells(scale):
    """Those whose times are compared, next to each other where they are."""
    names = [*scale.policies, BACKEND]
    cells = [request_cell(scale, name) for name in names]
    cells += [expensive_cell(scale, name) for name in ("lru", BACKEND)]
    for threads in scale.threads:
        cells += [thread_cell(scale, "lru", threads, caches) for caches in scale.caches[1:]]
        cells += [thread_cell(scale, name, threads) for name in names]
    return cells


def size_cells(scale):
    return [size_cell(scale, policy, size) for policy in scale.policies for size in scale.megabytes]


class Study:
    def __init__(self, children, out, scale):
        self.children, self.out, self.scale = children, out, scale

    def cache(self, folder, name, port, *options):
        return harness.ReverseProxy(self.children, folder, name, port, "--max-page", "1M", *options)

    turns = ()  # an option of the clients

    def start(self, folder, cell, seed, latency):
        """(the backend, the caches, the ports of the caches by place, the forwarders)"""
        service = harness.Service(self.children, folder, "service", "leiden_service.py", latency,
                                  cell.generate)
        if cell.policy == BACKEND:
            return service, [], [service.port], []
        caches = [self.cache(folder, str(number), service.port, "--policy", cell.policy, "--seed",
                             seed,
                             "--capacity-bytes", int(cell.megabytes * 10 ** 6))
                  for number in range(cell.caches)]
        forwarders = [harness.ReverseProxy(self.children, folder, f"forward-{number}", cache.port,
                                           "--max-page", 1)
                      for number, cache in enumerate(caches[1:], 1)]
        return service, caches, [caches[0].port, *(one.port for one in forwarders)], forwarders

    def run(self, cell, seed, latency):
        name = "-".join(str(part) for part in (*cell, seed))
        folder = self.out / name
        folder.mkdir()
        service, caches, ports, forwarders = self.start(folder, cell, seed, latency)
        counts = [count for count in self.scale.counts if count < cell.requests] + [cell.requests]
        text = self.children.run(
            [sys.executable, harness.TOP / "studies/leiden_load.py", *self.turns, cell.requests,
             seed, cell.clients,
             ",".join(map(str, counts)), *ports], folder / "load.log", folder / "load.json")
        found = json.loads(text)
        middleware = json.loads(self.get(service.port, leiden_service.COUNTS)[1])
        evictions = sum(count_evictions(cache.metrics()) for cache in caches)
        for child in (*forwarders, *caches, service):
            self.children.end(child.child)
        return Run({key: value for key, value in found.items() if key != "after"}, found["after"],
                   middleware,
                   evictions)

    @staticmethod
    def get(port, path, method="GET"):
        """(Cache-Status, body)"""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request(method, path)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.getheader("Cache-Status", ""), body

    def run_trace(self):
        """The example of section 3.4, on endpoints that the write does and does not change."""
        folder = self.out / "trace"
        folder.mkdir()
        service, caches, _, _ = self.start(folder, request_cell(self.scale, "lru"), 1, 0)
        found = []
        for method, path in (("GET", "/paths/3"), ("GET", "/paths/4"), ("GET", "/skills/4"),
                             ("GET", "/paths/3"),
                             ("PUT", "/paths/3"), ("GET", "/paths/3"), ("GET", "/paths/4"),
                             ("GET", "/skills/4")):
            before = json.loads(self.get(service.port, leiden_service.COUNTS)[1])
            status = self.get(caches[0].port, path, method)[0]
            after = json.loads(self.get(service.port, leiden_service.COUNTS)[1])
            found.append((f"{method} {path}", status,
                          next((how for how in after if after[how] > before[how]), "")))
        for child in (*caches, service):
            self.children.end(child.child)
        return found


def count_evictions(metrics):
    return sum(int(float(value)) for value
               in re.findall(r"(?m)^sunproxy_cache_evictions_total(?:\{[^}]*\})? (\S+)$", metrics))


def perform(children, out, scale):
    out.mkdir()
    study = Study(children, out, scale)
    trace = study.run_trace()
    # Runs whose times are compared take turns, one at a time, in an order that each seed reverses,
    # so that a machine that becomes slower or faster favours none.
    wanted = [(cell, seed, scale.latency) for number, seed in enumerate(scale.seeds)
              for cell in timed_cells(scale)[::-1 if number % 2 else 1]]
    results = harness.run_all(study.run, wanted, scale.at_once)
    results.update(harness.run_all(study.run, [(cell, seed, 0) for cell in size_cells(scale)
                                               for seed in scale.seeds],
                                   max(AT_ONCE, scale.at_once)))
    runs = collections.defaultdict(list)
    for (cell, seed, _), run in sorted(results.items(), key=lambda item: item[0][1]):
        runs[cell].append(run)
    failures = sum(run.tallies["failures"] for some in runs.values() for run in some)
    if failures:
        raise harness.Failure(f"{failures} requests failed; see {out}")
    return Result(scale, dict(runs), trace)
