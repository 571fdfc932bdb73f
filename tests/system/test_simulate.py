"""sunproxy simulate and policies."""

import array
import csv
import io
import json
import re
import statistics
import unittest

from simulate_case import CLASSICS, PAPER, SimulateCase
from test_paper import FOLDER, HITS, authors_log


@unittest.skipUnless(FOLDER.exists(), f"{FOLDER} is not here")
class PaperTest(SimulateCase):
    def test_the_published_hits(self):
        capacities = ",".join(str(c) for c in HITS)
        results = self.results(PAPER, "--policy", "lru,fifo,lfu", "--capacity", capacities)
        for capacity, hits in HITS.items():
            for policy, count in hits.items():
                r = results[policy, capacity, 0]
                self.assertEqual((r["requests"], r["hits"], r["misses"]), (997, count, 997 - count))

    def test_the_log_is_what_the_authors_server_wrote(self):
        log = self.dir / "log.tsv"
        self.simulate(PAPER, "--policy", "lru", "--capacity", "7", "--log", log)
        rows = [line.split("\t") for line in log.read_text().splitlines()]
        self.assertEqual(rows[0],
                         ["number", "url", "outcome", "victim", "status", "bytes", "us"])
        words = {"new": "miss", "hit": "hit", "evicted": "evicted"}
        expected = authors_log()
        self.assertEqual(len(rows) - 1, len(expected))
        for row, (outcome, url, victim) in zip(rows[1:], expected):
            self.assertEqual((row[2], row[1], row[3]), (words[outcome], url, victim or ""))
            self.assertEqual(row[6], "0")

    def test_the_log_as_json(self):
        log = self.dir / "log.jsonl"
        self.simulate(PAPER, "--policy", "fifo", "--capacity", "14", "--log", log)
        rows = [json.loads(line) for line in log.read_text().splitlines()]
        self.assertEqual(sum(r["outcome"] == "hit" for r in rows), HITS[14]["fifo"])
        self.assertEqual(rows[0]["victims"], [])

    def test_the_curve_is_what_is_simulated(self):
        curve, = self.summary(PAPER, "--curve=urls", "--points", "1000", "--policy",
                              "lru,fifo")["traces"][0:1]
        by_policy = {c["policy"]: c["points"] for c in curve["curves"]}
        for policy in ("lru", "fifo"):
            points = {p["capacity_urls"]: p["hit_ratio"] for p in by_policy[policy]}
            self.assertEqual(sorted(points), list(range(1, 69)))
            for capacity, hits in HITS.items():
                self.assertAlmostEqual(points[capacity], hits[policy] / 997, places=5)


class TableTest(SimulateCase):
    threads = True
    URLS = ["a", "b", "c", "a", "b", "d", "a"]

    def test_best_first(self):
        trace = self.trace([f"http://h/{n * n % 37}" for n in range(500)])
        t, = self.summary(trace, "--capacity", "5,10%,20")["traces"]
        self.assertEqual((t["requests"], t["distinct_urls"]), (500, 19))
        sizes = [r["capacity_urls"] for r in t["results"]]
        self.assertEqual(sizes, sorted(sizes))
        self.assertEqual(set(sizes), {2, 5, 20})
        for size in set(sizes):
            ratios = [r["hit_ratio"] for r in t["results"] if r["capacity_urls"] == size]
            self.assertEqual(ratios, sorted(ratios, reverse=True))
        self.assertGreaterEqual({r["policy"] for r in t["results"]}, {*CLASSICS, "opt"})
        bound = {r["capacity_urls"]: r["hits"] for r in t["results"] if r["policy"] == "opt"}
        for r in t["results"]:
            self.assertLessEqual(r["hits"], bound[r["capacity_urls"]])
            self.assertLessEqual(r["hit_ratio"], t["infinite"]["hit_ratio"] + 1e-6)

    def test_for_people(self):
        trace = self.trace([f"http://h/{u}" for u in self.URLS])
        text = self.simulate(trace, "--policy", "lru,none", "--capacity", "2,0").stdout.decode()
        self.assertIn("7 requests for 4 URLs", text)
        self.assertIn("42.86 %", text)  # of an infinite cache
        self.assertIn("nothing was stored: the capacity is zero", text)
        self.assertIn("without a cache nothing was stored", text)
        self.assertIn("2 URLs (50 % of the URLs)", text)

    def test_csv(self):
        trace = self.trace([f"http://h/{u}" for u in self.URLS], name='odd, "name".txt')
        text = self.simulate(trace, trace, "--separate", "--policy", "lru,fifo", "--capacity", "3",
                             "--csv").stdout.decode()
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(len(rows), 4)
        for row in rows:
            self.assertEqual(row["trace"], str(trace))
            self.assertEqual((row["requests"], row["capacity_urls"], row["bytes"]), ("7", "3", ""))
        text = self.simulate(trace, "--curve", "--csv", "--policy", "lru").stdout.decode()
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual([r["capacity_urls"] for r in rows], ["1", "2", "3", "4"])
        self.assertEqual(rows[-1]["hit_ratio"], f"{3 / 7:.6f}")

    def test_bytes(self):
        trace = self.trace(["http://h/a\t100", "http://h/b\t50", "http://h/a\t100",
                            "http://h/c\t400", "http://h/b\t50"])
        t, = self.summary(trace, "--policy", "lru", "--capacity", "200B,50%B,10B", "--count-bytes",
                          "body")["traces"]
        self.assertEqual(t["distinct_bytes"], 550)
        small, middle, large = t["results"]
        self.assertEqual([r["capacity_bytes"] for r in t["results"]], [10, 200, 275])
        self.assertEqual(small["note"], "nothing was stored: every page is larger than the cache")
        for r in (middle, large):
            self.assertEqual((r["hits"], r["bytes"], r["bytes_hit"], r["bytes_missed"],
                              r["too_large"], r["note"]), (2, 700, 150, 550, 1, None))
        r, = self.results(trace, "--policy", "lru", "--capacity", "2", "--ignore-sizes").values()
        self.assertNotIn("bytes", r)

    def test_sizes_that_are_missing(self):
        trace = self.trace(["http://h\t100", "http://h/b", "http://h/c\t300", "http://h/b",
                            "http://h/d\t9000", "http://h/d\t9000"])
        done = self.simulate(trace, "--policy", "lru", "--capacity", "1K", "--json")
        # One huge page does not make the unknown one huge.
        self.assertIn("the size of 1 of 4 URLs is unknown and taken to be the median of the "
                      "others, 300 bytes", done.stderr.decode())
        t, = json.loads(done.stdout)["traces"]
        self.assertEqual(t["distinct_bytes"], 9700)
        trace = self.trace(["http://h\t100", "http://h/b", "http://h/c\t300", "http://h/b"])
        sizes = self.dir / "sizes"
        sizes.write_text("# sizes\nhttp://h/\t7\nhttp://h/b\t20\n\n")
        t, = self.summary(trace, "--policy", "lru", "--capacity", "1K", "--sizes", sizes)["traces"]
        self.assertEqual(t["distinct_bytes"], 327)
        sizes.write_text("http://h/b\t4294967295\n")
        self.assertIn("1 sizes are larger than 4294967294 bytes and count as that",
                      self.complaint(trace, "--policy", "lru", "--capacity", "1K", "--sizes", sizes,
                                     expect=0))
        sizes.write_text("http://h/ 7\n")
        self.assertIn("line 1", self.complaint(trace, "--sizes", sizes, expect=65))
        self.complaint(trace, "--sizes", self.dir / "none", expect=66)

    def test_sizes_of_too_few(self):
        trace = self.trace(["http://h/a\t100", "http://h/b", "http://h/c", "http://h/b"])
        done = self.simulate(trace, "--policy", "lru", "--capacity", "2")
        self.assertEqual(done.stderr.decode().splitlines(),
                         [f"sunproxy simulate: {trace}: sizes are passed over, because those of 2 "
                          "of 3 URLs are unknown"])
        # One sentence, not two that contradict each other.
        text = self.complaint(trace, "--policy", "lru", "--capacity", "1K")
        self.assertIn("needs sizes, and those of 2 of 3 URLs are unknown; give them with --sizes",
                      text)
        self.assertEqual(text.count(str(trace)), 1)
        sizes = self.dir / "sizes"
        sizes.write_text("http://h/nobody\t7\n")
        self.assertIn("the sizes of 2 of 3 URLs are unknown",
                      self.complaint(trace, "--sizes", sizes, expect=65))

    def test_warm_up(self):
        trace = self.trace([f"http://h/{u}" for u in "abcdabcd"])
        r, = self.results(trace, "--policy", "lru", "--capacity", "4", "--warmup", "50%").values()
        self.assertEqual((r["requests"], r["hits"]), (4, 4))
        r, = self.results(trace, "--policy", "lru", "--capacity", "4", "--warmup", "3").values()
        self.assertEqual((r["requests"], r["hits"]), (5, 4))
        self.complaint(trace, "--warmup", "8", expect=65)

    def test_counts_of_the_trace_include_the_warm_up_and_those_of_results_do_not(self):
        trace = self.trace([f"http://h/{u}\t{10 if u == 'a' else 1}" for u in "abab"])
        for warmup, counted in (("0", (4, 22)), ("1", (3, 12)), ("50%", (2, 11))):
            trace_counts, = self.summary(trace, "--policy", "lru", "--capacity", "2", "--warmup", warmup)["traces"]
            self.assertEqual((trace_counts["requests"], trace_counts["bytes"]), (4, 22), warmup)
            self.assertEqual((trace_counts["results"][0]["requests"], trace_counts["results"][0]["bytes"]), counted)
            self.assertEqual(trace_counts["warmup"], 4 - counted[0])

    def test_a_sample_says_its_error(self):
        trace = self.trace([f"http://h/{n * n % 4999}" for n in range(20000)])
        (truth,) = self.results(trace, "--policy", "lru", "--capacity", "50%").values()
        (r,) = self.results(trace, "--policy", "lru", "--capacity", "50%", "--sample", "20%",
                            "--seed", "5").values()
        self.assertEqual(truth["hit_ratio_error"], 0)
        self.assertGreater(r["hit_ratio_error"], 0)
        self.assertEqual(r["requests"], 20000)
        self.assertLess(abs(r["hit_ratio"] - truth["hit_ratio"]), 4 * r["hit_ratio_error"])
        text = self.simulate(trace, "--sample", "0.2").stdout.decode()
        self.assertIn("from a sample:", text)
        self.assertIn("+-", text)

    def test_a_sample_says_what_it_cannot_tell(self):
        trace = self.trace([f"http://h/{n * n % 4999}" for n in range(20000)])
        how = [trace, "--policy", "lru,rand", "--capacity", "10%,80%", "--sample", "20%",
               "--seed", "5"]
        done = self.simulate(*how, "--json")
        results = {(r["policy"], r["capacity_urls"]): r
                   for r in json.loads(done.stdout)["traces"][0]["results"]}
        self.assertEqual(len(results), 4)
        shown = [k for k, r in results.items() if r["hit_ratio_error"] is not None]
        self.assertEqual(shown, [("lru", 2000)])
        for key, r in results.items():
            self.assertEqual(r["error_unknown"] is None, key in shown)
        self.assertIn("too few pages", results["lru", 250]["error_unknown"])
        self.assertIn("newest pages", results["rand", 2000]["error_unknown"])
        stderr = done.stderr.decode()
        self.assertIn("the errors of 3 of 4 rows are unknown", stderr)
        rate = re.search(r"with --sample (\d+)%", stderr)[1]
        (r,) = self.results(trace, "--policy", "lru", "--capacity", "10%", "--sample", f"{rate}%",
                            "--seed", "5").values()
        self.assertIsNotNone(r["hit_ratio_error"])
        self.assertRegex(self.simulate(*how).stdout.decode(),
                         r"(?m)^  lru +\S+ % +- .*\(too few pages for an error\)$")
        rows = list(csv.DictReader(io.StringIO(self.simulate(*how, "--csv").stdout.decode())))
        self.assertEqual(sum(row["hit_ratio_error"] == "" for row in rows), 3)
        self.assertTrue(all(row["cpu_us"] for row in rows))
        points = [p for c in self.summary(*how[:3], "--curve", *how[5:])["traces"][0]["curves"]
                  if c["policy"] == "rand" for p in c["points"]]
        self.assertIsNone(points[0]["hit_ratio_error"])

    def test_words_and_numbers_that_can_be_read(self):
        trace = self.trace(["http://h/a"])
        text = self.simulate(trace, "--policy", "lru", "--capacity", "1,10").stdout.decode()
        self.assertIn(": 1 request for 1 URL\n", text)
        self.assertIn("1 URL (100 % of the URLs)", text)
        self.assertIn("10 URLs (1000 % of the URLs)", text)
        trace = self.trace([f"http://h/{n}\t1000000000" for n in range(50)])
        text = self.simulate(trace, "--policy", "lru", "--capacity", "5B,10M").stdout.decode()
        self.assertIn("(< 0.001 % of the bytes)", text)
        self.assertIn("(0.021 % of the bytes)", text)

    def test_jobs_change_nothing(self):
        trace = self.trace([f"http://h/{n * n % 499}" for n in range(5000)])
        outcome = []
        for jobs in ("1", "3"):
            results = self.results(trace, "--policy", "all", "--capacity", "5,50,100", "-j", jobs)
            for r in results.values():
                del r["cpu_us"]
            outcome.append(results)
        self.assertEqual(*outcome)
        self.assertEqual(len(outcome[0]), 3 * len(self.policies()))


class LongTraceTest(SimulateCase):
    def test_a_long_trace_is_sampled(self):
        trace = self.dir / "long"
        trace.write_bytes(array.array("I", [n * n % 1009 % 5 for n in range(1000001)]).tobytes())
        how = [trace, "--format", "cache2k", "--policy", "fifo,lru", "--points", "1"]
        done = self.simulate(*how, "--curve", "--json")
        self.assertIn("--sample 100% takes all", done.stderr.decode())
        t, = json.loads(done.stdout)["traces"]
        self.assertEqual((t["sample"], t["sample_urls"]), (1, 5))  # by chance all of the five
        self.assertEqual(t["sample_requests"], 1000001)
        lru, = (c["points"] for c in t["curves"] if c["policy"] == "lru")
        self.assertEqual((lru[0]["hit_ratio"], lru[0]["hit_ratio_error"]),
                         (t["infinite"]["hit_ratio"], 0))
        page = self.dir / "page.html"
        done = self.sunproxy("report", *how[:-2], "--points", "2", "-o", page)
        self.assertIn("--sample 100% takes all", done.stderr.decode())
        done = self.simulate(*how, "--curve", "--sample", "100%")
        self.assertEqual(done.stderr, b"")
        self.assertNotIn("sample", done.stdout.decode())
        self.assertEqual(self.simulate(*how[:-2], "--capacity", "2").stderr, b"")


class SeedsTest(SimulateCase):
    """Policies that draw random numbers are run with several seeds."""

    def setUp(self):
        super().setUp()
        self.long = self.trace([f"http://h/{n * n % 211}\t{1 + n * n % 211 % 90}"
                                for n in range(3000)])

    def ratios(self, seed):
        r, = self.results(self.long, "--policy", "rand", "--capacity", "40", "--seeds", "1",
                          "--seed", str(seed)).values()
        self.assertEqual((r["seeds"], r["hit_ratio_sd"], r["byte_hit_ratio_sd"]), (1, 0, 0))
        return r["hit_ratio"], r["byte_hit_ratio"]

    def test_the_mean_and_the_spread_are_those_of_the_seeds(self):
        each = [self.ratios(seed) for seed in range(3, 10)]
        r, = self.results(self.long, "--policy", "rand", "--capacity", "40", "--seeds", "7",
                          "--seed", "3").values()
        self.assertEqual(r["seeds"], 7)
        for n, name in enumerate(["hit_ratio", "byte_hit_ratio"]):
            own = [ratios[n] for ratios in each]
            self.assertAlmostEqual(r[name], statistics.mean(own), places=5)
            self.assertAlmostEqual(r[name + "_sd"], statistics.stdev(own), places=5)
            self.assertGreater(r[name + "_sd"], 0)
            self.assertAlmostEqual(r[name + "_low"], min(own), places=5)
            self.assertAlmostEqual(r[name + "_high"], max(own), places=5)
        self.assertEqual(r["hits"] + r["misses"], 3000)

    def test_several_seeds_are_the_default_of_those_that_draw(self):
        draws = {p["name"] for p in self.policies() if p["draws"]}
        self.assertIn("rand", draws)
        for (policy, _, _), r in self.results(self.long, "--policy", "all", "--capacity",
                                              "40").items():
            self.assertEqual(r["seeds"], 5 if policy in draws else 1, policy)

    def test_tables_curves_and_csv(self):
        text = self.simulate(self.long, "--policy", "lru,rand", "--capacity", "40").stdout.decode()
        self.assertRegex(text, r"hit ratio +sd")
        self.assertRegex(text, r"rand +[\d.]+ % +0\.\d\d % ")
        self.assertRegex(text, r"lru +[\d.]+ % +- ")
        self.assertIn("standard deviation over 5 seeds", text)
        text = self.simulate(self.long, "--policy", "lru,rand", "--capacity", "40", "--seeds",
                             "1").stdout.decode()
        self.assertNotIn("sd", text)
        text = self.simulate(self.long, "--policy", "lru,rand", "--curve=urls").stdout.decode()
        self.assertRegex(text, r"URLs +lru +rand +sd\n")
        text = self.simulate(self.long, "--policy", "lru,rand", "--curve=urls",
                             "--csv").stdout.decode()
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual({(r["policy"], r["seeds"]) for r in rows}, {("lru", "1"), ("rand", "5")})
        band = [r for r in rows if r["policy"] == "rand" and float(r["hit_ratio_sd"]) > 0]
        self.assertGreater(len(band), 10)
        for r in rows:
            self.assertLessEqual(float(r["hit_ratio_low"]), float(r["hit_ratio"]) + 1e-6)
            self.assertLessEqual(float(r["hit_ratio"]), float(r["hit_ratio_high"]) + 1e-6)

    def test_a_log_is_of_one_seed(self):
        log = self.dir / "log.tsv"
        r, = self.results(self.long, "--policy", "rand", "--capacity", "40", "--log", log).values()
        rows = [line.split("\t") for line in log.read_text().splitlines()[1:]]
        self.assertEqual(sum(row[2] == "hit" for row in rows), r["hits"])
        self.assertEqual((r["seeds"], len(rows)), (1, 3000))


class StorageTest(SimulateCase):
    """Expiry, and which pages are stored, whatever the policy."""

    def setUp(self):
        super().setUp()
        rows = [f"{n * 10}\thttp://h/{n * n % 61}\t{100 * (n * n % 61)}\n" for n in range(2000)]
        self.timed = self.dir / "timed.tsv"
        self.timed.write_text("time\turl\tsize\n" + "".join(rows))

    def hits(self, *how):
        r, = self.results(self.timed, "--policy", "lru", "--capacity", "61", *how).values()
        return r["hits"], r["expired"], r["not_admitted"]

    def expected(self, ttl=None, most=None, uses=1):
        stored, missed, hits, expired, refused = {}, {}, 0, 0, 0
        for n in range(2000):
            url = n * n % 61
            if url in stored and (ttl is None or n * 10 - stored[url] < ttl):
                hits += 1
                continue
            expired += url in stored
            if most is not None and 100 * url > most:
                refused += 1
                continue
            missed[url] = missed.get(url, 0) + 1
            if missed[url] < uses:
                refused += 1
                continue
            stored[url] = n * 10
        return hits, expired, refused

    def test_pages_expire(self):
        for text, seconds in (("5m", 300), ("10s", 10), ("24h", 86400)):
            self.assertEqual(self.hits("--ttl", text), self.expected(ttl=seconds), text)
        self.assertIn("pages expire 5 m 00 s after they are stored (--ttl)\n", self.simulate(
            self.timed, "--policy", "lru", "--ttl", "5m").stdout.decode())

    def test_large_pages_and_first_requests_are_not_stored(self):
        self.assertEqual(self.hits("--max-page", "3000B"), self.expected(most=3000))
        self.assertEqual(self.hits("--min-uses", "3"), self.expected(uses=3))
        self.assertEqual(self.hits("--min-uses", "2", "--max-page", "4000B", "--ttl", "5m"),
                         self.expected(300, 4000, 2))

    def test_curves_and_advice_heed_it(self):
        how = ["--policy", "lru,fifo", "--ttl", "5m"]
        t, = self.summary(self.timed, "--curve=urls", *how)["traces"]
        self.assertEqual(t["ttl_us"], 300000000)
        last = {c["policy"]: c["points"][-1]["hit_ratio"] for c in t["curves"]}
        self.assertEqual(set(last.values()), {self.expected(ttl=300)[0] / 2000})
        a = self.summary(self.timed, *how, command="advise")
        self.assertAlmostEqual(a["target"], 0.9 * last["lru"], places=5)
        self.assertTrue(a["policies"][0]["reached"])

    def test_what_a_trace_must_have(self):
        trace = self.trace(["http://h/a", "http://h/a"])
        self.assertIn("--ttl needs a trace with times", self.complaint(trace, "--ttl", "1m"))
        self.assertIn("--max-page needs sizes", self.complaint(trace, "--max-page", "1K"))


class SameFactsTest(SimulateCase):
    def test_every_command_says_the_same_of_a_trace_under_the_same_names(self):
        # Sizes that change, a request without one, lines that are left out.
        rows = [f"{n}\thttp://h/{n * n % 23}\t{100 + n % 7}\t{404 if n % 31 == 0 else 200}\n"
                for n in range(900)]
        trace = self.dir / "trace.tsv"
        trace.write_text("time\turl\tsize\tstatus\n" + "".join(rows) + "nonsense\n")
        said = {"describe": json.loads(self.sunproxy("trace", "describe", "--json", trace).stdout)}
        said["simulate"], = self.summary(trace, "--policy", "lru")["traces"]
        said["advise"] = self.summary(trace, "--policy", "lru", command="advise")
        page = self.sunproxy("report", "-o", "-", "--policy", "lru", "--points", "2", trace).stdout
        data = re.search(rb'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.S)
        said["report"], = json.loads(data.group(1))["traces"]
        for key in ("trace", "format", "requests", "distinct_urls", "distinct_bytes", "bytes",
                    "infinite", "left_out", "sizes_inferred"):
            shown = {command: facts[key] for command, facts in said.items()}
            self.assertEqual(len(set(map(json.dumps, shown.values()))), 1, (key, shown))
        self.assertEqual(said["report"]["left_out"]["status"], 30)
        self.assertEqual(said["simulate"]["distinct_bytes"],
                         sum({r.split("\t")[1]: int(r.split("\t")[2]) for r in rows[::-1]
                              if "404" not in r}.values()))
        for command in ("simulate", "advise", "report"):
            for key in ("sample", "warmup", "count_bytes", "sizes_assumed", "files"):
                self.assertIn(key, said[command])
            self.assertEqual(said[command]["count_bytes"], "whole")

    def test_assumed_sizes_count_alike(self):
        """Sizes that no request has: assumed if most are known, else there are no sums of bytes."""
        for known, sums in ((5, (600, 600)), (2, (None, None))):
            trace = self.dir / f"known{known}.tsv"
            trace.write_text("url\tsize\n" + "".join(
                f"http://h/{n}\t{100 if n < known else '-'}\n" for n in range(6)))
            described = json.loads(self.sunproxy("trace", "describe", "--json", trace).stdout)
            simulated, = self.summary(trace, "--policy", "lru", "--capacity", "1")["traces"]
            advised = self.summary(trace, "--policy", "lru", command="advise")
            for key in ("requests", "distinct_urls", "bytes", "distinct_bytes", "sizes_assumed",
                        "sizes_inferred", "infinite"):
                self.assertEqual(described[key], simulated[key], (known, key))
                self.assertEqual(described[key], advised[key], (known, key))
            self.assertEqual((described["bytes"], described["distinct_bytes"]), sums)
            self.assertEqual(described["sizes_unknown"], 6 - known)
            as_read = json.loads(self.sunproxy("trace", "describe", "--json", "--sizes-as-read", trace).stdout)
            self.assertEqual((as_read["bytes"], as_read["sizes_assumed"]), (100 * known, 0))
            text = self.sunproxy("trace", "describe", trace).stdout
            self.assertIn(b"100 B assumed for 1 URL\n" if known == 5 else b"; unknown for 4 requests\n", text)

    def test_a_sample_is_described_alike(self):
        trace = self.trace([f"http://h/{n * n % 997}" for n in range(5000)])
        how = [trace, "--policy", "lru", "--sample", "30%"]
        one, = self.summary(*how)["traces"]
        two = self.summary(*how, command="advise")
        page = self.sunproxy("report", "-o", "-", "--points", "2", *how).stdout
        data = re.search(rb'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.S)
        three, = json.loads(data.group(1))["traces"]
        for key in ("sample", "sample_urls", "sample_requests"):
            self.assertEqual(one[key], two[key])
            self.assertEqual(one[key], three[key])
        self.assertAlmostEqual(one["sample"], one["sample_urls"] / one["distinct_urls"], places=8)

    def test_default_sizes_are_the_same_in_simulate_and_report(self):
        for urls, shares in ((40, (10, 20, 30, 40, 50, 80)), (700, (1, 2, 5, 10, 20, 50))):
            plain = self.trace([f"http://h/{n * n % 7919 % urls}" for n in range(6000)])
            sized = self.trace([f"http://h/{n * n % 7919 % urls}\t{50 + n * n % 7919 % urls}"
                                for n in range(6000)], name="sized.txt")
            for trace in (plain, sized):
                one, = self.summary(trace, "--policy", "lru")["traces"]
                unit = "capacity_urls" if trace is plain else "capacity_bytes"
                sizes = [r[unit] for r in one["results"]]
                for r, share in zip(one["results"], shares, strict=True):
                    self.assertAlmostEqual(r["capacity_share"], share / 100, 4 if trace is sized else 1)
                tables = self.report_tables(trace)
                column = tables["hits"]["columns"].index(unit)
                self.assertEqual([r[column] for r in tables["hits"]["rows"] if r[0] == "lru"], sizes)
                for curve in ("urls", "bytes")[:1 if trace is plain else 2]:
                    two, = self.summary(trace, "--policy", "lru", f"--curve={curve}")["traces"]
                    points = {p["capacity_" + curve]: p["hit_ratio"]
                              for p in two["curves"][0]["points"]}
                    rows = tables["curve_" + curve]["rows"]
                    self.assertEqual([r[1] for r in rows], list(points))
                    for r in rows:
                        self.assertAlmostEqual(1 - r[3], points[r[1]], places=5)

    def report_tables(self, *how):
        page = self.sunproxy("report", "-o", "-", "--policy", "lru", *how).stdout
        data = re.search(rb'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.S)
        return json.loads(data.group(1))["traces"][0]["tables"]

    def test_the_policies_compared_are_those_of_the_registry(self):
        usual = {p["name"] for p in self.policies() if p["usual"]}
        self.assertGreaterEqual(usual, {*CLASSICS, "opt"})
        trace = self.trace([f"http://h/{n * n % 37}" for n in range(500)])
        one, = self.summary(trace, "--capacity", "5")["traces"]
        two = self.summary(trace, command="advise")
        self.assertEqual({r["policy"] for r in one["results"]}, usual)
        self.assertEqual({p["policy"] for p in two["policies"]}, usual)


class PoliciesTest(SimulateCase):
    def test_one_for_programs(self):
        for name in ("none", "lru"):
            [one] = json.loads(self.sunproxy("policies", "--json", name).stdout)
            self.assertEqual((one["name"], one["needs_future"]), (name, False))
        self.assertEqual(self.sunproxy("policies", "none").stdout, b"none: no cache at all\n")

    def test_each_says_what_it_is(self):
        listed = self.sunproxy("policies").stdout.decode()
        for p in self.policies():
            self.assertRegex(listed, rf"(?m)^{p['name']} +{re.escape(p['summary'][:20])}")
            text = self.sunproxy("policies", p["name"]).stdout.decode()
            for word in ("sizes", "cost", "source"):
                self.assertTrue(p[word], f"{p['name']}: {word}")
                self.assertRegex(text, rf"(?m)^  {word}")
            for alias in p["aliases"]:
                self.assertRegex(text, rf"(?m)^  known as .*\b{alias}\b")
                self.assertEqual(self.sunproxy("policies", alias).stdout.decode(), text)
            for parameter in p["parameters"]:
                self.assertTrue(parameter["meaning"])
                self.assertRegex(text, rf"(?m)^  {parameter['name']} ")
