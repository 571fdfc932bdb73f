"""studies/verdict.py: each outcome of each kind of comparison, and how often chance decides."""

import math
import random
import statistics
import sys
import unittest

import harness

sys.path.append(str(harness.TOP / "studies"))
import verdict
from verdict import Verdict

TRIALS = 1500


class DistributionTest(unittest.TestCase):
    def test_quantiles_are_those_of_the_tables(self):
        # Student's t, two-sided 95 %: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
        for freedom, expected in ((1, 12.706), (2, 4.303), (4, 2.776), (10, 2.228), (30, 2.042),
                                  (100, 1.984),
                                  (math.inf, 1.960)):
            self.assertAlmostEqual(verdict.t_quantile(0.025, freedom), expected, places=3)

    def test_probabilities(self):
        # One degree of freedom is Cauchy's distribution, two have a closed form.
        for t in (-3.0, -0.5, 0.0, 0.5, 1.0, 2.0, 10.0):
            self.assertAlmostEqual(verdict.t_above(t, 1), 0.5 - math.atan(t) / math.pi, places=12)
            self.assertAlmostEqual(verdict.t_above(t, 2), 0.5 - t / (2 * math.sqrt(2 + t * t)),
                                   places=12)
        self.assertAlmostEqual(verdict.t_above(1.0, 1e7), verdict.t_above(1.0, math.inf), places=6)


class OutcomesTest(unittest.TestCase):
    def runs(self, mean, sd=0.1, n=5):
        """Values with exactly this mean and standard deviation."""
        offsets = [i - (n - 1) / 2 for i in range(n)]
        return [mean + sd / statistics.stdev(offsets) * offset for offset in offsets]

    def check(self, comparisons, expected):
        self.assertIs(verdict.decide(comparisons), expected)

    def test_larger(self):
        for a, expected in ((2.0, Verdict.HOLDS), (1.0, Verdict.UNDECIDED),
                            (1.1, Verdict.UNDECIDED),
                            (0.0, Verdict.FAILS)):
            with self.subTest(a=a):
                estimate = verdict.unpaired(self.runs(a), self.runs(1.0))
                self.check([verdict.above(estimate)], expected)
                self.check([verdict.below(estimate._replace(difference=-estimate.difference))],
                           expected)

    def test_larger_by_a_margin(self):
        # A difference that is shown to be smaller than the margin is against the statement.
        for a, expected in ((2.0, Verdict.HOLDS), (1.5, Verdict.UNDECIDED), (1.1, Verdict.FAILS)):
            with self.subTest(a=a):
                self.check([verdict.above(verdict.unpaired(self.runs(a), self.runs(1.0)), 0.5)],
                           expected)

    def test_equal_has_to_be_shown(self):
        for a, sd, expected in ((1.0, 0.1, Verdict.HOLDS), (1.1, 0.1, Verdict.HOLDS),
                                (1.0, 2.0, Verdict.UNDECIDED),
                                (1.5, 0.1, Verdict.UNDECIDED), (2.0, 0.1, Verdict.FAILS),
                                (0.0, 0.1, Verdict.FAILS)):
            with self.subTest(a=a, sd=sd):
                self.check([verdict.equal(verdict.unpaired(self.runs(a, sd), self.runs(1.0, sd)),
                                          0.5)], expected)

    def test_factors_are_two_sided(self):
        for a, expected in ((4.0, Verdict.HOLDS), (3.0, Verdict.FAILS), (5.0, Verdict.FAILS),
                            (4.5, Verdict.UNDECIDED),
                            (3.5, Verdict.UNDECIDED)):
            with self.subTest(a=a):
                self.check(verdict.within_factors(verdict.unpaired, self.runs(a),
                                                  self.runs(1.0, 0.01), 3.5, 4.5),
                           expected)

    def test_a_single_run_decides_nothing(self):
        for make in (verdict.above, lambda e: verdict.equal(e, 1)):
            self.check([make(verdict.unpaired([5.0], [1.0]))], Verdict.UNDECIDED)
            self.check([make(verdict.unpaired([5.0], self.runs(1.0)))], Verdict.UNDECIDED)

    def test_what_does_not_depend_on_chance(self):
        for difference, larger, same in ((1, Verdict.HOLDS, Verdict.FAILS),
                                         (0, Verdict.FAILS, Verdict.HOLDS),
                                         (-1, Verdict.FAILS, Verdict.FAILS)):
            self.check([verdict.above(verdict.exactly(difference))], larger)
            self.check([verdict.equal(verdict.exactly(difference), 0.5)], same)
        self.assertEqual([verdict.decide_exactly(holds) for holds in (True, False, None)],
                         [Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED])

    def test_pairs_leave_out_what_both_have_in_common(self):
        common = [1.0, 5.0, 9.0]
        a, b = [x + d for x, d in zip(common, (0.9, 1.0, 1.1))], common
        self.check([verdict.above(verdict.unpaired(a, b))], Verdict.UNDECIDED)
        self.check([verdict.above(verdict.paired(a, b))], Verdict.HOLDS)

    def test_statements_of_several_comparisons(self):
        larger, same, smaller = (verdict.above(verdict.unpaired(self.runs(a), self.runs(1.0)))
                                 for a in (2.0, 1.0, 0.0))
        self.check([larger, larger], Verdict.HOLDS)
        self.check([larger, same], Verdict.UNDECIDED)
        self.check([larger, same, smaller], Verdict.FAILS)
        self.check([], Verdict.UNDECIDED)
        # In a group one that holds is enough, and none may be against.
        groups = {"a": [larger, same], "b": [same, larger]}
        self.assertIs(verdict.decide_groups(groups), Verdict.HOLDS)
        self.assertIs(verdict.decide_groups({**groups, "c": [same, same]}), Verdict.UNDECIDED)
        self.assertIs(verdict.decide_groups({**groups, "c": [larger, smaller]}), Verdict.FAILS)
        for some, expected in (([larger, smaller], Verdict.HOLDS),
                               ([same, smaller], Verdict.UNDECIDED),
                               ([smaller, smaller], Verdict.FAILS), ([], Verdict.UNDECIDED)):
            self.assertIs(verdict.decide_somewhere(some), expected)
        self.assertIs(verdict.all_of([Verdict.HOLDS, Verdict.UNDECIDED]), Verdict.UNDECIDED)
        self.assertIs(verdict.all_of([Verdict.UNDECIDED, Verdict.FAILS]), Verdict.FAILS)
        self.assertIs(verdict.all_of([Verdict.HOLDS]), Verdict.HOLDS)

    def test_intervals(self):
        self.assertAlmostEqual(verdict.half_width(verdict.of_mean(self.runs(1.0, 1.0, 3))),
                               4.303 / math.sqrt(3), 3)
        self.assertEqual(verdict.half_width(verdict.exactly(1)), 0)
        self.assertEqual(verdict.half_width(verdict.of_mean([1])), math.inf)


class RatesTest(unittest.TestCase):
    """Simulations with a fixed seed: how often chance alone decides."""

    def shares(self, comparisons):
        """Shares of HOLDS and FAILS over the trials; comparisons(draw) makes those of one trial."""
        draw = random.Random(1)
        found = [verdict.decide(comparisons(draw)) for _ in range(TRIALS)]
        return found.count(Verdict.HOLDS) / TRIALS, found.count(Verdict.FAILS) / TRIALS

    def normal(self, draw, n, mean=0.0):
        return [draw.gauss(mean, 1) for _ in range(n)]

    def near(self, share, expected):
        """Within four standard deviations of what this number of trials gives."""
        self.assertAlmostEqual(share, expected,
                               delta=4 * math.sqrt(expected * (1 - expected) / TRIALS))

    def test_runs_without_a_difference(self):
        for n in (2, 3, 5):
            held, failed = self.shares(
                lambda draw: [verdict.above(verdict.paired(self.normal(draw, n),
                                                           self.normal(draw, n)))])
            self.near(held, verdict.ALPHA / 2)
            self.near(failed, verdict.ALPHA / 2)
            held, failed = self.shares(
                lambda draw: [verdict.above(verdict.unpaired(self.normal(draw, n),
                                                             self.normal(draw, n)))])
            self.assertLess(max(held, failed), 1.5 * verdict.ALPHA / 2)

    def test_two_standard_errors_vote_far_more_often(self):
        """What these criteria replace: with three runs 18 % of trials without a difference."""
        draw, votes = random.Random(1), 0
        for _ in range(TRIALS):
            estimate = verdict.paired(self.normal(draw, 3), self.normal(draw, 3))
            votes += abs(estimate.difference) > 2 * estimate.error
        self.near(votes / TRIALS, 0.1835)

    def test_a_difference_of_the_margin_is_seldom_equal(self):
        for mean in (3.0, -3.0):
            held, failed = self.shares(
                lambda draw: [verdict.equal(verdict.of_mean(self.normal(draw, 5, mean)), 3.0)])
            self.near(held, verdict.ALPHA / 2)
            self.near(failed, verdict.ALPHA / 2)

    def test_true_statements_about_many_things_seldom_fail(self):
        _, failed = self.shares(
            lambda draw: [verdict.above(verdict.of_mean(self.normal(draw, 3))) for _ in range(10)])
        self.assertLess(failed, verdict.ALPHA)
