"""Figures and tables of the Sun RPC paper on the page of `make reproduce`, and its JSON."""

import statistics

import replays
import reproduce_published as published
from reproduce_figures import chart, numbers
from reproduce_sunrpc import ALL, ONE
from reproduce_sunrpc_rows import without_maxs
from reproduce_sunrpc_terms import label
from statements import name, plus_minus

NAMES = {"dataset1": "dataset1", "dataset2": "dataset2", "authors": "dataset1, the authors’ own "
         "requests"}


def lines(part, figure, of):
    return {p: [of(figure(part.runs[p, size])) for size in part.sizes] for p in part.policies}


def table(part, figure, form):
    sizes = [ONE, *part.sizes, ALL]
    columns = [f"{label(size)} ({part.runs[part.policies[0], size][0].capacity:.0f})"
               for size in sizes]
    none = plus_minus(figure(part.none), form)
    return numbers(columns,
                   [[name(p), *(plus_minus(figure(part.runs[p, size]), form) for size in sizes)]
                    for p in part.policies] + [["no cache", *[none] * len(sizes)]])


def rounded(points):
    """To a tenth, without the sign of a zero."""
    return round(points, 1) + 0.0


def published_table(part):
    """Published hit ratios, and in brackets by how many points the measured ones are higher."""
    printed = published.hit_ratios(part.name, part.sizes)
    measured = lines(part, replays.ratios, statistics.mean)

    def cell(value, own):
        return "" if value is None else f"{value:.1f} ({rounded(own - value):+.1f})"

    return ("<h4>Published hit ratio, per cent (measured minus published, points)</h4>"
            + numbers([label(size) for size in part.sizes],
                      [[name(p), *map(cell, printed[p], measured[p])] for p in part.policies]))


def part_section(part):
    none = statistics.mean(replays.times(part.none))
    seconds = published.NO_CACHE_SECONDS.get(part.name)
    note = ""
    if seconds:
        requests = published.REQUESTS[part.name]
        note = (f" Without a cache the paper’s {requests} requests took {seconds} s, "
                f"{1000 * seconds / requests:.0f} ms each, from the web; the origin here takes "
                f"{none:.0f} ms, so the paper’s times are not drawn.")
    printed = {p: line for p, line in published.hit_ratios(part.name, part.sizes).items()
               if p in part.policies}
    return (f"<h3>{NAMES[part.name]}</h3>"
            f'<p class="soft">{part.none[0].requests} requests, means of {len(part.none)} runs; '
            'bars are standard '
            "deviations, ± half of an interval of 95 %. The capacity is a share of the distinct "
            "URLs (and their number). Dotted lines are the published hit ratios, read from Figure "
            "8 of the paper "
            f"(±\u00a0{published.READING} points).{note}</p>"
            '<div class="figures">'
            + chart("Hit ratio, per cent", "capacity, per cent of the URLs", part.sizes,
                    lines(part, replays.ratios, statistics.mean), top=100,
                    errors=lines(part, replays.ratios, statistics.stdev), printed=printed)
            + chart("Mean access time, ms", "capacity, per cent of the URLs", part.sizes,
                    lines(part, replays.times, statistics.mean), none,
                    errors=lines(part, replays.times, statistics.stdev))
            + "</div><h4>Hit ratio, per cent</h4>" + table(part, replays.ratios, "%.1f")
            + published_table(part)
            + "<h4>Mean access time, ms</h4>" + table(part, replays.times, "%.2f"))


def section(study):
    authors = without_maxs(study.authors)
    return "".join(map(part_section, [*study.parts.values(), *([authors] if authors else [])]))


def as_json(study):
    parts = {**study.parts, **({"authors": study.authors} if study.authors else {})}
    return {"data_sets": {key: replays.part_as_json(part, "capacity_percent")
                          for key, part in parts.items()},
            "misses_by_capacity": study.misses}
