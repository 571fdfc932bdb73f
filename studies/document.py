"""Writes the sections of docs/REPRODUCTION.md: the table of each paper that was repeated, and their
counts.

A section stands between two comments that name it, "begin KEY" and "end KEY". What stands outside
of these is written by hand and kept, and so are the sections of papers that were not repeated.
"""

import collections
import re
import textwrap

import paper_table
from verdict import Verdict

WIDTH = 79
SUMMARY = "summary"
HEAD = """# Reproduction of published evaluations
"""

# When and with what the studies ran, as a sentence has it.
Run = collections.namedtuple("Run", "date versions machine load")


def wrap(text):
    return textwrap.fill(" ".join(text.split()), WIDTH, break_long_words=False,
                         break_on_hyphens=False)


def _marked(key, body):
    return (f"<!-- begin {key}: written by make reproduction -->\n\n{body.strip()}\n\n"
            f"<!-- end {key} -->\n")


def _pattern(key):
    key = re.escape(key)
    return re.compile(rf"(?s)<!-- begin {key}:[^>]*-->\n(.*?)<!-- end {key} -->\n")


def section(paper, run):
    """Heading, setup, table and circumstances of a paper."""
    return (f"## {paper.title}\n\n{wrap(paper_table.tally(paper.rows))}\n\n"
            + "\n\n".join(map(wrap, paper.setup)) + "\n\n" + paper_table.to_markdown(paper) + "\n"
            + wrap(f"Measured on {run.date} in {paper.seconds:.0f} s with {run.versions} on "
                   f"{run.machine}; load average before it {run.load:.1f}."))


def _put(text, key, body):
    """Replaces the section of that name, or adds it at the end."""
    pattern = _pattern(key)
    if pattern.search(text):
        return pattern.sub(lambda _: _marked(key, body), text, count=1)
    return text.rstrip("\n") + "\n\n" + _marked(key, body)


def _counts(text):
    """{heading: {verdict: rows}} of the sections of papers that a document has."""
    found = {}
    for match in re.finditer(r"(?s)<!-- begin (\w+):[^>]*-->\n(.*?)<!-- end \1 -->", text):
        if match[1] != SUMMARY:
            title = re.search(r"(?m)^## (.*)$", match[2])[1]
            rows = re.findall(r"(?m)^\|(?:(?:[^|\\]|\\.)*\|){2} ([a-z ]+) \|", match[2])
            found[title] = {one: rows.count(one.value) for one in Verdict}
    return found


def summary(text):
    """The counts by verdict of all sections, as a table."""
    found = _counts(text)
    lines = ["| Paper | " + " | ".join(one.value for one in Verdict) + " |", "|---|"
             + "---:|" * len(Verdict)]
    lines += [f"| {title} | " + " | ".join(str(n) for n in counts.values()) + " |"
              for title, counts in found.items()]
    total = [sum(counts[one] for counts in found.values()) for one in Verdict]
    lines.append("| all | " + " | ".join(map(str, total)) + " |")
    return "\n".join(lines)


def update(text, papers, run):
    """The text of the document with the sections of these papers renewed."""
    text = text or HEAD
    if not _pattern(SUMMARY).search(text):
        text = text.rstrip("\n") + "\n\n" + _marked(SUMMARY, "-")
    for paper in papers:
        text = _put(text, paper.key, section(paper, run))
    return _put(text, SUMMARY, summary(text))
