"""sunproxy simulate: hit ratios by window, tables in Markdown, curves of samples."""

import csv
import io
import json
import random
import re

from simulate_case import SimulateCase, SHIPPED

SIZES = ("--sizes", SHIPPED / "sizes.tsv")


def tables_of(markdown):
    """Each table as a list of rows of cells, the line below the names left out."""
    tables, rows = [], []
    for line in [*markdown.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            tables.append([rows[0], *rows[2:]])
            rows = []
    return tables


class WindowTest(SimulateCase):
    def outcomes(self, *arguments):
        """Of a log: for each request whether it hit, and its bytes."""
        log = self.dir / "log.tsv"
        self.simulate(*arguments, "--log", log)
        rows = csv.DictReader(io.StringIO(log.read_text()), delimiter="\t")
        return [(r["outcome"] == "hit", int(r["bytes"])) for r in rows]

    def test_windows_of_requests_are_what_a_log_says(self):
        arguments = (SHIPPED / "History", *SIZES, "--policy", "s3-fifo", "--capacity", "20")
        outcomes = self.outcomes(*arguments)
        trace, = self.summary(*arguments, "--window", "100")["traces"]
        windows = trace["results"][0]["windows"]
        self.assertEqual([(w["first_request"], w["last_request"]) for w in windows],
                         [(n + 1, min(n + 100, 997)) for n in range(0, 997, 100)])
        for w in windows:
            own = outcomes[w["first_request"] - 1:w["last_request"]]
            self.assertEqual((w["requests"], w["hits"]), (len(own), sum(hit for hit, _ in own)))
            self.assertAlmostEqual(w["hit_ratio"], w["hits"] / w["requests"], 6)
            self.assertEqual(w["bytes"], sum(size for _, size in own))
            self.assertEqual(w["bytes_hit"], sum(size for hit, size in own if hit))
            self.assertAlmostEqual(w["byte_hit_ratio"], w["bytes_hit"] / w["bytes"], 6)
            self.assertIsNone(w["begin_us"])
        self.assertEqual(sum(w["hits"] for w in windows), trace["results"][0]["hits"])

    def test_windows_of_time_begin_with_the_clock(self):
        # Requests from 10:50 to 12:10, one a minute, none from 11:10 to 11:29; one is out of order.
        table = self.dir / "t.csv"
        begin = 1717150800 - 600  # 2024-05-31 10:10 UTC
        minutes = [m for m in range(40, 120) if not 60 <= m < 80]
        minutes[5], minutes[6] = minutes[6], minutes[5]
        table.write_text("time,url\n" + "".join(
            f"{begin + 60 * m},http://h/{m % 3}\n" for m in minutes))
        for length, expected in (("1h", {"2024-05-31 10:00:00": 10, "2024-05-31 11:00:00": 40,
                                         "2024-05-31 12:00:00": 10}),
                                 ("20m", {"2024-05-31 10:40:00": 10, "2024-05-31 11:00:00": 10,
                                          "2024-05-31 11:20:00": 10, "2024-05-31 11:40:00": 20,
                                          "2024-05-31 12:00:00": 10})):
            with self.subTest(length):
                text = self.simulate(table, "--policy", "lru", "--capacity", "3", "--window",
                                     length).stdout.decode()
                rows = re.findall(r"(?m)^  (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) +(\d+) +([0-9.]+)$", text)
                self.assertEqual({name: int(n) for name, n, _ in rows}, expected)
                # All fit: misses are the three first requests.
                self.assertEqual([ratio for *_, ratio in rows], ["70.00"] + ["100.00"] * (len(rows) - 1))
                windows = self.results(table, "--policy", "lru", "--capacity", "3", "--window",
                                       length)["lru", 3, 0]["windows"]
                for w, (name, *_) in zip(windows, rows):
                    self.assertEqual(w["begin_us"] % 60000000, 0)
                    self.assertEqual(w["begin_us"] // 3600000000 % 24, int(name[11:13]))

    def test_windows_leave_the_warm_up_out_and_average_over_seeds(self):
        arguments = (SHIPPED / "History", "--policy", "rand,lru", "--capacity", "10", "--warmup", "150")
        seeds = [self.results(*arguments, "--window", "100", "--seed", str(n), "--seeds", "1")["rand", 10, 0]
                 for n in range(1, 6)]
        together = self.results(*arguments, "--window", "100")
        windows = together["rand", 10, 0]["windows"]
        self.assertEqual((windows[0]["first_request"], windows[0]["requests"]), (151, 50))
        self.assertEqual(sum(w["requests"] for w in windows), 997 - 150)
        for n, w in enumerate(windows):
            mean = sum(one["windows"][n]["hit_ratio"] for one in seeds) / 5
            self.assertAlmostEqual(w["hit_ratio"], mean, 5)
        lru = together["lru", 10, 0]
        self.assertEqual(sum(w["hits"] for w in lru["windows"]), lru["hits"])

    def test_windows_as_csv(self):
        done = self.simulate(SHIPPED / "History", *SIZES, "--policy", "lru,opt", "--capacity", "10%B,20%",
                             "--window", "400", "--csv")
        rows = list(csv.DictReader(io.StringIO(done.stdout.decode())))
        self.assertEqual(len(rows), 2 * 2 * 3)
        for r in rows:
            self.assertAlmostEqual(float(r["hit_ratio"]), int(r["hits"]) / int(r["requests"]), 5)
        # Without windows a line is a row, with its other columns.
        done = self.simulate(SHIPPED / "History", "--policy", "lru", "--capacity", "10%", "--csv")
        row, = csv.DictReader(io.StringIO(done.stdout.decode()))
        self.assertNotIn("first_request", row)
        self.assertEqual(row["misses"], "141")

    def test_what_cannot_be_asked_of_windows(self):
        trace = self.trace(["http://h/a"] * 3)
        for arguments, what in ((("--window", "0"), "a number of requests (1000), or a duration"),
                                (("--window", "soon"), "a duration such as 1h"),
                                (("--window", "1h"), "needs a trace with times"),
                                (("--window", "2", "--curve"), "no windows"),
                                (("--window", "2", "--sample", "50%"), "leave --sample out"),
                                (("--window", "2", "--policy", "lru", "--capacity", "1", "--log", "x"),
                                 "exclude each other")):
            self.assertIn(what, self.complaint(trace, *arguments))
        self.assertIn("at most 100000", self.complaint(SHIPPED / "History", "--window", "1ms"))


class MarkdownTest(SimulateCase):
    def test_rows(self):
        arguments = (SHIPPED / "History", *SIZES, "--policy", "lru,rand,gdsf", "--capacity", "10%B,64",
                     "--count-bytes", "body")
        text = self.simulate(*arguments, "--markdown").stdout.decode()
        table, = tables_of(text)
        self.assertEqual(table[0], ["capacity", "policy", "hit ratio", "sd", "byte hit ratio", "sd", "evictions"])
        results = self.results(*arguments)
        self.assertEqual(len(table) - 1, len(results))
        by_name = {(row[0].split(" (")[0], row[1]): row for row in table[1:]}
        for (policy, urls, _), r in results.items():
            row = by_name[f"{urls} URLs" if urls else "251 KiB", policy]
            self.assertEqual(row[2], f"{100 * r['hit_ratio']:.2f} %")
            self.assertEqual(row[4], f"{100 * r['byte_hit_ratio']:.2f} %")
            self.assertEqual(row[3], f"{100 * r['hit_ratio_sd']:.2f}" if policy == "rand" else "")
            self.assertEqual(row[6], str(r["evictions"]))

    def test_without_sizes_there_is_no_column_for_them(self):
        table, = tables_of(self.simulate(SHIPPED / "History", "--policy", "lru", "--markdown").stdout.decode())
        self.assertEqual(table[0], ["capacity", "policy", "hit ratio", "evictions"])

    def test_names_are_no_markup(self):
        path = self.trace(["http://h/a", "http://h/a"], "a_b*|c.txt")
        text = self.simulate(path, "--policy", "lru", "--capacity", "1", "--markdown").stdout.decode()
        self.assertIn(r"a\_b\*\|c.txt", text.splitlines()[0])
        self.assertTrue(text.startswith("## "))

    def test_windows_and_curves(self):
        arguments = (SHIPPED / "History", "--policy", "lru,fifo", "--markdown")
        rows, *windows = tables_of(self.simulate(*arguments, "--capacity", "7,14", "--window", "500").stdout.decode())
        self.assertEqual(len(windows), 2)
        for table in windows:
            self.assertEqual([row[:2] for row in table], [["requests", "number"], ["1-500", "500"], ["501-997", "497"]])
            self.assertEqual(sorted(table[0][2:]), ["fifo", "lru"])
        self.assertEqual(rows[1][:3], ["7 URLs (10.3 %)", "lru", "85.86 %"])
        curve, = tables_of(self.simulate(*arguments, "--curve=urls", "--points", "4").stdout.decode())
        self.assertEqual(curve[0], ["capacity", "lru", "fifo"])
        self.assertEqual(len(curve), 5)
        self.assertEqual(curve[-1], ["68 URLs", "93.18 %", "93.18 %"])
        self.assertIn("--json", self.complaint(SHIPPED / "History", "--markdown", "--json"))


class SampledCurveTest(SimulateCase):
    """LRU's curve in bytes from a sample: the errors that are stated hold."""

    def test_errors_of_lru_in_bytes(self):
        dice = random.Random(3)
        ranks = dice.choices(range(30000), [1 / (n + 1) ** 0.7 for n in range(30000)], k=150000)
        sizes = [int(dice.lognormvariate(9, 1)) + 1 for _ in range(30000)]
        trace = self.trace([f"http://h/{n}\t{sizes[n]}" for n in ranks])
        arguments = (trace, "--policy", "lru", "--curve=bytes", "--points", "8")
        exact = {p["capacity_bytes"]: p for p in self.summary(*arguments)["traces"][0]["curves"][0]["points"]}
        within = stated = 0
        for seed in range(1, 9):
            traces = self.summary(*arguments, "--sample", "20%", "--seed", str(seed))["traces"]
            for p in traces[0]["curves"][0]["points"]:
                for ratio in ("hit_ratio", "byte_hit_ratio"):
                    error = p[f"{ratio}_error"]
                    if error is not None:
                        stated += 1
                        off = abs(p[ratio] - exact[p["capacity_bytes"]][ratio])
                        within += off <= 1.96 * error + 1e-6
                        self.assertLess(off, 0.05)
                    else:
                        self.assertTrue(p["error_unknown"])
        self.assertGreater(stated, 40)
        self.assertGreater(within, 0.85 * stated)
        # The table has the errors too, and ? where there is none.
        text = self.simulate(*arguments, "--sample", "20%").stdout.decode()
        self.assertRegex(text, r"(?m)^ +capacity +lru +\+-$")
        self.assertRegex(text, r"(?m)^ +[0-9.]+ [KM]iB +[0-9.]+ +[0-9.]+$")
        self.assertRegex(text, r"(?m)^ +[0-9.]+ [KM]iB +[0-9.]+ +\?$")


class WidthTest(SimulateCase):
    """Tables fit a terminal of 80 columns, but for names of files and long policies."""

    def test_lines_have_at_most_80_columns(self):
        trace = self.trace((SHIPPED.parent / "thrift/random.urls").read_text().splitlines(), "t")
        for arguments in (("simulate",), ("simulate", "--policy", "all"), ("simulate", "--policy", "lru,rand,gdsf",
                          "--curve"), ("simulate", "--policy", "lru,rand,opt", "--window", "50"), ("advise",),
                          ("advise", "--by-bytes"), ("trace", "describe"), ("policies",)):
            with self.subTest(arguments):
                trace_argument = () if arguments == ("policies",) else (trace,)
                text = self.sunproxy(*arguments, *trace_argument).stdout.decode()
                self.assertEqual([line for line in text.splitlines()
                                  if len(line) > 80 and str(trace) not in line], [])
