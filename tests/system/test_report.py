"""sunproxy report: the data of the page, against what simulate says; test_report_page.py has its looks."""

import html.parser
import json
import os
import random
import re
import shutil

import harness
import report_case

SHIPPED = harness.TOP / "datasets"


class DataTest(report_case.ReportCase):
    def test_figures_say_what_simulate_says(self):
        trace, sizes = SHIPPED / "dataset1/History", SHIPPED / "dataset1/sizes.tsv"
        t, = self.data(trace, "--sizes", sizes)["traces"]
        self.assertEqual((t["requests"], t["distinct_urls"]), (997, 68))
        self.check_hits(t, trace, "--sizes", sizes)
        # By default both count in bytes where sizes are known.
        self.assertEqual({r["capacity_urls"] for r in self.table(t, "hits")}, {0})
        for name, column in (("curve_urls", "capacity_urls"), ("curve_bytes", "capacity_bytes")):
            curve = self.table(t, name)
            everything = max(r[column] for r in curve)
            for r in curve:
                if r[column] == everything and r["policy"] in ("lru", "fifo", "opt"):
                    self.assertAlmostEqual(1 - r["miss_ratio"], t["infinite"]["hit_ratio"], 6)

    def check_hits(self, t, trace, *arguments):
        """The tables of hit ratios against what simulate prints with the same arguments."""
        def key(row):
            return row["policy"], row["capacity_urls"], row["capacity_bytes"]

        shown = self.sunproxy("simulate", trace, *arguments, "--json").stdout
        shown = {key(r): r for r in json.loads(shown)["traces"][0]["results"]}
        hits = self.table(t, "hits")
        self.assertEqual({key(r) for r in hits}, set(shown))
        last = {key(r): r for r in self.table(t, "runtime")}
        for r in hits:
            row = shown[key(r)]
            for column in ("hit_ratio", "byte_hit_ratio", "hit_ratio_sd", "byte_hit_ratio_sd"):
                self.assertAlmostEqual(r[column], row[column], 6, key(r))
            self.assertAlmostEqual(r["capacity_share"], row["capacity_share"], 6, key(r))
            self.assertEqual((r["evictions"], r["not_admitted"]), (row["evictions"], row["not_admitted"]))
            self.assertEqual(last[key(r)]["hits"], row["hits"], key(r))
            self.assertEqual((last[key(r)]["request"], last[key(r)]["compulsory_misses"]), (997, 68))
        return hits

    def test_capacities_that_are_asked_for(self):
        trace, sizes = SHIPPED / "dataset1/History", ("--sizes", SHIPPED / "dataset1/sizes.tsv")
        for capacity, column, expected in (("30%,7,20%,14", "capacity_urls", [7, 14, 20]),
                                           ("256K,10%B,64K", "capacity_bytes", [65536, 257381, 262144])):
            more = (*sizes, "--count-bytes", "body", "--capacity", capacity, "--policy", "lru,gdsf")
            t, = self.data(trace, *more, "--points", "3")["traces"]
            hits = self.check_hits(t, trace, *more)
            self.assertEqual([r[column] for r in hits if r["policy"] == "lru"], expected)
        for capacity, what in (("7,64K", "in bytes or in URLs"), ("0", "above 0"), ("10%,0", "above 0")):
            done = self.sunproxy("report", trace, *sizes, "--capacity", capacity, "-o", self.dir / "r.html", expect=64)
            self.assertIn(what, done.stderr.decode())
        done = self.sunproxy("report", trace, "--capacity", "64K", "-o", self.dir / "r.html", expect=64)
        self.assertIn("needs sizes", done.stderr.decode())

    def test_large_pages(self):
        # One page is asked for in every tenth request and has most of the bytes; others are small.
        urls = [f"http://h/{n % 50}\t1000" if n % 10 else "http://h/large\t40000" for n in range(500)]
        t, = self.data(self.trace(urls), "--policy", "lru", "--points", "20", "--count-bytes", "body")["traces"]
        saved = 49 * 40000 / (50 * 40000 + 450 * 1000)
        self.assertEqual(self.table(t, "large_pages"), [
            {"url": "http://h/large", "bytes": 40000, "requests": 50, "share_of_requests": 0.1,
             "share_of_bytes_saved": round(saved, 6)}])
        # What a server would charge for it counts where whole pages do: the default.
        t, = self.data(self.trace(urls), "--policy", "lru", "--points", "2")["traces"]
        self.assertGreater(self.table(t, "large_pages")[0]["bytes"], 40300)
        # There is none where pages are alike, or each is asked for once.
        for urls in ([f"http://h/{n % 400}\t{1000 + n % 7}" for n in range(2000)],
                     [f"http://h/{n}\t{n * n}" for n in range(50)]):
            t, = self.data(self.trace(urls), "--policy", "lru", "--points", "2")["traces"]
            self.assertEqual(self.table(t, "large_pages"), [])

    def timed(self, seconds, name="timed.csv"):
        path = self.dir / name
        path.write_text("time,url\n" + "".join(f"{1700000000 + s},http://h/{n % 9}\n" for n, s in enumerate(seconds)))
        return path

    def test_times_of_requests(self):
        t, = self.data(self.timed(range(0, 6000, 10)), "--policy", "lru", "--points", "2")["traces"]
        for name in ("frontier", "runtime"):
            rows = self.table(t, name)
            self.assertEqual([r["time_us"] for r in rows],
                             [(1700000000 + 10 * (r["request"] - 1)) * 1000000 for r in rows], name)
        # A log is written when answers end, and so a little out of order; one of two parts is not in order.
        for seconds, known in (([n * 10 - 15 * (n % 7 == 3) for n in range(600)], True),
                               ([*range(3000, 6000, 10), *range(0, 3000, 10)], False)):
            t, = self.data(self.timed(seconds), "--policy", "lru", "--points", "2")["traces"]
            for name in ("frontier", "runtime"):
                self.assertEqual({r["time_us"] is not None for r in self.table(t, name)}, {known})

    def test_windows_are_not_of_a_few_requests(self):
        for requests, windows in ((5, 1), (48, 4), (600, 60), (3000, 60)):
            t, = self.data(self.trace([f"http://h/{n % 3}" for n in range(requests)]), "--policy", "lru",
                           "--capacity", "2", "--points", "2")["traces"]
            rows = self.table(t, "runtime")
            self.assertEqual((len(rows), rows[-1]["request"]), (windows, requests))
            # The mean of the windows, by their requests, is that of the trace.
            ends = [0, *(r["request"] for r in rows)]
            hits = sum((b - a) * r["window_hit_ratio"] for a, b, r in zip(ends, ends[1:], rows))
            self.assertAlmostEqual(hits, rows[-1]["hits"], delta=0.01)

    def test_no_policy_is_better_than_the_bound(self):
        trace, sizes = SHIPPED / "dataset1/History", SHIPPED / "dataset1/sizes.tsv"
        t, = self.data(trace, "--sizes", sizes, "--policy", "all", "--points", "12")["traces"]
        bound = {r["capacity_bytes"]: r for r in self.table(t, "bound_bytes")}
        curve = self.table(t, "curve_bytes")
        self.assertEqual(sorted(bound), sorted({r["capacity_bytes"] for r in curve}))
        for r in curve:
            for column in ("miss_ratio", "byte_miss_ratio"):
                self.assertGreaterEqual(r[column], bound[r["capacity_bytes"]][column] - 2e-6, r)
        last = bound[max(bound)]
        self.assertAlmostEqual(1 - last["miss_ratio"], t["infinite"]["hit_ratio"], 6)
        # Of a sample there is none.
        t, = self.data(trace, "--sizes", sizes, "--policy", "lru", "--points", "5", "--sample", "50%")["traces"]
        self.assertNotIn("bound_bytes", t["tables"])

    def test_the_trace_itself(self):
        t, = self.data(self.trace([f"http://h/{u}\t{len(u)}00" for u in
                                   ["a", "bb", "a", "ccc", "a", "bb"]]))["traces"]
        self.assertEqual([r["url_number"] for r in self.table(t, "pattern")], [1, 2, 1, 3, 1, 2])
        self.assertEqual([r["urls_seen"] for r in self.table(t, "frontier")], [1, 2, 2, 3, 3, 3])
        self.assertEqual([(r["url"], r["requests"]) for r in self.table(t, "busiest")],
                         [("http://h/a", 3), ("http://h/bb", 2), ("http://h/ccc", 1)])
        self.assertEqual([r["share_of_this_and_busier"] for r in self.table(t, "popularity")],
                         [0.5, round(5 / 6, 8), 1])
        by_size = {r["bytes"]: r for r in self.table(t, "sizes")}
        self.assertAlmostEqual(by_size[100]["share_of_requests"], 0.5, 5)
        self.assertAlmostEqual(by_size[100]["share_of_urls"], 1 / 3, 5)
        self.assertAlmostEqual(by_size[100]["share_of_bytes_requested"], 0.3, 5)
        self.assertEqual(by_size[300]["share_of_requests"], 1)
        self.assertEqual(self.table(t, "popular"), [
            {"urls": 3, "urls_requested_once": 1, "busiest_tenth": 1,
             "requests_for_busiest_tenth": 3}])

    def test_the_busiest_tenth(self):
        # 57 URLs, of which URL n is asked for n times: a tenth are 6.
        urls = [f"http://h/{n}" for n in range(1, 58) for _ in range(n)]
        t, = self.data(self.trace(urls), "--policy", "lru", "--points", "2")["traces"]
        self.assertEqual(self.table(t, "popular"), [
            {"urls": 57, "urls_requested_once": 1, "busiest_tenth": 6,
             "requests_for_busiest_tenth": sum(range(52, 58))}])

    def test_beladys_own_example(self):
        # Belady, Nelson, Shedler 1969: FIFO hits 3 with capacity 3, and 2 with capacity 4.
        t, = self.data(self.trace([f"http://h/{n}" for n in "123412512345"]))["traces"]
        fifo = {r["capacity_urls"]: r for r in self.table(t, "anomaly") if r["policy"] == "fifo"}
        self.assertEqual((fifo[3]["hits"], fifo[4]["hits"]), (3, 2))
        self.assertEqual((fifo[3]["lost_to_a_smaller_cache"], fifo[4]["lost_to_a_smaller_cache"]),
                         (0, 1))
        self.assertNotIn("curve_bytes", t["tables"])

    def test_the_anomaly_of_rand_is_claimed_only_beyond_its_spread(self):
        # Few URLs return: a size has hardly more hits than the one before, and RAND's chance decides.
        dice = random.Random(5)
        trace = self.trace([f"http://h/{dice.randrange(110)}" for _ in range(200)])
        for seeds, claimed in (("1", True), ("5", False)):
            t, = self.data(trace, "--policy", "lru", "--points", "2", "--seeds", seeds)["traces"]
            rand = [r for r in self.table(t, "anomaly") if r["policy"] == "rand"]
            self.assertEqual({r["seeds"] for r in rand}, {int(seeds)})
            self.assertEqual(any(r["hits_sd"] > 0 for r in rand), seeds == "5")
            self.assertEqual(any(r["lost_to_a_smaller_cache"] for r in rand), claimed)

    def test_many_requests_are_counted_in_cells(self):
        urls = [f"http://h/{n * n % 4999}" for n in range(20000)]
        t, = self.data(self.trace(urls), "--policy", "lru", "--points", "5")["traces"]
        cells = self.table(t, "pattern")
        self.assertLess(len(cells), 20000)
        self.assertEqual(sum(c["requests"] for c in cells), 20000)
        self.assertEqual((min(c["request"] for c in cells), max(c["request_to"] for c in cells)),
                         (1, 20000))
        self.assertEqual(max(c["url_number_to"] for c in cells), t["distinct_urls"])
        self.assertNotIn("shares", t["tables"])
        self.assertLess(len(self.table(t, "popularity")), 400)

    def test_a_sample_tells_of_the_whole_trace(self):
        urls = [f"http://h/{n * n % 4999}\t{n % 7}" for n in range(20000)]
        t, = self.data(self.trace(urls), "--policy", "lru,fifo", "--points", "5", "--sample", "20%",
                       "--seed", "3", "--warmup", "10%", "--capacity", "1%,2%,5%,10%,20%,50%")["traces"]
        whole, = self.data(self.trace(urls), "--policy", "lru,fifo", "--points", "5", "--warmup",
                           "10%", "--capacity", "1%,2%,5%,10%,20%,50%")["traces"]
        self.assertTrue(0.1 < t["sample"] < 0.4)
        exact = {(r["policy"], r["capacity_urls"]): r for r in self.table(whole, "hits")}
        for r in self.table(t, "hits"):
            true = exact[r["policy"], r["capacity_urls"]]
            for column in ("hit_ratio", "byte_hit_ratio"):
                self.assertEqual(true[column + "_error"], None)
                if r[column + "_error"] is not None:
                    self.assertLess(abs(r[column] - true[column]), 5 * r[column + "_error"] + 0.01)
            self.assertTrue(0.8 < (r["evictions"] + 100) / (true["evictions"] + 100) < 1.2, r)
        # Requests, hits, misses and compulsory misses are the whole trace's, by estimate.
        shown, true = self.table(t, "runtime"), self.table(whole, "runtime")
        self.assertEqual([r["request"] for r in shown], [r["request"] for r in true])
        for r, e in zip(shown, true):
            self.assertEqual(r["hits"] + r["misses"], r["request"])
            self.assertLessEqual(r["compulsory_misses"], r["misses"])
            if r["request"] == 20000:
                self.assertEqual(r["compulsory_misses"], t["distinct_urls"])
                self.assertLess(abs(r["misses"] - e["misses"]), 1000, r)
        self.assertLess(abs(max(r["first_victim_at_request"] or 0 for r in self.table(t, "hits"))
                            - max(r["first_victim_at_request"] or 0
                                  for r in self.table(whole, "hits"))), 2000)
        # The anomaly is the sample's own.
        self.assertEqual(max(r["capacity_urls"] for r in self.table(t, "anomaly")), t["sample_urls"])
        for name in ("curve_urls", "curve_bytes"):
            rows = self.table(t, name)
            self.assertIn("byte_miss_ratio_error", rows[0])
            for r in rows:
                self.assertEqual(None in (r["miss_ratio_error"], r["byte_miss_ratio_error"]),
                                 r["error_unknown"] is not None, r)
        self.assertTrue(any(r["miss_ratio_error"] for r in self.table(t, "curve_urls")))

    def test_nothing_in_a_url_becomes_part_of_the_page(self):
        evil = "http://h/</script><script>alert(1)</script><!--"
        page = self.report(self.trace([evil, "http://h/&amp;'\"", evil]), "--title", "<b>&</b>")
        text = page.read_text()
        self.assertNotIn("<script>alert", text)
        self.assertIn("<title>&lt;b&gt;&amp;&lt;/b&gt;</title>", text)

        class Scripts(html.parser.HTMLParser):
            count = 0

            def handle_starttag(self, tag, attrs):
                self.count += tag == "script"

        parser = Scripts()
        parser.feed(text)
        self.assertEqual(parser.count, 8)
        data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
        self.assertIn("</script>", self.table(data["traces"][0], "busiest")[0]["url"])

    def test_nothing_is_loaded_from_elsewhere(self):
        text = self.report(SHIPPED / "dataset1/History").read_text()
        self.assertIn("default-src 'none'", text)
        self.assertIsNone(re.search(r"<(script|link|img|iframe)[^>]* (src|href)=", text))

    def live(self, trace, policy, capacity, requests, name="live.json"):
        path = self.dir / name
        path.write_text(json.dumps({
            "trace": str(trace), "requests": requests, "policy": policy, "capacity_urls": capacity,
            "capacity_bytes": 0, "mean": {"mean_us": 1500.0, "hit_ratio": 0.5}}))
        return path

    def test_replays_are_shown_with_their_trace(self):
        one = self.trace(["http://h/a", "http://h/a"], "one")
        two = self.trace(["http://h/a", "http://h/b", "http://h/a"], "two")
        live = self.live(two, "lru", 2, 3)
        first, second = self.data("--separate", one, two, "--live", live)["traces"]
        self.assertNotIn("live", first["tables"])
        self.assertEqual(self.table(second, "live"),
                         [{"policy": "lru", "capacity_urls": 2, "capacity_bytes": 0,
                           "share_of_urls": 1, "mean_ms": 1.5, "hit_ratio": 0.5,
                           "byte_hit_ratio": None}])
        # A replay of no trace here is reported, with one trace and with several.
        other = self.live("elsewhere/three", "lru", 2, 5, "other.json")
        for traces in ([one], [one, two]):
            done = self.sunproxy("report", "--separate", *traces, "--live", other, "--live", live, "-o",
                                 self.dir / "r.html")
            said = done.stderr.decode()
            self.assertIn("other.json: ignored: a replay of 'elsewhere/three' with 5 requests, which is "
                          "none of these traces", said)
            self.assertEqual("live.json: ignored" in said, traces == [one])

    def test_what_the_page_is_made_of_makes_the_program_anew(self):
        for variant in ("release", "debug", "asan", "tsan"):
            rules = self.run_program(["make", "-pnq", f"VARIANT={variant}", "-C", harness.TOP,
                                      "help"]).stdout.decode()
            needs = " ".join(re.findall(rf"(?m)^build/{variant}/study/report/report_page\.o:(.*)$", rules))
            self.assertIn("study/report/page/colours.css", needs, variant)

    def test_without_the_libraries_it_says_how_to_get_them(self):
        trace = self.trace(["http://h/a"])
        page = self.dir / "r.html"
        for arguments, env in ((["--plot-dir", self.dir], {}), ([], {"SUNPROXY_PLOT_DIR": str(self.dir)})):
            done = self.sunproxy("report", *arguments, trace, "-o", page, env={**os.environ, **env}, expect=69)
            self.assertIn(f"{self.dir}/d3.min.js: No such file or directory", done.stderr.decode())
            self.assertIn("make setup", done.stderr.decode())
        self.assertFalse(page.exists())
        # A program that is neither installed nor in the tree that it was built in.
        alone = self.dir / "bin/sunproxy"
        alone.parent.mkdir()
        shutil.copy(harness.SUNPROXY, alone)
        done = self.run_program([alone, "report", trace, "-o", page])
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("d3.min.js and plot.umd.min.js, are not here", done.stderr.decode())
        self.assertIn("--plot-dir", done.stderr.decode())
        # And installed.
        share = self.dir / "share/sunproxy"
        share.mkdir(parents=True)
        (share / "d3.min.js").write_text("/* of the installed folder */")
        (share / "plot.umd.min.js").write_text("")
        done = self.run_program([alone, "report", trace, "-o", page])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("<script>/* of the installed folder */", page.read_text().replace(">\n", ">"))

    def test_several_traces_with_sizes_of_their_own(self):
        one, two = self.trace(["http://h/a"], "one"), self.trace(["http://h/a"], "two")
        small, large = self.trace(["http://h/a\t5"], "small"), self.trace(["http://h/a\t7"], "large")
        traces = self.data("--separate", one, two, "--sizes", small, "--sizes", large)["traces"]
        self.assertEqual([t["distinct_bytes"] for t in traces], [5, 7])
        traces = self.data("--separate", one, two, "--sizes", large)["traces"]
        self.assertEqual([t["distinct_bytes"] for t in traces], [7, 7])

    def test_trouble(self):
        trace = self.trace(["http://h/a"])

        def complaint(expect, *arguments):
            done = self.sunproxy("report", *arguments, expect=expect)
            return done.stderr.decode()

        complaint(64)
        complaint(64, trace, "--points", "1")
        complaint(64, trace, "--policy", "lrv")
        self.assertIn("the byte hit ratio needs sizes", complaint(64, trace, "--by-bytes"))
        self.assertIn("--ignore-sizes", complaint(64, self.trace(["http://h/a\t5"], "sized"),
                                                  "--by-bytes", "--ignore-sizes"))
        complaint(64, trace, trace, trace, "--sizes", trace, "--sizes", trace)
        self.assertIn("with --separate", complaint(64, trace, trace, "--sizes", trace, "--sizes", trace))
        complaint(66, self.dir / "none", "-o", self.dir / "r.html")
        self.assertFalse((self.dir / "r.html").exists())
        complaint(73, trace, "-o", self.dir / "no/r.html")
        # A file may not grow: what was there stays, and nothing beside it.
        (self.dir / "out").mkdir()
        page = self.dir / "out" / "r.html"
        page.write_text("before")
        page.chmod(0o640)
        argv = f"ulimit -f 0; trap '' XFSZ; exec {harness.SUNPROXY} report {trace} -o {page}"
        done = self.run_program(["sh", "-c", argv])
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertEqual((page.read_text(), os.listdir(page.parent)), ("before", ["r.html"]))
        complaint(0, trace, "-o", page)
        self.assertEqual((page.stat().st_mode & 0o777, os.listdir(page.parent)), (0o640, ["r.html"]))
        complaint(66, trace, "--live", self.dir / "none")
        self.assertIn("--json", complaint(65, trace, "--live", trace))
        complaint(66, self.dir / "none", self.dir / "nor this", "-o", page)
        self.assertNotEqual(page.read_text().find("http://h/a"), -1)
        data = self.data("--separate", trace, self.dir / "none", expect=66)
        self.assertEqual(len(data["traces"]), 1)
