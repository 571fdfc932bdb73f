"""studies/paper_table.py and document.py: one table, as Markdown, HTML and JSON."""

import html
import html.parser
import json
import re
import sys
import unittest

import harness

sys.path.append(str(harness.TOP / "studies"))
import document
import paper_table
import statements
from paper_table import Paper, Row
from verdict import Verdict

DOCUMENT = harness.TOP / "docs/REPRODUCTION.md"
RUN = document.Run("2026-01-02", "sunproxyd 1 and Python 3", "Linux, x86_64, 2 processors", 0.5)


def paper(key="one", verdict=Verdict.HOLDS, title="A paper"):
    return Paper(key, title, ["What was run."], [
        Row("4.1, Table 1", "a | b takes 3 * 4 [s] <fast>", "p_1 < p_2", "5 `s`\nor 6", verdict),
        paper_table.cannot("Figure 2", "a diagram", "it shows no result"),
        Row("order", "of ours", "equal", "7", Verdict.UNDECIDED, ours=True)], 12.3)


class Cells(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.rows = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def plain(text):
    return re.sub(r"\W+", " ", text).strip().lower()


class PaperTableTest(unittest.TestCase):
    def markdown_rows(self, text):
        return [[re.sub(r"\\(.)", r"\1", cell).strip()
                 for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
                for line in text.splitlines() if line.startswith("|")
                and not line.startswith("|---")]

    def test_markdown_and_html_have_the_same_cells(self):
        markdown = self.markdown_rows(paper_table.to_markdown(paper()))
        page = Cells(paper_table.to_html(paper())).rows
        self.assertEqual(len(markdown), 4)
        self.assertEqual([[plain(cell) for cell in row] for row in markdown],
                         [[plain(cell) for cell in row] for row in page])
        self.assertEqual(page[1][3].rstrip(), "5 `s`\nor 6")
        self.assertEqual([row[0] for row in page[1:]], ["4.1, Table 1", "Figure 2", "ours: order"])
        self.assertEqual([row[2] for row in page[1:]], ["holds", "cannot be repeated here",
                                                        "undecided"])

    def test_json_and_back(self):
        value = json.loads(json.dumps(paper_table.as_json(paper())))
        self.assertEqual(paper_table.from_json(value), paper())

    def test_the_tally_has_ours_apart(self):
        self.assertEqual(paper_table.tally(paper().rows),
                         "2 statements of the paper: holds 1, cannot be repeated here 1; "
                         "1 statement of ours: undecided 1.")


class StatementsTest(unittest.TestCase):
    def test_lists_of_words(self):
        for words, expected in (([4], "4"), ([4, 16], "4 and 16"), ([1, 4, 16], "1, 4 and 16")):
            self.assertEqual(statements.enumerate_words(words), expected)

    def test_means_with_intervals(self):
        for runs, expected in (([2.0], "2.0"), ([2.0, 2.0], "2.0"), ([1.0, 2.0, 3.0], "2.0 ± 2.5")):
            self.assertEqual(statements.plus_minus(runs), expected)


class DocumentTest(unittest.TestCase):
    def test_sections_are_renewed_and_the_rest_is_kept(self):
        text = document.update("", [paper()], RUN)
        self.assertEqual(document.update(text, [paper()], RUN), text)
        text = text.replace("# Repro", "By hand.\n\n# Repro")
        text = document.update(text, [paper("two", Verdict.FAILS, "Another")], RUN)
        self.assertIn("By hand.", text)
        self.assertIn("| A paper | 1 | 0 | 1 | 1 |", text)
        self.assertIn("| Another | 0 | 1 | 1 | 1 |", text)
        self.assertIn("| all | 1 | 1 | 2 | 2 |", text)
        text = document.update(text, [paper("one", Verdict.FAILS)], RUN)
        self.assertEqual((text.count("## A paper"), text.count("## Another")), (1, 1))
        self.assertIn("| all | 0 | 2 | 2 | 2 |", text)
        self.assertIn("load average before it 0.5", text)

    def test_prose_is_wrapped(self):
        text = document.update("", [paper()._replace(setup=["word " * 40])], RUN)
        self.assertLessEqual(max(len(line) for line in text.splitlines()
                                 if not line.startswith(("|", "<!--"))), 79)

    def test_the_document_in_the_tree_is_whole(self):
        """Its counts are those of its tables."""
        text = DOCUMENT.read_text()
        self.assertEqual(document.update(text, [], RUN), text)
        for key in ("geni", "leiden", "thrift", "sunrpc", "parallel"):
            self.assertIn(f"<!-- begin {key}:", text)
