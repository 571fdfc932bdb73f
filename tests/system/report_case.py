"""What the tests of sunproxy report share: a page made of a trace, and the data in it."""

import json
import re

import harness


class ReportCase(harness.SystemTest):
    needs = (harness.SUNPROXY, *harness.PLOT_FILES)

    def report(self, *arguments, **more):
        page = self.dir / "report.html"
        self.sunproxy("report", "-o", page, *arguments, **more)
        return page

    def data(self, *arguments, **more):
        text = self.report(*arguments, **more).read_text()
        return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>',
                                    text, re.S)[1])

    @staticmethod
    def table(trace, name):
        table = trace["tables"][name]
        return [dict(zip(table["columns"], row)) for row in table["rows"]]

    def trace(self, urls, name="trace.txt"):
        path = self.dir / name
        path.write_text("".join(f"{u}\n" for u in urls))
        return path
