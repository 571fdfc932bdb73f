"""The GENI study of make reproduce, small: its page and JSON, its table, and the links of its
origin."""

import http.client
import json
import shutil
import signal
import sys
import threading
import time
import unittest

import harness

SCRIPT = harness.TOP / "studies/reproduce.sh"
sys.path.append(str(harness.TOP / "studies"))
import geni_origin
import http_service
import reproduce_geni as geni
import reproduce_geni_rows as geni_rows
from verdict import Verdict


class GeniTest(harness.SystemTest):
    seconds = 80
    needs = (harness.SUNPROXYD, harness.SUNPROXY, harness.ORIGIN)

    def setUp(self):
        super().setUp()
        self.out = self.dir / "reproduce"
        self.env = harness.study_environment()
        if not shutil.which("curl"):
            self.skipTest("curl is not installed")

    def test_smoke(self):
        done = self.run_program([SCRIPT, "--study", "geni", "--smoke", "--out", self.out],
                                seconds=500,
                                env=self.env)
        text = done.stdout.decode()
        self.assertEqual(done.returncode, 0, done.stderr.decode() + text)
        data = json.loads((self.out / "reproduce.json").read_text())
        page = (self.out / "reproduce.html").read_text()
        study = data["studies"]["geni"]
        self.assertEqual((list(data["studies"]), study["wrong_bodies"]), (["geni"], 0))
        self.check_objects(study)
        self.check_headers(study, page)
        self.assertEqual({how: len(some) for how, some in study["fetches"].items()},
                         {"without": 3, "with": 3})
        paper, = data["papers"]
        self.assertEqual(len(paper["rows"]), 23)
        # What does not depend on the machine's speed has its verdict.
        verdicts = {row["states"]: row["verdict"] for row in paper["rows"]}
        for begin, expected in (("Objects of 83", "holds"), ("The experiment proves",
                                                             "does not hold"),
                                ("Requested continuously", "holds"),
                                ("In the loop, objects", "holds"),
                                ("Of max-age=600", "holds"),
                                ("From Expires alone", "does not hold"),
                                ("The percentage", "does not hold"),
                                ("ATS has one", "cannot be repeated here")):
            self.assertEqual([v for states, v in verdicts.items() if states.startswith(begin)],
                             [expected], begin)
        self.assertEqual(page.count("<svg"), 3)
        self.assertIn("A smoke test: a MB is 10,000 bytes", page)

    def check_objects(self, study):
        """The outcomes of FIFO and of LRU, computed by hand."""
        self.assertEqual(study["stored_after_five"], [52, 38, 23, 97])
        for policy in ("fifo", "lru"):
            self.assertEqual(study["policies"][policy], {"left": [[83]], "loop": [0],
                                                         "in a row": [10]})
        self.assertEqual(len(study["policies"]["rand"]["loop"]), len(geni.SMOKE.seeds))

    def check_headers(self, study, page):
        self.assertEqual([r["size"] for r
                          in study["headers"]["max-age"]][::len(study["headers"]["max-age"]) - 1],
                         list(geni_origin.PAGE_BYTES))
        self.assertEqual(study["origin_statuses"]["both"], [200])
        self.assertEqual(study["origin_statuses"]["expires"][0], 200)
        for line in ("Cache-Control: max-age=2", "Cache-Status: sunproxy; hit; ttl=",
                     "Cache-Control: max-age=60"):
            self.assertIn(line, page)

    def test_interrupted(self):
        process = harness.Process(self, "reproduce", [SCRIPT, "--study", "geni", "--out", self.out],
                                  env=self.env, expect=130)
        harness.wait_until(lambda: list(self.out.glob("geni/headers-origin.requests")), 60,
                           "the header experiments")
        begun = time.monotonic()
        process.signal(signal.SIGINT)
        self.assertEqual(process.wait(300), 130, process.err)
        # Not after the lifetime of 120 s for which a thread waits.
        self.assertLess(time.monotonic() - begun, 100)
        self.assertIn("interrupted", process.err)
        self.assertNotIn("Traceback", process.err)

    def test_a_smoke_test_writes_no_document(self):
        document = self.dir / "document.md"
        done = self.run_program([SCRIPT, "--study", "geni", "--smoke", "--document", document,
                                 "--out", self.out],
                                env=self.env)
        self.assertEqual(done.returncode, 70, done.stdout)
        self.assertIn(b"is not written by a smoke test", done.stderr)
        self.assertFalse(document.exists())

    def test_a_study_is_bounded_in_time(self):
        done = self.run_program([SCRIPT, "--study", "geni", "--minutes", "0.03", "--out", self.out],
                                seconds=500,
                                env=self.env)
        self.assertEqual(done.returncode, 70, done.stdout)
        self.assertIn(b"geni took more than 0.03 minutes, the limit of --minutes", done.stderr)
        self.assertNotIn(b"Traceback", done.stderr)


HIT, MISS = "hit; ttl=9", "fwd=uri-miss; stored"


def response(moment=0.0, status=HIT, age=0, seconds=1.0, speed=1.0, size=238, right=True,
             fields=()):
    return geni.Response(moment, seconds, speed * geni.MIB, 200,
                         [("Cache-Status", f"sunproxy; {status}"), ("Age", str(age)), *fields],
                         size, right)


def good():
    """A Result with which all statements hold that can."""
    scale = geni.FULL
    first, second = geni_origin.PAGE_BYTES
    page = [response(0, MISS, 0, size=first), response(118.5, HIT, 118, size=first),
            response(120.5, HIT, 120, size=first), response(121.1, MISS, 0, size=second)]
    control = [("Cache-Control", "max-age=180")]
    headers = {"max-age": page, "both": [response(0, MISS), response(181, HIT, 181)],
               "expires": [response(0, MISS), response(95, HIT, 95, fields=control),
                           response(181.5, MISS)]}
    loop = [response(status=MISS, speed=6.51 + n / 100) for n in (-1, 0, 1) * 5]
    row = [response(status=MISS if n % 3 == 0 else HIT, speed=(6.5 if n % 3 == 0 else 10.5)
                    + n / 1000)
           for n in range(15)]
    fetches = {"without": [response(seconds=s) for s in (10.36, 10.37, 10.38)],
               "with": [response(seconds=s) for s in (7.47, 7.48, 7.49)]}
    policies = {"fifo": {"left": [[83]], "loop": [0], "in a row": [10]},
                "gdsf": {"left": [[97]], "loop": [8], "in a row": [10]}}
    return geni.Result(scale, fetches, headers, {"max-age": [200, 200], "expires": [200, 200],
                                                 "both": [200]},
                       {"loop": loop, "in a row": row}, [52, 38, 23, 97], policies, 0)


class RowsTest(unittest.TestCase):
    """Verdicts on measurements that are made up."""

    def fetches(self, without, cached):
        return {"fetches": {"without": [response(seconds=s) for s in without],
                            "with": [response(seconds=s) for s in cached]}}

    def sequence(self, order, speeds=None, **changes):
        some = good().sequences[order]
        some = [one._replace(speed=speed * geni.MIB)
                for one, speed in zip(some, speeds or [one.speed / geni.MIB
                                                      for one in some])]
        return {"sequences": {**good().sequences, order: [one._replace(**changes) for one in some]}}

    def header(self, name, at, one):
        some = list(good().headers[name])
        some[at] = one
        return {"headers": {**good().headers, name: some}}

    def test_each_row_has_each_verdict(self):
        r, wrong = geni_rows, response(right=False)
        wild = (5.0, 10.0, 16.0)
        hits = [("Cache-Status", "sunproxy; hit")]
        policy = {"left": [[83]], "loop": [0], "in a row": [10]}
        cases = [
            (r.row_table_of_latency, self.fetches((12.0, 12.01, 12.02), (7.48, 7.49, 7.5)),
             self.fetches(wild, wild)),
            (r.row_faster, self.fetches((7.0, 7.1, 7.2), (8.0, 8.1, 8.2)),
             self.fetches(wild, wild)),
            (r.row_reduction, self.fetches((10.0, 10.01, 10.02), (5.0, 5.01, 5.02)),
             self.fetches(wild, wild)),
            (r.row_way, {"seen": {**good().seen, "both": [200, 200]}},
             self.header("both", 1, wrong)),
            (r.row_age_at_limit, self.header("max-age", 2, response(119.5, HIT, 119)),
             self.header("max-age", 2, wrong)),
            (r.row_refetch, self.header("max-age", 3, response(121.1, MISS, 0, size=228)),
             self.header("max-age", 3, wrong)),
            (r.row_age, self.header("max-age", 1, response(118.5, HIT, 100)),
             {"headers": {name: [one._replace(fields=[]) for one in some]
                          for name, some in good().headers.items()}}),
            (r.row_expires_to_max_age, self.header("expires", 1, response(95, HIT, 95)),
             self.header("expires", 1, wrong)),
            (r.row_expires_lifetime, self.header("expires", 1, response(95, MISS)),
             self.header("expires", 1, wrong)),
            (r.row_priority, self.header("both", 1, response(181, MISS)),
             self.header("both", 1, wrong)),
            (r.row_evicted, {"stored": [83, 52, 38, 97]}, {"stored": []}),
            (r.row_proof, {"policies": {**good().policies, "lru": policy}},
             {"policies": {"fifo": policy}}),
            (r.row_loop, self.sequence("loop", [9.0, 9.1, 9.2] * 5),
             self.sequence("loop", [1.0, 6.0, 12.0] * 5)),
            (r.row_in_a_row, self.sequence("in a row", [6.0, 6.1, 6.2] * 5),
             self.sequence("in a row", [1.0, 6.0, 6.5, 12.0, 20.0] * 3)),
            (r.row_best_in_a_row, self.sequence("in a row", [5.0, 5.1, 5.2] * 5),
             self.sequence("in a row", [1.0, 6.0, 12.5] * 5)),
            (r.row_always_from_cache, self.sequence("in a row", fields=hits),
             self.sequence("in a row", right=False)),
            (r.row_never_from_cache, self.sequence("loop", fields=hits),
             self.sequence("loop", right=False)),
            (r.row_policies, {"policies": {"fifo": policy, "gdsf": policy}},
             {"policies": {"fifo": policy}}),
        ]
        for row, against, open_ in cases:
            for change, expected in (({}, Verdict.HOLDS), (against, Verdict.FAILS),
                                     (open_, Verdict.UNDECIDED)):
                with self.subTest(row=row.__name__, expected=expected):
                    found = row(good()._replace(**change))
                    self.assertIs(found.verdict, expected, found)
        # Every row that is measured is among them.
        tested = {row.__name__ for row, *_ in cases} | {"row_arithmetic", "row_unit"}
        self.assertEqual({name for name in vars(r) if name.startswith("row_")}, tested)

    def test_what_is_computed_from_the_print(self):
        for rows, print_, expected in (
                (geni_rows.row_arithmetic, geni.PUBLISHED_SECONDS, Verdict.FAILS),
                (geni_rows.row_arithmetic, {"without": [100.0], "with": [72.05]}, Verdict.HOLDS),
                (geni_rows.row_unit, geni.PUBLISHED_SECONDS, Verdict.FAILS),
                (geni_rows.row_unit, {"with": [62.7]}, Verdict.HOLDS)):
            self.assertIs(rows(print_).verdict, expected)

    def test_ours_are_labelled_and_nothing_is_left_out(self):
        rows = geni_rows.rows(good())
        self.assertEqual([row.place for row in rows if row.ours],
                         ["27.95 %", "unit", "other policies"])
        self.assertEqual(sum(row.verdict is Verdict.CANNOT for row in rows), 3)
        for place in ("3.1, table", "3.2 (a), left response; 4, item 2", "3.2 (a), right response",
                      "3.2 (b), response",
                      "3.3, step 2, both lists", "3.3 (a), table", "3.3 (b), table"):
            self.assertIn(place, [row.place for row in rows])


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
        threads = [threading.Thread(target=lambda: bodies.append(self.get(port)[1]))
                   for _ in range(2)]
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


class ClientLinkTest(harness.SystemTest):
    """studies/link.py, between a client and a server."""

    def test_bytes_pass_whole_and_at_its_bandwidth(self):
        size, bandwidth = 200_000, 500_000
        service = http_service.Service(lambda _: http_service.Reply(200, [], size=size),
                                       http_service.Link(0, 0))
        threading.Thread(target=service.run, daemon=True).start()
        port_file = self.dir / "port"
        harness.Process(self, "link", [sys.executable, harness.TOP / "studies/link.py", port_file,
                                       str(service.port),
                                       str(bandwidth)], expect=-15)
        harness.wait_until(port_file.exists, what="the link's port")
        connection = http.client.HTTPConnection("127.0.0.1", int(port_file.read_text()), timeout=30)
        self.addCleanup(connection.close)
        for _ in range(2):
            begun = time.monotonic()
            connection.request("GET", "/")
            self.assertEqual(connection.getresponse().read(), http_service.PATTERN[:size])
            self.assertGreaterEqual(time.monotonic() - begun,
                                    (size - 2 * (1 << 16)) / bandwidth - 0.02)
