"""The table of a paper: each of its figures, tables and stated results, and what came of it here.

One Row feeds the terminal, the page of `make reproduce`, its JSON and docs/REPRODUCTION.md, so that
these cannot differ. The rows of a paper stand in the order of its text; ours follow.
"""

import collections
import html

from verdict import Verdict

# place: the section, figure, table or sentence of the paper; for a statement of ours a few words.
# states: what the paper states or measured there, with its numbers; for ours, the statement.
# criterion: what makes it hold; "" for what cannot be repeated.
# measured: what was measured here, with its spread; for what cannot be repeated, the reason.
# verdict: a Verdict. ours: whether the statement is this project's and not the paper's.
Row = collections.namedtuple("Row", "place states criterion measured verdict ours",
                             defaults=(False,))

# key: the name by which it is in the JSON and in docs/REPRODUCTION.md. title: of the paper. setup:
# sentences on what was run, and on what differs from the paper's own setup. seconds: how long the
# study took.
Paper = collections.namedtuple("Paper", "key title setup rows seconds")

BADGES = {Verdict.HOLDS: " yes", Verdict.FAILS: " no", Verdict.UNDECIDED: "", Verdict.CANNOT: ""}
COLUMNS = ["Place", "The paper", "Verdict", "Here"]


def cannot(place, states, reason):
    """The row of what cannot be repeated here."""
    return Row(place, states, "", reason, Verdict.CANNOT)


def count(rows):
    """{Verdict: number of rows}"""
    return {one: sum(row.verdict is one for row in rows) for one in Verdict}


def tally(rows):
    """A sentence with the number of rows by verdict, those of the paper and ours apart."""
    parts = []
    for name, chosen in (("of the paper", [row for row in rows if not row.ours]),
                         ("of ours", [row for row in rows if row.ours])):
        if chosen:
            parts.append(f"{len(chosen)} statement{'' if len(chosen) == 1 else 's'} {name}: "
                         + ", ".join(f"{one.value} {n}" for one, n in count(chosen).items() if n))
    return "; ".join(parts) + "."


def place_of(row):
    return f"ours: {row.place}" if row.ours else row.place


# ---- Markdown ------------------------------------------------------------------------------------

def _cell(text):
    """Text as a cell of a table in Markdown: no markup of its own."""
    for character in "\\`*_[]<>|":
        text = text.replace(character, "\\" + character)
    return " ".join(text.split())


def to_markdown(paper):
    """The table alone."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    for row in paper.rows:
        states = _cell(row.states) + (f" *Criterion: {_cell(row.criterion)}.*" if row.criterion
                                      else "")
        lines.append(f"| {_cell(place_of(row))} | {states} | {row.verdict.value} | "
                     f"{_cell(row.measured)} |")
    return "\n".join(lines) + "\n"


# ---- HTML ----------------------------------------------------------------------------------------

def badge(verdict):
    return f'<span class="badge{BADGES[verdict]}">{verdict.value}</span>'


def to_html(paper):
    """The table alone; its classes are those of the page's style sheet (reproduce_page.py)."""
    cells = []
    for row in paper.rows:
        criterion = (f" <small>criterion: {html.escape(row.criterion)}</small>" if row.criterion
                     else "")
        cells.append(f"<tr><td>{html.escape(place_of(row))}</td>"
                     f"<td>{html.escape(row.states)}{criterion}</td>"
                     f"<td>{badge(row.verdict)}</td><td>{html.escape(row.measured)}</td></tr>")
    head = "".join(f"<th>{column}</th>" for column in COLUMNS)
    return (f'<div class="wide"><table class="claims"><thead><tr>{head}</tr></thead><tbody>'
            + "\n".join(cells) + "</tbody></table></div>")


# ---- JSON ----------------------------------------------------------------------------------------

def as_json(paper):
    """A value for json.dumps()."""
    return {**paper._asdict(), "rows": [{**row._asdict(), "verdict": row.verdict.value}
                                        for row in paper.rows]}


def from_json(value):
    return Paper(**{**value, "rows": [Row(**{**row, "verdict": Verdict(row["verdict"])})
                                      for row in value["rows"]]})
