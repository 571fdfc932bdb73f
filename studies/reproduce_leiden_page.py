"""Figures of the Leiden study on the page of `make reproduce`, beside its table."""

import statistics

import reproduce_leiden as leiden
import verdict
from reproduce_figures import bars, chart, numbers
from reproduce_leiden_rows import full_ratio, ms, percent, request_values, size_ratio, thread_values


def names_of(result):
    return [*result.scale.policies, leiden.BACKEND]


def means(lines, factor):
    """({name: [mean]}, {name: [half of the interval, or 0 of a single run]}) of {name: [runs by
    x]}"""
    def half(some):
        return factor * verdict.half_width(verdict.of_mean(some)) if len(some) > 1 else 0

    return ({name: [factor * statistics.mean(some) for some in line]
             for name, line in lines.items()},
            {name: [half(some) for some in line] for name, line in lines.items()})


def request_chart(result, title, name, policies, factor, top=None):
    lines, errors = means({policy: [request_values(result, policy, name, at)
                                    for at in range(len(result.scale.counts))]
                           for policy in policies}, factor)
    return chart(title, "requests", result.scale.counts, lines, top=top, errors=errors)


def thread_bars(result):
    series, errors = means({f"{threads} threads": [thread_values(result, name, threads)
                                                   for name in names_of(result)]
                            for threads in result.scale.threads}, 1e-3)
    return bars("Figure 9: latency, ms", [name.upper() if name != leiden.BACKEND else name
                                          for name in names_of(result)], series,
                errors, form="%.2f")


def cache_bars(result):
    series, errors = means({f"{threads} threads": [thread_values(result, "lru", threads, caches)
                                                   for caches in result.scale.caches]
                            for threads in result.scale.threads}, 1e-3)
    return bars("Figure 10: latency by number of caches, ms",
                [str(caches) for caches in result.scale.caches], series,
                errors, form="%.2f")


def size_chart(result):
    lines, errors = means({policy: [size_ratio(result, policy, size)
                                    for size in result.scale.megabytes]
                           for policy in result.scale.policies}, 100)
    return chart("Figure 11: hit ratio, per cent", "MB", result.scale.megabytes, lines, top=100,
                 errors=errors)


def section(result):
    sizes = result.scale.megabytes
    return (
        '<div class="figures">'
        + request_chart(result, "Figure 6: latency, ms", "mean_us", names_of(result), 1e-3)
        + request_chart(result, "Figure 7: hit ratio, per cent", "hit_ratio", result.scale.policies,
                        100, 100)
        + request_chart(result, "Figure 8: byte hit ratio, per cent", "byte_hit_ratio",
                        result.scale.policies, 100, 100)
        + thread_bars(result) + cache_bars(result) + size_chart(result)
        + "</div><h3>Figure 11: hit ratio by capacity</h3>"
        + numbers([*(f"{size:g} MB" for size in sizes), "2.5 GB"],
                  [[policy.upper(), *(percent(size_ratio(result, policy, size)) for size in sizes),
                    percent(full_ratio(result, policy))] for policy in result.scale.policies])
        + "<h3>Figures 9 and 10: latency</h3>"
        + numbers([f"{threads} threads" for threads in result.scale.threads],
                  [[name.upper() if name != leiden.BACKEND else name,
                    *(ms(thread_values(result, name, threads)) for threads in result.scale.threads)]
                   for name in names_of(result)]
                  + [[f"LRU, {caches} caches", *(ms(thread_values(result, "lru", threads, caches))
                                                 for threads in result.scale.threads)]
                     for caches in result.scale.caches[1:]])
        + '<p class="soft">Bars and ± are half of the interval of 95 % of the mean.</p>')


def as_json(result):
    return {"scale": result.scale._asdict(),
            "cells": [{**cell._asdict(), "runs": [run._asdict() for run in some]}
                      for cell, some in result.runs.items()],
            "trace": [{"request": request, "cache_status": status, "middleware": how}
                      for request, status, how in result.trace]}
