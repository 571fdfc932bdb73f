"""What tests of sunproxy simulate share."""

import json

import harness
from test_paper import FOLDER

SHIPPED = harness.TOP / "datasets/dataset1"
PAPER = FOLDER / "dataset1-urls.txt"
CLASSICS = ["lru", "lfu", "fifo", "rand", "maxs"]


class SimulateCase(harness.SystemTest):
    needs = (harness.SUNPROXY,)

    def simulate(self, *arguments, **more):
        return self.sunproxy("simulate", *arguments, **more)

    def summary(self, *arguments, command="simulate"):
        return json.loads(self.sunproxy(command, "--json", *arguments).stdout)

    def results(self, *arguments):
        """{(policy, URLs, bytes): result} of one trace."""
        trace, = self.summary(*arguments)["traces"]
        return {(r["policy"], r["capacity_urls"], r["capacity_bytes"]): r for r in trace["results"]}

    def complaint(self, *arguments, expect=harness.EX_USAGE, command="simulate"):
        done = self.sunproxy(command, *arguments, expect=expect)
        return done.stderr.decode()

    def trace(self, urls, name="trace.txt"):
        path = self.dir / name
        path.write_text("".join(f"{u}\n" for u in urls))
        return path

    def policies(self):
        """All that store anything."""
        *there_are, none = json.loads(self.sunproxy("policies", "--json").stdout)
        self.assertEqual(none["name"], "none")
        return there_are
