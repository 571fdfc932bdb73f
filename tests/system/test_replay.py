"""sunproxy replay, stat, set and purge against the real daemon."""

import csv
import json
import re
import signal
import subprocess
import unittest

import harness
import rpc
from test_paper import FOLDER, HITS, authors_log

TRACE = FOLDER / "dataset1-urls.txt"
CHROME = harness.DATASETS / "chrome"


class ReplayCase(harness.SystemTest):
    needs = (harness.ORIGIN, harness.SUNPROXYD, harness.SUNPROXY)

    def setUp(self):
        super().setUp()
        self.o = self.origin("--size-min", "100", "--size-max", "3000")
        self.d = self.daemon("--freshness", "off", origin=self.o)

    def replay(self, *arguments, **more):
        more.setdefault("daemon", self.d)
        return self.sunproxy("replay", *arguments, **more)

    def summary(self, *arguments, **more):
        return json.loads(self.replay("--json", *arguments, **more).stdout)

    def trace(self, *urls):
        path = self.dir / "trace.txt"
        path.write_text("".join(f"{u}\n" for u in urls))
        return path


class CoalescedTest(harness.SystemTest):
    needs = (harness.ORIGIN, harness.SUNPROXYD, harness.SUNPROXY)

    def test_coalesced_requests_are_hits_where_requests_come_one_by_one(self):
        daemon = self.daemon("--freshness", "off", origin=self.origin("--latency", "0.5"))
        trace = self.dir / "trace.txt"
        trace.write_text("http://h/a\n" * 8)
        live = json.loads(self.sunproxy("replay", "--json", "-j", "8", trace,
                                        daemon=daemon).stdout)
        run, = live["runs"]
        self.assertGreater(run["coalesced"], 0)
        self.assertEqual(run["hits"] + run["coalesced"], 7)
        simulated = json.loads(self.sunproxy("simulate", "--json", "--policy", "lru",
                                             "--capacity", "8", trace).stdout)
        result, = simulated["traces"][0]["results"]
        for figures in (run, live["mean"]):
            for name in ("hit_ratio_with_coalesced", "byte_hit_ratio_with_coalesced"):
                self.assertEqual(figures[name], result["hit_ratio"], name)
            self.assertEqual(figures["hit_ratio"], run["hits"] / 8)
            self.assertLess(figures["byte_hit_ratio"], result["hit_ratio"])
        stat = json.loads(self.sunproxy("stat", "--json", daemon=daemon).stdout)
        self.assertEqual(stat["hit_ratio_with_coalesced"], result["hit_ratio"])
        self.assertEqual(stat["hit_ratio"], run["hits"] / 8)
        # The comparable ratio is first.
        for text in (self.sunproxy("stat", daemon=daemon).stdout.decode(),
                     self.sunproxy("replay", trace, daemon=daemon).stdout.decode()):
            self.assertRegex(text, r"\nhit ratio, with coalesced +[\d.]+ %\n"
                                   r"hit ratio, hits alone +[\d.]+ %\n")


@unittest.skipUnless(FOLDER.exists(), f"{FOLDER} is not here")
class PaperReplayTest(ReplayCase):
    seconds = 10

    def log_rows(self, path):
        lines = path.read_text().splitlines()
        names = lines[0].split("\t")
        return [dict(zip(names, line.split("\t"))) for line in lines[1:]]

    def test_lru_of_capacity_seven_line_by_line(self):
        log = self.dir / "replay.log"
        self.replay(TRACE, "--policy", "lru", "--capacity", "7", "--log", log)
        rows = self.log_rows(log)
        expected = authors_log()
        self.assertEqual(len(rows), len(expected))
        words = {"new": "miss", "hit": "hit", "evicted": "evicted"}
        for row, (outcome, url, victim) in zip(rows, expected):
            self.assertEqual((row["outcome"], row["url"], row["victim"]),
                             (words[outcome], url, victim or ""), f"request {row['number']}")

    def test_over_tcp_it_is_the_same(self):
        outcome = {}
        for via in ("tcp", "unix"):
            log = self.dir / f"{via}.log"
            self.sunproxy("replay", TRACE, "--policy", "lfu", "--capacity", "14", "--via", via,
                          "--socket", self.d.socket, "--host", "127.0.0.1", "--port", self.d.port,
                          "--log", log)
            outcome[via] = [(r["number"], r["url"], r["outcome"]) for r in self.log_rows(log)]
        self.assertEqual(outcome["tcp"], outcome["unix"])
        self.assertEqual(sum(r[2] == "hit" for r in outcome["tcp"]), HITS[14]["lfu"])

    def test_summaries(self):
        for entries, policy in ((7, "fifo"), (21, "lru"), (35, "lfu")):
            s = self.summary(TRACE, "--policy", policy, "--capacity", entries)
            self.assertEqual((s["requests"], s["distinct_urls"], s["policy"]), (997, 68, policy))
            run = s["runs"][0]
            self.assertEqual(run["hits"], HITS[entries][policy])
            self.assertEqual(run["outcomes"]["hit"] + run["outcomes"]["miss"]
                             + run["outcomes"]["evicted"], 997)
            self.assertEqual(run["failures"], 0)

    def test_by_share_of_the_distinct_urls(self):
        s = self.summary(TRACE, "--policy", "lru", "--capacity", "10%")
        self.assertEqual((s["capacity_urls"], s["runs"][0]["hits"]), (7, HITS[7]["lru"]))

    def test_repeated(self):
        s = self.summary(TRACE, "--policy", "rand", "--capacity", "7", "--repeat", "3")
        self.assertEqual([r["requests"] for r in s["runs"]], [997] * 3)

    def test_part_of_it(self):
        s = self.summary(TRACE, "--policy", "lru", "--capacity", "7", "--limit", "100")
        self.assertEqual(s["requests"], 100)
        s = self.summary(TRACE, "--policy", "lru", "--capacity", "100", "--unique")
        self.assertEqual((s["requests"], s["runs"][0]["hits"]), (68, 0))


class ManyClientsTest(ReplayCase):
    threads = True

    def test_as_many_answers_as_requests(self):
        trace = self.trace(*[f"http://h{n % 7}.test/{n * n % 50}" for n in range(1000)])
        distinct = len(set(trace.read_text().split()))
        s = self.summary(trace, "--policy", "lru", "--capacity", "1000", "-j", "8")
        run = s["runs"][0]
        self.assertEqual((run["requests"], run["failures"], run["evictions"]), (1000, 0, 0))
        self.assertEqual(run["outcomes"]["miss"], distinct)
        self.assertEqual(run["hits"] + run["outcomes"]["coalesced"], 1000 - distinct)
        self.assertEqual(len(self.o.requests()), distinct)

    def test_a_small_cache_that_all_fight_for(self):
        trace = self.trace(*[f"http://h{n % 7}.test/{n * n % 50}" for n in range(1000)])
        for policy in ("lru", "lfu", "fifo", "rand", "maxs"):
            s = self.summary(trace, "--policy", policy, "--capacity", "5", "-j", "8", "--keep")
            run = s["runs"][0]
            self.assertEqual((run["requests"], run["failures"]), (1000, 0), policy)
            self.assertEqual(sum(run["outcomes"].values()), 1000)
            self.assertEqual(self.stat(self.d)["pages"], 5)


@unittest.skipUnless(CHROME.exists(), f"{CHROME} is not here")
class ChromeTest(ReplayCase):
    def test_a_history(self):
        path = CHROME / "hindsight-60-History"
        before = path.read_bytes()
        s = self.summary(path, "--policy", "lru", "--capacity", "1000")
        self.assertEqual((s["requests"], s["distinct_urls"]), (61, 30))
        self.assertEqual(s["runs"][0]["hits"], 31)
        s = self.summary(path, "--policy", "lru", "--capacity", "1000", "--base-urls")
        self.assertEqual((s["requests"], s["distinct_urls"]), (61, 6))
        self.assertEqual(path.read_bytes(), before)

    def test_a_span_of_time(self):
        path = CHROME / "browserexport-chrome.sqlite"
        whole = self.summary(path, "--cold", expect=None)["requests"]
        early = self.summary(path, "--cold", "--until", "2021-03-01", expect=None)["requests"]
        late = self.summary(path, "--cold", "--since", "2021-03-01", expect=None)["requests"]
        self.assertEqual((whole, early + late), (6, 6))
        self.assertGreater(early, 0)
        self.assertGreater(late, 0)


class ShippedTest(harness.SystemTest):
    """The traces that ship, with bodies of the sizes that ship with them."""

    needs = (harness.ORIGIN, harness.SUNPROXYD, harness.SUNPROXY)
    folder = harness.TOP / "datasets"

    def replay(self, trace, sizes=None):
        o = self.origin(*(["--sizes", sizes] if sizes else ["--size-max", "3000"]))
        d = self.daemon(origin=o)
        log = self.dir / "log.jsonl"
        s = json.loads(self.sunproxy("replay", trace, "--policy", "lru", "--capacity", "1000000",
                                     "--limit", "500", "--json", "--log", log, daemon=d).stdout)
        run = s["runs"][0]
        self.assertEqual((run["failures"], run["requests"]), (0, s["requests"]))
        self.assertEqual(run["outcomes"]["miss"], s["distinct_urls"])
        return [json.loads(line) for line in log.read_text().splitlines()]

    def history(self, name):
        sizes = self.folder / name / "sizes.tsv"
        table = dict(line.split("\t") for line in sizes.read_text().splitlines())
        rows = self.replay(self.folder / name / "History", sizes)
        self.assertGreater(len(rows), 100)
        known = [row for row in rows if row["url"] in table]
        self.assertGreater(len(known), 100)
        for row in known:
            self.assertEqual(row["bytes"], int(table[row["url"]]), row["url"])

    def test_dataset1(self):
        self.history("dataset1")

    def test_dataset2(self):
        self.history("dataset2")

    def test_lists(self):
        self.assertGreater(len(self.replay(self.folder / "thrift/repeated.urls")), 10)


class ReplayStatusTest(ReplayCase):
    def status(self, *arguments, **more):
        done = self.replay(*arguments, expect=None, **more)
        if done.returncode:
            self.assertGreater(len(done.stderr), 10)
        return done.returncode

    def test_usage(self):
        good = self.trace("http://a.test/")
        for arguments in ([], ["--no-such"], [good, "--capacity", "x"], [good, "-j", "0"],
                          [good, "--repeat", "0"], [good, good], [good, "--since", "once"],
                          [good, "--policy", "nosuch"], [good, "--log-format", "xml"]):
            self.assertEqual(self.status(*arguments), 64, arguments)

    def test_traces_that_are_none(self):
        self.assertEqual(self.status(self.dir / "none"), 66)
        path = self.dir / "noise"
        path.write_bytes(bytes(range(256)) * 100)
        self.assertEqual(self.status(path), 65)
        path.write_bytes(b"")
        self.assertEqual(self.status(path), 65)
        path.write_bytes(b"SQLite format 3\0" + bytes(2000))
        self.assertEqual(self.status(path), 65)
        self.assertEqual(self.status(self.dir), 66)
        self.assertEqual(self.o.requests(), [])

    def test_no_server(self):
        trace = self.trace("http://a.test/")
        self.assertEqual(self.status(trace, "--port", harness.free_port(), daemon=None), 69)

    def test_not_for_this_caller(self):
        trace = self.trace("http://a.test/")
        self.assertEqual(self.status(trace, "--policy", "lru", "--capacity", "5", "--host",
                                     "127.0.0.1", "--port", self.d.port, daemon=None), 77)
        self.assertEqual(self.o.requests(), [])

    def test_single_failures_do_not_end_it(self):
        trace = self.trace("http://a.test/1", "http://a.test/fault/short", "http://a.test/1",
                           "http://a.test/fault/status:500", "http://10.0.0.1:81/")
        log = self.dir / "log.jsonl"
        s = self.summary(trace, "--cold", "--log", log)
        self.assertEqual((s["runs"][0]["failures"], s["runs"][0]["hits"]), (2, 1))
        rows = [json.loads(line) for line in log.read_text().splitlines()]
        self.assertEqual([r["outcome"] for r in rows],
                         ["miss", "failed", "hit", "uncached", "failed"])

    def test_why_requests_failed_is_told_once(self):
        trace = self.trace("http://a.test/1", "http://10.0.0.1:81/", "http://10.0.0.2:81/")
        output = self.replay(trace, "--cold").stderr.decode()
        self.assertIn("2 of 3 requests failed", output)
        self.assertIn("http://10.0.0.1:81/: the proxy may not fetch from this address", output)
        self.assertEqual(len(output.splitlines()), 1)
        self.assertEqual(self.replay(self.trace("http://a.test/1")).stderr, b"")

    def test_logs_that_cannot_be(self):
        trace = self.trace("http://a.test/1")
        self.assertEqual(self.status(trace, "--log", self.dir / "none/log"), 73)
        self.assertEqual(self.status(trace, "--log", "/dev/full"), 74)
        self.assertEqual(self.status(trace, "--log", "-"), 64)

    def begin(self, *arguments):
        trace = self.trace(*[f"http://a.test/{n}?fault=delay:30ms" for n in range(2000)])
        p = subprocess.Popen(
            [str(a) for a in (harness.SUNPROXY, "replay", "--socket", self.d.socket, trace,
                              *arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=harness.sanitizer_environment(self.dir / "sanitizer.replay"))
        with rpc.Connection(self.d.socket) as c:
            harness.wait_until(lambda: c.stat().misses > 3, what="the replay")
        return p

    def test_interrupted_it_sums_up(self):
        p = self.begin("--json")
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=300)
        self.assertEqual(p.returncode, 130, err)
        s = json.loads(out)
        self.assertTrue(s["interrupted"])
        self.assertGreater(s["runs"][0]["requests"], 2)

    def test_every_request_failed(self):
        trace = self.trace("http://10.0.0.1:81/", "http://10.0.0.2:81/", "http://10.0.0.1:81/")
        done = self.replay(trace, "--repeat", "2", expect=77)
        self.assertNotRegex(done.stdout, rb"mean,|p50|ratio")
        self.assertRegex(done.stdout, rb"(?m)^failures +3\.0")
        self.assertIn(b"3 of 3 requests failed", done.stderr)
        s = self.summary(trace, expect=77)
        for part in (s["runs"][0], s["mean"], s["standard_deviation"]):
            for name in ("hit_ratio", "byte_hit_ratio", "mean_us", "p50_us", "p90_us", "p99_us"):
                self.assertIsNone(part[name], name)
        self.assertEqual((s["runs"][0]["failures"], s["runs"][0]["max_us"]), (3, None))
        self.assertEqual(self.summary(self.trace("http://h.test/fault/short"), expect=76)["requests"], 1)

    def test_the_server_goes(self):
        p = self.begin()
        self.d.kill()
        out, err = p.communicate(timeout=300)
        self.assertEqual(p.returncode, 69, err)


class OpenLoopTest(ReplayCase):
    """Requests leave on a schedule, whether or not earlier ones were answered."""

    seconds = 9
    threads = True

    def run_of(self, trace, *arguments, **more):
        s = self.summary(trace, *arguments, **more)
        return s, s["runs"][0]

    def test_requests_do_not_wait_for_answers(self):
        trace = self.trace(*[f"http://h{n}.test/?fault=delay:3s" for n in range(40)])
        p = subprocess.Popen(
            [str(a) for a in (harness.SUNPROXY, "replay", "--socket", self.d.socket, trace,
                              "--open-loop", "100", "--json")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=harness.sanitizer_environment(self.dir / "sanitizer.open"))
        # All have left over one connection before the first one is answered.
        with rpc.Connection(self.d.socket) as c:
            harness.wait_until(lambda: c.stat().fetches_active + c.stat().fetches_queued == 40,
                               what="40 fetches under way")
        out, err = p.communicate(timeout=300)
        self.assertEqual(p.returncode, 0, err)
        s = json.loads(out)
        run = s["runs"][0]
        self.assertEqual((s["open_loop"], run["requests"], run["outcomes"]["miss"]), (100, 40, 40))
        self.assertGreaterEqual(run["p50_us"], 3000000)

    def test_it_is_not_faster_than_its_schedule(self):
        trace = self.trace(*[f"http://a.test/{n % 3}" for n in range(60)])
        for jobs in ("1", "4"):
            _, run = self.run_of(trace, "--open-loop", "150", "-j", jobs)
            self.assertEqual((run["requests"], run["failures"]), (60, 0))
            self.assertGreaterEqual(run["total_us"], 59 * 1000000 // 150)
            self.assertGreater(run["sent_per_second"], 0)
            self.assertLessEqual(run["late"], 60)
            # The first may leave late and the last in time, no more.
            shortest = 59 / 150 - run["max_behind_us"] / 1e6
            self.assertLessEqual(59 / run["sent_per_second"], 59 / 150 + run["max_behind_us"] / 1e6 + .001)
            self.assertGreaterEqual(59 / run["sent_per_second"], shortest - .001)

    def test_response_times_begin_at_the_scheduled_time(self):
        # The server takes one request after the other, 100 ms each, though 20 ms lie between them.
        d = self.daemon("--max-requests", "1", origin=self.o)
        trace = self.trace(*[f"http://h.test/{n}?fault=delay:100ms" for n in range(20)])
        _, run = self.run_of(trace, "--open-loop", "50", daemon=d)
        self.assertEqual(run["outcomes"]["miss"], 20)
        self.assertGreaterEqual(run["max_us"], 20 * 100000 - 19 * 20000)

    def test_closed_loops_have_no_schedule(self):
        s, run = self.run_of(self.trace("http://a.test/"))
        self.assertIsNone(s["open_loop"])
        self.assertNotIn("late", run)

    def test_what_people_read(self):
        trace = self.trace(*[f"http://a.test/{n % 3}" for n in range(20)])
        out = self.replay(trace, "--open-loop", "200.5", "--repeat", "2").stdout.decode()
        self.assertIn("open loop: 200.5 requests/s", out)
        for label in ("sent/s", "sent late", "most behind schedule"):
            self.assertRegex(out, rf"(?m)^{label} +[0-9]")
        for rate in ("0", "-1", "fast", "1000001", ""):
            self.replay(trace, "--open-loop", rate, expect=64)

    def test_failures_and_ends(self):
        bad = [f"http://10.0.0.{n}:81/" for n in range(1, 9)]
        _, run = self.run_of(self.trace("http://a.test/", *bad), "--open-loop", "100", "-j", "2")
        self.assertEqual((run["requests"], run["failures"]), (9, 8))
        trace = self.trace(*[f"http://a.test/{n}?fault=delay:5s" for n in range(1000)])
        for end, status in ((lambda p: p.send_signal(signal.SIGINT), 130), (lambda p: self.d.kill(), 69)):
            p = subprocess.Popen(
                [str(a) for a in (harness.SUNPROXY, "replay", "--socket", self.d.socket, trace,
                                  "--open-loop", "200", "-j", "3")],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=harness.sanitizer_environment(self.dir / f"sanitizer.end{status}"))
            with rpc.Connection(self.d.socket) as c:
                harness.wait_until(lambda: c.stat().fetches_active > 3, what="fetches")
            end(p)
            _, err = p.communicate(timeout=300)
            self.assertEqual(p.returncode, status, err)


class RestoreTest(ReplayCase):
    """What a replay changes of a live server is restored at the end."""

    BEFORE = ("slru", 50, 1 << 20, 3)

    def setUp(self):
        super().setUp()
        self.sunproxy("set", "--policy", "slru", "--capacity-urls", "50", "--capacity-bytes", "1M",
                      "--shards", "3", daemon=self.d)
        self.changed = ["--policy", "fifo", "--capacity", "7"]

    def state(self):
        s = self.stat(self.d)
        return s["policy"].split(":")[0], s["capacity_urls"], s["capacity_bytes"], s["shards"]

    def begin(self, *arguments):
        trace = self.trace(*[f"http://a.test/{n}?fault=delay:30ms" for n in range(2000)])
        p = subprocess.Popen(
            [str(a) for a in (harness.SUNPROXY, "replay", "--socket", self.d.socket, trace,
                              *self.changed, *arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=harness.sanitizer_environment(self.dir / "sanitizer.replay"))
        harness.wait_until(lambda: self.state() == ("fifo", 7, 0, 1), what="the change")
        with rpc.Connection(self.d.socket) as c:
            harness.wait_until(lambda: c.stat().misses > 1, what="requests")
        return p

    def test_after_runs(self):
        trace = self.trace("http://a.test/1", "http://a.test/2", "http://a.test/1")
        for arguments in (self.changed, ["--cold"], ["--policy", "none"], [*self.changed, "--repeat", "3"]):
            with self.subTest(arguments=arguments):
                s = self.summary(trace, *arguments)
                self.assertEqual(s["runs"][-1]["failures"], 0)
                self.assertEqual(self.state(), self.BEFORE)

    def test_a_number_of_shards_that_follows_the_capacity_does_so_again(self):
        self.sunproxy("set", "--shards", "auto", daemon=self.d)
        before = self.state()
        self.replay(self.trace("http://a.test/1"), *self.changed)
        self.assertEqual(self.state(), before)
        self.assertEqual(self.stat(self.d)["shard_choice"], "automatic")

    def test_kept_if_that_is_wanted(self):
        self.replay(self.trace("http://a.test/1"), *self.changed, "--keep")
        self.assertEqual(self.state(), ("fifo", 7, 0, 1))

    def test_after_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number=number):
                p = self.begin()
                p.send_signal(number)
                p.communicate(timeout=300)
                self.assertEqual(p.returncode, 130)
                self.assertEqual(self.state(), self.BEFORE)

    def test_after_signals_between_runs(self):
        p = self.begin("--limit", "3", "--repeat", "1000")
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=300)
        self.assertEqual(p.returncode, 130)
        self.assertEqual(self.state(), self.BEFORE)

    def test_after_failures(self):
        self.replay(self.trace("http://10.0.0.1:81/"), *self.changed, expect=77)
        self.assertEqual(self.state(), self.BEFORE)
        trace = self.trace(*[f"http://a.test/{n}" for n in range(3000)])
        self.replay(trace, *self.changed, "--log", "/dev/full", expect=74)
        self.assertEqual(self.state(), self.BEFORE)

    def test_a_refused_change_changes_nothing(self):
        trace = self.trace("http://a.test/1")
        self.replay(trace, "--policy", "nosuch", expect=64)
        self.assertEqual(self.state(), self.BEFORE)
        self.assertEqual(self.o.requests(), [])

    def test_a_server_that_cannot_be_restored_is_named(self):
        p = self.begin()
        self.d.kill()
        _, err = p.communicate(timeout=300)
        self.assertEqual(p.returncode, 69)
        self.assertRegex(err.decode(), r"was not restored: it had policy slru.*, 50 URLs and 1\.0 MiB, shards: 3")


class StatTest(ReplayCase):
    def test_as_the_wire_says(self):
        self.sunproxy("get", "-s", "-j", "1", "http://a.test/1", "http://a.test/1", "ftp://x",
                      daemon=self.d, expect=None)
        mine = self.stat(self.d)
        with rpc.Connection(self.d.socket) as c:
            theirs = c.stat()
        for name in ("policy", "workers", "shards", "capacity_bytes", "pages", "bytes", "requests",
                     "hits", "misses", "failures", "bytes_served", "insertions", "evictions"):
            self.assertEqual(mine[name], getattr(theirs, name), name)
        text = self.sunproxy("stat", daemon=self.d, tcp=True).stdout.decode()
        self.assertRegex(text, r"(?m)^hits +1$")
        self.assertRegex(text, r"(?m)^failures +1$")
        self.assertRegex(text, r"(?m)^time of a hit( +\S+ (us|ms|s)){3}$")
        self.assertRegex(text, r"(?m)^time of a miss( +\S+ (us|ms|s)){3}$")
        lines = self.sunproxy("stat", "--csv", daemon=self.d).stdout.decode().splitlines()
        rows = {name: value for name, _, value in csv.reader(lines)}
        self.assertEqual(rows["policy"], theirs.policy)
        self.assertEqual(rows['requests{outcome="hit"}'], "1")
        self.assertEqual(rows["miss_duration_microseconds_count"], "1")
        self.assertEqual(set(rows), {"name", *theirs.facts, *theirs.metrics})

    def test_each_outcome_is_counted_once(self):
        with rpc.Connection(self.d.socket) as c:
            c.get("http://a.test/1")
            c.get("http://a.test/1")
            c.fetch_v1("http://a.test/1")
            c.get("http://a.test/1", flags=1)
            c.get("ftp://x")
            s = c.stat()
            self.assertEqual({name: value for name, value in s.metrics.items()
                              if name.startswith("requests{") and value},
                             {'requests{outcome="miss"}': 1, 'requests{outcome="hit"}': 2,
                              'requests{outcome="bypass"}': 1, 'requests{outcome="failure"}': 1})
            self.assertEqual(s.requests, 5)
            page = s.value('served_bytes{source="cache"}') // 2
            self.assertGreater(page, 0)
            self.assertEqual(s.bytes_served, 4 * page)
            # Hits of version 2 are timed, misses of both, and each response of an origin.
            counts = [s.metrics[f"{name}_microseconds_count"]
                      for name in ("hit_duration", "miss_duration", "origin_first_byte")]
            self.assertEqual(counts, [1, 1, 2])
            buckets = [value for name, value in s.metrics.items()
                       if name.startswith("miss_duration_microseconds_bucket")]
            self.assertEqual(buckets, sorted(buckets))
            self.assertEqual(len(buckets), 28)
            # Set cold, everything that the table counts begins anew; numbers of others go on.
            self.assertEqual(c.set(cold=True)[0], "ok")
            s = c.stat()
            self.assertEqual((s.requests, s.bytes_served), (0, 0))
            self.assertEqual(s.metrics["miss_duration_microseconds_sum"], 0)
            self.assertGreater(s.metrics["fetches_started"], 1)


class AdministerTest(ReplayCase):
    seconds = 10

    def urls(self):
        return [f"http://h{n % 2}.test/{n}" for n in range(6)]

    def setUp(self):
        super().setUp()
        self.sunproxy("get", *self.urls(), daemon=self.d)

    def purged(self, *arguments):
        out = self.sunproxy("purge", "--json", *arguments, daemon=self.d).stdout
        return json.loads(out)["purged"]

    def test_purge(self):
        self.assertEqual(self.purged("http://h1.test/1", "http://h1.test/none"), 1)
        self.assertEqual(self.purged("--prefix", "http://h0.test/"), 3)
        self.assertEqual(self.purged("--all"), 2)
        for arguments in (["http://h1.test/1"], ["--prefix", "http://h0.test/"], ["-n", "http://h/"]):
            done = self.sunproxy("purge", *arguments, daemon=self.d, expect=1)
            self.assertIn(b"no page with such a URL is stored", done.stderr)
        done = self.sunproxy("purge", "--tag", "none", daemon=self.d, expect=1)
        self.assertIn(b"no page has that tag", done.stderr)
        self.assertEqual(self.purged("--all"), 0)
        self.assertEqual(self.stat(self.d)["pages"], 0)

    def test_set(self):
        out = self.sunproxy("set", "--policy", "maxs", "--capacity-urls", "4", "--json",
                            daemon=self.d).stdout
        self.assertIsInstance(json.loads(out), dict)
        s = self.stat(self.d)
        self.assertEqual((s["policy"], s["capacity_urls"], s["pages"]), ("maxs", 4, 4))
        # What is not named stays as it is.
        self.sunproxy("set", "--policy", "lru", daemon=self.d)
        s = self.stat(self.d)
        self.assertEqual((s["policy"], s["capacity_urls"], s["pages"]), ("lru", 4, 4))
        self.sunproxy("set", "--cold", daemon=self.d)
        self.assertEqual(self.stat(self.d)["pages"], 0)

    def test_a_dry_run_of_purge(self):
        for arguments, count in ((["http://h1.test/1", "http://h1.test/none"], 1),
                                 (["http://h1.test/1", "http://h1.test/1"], 1),
                                 (["--prefix", "http://h0.test/"], 3), (["--all"], 6)):
            with self.subTest(arguments=arguments):
                out = self.sunproxy("purge", "--dry-run", "--json", *arguments, daemon=self.d).stdout
                self.assertEqual(json.loads(out), {"purged": count, "more": False, "dry_run": True})
                self.assertEqual(self.stat(self.d)["pages"], 6)
                out = self.sunproxy("purge", "-n", *arguments, daemon=self.d).stdout.decode()
                self.assertEqual(out, f"{count} page{'' if count == 1 else 's'} would be purged (dry run)\n")
        self.assertEqual(self.purged("--all"), 6)

    def test_a_dry_run_of_set(self):
        names = ("policy", "capacity_urls", "capacity_bytes", "shards", "pages")
        before = {name: self.stat(self.d)[name] for name in names}
        for arguments, expected in (
                (["--policy", "maxs", "--capacity-urls", "4"],
                 {"policy": "maxs", "capacity_urls": 4, "shards": 1}),
                (["--shards", "3"], {"policy": "lru", "shards": 3}),
                (["--cold"], {"policy": "lru"}), (["--policy", "none"], {"policy": "none"})):
            with self.subTest(arguments=arguments):
                out = self.sunproxy("set", "--dry-run", "--json", *arguments, daemon=self.d).stdout
                output = json.loads(out)
                self.assertEqual((output["dry_run"], output["kept"]), (True, None))
                self.assertEqual({name: output[name] for name in expected}, expected)
                self.assertEqual({name: self.stat(self.d)[name] for name in names}, before)
                # The real one does what the dry run said.
                done = json.loads(self.sunproxy("set", "--json", *arguments, daemon=self.d).stdout)
                self.assertFalse(done.pop("dry_run"))
                done.pop("kept")
                self.assertEqual(done, {name: output[name] for name in done})
                self.sunproxy("set", "--policy", "lru", "--capacity-urls", before["capacity_urls"],
                              "--capacity-bytes", before["capacity_bytes"], "--shards",
                              before["shards"], daemon=self.d)
                self.sunproxy("get", *self.urls(), daemon=self.d)
        out = self.sunproxy("set", "-n", "--capacity-urls", "7", daemon=self.d).stdout
        self.assertIn(b"(dry run: nothing was changed)", out)

    def test_the_number_of_shards_follows_the_capacity_until_it_is_set(self):
        d = self.daemon("--workers", "2", "--capacity-bytes", "512M", origin=self.o)
        self.assertEqual(self.stat(d)["shards"], 2)
        out = self.sunproxy("set", "-n", "--capacity-bytes", "64M", daemon=d).stdout
        self.assertIn(b"shards: 1", out)
        self.sunproxy("set", "--capacity-bytes", "64M", daemon=d)
        self.assertEqual(self.stat(d)["shards"], 1)
        self.sunproxy("set", "--shards", "2", "--capacity-bytes", "512M", daemon=d)
        self.sunproxy("set", "--capacity-bytes", "64M", daemon=d)
        self.assertEqual((self.stat(d)["shards"], self.stat(d)["shard_choice"]), (2, "fixed"))
        self.sunproxy("set", "--shards", "auto", daemon=d)
        self.assertEqual((self.stat(d)["shards"], self.stat(d)["shard_choice"]), (1, "automatic"))
        self.sunproxy("set", "--capacity-bytes", "512M", daemon=d)
        self.assertEqual(self.stat(d)["shards"], 2)
        self.sunproxy("set", "--shards", "some", daemon=d, expect=64)

    def test_refused(self):
        for arguments in (["purge", "--all"], ["purge", "-n", "--all"], ["set", "--policy", "fifo"],
                          ["set", "-n", "--policy", "fifo"]):
            done = self.sunproxy(*arguments, daemon=self.d, tcp=True, expect=77)
            self.assertRegex(done.stderr, rb"AF_UNIX|socket")
        for arguments in (["purge"], ["set"], ["set", "--policy", "nosuch"],
                          ["set", "--capacity-urls", "x"], ["set", "--shards", "9999"],
                          ["purge", "--all", "http://a/"], ["purge", "--all", "--prefix", "h"],
                          ["set", "-n", "--policy", "nosuch"], ["set", "-n", "--shards", "65"],
                          ["set", "-n", "--capacity-urls", "2", "--shards", "4"],
                          ["set", "-n", "--capacity-urls", "0", "--capacity-bytes", "0"]):
            done = self.sunproxy(*arguments, daemon=self.d, expect=None)
            self.assertEqual(done.returncode, 64, (arguments, done.stdout, done.stderr))
        s = self.stat(self.d)
        self.assertEqual((s["policy"], s["pages"]), ("lru", 6))
        self.assertIsNotNone(re.match(r"sunproxyd", s["software"]))
