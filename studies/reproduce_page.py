"""The page of `make reproduce`: claims beside measurements, figures and tables, in one file; and the same
as JSON.

No script, no font and nothing else from elsewhere; figures are SVG in the page's own colours, so
that light, dark and paper each look as they should.
"""

import base64
import collections
import hashlib
import os
import pathlib
import platform
import time

import document
import paper_table
import reproduce_claims as claims
import reproduce_figures as figures
import reproduce_published as published
from reproduce_figures import chart, escape, numbers

# The report's colours, so that a policy looks the same on both pages.
COLOURS = (pathlib.Path(__file__).resolve().parents[1] / "study/report/colours.css").read_text()
STYLE = """
:root { color-scheme: light dark; --yes: #0b6e4f; --yes-bg: #e2f3ec; --no: #a4262c; --no-bg: #fbe6e6;
  --none-bg: #eceef1; --shade: #b9bec6; }
@media screen and (prefers-color-scheme: dark) { :root { --yes: #7fd8b5; --yes-bg: #14362b; --no: #ff9d9d;
  --no-bg: #43201f; --none-bg: #2a2f37; --shade: #59616d; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 66rem; background: var(--paper);
  color: var(--ink); font: 16px/1.55 system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .5rem; letter-spacing: -.01em; }
h2 { font-size: 1.3rem; margin: 3rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .4rem; }
p { margin: .5rem 0; max-width: 46rem; }
.soft, figcaption { color: var(--soft); font-size: .9rem; }
.tally { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.25rem 0; padding: 0;
  list-style: none; }
.tally li { padding: .6rem 1rem; border: 1px solid var(--line); border-radius: .6rem;
  background: var(--card); }
.tally b { font-size: 1.5rem; margin-right: .35rem; font-variant-numeric: tabular-nums; }
/* A shade at the right as long as there is more to scroll to. */
.wide { overflow-x: auto; background: linear-gradient(to left, var(--paper) 40%, transparent)
    right / 2.5rem 100% no-repeat local,
  linear-gradient(to left, var(--shade), transparent) right / 1.2rem 100% no-repeat scroll; }
.wide + .wide { margin-top: 1.5rem; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .5rem .75rem .5rem 0;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--soft); }
.numbers { width: auto; min-width: 30rem; }
.numbers th, .numbers td { text-align: right; padding: .25rem .9rem .25rem 0;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
.numbers th { white-space: normal; vertical-align: bottom; min-width: 3.6rem; max-width: 8rem; }
.numbers th:first-child, .numbers td:first-child { text-align: left; position: sticky; left: 0;
  background: var(--paper); padding-right: .6rem; }
.claims td:nth-child(2) { width: 36%; }
.claims small { display: block; color: var(--soft); margin-top: .2rem; }
.badge { display: inline-block; padding: .05rem .55rem; border-radius: 1rem; font-size: .8rem;
  font-weight: 600; white-space: nowrap; background: var(--none-bg); }
.yes { color: var(--yes); background: var(--yes-bg); }
.no { color: var(--no); background: var(--no-bg); }
.own { margin-top: .5rem; padding-left: .7rem; border-left: 2px solid var(--line); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(19rem, 1fr)); gap: 1rem;
  margin: 1rem 0; }
figure { margin: 0; padding: .9rem; border: 1px solid var(--line); border-radius: .6rem;
  background: var(--card); }
svg { display: block; width: 100%; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--soft); } svg .name { font-weight: 600; }
svg .grid { stroke: var(--line); } svg .none { stroke: var(--soft); stroke-dasharray: 4 4; }
svg .e { stroke: var(--own); stroke-width: 1.2; }
svg .p { fill: none; stroke: var(--own); stroke-width: 1.3; stroke-dasharray: 2 3; }
.s { fill: none; stroke: var(--own); stroke-width: 2.2; stroke-linejoin: round;
  stroke-linecap: round; }
svg .d, svg .k, svg .b { fill: var(--own); } svg .w { stroke: var(--ink); stroke-width: 1.4; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8rem; line-height: 1.4; margin: .3rem 0 1rem;
  padding: .6rem .8rem; border: 1px solid var(--line); border-radius: .6rem; background: var(--card); }
@media (max-width: 40rem) { .claims, .claims tbody, .claims tr, .claims td { display: block; }
  .claims thead { display: none; } .claims td, .claims td:nth-child(2) { border: 0; width: auto;
  padding: .15rem 0; } .claims tr { padding: .8rem 0; border-bottom: 1px solid var(--line); }
  .numbers { min-width: 0; font-size: .75rem; } .numbers th, .numbers td { padding-right: .5rem; }
  .numbers th { min-width: 0; } .numbers td:first-child { white-space: normal; min-width: 4.5rem; } }
@media print { :root { --yes: #0b6e4f; --yes-bg: #fff; --no: #a4262c; --no-bg: #fff; --none-bg: #fff; }
  body { padding: 0; max-width: none; font-size: 10pt; } .badge { border: 1px solid currentColor; }
  tr, figure { break-inside: avoid; } h2, h3 { break-after: avoid; }
  .figures { grid-template-columns: 1fr 1fr; } .wide { overflow: visible; background: none; }
  .numbers { min-width: 0; font-size: 8pt; } @page { margin: 16mm; } }
"""
SHEET = COLOURS + STYLE + figures.OWN
# Nothing is loaded, no script runs, and this style sheet alone applies.
HASH = base64.b64encode(hashlib.sha256(SHEET.encode()).digest()).decode()
SECURITY = f"default-src 'none'; style-src 'sha256-{HASH}'; base-uri 'none'; form-action 'none'"

NAMES = {"dataset1": "dataset1", "dataset2": "dataset2",
         "authors": "dataset1, the authors’ own requests", "random": "random workload",
         "repeated": "repeated workload"}

# All of it: paper_table.Paper of each paper, whether it is a smoke test, seconds, the daemon's version, and
# the load average before it began.
Run = collections.namedtuple("Run", "papers smoke seconds version load")


def all_rows(run):
    return [row for paper in run.papers for row in paper.rows]


def circumstances(run):
    """document.Run of this run."""
    return document.Run(time.strftime("%Y-%m-%d"), f"{run.version} and Python {platform.python_version()}",
                        machine(), run.load)


def paper_section(paper):
    """Setup and table of a paper."""
    setup = "".join(f"<p>{escape(sentences)}</p>" for sentences in paper.setup)
    return (f"<h2>{escape(paper.title)}</h2>{setup}"
            f'<p class="soft">{escape(paper_table.tally(paper.rows))}</p>{paper_table.to_html(paper)}')


# ---- the Sun RPC paper ---------------------------------------------------------------------------

def part_section(part):
    sizes = part.sizes
    capacities = [part.runs[part.policies[0], size].capacity for size in sizes]
    columns = [f"{size} % ({capacity})" for size, capacity in zip(sizes, capacities)]

    def line(figure):
        return {p: [figure(part.runs[p, size]) for size in sizes] for p in part.policies}

    def table(lines, form, none):
        return numbers(columns, [[p.upper(), *(form % v for v in line)]
                                 for p, line in lines.items()]
                       + [["no cache", *[form % none] * len(sizes)]])

    hits = line(lambda run: 100 * run.hit_ratio)
    times = line(lambda run: run.mean_us / 1000)
    none = part.none.mean_us / 1000
    hits_sd, times_sd = line(lambda run: 100 * run.hit_sd), line(lambda run: run.us_sd / 1000)
    printed = published.hit_ratios(part.name, sizes)
    seconds = published.NO_CACHE_SECONDS.get(part.name)
    note = ""
    if part.name == "authors":
        note = ("<p>The requests that the paper’s authors published, as logs of their server. "
                f"{escape(claims.AUTHORS_NOTE)}</p>")
    source = ""
    if printed:
        source = (" Dotted lines are the published hit ratios, read from Figure 8 of the paper "
                  f"(±\u00a0{published.READING} points).")
    if seconds:
        requests = published.REQUESTS[part.name]
        source += (f" Without a cache the paper’s {requests} requests took {seconds} s, "
                   f"{1000 * seconds / requests:.0f} ms each, from the web; the origin here answers in "
                   f"{none:.0f} ms, so the paper’s times are not drawn.")
    return (f"<h2>{escape(NAMES[part.name])}</h2>{note}"
            f'<p class="soft">{part.none.requests} requests, means of {part.none.runs} runs; bars are standard '
            f"deviations. The capacity is a share of the distinct URLs (and their number).{source}</p>"
            '<div class="figures">'
            + chart("Hit ratio, per cent", "capacity, per cent of the URLs", sizes, hits, top=100,
                    errors=hits_sd, printed=printed)
            + chart("Mean access time, ms", "capacity, per cent of the URLs", sizes, times, none,
                    errors=times_sd)
            + "</div><h3>Hit ratio, per cent</h3>" + table(hits, "%.1f", 0)
            + published_table(printed, hits, columns)
            + "<h3>Mean access time, ms</h3>" + table(times, "%.2f", none))


def rounded(points):
    """To a tenth, without the sign of a zero."""
    return round(points, 1) + 0.0


def published_table(printed, measured, columns):
    """Published hit ratios, and in brackets by how many points the measured ones are higher."""
    if not printed:
        return ""

    def cell(value, own):
        return "" if value is None else f"{value:.1f} ({rounded(own - value):+.1f})"

    return ("<h3>Published hit ratio, per cent (measured minus published, points)</h3>"
            + numbers(columns, [[policy.upper(), *map(cell, line, measured[policy])]
                                for policy, line in printed.items()]))


def kb(size):
    return f"{size // 1024} KB"


def fall_section(fall):
    """Why a larger cache hits less in the Thrift study's random workload: claims.Fall."""
    small, large = kb(fall.small), kb(fall.large)
    falls = [p.upper() for p in fall.at_small if fall.at_large[p].hit_ratio < fall.at_small[p].hit_ratio]
    policy = next(iter(fall.at_small))
    first, second, third = fall.at_small[policy], fall.at_large[policy], fall.refusing[policy]
    rows = [[p.upper(), *(f"{100 * run.hit_ratio:.1f} ({run.evictions})"
                          for run in (fall.at_small[p], fall.at_large[p], fall.refusing[p]))]
            for p in fall.at_small]
    return (f"<h3>Why the hit ratio falls from {small} to {large}</h3>"
            f"<p>The sizes of the pages cause this, not an error of the proxy: a simulation of the same requests "
            f"shows it for {escape(claims.join(falls) or 'no policy')}. Of {fall.pages} pages {fall.too_large_for_small} are "
            f"larger than {small}, so a cache of {small} never stores them, and their requests evict nothing. A cache "
            f"of {large} stores {fall.too_large_for_small - fall.too_large_for_large} of these, and each of them "
            f"evicts most of the small pages. {policy.upper()} then evicts {second.evictions} pages instead of "
            f"{first.evictions}, and hits {100 * second.hit_ratio:.1f} % instead of {100 * first.hit_ratio:.1f} %. With "
            f"{large} and without pages over {small} (<code>sunproxy simulate --max-page</code>) it hits "
            f"{100 * third.hit_ratio:.1f} %. In bytes a larger cache can hit less under every policy.</p>"
            + numbers([small, large, f"{large}, no page over {small}"], rows)
            + '<p class="soft">Simulated hit ratio, per cent, and number of evictions.</p>')


def workload_section(workload, fall):
    sizes, kilobytes = workload.sizes, [size // 1024 for size in workload.sizes]
    none = workload.none

    def line(figure):
        return {p: [figure(workload.means[p, size]) for size in sizes] for p in workload.policies}

    def table(value, deviation):
        def cell(mean):
            return f"{value(mean):.2f} ± {deviation(mean):.2f}"

        return numbers([f"{k} KB" for k in kilobytes], [
            [p.upper(), *(cell(workload.means[p, size]) for size in sizes)]
            for p in workload.policies] + [["no cache", *[cell(none)] * len(sizes)]])

    def ratio(mean):
        return 100 * mean.hit_ratio

    def millis(mean):
        return mean.mean_us / 1000

    return (f"<h2>Thrift study: {escape(NAMES[workload.name])}</h2>"
            f'<p class="soft">Means of {none.runs} runs, each with another seed for RAND, ± standard '
            "deviation, drawn as bars. The capacity counts the bytes of bodies; a page larger than the cache is "
            "not stored.</p>"
            '<div class="figures">'
            + chart("Hit ratio, per cent", "capacity, KB", kilobytes, line(ratio), top=100,
                    errors=line(lambda m: 100 * m.hit_sd))
            + chart("Mean access time, ms", "capacity, KB", kilobytes, line(millis), millis(none),
                    errors=line(lambda m: m.us_sd / 1000))
            + "</div><h3>Hit ratio, per cent</h3>" + table(ratio, lambda m: 100 * m.hit_sd)
            + "<h3>Mean access time, ms</h3>" + table(millis, lambda m: m.us_sd / 1000)
            + (fall_section(fall) if fall.workload == workload.name else ""))


# ---- the page ------------------------------------------------------------------------------------

def machine():
    processors = os.cpu_count() or 1
    return (f"{platform.system()}, {platform.machine()}, {processors} "
            f"processor{'' if processors == 1 else 's'}")


def replays_lead(replays, scale):
    """What the replays over RPC are, and how steady they were."""
    steady = claims.unsteadiness(replays.workloads) <= claims.NOISE
    unsteady = ("quiet enough." if steady else "this machine was busy, and verdicts on close times "
                "may differ from run to run. Those on hit ratios do not.")
    return f"""<p>The Sun RPC paper and the study of a proxy on Apache Thrift are repeated live over RPC: each replay
against a daemon of its own that fetches from an origin on this machine with a latency drawn once for each URL
({escape(scale.latency)}). The data sets that ship with sunproxy are made from the figures that the papers publish of
theirs, and differ from them. A claim that does not hold here may have held there.</p>
<p class="soft">Runs of the same requests without a cache differed by
{100 * claims.unsteadiness(replays.workloads):.1f} % (standard deviation): {unsteady}
{escape(claims.AUTHORS_NOTE) if replays.authors else ""} RAND of the Sun RPC paper draws a key for each page on
insertion; RAND of the Thrift study draws each victim anew. Each run has another seed.</p>"""


def replay_sections(replays):
    """Figures and tables of the measurements of the papers over RPC."""
    parts = [*replays.parts.values(), *([replays.authors] if replays.authors else [])]
    return "".join([*map(part_section, parts),
                    *(workload_section(workload, replays.fall) for workload in replays.workloads.values())])


def page(run, replays, scale, more):
    """`replays`: reproduce.Replays, or None; `more`: what further studies have beside their tables, by name."""
    tally = [(n, one.value) for one, n in paper_table.count(all_rows(run)).items() if n]
    smoke = ('<p><span class="badge no">smoke test</span> A few requests only: nothing here is a result.</p>'
             if run.smoke else "")
    sections = []
    for paper in run.papers:
        sections += [paper_section(paper), more.get(paper.key, "")]
    if replays:
        sections.append(replay_sections(replays))
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>sunproxy: what was published, and what was measured</title>
<meta http-equiv="Content-Security-Policy" content="{SECURITY}">
<style>{SHEET}</style></head><body>
<h1>What was published, and what was measured</h1>
<p>Evaluations of caching proxies, repeated with sunproxy. A table for each paper has its figures, tables and stated
results in the order of the text, and statements of this project, which are labelled as ours. A statement holds,
does not hold, is undecided, or cannot be repeated here.</p>
{smoke}<ul class="tally">{"".join(f"<li><b>{n}</b>{escape(what)}</li>" for n, what in tally)}</ul>
{replays_lead(replays, scale) if replays else ""}
<p class="soft">Where chance has a part, verdicts rest on repeated runs and on intervals of 95 % by Student’s t
distribution; equalities are tests of equivalence. {escape(claims.NOTE) if replays else ""}</p>
{"".join(sections)}
<p class="soft">Measured on {time.strftime("%Y-%m-%d")} in {run.seconds:.0f} s with {escape(run.version)} and Python
{platform.python_version()} on {escape(machine())}; load average before it {run.load:.1f}.</p>
</body></html>
"""


# ---- JSON ----------------------------------------------------------------------------------------

def replay_as_json(run):
    fields = ("hit_ratio", "hit_sd", "byte_hit_ratio", "mean_us", "us_sd", "runs")
    return {name: getattr(run, name) for name in fields}


def replays_as_json(replays):
    parts = [*replays.parts.values(), *([replays.authors] if replays.authors else [])]
    return {
        "data_sets": {part.name: {
            "no_cache": replay_as_json(part.none),
            "runs": [{"policy": policy, "capacity_percent": size, **replay_as_json(one)}
                     for (policy, size), one in part.runs.items()]} for part in parts},
        "workloads": {workload.name: {
            "no_cache": replay_as_json(workload.none),
            "runs": [{"policy": policy, "capacity_bytes": size, **replay_as_json(one)}
                     for (policy, size), one in workload.means.items()]}
            for workload in replays.workloads.values()},
    }


def as_json(run, replays, more):
    """What the page has, as a value for json.dumps(); `more`: that of further studies, by name."""
    studies = {"rpc": replays_as_json(replays)} if replays else {}
    return {
        "date": time.strftime("%Y-%m-%d"),
        "seconds": run.seconds,
        "smoke": run.smoke,
        "version": run.version,
        "python": platform.python_version(),
        "machine": machine(),
        "load_before": run.load,
        "papers": [paper_table.as_json(paper) for paper in run.papers],
        "studies": {**studies, **more},
    }
