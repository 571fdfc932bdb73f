"""make reproduce, small: page and table, and nothing left running, also after Ctrl-C."""

import base64
import hashlib
import html.parser
import json
import os
import pathlib
import re
import signal
import sys

import browser
import harness

SCRIPT = harness.TOP / "studies/reproduce.sh"
VOID = {"meta", "br"}


class Page(html.parser.HTMLParser):
    """Checks that what opens is closed, and gathers what would be loaded."""

    def __init__(self, text):
        super().__init__()
        self.open, self.loads, self.counts = [], [], {}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.loads += [v for k, v in attributes if k in ("src", "href", "srcset", "xlink:href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.counts[tag] = self.counts.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()


class ReproduceTest(harness.SystemTest):
    seconds = 45
    needs = (harness.SUNPROXYD, harness.SUNPROXY, harness.ORIGIN)

    def setUp(self):
        super().setUp()
        self.out = self.dir / "reproduce"
        self.env = {**harness.study_environment(), "SUNPROXY_DATASETS": str(self.dir / "none")}

    def running(self):
        """Programs that have our folder among their arguments."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if any(w.startswith(str(self.out).encode() + b"/") for w in words):
                found.append(words[0].decode())
        return found

    def test_smoke(self):
        done = self.run_program([SCRIPT, "--study", "rpc", "--smoke", "--at-once", "2", "--out", self.out],
                                seconds=500, env=self.env)
        text = done.stdout.decode()
        self.assertEqual(done.returncode, 0, done.stderr.decode() + text)
        self.assertEqual(self.running(), [])
        text_of_page = (self.out / "reproduce.html").read_text()
        page = Page(text_of_page)
        self.assertEqual(page.open, [])
        self.assertEqual(page.loads, [])
        self.assertEqual(page.counts["svg"], 8)
        self.assertNotIn("script", page.counts)
        # One look for both pages: the report's colours, by policy.
        self.assertIn((harness.TOP / "study/report/colours.css").read_text(), text_of_page)
        self.assertEqual(set(re.findall(r'class="s own-([a-z]+)"', text_of_page)),
                         {"lru", "lfu", "fifo", "rand", "maxs"})
        self.check_security(text_of_page)
        data = json.loads((self.out / "reproduce.json").read_text())
        for paper in data["papers"]:
            verdicts = [row["verdict"] for row in paper["rows"]]
            self.assertEqual(len(verdicts), {"rpc": 21, "thrift": 1}[paper["key"]])
            counts = ", ".join(f"{one} {verdicts.count(one)}" for one in
                               ("holds", "does not hold", "undecided", "cannot be repeated here") if one in verdicts)
            for place in (text, text_of_page):
                self.assertIn(f": {counts}.", place)
        # Runs are repeated, and their spread is drawn; machine and versions are stated.
        self.assertIn("means of 2 runs", text_of_page)
        self.assertIn('<line class="e own-rand"', text_of_page)
        self.assertRegex(text_of_page, r"with sunproxyd [0-9.]+.* and Python\s[0-9.]+ on Linux, .+, [0-9]+ processor")
        self.assertIn("A smoke test: nothing here is a result.", text)
        # The paper's own curves are drawn beside, and what it prints of times is stated.
        self.assertEqual(len(re.findall(r'<polyline class="p own-[a-z]+"', text_of_page)), 2 * 5)
        self.assertIn("took 707.35 s", text_of_page)
        self.assertRegex(text_of_page, r"<td>LRU</td><td>85\.6 \([+-][0-9.]+\)</td>")
        # Why a larger cache hits less is simulated, whatever the scale of the replays.
        self.assertIn("Why the hit ratio falls from 64 KB to 128 KB", text_of_page)
        self.assertIn("Of 25 pages 10 are larger than 64 KB", text_of_page)
        self.assertIn("evicts 116 pages instead of 67, and hits 7.3 % instead of 10.7 %", text_of_page)
        self.assertIn("no page over 64 KB</th>", text_of_page)
        self.assertIn("it hits 16.7 %", text_of_page)
        self.check_json(data)
        # What was measured is what the log says: 60 requests, LRU with a capacity of 7.
        log = (self.out / "dataset1/lru-7-1.log").read_text().splitlines()[1:]
        self.assertEqual(len(log), 60)
        hits = sum(line.split("\t")[2] == "hit" for line in log)
        self.assertIn(f"({hits} of 60)", text)

    def check_json(self, data):
        """The JSON has what the page has."""
        self.assertTrue(data["smoke"])
        self.assertRegex(data["version"], "^sunproxyd ")
        rpc = data["studies"]["rpc"]
        self.assertEqual(list(rpc["data_sets"]), ["dataset1", "dataset2"])
        self.assertEqual(len(rpc["data_sets"]["dataset1"]["runs"]), 5 * 3)
        self.assertEqual(len(rpc["workloads"]["random"]["runs"]), 3 * 2)
        self.assertEqual(rpc["workloads"]["random"]["runs"][0]["runs"], 2)

    def check_security(self, text):
        """The page's policy lets its own style sheet alone apply, and a browser applies it."""
        sheet = re.search("(?s)<style>(.*?)</style>", text)[1]
        digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
        policy = re.search('http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
        self.assertEqual(policy, f"default-src 'none'; style-src 'sha256-{digest}'; "
                         "base-uri 'none'; form-action 'none'")
        self.assertNotIn("style=", text)
        if not browser.PROGRAM:
            return
        chromium = browser.Browser()
        self.addCleanup(chromium.close)
        chromium.open(self.out / "reproduce.html")
        self.assertEqual(chromium.complaints(), [])
        strokes = chromium.run("[...document.querySelectorAll('figure polyline')].slice(0, 5)"
                               ".map((line) => getComputedStyle(line).stroke)")
        self.assertEqual(len(set(strokes)), 5)
        self.assertNotIn("none", strokes)

    def test_interrupted(self):
        process = harness.Process(self, "reproduce", [SCRIPT, "--out", self.out], env=self.env,
                                  expect=130)
        harness.wait_until(lambda: any("sunproxyd" in name for name in self.running()), 60,
                           "a daemon")
        process.signal(signal.SIGINT)
        self.assertEqual(process.wait(300), 130, process.err)
        self.assertEqual(self.running(), [])
        self.assertIn("interrupted", process.err)
        self.assertNotIn("is killed", process.err)

    def test_what_is_not_ours_is_left_alone(self):
        self.out.mkdir()
        (self.out / "letter").write_text("dear\n")
        done = self.run_program([SCRIPT, "--smoke", "--out", self.out], env=self.env)
        self.assertEqual(done.returncode, 70, done.stdout)
        self.assertIn(b"is not empty", done.stderr)
        self.assertEqual(os.listdir(self.out), ["letter"])


class ClaimsTest(harness.SystemTest):
    """Verdicts on measurements that are made up."""

    def setUp(self):
        super().setUp()
        sys.path.insert(0, str(harness.TOP / "studies"))
        self.addCleanup(sys.path.remove, str(harness.TOP / "studies"))
        import reproduce_claims
        self.claims = reproduce_claims

    def part(self, times, none=100.0, ratios=None):
        """times: {policy: [ms by size]}; hit ratios that mirror them unless given."""
        sizes = [10, 20, 30, 40, 50, 80]
        runs = {}
        for policy, line in times.items():
            for n, (size, t) in enumerate(zip(sizes, line)):
                ratio = ratios[policy][n] if ratios else 1 - t / none
                runs[policy, size] = self.claims.Run(
                    size, 1000, round(ratio * 1000), ratio, ratio, t * 1000, ["hit"])
        nothing = self.claims.Run(0, 1000, 0, 0.0, 0.0, none * 1000, ["uncached"])
        return self.claims.Part("x", list(times), sizes, nothing, runs)

    def good(self):
        return {"lru": [20, 11, 10, 10, 10, 10], "lfu": [23, 12, 11, 11, 10, 10],
                "fifo": [26, 13, 12, 11, 10, 10], "rand": [28, 13, 12, 11, 11, 10],
                "maxs": [30, 14, 13, 12, 11, 10]}

    def assess(self, part, about="dataset1"):
        part = part._replace(name=about)
        return {c.published.split(",")[0]: c.assess(part) for c in self.claims.of_dataset(about)}

    def test_all_that_can_hold(self):
        found = self.assess(self.part(self.good(), none=120))
        wrong = [name for name, f in found.items()
                 if f.holds is False and not name.startswith("LRU hits")]
        self.assertEqual(wrong, [], found)
        # At the larger sizes LRU's times are ties with the others': its lead at 10 % decides.
        held = {name.split(" ")[0] for name, f in found.items() if f.holds}
        self.assertLessEqual({"LRU", "The", "Access", "Without", "Hit"}, held, found)

    def test_each_claim_can_fail(self):
        cases = {
            "LRU is the fastest at all sizes": {"lfu": [10, 10, 10, 10, 10, 10]},
            "The order is LRU": {"fifo": [20, 12, 11, 11, 10, 10]},
            "MAXS is the slowest": {"rand": [40, 14, 13, 12, 11, 10]},
            "No significant gain in time past 20 % of the URLs": {"maxs": [30, 20, 18, 16, 14, 10]},
            "Access time falls as the cache grows": {"rand": [28, 13, 16, 11, 11, 10]},
            "The policies differ most at 10 %": {"maxs": [30, 34, 30, 25, 20, 10]},
            "Without a cache it takes 4 times the time of the slowest policy with the smallest "
            "cache": {"maxs": [60, 14, 13, 12, 11, 10]},
        }
        for name, change in cases.items():
            with self.subTest(claim=name):
                found = self.assess(self.part({**self.good(), **change}, none=120))
                self.assertIs(found[name].holds, False, found[name])
        flat = {policy: [0.5] * 6 for policy in self.good()}
        found = self.assess(self.part(self.good(), ratios=flat))
        self.assertIs(found["Hit ratio and access time are almost mirror images"].holds, False)

    def test_a_tie_decides_nothing(self):
        name = "LRU is the fastest at all sizes"
        # LRU is 1 ms behind LFU at each size, and 1 ms may be noise; ahead of the others at 10 %.
        times = {**self.good(), "lru": [21, 12, 11, 11, 10, 10], "lfu": [20, 11, 10, 10, 10, 10]}
        found = self.assess(self.part(times, none=120))[name]
        self.assertIsNone(found.holds, found)
        self.assertIn("tied at all sizes: LRU and LFU", found.measured)
        # One decided comparison for it, and none against it.
        times["lfu"][0] = 26
        self.assertIs(self.assess(self.part(times, none=120))[name].holds, True)
        times["lfu"][1] = 8
        self.assertIs(self.assess(self.part(times, none=120))[name].holds, False)
        # Ties everywhere: no claim about times of policies is decided.
        same = {policy: [10] * 6 for policy in self.good()}
        for name, finding in self.assess(self.part(same, none=120)).items():
            if name.startswith(("LRU is", "The order", "MAXS", "Access", "The policies")):
                self.assertIsNone(finding.holds, name)

    def test_what_lies_within_the_measured_spread_is_undecided(self):
        name = "MAXS is the slowest"
        for sd, holds in ((0, False), (1000, False), (20000, None)):
            part = self.part({**self.good(), "rand": [40, 14, 13, 12, 11, 10]}, none=120)
            for key, run in part.runs.items():
                part.runs[key] = run._replace(us_sd=sd, runs=3)
            with self.subTest(sd=sd):
                self.assertIs(self.assess(part)[name].holds, holds)

    def test_repeated_runs_are_averaged(self):
        runs = [self.claims.Run(7, 100, 50 + n, 0.5 + n / 100, 0.5, 1000.0 + 10 * n, ["hit"])
                for n in range(3)]
        one = self.claims.average(runs)
        self.assertEqual((one.runs, one.hits, one.mean_us, one.us_sd), (3, 50, 1010, 10))
        self.assertAlmostEqual(one.hit_ratio, 0.51)
        self.assertAlmostEqual(one.hit_sd, 0.01)

    def test_published_hit_ratio(self):
        for ratio, about, holds in ((0.856, "authors", True), (0.857, "authors", False),
                                    (0.865, "dataset1", True), (0.867, "dataset1", False)):
            with self.subTest(ratio=ratio, about=about):
                part = self.part({"lru": [0] * 6}, ratios={"lru": [ratio] * 6})
                part.runs["lru", 10] = part.runs["lru", 10]._replace(capacity=7)
                finding = self.claims.assess_lru_ratio(part._replace(name=about), 10, 7, 85.6)
                self.assertIs(finding.holds, holds)

    def test_anomaly_and_first_evictions(self):
        part = self.part({p: [1] * 6 for p in ("fifo", "rand", "lru")})
        self.assertIs(self.claims.assess_belady(part, part).holds, False)
        for policy in ("fifo", "rand"):
            part.runs[policy, 20] = part.runs[policy, 20]._replace(outcomes=["miss"])
        self.assertIs(self.claims.assess_belady(part, part).holds, True)
        self.assertIsNone(self.claims.assess_first_evictions(part, part).holds)

    def test_lfu_on_the_repeated_workload(self):
        def workload(lfu):
            means = {(p, 65536): self.claims.Mean(5, r, 0, r, 1.0, 0)
                     for p, r in (("lru", 0.5), ("lfu", lfu), ("rand", 0.4))}
            return self.claims.Workload("repeated", ["lru", "lfu", "rand"], [65536], None, means)

        self.assertIs(self.claims.assess_lfu_weak(workload(0.3)).holds, True)
        self.assertIsNone(self.claims.assess_lfu_weak(workload(0.4)).holds)
        self.assertIs(self.claims.assess_lfu_weak(workload(0.45)).holds, False)
