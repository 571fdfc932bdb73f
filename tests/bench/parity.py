#!/usr/bin/env python3
"""Compare the misses of the simulator with those of libCacheSim, in pages and in bytes.

Each trace is converted to oracleGeneral and simulated by both, at three capacities: 0.1, 1 and 10 %
of the distinct pages, and of their bytes. Without a trace one is generated: 2 million requests by
Zipf's law for 100,000 pages, whose sizes are log-normal with a mean of 10 kB.

Compared are the policies whose rule is libCacheSim's. libCacheSim passes over requests of size 0,
so such sizes are set to 1 for both. A cached page keeps the size it was inserted with here, while
libCacheSim takes over a new one: where sizes change within a trace, misses in bytes may differ. The
number of such pages is printed, and --first-sizes removes such changes.

libCacheSim comes from PyPI into build/bench/venv. Exit status: 0 when all misses are equal, 1 when
some are not or after an error, 77 without libCacheSim.
"""

import argparse
import json
import os
import struct
import sys
import tempfile

import sim

SHARES = (0.001, 0.01, 0.1)
LEAST = 20  # libCacheSim's S3-FIFO refuses a page as large as its small queue, a tenth
RECORD = struct.Struct("<IQIq")

THEIR_MISSES = """
import json, sys
import libcachesim

path, in_bytes = sys.argv[1], sys.argv[2] == "bytes"
theirs_missed = {}
for row in sys.argv[3:]:
    name, capacity = row.split("=")
    reader = libcachesim.TraceReader(path, libcachesim.TraceType.ORACLE_GENERAL_TRACE,
                                     libcachesim.ReaderInitParam(ignore_obj_size=not in_bytes))
    missed, _ = getattr(libcachesim, name)(int(capacity)).process_trace(reader)
    theirs_missed[row] = round(missed * reader.get_num_of_req())
json.dump(theirs_missed, sys.stdout)
"""


def prepare(path, first_sizes):
    """Sets sizes of 0 to 1. Requests, distinct pages, their bytes, pages whose size changes."""
    sizes, changed, requests = {}, set(), 0
    with open(path, "r+b") as f:
        while block := f.read(RECORD.size * 65536):
            records = bytearray()
            for when, page, size, following in RECORD.iter_unpack(block):
                size = max(size, 1)
                requests += 1
                if sizes.setdefault(page, size) != size:
                    changed.add(page)
                    if first_sizes:
                        size = sizes[page]
                records += RECORD.pack(when, page, size, following)
            f.seek(-len(block), os.SEEK_CUR)
            f.write(records)
    return requests, len(sizes), sum(sizes.values()), len(changed)


def compare(sunproxy, python, path, unit, capacities):
    """Rows of policy, capacity, our misses and theirs."""
    pairs = [(ours, theirs) for ours, theirs, equal in sim.POLICIES if equal]
    rows = [(ours, theirs, capacity) for ours, theirs in pairs for capacity in capacities]
    keys = [f"{theirs}={capacity}" for _, theirs, capacity in rows]
    theirs_missed = json.loads(sim.run([python, "-c", THEIR_MISSES, path, unit, *keys])[0])
    if unit == "bytes":
        options = ["--capacity", ",".join(f"{c}B" for c in capacities), "--count-bytes",
                   "body"]
    else:
        options = ["--capacity", ",".join(map(str, capacities)), "--ignore-sizes"]
    result = json.loads(sim.run([sunproxy, "simulate", "--json", *options, "--policy",
                                 ",".join(ours for ours, _ in pairs), path])[0])
    key = "capacity_bytes" if unit == "bytes" else "capacity_urls"
    misses = {(r["policy"], r[key]): r["misses"] for r in result["traces"][0]["results"]}
    return [(ours, capacity, misses[ours, capacity], theirs_missed[f"{theirs}={capacity}"])
            for ours, theirs, capacity in rows]


def check_trace(sunproxy, python, trace, path, first_sizes):
    """Prints what differs; how many rows were compared, and how many differ."""
    sim.run([sunproxy, "trace", "convert", "--to", "oracle", "-o", path, trace])
    requests, pages, sizes, changed = prepare(path, first_sizes)
    print(f"{os.path.basename(trace)}: {requests} requests, {pages} pages, {sizes} bytes, "
          f"{changed} pages of changing size")
    compared = different = 0
    for unit, whole in (("pages", pages), ("bytes", sizes)):
        capacities = sorted({max(LEAST, int(whole * share)) for share in SHARES})
        rows = compare(sunproxy, python, path, unit, capacities)
        unequal = [row for row in rows if row[2] != row[3]]
        print(f"  {unit}: {len(rows) - len(unequal)} of {len(rows)} rows equal")
        for policy, capacity, ours, theirs in unequal:
            print(f"    {policy} at {capacity}: {ours}, libCacheSim {theirs}")
        compared += len(rows)
        different += len(unequal)
    return compared, different


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("traces", nargs="*", metavar="TRACE")
    parser.add_argument("--build", default=os.path.join(sim.ROOT, "build", "release"),
                        help="folder with the programs (build/release)")
    parser.add_argument("--first-sizes", action="store_true",
                        help="give each page the size of its first request")
    args = parser.parse_args()
    sunproxy = os.path.join(args.build, "sunproxy")
    python = sim.find_libcachesim()
    if not python:
        return 77
    with tempfile.TemporaryDirectory(prefix="sunproxy-parity-") as folder:
        traces = args.traces
        try:
            if not traces:
                traces = [os.path.join(folder, "zipf.oracleGeneral")]
                sim.run([sunproxy, "trace", "generate", "zipf", "-n", "2000000", "--urls", "100000",
                         "--constant", "0.9", "--seed", "1", "--rate", "10000", "--sizes",
                         "lognormal:10000:1.5", "--to", "oracle", "-o", traces[0]])
            totals = [check_trace(sunproxy, python, trace, os.path.join(folder, "trace.bin"),
                                  args.first_sizes)
                      for trace in traces]
        except (sim.Failure, OSError) as failure:
            print(f"parity: {failure}", file=sys.stderr)
            return 1
    compared, different = map(sum, zip(*totals))
    print(f"{compared - different} of {compared} rows are equal")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
