"""The Leiden study of make reproduce, small: its page and JSON, its table, its backend and its
clients."""

import collections
import json
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
import reproduce_leiden_rows as leiden_rows
from verdict import Verdict


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
        self.assertEqual([step["middleware"] for step in study["trace"]],
                         ["full", "full", "full", "known", "", "full", "compared", "known"])
        # These do not depend on chance.
        rows = {row["place"]: row["verdict"] for row in data["papers"][0]["rows"]}
        for place in ("3.4, figure 3", "3.4, figure 4; 3.2", "3.4, figure 5", "3.2"):
            self.assertEqual(rows[place], "holds", place)
        self.assertEqual(rows["2.3.1, figure 1"], "cannot be repeated here")
        page = (out / "reproduce.html").read_text()
        self.assertEqual(page.count("<svg"), 6)
        self.assertIn("80 % of the requests are GETs", page)
        self.assertIn("A smoke test: few requests.", page)

    def check_cells(self, cells):
        for cell in cells:
            self.assertEqual(len(cell["runs"]), len(leiden.SMOKE.seeds))
            for run in cell["runs"]:
                tallies, backend = run["tallies"], cell["policy"] == leiden.BACKEND
                self.assertEqual((tallies["failures"], tallies["stale"], tallies["fresh"]),
                                 (0, 0, 0), cell)
                self.assertEqual(tallies["reads"] + tallies["writes"], cell["requests"])
                # Every GET reaches the middleware, and every hit is one of its answers 304.
                self.assertEqual(tallies["validated"] > 0, not backend, cell)
                self.assertLessEqual(tallies["validated"], run["middleware"]["known"]
                                     + run["middleware"]["compared"]
                                     + tallies["joined"])
                self.assertEqual(backend and run["middleware"]["known"]
                                 + run["middleware"]["compared"], 0)
                self.assertEqual(run["after"][-1]["requests"], cell["requests"])
        # A cache of 0.1 MB evicts, one of 2.5 GB does not, however many there are.
        evictions = collections.Counter()
        for cell in cells:
            evictions[cell["megabytes"]] += sum(run["evictions"] for run in cell["runs"])
        self.assertEqual((evictions[0.1] > 0, evictions[leiden.FULL_MB]), (True, 0))
        self.assertEqual({cell["caches"] for cell in cells}, {1, 2, 3})


def run(mean_us, ratio, seed, evictions=0, counts=3, stale=0):
    """A run whose values differ from those of other seeds in common."""
    after = [{"requests": n, "mean_us": mean_us * (1 + seed / 100),
              "hit_ratio": ratio - (counts - n) / 50 + seed / 1000,
              "byte_hit_ratio": ratio - (counts - n) / 50 + seed / 1000, "hits_of_all": 0.8 * ratio}
             for n in range(1, counts + 1)]
    return leiden.Run({"reads": 100, "stale": stale, "validated": 80}, after, {}, evictions)


# What a policy takes beside LRU, and its hit ratio with less than 7 MB.
COST = {"lru": 1.0, "lfu": 1.0, "gds": 1.05, "gdsf": 1.05, "tinylfu": 1.4}
SMALL = {"lru": 0.6, "lfu": 0.5, "gds": 0.62, "gdsf": 0.62, "tinylfu": 0.65}
TRACE = [("GET /paths/3", "fwd=uri-miss; stored", "full"), ("GET /paths/4", "fwd=uri-miss; stored",
                                                            "full"),
         ("GET /skills/4", "fwd=uri-miss; stored", "full"),
         ("GET /paths/3", "fwd=stale; fwd-status=304", "known"),
         ("PUT /paths/3", "", ""), ("GET /paths/3", "fwd=uri-miss; stored", "full"),
         ("GET /paths/4", "fwd=stale; fwd-status=304", "compared"),
         ("GET /skills/4", "fwd=stale; fwd-status=304", "known")]


def good(cost=None, small=None, changes=None, trace=TRACE):
    """A Result with which all statements hold that can; `changes`: {Cell: [Run]}."""
    cost, small, scale = {**COST, **(cost or {})}, {**SMALL, **(small or {})}, leiden.FULL
    runs = {}
    for cell in leiden.timed_cells(scale):
        us = 1000 * (0.5 if cell.policy == leiden.BACKEND else cost[cell.policy])
        us *= cell.clients * {1: 1, 2: 1.5, 3: 1.3}[cell.caches]
        if cell.generate:
            us = 5000 if cell.policy == leiden.BACKEND else 3000
        runs[cell] = [run(us, 0.78, seed) for seed in scale.seeds]
    for cell in leiden.size_cells(scale):
        ratio = 0.77 if cell.megabytes == scale.megabytes[-1] else small[cell.policy]
        runs[cell] = [run(1000, ratio, seed, 9) for seed in scale.seeds]
    return leiden.Result(scale, {**runs, **(changes or {})}, trace)


class RowsTest(unittest.TestCase):
    """Verdicts on measurements that are made up."""

    def change(self, *cells, us=(1000,) * 3, ratio=(0.78,) * 3, **options):
        return {"changes": {cell: [run(one, other, seed, **options) for one, other, seed in
                                   zip(us, ratio, leiden.FULL.seeds)] for cell in cells}}

    def test_each_row_has_each_verdict(self):
        r, scale = leiden_rows, leiden.FULL
        first = leiden.request_cell(scale, "lru")
        backend = leiden.request_cell(scale, leiden.BACKEND)
        busy = leiden.thread_cell(scale, leiden.BACKEND, scale.threads[1])
        lru = leiden.thread_cell(scale, "lru", scale.threads[0])
        two, three = (leiden.thread_cell(scale, "lru", scale.threads[0], caches)
                      for caches in (2, 3))
        small = leiden.size_cell(scale, "lru", scale.megabytes[0])
        large = leiden.size_cell(scale, "lru", scale.megabytes[-1])
        wild, odd = (500, 9000, 40000), (0.1, 0.7, 0.95)

        def after(step, how, status):
            return [*TRACE[:step], (TRACE[step][0], status, how), *TRACE[step + 1:]]

        def lines(us):
            """A run whose mean over the first requests is the first of these, over all the last."""
            return {"changes": {first: [one._replace(after=[{**sums, "mean_us": value}
                                                            for sums, value in
                                                            zip(one.after, values)])
                                        for one, values in zip(good().runs[first], us)]}}

        def falling(name, ratios):
            return {"changes": {first: [one._replace(after=[{**sums, name: value} for sums, value in
                                                            zip(one.after, values)])
                                        for one, values in zip(good().runs[first], ratios)]}}

        not_stored = {"trace": after(0, "full", "fwd=uri-miss")}
        everywhere = [leiden.request_cell(scale, "tinylfu"), *(leiden.thread_cell(scale, "tinylfu",
                                                                                  n)
                                                              for n in scale.threads)]
        cases = [
            (r.row_fresh, {"trace": after(3, "full", "fwd=uri-miss; stored")}, not_stored),
            (r.row_invalidating, {"trace": after(7, "compared", "")}, not_stored),
            (r.row_stale, {"trace": after(5, "known", "fwd-status=304")}, not_stored),
            (r.row_compared, {"trace": after(6, "full", "stored")}, not_stored),
            (r.row_validator, self.change(first, stale=1), None),
            (r.row_no_drop, lines([(1000, 1, 500), (1000, 1, 505), (1000, 1, 510)]),
             lines([(1000, 1, 500), (1000, 1, 5000), (1000, 1, 900)])),
            (r.row_overhead, self.change(backend, us=(9000, 9001, 9002)),
             self.change(backend, us=wild)),
            (r.row_rise_of_hits, falling("hit_ratio", [(0.5, 0.4, 0.3), (0.51, 0.41, 0.3),
                                                       (0.5, 0.4, 0.31)]),
             falling("hit_ratio", [(0.5, 0.4, 0.6), (0.3, 0.7, 0.5), (0.5, 0.51, 0.6)])),
            (r.row_rise_of_bytes, falling("byte_hit_ratio", [(0.5, 0.4, 0.3), (0.51, 0.41, 0.3),
                                                             (0.5, 0.4, 0.31)]),
             falling("byte_hit_ratio", [(0.5, 0.4, 0.6), (0.3, 0.7, 0.5), (0.5, 0.51, 0.6)])),
            (r.row_same_hits, self.change(lru, ratio=(0.6,) * 3),
             self.change(lru, ratio=(0.77, 0.78, 0.80))),
            (r.row_same_bytes, self.change(lru, ratio=(0.6,) * 3),
             self.change(lru, ratio=(0.77, 0.78, 0.80))),
            (r.row_no_eviction, self.change(first, evictions=1), None),
            (r.row_tinylfu, {"cost": {"tinylfu": 1.0}}, self.change(*everywhere, us=wild)),
            (r.row_threads, self.change(lru, us=(90000,) * 3), self.change(lru, us=wild)),
            (r.row_threads_similar, {"cost": {"tinylfu": 2.0}},
             self.change(lru, us=(3000, 4000, 5500))),
            (r.row_backend_threads, self.change(busy, us=(10,) * 3), self.change(busy, us=wild)),
            (r.row_backend_better, self.change(busy, us=(90000,) * 3), self.change(busy, us=wild)),
            (r.row_distributed, self.change(two, us=(10,) * 3), self.change(two, us=wild)),
            (r.row_three, self.change(three, us=(90000,) * 3), self.change(three, us=wild)),
            (r.row_ratio, self.change(lru, ratio=(0.6, 0.601, 0.602)), self.change(lru, ratio=odd)),
            (r.row_enough, self.change(large, ratio=(0.5,) * 3), self.change(large, ratio=odd)),
            (r.row_lfu, {"small": {"lfu": 0.6}}, self.change(small, ratio=odd)),
            (r.row_tinylfu_small, {"small": {"tinylfu": 0.55}}, self.change(small, ratio=odd)),
            (r.row_sophisticated, {"small": {"gds": 0.4}}, self.change(small, ratio=odd)),
            (r.row_policies, self.change(first, evictions=1),
             self.change(lru, ratio=(0.77, 0.78, 0.80))),
            (r.row_simple_faster, {"cost": {"gds": 0.5}},
             self.change(*(leiden.thread_cell(scale, "gds", n) for n in scale.threads), us=wild)),
            (r.row_conclusion, self.change(backend, us=(9000, 9001, 9002)),
             self.change(backend, us=wild)),
            (r.row_expensive, self.change(leiden.expensive_cell(scale, "lru"), us=(9000,) * 3),
             self.change(leiden.expensive_cell(scale, "lru"), us=wild)),
        ]
        similar = {"cost": {"tinylfu": 1.05}}
        for row, against, open_ in cases:
            base = similar if row is r.row_threads_similar else {}
            for change, expected in ((base, Verdict.HOLDS), (against, Verdict.FAILS),
                                     (open_, Verdict.UNDECIDED)):
                if change is None:  # without a run
                    found = row(good()._replace(runs={}))
                else:
                    found = row(good(**{**base, **change}))
                with self.subTest(row=row.__name__, expected=expected):
                    self.assertIs(found.verdict, expected, found)
        tested = {row.__name__ for row, *_ in cases} | {"row_capacity_arithmetic"}
        self.assertEqual({name for name in vars(r) if name.startswith("row_")}, tested)

    def test_the_arithmetic_can_fail(self):
        self.assertIs(leiden_rows.row_capacity_arithmetic().verdict, Verdict.HOLDS)
        self.assertIs(leiden_rows.row_capacity_arithmetic(2.5e9, 30e3).verdict, Verdict.FAILS)

    def test_each_figure_has_a_row_and_ours_are_labelled(self):
        rows = leiden_rows.rows(good())
        places = " ".join(row.place for row in rows) + " "
        for number in range(1, 12):
            self.assertRegex(places, f"figure {number}\\b")
        for section in ("3.3.1", "3.3.2", "3.3.3", "4.3.1", "4.3.2", "4.3.3", "4.3.4", "Abstract"):
            self.assertIn(section, places)
        self.assertEqual([row.verdict for row in rows if row.ours], [Verdict.HOLDS])


class PartsTest(unittest.TestCase):
    """The backend and the clients by themselves."""

    def serve(self, handler):
        service = http_service.Service(handler, http_service.Link(0, 0))
        threading.Thread(target=service.run, daemon=True).start()
        return service.port

    def ask(self, rest, method, path, tag=None):
        fields = {"if-none-match": tag} if tag else {}
        return rest.answer(http_service.Request(method, path, fields, b""))

    def tag(self, reply):
        return dict(reply.fields)["ETag"]

    def test_the_middleware(self):
        rest = leiden_service.RestService(0.5)
        first = self.ask(rest, "GET", "/users/7")
        self.assertEqual((first.status, first.delay, model.version_of(self.tag(first))),
                         (200, 0.5, 1))
        self.assertEqual(len(first.body), model.make_sizes()["/users/7"])
        known = self.ask(rest, "GET", "/users/7", self.tag(first))
        self.assertEqual((known.status, known.delay), (304, 0))
        # A write of a path changes that, its list, and its user with the user's list's pool; both
        # pools lose tags.
        other = self.tag(self.ask(rest, "GET", "/users/8"))
        skill = self.tag(self.ask(rest, "GET", "/skills/8"))
        written = self.ask(rest, "PUT", "/paths/7")
        self.assertEqual(json.loads(written.body), {"/paths": 2, "/paths/7": 2, "/users/7": 2})
        again = self.ask(rest, "GET", "/users/7", self.tag(first))
        self.assertEqual((again.status, model.version_of(self.tag(again))), (200, 2))
        compared = self.ask(rest, "GET", "/users/8", other)
        self.assertEqual((compared.status, compared.delay), (304, 0.5))
        self.assertEqual(self.ask(rest, "GET", "/skills/8", skill).delay, 0)
        self.assertEqual(json.loads(self.ask(rest, "POST", "/events").body), {"/events": 2})
        self.assertEqual(rest.counts, {"known": 2, "compared": 1, "full": 4})
        self.assertEqual(self.ask(rest, "GET", "/nothing").status, 404)

    def load(self, port, requests):
        load = leiden_load.Load(requests, 1, [port])
        load.run()
        return load

    def test_stale_answers_are_found(self):
        """Of a service that answers what it stored before a write."""
        rest = leiden_service.RestService()
        stored = {}

        def handler(request):
            if request.method == "PUT":
                return rest.answer(request)
            return stored.setdefault(request.path, rest.answer(request))

        requests = [("GET", "/users/3"), ("GET", "/users/4"), ("PUT", "/paths/3"),
                    ("GET", "/users/3"),
                    ("GET", "/users/4"), ("GET", "/paths/3")]
        for answer, stale in ((handler, 1), (rest.answer, 0)):
            tallies = self.load(self.serve(answer), requests).tallies
            self.assertEqual((tallies["reads"], tallies["writes"], tallies["stale"],
                              tallies["failures"]),
                             (5, 1, stale, 0))

    def test_wrong_answers_are_failures(self):
        rest = leiden_service.RestService()

        def handler(request):
            reply = rest.answer(request)
            if request.path == "/users/1":
                return reply._replace(body=reply.body[:-1])
            return reply._replace(status=503) if request.path == "/users/2" else reply

        load = self.load(self.serve(handler), [("GET", f"/users/{number}") for number in range(4)])
        self.assertEqual(load.tallies["failures"], 2)

    def test_a_validated_answer_is_a_hit_and_a_joined_one_is_not(self):
        rest = leiden_service.RestService()
        outcomes = {"/users/0": "sunproxy; hit; ttl=5", "/users/1": "sunproxy; fwd=stale; "
                    "fwd-status=304; stored",
                    "/users/2": "sunproxy; fwd=uri-miss; stored; collapsed",
                    "/users/3": "sunproxy; fwd=uri-miss"}

        def handler(request):
            reply = rest.answer(request)
            return reply._replace(fields=[*reply.fields,
                                          ("Cache-Status", outcomes.get(request.path, ""))])

        load = self.load(self.serve(handler), [*(("GET", path) for path in outcomes),
                                               ("PUT", "/users/9")])
        self.assertEqual([load.tallies[name] for name in ("fresh", "validated", "joined")],
                         [1, 1, 1])
        sizes, sums = model.make_sizes(), load.summarise(5)
        self.assertEqual((sums["hit_ratio"], sums["hits_of_all"]), (2 / 4, 2 / 5))
        self.assertAlmostEqual(sums["byte_hit_ratio"], (sizes["/users/0"] + sizes["/users/1"])
                               / sum(sizes[path] for path in outcomes))
        self.assertEqual(load.summarise(1)["hit_ratio"], 1)

    def test_the_caches_of_a_pool_share_its_places(self):
        counts = collections.Counter(model.cache_of(path, 3) for path in model.all_paths())
        self.assertEqual(set(counts), {0, 1, 2})
        self.assertLess(max(counts.values()), 1.25 * min(counts.values()))

    def test_the_mix(self):
        requests = model.draw_requests(15000, 1)
        self.assertEqual(requests, model.draw_requests(15000, 1))
        self.assertEqual(requests[:100], model.draw_requests(100, 1))
        self.assertNotEqual(requests, model.draw_requests(15000, 2))
        reads = [path for method, path in requests if method == "GET"]
        self.assertAlmostEqual(1 - len(reads) / len(requests), model.WRITE_SHARE, delta=0.02)
        self.assertEqual({method for method, _ in requests}, {"GET", *model.METHODS})
        # By Zipf's law the first gets a share of 1 / H, the second nearly half of that.
        counts = [count for _, count in collections.Counter(reads).most_common(2)]
        weights = [rank ** -model.EXPONENT for rank in range(1, len(model.all_paths()) + 1)]
        for count, weight in zip(counts, weights):
            self.assertAlmostEqual(count / len(reads), weight / sum(weights), delta=0.015)
