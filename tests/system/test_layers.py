"""Which folder of the project may include headers of which: arrows run down only."""

import graphlib
import re
import subprocess
import unittest

import harness

# Every folder may use base/. protocol is proxy.h, which rpcgen makes.
MAY_USE = {
    "base": [],
    "policies": [],
    "http": [],
    "net": [],
    "rpc": ["net"],
    "origins": ["http"],
    "metrics": ["http"],
    "rules": ["cache", "origins", "http"],
    "fetch": ["origins", "http"],
    "trace": [],
    "cache": ["policies"],
    "store": ["cache", "http"],
    "tier": ["store", "cache", "fetch", "origins", "http"],
    "sim": ["policies"],
    "proxy": ["metrics", "rules", "tier", "store", "cache", "fetch", "origins", "http",
              "policies"],
    "server": ["proxy", "metrics", "rules", "tier", "store", "cache", "rpc", "net", "fetch", "origins",
               "http", "policies", "protocol"],
    "cli": ["trace"],
    "study": ["cli", "sim", "trace", "policies"],
    "client": ["cli", "rpc", "http", "trace", "store", "protocol"],
}
# The program's list of commands.
MAIN = {"client/main.c": ["study"]}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<][^">]+[">])', re.M)


def includes(path):
    return INCLUDE.findall(path.read_text(errors="replace"))


class Layers(unittest.TestCase):
    def sources(self):
        for folder in MAY_USE:
            for path in sorted((harness.TOP / folder).rglob("*.[ch]")):
                yield folder, path

    def folder_of(self, name, path):
        """Of an #include; None for a system header."""
        inner = name[1:-1]
        if inner == "proxy.h":
            return "protocol"
        if name[0] == "<":
            self.assertFalse((harness.TOP / inner).exists(), f"{path}: {name} is ours")
            return None
        self.assertTrue((harness.TOP / inner).is_file(), f"{path}: {name} is not named from the top")
        return inner.split("/")[0]

    def test_each_folder_includes_only_what_lies_below_it(self):
        wrong, seen = [], set()
        for folder, path in self.sources():
            file = str(path.relative_to(harness.TOP))
            allowed = {folder, "base", None, *MAY_USE[folder], *MAIN.get(file, [])}
            for name in includes(path):
                used = self.folder_of(name, file)
                seen.add((folder, used))
                if used not in allowed:
                    wrong.append(f"{file}: {name}")
        self.assertEqual(wrong, [])
        # The search finds includes at all, and rows of the table that nothing needs are left out.
        for folder, uses in MAY_USE.items():
            self.assertIn((folder, folder), seen)
            for used in uses:
                self.assertIn((folder, used), seen, "in the table, but not used")

    def test_there_is_no_cycle_of_folders(self):
        order = list(graphlib.TopologicalSorter(
            {folder: [*uses, *(["base"] if folder != "base" else [])]
             for folder, uses in MAY_USE.items()}).static_order())
        self.assertLess(order.index("base"), order.index("rpc"))

    def test_no_files_include_each_other_in_a_cycle(self):
        graph = {str(path.relative_to(harness.TOP)): [name[1:-1] for name in includes(path) if name[0] == '"']
                 for _, path in self.sources()}
        self.assertIn("net/connection.h", graph["net/connection.c"])
        list(graphlib.TopologicalSorter(graph).static_order())  # CycleError names the files

    def test_offline_commands_and_the_proxy_know_no_rpc_and_the_cache_no_fetching(self):
        def below(folder):
            return set(MAY_USE.get(folder, [])).union(*map(below, MAY_USE.get(folder, [])))
        self.assertTrue(below("study").isdisjoint({"rpc", "fetch", "server", "client", "protocol"}))
        self.assertTrue(below("cache").isdisjoint({"rpc", "fetch"}))
        self.assertTrue(below("proxy").isdisjoint({"rpc", "net", "server", "protocol"}))

    def test_the_folders_are_those_of_the_makefile_and_of_the_architecture(self):
        made = re.search(r"(?m)^FOLDERS := (.*)$", (harness.TOP / "Makefile").read_text()).group(1)
        self.assertEqual(set(made.split()), set(MAY_USE))
        page = (harness.TOP / "docs/ARCHITECTURE.md").read_text()
        rows = dict(re.findall(r"(?m)^\| `(\w+)/` \|.*\| ([^|]*) \|$", page))
        for folder, uses in MAY_USE.items():
            said = set(re.findall(r"`(\w+)`", rows[folder])) - {"base"}
            self.assertEqual(said, set(uses) - {"protocol"}, f"{folder} in docs/ARCHITECTURE.md")

    def test_studies_use_scripts_and_not_the_other_way_round(self):
        def modules(folder):
            return {path.stem: path.read_text() for path in (harness.TOP / folder).glob("*.py")}

        def imported(text):
            return set(re.findall(r"(?m)^ *(?:import|from) (\w+)", text))

        studies, scripts = modules("studies"), modules("scripts")
        self.assertIn("harness", set.union(*map(imported, studies.values())) & set(scripts))
        self.assertEqual(set.union(*map(imported, scripts.values())) & set(studies), set())

    def test_the_repository_has_no_code_of_others(self):
        files = subprocess.run(["git", "ls-files", "-z"], cwd=harness.TOP, stdout=subprocess.PIPE,
                               check=True).stdout.decode().split("\0")
        self.assertIn("study/report/page/page.js", files)
        self.assertEqual([f for f in files if re.search(r"third_party|vendor/|node_modules|\.min\.", f)
                          and (harness.TOP / f).exists()], [])

    def test_what_begins_with_an_interpreter_can_be_executed(self):
        files = subprocess.run(["git", "ls-files", "-z"], cwd=harness.TOP, stdout=subprocess.PIPE,
                               check=True).stdout.decode().split("\0")
        scripts = [path for f in files if f and (path := harness.TOP / f).is_file()
                   and path.open("rb").read(2) == b"#!"]
        self.assertIn(harness.TOP / "tests/bench/http.py", scripts)
        self.assertEqual([str(path) for path in scripts if not path.stat().st_mode & 0o111], [])
