"""Figures of the study on several caches, on the page of `make reproduce`."""

from reproduce_cluster_rows import NAMES, times
from reproduce_figures import numbers
from reproduce_leiden_rows import ms


def section(result):
    scale = result.scale
    return ("<h3>Latency by number of caches</h3>"
            + numbers([f"{caches} caches" if caches > 1 else "1 cache" for caches in scale.caches],
                      [[f"{NAMES[sharing]}, {threads} threads",
                        *(ms(times(result, sharing, threads, caches)) for caches in scale.caches)]
                       for sharing in result.sharings for threads in scale.threads])
            + '<p class="soft">± is half of the interval of 95 % of the mean.</p>')


def as_json(result):
    return {"scale": result.scale._asdict(),
            "cells": [{**cell._asdict(), "runs": [run._asdict() for run in some]}
                      for cell, some in result.runs.items()]}
