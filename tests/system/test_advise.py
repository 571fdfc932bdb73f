"""sunproxy advise."""

import json
import random
import re

import harness
from simulate_case import SHIPPED, SimulateCase


class AdviseTest(SimulateCase):
    """What is advised, beside what is simulated; both by the release build, since thousands of
    sizes are simulated. The classes below run the build under test."""

    client = harness.release_build(harness.RELEASE_SUNPROXY, harness.SUNPROXY)
    BODY = ["--count-bytes", "body"]  # sizes of a few bytes are those of the tests

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
        options = [*(m for m in more if m not in ("--share", "0.45", "0.9")),
                   "--count-bytes", a["count_bytes"]]
        curves, = self.summary(trace, "--curve", "--points", "10000", *options)["traces"]
        points = {c["policy"]: c["points"] for c in curves["curves"]}
        unit = "capacity_bytes" if a["distinct_bytes"] is not None else "capacity_urls"
        for p in a["policies"]:
            self.assertEqual([i[unit] for i in points[p["policy"]]],
                             list(range(1, (curves["capacity_bytes_of_all"] if unit == "capacity_bytes"
                                           else curves["distinct_urls"]) + 1)))
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
            a, points = self.check_smallest(trace, "--share", "0.45", *self.BODY, *policies,
                                            slack=0.01)
            # It is a trace where more is less.
            lru = [i["hit_ratio"] for i in points["lru"]]
            self.assertGreater(lru[80 - 1], a["target"])
            self.assertLess(max(lru[120 - 1:300]), a["target"] / 2)
            self.assertEqual([p["capacity_bytes"] for p in a["policies"] if p["policy"] == "lru"],
                             [80])
            self.check_smallest(trace, "--share", "0.9", *self.BODY, *policies, slack=0.01)

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
                                  for page in (("hot", 1), (f"once{n}", 1 + (n == 4999)))])
        a = self.summary(trace, *self.BODY, "--policy", "lfu,opt", command="advise")
        self.assertEqual(a["smallest_tried"], 5)
        self.assertEqual([p["capacity_bytes"] for p in a["policies"]], [2, 2])

    def test_a_larger_cache_that_hits_less_is_printed(self):
        trace = self.bulky_trace()
        a = self.summary(trace, *self.BODY, "--share", "0.45", "--policy", "lru", command="advise")
        larger = a["larger_yet_less"]
        self.assertGreater(larger["capacity_bytes"], a["capacity_bytes"])
        r, = self.results(trace, "--policy", "lru", "--capacity",
                          f"{larger['capacity_bytes']}B").values()
        self.assertEqual(r["hit_ratio"], larger["hit_ratio"])
        self.assertLess(r["hit_ratio"], a["target"])
        self.assertRegex(self.advise(trace, *self.BODY, "--share", "0.45", "--policy", "lru"),
                         r"A larger cache is not always better: \d+ B hit [\d.]+ % of the requests\.")
        a = self.summary(trace, *self.BODY, "--share", "0.9", "--policy", "lru", command="advise")
        self.assertIsNone(a["larger_yet_less"])

    def test_what_is_not_reached_was_only_tried_so_far(self):
        trace = self.bulky_trace()
        self.assertRegex(self.advise(trace, *self.BODY, "--policy", "lru,s3-fifo"),
                         r"s3-fifo .* at most \d\d\.\d %, with 80 B of 800 B\n")
        text = " ".join(self.advise(trace, *self.BODY, "--policy", "s3-fifo").split())
        self.assertIn("no policy that a server can run reaches that at any size tried, up to 800 B",
                      text)

    def test_a_bound_is_no_choice(self):
        trace = self.bulky_trace()
        text = self.advise(trace, *self.BODY, "--policy", "opt")
        self.assertIn("No recommendation: no server can run a policy that needs the future", text)
        self.assertNotIn("reaches that", text)
        self.assertRegex(text, r"opt +\d+ B  needs future")
        self.assertIsNone(self.summary(trace, "--policy", "opt", command="advise")["policy"])
        self.assertIn("No recommendation: no policy that stores anything was given",
                      self.advise(trace, "--policy", "none"))

    def test_the_bound_is_not_one_of_policies_that_turn_pages_away(self):
        urls = [u for n in range(300) for u in ("http://h/a", f"http://h/x{n}")]
        trace = self.trace(urls)
        a = self.summary(trace, "--policy", "opt,tinylfu", command="advise")
        self.assertEqual([(p["policy"], p["capacity_urls"]) for p in a["policies"]],
                         [("tinylfu", 1), ("opt", 2)])
        text = " ".join(self.advise(trace, "--policy", "opt,tinylfu").split())
        self.assertIn("one with admission control may need less", text)
        self.assertNotIn("ignores sizes", text)
        self.assertIn("no policy that admits every page has fewer misses",
                      " ".join(self.sunproxy("policies", "opt").stdout.decode().split()))

    def test_both_ratios_are_told(self):
        trace = self.bulky_trace()
        text = self.advise(trace, *self.BODY, "--share", "0.45", "--policy", "lru,fifo")
        self.assertIn("of 800 B together", text)
        self.assertIn("OPT ignores sizes", self.advise(trace, *self.BODY, "--policy", "lru,opt"))
        a = self.summary(trace, *self.BODY, "--share", "0.45", "--policy", "lru,fifo", command="advise")
        best, other = a["policies"]
        self.assertIn(f"{100 * best['hit_ratio']:.1f} % of the requests and "
                      f"{100 * best['byte_hit_ratio']:.1f} % of the bytes", text)
        self.assertRegex(text, rf"{other['policy']} .* {100 * other['hit_ratio_at_best']:.1f} % +"
                               rf"{100 * other['byte_hit_ratio_at_best']:.1f} %")

    def test_shares_that_are_none(self):
        trace = self.trace(["http://h/a"])
        for share in ("0", "101%", "0x5A%", "0x1p-1", "1e-1", "%", "", ".", "-1", "nan"):
            self.complaint(trace, "--share", share, command="advise")

    def test_the_size_that_is_advised_is_enough_and_less_is_not(self):
        trace, sizes = SHIPPED / "History", SHIPPED / "sizes.tsv"
        for more in ([], ["--sizes", sizes], ["--sizes", sizes, "--by-bytes"],
                     ["--share", "0.5"]):
            a = self.summary(trace, *more, command="advise")
            self.assertAlmostEqual(a["target"], a["share"] * a["infinite"][a["goal"]], places=5)
            unit = "capacity_bytes" if "--sizes" in more else "capacity_urls"
            best = a[unit]
            capacity = f"{best}B" if unit == "capacity_bytes" else str(best)
            options = [*(m for m in more if m not in ("--share", "0.5")), "--count-bytes",
                       a["count_bytes"]]
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
        self.assertRegex(text, r"\n  [a-z0-9-]+ with \d+ URLs, [\d.]+ % of the distinct URLs; it hits\n")
        self.assertIn("needs future", text)
        self.assertIn("admission control may need less", " ".join(text.split()))
        command = re.search(r"sunproxy set (--policy \S+ --capacity-urls \d+ --capacity-bytes \d+)", text)
        self.assertTrue(command)

    def test_a_sample_is_chosen_by_its_error(self):
        done = self.sunproxy("trace", "generate", "zipf", "-n", "500000", "--urls", "60000",
                             "--to", "oracle", "-o", self.dir / "long.oracleGeneral")
        a = self.sunproxy("advise", self.dir / "long.oracleGeneral", "--policy", "lru", "--json")
        self.assertIn("of 500000 requests a sample of", a.stderr.decode())
        a = json.loads(a.stdout)
        self.assertGreater(a["interval"]["sample_error"], 0)
        self.assertLess(a["interval"]["sample_error"], 0.01)
        self.assertEqual(done.returncode, 0)

    def test_what_no_cache_helps(self):
        trace = self.trace([f"http://h/{n}" for n in range(20)])
        self.assertIn("no cache helps", self.sunproxy("advise", trace).stdout.decode())
        self.assertIsNone(self.summary(trace, command="advise")["policy"])


class AdviceTakenTest(SimulateCase):
    needs = (harness.ORIGIN, harness.SUNPROXYD, harness.SUNPROXY)

    def test_the_command_that_advise_gives_can_be_given(self):
        daemon = self.daemon(origin=self.origin())
        output = self.sunproxy("advise", SHIPPED / "History").stdout.decode()
        _, command, *arguments = re.search(r"^  (sunproxy set .*)$", output, re.M).group(1).split()
        self.sunproxy(command, *arguments, daemon=daemon)
        policy = arguments[arguments.index("--policy") + 1]
        self.assertEqual(json.loads(self.sunproxy("stat", "--json", daemon=daemon).stdout)["policy"],
                         policy)


class PromiseTest(SimulateCase):
    """The hit ratios that advise promises are those that the daemon reaches."""

    seconds = 8
    needs = (harness.ORIGIN, harness.SUNPROXYD, harness.SUNPROXY)

    def traffic(self, size_of, requests=2500, urls=300, seed=3):
        """Requests by a law like Zipf's, with the sizes of their pages: (trace, sizes)."""
        dice = random.Random(seed)
        pages = {f"http://h/page/{n}": size_of(dice) for n in range(urls)}
        names = list(pages)
        trace = self.trace([names[min(urls, int(dice.paretovariate(0.7))) - 1]
                            for _ in range(requests)])
        sizes = self.dir / "sizes.tsv"
        sizes.write_text("".join(f"{url}\t{size}\n" for url, size in pages.items()))
        return trace, sizes

    def header_bytes(self, daemon):
        """Of a page as the server keeps it: get -i prints all but the end of its head."""
        head = self.sunproxy("get", "-i", "http://h/page/0", daemon=daemon).stdout
        return len(head.partition(b"\r\n\r\n")[0])

    def check_promise(self, size_of, *more, policies="lru,gdsf,s3-fifo,arc,sieve"):
        trace, sizes = self.traffic(size_of)
        daemon = self.daemon("--freshness", "off", *more, origin=self.origin("--sizes", sizes))
        counts = ["--count-bytes", "body"] if more else ["--header-bytes",
                                                         str(self.header_bytes(daemon))]
        promised = self.summary(trace, "--sizes", sizes, *counts, "--policy", policies, "--share",
                                "0.8", command="advise")
        best = promised["policies"][0]
        self.assertEqual(best["policy"], promised["policy"])
        live = json.loads(self.sunproxy(
            "replay", trace, "--json", "--policy", promised["policy"], "--capacity",
            f"{promised['capacity_bytes']}B", daemon=daemon).stdout)
        self.assertAlmostEqual(self.live_ratio(live), best["hit_ratio"], delta=0.01)
        # And simulate says the same of that policy and size.
        r, = self.results(trace, "--sizes", sizes, "--policy", promised["policy"], "--capacity",
                          f"{promised['capacity_bytes']}B",
                          *(counts if more else ["--count-bytes", "whole", *counts])).values()
        self.assertEqual((r["hit_ratio"], r["byte_hit_ratio"]),
                         (best["hit_ratio"], best["byte_hit_ratio"]))
        return promised, trace, sizes, daemon

    @staticmethod
    def live_ratio(live):
        run, = live["runs"] if "runs" in live else [live]
        return run["hits"] / run["requests"]

    def test_pages_of_54_bytes(self):
        promised, trace, sizes, daemon = self.check_promise(lambda dice: 54)
        # The sizes differ by far; the one of bodies alone would not have been kept.
        self.assertLess(4 * promised["capacity_bytes_of_bodies"], promised["capacity_bytes"])
        live = json.loads(self.sunproxy(
            "replay", trace, "--json", "--policy", promised["policy"], "--capacity",
            f"{promised['capacity_bytes_of_bodies']}B", daemon=daemon).stdout)
        self.assertLess(self.live_ratio(live), promised["target"] - 0.1)

    def test_the_interval_covers_other_header_fields(self):
        """Pages of 54 bytes with 92 and 800 bytes of header fields, where 300 are assumed."""
        trace, sizes = self.traffic(lambda dice: 54)
        a = self.summary(trace, "--sizes", sizes, "--policy", "lru,gdsf", "--share", "0.8",
                         command="advise")
        promised, interval = a["policies"][0]["hit_ratio"], a["interval"]
        self.assertEqual((interval["header_bytes_low"], interval["header_bytes_high"]), (75, 1200))
        self.assertLess(interval["low_95"], interval["low_68"])
        self.assertGreater(interval["high_95"], interval["high_68"])
        reached = []
        for padding in ("", "x" * 700):
            daemon = self.daemon("--freshness", "off", origin=self.origin(
                "--sizes", sizes, *(["--header", f"X-Padding: {padding}"] if padding else []),
                name=f"origin{len(padding)}"))
            live = json.loads(self.sunproxy(
                "replay", trace, "--json", "--policy", a["policy"], "--capacity",
                f"{a['capacity_bytes']}B", daemon=daemon).stdout)
            reached.append(self.live_ratio(live))
            self.assertLess(interval["low_95"], reached[-1])
            self.assertGreater(interval["high_95"], reached[-1])
        # They are far apart, so that the traffic alone does not explain them.
        self.assertGreater(reached[0], promised + 0.02)
        self.assertLess(reached[1], promised - 0.02)
        known = self.summary(trace, "--sizes", sizes, "--policy", "lru,gdsf", "--share", "0.8",
                             "--header-bytes", "300", command="advise")
        self.assertIsNone(known["interval"]["header_bytes_low"])
        self.assertLess(known["uncertainty"], a["uncertainty"])
        text = self.sunproxy("advise", trace, "--sizes", sizes, "--policy", "lru").stdout.decode()
        self.assertIn("header fields of 75 to 1200 bytes (--header-bytes)", text)

    def test_pages_of_two_kilobytes(self):
        promised, *_ = self.check_promise(lambda dice: dice.randrange(500, 3500))
        self.assertLess(promised["capacity_bytes_of_bodies"], promised["capacity_bytes"])

    def test_pages_of_forty_kilobytes(self):
        self.check_promise(lambda dice: dice.randrange(20000, 60000))

    def test_pages_of_all_sizes(self):
        self.check_promise(lambda dice: int(dice.paretovariate(0.9) * 80) % 100000)

    def test_a_server_that_counts_bodies(self):
        promised, *_ = self.check_promise(lambda dice: 54, "--count-bytes", "body")
        self.assertIsNone(promised["capacity_bytes_of_bodies"])
        self.assertEqual(promised["count_bytes"], "body")

    def test_both_sizes_and_what_is_assumed_are_printed(self):
        trace, sizes = self.traffic(lambda dice: 54)
        text = self.sunproxy("advise", trace, "--sizes", sizes, "--policy",
                             "lru,fifo").stdout.decode()
        self.assertIn("300 bytes of\nheader fields (assumed; --header-bytes)", text)
        a = self.summary(trace, "--sizes", sizes, "--policy", "lru,fifo", command="advise")
        self.assertIn(f"--capacity-bytes {a['capacity_bytes']} ", text)
        self.assertRegex(text, r"--count-bytes body, which counts bodies alone: [\d.]+ (KiB|B)\.")
        text = self.sunproxy("advise", trace, "--sizes", sizes, "--policy", "lru,fifo",
                             "--count-bytes", "body").stdout.decode()
        self.assertIn("only with --count-bytes body", text)
        self.assertNotIn("header fields", text)


class CalibrationTest(harness.SystemTest):
    """The short form of `make calibrate`."""

    needs = (harness.RELEASE_ORIGIN, harness.RELEASE_SUNPROXYD, harness.RELEASE_SUNPROXY)

    def test_intervals_cover_what_came(self):
        done = self.run_program(["python3", harness.TOP / "tests/bench/calibrate_advise.py", "--log",
                                 "zipf, lognormal 8", "--draws", "10", "--live", "5", "--json",
                                 self.dir / "draws"])
        text = done.stdout.decode()
        self.assertRegex(text, r"\n  zipf, lognormal 8 KB +10 +2 ")
        self.assertIn("absent: ", text)
        rows = [json.loads(line) for line in (self.dir / "draws").read_text().splitlines()]
        self.assertEqual((len(rows), sum(row["live"] for row in rows)), (20, 2))
        inside = {level: sum(row["interval"][f"low_{level}"] <= row["ratio"]
                             <= row["interval"][f"high_{level}"] for row in rows)
                  for level in (68, 95)}
        # Of 20 that cover with 68 % (95 %), fewer than 5 (13) do not come once in 10,000 times.
        self.assertGreaterEqual(inside[68], 5)
        self.assertGreaterEqual(inside[95], 13)


class UncertaintyTest(SimulateCase):
    def requests(self, count, urls, seed=1):
        dice = random.Random(seed)
        return [f"http://h/{min(urls, int(dice.paretovariate(0.8)))}" for _ in range(count)]

    def advise(self, *arguments):
        return self.sunproxy("advise", *arguments).stdout.decode()

    def test_too_little_data(self):
        trace = self.trace(self.requests(48, 12))
        a = self.summary(trace, command="advise")
        self.assertTrue(a["too_little_data"])
        self.assertGreater(a["uncertainty"], 0.05)
        self.assertGreater(a["requests_needed"], 48)
        self.assertGreaterEqual(len(a["ties"]), 3)
        text = self.advise(trace)
        self.assertIn("Too little data: the uncertainty of the hit ratio is +-", text)
        self.assertIn(f"About {a['requests_needed']} requests", text)
        self.assertIn("Ties at this size, within the noise:", text)

    def test_enough_data(self):
        trace = self.trace(self.requests(20000, 2000))
        a = self.summary(trace, "--policy", "lru,fifo,lfu", command="advise")
        self.assertFalse(a["too_little_data"])
        self.assertEqual(a["requests_needed"], 0)
        self.assertLess(a["uncertainty"], 0.05)
        text = self.advise(trace, "--policy", "lru,fifo,lfu")
        self.assertNotIn("Too little data", text)
        interval = [f"{100 * a['interval'][end]:.1f}" for end in
                    ("low_68", "high_68", "low_95", "high_95")]
        self.assertIn("Intervals of the hit ratio of as many requests to come, from an empty\ncache:\n"
                      "  68 %: {} to {} %; 95 %: {} to {} %;\n"
                      "  included: changes of the traffic".format(*interval), text)

    def test_what_lru_needs_is_beside_the_recommendation(self):
        trace = self.trace([f"http://h/{n % 200}" for n in range(2000)])
        text = self.advise(trace, "--policy", "lru,lirs", "--share", "0.5")
        self.assertRegex(text, r"of the requests\.\n  LRU needs 200 URLs for that \(\+\d+ %\)\.\n")

    def test_traffic_that_changes_has_a_wider_interval(self):
        dice = random.Random(2)
        same = [f"http://h/{dice.randrange(100)}" for _ in range(4000)]
        changes = [f"http://h/{n // 500}/{dice.randrange(20 + 150 * (n // 500 % 2))}"
                   for n in range(4000)]
        widths = [self.summary(self.trace(urls, name=name), "--policy", "lru",
                               command="advise")["uncertainty"]
                  for name, urls in (("same.txt", same), ("changes.txt", changes))]
        self.assertGreater(widths[1], 2 * widths[0])

    def test_a_smaller_sample_has_the_larger_error(self):
        trace = self.trace(self.requests(40000, 8000))
        small, large, all_of_it = (self.summary(trace, "--policy", "w-tinylfu", "--sample", rate,
                                                command="advise") for rate in ("5%", "60%", "100%"))
        errors = [a["interval"]["sample_error"] for a in (small, large, all_of_it)]
        self.assertGreater(errors[0], errors[1])
        self.assertGreater(errors[1], 0)
        self.assertEqual(errors[2], 0)
        self.assertGreater(small["uncertainty"], large["uncertainty"])
        self.assertRegex(self.advise(trace, "--policy", "w-tinylfu", "--sample", "5%"),
                         r"the sample's standard error of \d+\.\d\d points\.")

    def test_a_sample_with_a_popular_page_has_no_narrower_interval(self):
        """Half of all requests are for one page, which is in the sample. What header fields change
        is stated as a difference of the whole trace's ratio, not of the sample's own."""
        dice = random.Random(1)
        others = dice.choices(range(1, 3000), [1 / n ** 0.8 for n in range(1, 3000)], k=30000)
        others = [None if dice.random() < 0.5 else n for n in others]
        trace = self.dir / "popular.tsv"
        # Which URLs a sample has is a question of their hashes.
        for popular in range(100):
            trace.write_text("url\tsize\n" + "".join(
                f"http://h/{n or f'popular{popular}'}\t200\n" for n in others))
            done = self.simulate("--policy", "lru", "--sample", "10%", "--capacity", "100", trace)
            if int(re.search(rb"sample: (\d+) requests", done.stdout)[1]) > 14000:
                break
        else:
            self.fail("no popular page is in the sample")
        sampled, whole = (self.summary(trace, "--policy", "lru", "--sample", rate, command="advise")
                          for rate in ("10%", "100%"))
        widths = [a["interval"]["high_95"] - a["interval"]["low_95"] for a in (sampled, whole)]
        self.assertGreater(widths[0], 0.8 * widths[1])

    def test_ties_are_called_ties_and_differences_are_not(self):
        # A loop: FIFO and LRU do the same, and OPT-like policies do much better.
        trace = self.trace([f"http://h/{n % 200}" for n in range(8000)])
        a = self.summary(trace, "--policy", "lru,fifo,lirs", "--share", "0.5", command="advise")
        self.assertEqual((a["policy"], a["ties"]), ("lirs", []))
        by_name = {p["policy"]: p for p in a["policies"]}
        self.assertLess(by_name["lru"]["difference"], -0.2)
        self.assertLess(by_name["lru"]["noise"], 0.2)
        a = self.summary(trace, "--policy", "lru,fifo", "--share", "0.5", command="advise")
        self.assertEqual((a["policy"], a["ties"]), ("lru", ["fifo"]))
        self.assertIn("does not distinguish the policies",
                      self.advise(trace, "--policy", "lru,fifo", "--share", "0.5"))

    def test_a_policy_that_draws_is_a_mean_and_its_spread_is_noise(self):
        trace = self.trace(self.requests(3000, 400))
        a = self.summary(trace, "--policy", "rand,fifo", command="advise")
        rand = next(p for p in a["policies"] if p["policy"] == "rand")
        self.assertEqual(rand["seeds"], 5)
        self.assertGreater(rand["hit_ratio_sd"], 0)
        self.assertIn("means of 5 seeds", self.advise(trace, "--policy", "rand,fifo"))
        self.assertNotIn("seeds", self.advise(trace, "--policy", "rand,fifo", "--seeds", "1"))

    def test_sizes_that_are_assumed_are_counted(self):
        trace = self.trace(self.requests(3000, 40))
        sizes = self.dir / "sizes.tsv"
        sizes.write_text("".join(f"http://h/{n}\t{100 * n}\n" for n in range(1, 31)))
        a = self.summary(trace, "--sizes", sizes, "--policy", "lru", command="advise")
        self.assertGreaterEqual(a["sizes_assumed"], 5)
        self.assertRegex(self.advise(trace, "--sizes", sizes, "--policy", "lru"),
                         rf"Assumed sizes: {a['sizes_assumed']} of \d+ URLs count as \d+ bytes, "
                         r"the median of the others\.")

    def test_both_goals_and_sizes_around(self):
        dice = random.Random(4)
        size = {n: dice.randrange(10, 5000) for n in range(500)}
        pages = [min(499, int(dice.paretovariate(0.8))) for _ in range(4000)]
        trace = self.trace([f"http://h/{n}\t{size[n]}" for n in pages])
        a = self.summary(trace, "--policy", "lru,gdsf", command="advise")
        b = self.summary(trace, "--policy", "lru,gdsf", "--by-bytes", command="advise")
        self.assertEqual((a["goal"], b["goal"]), ("hit_ratio", "byte_hit_ratio"))
        for one, two in ((a, b), (b, a)):
            other = one["other_goal"]
            for key in ("goal", "target", "policy", "capacity_bytes", "policies", "around"):
                self.assertEqual(other[key], two[key], key)
        text = self.advise(trace, "--policy", "lru,gdsf")
        self.assertRegex(text, r"(?s)For 90 % of an infinite cache's hit ratio.*"
                               r"Or for 90 % of an infinite cache's byte hit ratio")
        around = {p["capacity_bytes"]: p for p in a["around"]}
        self.assertGreaterEqual(len(around), 4)
        self.assertEqual(around[a["capacity_bytes"]]["hit_ratio"], a["policies"][0]["hit_ratio"])
        self.assertIn(round(a["capacity_bytes"] / 2), [*around, *(n - 1 for n in around)])
        for capacity, p in around.items():
            r, = self.results(trace, "--policy", a["policy"], "--count-bytes", "whole", "--capacity",
                              f"{capacity}B").values()
            self.assertEqual((r["hit_ratio"], r["byte_hit_ratio"]),
                             (p["hit_ratio"], p["byte_hit_ratio"]))
        self.assertIn("at sizes around it", text)

    def test_rotated_logs_are_one_trace(self):
        rows = [(1000 + n, url) for n, url in enumerate(self.requests(3000, 300))]
        lines = [f"{time}\t{url}\t{len(url) * 100}\n" for time, url in rows]
        paths = []
        for name, part in (("log", lines), ("log.0", lines[2000:]), ("log.1", lines[800:2000]),
                           ("log.2", lines[:800])):
            paths.append(self.dir / name)
            paths[-1].write_text("time\turl\tsize\n" + "".join(part))
        whole = self.summary(paths[0], "--policy", "lru,lfu", command="advise")
        for order in (paths[1:], paths[:0:-1]):
            joined = self.summary(*order, "--policy", "lru,lfu", command="advise")
            self.assertEqual((joined.pop("files"), joined.pop("trace")), (3, str(order[0])))
            for entry in (joined, joined["other_goal"]):
                self.assertTrue(entry["policy"])
            self.assertEqual({k: v for k, v in whole.items() if k not in ("files", "trace")}, joined)
        self.assertRegex(self.advise(*paths[1:], "--policy", "lru"),
                         r"^\S*/log\.0 and 2 more files \(ordered by time\): 3000 requests")
        plain = self.trace(["http://h/a", "http://h/a"], name="plain.txt")
        done = self.sunproxy("advise", plain, paths[1], "--policy", "lru")
        self.assertIn("not all of the 2 files have times", done.stderr.decode())

    def test_a_sample_without_a_calibrated_error_says_so(self):
        trace = self.trace(self.requests(20000, 4000))
        text = self.advise(trace, "--sample", "50%", "--policy", "maxs,lru,tinylfu")
        self.assertRegex(text, r"maxs .*\((no calibrated error|the newest|too few)")
        self.assertRegex(text, r"tinylfu .*\((no calibrated error|too few)|"
                               r"  tinylfu with ")
        self.assertIn("the sample's standard error of", text)
