"""The Leiden study on the page of `make reproduce`."""

import math

import leiden_model as model
import reproduce_leiden as leiden
from reproduce_figures import bars, chart, escape, numbers
from reproduce_leiden_claims import percent, smallest_share


def scaling(result):
    """What was chosen here, in sentences."""
    scale, base, sizes = result.scale, result.scale.base, model.make_sizes()
    return (f"The service has {len(sizes):,} resources in {len(model.POOLS)} pools, {sum(sizes.values()) / 1e6:.1f} MB "
            f"in all, by a log-normal distribution of sizes; popularity is Zipf’s law with exponent {model.EXPONENT:g}, "
            f"for reads ({100 * (1 - model.WRITE_SHARE):.0f} %) and writes ({100 * model.WRITE_SHARE:.0f} %). The link "
            f"has {8 * scale.link / 1e6:g} Mbit/s and a latency of {1000 * scale.latency:g} ms. What a figure does not "
            f"vary is {base.requests:,} requests, {base.clients} clients, one unbounded cache with "
            f"{base.policy.upper()}, and validation. {extent(scale)} Clients, caches and service share the processors of "
            "this machine, so times are longer than on machines of their own.")


def extent(scale):
    if scale.smoke:
        return f"At most {max(scale.requests):,} requests instead of 15,000."
    return "The numbers of requests, clients and caches are those of the thesis; none is scaled."


def scaled(spreads):
    """Means and standard deviations in per cent."""
    return [100 * one.mean for one in spreads], [100 * one.sd for one in spreads]


def ratio_bars(result, title, groups, cells):
    measured = [result.cells[cell] for cell in cells]
    series, errors = {}, {}
    for name, attribute in (("objects", "object_ratio"), ("bytes", "byte_ratio"), ("without a request", "fresh_ratio")):
        series[name], errors[name] = scaled([getattr(one, attribute) for one in measured])
    return bars(title, groups, series, errors, top=100, form="%.1f")


def size_chart(result, title, attribute):
    lines, errors = {}, {}
    for policy in leiden.POLICIES:
        lines[policy], errors[policy] = scaled([getattr(result.cells[cell], attribute)
                                                for cell in leiden.size_cells(result.scale, policy)])
    top = min(100, 10 * math.ceil(max(max(line) for line in lines.values()) / 10 + 0.5))
    return chart(title, "capacity, per cent of all bytes", result.scale.shares, lines, top=top, errors=errors)


def mode_bars(result, title, attribute, unit, top=None):
    """By number of caches and mode; `unit` is one of the figure in that of the measurement."""
    series, errors = {}, {}
    for mode in leiden.MODES:
        cells = {cell.caches: getattr(result.cells[cell], attribute) for cell in leiden.mode_cells(result.scale, mode)}
        spreads = [cells.get(count) for count in result.scale.caches]
        series[mode] = [one and one.mean / unit for one in spreads]
        errors[mode] = [one.sd / unit if one else 0 for one in spreads]
    return bars(title, [count_caches(count) for count in result.scale.caches], series, errors, top=top, form="%.1f")


def count_caches(count):
    return f"{count} cache{'' if count == 1 else 's'}"


def modes_table(result):
    def cell_text(mode, count):
        cell = result.scale.base._replace(mode=mode, caches=count)
        one = result.cells.get(cell)
        return f"{one.stale:,} of {one.reads:,}" if one else "—"

    rows = [[mode, *(cell_text(mode, count) for count in result.scale.caches)] for mode in leiden.MODES]
    meanings = "".join(f"<li><b>{escape(name)}</b>: {escape(mode.text)}.</li>" for name, mode in leiden.MODES.items())
    return (f"<ul>{meanings}</ul>" + numbers([count_caches(count) for count in result.scale.caches], rows))


def sizes_table(result):
    shares = result.scale.shares

    def row(policy):
        cells = leiden.size_cells(result.scale, policy)
        share = smallest_share(result, policy)
        return [policy.upper(), *(percent(result.cells[cell].object_ratio) for cell in cells),
                f"{share} %" if share else "none"]

    return numbers([*(f"{share} %" for share in shares), f"smallest with {100 * leiden.ENOUGH:.0f} %"],
                   [row(policy) for policy in leiden.POLICIES])


def section(result):
    scale = result.scale
    unbounded = result.cells[scale.base]
    return (
        "<h2>Leiden study: caches before a REST service</h2>"
        "<p>The questions of a thesis at Leiden on caches as reverse proxies before a REST service, over HTTP. Its "
        "text and its figures are not at hand: the claims are its questions, and their criteria are those of this "
        f"evaluation. {escape(scaling(result))}</p>"
        f'<p class="soft">Means of {len(scale.seeds)} runs, each with another sequence of requests; bars are standard '
        "deviations. A hit is an answer whose body came from a cache: without a request to the service, or after a "
        "validation. An answer that joined another client’s fetch is none, and what is being fetched when its pool is "
        "purged is not stored, so more clients hit less. Of every answer the body was checked against its entity "
        "tag.</p>"
        '<div class="figures">'
        + ratio_bars(result, "Hit ratio by number of requests, per cent", [f"{n:,}" for n in scale.requests],
                     leiden.request_cells(scale))
        + ratio_bars(result, "Hit ratio by number of clients, per cent", [str(n) for n in scale.clients],
                     leiden.client_cells(scale))
        + mode_bars(result, "Object hit ratio by number of caches and how writes invalidate, per cent (of “url” and "
                    "“tags, one cache” stale answers are a part)", "object_ratio", 0.01, top=100)
        + mode_bars(result, "Mean time of a read by number of caches and how writes invalidate, ms", "mean_us", 1000)
        + size_chart(result, "Object hit ratio by capacity, per cent", "object_ratio")
        + size_chart(result, "Byte hit ratio by capacity, per cent", "byte_ratio")
        + "</div><h3>Object hit ratio by capacity, and the smallest cache with "
        f"{100 * leiden.ENOUGH:.0f} % of an unbounded one’s</h3>" + sizes_table(result)
        + f'<p class="soft">An unbounded cache hits {percent(unbounded.object_ratio)} of the objects and '
        f"{percent(unbounded.byte_ratio)} of the bytes. The capacity is a share of the bytes of all resources.</p>"
        "<h3>Stale answers, by how writes invalidate</h3>" + modes_table(result)
        + f'<p class="soft">With several caches, reads go to them in turn and writes through the first one. Write rule: '
        f"{escape(model.WRITE_RULE)}; tag rule: {escape(model.TAG_RULE)}.</p>")


def as_json(result):
    return {
        "scale": {**result.scale._asdict(), "base": result.scale.base._asdict()},
        "modes": {name: mode.text for name, mode in leiden.MODES.items()},
        "cells": [{**cell._asdict(), **{name: value._asdict() if isinstance(value, leiden.Spread) else value
                                         for name, value in measured._asdict().items()}}
                  for cell, measured in result.cells.items()],
        "smallest_share": {policy: smallest_share(result, policy) for policy in leiden.POLICIES},
        "seconds": result.seconds,
    }
