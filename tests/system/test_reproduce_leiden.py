"""The Leiden study of make reproduce, small: its page and JSON, its claims, its service and its clients."""

import collections
import json
import socket
import sys
import threading
import unittest

import harness

SCRIPT = harness.TOP / "studies/reproduce.sh"
sys.path.append(str(harness.TOP / "studies"))
import http_service
import leiden_load
import leiden_model as model
import leiden_service
import reproduce_leiden as leiden
import reproduce_leiden_claims as leiden_claims


class LeidenTest(harness.SystemTest):
    seconds = 15
    needs = (harness.SUNPROXYD, harness.SUNPROXY, harness.ORIGIN)

    def test_smoke(self):
        out = self.dir / "reproduce"
        done = self.run_program([SCRIPT, "--study", "leiden", "--smoke", "--out", out], seconds=500,
                                env=harness.study_environment())
        text = done.stdout.decode()
        self.assertEqual(done.returncode, 0, done.stderr.decode() + text)
        data = json.loads((out / "reproduce.json").read_text())
        study = data["studies"]["leiden"]
        self.check_cells(study["cells"])
        # These do not depend on chance.
        verdicts = {claim["states"].split(" ")[0]: claim["verdict"] for claim in data["papers"][0]["rows"]}
        self.assertEqual(len(verdicts), 6)
        self.assertEqual((verdicts["No"], verdicts["With"]), ("holds", "holds"))
        self.assertEqual(set(study["smallest_share"]), set(leiden.POLICIES))
        page = (out / "reproduce.html").read_text()
        self.assertEqual(page.count("<svg"), 6)
        self.assertIn('<line class="w"', page)
        self.assertIn('<line class="e own-tinylfu"', page)
        for sentence in ("100 Mbit/s and a latency of 1 ms", "1,000 resources in 8 pools",
                         "At most 400 requests instead of 15,000.", "/paths -&gt; users"):
            self.assertIn(sentence, page)

    def check_cells(self, cells):
        stale = collections.Counter()
        for cell in cells:
            self.assertEqual((cell["runs"], cell["failures"]), (2, 0))
            self.assertTrue(0 < cell["object_ratio"]["mean"] < 1, cell)
            self.assertGreater(cell["mean_us"]["mean"], 0)
            stale[cell["mode"], cell["caches"] > 1] += cell["stale"]
            # Only what has expired and is still stored is validated.
            difference = cell["object_ratio"]["mean"] - cell["fresh_ratio"]["mean"]
            self.assertEqual(difference > 0, cell["mode"] == "validate", cell)
        self.assertEqual({key for key, count in stale.items() if count},
                         {("url", True), ("tags, one cache", True)} | ({("url", False)} & set(+stale)))
        self.assertEqual({cell["policy"] for cell in cells}, set(leiden.POLICIES))


class ClaimsTest(unittest.TestCase):
    """Verdicts on measurements that are made up."""

    def measured(self, ratio, stale=0):
        spread = leiden.spread([ratio - 0.01, ratio, ratio + 0.01])
        return leiden.Measured(3, spread, spread, spread, spread, stale, 0, 1000)

    def result(self, changes=None):
        scale = leiden.FULL
        ratios = {"url": 0.6, "tags": 0.2, "tags, one cache": 0.5, "validate": 0.55}
        cells = {}
        for cell in leiden.all_cells(scale):
            ratio = ratios[cell.mode] + cell.requests / 1e6 - cell.caches / 100
            ratio -= 0 if cell.share is None else (100 - cell.share) / 1e4
            stale = 100 if cell.mode in ("url", "tags, one cache") and cell.caches > 1 else 0
            cells[cell] = self.measured(ratio, stale)
        cells.update(changes or {})
        return leiden.Result(scale, cells, 1)

    def verdicts(self, changes=None):
        return [row.finding.holds for row in leiden_claims.assess(self.result(changes))]

    def test_all_can_hold(self):
        self.assertEqual(self.verdicts(), [True] * 6)

    def test_each_can_fail(self):
        base = leiden.FULL.base
        cases = [
            (0, {base: self.measured(0.5, stale=1)}),
            (0, {base._replace(mode="tags", caches=3): self.measured(0.1, stale=1)}),
            (1, {base._replace(mode="tags", caches=2): self.measured(0.1, stale=1)}),
            (2, {base._replace(mode="tags"): self.measured(0.9)}),
            (3, {base._replace(requests=1000): self.measured(0.9)}),
            (4, {base._replace(caches=3): self.measured(0.9)}),
            (5, {base._replace(policy="gdsf", share=50): self.measured(0.3)}),
        ]
        for number, changes in cases:
            with self.subTest(claim=number, changes=changes):
                self.assertIs(self.verdicts(changes)[number], False)

    def test_a_check_that_finds_nothing_decides_nothing(self):
        clean = {cell: self.measured(0.5) for cell in leiden.all_cells(leiden.FULL) if cell.mode == "url"}
        self.assertIsNone(self.verdicts(clean)[0])

    def test_the_smallest_cache(self):
        result = self.result({cell: self.measured(0.1) for cell in leiden.size_cells(leiden.FULL, "lfu")[:3]})
        self.assertEqual(leiden_claims.smallest_share(result, "lru"), 5)
        self.assertEqual(leiden_claims.smallest_share(result, "lfu"), leiden.FULL.shares[3])


class PartsTest(harness.SystemTest):
    """The service and the clients by themselves."""

    def serve(self, handler):
        service = http_service.Service(handler, http_service.Link(0, 0))
        threading.Thread(target=service.run, daemon=True).start()
        return service.port

    def ask(self, rest, method, path, fields=None):
        return rest.answer(http_service.Request(method, path, fields or {}, b""))

    def test_versions_and_validation(self):
        rest = leiden_service.RestService([], False)
        first = self.ask(rest, "GET", "/users/7")
        tag = dict(first.fields)["ETag"]
        self.assertEqual((first.status, model.version_of(tag)), (200, 1))
        self.assertEqual(len(first.body), model.make_sizes()["/users/7"])
        self.assertEqual(self.ask(rest, "GET", "/users/7", {"if-none-match": tag}).status, 304)
        # A write of a path changes its user.
        written = self.ask(rest, "PUT", "/paths/7")
        self.assertEqual(json.loads(written.body), {"/paths/7": 2, "/users/7": 2})
        again = self.ask(rest, "GET", "/users/7", {"if-none-match": tag})
        self.assertEqual((again.status, model.version_of(dict(again.fields)["ETag"])), (200, 2))
        self.assertEqual(json.loads(self.ask(rest, "PUT", "/places/7").body), {"/places/7": 2})
        self.assertEqual(self.ask(rest, "GET", "/nothing").status, 404)

    def test_pools_are_purged_before_the_answer(self):
        path = str(self.dir / "cache")
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(path)
        listener.listen()
        statuses = {False: ["404 -"], True: ["200 -", "500 -"]}
        seen = []

        def cache(soft):
            connection = listener.accept()[0]
            with connection, connection.makefile("rb") as file:
                for status in statuses[soft]:
                    lines = []
                    while (line := file.readline().decode().rstrip()):
                        lines.append(line)
                    seen.append(lines)
                    connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok".encode())

        for soft in (False, True):
            thread = threading.Thread(target=cache, args=(soft,))
            thread.start()
            rest = leiden_service.RestService([leiden_service.Cache(path)], soft)
            reply = self.ask(rest, "PUT", "/paths/1")
            thread.join()
            # A purge that failed is an error of the write.
            self.assertEqual(reply.status, 500 if soft else 200)
            rest.caches[0].socket.close()
        self.assertEqual(seen, [
            ["PURGE / HTTP/1.1", "Host: service", "Surrogate-Key: paths users"],
            ["PURGE /paths/ HTTP/1.1", "Host: service", "Purge: prefix, soft"],
            ["PURGE /users/ HTTP/1.1", "Host: service", "Purge: prefix, soft"]])

    def load(self, port, requests):
        load = leiden_load.Load(requests, 1, [port])
        load.run()
        return load.counts

    def test_stale_answers_are_found(self):
        """Of a service that answers what it stored before a write."""
        rest = leiden_service.RestService([], False)
        stored = {}

        def handler(request):
            if request.method == "PUT":
                return rest.answer(request)
            return stored.setdefault(request.path, rest.answer(request))

        requests = [(False, "/users/3"), (False, "/users/4"), (True, "/paths/3"), (False, "/users/3"),
                    (False, "/users/4"), (False, "/paths/3")]
        counts = self.load(self.serve(handler), requests)
        self.assertEqual((counts["reads"], counts["writes"], counts["stale"], counts["failures"]), (5, 1, 1, 0))
        counts = self.load(self.serve(rest.answer), requests)
        self.assertEqual((counts["reads"], counts["stale"], counts["failures"]), (5, 0, 0))

    def test_wrong_answers_are_failures(self):
        rest = leiden_service.RestService([], False)

        def handler(request):
            reply = rest.answer(request)
            if request.path == "/users/1":
                return reply._replace(body=reply.body[:-1])
            if request.path == "/users/2":
                return reply._replace(status=503)
            return reply

        counts = self.load(self.serve(handler), [(False, f"/users/{number}") for number in range(4)])
        self.assertEqual(counts["failures"], 2)

    def test_outcomes_are_counted(self):
        rest = leiden_service.RestService([], False)
        outcomes = {"/users/0": "sunproxy; hit; ttl=5", "/users/1": "sunproxy; fwd=stale; fwd-status=304; stored",
                    "/users/2": "sunproxy; fwd=uri-miss; stored; collapsed", "/users/3": "sunproxy; fwd=uri-miss"}

        def handler(request):
            reply = rest.answer(request)
            return reply._replace(fields=[*reply.fields, ("Cache-Status", outcomes[request.path])])

        counts = self.load(self.serve(handler), [(False, path) for path in outcomes])
        self.assertEqual([counts[name] for name in ("fresh", "validated", "joined")], [1, 1, 1])
        sizes = model.make_sizes()
        self.assertEqual(counts["cache_bytes"], sizes["/users/0"] + sizes["/users/1"])
        self.assertEqual(counts["bytes"], sum(sizes[path] for path in outcomes))

    def test_the_mix(self):
        requests = model.draw_requests(20000, 1)
        self.assertEqual(requests, model.draw_requests(20000, 1))
        self.assertNotEqual(requests, model.draw_requests(20000, 2))
        writes = sum(write for write, _ in requests)
        self.assertAlmostEqual(writes / len(requests), model.WRITE_SHARE, delta=0.02)
        # By Zipf's law the first of 1,000 gets a share of 1 / H(1000), the second half of that.
        counts = [count for _, count in collections.Counter(path for _, path in requests).most_common(2)]
        harmonic = sum(1 / rank for rank in range(1, 1001))
        self.assertAlmostEqual(counts[0] / len(requests), 1 / harmonic, delta=0.015)
        self.assertAlmostEqual(counts[1] / len(requests), 0.5 / harmonic, delta=0.015)
