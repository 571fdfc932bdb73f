"""Verdicts on published statements, from repeated runs.

A statement is made of comparisons: a difference of means, and the bounds between which the
statement puts it. The difference has a confidence interval by Student's t distribution, two-sided,
of 1 - ALPHA. A comparison

- holds if the whole interval lies between the bounds,
- does not hold if the whole interval lies outside of them,
- is undecided otherwise.

"A is larger" has the bounds (0, infinity), or a margin instead of 0 where a smaller difference is
of no interest. "A and B are equal" has the bounds (-margin, margin), which is a test of equivalence
(TOST): equality has to be shown, and a wide interval shows nothing. "A is four times B" has two
bounds as well, by within_factors().

A single run has no spread, so its difference has an infinite error, and is undecided. What does not
depend on chance is exactly().
"""

import collections
import enum
import functools
import math
import statistics

ALPHA = 0.05


class Verdict(enum.Enum):
    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"
    CANNOT = "cannot be repeated here"


# ---- Student's t distribution --------------------------------------------------------------------

def _beta_fraction(a, b, x):
    """The continued fraction of the incomplete beta function, by Lentz's method (DLMF 8.17.22)."""
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    value = d
    for m in range(1, 500):
        for factor in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                       -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            c, d = 1 + factor / c, 1 + factor * d
            c, d = c if abs(c) > tiny else tiny, 1 / (d if abs(d) > tiny else tiny)
            value *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return value


def _incomplete_beta(a, b, x):
    """Regularised, for 0 <= x <= 1."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a)
                     - math.lgamma(b))
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(a, b, x) / a
    return 1 - front * _beta_fraction(b, a, 1 - x) / b


def t_above(t, freedom):
    """The probability of a value above t; the degrees of freedom may be infinite."""
    if math.isinf(t):
        return float(t < 0)
    if math.isinf(freedom):
        return math.erfc(t / math.sqrt(2)) / 2
    tail = _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2
    return tail if t >= 0 else 1 - tail


@functools.lru_cache(maxsize=1024)
def t_quantile(above, freedom):
    """The value that is exceeded with this probability, of at most a half."""
    low, high = 0.0, 1.0
    while t_above(high, freedom) > above:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if t_above(middle, freedom) > above else (low, middle)
    return (low + high) / 2


# ---- differences ---------------------------------------------------------------------------------

# A difference of means, its standard error, and the degrees of freedom of that.
Estimate = collections.namedtuple("Estimate", "difference error freedom")


def of_mean(values):
    """The mean of a list of runs."""
    if len(values) < 2:
        return Estimate(statistics.mean(values), math.inf, 1)
    return Estimate(statistics.mean(values), statistics.stdev(values) / math.sqrt(len(values)),
                    len(values) - 1)


def paired(a, b, factor=1):
    """a - factor * b, of runs that belong together one by one (the same seed, hence the same
    requests)."""
    if len(a) != len(b):
        raise ValueError("pairs of unequal lists")
    return of_mean([x - factor * y for x, y in zip(a, b)])


def unpaired(a, b, factor=1):
    """a - factor * b, of independent runs whose variances may differ (Welch)."""
    one, other = of_mean(a), of_mean(b)
    parts = [(one.error ** 2, one.freedom), ((factor * other.error) ** 2, other.freedom)]
    total = sum(variance for variance, _ in parts)
    difference = one.difference - factor * other.difference
    if total == 0 or math.isinf(total):
        return Estimate(difference, math.sqrt(total), min(one.freedom, other.freedom))
    return Estimate(difference, math.sqrt(total),
                    total ** 2 / sum(variance ** 2 / freedom for variance, freedom in parts))


def exactly(difference):
    """A difference that does not depend on chance: computed, or equal in every run."""
    return Estimate(difference, 0.0, math.inf)


def half_width(estimate, alpha=ALPHA):
    """Of the confidence interval: the difference is stated as `difference` ± this."""
    if estimate.error in (0, math.inf):
        return estimate.error
    return t_quantile(alpha / 2, estimate.freedom) * estimate.error


# ---- comparisons ---------------------------------------------------------------------------------

# The statement that the difference lies between the bounds, of which either may be infinite.
Comparison = collections.namedtuple("Comparison", "estimate low high")


def above(estimate, margin=0.0):
    """The difference is larger than the margin."""
    return Comparison(estimate, margin, math.inf)


def below(estimate, margin=0.0):
    """The difference is smaller than the margin."""
    return Comparison(estimate, -math.inf, margin)


def equal(estimate, margin):
    """Neither is larger than the other by the margin or more."""
    return Comparison(estimate, -margin, margin)


def within_factors(difference, a, b, low, high):
    """mean(a) lies between low * mean(b) and high * mean(b): two comparisons; `difference` is
    paired or unpaired."""
    return [above(difference(a, b, low)), below(difference(a, b, high))]


def _below_probability(estimate, bound):
    """How likely a difference of at least this is, if the true one is at the bound."""
    if math.isinf(bound) or math.isinf(estimate.error):
        return 0.0 if bound == -math.inf else 1.0
    if estimate.error == 0:
        return 0.0 if estimate.difference > bound else 1.0
    return t_above((estimate.difference - bound) / estimate.error, estimate.freedom)


def _mirrored(estimate):
    return estimate._replace(difference=-estimate.difference)


def _is_inside(one, alpha):
    return max(_below_probability(one.estimate, one.low),
               _below_probability(_mirrored(one.estimate), -one.high)) <= alpha / 2


def _is_outside(one, alpha):
    """The difference is beyond either bound. An exact one at a bound is."""
    if one.estimate.error == 0:
        return not one.low < one.estimate.difference < one.high
    beyond = [] if math.isinf(one.high) else [_below_probability(one.estimate, one.high)]
    beyond += [] if math.isinf(one.low) else [_below_probability(_mirrored(one.estimate), -one.low)]
    return min(beyond, default=1.0) <= alpha / 2


def decide_groups(groups, alpha=ALPHA):
    """The verdict on a statement about each of several things: {name: [Comparison]}.

    It does not hold if any comparison does not. It holds if, in each group, at least one does; the
    others of the group may be undecided, as those of policies at sizes where they hardly differ.
    The level of each comparison is divided by their number (Bonferroni), so that a true statement
    about many things is not refused, nor a group accepted, by chance more often than one comparison
    is."""
    every = [one for group in groups.values() for one in group]
    if any(_is_outside(one, alpha / len(every)) for one in every):
        return Verdict.FAILS
    held = [any(_is_inside(one, alpha / len(group)) for one in group) for group in groups.values()]
    return Verdict.HOLDS if held and all(held) else Verdict.UNDECIDED


def decide(comparisons, alpha=ALPHA):
    """The verdict on a statement in which every comparison must hold. (All of them hold by chance
    less often than one does, so the level of that is not divided.)"""
    return decide_groups({number: [one] for number, one in enumerate(comparisons)}, alpha)


def decide_somewhere(comparisons, alpha=ALPHA):
    """The verdict on a statement in which one comparison is enough ("sometimes"). It does not hold
    if every one of them does not. The level of one that holds is divided by their number."""
    if any(_is_inside(one, alpha / len(comparisons)) for one in comparisons):
        return Verdict.HOLDS
    refuted = comparisons and all(_is_outside(one, alpha) for one in comparisons)
    return Verdict.FAILS if refuted else Verdict.UNDECIDED


def decide_exactly(holds):
    """The verdict on what does not depend on chance; None is undecided."""
    return {True: Verdict.HOLDS, False: Verdict.FAILS, None: Verdict.UNDECIDED}[holds]


def all_of(verdicts):
    """The verdict on a statement of several parts, each of which has one."""
    verdicts = list(verdicts)
    for worst in (Verdict.FAILS, Verdict.UNDECIDED, Verdict.CANNOT):
        if worst in verdicts:
            return worst
    return Verdict.HOLDS
