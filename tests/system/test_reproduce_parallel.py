"""The study of parallelism of make reproduce, small: its contestants, claims, model and page; and the benchmark
of misses in flight."""

import json
import resource
import socket
import sys

import browser
import harness

SCRIPT = harness.TOP / "studies/reproduce.sh"
BENCH = harness.BUILD / "tests/bench"
sys.path.insert(0, str(harness.TOP / "studies"))
import reproduce_page as main_page
import reproduce_parallel as parallel
import reproduce_parallel_claims as parallel_claims
import reproduce_parallel_model as model
import reproduce_parallel_page as parallel_page
from reproduce_parallel_runs import Run, find_python


class ParallelTest(harness.SystemTest):
    seconds = 60
    needs = (harness.SUNPROXYD, harness.SUNPROXY, harness.ORIGIN, BENCH / "pool", BENCH / "table", BENCH / "load")

    def test_smoke(self):
        out = self.dir / "reproduce"
        env = {"SUNPROXY_BUILD": str(harness.BUILD), "SUNPROXY_ORIGIN": str(harness.ORIGIN)}
        done = self.run_program([SCRIPT, "--study", "parallel", "--smoke", "--out", out], seconds=500, env=env)
        text = done.stdout.decode()
        self.assertEqual(done.returncode, 0, done.stderr.decode() + text)
        data = json.loads((out / "reproduce.json").read_text())
        self.assertEqual(len(data["papers"][0]["rows"]), len(parallel_claims.CLAIMS))
        study = data["studies"]["parallel"]
        contestants = ["pool", "sunproxyd", "executor"] + (["aiohttp"] if find_python()[1] else [])
        self.assertEqual([row["contestant"] for row in study["runs"]
                          if (row["urls"], row["threads"]) == (16, 8)], contestants + ["workers"])
        for row in study["runs"]:
            self.assertEqual([run["requests"] for run in row["runs"]], [row["urls"]] * 2, row)
            self.assertTrue(all(run["cpu_seconds"] > 0 for run in row["runs"]), row)
        self.assertEqual(set(study["real_latency"]), {*contestants, "own"})
        self.assertTrue(all(len(row["per_cpu_second"]) == 2 for row in study["table"]))
        page = (out / "reproduce.html").read_text()
        self.assertEqual(page.count("<svg"), 3)
        for words in ("An extrapolation to 64 cores, not a measurement", "lognormal:1ms:0.5", "This machine has"):
            self.assertIn(words, page)
        if not find_python()[1]:
            self.assertIn("aiohttp is not installed", text)

    def test_pool(self):
        origin = harness.Origin(self)
        pool = harness.Process(self, "pool", [BENCH / "pool", "--threads", "3", "--queue", "2"], expect=-15)
        harness.wait_until(lambda: pool.out.endswith("\n"), what="the pool's port")
        base = f"http://127.0.0.1:{origin.http_port}/fault"
        with socket.create_connection(("127.0.0.1", int(pool.out)), 30) as client:
            answers = client.makefile("r")

            def ask(*urls):
                client.sendall("".join(url + "\n" for url in urls).encode())
                return sorted(answers.readline() for _ in urls)

            # More requests than threads and places in the queue.
            self.assertEqual(ask(*(f"{base}/size:{n}" for n in range(100, 120))), [f"{n}\n" for n in range(100, 120)])
            self.assertEqual(ask(f"{base}/size:100"), ["100\n"])
            self.assertEqual(ask(f"{base}/status:404"), ["error status 404\n"])
            self.assertRegex(ask("http://127.0.0.1:1/")[0], "^error .*connect")
        self.assertEqual(len(origin.requests("/fault/size:100")), 1)

    def test_misses_in_flight(self):
        """The benchmark works, with and without what it compares with."""
        done = self.run_program([harness.TOP / "tests/bench/misses.py", "--build", harness.BUILD, "--smoke", "--json",
                                 self.dir / "misses.json"], seconds=500)
        text = done.stdout.decode()
        self.assertEqual(done.returncode, 0, done.stderr.decode() + text)
        results = json.loads((self.dir / "misses.json").read_text())
        for name in ("sunproxyd, RPC", "sunproxyd, HTTP"):
            self.assertEqual(results["largest"][name], [100, None], text)
            for in_flight in ("4", "64"):
                self.assertEqual([run["errors"] for run in results["rounds"][in_flight][name]], [0])
            # Four take less than the allocator may give back meanwhile.
            self.assertIsInstance(results["bytes"][name]["4"], float)
            self.assertGreater(results["bytes"][name]["64"], 0)

    def test_more_fetches_at_once_than_descriptors_for_pairs(self):
        """1,000 fetches with 1,700 descriptors: one each, and one for every second of them."""
        origin = harness.Origin(self)
        d = harness.Daemon(self, "--max-fetches", "1000", "--max-fetches-waiting", "1000", "--max-fetches-per-client",
                           "0", "--max-fetches-per-origin", "1000", "--max-connections", "16", "--max-tunnels", "0",
                           origin=origin, preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1700, 1700)))
        done = self.run_program([BENCH / "load", "--protocol", "rpc2", "--port", str(d.port), "--bytes", "10", "--prefix",
                                 "http://origin.test/fault/size:10?fault=delay:2s&", "--fill", "--keys", "1000",
                                 "--connections", "4", "--depth", "250"], seconds=500)
        self.assertEqual(json.loads(done.stdout)["errors"], 0, done.stdout)
        self.assertNotIn("open files", d.err)


class ParallelClaimsTest(harness.SystemTest):
    """Verdicts on measurements that are made up."""

    extent = parallel.FULL._replace(repeats=2)

    def study(self, efficiencies, executor=None, real=(120, 120), table=None):
        """A study in which a fetch takes 10 ms, with these efficiencies of the pool (and executor) by threads."""
        runs = {}
        for name, line in (("pool", efficiencies), ("sunproxyd", efficiencies), ("executor", executor or efficiencies)):
            for trace in self.extent.traces:
                for threads, share in zip(self.extent.threads, line):
                    runs[name, trace, threads] = [Run(trace, trace * 0.01 / (threads * share), 0.1)] * 2
        latencies = {"pool": [Run(656, 656 / real[0], 1)] * 2, "executor": [Run(656, 656 / real[1], 1)] * 2}
        rates = {(*case, lookups, entries): [(table or {}).get(case[0] + case[1] + str(case[2]), 1e6)] * 2
                 for case in parallel.LAYOUTS + parallel.LOCKS for lookups in parallel.LOOKUPS
                 for entries in (parallel.PAPER_ENTRIES, self.extent.many_entries)}
        return parallel.Study(self.extent, ["pool", "sunproxyd", "executor"], runs, latencies, rates, None, 1e-4)

    def verdicts(self, *args, **kwargs):
        return [row.finding.holds for row in parallel_claims.assess(self.study(*args, **kwargs))]

    def test_what_the_paper_found(self):
        published = self.verdicts([1, 1.1, 1.15, 1.2, 1.25, 0.95, 0.93], [1, 1, 0.9, 0.8, 0.6, 0.3, 0.15], (128, 40),
                                  {"alignedmutex16": 1.09e6, "as-isrwlock4096": 1.1e6})
        self.assertEqual(published[:5] + published[6:], [True] * 8)

    def test_each_claim_can_fail(self):
        ideal = [1] * 7
        self.assertIs(self.verdicts(ideal)[0], False)
        self.assertIs(self.verdicts([1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4])[1], False)
        self.assertIs(self.verdicts([1, 1, 1, 1, 0.5, 0.9, 0.9])[2], False)
        self.assertIs(self.verdicts(ideal)[3], False)
        self.assertIs(self.verdicts([1, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9])[4], False)
        self.assertIs(self.verdicts([1, 1, 1, 1, 0.7, 0.6, 0.5])[5], False)
        self.assertIs(self.verdicts([1, 1, 1, 1, 0.9, 0.8, 0.7])[6], False)
        self.assertIs(self.verdicts(ideal)[7], False)
        self.assertIs(self.verdicts(ideal, table={"as-isrwlock4096": 0.9e6})[8], False)

    def test_what_holds_exactly_or_is_within_the_spread_is_undecided(self):
        self.assertIsNone(self.verdicts([1] * 7)[1])
        self.assertIsNone(self.verdicts([1] * 7)[8])
        self.assertIs(self.verdicts([1, 1, 1, 1, 0.9, 0.8, 0.7])[5], True)
        study = self.study([1] * 7)
        study.real["pool"] = [Run(656, 656 / 120, 1), Run(656, 656 / 900, 1)]
        self.assertIsNone(parallel_claims.assess(study)[0].finding.holds)

    def test_figures_are_drawn_without_aiohttp(self):
        section = parallel_page.section(self.study([1, 1, 1, 1, 0.9, 0.8, 0.7]))
        self.assertEqual(section.count("<svg"), 3)
        self.assertIn("aiohttp was not installed", section)
        self.assertNotIn("own-aiohttp", section)

    def test_tables_fit_a_window_and_are_marked_where_they_scroll(self):
        if not browser.PROGRAM:
            self.skipTest("chromium is not installed")
        page = self.dir / "page.html"
        page.write_text('<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
                        f"<style>{main_page.SHEET}</style>"
                        + parallel_page.section(self.study([1, 1, 1, 1, 0.9, 0.8, 0.7])))
        chromium = browser.Browser()
        self.addCleanup(chromium.close)
        wide = "[...document.querySelectorAll('.wide')].filter((e) => e.scrollWidth > e.clientWidth)"
        chromium.open(page, width=1280)
        self.assertEqual(chromium.run(f"{wide}.map((e) => e.textContent)"), [])
        chromium.open(page, width=390)
        self.assertEqual(chromium.run("document.documentElement.scrollWidth"), 390)
        self.assertGreater(chromium.run(f"{wide}.length"), 0)
        # The first column stays in view, and a shade shows that there is more.
        self.assertEqual(chromium.run(f"""{wide}.filter((e) => {{
            const name = e.querySelector('tbody td');
            e.scrollLeft = 100;
            return Math.abs(name.getBoundingClientRect().left - e.getBoundingClientRect().left) > 1
                || !getComputedStyle(e).backgroundAttachment.includes('local');
        }}).length"""), 0)

    def test_headings_count_in_singular_and_plural(self):
        section = parallel_page.section(self.study([1, 1, 1, 1, 0.9, 0.8, 0.7]))
        self.assertIn("<th>1 thread</th><th>2 threads</th>", section)

    def test_the_model(self):
        waits = model.demand_of("pool", 0.010, 0.001, 0.001)
        self.assertAlmostEqual(waits.delay, 0.008)
        self.assertAlmostEqual(model.throughput(waits, 1, 1), 100)
        self.assertAlmostEqual(model.throughput(waits, 1, 64), 100)
        # One core does 500 of 2 ms in a second, two do 1,000; with one more thread it is never less.
        self.assertAlmostEqual(model.limit(waits, 2), 1000)
        self.assertLess(model.throughput(waits, 64, 1), 500)
        self.assertGreater(model.throughput(waits, 64, 1), 495)
        self.assertGreater(model.throughput(waits, 64, 2), 980)
        rates = [model.throughput(waits, n, 2) for n in range(1, 65)]
        self.assertTrue(all(b > a - 1e-6 for a, b in zip(rates, rates[1:])), rates)
        # What one thread at a time does is not helped by cores.
        serial = model.demand_of("executor", 0.010, 0.001, 0.001)
        self.assertAlmostEqual(model.limit(serial, 64), 1000)
        self.assertLess(model.throughput(serial, 1024, 64), 1000.001)
