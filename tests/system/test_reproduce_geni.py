"""The GENI study of make reproduce, small: its page and JSON, its claims, and the link of its origin."""

import http.client
import json
import signal
import sys
import threading
import time
import unittest

import harness

SCRIPT = harness.TOP / "studies/reproduce.sh"
sys.path.append(str(harness.TOP / "studies"))
import http_service
import reproduce_geni as geni
import reproduce_geni_claims as geni_claims


class GeniTest(harness.SystemTest):
    seconds = 25
    needs = (harness.SUNPROXYD, harness.SUNPROXY, harness.ORIGIN)

    def setUp(self):
        super().setUp()
        self.out = self.dir / "reproduce"
        self.env = harness.study_environment()

    def test_smoke(self):
        done = self.run_program([SCRIPT, "--study", "geni", "--smoke", "--out", self.out], seconds=500,
                                env=self.env)
        text = done.stdout.decode()
        self.assertEqual(done.returncode, 0, done.stderr.decode() + text)
        data = json.loads((self.out / "reproduce.json").read_text())
        page = (self.out / "reproduce.html").read_text()
        self.assertEqual(list(data["studies"]), ["geni"])
        self.check_objects(data["studies"]["geni"]["objects"])
        self.check_headers(data["studies"]["geni"], page)
        study = data["studies"]["geni"]
        self.assertEqual(study["wrong_bodies"], 0)
        self.assertEqual({how: [len(run) for run in runs] for how, runs in study["video_seconds"].items()},
                         {"without": [3, 3], "with": [3, 3]})
        # What does not depend on the machine's speed has its verdict.
        verdicts = {claim["states"]: claim["verdict"] for claim in data["papers"][0]["rows"]}
        self.assertEqual(len(verdicts), 8)
        for name, verdict in verdicts.items():
            if name.startswith(("c: ", "Five", "The order")):
                self.assertEqual(verdict, "holds", name)
        # The link is stated, and what was scaled.
        self.assertIn("are divided by 100. A MB is 10,000 bytes.", page)
        self.assertIn("has 32 Mbit/s", page)
        self.assertIn("latency of 10 ms", page)
        self.assertEqual(page.count("<svg"), 3)
        self.assertIn('<line class="w"', page)

    def check_objects(self, rows):
        """The outcomes of FIFO and of LRU, computed by hand."""
        hits = {(row["policy"], row["first"], row["second"]): row["hits"] for row in rows}
        for policy in ("fifo", "lru"):
            for first, second in geni.ROUNDS:
                expected = [False] * 5 if first == second else [True] * 4 + [False]
                self.assertEqual(hits[policy, first, second], [expected])
        # MAXS evicts 83 MB for 97 MB, and whatever is larger after that.
        self.assertEqual(hits["maxs", "listed", "reversed"], [[True] * 4 + [False]])
        self.assertEqual(len(hits["rand", "listed", "listed"]), 2)

    def check_headers(self, study, page):
        for name, statuses in {"a": [200, 304], "b": [200, 304], "c1": [200, 304], "c2": [200]}.items():
            self.assertEqual(study["origin_statuses"][name], statuses)
            self.assertEqual([r["status"] for r in study["headers"][name]], [200] * 3)
        self.assertRegex(page, r"\nAge: [1-4]\n")
        for line in ("Cache-Control: max-age=4", "Cache-Status: sunproxy; hit; ttl=",
                     "Cache-Status: sunproxy; fwd=stale; fwd-status=304; stored; ttl="):
            self.assertIn(line, page)

    def test_interrupted(self):
        process = harness.Process(self, "reproduce", [SCRIPT, "--study", "geni", "--out", self.out],
                                  env=self.env, expect=130)
        harness.wait_until(lambda: list(self.out.glob("geni/*.sock")), 60, "a daemon")
        process.signal(signal.SIGINT)
        self.assertEqual(process.wait(300), 130, process.err)
        self.assertIn("interrupted", process.err)
        self.assertNotIn("Traceback", process.err)


class ClaimsTest(unittest.TestCase):
    """Verdicts on measurements that are made up."""

    def response(self, status):
        return geni.Response(0, 200, [("Cache-Status", f"sunproxy; {status}")], True)

    def headers(self, *statuses):
        return [self.response(status) for status in statuses]

    def result(self, with_cache=(3.5, 0.1, 0.1), headers=None, objects=None):
        miss, hit, validated = "fwd=uri-miss; stored", "hit", "fwd=stale; fwd-status=304; stored"
        right = {"a": (miss, hit, validated), "b": (miss, hit, validated), "c1": (miss, hit, validated),
                 "c2": (miss, hit, hit)}
        responses = {name: self.headers(*line) for name, line in {**right, **(headers or {})}.items()}
        hits = {(policy, first, second): [[first != second] * 4 + [False]]
                for policy in geni.POLICIES for first, second in geni.ROUNDS}
        for policy in geni.POLICIES[1:]:
            hits[policy, "listed", "listed"] = [[True] * 5]
        hits.update(objects or {})
        video = {"without": [[3.5, 3.5, 3.5]] * 3, "with": [list(with_cache)] * 3}
        return geni.Result(geni.SMOKE, video, responses, {name: [200] for name in right}, hits, 0, 1)

    def verdicts(self, **changes):
        return [row.finding.holds for row in geni_claims.assess(self.result(**changes))]

    def test_all_can_hold(self):
        self.assertEqual(self.verdicts(), [True] * 8)

    def test_each_can_fail(self):
        miss, hit = "fwd=uri-miss; stored", "hit"
        cases = [
            (0, {"with_cache": (3.8, 0.1, 0.1)}),
            (1, {"with_cache": (3.5, 0.1, 3.8)}),
            (2, {"headers": {"a": (miss, miss, miss)}}),
            (2, {"headers": {"a": (miss, hit, hit)}}),
            (3, {"headers": {"b": (miss, hit, miss)}}),
            (4, {"headers": {"c1": (miss, hit, hit)}}),
            (4, {"headers": {"c2": (miss, hit, miss)}}),
            (5, {"objects": {("fifo", "listed", "reversed"): [[True, False, True, True, False]]}}),
            (6, {"objects": {("fifo", "listed", "listed"): [[True] * 5]}}),
            (7, {"objects": {("arc", *orders): [[False] * 5] for orders in geni.ROUNDS}}),
        ]
        for number, change in cases:
            with self.subTest(claim=number, change=change):
                self.assertIs(self.verdicts(**change)[number], False)

    def test_equal_times_decide_nothing(self):
        self.assertIsNone(self.verdicts(with_cache=(3.5, 3.5, 3.5))[1])


class LinkTest(unittest.TestCase):
    """The link of the studies' origins takes at least the time that its numbers say."""

    def serve(self, latency, bandwidth, size):
        def handler(request):
            if request.method == "POST":
                return http_service.Reply(200, [("X-Length", len(request.body))], b"taken")
            return http_service.Reply(200, [], size=size)

        service = http_service.Service(handler, http_service.Link(latency, bandwidth))
        threading.Thread(target=service.run, daemon=True).start()
        return service.port

    def get(self, port, method="GET", body=None):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.addCleanup(connection.close)
        connection.request(method, "/", body)
        response = connection.getresponse()
        return response, response.read()

    def test_bandwidth_is_shared(self):
        size, bandwidth = 300_000, 1_000_000
        port, bodies = self.serve(0, bandwidth, size), []
        begun = time.monotonic()
        threads = [threading.Thread(target=lambda: bodies.append(self.get(port)[1])) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        burst = http_service.BURST + 2 * http_service.PIECE / bandwidth
        self.assertGreaterEqual(time.monotonic() - begun, 2 * size / bandwidth - burst)
        self.assertEqual(bodies, [http_service.PATTERN[:size]] * 2)

    def test_latency_methods_and_large_bodies(self):
        size = 3 * len(http_service.PATTERN) + 12345
        port = self.serve(0.2, 0, size)
        begun = time.monotonic()
        response, body = self.get(port, "HEAD")
        self.assertGreaterEqual(time.monotonic() - begun, 0.2)
        self.assertEqual((response.getheader("Content-Length"), body), (str(size), b""))
        self.assertEqual(self.get(port)[1], (http_service.PATTERN * 4)[:size])
        response, body = self.get(port, "POST", b"x" * 100_000)
        self.assertEqual((response.getheader("X-Length"), body), ("100000", b"taken"))
