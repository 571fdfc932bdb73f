"""Figures of the study of parallelism with pages on disk, on the page of `make reproduce`."""

import reproduce_parallel as parallel
from reproduce_figures import numbers
from reproduce_parallel_page import plus_minus
from reproduce_stored_rows import NAMES


def section(result):
    study = result.study
    rows = [[f"{NAMES[name]}, {trace} URLs",
             *(plus_minus(parallel.speed_up(study, name, trace, threads))
               for threads in study.extent.threads)]
            for trace in study.extent.traces for name in ("pool", "executor")]
    return ("<h3>Speed-up over one thread</h3>"
            + numbers([f"{threads} threads" for threads in study.extent.threads], rows)
            + '<p class="soft">± is a standard deviation.</p>')


def as_json(result):
    study = result.study
    return {
        "extent": study.extent._asdict(),
        "runs": [{"contestant": contestant, "urls": trace, "threads": threads,
                  "runs": [run._asdict() for run in runs]}
                 for (contestant, trace, threads), runs in study.runs.items()],
        "real_latency": {name: [run._asdict() for run in runs]
                         for name, runs in study.real.items()},
        "from_disk_seconds": result.from_disk,
        "from_memory_seconds": result.from_memory,
        "written": result.written,
    }
