"""The Sun RPC paper of make reproduce: its table, and the verdicts on measurements that are made
up; the page."""

import base64
import hashlib
import html.parser
import json
import os
import pathlib
import re
import signal
import sys
import unittest

import browser
import harness
import made_up
from made_up import CANNOT, FAILS, HOLDS, UNDECIDED

SCRIPT = harness.TOP / "studies/reproduce.sh"
sys.path.append(str(harness.TOP / "studies"))
import reproduce_sunrpc as sunrpc
import reproduce_sunrpc_behaviour as behaviour
import reproduce_sunrpc_data as sunrpc_data
import reproduce_sunrpc_rows as claims
from replays import Part
from reproduce_sunrpc import ALL, ONE

VOID = {"meta", "br"}
SIZES = [10, 20, 30, 40, 50, 80]
EVERY = [ONE, *SIZES, ALL]


def part(times, hits=None, none=118.0, noise=made_up.Noise(5), name="dataset1"):
    """times: {policy: [ms with 1 URL, at each size, with all]}; hit ratios that mirror them unless
    given."""
    runs = {}
    for policy, line in times.items():
        for n, size in enumerate(EVERY):
            ratios = hits[policy][n] if hits else 100 * (1 - line[n] / none)
            runs[policy, size] = [made_up.run(ratio, ms) for ratio, ms
                                  in zip(noise.values(ratios), noise.values(line[n]))]
    return Part(name, list(times), SIZES, [made_up.run(0, ms) for ms in noise.values(none)], runs)


# As the paper has it: the order, a knee at 20 %, a spread that is largest at 10 %, 4 times without
# a cache.
GOOD = {"lru": [60, 20, 11, 10.8, 10.6, 10.4, 10.1, 10], "lfu": [60, 23, 11.5, 11, 10.7, 10.5, 10.2,
                                                                 10],
        "fifo": [60, 25, 12, 11.5, 11, 10.7, 10.3, 10], "rand": [60, 27, 13, 12, 11.5, 11, 10.4,
                                                                 10],
        "maxs": [60, 30, 15, 13.5, 12.5, 11.8, 10.6, 10]}
# The opposite of each statement.
BAD = {"lru": [60, 24, 40, 41, 42, 43, 50, 70], "lfu": [70, 25, 36, 37, 38, 39, 40, 60],
       "fifo": [80, 20, 31, 32, 33, 34, 35, 50], "rand": [90, 16, 26, 27, 28, 29, 30, 40],
       "maxs": [99, 12, 21, 22, 23, 24, 25, 30]}
STATEMENTS = claims.ACCESS + [claims.mirror, behaviour.best_hits]


class SunRpcClaimsTest(unittest.TestCase):
    def test_what_the_paper_states_holds(self):
        found = made_up.verdicts(STATEMENTS, part(GOOD))
        self.assertEqual(found, dict.fromkeys(found, HOLDS))

    def test_each_statement_can_fail(self):
        found = made_up.verdicts(STATEMENTS, part(BAD, hits={p: [100 - 0.01 * n for n in range(8)]
                                                             if p == "lru" else
                                                             [100.0] * 8 for p in BAD}))
        # Where times rise, more than all is saved at the knee.
        found["knee"] = claims.knee(part({**GOOD, "rand": [60, 45, 40, 35, 30, 25, 12,
                                                           10]})).verdict
        self.assertEqual(found, dict.fromkeys(found, FAILS))

    def test_each_statement_is_undecided_within_the_spread_of_runs(self):
        found = made_up.verdicts(STATEMENTS, part(GOOD, noise=made_up.Noise(5, 3.0)))
        # The spread of noisy runs is large, and their correlation small.
        apart = ["spread_peaks", "spread_ends", "mirror"]
        self.assertEqual({name: one for name, one in found.items() if name not in apart},
                         {name: UNDECIDED for name in found if name not in apart})
        peaks, ends, mirror = part(GOOD), part(GOOD), part(GOOD)
        for n, (at_peak, at_end) in enumerate(zip((20, 24, 90, 22, 30), (10, 10, 10, 10, 22))):
            peaks.runs["maxs", 10][n] = made_up.run(50, at_peak)
            ends.runs["maxs", ALL][n] = made_up.run(50, at_end)
        for size in SIZES:
            mirror.runs["lru", size][0] = mirror.runs["lru", size][0]._replace(hit_ratio=0.5)
        self.assertIs(claims.spread_peaks(peaks).verdict, UNDECIDED)
        self.assertIs(claims.spread_ends(ends).verdict, UNDECIDED)
        self.assertIs(claims.mirror(mirror).verdict, UNDECIDED)

    def test_four_times_is_two_sided(self):
        for none, expected in ((120, HOLDS), (106, HOLDS), (100, FAILS), (134, HOLDS), (140, FAILS),
                               (240, FAILS)):
            with self.subTest(none=none):
                self.assertIs(claims.no_cache(part(GOOD, none=none)).verdict, expected)

    def test_rand_is_excepted_from_the_order(self):
        times = {**GOOD, "rand": [60, 15, 10, 10, 10, 10, 10, 10]}
        self.assertIs(claims.order(part(times)).verdict, HOLDS)
        self.assertIs(claims.order(part({**GOOD, "fifo": GOOD["lfu"],
                                         "lfu": GOOD["fifo"]})).verdict, FAILS)
        # dataset2 has FIFO before LFU.
        self.assertIs(claims.order(part({**GOOD, "fifo": GOOD["lfu"], "lfu": GOOD["fifo"]},
                                        name="dataset2")).verdict,
                      HOLDS)

    def test_conclusions_on_both_data_sets(self):
        for second, expected in ((GOOD, HOLDS), (BAD, FAILS), ({p: GOOD["lru"] for p in GOOD},
                                                               UNDECIDED)):
            study = sunrpc.Study(sunrpc.FULL, {"dataset1": part(GOOD), "dataset2": part(second)},
                                 None, None, {}, {})
            for assess in (claims.lru_best, claims.maxs_worst):
                self.assertIs(claims.concluded(study, "", assess).verdict, expected)

    def test_every_figure_and_table_has_a_row(self):
        parts = {name: part(GOOD, name=name) for name in ("dataset1", "dataset2")}
        misses = {"dataset1": {"fifo": [[3, 2, 1]], "rand": [[3, 2, 1], [3, 1, 1]]}}
        study = sunrpc.Study(sunrpc.FULL, parts, None, None, {name: {"u": 1000} for name in parts},
                             misses)
        for authors in (None, self.authors(["u", "v", "w", "w"]).authors):
            places = " ".join(row.place for row in claims.rows(study._replace(authors=authors)))
            for figure in range(1, 10):
                self.assertRegex(places, rf"Figures? (?:\d and )*{figure}|Figures {figure - 1} and "
                                 rf"{figure}")
            for table in range(1, 4):
                self.assertIn(f"Table {table}", places)

    def test_maxs_between_data_sets(self):
        def study(first, second):
            parts = {name: part({**GOOD, "maxs": line}, name=name)
                     for name, line in (("dataset1", first), ("dataset2", second))}
            return sunrpc.Study(sunrpc.FULL, parts, None, None, {}, {})

        better = [n / 2 for n in GOOD["maxs"]]
        self.assertIs(claims.maxs_between(study(GOOD["maxs"], better)).verdict, HOLDS)
        self.assertIs(claims.maxs_between(study(better, GOOD["maxs"])).verdict, FAILS)
        noisy = study(GOOD["maxs"], better)
        for one in noisy.parts.values():
            for size in SIZES:
                ordered = (1, 200, 30) if one.name == "dataset1" else (200, 30, 1)
                one.runs["maxs", size] = [made_up.run(50, ms) for ms in ordered]
            one.none[:] = one.none[:3]
        self.assertIs(claims.maxs_between(noisy).verdict, UNDECIDED)

    def test_time_of_maxs_against_its_hits(self):
        for last, expected in ((8, HOLDS), (30, FAILS)):
            hits = {p: [50, 60, 70, 75, 78, 79, 80, 90] for p in GOOD}
            times = {p: [60, 30, 20, 15, 15, 15, last, 5] for p in GOOD}
            self.assertIs(claims.maxs_time(part(times, hits)).verdict, expected)
            noisy = part(times, hits)
            for n, run in enumerate(noisy.runs["maxs", 80]):
                noisy.runs["maxs", 80][n] = run._replace(mean_us=(3000, 90000, 3000, 90000,
                                                                  3000)[n])
            self.assertIs(claims.maxs_time(noisy).verdict, UNDECIDED)

    def with_busiest(self, misses):
        """A part in which the busiest page has these misses of each policy in each run."""
        one = part(GOOD)
        for (policy, size), runs in one.runs.items():
            for n, run in enumerate(runs):
                count = misses[policy][n]
                runs[n] = run._replace(urls=["top"] * 100 + ["other"] * 50,
                                       outcomes=["evicted"] * count + ["hit"] * (100 - count)
                                       + ["miss"] * 50)
        return one

    def test_ping_pong(self):
        few = dict.fromkeys(["lru", "lfu", "fifo", "rand"], [2, 3, 2, 3, 2])
        for maxs, expected in (([90] * 5, HOLDS), ([0] * 5, FAILS), ([0, 9, 1, 0, 5], UNDECIDED)):
            with self.subTest(maxs=maxs):
                self.assertIs(claims.ping_pong(self.with_busiest({**few, "maxs": maxs})).verdict,
                              expected)

    def with_outcomes(self, outcomes):
        """{policy: outcomes of each run at 20 %}, which hit at the other sizes."""
        one = part(GOOD)
        for (policy, size), runs in one.runs.items():
            for n, run in enumerate(runs):
                changed = outcomes.get(policy, [["hit"]] * 5)[n] if size == 20 else ["hit"] * 3
                runs[n] = run._replace(outcomes=(changed + ["hit"] * 3)[:3])
        return one

    def test_requests_that_hit_and_miss_in_a_larger_cache(self):
        always, never, mixed = [["miss"]] * 5, [["hit"]] * 5, [["miss"], ["hit"], ["hit"], ["hit"],
                                                               ["hit"]]
        for fifo, rand, expected in ((always, always, HOLDS), (never, always, FAILS),
                                     (always, never, FAILS),
                                     (always, mixed, UNDECIDED)):
            with self.subTest(fifo=fifo, rand=rand):
                found = behaviour.hit_then_missed(self.with_outcomes({"fifo": fifo, "rand": rand}))
                self.assertIs(found.verdict, expected)
        self.assertIs(behaviour.stack(self.with_outcomes({})).verdict, HOLDS)
        self.assertIs(behaviour.stack(self.with_outcomes({"lru": always})).verdict, FAILS)

    def test_beladys_anomaly_is_more_misses_in_all(self):
        def study(fifo, rand):
            return sunrpc.Study(sunrpc.FULL, {}, None, None, {},
                                {"dataset1": {"fifo": [fifo], "rand": rand}})

        falls, rises = [9, 8, 8, 5], [9, 8, 10, 5]
        steady = [[9, 8, 8 + seed % 2 * 2 - 1, 5] for seed in range(20)]
        up = [[line[n] + seed % 3 * 0.01 * n for n in range(4)]
              for seed, line in enumerate([rises] * 20)]
        down = [[9 - n + seed % 3 * 0.01 * n for n in range(4)] for seed in range(20)]
        for fifo, rand, expected in ((rises, up, HOLDS), (falls, up, FAILS), (rises, down, FAILS),
                                     (rises, steady, UNDECIDED)):
            with self.subTest(fifo=fifo):
                self.assertIs(behaviour.belady(study(fifo, rand)).verdict, expected)

    def full_at(self, name, numbers):
        one = part(GOOD, name=name)
        for size, number in zip(SIZES, numbers):
            outcomes = ["hit"] * 1000 if number is None else ["hit"] * (number - 1) + ["evicted"]
            one.runs["lru", size] = [run._replace(outcomes=outcomes, capacity=size)
                                     for run in one.runs["lru", size]]
        return one

    def test_initial_cache_miss_lines(self):
        wide, close = [10, 50, 200, 220, 600, 900], [10, 20, 30, 40, 50, 100]

        def study(first, second):
            return sunrpc.Study(sunrpc.FULL, {"dataset1": self.full_at("dataset1", first),
                                              "dataset2": self.full_at("dataset2", second)}, None,
                                None, {}, {})

        self.assertIs(behaviour.closer_lines(study(wide, close)).verdict, HOLDS)
        self.assertIs(behaviour.closer_lines(study(close, wide)).verdict, FAILS)
        self.assertIs(behaviour.closer_lines(study(wide, [10, 20, 30, 40, 50, None])).verdict,
                      UNDECIDED)
        self.assertIs(behaviour.variable_lines(self.full_at("x", wide)).verdict, HOLDS)
        self.assertIs(behaviour.variable_lines(self.full_at("x", close)).verdict, FAILS)
        self.assertIs(behaviour.variable_lines(self.full_at("x", [None] * 6)).verdict, UNDECIDED)
        # For equal steps of size the slope is the step by the gap.
        self.assertIs(behaviour.proportional_lines(self.full_at("x", wide)).verdict, FAILS)
        steep = self.full_at("x", wide)
        for size, capacity in zip(SIZES, (1, 2, 90, 91, 500, 900)):
            steep.runs["lru", size] = [run._replace(capacity=capacity)
                                       for run in steep.runs["lru", size]]
        self.assertIs(behaviour.proportional_lines(steep).verdict, HOLDS)
        self.assertIs(behaviour.proportional_lines(self.full_at("x", [None] * 6)).verdict,
                      UNDECIDED)

    def test_figure_8_is_an_equality(self):
        published = claims.published.HIT_RATIOS["dataset1"]["lru"]
        for off, sd, expected in ((0, 0, HOLDS), (0.9, 0, HOLDS), (-1.1, 0, FAILS), (1.1, 0, FAILS),
                                  (0.5, 0.02, UNDECIDED)):
            noise = made_up.Noise(5, sd)
            one = part({"lru": GOOD["lru"]}, {"lru": [0, *(value + off for value in published), 0]},
                       noise=noise)
            with self.subTest(off=off, sd=sd):
                self.assertIs(claims.figure_8(one, ["lru"], 1).verdict, expected)

    def authors(self, urls):
        one = part(GOOD, name="authors")
        one.none[0] = one.none[0]._replace(urls=urls)
        return sunrpc.Study(sunrpc.FULL, {}, one, None, {}, {})

    def test_facts_of_the_authors_requests(self):
        paper = ["top"] * 446 + [f"early-{n}" for n in range(33) for _ in range(15)]
        paper += [f"late-{n}" for n in range(34)]
        paper += ["early-0"] * (997 - len(paper))
        good, other = self.authors(paper), self.authors(["a", "b", "c", "c"])
        for assess in (sunrpc_data.dimensions, sunrpc_data.share_of_urls, sunrpc_data.busiest,
                       sunrpc_data.early_urls, sunrpc_data.skewed):
            with self.subTest(assess.__name__):
                self.assertIs(assess(good).verdict, HOLDS)
                self.assertIs(assess(other).verdict, FAILS)
                self.assertIs(assess(good._replace(authors=None)).verdict, CANNOT)

    def test_the_authors_log(self):
        study = self.authors(["a"])
        for runs in study.authors.runs.values():
            runs[:] = [run._replace(outcomes=["miss", "hit"]) for run in runs]
        for log, expected in ((["miss", "hit"], HOLDS), (["miss", "evicted"], FAILS),
                              (None, CANNOT)):
            found = claims.logged(study._replace(log=log))
            self.assertEqual((found.verdict, found.ours), (expected, True))

    def test_lfu_depends_on_the_pattern(self):
        swapped = {**GOOD, "fifo": GOOD["lfu"], "lfu": GOOD["fifo"]}
        for first, second, noise, expected in ((GOOD, swapped, 0, HOLDS), (GOOD, GOOD, 0, FAILS),
                                               (swapped, swapped, 0, FAILS),
                                               (GOOD, swapped, 3.0, UNDECIDED)):
            study = sunrpc.Study(sunrpc.FULL,
                                 {"dataset1": part(first, noise=made_up.Noise(5, noise)),
                                  "dataset2": part(second, noise=made_up.Noise(5, noise))},
                                 None, None, {}, {})
            self.assertIs(claims.lfu_depends(study).verdict, expected)


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
        done = self.run_program([SCRIPT, "--study", "sunrpc", "--smoke", "--out", self.out],
                                seconds=500, env=self.env)
        text = done.stdout.decode()
        self.assertEqual(done.returncode, 0, done.stderr.decode() + text)
        self.assertEqual(self.running(), [])
        text_of_page = (self.out / "reproduce.html").read_text()
        page = Page(text_of_page)
        self.assertEqual(page.open, [])
        self.assertEqual(page.loads, [])
        self.assertEqual(page.counts["svg"], 4)
        self.assertNotIn("script", page.counts)
        # One look for both pages: the report's colours, by policy.
        self.assertIn((harness.TOP / "study/report/page/colours.css").read_text(), text_of_page)
        self.assertEqual(set(re.findall(r'class="s own-([a-z]+)"', text_of_page)),
                         {"lru", "lfu", "fifo", "rand", "maxs"})
        self.check_security(text_of_page)
        data = json.loads((self.out / "reproduce.json").read_text())
        paper, = data["papers"]
        self.assertEqual(len(paper["rows"]), 59)
        for ours in (False, True):
            verdicts = [row["verdict"] for row in paper["rows"] if row["ours"] == ours]
            counts = ", ".join(f"{one} {verdicts.count(one)}" for one in
                               ("holds", "does not hold", "undecided", "cannot be repeated here")
                               if one in verdicts)
            for place in (text, text_of_page):
                self.assertIn(f": {counts}", place)
        # Runs are repeated, and their spread is drawn; machine and versions are stated.
        self.assertIn("means of 2 runs", text_of_page)
        self.assertIn('<line class="e own-rand"', text_of_page)
        self.assertRegex(text_of_page, r"with sunproxyd [0-9.]+.* and Python\s[0-9.]+ on Linux, "
                         r".+, [0-9]+ processor")
        self.assertIn("A smoke test: nothing here is a result.", text)
        # The paper's own curves are drawn beside, and what it prints of times is stated.
        self.assertEqual(len(re.findall(r'<polyline class="p own-[a-z]+"', text_of_page)), 2 * 5)
        self.assertIn("took 707.35 s", text_of_page)
        self.assertRegex(text_of_page, r"<td>LRU</td><td>90\.3 \([+-][0-9.]+\)</td>")
        self.check_json(data)
        # What was measured is what the log says: 60 requests, LRU with a capacity of 14.
        log = (self.out / "sunrpc/dataset1/lru-14-1.log").read_text().splitlines()[1:]
        self.assertEqual(len(log), 60)
        hits = sum(line.split("\t")[2] == "hit" for line in log)
        run = next(run for run in data["studies"]["sunrpc"]["data_sets"]["dataset1"]["runs"]
                   if (run["policy"], run["capacity_percent"]) == ("lru", 20))
        self.assertAlmostEqual(run["runs"][0]["hit_ratio"], hits / 60, places=5)

    def check_json(self, data):
        """The JSON has what the page has."""
        self.assertTrue(data["smoke"])
        self.assertRegex(data["version"], "^sunproxyd ")
        found = data["studies"]["sunrpc"]
        self.assertEqual(list(found["data_sets"]), ["dataset1", "dataset2"])
        self.assertEqual(len(found["data_sets"]["dataset1"]["runs"]), 5 * (2 + 2))
        self.assertEqual(len(found["data_sets"]["dataset1"]["no_cache"]), 2)
        self.assertEqual(len(found["misses_by_capacity"]["dataset2"]["fifo"][0]), 74)

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

