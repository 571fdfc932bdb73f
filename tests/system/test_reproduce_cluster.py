"""The study on several caches, small, and its verdicts on measurements that are made up."""

import json
import sys
import unittest

import harness
from made_up import CANNOT, FAILS, HOLDS, UNDECIDED

SCRIPT = harness.TOP / "studies/reproduce.sh"
sys.path.insert(0, str(harness.TOP / "studies"))
import reproduce_cluster as cluster
import reproduce_cluster_page as page
import reproduce_cluster_rows as claims
import reproduce_leiden as leiden
from reproduce_cluster import ALONE, PEERS, SHARED


class ClusterStudyTest(harness.SystemTest):
    seconds = 60
    needs = (harness.SUNPROXYD, harness.SUNPROXY)

    def test_smoke(self):
        out = self.dir / "reproduce"
        done = self.run_program([SCRIPT, "--study", "cluster", "--smoke", "--out", out], seconds=500,
                                env={"SUNPROXY_BUILD": str(harness.BUILD)})
        self.assertEqual(done.returncode, 0, done.stderr.decode() + done.stdout.decode())
        cells = json.loads((out / "reproduce.json").read_text())["studies"]["cluster"]["cells"]
        self.assertLessEqual({(PEERS, 2), (PEERS, 3), (ALONE, 1), (ALONE, 3)},
                             {(cell["sharing"], cell["caches"]) for cell in cells})
        for cell in cells:
            for run in cell["runs"]:
                self.assertEqual((run["tallies"]["failures"], run["tallies"]["stale"]), (0, 0), cell)
                self.assertEqual(run["tallies"]["reads"] + run["tallies"]["writes"], cell["requests"])


class ClusterRowsTest(unittest.TestCase):
    def result(self, times=(1000, 3000, 2000), ratios=(0.5, 0.5, 0.5), small=(0.2, 0.4, 0.1),
               full=(500, 500, 900), stale=0, spread=0.001, sharings=(PEERS, SHARED)):
        """times by number of caches; ratios and bodies of one cache, shared and alone."""
        scale = cluster.FULL._replace(seeds=[1, 2, 3])

        def runs(us, ratio, bodies):
            # The same in one cache and in several, for other seeds.
            parts = [1 - spread, 1 + spread * (1 + us / 1e5), 1 + spread / 3]
            return [leiden.Run({"stale": stale, "reads": 100},
                               [{"mean_us": us * part, "hit_ratio": ratio * part}],
                               {"full": bodies * part}, 0) for part in parts]

        found = {}
        for one in cluster.cells(scale, sharings):
            kind = 0 if one.caches == 1 else 2 if one.sharing == ALONE else 1
            ratio = (small if one.megabytes == scale.small else ratios)[kind]
            found[one] = runs(times[one.caches - 1], ratio, full[kind])
        return cluster.Result(scale, found, list(sharings))

    def verdicts(self, result):
        return [row.verdict for row in claims.rows(result)]

    def test_verdicts(self):
        self.assertEqual(self.verdicts(self.result()), [HOLDS] * 10)
        self.assertEqual(self.verdicts(self.result((3000, 1000, 2000), (0.5, 0.3, 0.5), (0.4, 0.2, 0.3),
                                                   (500, 900, 500), 1)), [FAILS] * 10)
        found = self.verdicts(self.result((1000, 1001, 1000.5), (0.5, 0.51, 0.5), (0.4, 0.41, 0.4),
                                          (500, 501, 502), 0, 0.9))
        self.assertEqual(found[:4] + found[6:], [UNDECIDED] * 7 + [HOLDS])

    def test_without_memcached(self):
        found = claims.rows(self.result(sharings=(PEERS,)))
        self.assertEqual([row.verdict is CANNOT for row in found],
                         ["--shared" in row.place for row in found])
        self.assertIn("with --peers, 4 threads", page.section(self.result()))


if __name__ == "__main__":
    unittest.main()
