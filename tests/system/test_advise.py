"""sunproxy advise."""

import json
import re

import harness
from test_simulate import SHIPPED, SimulateCase


class AdviseTest(SimulateCase):
    def advise(self, *arguments):
        return self.sunproxy("advise", *arguments).stdout.decode()

    def sized_trace(self, pages, name="sized.txt"):
        return self.trace([f"http://h/{url}\t{size}" for url, size in pages], name=name)

    def bulky_trace(self):
        """Twenty hot pages of 4 B, and between any two requests for them one page of 120 B that
        pushes them out of a cache that is large enough to take it."""
        return self.sized_trace([page for n in range(500)
                                 for page in ((f"hot{n * 7 % 20}", 4), (f"bulk{n % 6}", 120))])

    def check_smallest(self, trace, *more, slack):
        """What is advised, beside every size there is; `slack` as narrow as a search is."""
        a = self.summary(trace, *more, command="advise")
        options = [m for m in more if m not in ("--share", "0.45", "0.9")]
        curves, = self.summary(trace, "--curve", "--points", "10000", *options)["traces"]
        points = {c["policy"]: c["points"] for c in curves["curves"]}
        unit = "capacity_bytes" if "distinct_bytes" in a else "capacity_urls"
        for p in a["policies"]:
            self.assertEqual([i[unit] for i in points[p["policy"]]],
                             list(range(1, curves["distinct_" + unit[9:]] + 1)))
            enough = [i[unit] for i in points[p["policy"]] if i["hit_ratio"] >= a["target"] - 1e-6]
            with self.subTest(trace=trace.name, options=more, policy=p["policy"]):
                self.assertEqual(p["reached"], bool(enough))
                if enough:
                    self.assertGreaterEqual(p[unit], enough[0])
                    self.assertLessEqual(p[unit], enough[0] * (1 + slack) + (slack > 0))
                else:
                    self.assertAlmostEqual(p["hit_ratio"],
                                           max(i["hit_ratio"] for i in points[p["policy"]]))
        return a, points

    def test_no_smaller_size_is_overlooked(self):
        trace = self.bulky_trace()
        for policies in ([], ["--policy", "all"]):
            a, points = self.check_smallest(trace, "--share", "0.45", *policies, slack=0.01)
            # It is a trace where more is less.
            lru = [i["hit_ratio"] for i in points["lru"]]
            self.assertGreater(lru[80 - 1], a["target"])
            self.assertLess(max(lru[120 - 1:300]), a["target"] / 2)
            self.assertEqual([p["capacity_bytes"] for p in a["policies"] if p["policy"] == "lru"],
                             [80])
            self.check_smallest(trace, "--share", "0.9", *policies, slack=0.01)

    def test_every_size_is_tried_where_they_are_few(self):
        # FIFO serves less with four pages than with three (Belady's anomaly).
        urls = [f"http://h/{u}" for u in "abcdabeabcde" * 3]
        trace = self.trace(urls)
        a, _ = self.check_smallest(trace, "--share", "0.45", "--policy", "all", slack=0)
        self.assertEqual(a["step"], 0)
        self.assertIn("Every size was tried", self.advise(trace))

    def test_sizes_below_the_scale_are_tried_where_its_first_is_enough(self):
        # One hot page among five thousand: it alone is all that a cache needs.
        trace = self.sized_trace([page for n in range(5000)
                                  for page in (("hot", 1), (f"once{n}", 1))])
        a = self.summary(trace, "--policy", "lfu,opt", command="advise")
        self.assertEqual(a["smallest_tried"], 5)
        self.assertEqual([p["capacity_bytes"] for p in a["policies"]], [2, 2])

    def test_that_more_room_is_not_always_better_is_said(self):
        trace = self.bulky_trace()
        a = self.summary(trace, "--share", "0.45", "--policy", "lru", command="advise")
        larger = a["larger_yet_less"]
        self.assertGreater(larger["capacity_bytes"], a["capacity_bytes"])
        r, = self.results(trace, "--policy", "lru", "--capacity",
                          f"{larger['capacity_bytes']}B").values()
        self.assertEqual(r["hit_ratio"], larger["hit_ratio"])
        self.assertLess(r["hit_ratio"], a["target"])
        self.assertRegex(self.advise(trace, "--share", "0.45", "--policy", "lru"),
                         r"More room is not always better: with \d+ B it serves [\d.]+ % of the requests\.")
        a = self.summary(trace, "--share", "0.9", "--policy", "lru", command="advise")
        self.assertIsNone(a["larger_yet_less"])

    def test_what_is_not_reached_was_only_tried_so_far(self):
        trace = self.bulky_trace()
        self.assertRegex(self.advise(trace, "--policy", "lru,s3-fifo"),
                         r"s3-fifo .* not at any size tried, up to 800 B: at most \d\d\.\d %, "
                         r"with 80 B\n")
        text = self.advise(trace, "--policy", "s3-fifo")
        self.assertIn("No policy that a server can run gets that far at any size tried, up to 800 B",
                      text)

    def test_a_bound_is_no_choice(self):
        trace = self.bulky_trace()
        text = self.advise(trace, "--policy", "opt")
        self.assertIn("nothing to take: no server can run a policy that knows the future", text)
        self.assertNotIn("gets that far", text)
        self.assertRegex(text, r"opt +\d+ B  knows the future")
        self.assertIsNone(self.summary(trace, "--policy", "opt", command="advise")["policy"])
        self.assertIn("nothing to take", self.advise(trace, "--policy", "none"))

    def test_the_bound_is_not_one_of_policies_that_turn_pages_away(self):
        urls = [u for n in range(300) for u in ("http://h/a", f"http://h/x{n}")]
        trace = self.trace(urls)
        a = self.summary(trace, "--policy", "opt,tinylfu", command="advise")
        self.assertEqual([(p["policy"], p["capacity_urls"]) for p in a["policies"]],
                         [("tinylfu", 1), ("opt", 2)])
        text = " ".join(self.advise(trace, "--policy", "opt,tinylfu").split())
        self.assertIn("one that turns pages away may need less", text)
        self.assertIn("one that turns pages away can do better",
                      " ".join(self.sunproxy("policies", "opt").stdout.decode().split()))

    def test_both_ratios_are_told(self):
        trace = self.bulky_trace()
        text = self.advise(trace, "--share", "0.45", "--policy", "lru,fifo")
        self.assertIn("of the 800 B of distinct URLs", text)
        a = self.summary(trace, "--share", "0.45", "--policy", "lru,fifo", command="advise")
        best, other = a["policies"]
        self.assertIn(f"{100 * best['hit_ratio']:.1f} % of the requests and "
                      f"{100 * best['byte_hit_ratio']:.1f} % of the bytes", text)
        self.assertRegex(text, rf"{other['policy']} .* {100 * other['hit_ratio_at_best']:.1f} % +"
                               rf"{100 * other['byte_hit_ratio_at_best']:.1f} %\n")

    def test_shares_that_are_none(self):
        trace = self.trace(["http://h/a"])
        for share in ("0", "101%", "0x5A%", "0x1p-1", "1e-1", "%", "", ".", "-1", "nan"):
            self.complaint(trace, "--share", share, command="advise")

    def test_the_size_that_is_advised_is_enough_and_less_is_not(self):
        trace, sizes = SHIPPED / "History", SHIPPED / "sizes.tsv"
        for more in ([], ["--sizes", sizes], ["--sizes", sizes, "--by-bytes"],
                     ["--share", "0.5"]):
            a = self.summary(trace, *more, command="advise")
            self.assertAlmostEqual(a["target"], a["share"] * a["infinite"], places=5)
            unit = "capacity_bytes" if "--sizes" in more else "capacity_urls"
            best = a[unit]
            capacity = f"{best}B" if unit == "capacity_bytes" else str(best)
            options = [m for m in more if m not in ("--share", "0.5")]
            r, = self.results(trace, *options, "--policy", a["policy"], "--capacity",
                              capacity).values()
            self.assertGreaterEqual(r[a["goal"]], a["target"] - 1e-6)
            for p in a["policies"]:
                if p["reached"] and not p["needs_future"]:
                    self.assertGreaterEqual(p[unit], best)
            less = int(best * 0.97) - 1
            if less < 1:
                continue
            capacity = f"{less}B" if unit == "capacity_bytes" else str(less)
            for r in self.results(trace, *options, "--policy", "lru", "--capacity",
                                  capacity).values():
                self.assertLess(r[a["goal"]], a["target"])

    def test_in_plain_words(self):
        text = self.sunproxy("advise", SHIPPED / "History").stdout.decode()
        self.assertRegex(text, r"Take [a-z0-9-]+ with \d+ URLs")
        self.assertIn("knows the future", text)
        self.assertIn("turns pages away may need less", " ".join(text.split()))
        command = re.search(r"sunproxy set (--policy \S+ --capacity-urls \d+ --capacity-bytes \d+)", text)
        self.assertTrue(command)

    def test_what_no_cache_helps(self):
        trace = self.trace([f"http://h/{n}" for n in range(20)])
        self.assertIn("no cache helps", self.sunproxy("advise", trace).stdout.decode())
        self.assertIsNone(self.summary(trace, command="advise")["policy"])


class AdviceTakenTest(SimulateCase):
    needs = (harness.ORIGIN, harness.SUNPROXYD, harness.SUNPROXY)

    def test_the_command_that_advise_gives_can_be_given(self):
        daemon = self.daemon(origin=self.origin())
        told = self.sunproxy("advise", SHIPPED / "History").stdout.decode()
        _, command, *arguments = re.search(r"^  (sunproxy set .*)$", told, re.M).group(1).split()
        self.sunproxy(command, *arguments, daemon=daemon)
        policy = arguments[arguments.index("--policy") + 1]
        self.assertEqual(json.loads(self.sunproxy("stat", "--json", daemon=daemon).stdout)["policy"],
                         policy)
