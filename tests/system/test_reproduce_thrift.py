"""The Thrift study of make reproduce: its table, and the verdicts on measurements that are made
up."""

import json
import sys
import unittest

import harness
import made_up
from made_up import FAILS, HOLDS, UNDECIDED

SCRIPT = harness.TOP / "studies/reproduce.sh"
sys.path.append(str(harness.TOP / "studies"))
import reproduce_thrift as thrift
import reproduce_thrift_rows as claims
from replays import Part

SIZES = [64, 128, 192, 256]
NONE = 100.0


def study(hits, times, noise=made_up.Noise(5), loop=(0, 40), refusing=(10, 20), hit_us=1000):
    """hits and times: {workload: {policy: [by size]}}."""
    parts = {}
    for workload in thrift.WORKLOADS:
        runs = {(policy, kb): [made_up.run(ratio, ms, ["hit", "miss"], "ab", [hit_us, 100000])
                               for ratio, ms in zip(
                                   noise.values(hits[workload][policy][n]),
                                   noise.values(times[workload][policy][n]))]
                for policy in thrift.POLICIES for n, kb in enumerate(SIZES)}
        parts[workload] = Part(workload, list(thrift.POLICIES), SIZES,
                               [made_up.run(0, ms) for ms in noise.values(NONE)], runs)
    others = {(workload, policy, kb): noise.values(hits[workload][policy][n])
              for workload in thrift.WORKLOADS
              for policy in thrift.POLICIES for n, kb in enumerate(SIZES)}
    return thrift.Study(thrift.FULL, parts, {name: [20000] * 25 for name in thrift.WORKLOADS},
                        dict(zip(["lru", "rand", "lfu"], [loop[0], loop[1], 3])), refusing, others)


# As the text has it.
HITS = {"random": {"lru": [10, 30, 45, 60], "rand": [13, 31, 42, 55], "lfu": [14, 32, 40, 50]},
        "repeated": {"lru": [40, 70, 83.3, 83.3], "rand": [38, 65, 81, 83.2],
                     "lfu": [30, 32, 34, 36]}}
TIMES = {"random": {"lru": [70, 65, 60, 50], "rand": [72, 67, 62, 52], "lfu": [74, 70, 65, 60]},
         "repeated": {"lru": [90, 50, 17, 17], "rand": [92, 55, 20, 18], "lfu": [60, 58, 56, 54]}}
# The opposite: more memory is worse, LFU is the best, no cache is the fastest.
AGAINST_HITS = {"random": {"lru": [30, 25, 15, 10], "rand": [20, 19, 18, 12],
                           "lfu": [25, 24, 23, 22]},
                "repeated": {"lru": [40, 30, 10, 10], "rand": [50, 40, 30, 20],
                             "lfu": [60, 70, 80, 83]}}
AGAINST_TIMES = {"random": {"lru": [150, 100, 110, 210], "rand": [140, 100, 105, 220],
                            "lfu": [130, 100, 104, 190]},
                 "repeated": {"lru": [110, 120, 130, 210], "rand": [120, 125, 128, 220],
                              "lfu": [190, 150, 120, 200]}}
# In the text these expectations are not met, and neither does its own figure 2.
EXPECTATIONS = {"expected_random": FAILS, "expected_repeated": FAILS}


class ThriftClaimsTest(unittest.TestCase):
    def test_what_the_text_states_holds(self):
        found = made_up.verdicts(claims.STATEMENTS, study(HITS, TIMES))
        self.assertEqual(found, {**dict.fromkeys(found, HOLDS), **EXPECTATIONS})
        self.assertEqual(len(found), 26)

    def test_each_statement_can_fail(self):
        against = study(AGAINST_HITS, AGAINST_TIMES, loop=(4, 40), refusing=(20, 10), hit_us=20000)
        against = against._replace(bytes={name: [1000] * 25 for name in thrift.WORKLOADS})
        found = made_up.verdicts(claims.STATEMENTS, against)
        # Time saved on the random workload is less than nothing here.
        still = made_up.verdicts(claims.STATEMENTS, study(HITS, {**TIMES, "random": {
            policy: [90, 50, 20, 10] for policy in thrift.POLICIES}}))
        found["not_substantial"] = still["not_substantial"]
        self.assertEqual(found, dict.fromkeys(found, FAILS) | {"expected_repeated": FAILS})

    def test_each_statement_on_runs_is_undecided_within_their_spread(self):
        found = made_up.verdicts(claims.STATEMENTS, study(HITS, TIMES, made_up.Noise(5, 3.0)))
        exact = ["loop", "evictions_needed", "large_pages", "magnitude"]
        self.assertEqual({name: one for name, one in found.items() if name not in exact},
                         {name: UNDECIDED for name in found if name not in exact})
        slow = study(HITS, TIMES)
        for part in slow.parts.values():
            for n, run in enumerate(part.runs["lru", SIZES[-1]]):
                part.runs["lru", SIZES[-1]][n] = run._replace(us=[5000 * (1 + n),
                                                                  100000 + 30000 * n])
        self.assertIs(claims.magnitude(slow).verdict, UNDECIDED)

    def test_the_optimum_is_an_equality(self):
        for lru, expected in ((83.3, HOLDS), (79, HOLDS), (77, FAILS), (90, FAILS)):
            hits = {**HITS, "repeated": {**HITS["repeated"], "lru": [40, 70, lru, 83.3]}}
            with self.subTest(lru=lru):
                self.assertIs(claims.optimum(study(hits, TIMES)).verdict, expected)

    def test_every_figure_has_a_row(self):
        places = " ".join(row.place for row in claims.rows(study(HITS, TIMES)))
        for figure in range(1, 5):
            self.assertIn(f"Figure {figure}", places)
        for number in range(1, 4):
            self.assertIn(f"Conclusion {number}", places)


class ThriftSmokeTest(harness.SystemTest):
    seconds = 45
    needs = (harness.SUNPROXYD, harness.SUNPROXY, harness.ORIGIN)

    def test_smoke(self):
        out = self.dir / "reproduce"
        done = self.run_program([SCRIPT, "--study", "thrift", "--smoke", "--out", out], seconds=500,
                                env=harness.study_environment())
        self.assertEqual(done.returncode, 0, done.stderr.decode() + done.stdout.decode())
        data = json.loads((out / "reproduce.json").read_text())
        paper, = data["papers"]
        self.assertEqual(len(paper["rows"]), len(claims.STATEMENTS))
        workloads = data["studies"]["thrift"]["workloads"]
        self.assertEqual(len(workloads["random"]["runs"]), 3 * 2)
        self.assertEqual(len(workloads["random"]["runs"][0]["runs"]), 2)
        # What needs no time is not changed by --smoke: the loop of the text, simulated.
        self.assertEqual(data["studies"]["thrift"]["loop_hits"]["lru"], 0)
        self.assertEqual([row["ours"] for row in paper["rows"]].count(True), 3)
        page = (out / "reproduce.html").read_text()
        self.assertEqual(page.count("<svg"), 4)
        self.assertIn("Thrift study: repeated workload", page)
