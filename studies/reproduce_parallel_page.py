"""The section on parallelism of the page of `make reproduce`: figures and tables.

The axis of threads is logarithmic, and so are those of throughput and speed-up, so that a slope of
1 is a straight line of 45 degrees.
"""

import math
import os

import reproduce_parallel_rows as claims
import reproduce_parallel_model
import reproduce_parallel as study_of
from reproduce_figures import escape, numbers, spread_labels

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 420, 270, 48, 84, 14, 38
MORE_CORES = 64
NAMES = claims.NAMES


def plus_minus(mean, form="%.2f"):
    """Mean and standard deviation."""
    return f"{form % mean.mean} ± {form % mean.sd}"


# ---- figures -------------------------------------------------------------------------------------

class Axis:
    """Places values between two ends in pixels."""

    def __init__(self, values, begin, end, logarithmic):
        self.scale = math.log2 if logarithmic else float
        self.low, self.high = self.scale(min(values)), self.scale(max(values))
        self.begin, self.end = begin, end

    def at(self, value):
        share = (self.scale(value) - self.low) / ((self.high - self.low) or 1)
        return self.begin + share * (self.end - self.begin)


def powers(low, high):
    """Powers of two or four that cover the values: at most seven of them."""
    first, last = math.floor(math.log2(low)), math.ceil(math.log2(high))
    step = 1 if last - first <= 6 else 2
    return [2.0 ** n for n in range(first, last + step, step)]


def chart(title, threads, lines, logarithmic, ideal=None):
    """lines: {contestant: [Mean by threads]}; bars are standard deviations. `ideal` is a dashed
    line."""
    means = [m.mean for line in lines.values() for m in line] + (ideal or [])
    marks = powers(min(means), max(means)) if logarithmic else [n / 4 for n in range(0, 6)
                                                                if n / 4 <= max(1, max(means))
                                                                + 0.24]
    x = Axis(threads, LEFT, WIDTH - RIGHT, True)
    y = Axis(marks, HEIGHT - BOTTOM, TOP, logarithmic)
    out = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">']
    for mark in marks:
        at = y.at(mark)
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" '
                   f'y2="{at:.1f}"/>'
                   f'<text x="{LEFT - 7}" y="{at + 4:.1f}" text-anchor="end">{mark:g}</text>')
    out += [f'<text x="{x.at(t):.1f}" y="{HEIGHT - BOTTOM + 17}" text-anchor="middle">{t}</text>'
            for t in threads]
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 4}" '
               'text-anchor="middle">threads</text>')
    if ideal:
        out.append('<polyline class="none" fill="none" points="'
                   + " ".join(f"{x.at(t):.1f},{y.at(v):.1f}" for t, v in zip(threads, ideal))
                   + '"/>')
    labels = spread_labels([(y.at(line[-1].mean), name) for name, line in lines.items()])
    for name, line in lines.items():
        out += draw_line(name, [(x.at(t), y.at(m.mean)) for t, m in zip(threads, line)],
                         [(y.at(max(m.mean - m.sd, min(marks))), y.at(m.mean + m.sd))
                          for m in line],
                         [f"{count_of(t, 'thread')}: {plus_minus(m)}"
                          for t, m in zip(threads, line)])
        out.append(f'<text class="name k own-{name}" x="{WIDTH - RIGHT + 8}" '
                   f'y="{labels[name] + 4:.1f}">'
                   f"{escape(name)}</text>")
    note = "; dashed: as many times as threads" if ideal and ideal[0] == 1 and ideal[-1] > 1 else ""
    return f'<figure>{"".join(out)}</svg><figcaption>{escape(title + note)}</figcaption></figure>'


def draw_line(name, points, bars, titles):
    own = f"own-{name}"
    out = [f'<polyline class="s {own}" points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
           + '"/>']
    out += [f'<line class="e {own}" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'
            for (x, _), (low, high) in zip(points, bars) if low != high]
    return out + [f'<circle class="d {own}" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{escape(name)}, '
                  f'{escape(title)}'
                  "</title></circle>" for (x, y), title in zip(points, titles)]


def figures(study):
    trace, threads = claims.largest(study), study.extent.threads
    names = study.contestants

    def lines(figure):
        return {name: [figure(name, t) for t in threads] for name in names}

    return ('<div class="figures">'
            + chart(f"Requests per second, {trace} URLs", threads,
                    lines(lambda name, t: study_of.throughput(study.runs[name, trace, t])), True)
            + chart(f"Speed-up over one thread, {trace} URLs", threads,
                    lines(lambda name, t: study_of.speed_up(study, name, trace, t)), True,
                    [float(t) for t in threads])
            + chart(f"Efficiency: speed-up by thread, {trace} URLs", threads,
                    lines(lambda name, t: study_of.efficiency(study, name, trace, t)), False)
            + "</div>")


# ---- tables --------------------------------------------------------------------------------------

def count_of(number, noun):
    return f"{number} {noun}" + ("s" if number != 1 else "")


def runs_tables(study):
    threads = study.extent.threads
    out = []
    for title, figure, form in (
            ("Requests per second", lambda n, c, t: study_of.throughput(study.runs[n, c, t]),
             "%.0f"),
            ("Speed-up", lambda n, c, t: study_of.speed_up(study, n, c, t), "%.2f"),
            ("Efficiency", lambda n, c, t: study_of.efficiency(study, n, c, t), "%.2f")):
        rows = [[f"{NAMES[name]}, {trace} URLs", *(plus_minus(figure(name, trace, t), form)
                                                   for t in threads)]
                for trace in study.extent.traces for name in study.contestants]
        out.append(f"<h3>{title}</h3>" + numbers([count_of(t, "thread") for t in threads], rows))
    return "".join(out)


def workers_table(study):
    """sunproxyd with all fetches in flight and more or fewer workers."""
    trace = study.extent.real_trace
    if ("workers", trace, study.extent.threads[0]) not in study.runs:
        return ""
    rates = [study_of.throughput(study.runs["workers", trace, t]) for t in study.extent.threads]
    return ("<h3>sunproxyd: workers instead of fetches</h3><p>Workers serve clients and never wait "
            "for origins; one thread of the daemon fetches. So with 64 fetches in flight their "
            f"number decides little ({trace} URLs, requests per second):</p>"
            + numbers([count_of(t, "worker") for t in study.extent.threads],
                    [["64 fetches", *(plus_minus(rate, "%.0f") for rate in rates)]]))


def real_table(study):
    rows = [[NAMES[name], plus_minus(study_of.throughput(runs), "%.1f"),
             f"{study_of.cores_used(runs):.2f}"]
            for name, runs in study.real.items()]
    return ("<h3>With the latency of the web</h3><p>Median 440 ms, mean 0.5 s, as 64 threads and "
            f"128 requests per second imply; {study.extent.threads[-1]} threads, "
            f"{study.extent.real_trace} URLs ({study.extent.own_trace} for asyncio’s own executor, "
            f"which has {claims.own_threads()} threads here). Contestants run side by side, since "
            "all of them wait for the origin most of the time.</p>"
            + numbers(["requests per second", "cores used"], rows))


def table_tables(study):
    def percent(case, base):
        if case == base:
            return "—"
        ratio = study_of.mean_of(claims.table_ratio(study, case, base))
        return f"{100 * (ratio.mean - 1):+.1f} ± {100 * ratio.sd:.1f} %"

    layouts = []
    for entries in (study_of.PAPER_ENTRIES, study.extent.many_entries):
        for layout, lock, parts in study_of.LAYOUTS:
            cells = []
            for lookups in study_of.LOOKUPS:
                case, base = ((name, lock, parts, lookups, entries)
                              for name in (layout, "misaligned"))
                rate = study_of.mean_of([r / 1e6 for r in study.table[case]])
                cells += [plus_minus(rate), percent(case, base)]
            layouts.append([f"{layout}, {entries} entries", *cells])
    locks = []
    for layout, lock, parts in study_of.LOCKS:
        cells = []
        for lookups in study_of.LOOKUPS:
            case = (layout, lock, parts, lookups, study_of.PAPER_ENTRIES)
            base = (layout, "mutex", study_of.NODES, lookups, study_of.PAPER_ENTRIES)
            rate = study_of.mean_of([r / 1e6 for r in study.table[case]])
            cells += [plus_minus(rate), percent(case, base)]
        locks.append([f"{'mutex' if lock == 'mutex' else 'read-write lock'}, {parts}", *cells])
    columns = [f"{lookups} % lookups{what}" for lookups in study_of.LOOKUPS
               for what in ("", ", over misaligned")]
    lock_columns = [f"{lookups} % lookups{what}" for lookups in study_of.LOOKUPS
                    for what in ("", f", over {study_of.NODES} mutexes")]
    return ("<h3>The daemon’s hash table</h3><p>cache/table by itself, millions of operations per "
            f"second of CPU time with {study_of.TABLE_THREADS} threads on {os.cpu_count()} cores. "
            "The rest of the operations remove and insert an entry. Layouts, in 16 parts with a "
            "mutex each: “as-is” is the daemon’s, where malloc() places entries; “aligned” entries "
            "begin at a cache line, “misaligned” ones 40 bytes behind it; with “all-aligned” the "
            "objects begin at one too. Locks: with the daemon’s layout, one for each of 1, 16 or "
            f"{study_of.NODES} parts of the table. Neither is in the paper.</p>"
            + numbers(columns, layouts) + numbers(lock_columns, locks))


def lists_table(study):
    rows = [[claims.LOCK_NAMES[lock], *(plus_minus(study_of.mean_of(study.lists[lock, t]))
                                        for t in study.extent.list_threads)]
            for lock in study_of.LIST_LOCKS]
    rows += [[f"{claims.LOCK_NAMES[lock]}, published", *(f"{seconds:.2f}" for seconds in line)]
             for lock, line in claims.FIGURE_3.items()]
    return (f"<h3>Locks of a list (figure 3)</h3><p>Seconds for {study.extent.list_operations} "
            "operations on a sorted list of 1,000 keys: 80 % lookups, 10 % insertions, 10 % "
            "deletions.</p>"
            + numbers([count_of(t, "thread") for t in study.extent.list_threads], rows))


def demand(study, name):
    """Of a fetch: from the runs with one thread, and the CPU time of those with the most."""
    trace, threads = claims.largest(study), study.extent.threads
    one, many = study.runs[name, trace, threads[0]], study.runs[name, trace, threads[-1]]
    cpu = sum(run.cpu_seconds for run in many) / sum(run.requests for run in many)
    return reproduce_parallel_model.demand_of(name, study_of.mean_of([r.seconds / r.requests
                                                                      for r in one]).mean, cpu,
                                    study.origin_cpu)


def model_table(study):
    trace, threads = claims.largest(study), study.extent.threads
    cores = os.cpu_count() or 1
    rows = []
    for name in study.contestants:
        d = demand(study, name)
        here = [reproduce_parallel_model.throughput(d, t, cores) for t in threads]
        measured = [study_of.throughput(study.runs[name, trace, t]).mean for t in threads]
        error = max(abs(a / b - 1) for a, b in zip(here, measured))
        rows.append([NAMES[name], f"{1e6 * (d.parallel + d.serial):.0f}", f"{measured[-1]:.0f}",
                     f"{here[-1]:.0f}",
                     f"{100 * error:.0f} %",
                     f"{reproduce_parallel_model.throughput(d, 64, MORE_CORES):.0f}",
                     f"{reproduce_parallel_model.throughput(d, 1024, MORE_CORES):.0f}",
                     f"{reproduce_parallel_model.limit(d, MORE_CORES):.0f}"])
    return (f"<h3>An extrapolation to {MORE_CORES} cores, not a measurement</h3>"
            "<p>A closed queueing network, solved by mean value analysis "
            "(studies/reproduce_parallel_model.py), computes the throughput from the latency, the "
            "measured CPU time of a fetch and the number of cores. Python’s global lock, aiohttp’s "
            "event loop and the daemon’s fetching thread let one thread at a time use the CPU. "
            "Locks, memory bandwidth and the network are not in it. Its error on this machine is "
            "the largest relative difference from the measured throughput over all numbers of "
            f"threads ({trace} URLs).</p>"
            + numbers(["CPU of a fetch, µs", f"measured, 64 threads, {cores} cores",
                       "model, the same", "error",
                     f"model, 64 threads, {MORE_CORES} cores",
                       f"model, 1024 threads, {MORE_CORES} cores",
                     "limit"], rows))


def section(study):
    extent = study.extent
    aiohttp = f"aiohttp {study.aiohttp}" if study.aiohttp else "aiohttp was not installed"
    return ("<h3>Measurements</h3>"
            "<p>Repeated with a thread-pool server of our own on libcurl, "
            "sunproxyd, and asyncio with blocking fetches in an executor and with aiohttp "
            f"({escape(aiohttp)}). A thread of the pool and of the executor is a thread; of "
            "sunproxyd and aiohttp, which fetch in one thread, it is a fetch in flight. Lists of "
            f"{', '.join(map(str, extent.traces))} unique URLs, no page cached; a local origin "
            f"draws a latency ({escape(extent.latency)}, 1/31 of the web’s, so that this takes "
            f"minutes) and a size (log-normal, median {study_of.SIZE[0]} bytes) once for each URL; "
            f"each answer ends its connection. Means of {extent.repeats} runs; bars and ± are "
            "standard deviations.</p>"
            + figures(study) + "".join(table(study) for table in (real_table, workers_table,
                                                                  lists_table, table_tables,
                                                                  model_table, runs_tables)))


def as_json(study):
    return {
        "extent": study.extent._asdict(),
        "runs": [{"contestant": contestant, "urls": trace, "threads": threads,
                  "runs": [run._asdict() for run in runs]}
                 for (contestant, trace, threads), runs in study.runs.items()],
        "real_latency": {name: [run._asdict() for run in runs]
                         for name, runs in study.real.items()},
        "table": [{"layout": layout, "lock": lock, "parts": parts, "lookups": lookups,
                   "entries": entries,
                   "per_cpu_second": rates}
                  for (layout, lock, parts, lookups, entries), rates in study.table.items()],
        "lists": [{"lock": lock, "threads": threads, "seconds": seconds}
                  for (lock, threads), seconds in study.lists.items()],
        "aiohttp": study.aiohttp,
        "origin_cpu_seconds": study.origin_cpu,
    }
