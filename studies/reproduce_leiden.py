"""The Leiden study, repeated over HTTP: caches as reverse proxies before a REST service.

The thesis's text and figures are not at hand; known are its subject, its extent (1,000 to 15,000 requests
by Zipf's law, 80 % reads and 20 % writes, 1 to 16 clients, 1 to 3 caches, five policies) and its
questions. The service's resources, their sizes and the link are chosen here (leiden_model.py), and so are
all criteria (reproduce_leiden_claims.py).

How writes invalidate (MODES). With several caches, reads go to them in turn and writes through the first
one. That one invalidates by itself; the service purges pools in the others before it answers a write, so
that no client has the answer to a write while a cache still uses what the write made invalid.
"""

import collections
import json
import statistics
import sys
import time

import harness
import leiden_model as model

POLICIES = ["lru", "lfu", "gds", "gdsf", "tinylfu"]
UNBOUNDED = 64 << 20  # bytes of a cache that evicts nothing
ENOUGH = 0.9          # of the hit ratio of an unbounded cache

# By name: options of the daemons, how the service purges, and in which caches.
Mode = collections.namedtuple("Mode", "rules purge caches text")
MODES = {
    "url": Mode(False, "tags", "none", "the written URL is removed, in the cache that the write passes (RFC 9111)"),
    "tags": Mode(True, "tags", "others", "rules for tags and writes remove the pools there, and the service purges "
                 "these tags in the other caches"),
    "tags, one cache": Mode(True, "tags", "none", "rules for tags and writes alone: the other caches get no purge"),
    "validate": Mode(False, "soft", "all", "the service purges the pools softly in all caches: what has expired is "
                     "validated by its entity tag"),
}

# What is run: a policy, its capacity in per cent of all bytes (None: unbounded), requests, clients,
# caches, and a mode.
Cell = collections.namedtuple("Cell", "policy share requests clients caches mode")
# The extent; seconds of latency, bytes a second of the link, seeds of the repeated runs.
Scale = collections.namedtuple("Scale", "requests clients caches shares base latency link seeds smoke")
FULL = Scale([1000, 3000, 7000, 15000], [1, 4, 8, 16], [1, 2, 3], [5, 10, 20, 30, 50, 70],
             Cell("lru", None, 3000, 8, 1, "validate"), 0.002, 12_500_000, [1, 2, 3], False)
SMOKE = Scale([200, 400], [1, 4], [1, 2], [5, 30], Cell("lru", None, 400, 4, 1, "validate"), 0.001,
              12_500_000, [1, 2], True)
AT_ONCE = 4

# Over the runs of a cell, in order of their seeds.
Spread = collections.namedtuple("Spread", "mean sd values")
# Of the runs of a cell: Spreads of ratios and times; sums of stale answers, failures, reads.
Measured = collections.namedtuple("Measured", "runs object_ratio fresh_ratio byte_ratio mean_us stale failures reads")
# cells: {Cell: Measured}.
Result = collections.namedtuple("Result", "scale cells seconds")


def request_cells(scale):
    return [scale.base._replace(requests=count) for count in scale.requests]


def client_cells(scale):
    return [scale.base._replace(clients=count) for count in scale.clients]


def size_cells(scale, policy):
    return [scale.base._replace(policy=policy, share=share) for share in scale.shares]


def mode_cells(scale, mode):
    return [scale.base._replace(caches=count, mode=mode) for count in scale.caches
            if count > 1 or mode != "tags, one cache"]


def all_cells(scale):
    """The longest ones first."""
    cells = {*request_cells(scale), *client_cells(scale), scale.base}
    for policy in POLICIES:
        cells.update(size_cells(scale, policy))
    for mode in MODES:
        cells.update(mode_cells(scale, mode))
    return sorted(cells, key=lambda cell: (-cell.requests / min(cell.clients, 4), str(cell)))


def capacity(cell):
    """Of each cache, in bytes of bodies."""
    if cell.share is None:
        return UNBOUNDED
    return sum(model.make_sizes().values()) * cell.share // 100


class Study:
    def __init__(self, children, out, scale):
        self.children, self.out, self.scale = children, out, scale

    def run(self, cell, seed):
        """What the clients of one run counted."""
        name = "-".join(str(part).replace(" ", "_") for part in (*cell, seed))
        folder = self.out / name
        folder.mkdir()
        mode = MODES[cell.mode]
        sockets = [folder / f"{number}.http" for number in range(cell.caches)]
        purged = {"none": [], "others": sockets[1:], "all": sockets}[mode.caches]
        service = harness.Service(self.children, folder, "service", "leiden_service.py", self.scale.latency,
                                  self.scale.link, mode.purge, *purged)
        rules = ["--tag-rule", model.TAG_RULE, "--write-rule", model.WRITE_RULE] if mode.rules else []
        caches = [harness.ReverseProxy(
            self.children, folder, str(number), service.port, "--policy", cell.policy, "--seed", seed,
            "--capacity-bytes", capacity(cell), "--count-bytes", "body", "--max-page", model.LARGEST, *rules)
            for number in range(cell.caches)]
        ports = [cache.port for cache in caches]
        text = self.children.run(
            [sys.executable, harness.TOP / "studies/leiden_load.py", cell.requests, seed, cell.clients, *ports],
            folder / "load.log", folder / "load.json")
        for child in (*caches, service):
            self.children.end(child.child)
        return json.loads(text)


def spread(values):
    return Spread(statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0, values)


def measure(runs):
    def ratio(*names, of="reads"):
        return spread([sum(run[name] for name in names) / run[of] for run in runs])

    def total(name):
        return sum(run[name] for run in runs)

    return Measured(len(runs), ratio("fresh", "validated"), ratio("fresh"), ratio("cache_bytes", of="bytes"),
                    spread([run["mean_us"] for run in runs]), total("stale"), total("failures"), total("reads"))


def perform(children, out, scale):
    begun = time.monotonic()
    out.mkdir()
    study = Study(children, out, scale)
    cells = all_cells(scale)
    results = harness.run_all(study.run, [(cell, seed) for cell in cells for seed in scale.seeds], AT_ONCE)
    measured = {cell: measure([results[cell, seed] for seed in scale.seeds]) for cell in cells}
    failures = sum(one.failures for one in measured.values())
    if failures:
        raise harness.Failure(f"{failures} requests to the caches failed; see {out}")
    return Result(scale, measured, time.monotonic() - begun)
