"""Replays over RPC: an origin for each trace, and a daemon with an empty cache for each replay."""

import collections
import json

import harness

# A trace: its path, the table of sizes for origin and simulator (None: they are drawn), options of
# the daemon.
Trace = collections.namedtuple("Trace", "path sizes options")

# A replay: what the log says of each request (hit, miss, evicted, ...), its URL, and its time in
# microseconds.
Run = collections.namedtuple("Run", "capacity requests hits hit_ratio byte_hit_ratio mean_us "
                             "outcomes urls us")

# Replays of a trace: none is [Run] without a cache, runs is {(policy, size): [Run]}. Runs with the
# same number have the same seed. `sizes` are per cent of the URLs, or bytes.
Part = collections.namedtuple("Part", "name policies sizes none runs")


def read_log(path):
    """The outcomes, the URLs and the times."""
    head, *lines = [line.split("\t") for line in path.read_text(errors="replace").splitlines()]
    outcome, url, us = (head.index(name) for name in ("outcome", "url", "us"))
    return [line[outcome] for line in lines], [line[url] for line in lines], [int(line[us])
                                                                              for line in lines]


class Bench:
    """The traces {name: Trace}, an origin for each, and the replays."""

    def __init__(self, children, out, traces, options, origin_options):
        self.children, self.out, self.traces, self.options = children, out, traces, options
        self.origins = {}
        for name, trace in traces.items():
            sizes = ["--sizes", trace.sizes] if trace.sizes else []
            self.origins[name] = harness.Origin(children, out / name, *origin_options, *sizes)

    def run(self, trace, policy, capacity, seed):
        """One replay against a daemon of its own; `capacity` as replay takes it, or None."""
        folder = self.out / trace
        name = "-".join(str(part) for part in (policy.split(":")[0], capacity or "0", seed))
        daemon = harness.Daemon(self.children, folder, name, self.origins[trace], "--seed", seed,
                                *self.traces[trace].options)
        try:
            result = harness.replay(self.children, daemon, self.traces[trace].path, policy,
                                    capacity, folder, name,
                                    *self.options)
        finally:
            self.children.end(daemon.child)
        one = result["runs"][0]
        return Run(result["capacity_urls"], one["requests"], one["hits"], one["hit_ratio"],
                   one["byte_hit_ratio"],
                   one["mean_us"], *read_log(folder / f"{name}.log"))

    def run_all(self, wanted, at_once):
        """{arguments: Run} of run(*arguments) for all of them."""
        return harness.run_all(self.run, wanted, at_once)

    def close(self):
        for origin in self.origins.values():
            self.children.end(origin.child)


def simulate(children, out, name, trace, policies, capacities, *options):
    """{(policy, capacity): result} of the simulator, as its JSON has it; `capacities` as it takes
    them."""
    sizes = ["--sizes", trace.sizes] if trace.sizes and trace.sizes != trace.path else []
    argv = [harness.BUILD / "sunproxy", "simulate", "--json", "--policy", ",".join(policies),
            "--capacity",
            ",".join(map(str, capacities)), *sizes, *options, trace.path]
    text = children.run(argv, out / f"{name}.err", out / f"{name}.json")
    one, = json.loads(text)["traces"]
    return {(result["policy"], result["capacity_urls"] or result["capacity_bytes"]): result
            for result in one["results"]}


# ---- figures of runs -----------------------------------------------------------------------------

def mean(values):
    values = list(values)
    return sum(values) / len(values)


def times(runs):
    """Mean access times in milliseconds, one a run."""
    return [run.mean_us / 1000 for run in runs]


def ratios(runs):
    """Hit ratios in per cent, one a run."""
    return [100 * run.hit_ratio for run in runs]


def run_as_json(runs):
    return [{name: getattr(run, name) for name in ("hit_ratio", "byte_hit_ratio", "mean_us")}
            for run in runs]


def part_as_json(part, size_name):
    return {"no_cache": run_as_json(part.none),
            "runs": [{"policy": policy, size_name: size, "runs": run_as_json(runs)}
                     for (policy, size), runs in part.runs.items()]}
