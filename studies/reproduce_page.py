"""The page of `make reproduce`: claims beside measurements, figures and tables, in one file; and
the same as JSON.

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
import reproduce_figures as figures
from reproduce_figures import escape

# The report's colours, so that a policy looks the same on both pages.
COLOURS = (pathlib.Path(__file__).resolve().parents[1] / "study/report/page/colours.css").read_text()
STYLE = """
:root { color-scheme: light dark; --yes: #0b6e4f; --yes-bg: #e2f3ec; --no: #a4262c;
  --no-bg: #fbe6e6; --none-bg: #eceef1; --shade: #b9bec6; }
@media screen and (prefers-color-scheme: dark) { :root { --yes: #7fd8b5; --yes-bg: #14362b;
  --no: #ff9d9d; --no-bg: #43201f; --none-bg: #2a2f37; --shade: #59616d; } }
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
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8rem; line-height: 1.4;
  margin: .3rem 0 1rem; padding: .6rem .8rem; border: 1px solid var(--line); border-radius: .6rem;
  background: var(--card); }
@media (max-width: 40rem) { .claims, .claims tbody, .claims tr, .claims td { display: block; }
  .claims thead { display: none; } .claims td, .claims td:nth-child(2) { border: 0; width: auto;
  padding: .15rem 0; } .claims tr { padding: .8rem 0; border-bottom: 1px solid var(--line); }
  .numbers { min-width: 0; font-size: .75rem; } .numbers th, .numbers td { padding-right: .5rem; }
  .numbers th { min-width: 0; } .numbers td:first-child { white-space: normal;
  min-width: 4.5rem; } }
@media print { :root { --yes: #0b6e4f; --yes-bg: #fff; --no: #a4262c; --no-bg: #fff;
  --none-bg: #fff; }
  body { padding: 0; max-width: none; font-size: 10pt; } .badge { border: 1px solid currentColor; }
  tr, figure { break-inside: avoid; } h2, h3 { break-after: avoid; }
  .figures { grid-template-columns: 1fr 1fr; } .wide { overflow: visible; background: none; }
  .numbers { min-width: 0; font-size: 8pt; } @page { margin: 16mm; } }
"""
SHEET = COLOURS + STYLE + figures.OWN
# Nothing is loaded, no script runs, and this style sheet alone applies.
HASH = base64.b64encode(hashlib.sha256(SHEET.encode()).digest()).decode()
SECURITY = f"default-src 'none'; style-src 'sha256-{HASH}'; base-uri 'none'; form-action 'none'"

# All of it: paper_table.Paper of each paper, whether it is a smoke test, seconds, the daemon's
# version, and the load average before it began.
Run = collections.namedtuple("Run", "papers smoke seconds version load")


def all_rows(run):
    return [row for paper in run.papers for row in paper.rows]


def circumstances(run):
    """document.Run of this run."""
    return document.Run(time.strftime("%Y-%m-%d"),
                        f"{run.version} and Python {platform.python_version()}",
                        machine(), run.load)


def paper_section(paper):
    """Setup and table of a paper."""
    setup = "".join(f"<p>{escape(sentences)}</p>" for sentences in paper.setup)
    return (f"<h2>{escape(paper.title)}</h2>{setup}"
            f'<p class="soft">{escape(paper_table.tally(paper.rows))}</p>'
            f'{paper_table.to_html(paper)}')


# ---- the page ------------------------------------------------------------------------------------

def machine():
    processors = os.cpu_count() or 1
    return (f"{platform.system()}, {platform.machine()}, {processors} "
            f"processor{'' if processors == 1 else 's'}")


def page(run, more):
    """`more`: what the studies have beside their tables, by name."""
    tally = [(n, one.value) for one, n in paper_table.count(all_rows(run)).items() if n]
    smoke = ('<p><span class="badge no">smoke test</span> A few requests only: nothing here is a '
             'result.</p>'
             if run.smoke else "")
    sections = []
    for paper in run.papers:
        sections += [paper_section(paper), more.get(paper.key, "")]
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>sunproxy: what was published, and what was measured</title>
<meta http-equiv="Content-Security-Policy" content="{SECURITY}">
<style>{SHEET}</style></head><body>
<h1>What was published, and what was measured</h1>
<p>Evaluations of caching proxies, repeated with sunproxy. A table for each paper has its figures,
tables and stated results in the order of the text, and statements of this project, which are
labelled as ours. A statement holds, does not hold, is undecided, or cannot be repeated here.</p>
{smoke}<ul class="tally">{"".join(f"<li><b>{n}</b>{escape(what)}</li>" for n, what in tally)}</ul>
<p class="soft">Where chance has a part, verdicts rest on repeated runs and on intervals of 95 %
by Student’s t distribution; equalities are tests of equivalence.</p>
{"".join(sections)}
<p class="soft">Measured on {time.strftime("%Y-%m-%d")} in {run.seconds:.0f} s
with {escape(run.version)} and Python {platform.python_version()} on {escape(machine())};
load average before it {run.load:.1f}.</p>
</body></html>
"""


# ---- JSON ----------------------------------------------------------------------------------------

def as_json(run, more):
    """What the page has, as a value for json.dumps(); `more`: that of further studies, by name."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "seconds": run.seconds,
        "smoke": run.smoke,
        "version": run.version,
        "python": platform.python_version(),
        "machine": machine(),
        "load_before": run.load,
        "papers": [paper_table.as_json(paper) for paper in run.papers],
        "studies": more,
    }
