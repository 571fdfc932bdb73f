"""The pages of the documentation: their lengths, and that what they refer to is there."""

import re
import subprocess
import unittest

import harness

README = harness.TOP / "README.md"
DOCS = harness.TOP / "docs"
# A reference to a section of a page, in prose and in comments, whose lines may begin with " * " or "# ".
REFERENCE = re.compile(r'\b([A-Z]+)\.md,[ \n*#]+"([^"]+)"')
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")


def headings(page):
    return re.findall(r"(?m)^#+ (.*)$", page.read_text())


class DocsTest(unittest.TestCase):
    def files(self, *patterns):
        listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=harness.TOP, check=True,
                                stdout=subprocess.PIPE).stdout.decode().split("\0")
        return [path for name in listed if name and (path := harness.TOP / name).is_file()]

    def test_prose_is_wrapped(self):
        """At 79 columns, as terminals and diffs show it; tables, headings and indented code aside."""
        pages = self.files("*.md")
        self.assertGreaterEqual({page.name for page in pages}, {"README.md", "HTTP.md", "POLICIES.md"})
        wide = [f"{page.relative_to(harness.TOP)}:{number}" for page in pages
                for number, line in enumerate(page.read_text().splitlines(), 1)
                if len(line) > 79 and not line.startswith(("|", "    ", "#")) and " " in line.strip(" -")]
        self.assertEqual(wide, [])

    def test_the_readme_links_all_pages(self):
        linked = set(LINK.findall(README.read_text()))
        pages = {f"docs/{page.name}" for page in DOCS.glob("*.md")}
        self.assertIn("docs/HTTP.md", pages)
        self.assertEqual(pages - linked, set())

    def test_links_lead_to_files(self):
        missing, seen = [], 0
        for page in self.files("*.md"):
            for target in LINK.findall(page.read_text()):
                if not target.startswith(("https://", "http://")):
                    seen += 1
                    if not (page.parent / target.partition("#")[0]).exists():
                        missing.append(f"{page.relative_to(harness.TOP)}: {target}")
        self.assertGreater(seen, 20)
        self.assertEqual(missing, [])

    def test_references_lead_to_sections(self):
        missing, seen = [], 0
        for path in self.files("*.md", "*.c", "*.h", "*.py", "*.sh"):
            for name, section in REFERENCE.findall(path.read_text(errors="replace")):
                page = DOCS / f"{name}.md"
                seen += 1
                section = re.sub(r"\s+", " ", section)
                if not page.exists() or section not in headings(page):
                    missing.append(f"{path.relative_to(harness.TOP)}: {name}.md, {section}")
        self.assertGreater(seen, 10)
        self.assertEqual(missing, [])

    def test_the_readme_has_the_sums_of_the_papers(self):
        row = re.search(r"(?m)^\| all \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$",
                        (DOCS / "REPRODUCTION.md").read_text())
        holds, does_not, undecided, cannot = map(int, row.groups())
        text = " ".join(README.read_text().split())
        self.assertIn(f"each of {holds + does_not + undecided + cannot} statements", text)
        self.assertIn(f"{holds} hold, {does_not} do not hold, {undecided} are undecided, "
                      f"{cannot} cannot be repeated here", text)

    def test_make_bench_runs_what_its_page_lists(self):
        recipe = re.search(r"(?m)^bench: .*\n((?:\t.*\n)+)", (harness.TOP / "Makefile").read_text())
        runs = re.findall(r"tests/bench/\w+\.py", recipe.group(1))
        listed = re.findall(r"(?m)^\| `(tests/bench/\w+\.py)` \|", (DOCS / "BENCH.md").read_text())
        self.assertIn("tests/bench/bench.py", runs)
        self.assertEqual(listed, runs)


if __name__ == "__main__":
    unittest.main()
