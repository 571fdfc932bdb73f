"""The version stands in the Makefile; NEWS, debian/, the programs and the manuals agree with it."""

import re
import shutil

import harness

SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
MANUALS = ("sunproxy.1", "sunproxyd.8", "sunproxyd.rules.5")


def number(version):
    return tuple(int(part) for part in SEMVER.fullmatch(version).groups())


class VersionsTest(harness.SystemTest):
    needs = (harness.SUNPROXYD, harness.SUNPROXY)

    def setUp(self):
        super().setUp()
        self.version = re.search(r"(?m)^VERSION := (\S+)$", self.text("Makefile"))[1]
        self.assertRegex(self.version, SEMVER)

    def text(self, name):
        return (harness.TOP / name).read_text()

    def test_news(self):
        """The newest first: the Makefile's version, or above it one to come."""
        news = self.text("NEWS")
        sections = re.findall(r"(?m)^(\S+)\n-+$", news)
        numbers = [number(version) for version in sections]
        self.assertEqual(numbers, sorted(set(numbers), reverse=True))
        self.assertIn(self.version, sections)
        self.assertLessEqual(sections.index(self.version), 1)
        for line in re.findall(r"(?m)^(\S+\n-+)$", news):
            version, underline = line.split("\n")
            self.assertEqual(len(version), len(underline))
        for body in re.split(r"(?m)^\S+\n-+$", news)[1:]:
            self.assertTrue(body.strip())

    def test_debian(self):
        """Its newest entry is of that version or of a later build of it, and the others are older."""
        entries = re.findall(r"(?m)^sunproxy \(([^)]+)\) \S+; urgency=\w+$", self.text("debian/changelog"))
        self.assertEqual(entries[0].partition("+")[0], self.version)
        numbers = [number(entry.partition("+")[0]) for entry in entries]
        self.assertEqual(numbers, sorted(numbers, reverse=True))

    def test_programs(self):
        for program in (harness.SUNPROXYD, harness.SUNPROXY):
            said = self.run_program([program, "--version"]).stdout.decode()
            self.assertEqual(said, f"{program.name} {self.version}\n")

    def test_change(self):
        """What has the version in it is made again when that changes, and not otherwise."""
        for name in ("Makefile", "proxy.x"):
            shutil.copy(harness.TOP / name, self.dir)
        (self.dir / "base").mkdir()
        (self.dir / "base/given.c").write_text("extern const char given[];\n"
                                                  "const char given[] = SUNPROXY_VERSION;\n")
        made = self.dir / "build/debug/base/given.o"

        def make(version):
            said = self.run_program(["make", "-C", self.dir, "VARIANT=debug", f"VERSION={version}",
                                     made.relative_to(self.dir)]).stdout.decode()
            return "given.c" in said, version.encode() in made.read_bytes()

        self.assertEqual(make("9.9.8"), (True, True))
        self.assertEqual(make("9.9.8"), (False, True))
        self.assertEqual(make("9.9.9"), (True, True))

    def test_manuals(self):
        """They have no version of their own, which a release would have to change."""
        for manual in MANUALS:
            self.assertEqual(re.findall(r"\bsunproxyd? \d+\.\d+", self.text(f"docs/{manual}")), [], manual)
