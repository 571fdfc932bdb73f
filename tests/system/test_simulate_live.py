"""That a simulation is what the daemon does."""

import unittest

import harness
from simulate_case import CLASSICS, PAPER, SHIPPED, SimulateCase
from test_paper import FOLDER


class LiveCase(SimulateCase):
    """One trace through the daemon and through the simulator, every policy, several sizes.

    All programs are the release build's: what they print is compared, over tens of thousands of
    requests. ParametersTest does the same with the daemon of the build under test. In the short form
    a policy has one of the sizes, its neighbour in the list another.
    """

    seconds = 20
    client = harness.release_build(harness.RELEASE_SUNPROXY, harness.SUNPROXY)
    program = harness.release_build(harness.RELEASE_SUNPROXYD, harness.SUNPROXYD)
    needs = (harness.ORIGIN, harness.SUNPROXYD, harness.SUNPROXY)

    @staticmethod
    def lines(path):
        """All but the last column, which is the time."""
        return [line.rsplit("\t", 1)[0] for line in path.read_text().splitlines()]

    def runnable(self):
        names = [p["name"] for p in self.policies() if not p["needs_future"]]
        self.assertGreaterEqual(set(names), set(CLASSICS))
        return names

    def compare(self, trace, sizes, capacities, policies=None):
        daemon = self.daemon("--count-bytes", "body", "--freshness", "off",
                             origin=self.origin("--sizes", sizes), program=self.program)
        for place, policy in enumerate(policies or self.runnable()):
            for capacity in capacities if harness.LONG else [capacities[place % len(capacities)]]:
                with self.subTest(policy=policy, capacity=capacity):
                    live, simulated = self.dir / "live.tsv", self.dir / "simulated.tsv"
                    self.sunproxy("replay", trace, "--policy", policy, "--capacity", capacity,
                                  "--log", live, daemon=daemon)
                    self.simulate(trace, "--policy", policy, "--capacity", capacity,
                                  "--sizes", sizes, "--count-bytes", "body", "--log", simulated)
                    mine, theirs = self.lines(simulated), self.lines(live)
                    self.assertGreater(len(mine), 900)
                    for n, (a, b) in enumerate(zip(mine, theirs)):
                        self.assertEqual(a, b, f"request {n}")
                    self.assertEqual(len(mine), len(theirs))


class ShippedLiveTest(LiveCase):
    trace_path = SHIPPED / "History"
    sizes = SHIPPED / "sizes.tsv"

    def test_in_urls(self):
        self.compare(self.trace_path, self.sizes, ["1", "7", "30"])

    def test_in_bytes(self):
        self.compare(self.trace_path, self.sizes, ["30000B", "300K", "1M"])


class ParametersTest(LiveCase):
    seconds = 0
    program = harness.SUNPROXYD

    def test_with_parameters(self):
        self.compare(SHIPPED / "History", SHIPPED / "sizes.tsv", ["300K"], [
            "clock:bits=3", "slru:segments=2", "2q:kin=0.5,kout=1", "lru-k:k=3",
            "s3-fifo:small=0.3,ghost=2,threshold=1", "rand:draw=each", "gdsf:cost=packets",
            "gds:cost=bytes", "lirs:hir=0.2", "w-tinylfu:window=0.2", "tinylfu:sample=5"])


@unittest.skipUnless(FOLDER.exists(), f"{FOLDER} is not here")
class PaperLiveTest(LiveCase):
    def sizes_file(self):
        path = self.dir / "sizes.tsv"
        urls = sorted(set(PAPER.read_text().split()))
        path.write_text("".join(f"{u}\t{harness.fnv1a(u) % 40000}\n" for u in urls))
        return path

    def test_in_urls(self):
        self.compare(PAPER, self.sizes_file(), ["3", "7", "21"])

    def test_in_bytes(self):
        self.compare(PAPER, self.sizes_file(), ["25K", "150kB", "600K"])
