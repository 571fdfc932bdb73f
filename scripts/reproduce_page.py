"""The page of `make reproduce`: claims beside measurements, figures and tables, in one file.

No script, no font and nothing else from elsewhere; figures are SVG in the page's own colours, so
that light, dark and paper each look as they should.
"""

import base64
import hashlib
import html
import os
import pathlib
import platform
import time

import reproduce_claims as claims
import reproduce_published as published

# The report's colours, so that a policy looks the same on both pages.
COLOURS = (pathlib.Path(__file__).resolve().parents[1] / "study/report/colours.css").read_text()
STYLE = """
:root { color-scheme: light dark; --yes: #0b6e4f; --yes-bg: #e2f3ec; --no: #a4262c; --no-bg: #fbe6e6;
  --none-bg: #eceef1; }
@media screen and (prefers-color-scheme: dark) { :root { --yes: #7fd8b5; --yes-bg: #14362b; --no: #ff9d9d;
  --no-bg: #43201f; --none-bg: #2a2f37; } }
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
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .5rem .75rem .5rem 0;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--soft); }
.numbers { width: auto; min-width: 30rem; }
.numbers th, .numbers td { text-align: right; padding: .25rem .9rem .25rem 0;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
.numbers th:first-child, .numbers td:first-child { text-align: left; }
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
svg .d, svg .k { fill: var(--own); }
@media (max-width: 40rem) { .claims, .claims tbody, .claims tr, .claims td { display: block; }
  .claims thead { display: none; } .claims td, .claims td:nth-child(2) { border: 0; width: auto;
  padding: .15rem 0; } .claims tr { padding: .8rem 0; border-bottom: 1px solid var(--line); } }
@media print { :root { --yes: #0b6e4f; --yes-bg: #fff; --no: #a4262c; --no-bg: #fff; --none-bg: #fff; }
  body { padding: 0; max-width: none; font-size: 10pt; } .badge { border: 1px solid currentColor; }
  tr, figure { break-inside: avoid; } h2, h3 { break-after: avoid; }
  .figures { grid-template-columns: 1fr 1fr; } @page { margin: 16mm; } }
"""
OWN = "".join(f".own-{policy} {{ --own: var(--{policy}); }}\n"
              for policy in ("lru", "lfu", "fifo", "rand", "maxs"))
SHEET = COLOURS + STYLE + OWN
# Nothing is loaded, no script runs, and this style sheet alone applies.
HASH = base64.b64encode(hashlib.sha256(SHEET.encode()).digest()).decode()
SECURITY = f"default-src 'none'; style-src 'sha256-{HASH}'; base-uri 'none'; form-action 'none'"

NAMES = {"dataset1": "dataset1", "dataset2": "dataset2", "both": "dataset1 and 2",
         "authors": "dataset1, the authors’ own requests", "random": "random workload",
         "repeated": "repeated workload"}


def verdict(finding):
    return {True: "holds", False: "does not hold", None: "undecided"}[finding.holds]


def escape(text):
    return html.escape(str(text))


def badge(finding):
    style = {True: " yes", False: " no", None: ""}[finding.holds]
    return f'<span class="badge{style}">{verdict(finding)}</span>'


# ---- claims --------------------------------------------------------------------------------------

def claims_table(rows):
    cells = []
    for row in rows:
        own = ""
        if row.own:
            own = (f'<div class="own">{badge(row.own)} <span class="soft">of the authors’ own '
                   f"requests:</span> {escape(row.own.measured)}</div>")
        source = {"logs": "the authors’ logs", "Thrift": "Thrift study"}.get(
            row.claim.source, f"section {row.claim.source}")
        cells.append(
            f"<tr><td>{escape(NAMES[row.claim.about])}<small>{escape(source)}</small></td>"
            f"<td>{escape(row.claim.published)}<small>asked: {escape(row.claim.criterion)}</small>"
            f"</td><td>{badge(row.finding)}</td><td>{escape(row.finding.measured)}{own}</td></tr>")
    return ('<div class="wide"><table class="claims"><thead><tr><th>Data</th><th>Published</th>'
            "<th>Here</th><th>Measured, and by how much</th></tr></thead><tbody>"
            + "\n".join(cells) + "</tbody></table></div>")


# ---- figures -------------------------------------------------------------------------------------

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 420, 270, 44, 48, 14, 38


def ticks(low, high):
    """Round numbers from low to high, four or so."""
    span = high - low
    step = next(m * 10 ** e for e in range(-3, 7) for m in (1, 2, 5) if span / (m * 10 ** e) <= 5)
    first = int(low / step)
    return [n * step for n in range(first, int(high / step) + 2) if low <= n * step <= high]


def spread_labels(ends):
    """Where names stand so that none covers another: {name: y}, near the lines' ends."""
    placed, last = {}, TOP - 13
    for y, name in sorted(ends):
        last = max(y, last + 13)
        placed[name] = last
    over = max(0, last - (HEIGHT - BOTTOM))
    return {name: y - over for name, y in placed.items()}


def chart(title, x_title, xs, lines, none=None, top=None, errors=None, printed=None):
    """lines: {policy: [value by x]}; `none`, the time without a cache, is the labelled baseline; errors:
    {policy: [standard deviation by x]}, drawn as bars; printed: what a paper prints, as `lines`, dotted."""
    printed = printed or {}
    values = [v for some in (lines, printed) for line in some.values() for v in line if v is not None]
    values += [none] if none is not None else []
    high = top or max(values) * 1.05 or 1
    # A ratio's axis begins where the lines do, and the caption says so; that of times begins at 0.
    low = max(0, int(min(values) // 10 * 10)) if top else 0

    def x_at(x):
        return LEFT + (x - xs[0]) / ((xs[-1] - xs[0]) or 1) * (WIDTH - LEFT - RIGHT)

    def y_at(v):
        return HEIGHT - BOTTOM - (v - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">']
    for t in ticks(low, high):
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y_at(t):.1f}" '
                   f'y2="{y_at(t):.1f}"/><text x="{LEFT - 7}" y="{y_at(t) + 4:.1f}" '
                   f'text-anchor="end">{t:g}</text>')
    for x in xs:
        out.append(f'<text x="{x_at(x):.1f}" y="{HEIGHT - BOTTOM + 17}" text-anchor="middle">'
                   f"{x:g}</text>")
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 4}" text-anchor="middle">'
               f"{escape(x_title)}</text>")
    if none is not None:
        out.append(f'<line class="none" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y_at(none):.1f}" '
                   f'y2="{y_at(none):.1f}"/><text x="{LEFT + 4}" y="{y_at(none) + 14:.1f}">no cache'
                   "</text>")
    for policy, line in printed.items():
        points = [(x_at(x), y_at(v), v) for x, v in zip(xs, line) if v is not None]
        out.append(f'<polyline class="p own-{policy}" points="'
                   + " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points) + '"/>')
    labels = spread_labels([(y_at(line[-1]), policy) for policy, line in lines.items()])
    for policy, line in lines.items():
        points = [(x_at(x), y_at(v)) for x, v in zip(xs, line)]
        out.append(f'<polyline class="s own-{policy}" points="'
                   + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>')
        for (x, y), value, sd in zip(points, line, (errors or {}).get(policy, [])):
            if sd > 0:
                out.append(f'<line class="e own-{policy}" x1="{x:.1f}" x2="{x:.1f}" '
                           f'y1="{y_at(max(low, value - sd)):.1f}" y2="{y_at(min(high, value + sd)):.1f}"/>')
        out += [f'<circle class="d own-{policy}" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>'
                f"{policy.upper()}, {size:g}: {v:.1f}</title></circle>"
                for (x, y), size, v in zip(points, xs, line)]
        out.append(f'<text class="name k own-{policy}" x="{WIDTH - RIGHT + 8}" '
                   f'y="{labels[policy] + 4:.1f}">{policy.upper()}</text>')
    note = f" (the axis begins at {low})" if low else ""
    note += "; dotted: published" if printed else ""
    return f'<figure>{"".join(out)}</svg><figcaption>{escape(title + note)}</figcaption></figure>'


def numbers(columns, rows):
    head = "".join(f"<th>{escape(c)}</th>" for c in ["", *columns])
    body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in rows)
    return (f'<div class="wide"><table class="numbers"><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>")


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


def published_table(printed, measured, columns):
    """Published hit ratios, and in brackets by how many points the measured ones are higher."""
    if not printed:
        return ""

    def cell(value, own):
        return "" if value is None else f"{value:.1f} ({own - value:+.1f})"

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
    return (f"{platform.system()} {platform.release()}, {platform.machine()}, {processors} "
            f"processor{'' if processors == 1 else 's'}")


def page(rows, parts, authors, workloads, fall, scale, seconds, version):
    held = sum(row.finding.holds is True for row in rows)
    broken = sum(row.finding.holds is False for row in rows)
    rest = len(rows) - held - broken
    tally = [(held, "hold"), (broken, "do not hold")] + ([(rest, "undecided")] if rest else [])
    smoke = ("" if not scale.options else '<p><span class="badge no">smoke test</span> A few requests '
             "only: nothing here is a result.</p>")
    sections = [part_section(part) for part in parts.values()]
    if authors:
        sections.append(part_section(authors))
    sections += [workload_section(workload, fall) for workload in workloads.values()]
    steady = claims.unsteadiness(workloads) <= claims.NOISE
    unsteady = ("quiet enough." if steady else "this machine was busy, and verdicts on close times "
                "may differ from run to run. Those on hit ratios do not.")
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>sunproxy: what was published, and what was measured</title>
<meta http-equiv="Content-Security-Policy" content="{SECURITY}">
<style>{SHEET}</style></head><body>
<h1>What was published, and what was measured</h1>
<p>The evaluation of “RPC-Based Web Proxy Server: Implementation and Evaluation using Sun RPC and
libcurl”, and that of the study of policies in a caching proxy on Apache Thrift, repeated with sunproxy:
each replay live over RPC, against a daemon of its own that fetches from an origin on this machine
with a latency drawn once for each URL ({escape(scale.latency)}).</p>
{smoke}<ul class="tally">{"".join(f"<li><b>{n}</b>{escape(what)}</li>" for n, what in tally)}</ul>
<p>The data sets that ship with sunproxy are made from the figures that the papers publish of theirs, and differ
from them. A claim that does not hold here may have held there. The criterion of each claim was fixed before
the first run of this evaluation, and does not depend on the results.</p>
<h2>The claims</h2>
<p class="soft">{escape(claims.NOTE)} Runs of the same requests without a cache differed by
{100 * claims.unsteadiness(workloads):.1f} % (standard deviation): {unsteady}
{escape(claims.AUTHORS_NOTE) if authors else ""}</p>
{claims_table(rows)}
{"".join(sections)}
<p class="soft">Measured on {time.strftime("%Y-%m-%d")} in {seconds:.0f} s with {escape(version)} and Python
{platform.python_version()} on {escape(machine())}. RAND of the Sun RPC paper draws a key for each page on
insertion; RAND of the Thrift study draws each victim anew. Each run has another seed.</p>
</body></html>
"""
