#!/usr/bin/env python3
"""Repeats the evaluations of published studies, and states which of their claims hold.

Started by studies/reproduce.sh. Each study has modules of its own: what it runs, its table, and its
part of the page. A paper's table is one list of rows (paper_table.py), whose verdicts are those of
verdict.py; the page (reproduce_page.py), the JSON and docs/REPRODUCTION.md (document.py) have it
from there. The Sun RPC paper and the Thrift study are replays over RPC (replays.py), the others
load over HTTP or fetch in many threads.
"""

import argparse
import collections
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import textwrap
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "scripts"))
import document
import harness
import paper_table
import reproduce_cluster
import reproduce_cluster_page
import reproduce_cluster_rows
import reproduce_geni
import reproduce_geni_page
import reproduce_geni_rows
import reproduce_leiden
import reproduce_leiden_page
import reproduce_leiden_rows
import reproduce_page
import reproduce_parallel
import reproduce_parallel_rows
import reproduce_parallel_page
import reproduce_stored
import reproduce_stored_page
import reproduce_stored_rows
import reproduce_sunrpc
import reproduce_sunrpc_rows
import reproduce_sunrpc_page
import reproduce_thrift
import reproduce_thrift_rows
import reproduce_thrift_page

OUT = pathlib.Path("build/reproduce")
MINUTES = 30  # of one study, on a busy machine

# The studies. `how` is what it does, in a few words. perform(children, folder, scale) gives the
# result, paper(result, seconds) its table (paper_table.Paper); section(result) and as_json(result)
# are what the page and the JSON have of it beside the table.
OVER_HTTP = "over HTTP, against origins with a limited link"
Study = collections.namedtuple("Study", "how full smoke perform paper section as_json")
ALL_STUDIES = {
    "thrift": Study("live over RPC, two workloads", reproduce_thrift.FULL, reproduce_thrift.SMOKE,
                    reproduce_thrift.perform, reproduce_thrift_rows.paper,
                    reproduce_thrift_page.section,
                    reproduce_thrift_page.as_json),
    "sunrpc": Study("live over RPC, two data sets", reproduce_sunrpc.FULL, reproduce_sunrpc.SMOKE,
                    reproduce_sunrpc.perform, reproduce_sunrpc_rows.paper,
                    reproduce_sunrpc_page.section,
                    reproduce_sunrpc_page.as_json),
    "geni": Study(OVER_HTTP, reproduce_geni.FULL, reproduce_geni.SMOKE, reproduce_geni.perform,
                  reproduce_geni_rows.paper, reproduce_geni_page.section,
                  reproduce_geni_page.as_json),
    "leiden": Study("over HTTP, before a REST service", reproduce_leiden.FULL,
                    reproduce_leiden.SMOKE, reproduce_leiden.perform,
                    reproduce_leiden_rows.paper, reproduce_leiden_page.section,
                    reproduce_leiden_page.as_json),
    "parallel": Study("threads and fetches in flight, against an origin with a scaled latency",
                      reproduce_parallel.FULL, reproduce_parallel.SMOKE, reproduce_parallel.perform,
                      reproduce_parallel_rows.paper,
                      reproduce_parallel_page.section, reproduce_parallel_page.as_json),
    "cluster": Study("over HTTP, several daemons before a REST service", reproduce_cluster.FULL,
                     reproduce_cluster.SMOKE, reproduce_cluster.perform,
                     reproduce_cluster_rows.paper, reproduce_cluster_page.section,
                     reproduce_cluster_page.as_json),
    "stored": Study("threads and fetches in flight, with pages on disk", reproduce_stored.FULL,
                    reproduce_stored.SMOKE, reproduce_stored.perform, reproduce_stored_rows.paper,
                    reproduce_stored_page.section, reproduce_stored_page.as_json),
}

# ---- what is printed -----------------------------------------------------------------------------

def print_paper(paper):
    """The table of a paper, as wide as the terminal."""
    width = min(140, max(80, shutil.get_terminal_size((100, 24)).columns))
    left = (width - 16) // 2
    print(f"\n{paper.title}\n{'-' * width}")
    for row in paper.rows:
        about = textwrap.wrap(f"{paper_table.place_of(row)}: {row.states}", left - 2)
        found = textwrap.wrap(row.measured, width - 16 - left)
        labels = textwrap.wrap(row.verdict.value, 15)
        for a, label, b in itertools.zip_longest(about, labels, found, fillvalue=""):
            print(f"{a:{left}}{label:16}{b}".rstrip())
        print()
    print(paper_table.tally(paper.rows))


def version():
    """Of the daemon, as it states it."""
    return subprocess.run([harness.BUILD / "sunproxyd", "--version"], stdout=subprocess.PIPE,
                          check=True).stdout.decode().splitlines()[0]


def bound(minutes, what):
    """Ends the work with a Failure after this many minutes; 0 lifts the bound."""
    def end(*_):
        raise harness.Failure(f"{what} took more than {minutes:g} minutes, the limit of --minutes")

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, 60 * minutes)


def reproduce(children, out, wanted, smoke, to_document, minutes):
    if smoke and to_document:
        raise harness.Failure(f"{to_document} is not written by a smoke test")
    started, load = time.monotonic(), os.getloadavg()[0]
    papers, results = [], {}
    for name, study in ALL_STUDIES.items():
        if name in wanted:
            print(f"{name}: {study.how}")
            begun = time.monotonic()
            bound(minutes, name)
            results[name] = study.perform(children, out / name, study.smoke if smoke
                                          else study.full)
            papers.append(study.paper(results[name], time.monotonic() - begun))
    bound(0, "")
    for paper in papers:
        print_paper(paper)
    print()
    run = reproduce_page.Run(papers, smoke, time.monotonic() - started, version(), load)
    page, data = out / "reproduce.html", out / "reproduce.json"
    page.write_text(reproduce_page.page(
        run, {name: ALL_STUDIES[name].section(result) for name, result in results.items()}))
    data.write_text(json.dumps(reproduce_page.as_json(
        run, {name: ALL_STUDIES[name].as_json(result) for name, result in results.items()}),
                               indent=1))
    if smoke:
        print("A smoke test: nothing here is a result.")
    print(f"Took {run.seconds:.0f} s. The page, with tables and figures: {page}\nThe numbers: "
          f"{data}")
    if to_document:
        write_document(to_document, run)


def write_document(path, run):
    """Renews the sections of the papers that were repeated."""
    text = path.read_text() if path.exists() else ""
    path.write_text(document.update(text, run.papers, reproduce_page.circumstances(run)))
    print(f"The tables of the papers: {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=MINUTES, metavar="N",
                        help=f"end with a failure if one study takes longer ({MINUTES})")
    parser.add_argument("--out", type=pathlib.Path, default=OUT, metavar="DIR",
                        help=f"where page and logs go; empty, or in build/ ({OUT})")
    parser.add_argument("--document", type=pathlib.Path, metavar="FILE",
                        help="renew the tables of this document, too (docs/REPRODUCTION.md)")
    parser.add_argument("--smoke", action="store_true",
                        help="few requests, sizes and runs: shows that it works, not what holds")
    parser.add_argument("--study", action="append", choices=list(ALL_STUDIES),
                        help="only this; may be repeated")
    args = parser.parse_args()
    return harness.perform("reproduce", args.out, lambda children: reproduce(
        children, args.out, args.study or list(ALL_STUDIES), args.smoke, args.document,
        args.minutes))


if __name__ == "__main__":
    sys.exit(main())
