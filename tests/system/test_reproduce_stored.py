"""The study of parallelism with pages on disk, small, and its verdicts on measurements that are made up."""

import json
import sys
import unittest

import harness
import made_up
from made_up import FAILS, HOLDS, UNDECIDED

SCRIPT = harness.TOP / "studies/reproduce.sh"
sys.path.insert(0, str(harness.TOP / "studies"))
import reproduce_parallel as parallel
import reproduce_stored as stored
import reproduce_stored_page as page
import reproduce_stored_rows as claims
from reproduce_parallel_runs import Run


class StoredTest(harness.SystemTest):
    seconds = 60
    needs = (harness.SUNPROXYD, harness.SUNPROXY, harness.ORIGIN)

    def test_smoke(self):
        out = self.dir / "reproduce"
        env = {"SUNPROXY_BUILD": str(harness.BUILD), "SUNPROXY_ORIGIN": str(harness.ORIGIN)}
        done = self.run_program([SCRIPT, "--study", "stored", "--smoke", "--out", out], seconds=500, env=env)
        self.assertEqual(done.returncode, 0, done.stderr.decode() + done.stdout.decode())
        data = json.loads((out / "reproduce.json").read_text())
        study = data["studies"]["stored"]
        rows = {row["place"]: row["verdict"] for row in data["papers"][0]["rows"] if row["ours"]}
        self.assertIn("holds", rows.values())
        # Each run of the daemon has written all of its pages: of both traces, of those with the web's
        # latency, and of those that are read.
        extent, runs = stored.SMOKE, len(stored.SMOKE.threads) * stored.SMOKE.repeats
        asked = runs * sum(extent.traces) + extent.repeats * (extent.real_trace + extent.urls)
        self.assertEqual(study["written"], [asked, asked])
        for seconds in (study["from_disk_seconds"], study["from_memory_seconds"]):
            self.assertEqual(len(seconds), extent.repeats)
            self.assertTrue(all(one > 0 for one in seconds), seconds)


class StoredRowsTest(unittest.TestCase):
    def result(self, real=(128, 128, 43), weak=(0.81, 0.79), disk=0.0001, written=(9, 9),
               noise=made_up.Noise(3, 0.001)):
        extent = stored.FULL
        runs = {}
        for name in ("pool", "executor"):
            for trace in extent.traces:
                for threads in extent.threads:
                    speed_up = threads * dict(zip(extent.weak, weak)).get((trace, threads), 1)
                    runs[name, trace, threads] = [Run(trace, value, 0.1) for value
                                                  in noise.values(trace * 0.01 / speed_up)]
        latencies = {name: [Run(656, value, 0.1) for value in noise.values(656 / rate)]
                     for name, rate in zip(("pool", "sunproxyd", "executor"), real)}
        study = parallel.Study(extent, list(latencies), runs, latencies, {}, {}, None, 0)
        return stored.Result(study, noise.values(disk), noise.values(disk / 2), written)

    def verdicts(self, result):
        return [claims.throughput(result.study).verdict, claims.weak_scaling(result.study).verdict,
                claims.from_disk(result).verdict, claims.all_written(result).verdict,
                claims.costs_nothing(result).verdict]

    def test_verdicts(self):
        self.assertEqual(self.verdicts(self.result()), [HOLDS] * 5)
        self.assertEqual(self.verdicts(self.result((60, 120, 60), (0.8, 0.3), 0.4, (8, 9))), [FAILS] * 5)
        found = self.verdicts(self.result((128, 120, 50), disk=0.05, noise=made_up.Noise(3, 0.7)))
        self.assertEqual(found, [UNDECIDED] * 3 + [HOLDS, UNDECIDED])

    def test_every_statement_on_the_pool_has_a_row(self):
        result = self.result()
        rows = claims.paper(result, 1).rows
        self.assertEqual(len(rows), len(claims.ON_STUDY) + 4)
        self.assertEqual(sum(row.ours for row in rows), 2)
        self.assertIn("with a store, 656 URLs", page.section(result))


if __name__ == "__main__":
    unittest.main()
