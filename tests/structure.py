#!/usr/bin/env python3
"""Print what can be counted of the structure of the sources, and hold it to bounds.

  tests/structure.py          make structure

One line for each count: its name, the number, the bound, and what is counted. A change that exceeds a
bound changes the structure first. A change that stays far below one lowers it here.

Exit status: 0; 1 if a bound is exceeded.
"""

import graphlib
import pathlib
import re
import signal
import sys

TOP = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("base", "policies", "http", "metrics", "rules", "cache", "store", "tier", "net", "rpc", "origins", "fetch",
           "proxy", "trace", "sim", "server", "cli", "client", "study")

# Header and name of each struct that a request is described by on the way of a miss.
ON_THE_WAY = (("server/http/http_exchange.h", "http_exchange"), ("proxy/exchange.h", "exchange"),
              ("cache/fill.h", "object_waiter"), ("cache/fill.h", "cache_fill"),
              ("proxy/origin_fill.h", "origin_fill_order"), ("fetch/request.h", "request"),
              ("proxy/filling.h", "origin_fill"), ("proxy/sharing.h", "sharing"),
              ("fetch/fetching.h", "fetch"), ("fetch/transfer.h", "consumer"),
              ("fetch/transfer.h", "transfer"))

COMMENT = re.compile(r"/\*.*?\*/", re.S)
MEMBER = re.compile(r"^\s+(?:_Atomic )?bool ([^;(]+);", re.M)
BIT = re.compile(r"^\s+unsigned ([^;]*: 1\b[^;]*);", re.M)
FLAG = re.compile(r"^\s+\w+ = 1u << \d+,", re.M)
FUNCTION = re.compile(r"^([a-z_]\w*)\([^;{}]*?\)\n\{\n(.*?)^\}", re.M | re.S)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


def lines_of(*paths):
    return sum(len((TOP / path).read_text().splitlines()) for path in paths)


def sources(folder, endings=("c", "h")):
    return sorted(p for p in (TOP / folder).rglob("*") if p.suffix[1:] in endings)


def booleans(header, name):
    text = COMMENT.sub("", (TOP / header).read_text())
    body = re.search(rf"^struct {name} \{{\n(.*?)^\}}", text, re.M | re.S)[1]
    flags = len(FLAG.findall(text)) if re.search(r"^\s+unsigned flags;", body, re.M) else 0
    return flags + sum(members.count(",") + 1
                       for members in MEMBER.findall(body) + BIT.findall(body))


def function_lengths():
    """Lines between the braces, of each function."""
    return [body.count("\n") for folder in FOLDERS for path in sources(folder)
            for _, body in FUNCTION.findall(COMMENT.sub("", path.read_text()))]


def include_cycles():
    graph = {str(p.relative_to(TOP)): INCLUDE.findall(p.read_text())
             for folder in FOLDERS for p in sources(folder)}
    try:
        list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError:
        return 1
    return 0


def twins():
    """Names of headers that occur in two folders."""
    names = [p.name for folder in FOLDERS for p in sources(folder, ("h",))]
    return len(names) - len(set(names))


def counts():
    """(name, number, bound, what it is)."""
    lengths = function_lengths()
    parts = [p for folder in FOLDERS for p in sources(folder) if p.name.endswith("_parts.h")]
    flat = [p for p in (TOP / "server").iterdir() if p.is_file()]
    yield ("booleans", sum(booleans(*struct) for struct in ON_THE_WAY), 25,
           "in the structs on the way of a miss")
    yield "server", len(flat), 20, "files of server/ outside its rooms"
    yield "parts", len(parts), 0, "headers that end in _parts.h"
    yield "twins", twins(), 15, "headers of a name that another folder has as well"
    yield "cycles", include_cycles(), 0, "cycles of files that include each other"
    yield "mean", round(sum(lengths) / len(lengths), 1), 12, "lines of a function, in the mean"
    yield "longest", max(lengths), 96, "lines of the longest function"
    yield "cache", lines_of(*sources("cache")), 5440, "lines of cache/"
    yield ("fetching", lines_of(*sources("proxy"), *sources("fetch")), 14340,
           "lines of proxy/ and fetch/")
    yield "readme", lines_of("README.md"), 120, "lines of README.md"
    yield "architecture", lines_of("docs/ARCHITECTURE.md"), 250, "lines of docs/ARCHITECTURE.md"


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    exceeded = 0
    for name, number, bound, what in counts():
        exceeded += number > bound
        print(f"{name:13} {number:7} of {bound:5}  {what}{'  EXCEEDED' if number > bound else ''}")
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
