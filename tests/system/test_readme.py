"""README's first run, pasted word by word into a shell, in namespaces of its own."""

import re
import shutil

import harness

README = harness.TOP / "README.md"
# Figures with units, which differ from run to run.
FIGURE = re.compile(r"\d+(?:\.\d+)? (?:us|ms|s|B|KiB|MiB)\b")


def blocks_of(section):
    """The indented blocks of a section."""
    text = README.read_text().split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    return [re.sub(r"(?m)^ {4}", "", block) for block in re.findall(r"(?m)(?:^ {4}.*\n)+", text)]


class FirstRunTest(harness.SystemTest):
    needs = (harness.SUNPROXYD, harness.SUNPROXY)

    def test_the_first_run(self):
        for tool in ("bash", "python3"):
            if not shutil.which(tool):
                self.skipTest(f"{tool} is not installed")
        namespace = harness.Namespace(self)
        build, run, printed = blocks_of("First run")[:3]
        self.assertEqual(build, "make setup\nmake\n")
        (self.dir / "build").mkdir()
        (self.dir / "build/release").symlink_to(harness.BUILD)
        script = f"trap 'kill $(jobs -p) 2> killed' EXIT\ncd {self.dir}\n{run}wait\n"
        done = namespace.run(["bash", "-c", script], seconds=60)
        errors = done.stderr.decode()
        self.assertEqual(done.returncode, 0, errors)

        # Both fetches over RPC say what README says, in the order of its lines.
        lines = [line for line in errors.splitlines() if line.startswith("* ")]
        self.assertEqual(len(lines), len(printed.splitlines()), errors)
        for line, expected in zip(lines, printed.splitlines()):
            self.assertEqual(FIGURE.sub("N", line), FIGURE.sub("N", expected))
        output = done.stdout.decode()
        for name, count in (("requests", 4), ("hits", 2), ("misses", 1), ("revalidated", 1)):
            self.assertRegex(output, rf"(?m)^{name} +{count}$")
        self.assertEqual(re.findall(r"(?m)^(?:miss|revalidated|hit)$", output),
                         ["revalidated", "hit"])

        # All pages are the file; the origin was asked once over each protocol.
        page = (self.dir / "page.txt").read_bytes()
        for name in ("first", "second", "third", "fourth"):
            self.assertEqual((self.dir / f"{name}.txt").read_bytes(), page)
        self.assertEqual((self.dir / "origin.log").read_text().count('"GET /page.txt HTTP'), 2)
        self.assertIn("sunproxyd: stopped", errors)
