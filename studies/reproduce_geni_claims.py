"""What is asked of the GENI study: questions, criteria, verdicts. See reproduce_geni.py."""

import statistics

import reproduce_claims as claims
from reproduce_geni import MOMENTS, ORDERS, POLICIES, ROUNDS, field, is_hit, is_validated


def mean_and_sd(values):
    return statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0


def fetch_times(result, how):
    """[(mean, standard deviation) of each fetch], in seconds."""
    return [mean_and_sd(column) for column in zip(*result.video[how])]


def margin(none, one, other, runs):
    """By how much two times may differ and still tie; see reproduce_claims.py."""
    return max(claims.NOISE * none, claims.SPREADS * ((one[1] ** 2 + other[1] ** 2) / runs) ** 0.5)


def list_times(times):
    return claims.join(f"{mean:.3f} ± {sd:.3f} s" for mean, sd in times)


def assess_first_fetch(result):
    none, cached = fetch_times(result, "without"), fetch_times(result, "with")
    tie = abs(cached[0][0] - none[0][0]) <= margin(none[0][0], cached[0], none[0], len(result.video["with"]))
    return claims.Finding(tie, f"{list_times(cached[:1])} with, {list_times(none[:1])} without")


def assess_later_fetches(result):
    none, cached = fetch_times(result, "without"), fetch_times(result, "with")
    runs = len(result.video["with"])
    votes = {n: [claims.vote(a[0] - b[0], margin(none[0][0], a, b, runs))]
             for n, (a, b) in enumerate(zip(none, cached)) if n}
    text = (f"second and third: {list_times(cached[1:])} with, {list_times(none[1:])} without: "
            + claims.join(f"{a[0] / b[0]:.0f} times" for a, b in list(zip(none, cached))[1:]))
    return claims.Finding(claims.decide(votes), text)


def describe(response):
    how = ("a hit" if is_hit(response) else "validated (304)" if is_validated(response)
           else "fetched whole")
    age = field(response, "age")
    return f"{how}, Age {age}" if age else how


def assess_headers(result, name, last):
    """The second request is a hit. `last`: whether the third is one, too; else it is validated."""
    _, second, third = result.headers[name]
    holds = is_hit(second) and (is_hit(third) if last else is_validated(third))
    text = (f"after {MOMENTS[1]:g} s {describe(second)}; after {MOMENTS[2]:g} s {describe(third)}; the origin "
            f"answered {claims.join(map(str, result.seen[name]))}")
    return claims.Finding(holds and all(r.status == 200 for r in result.headers[name]), text)


def assess_both(result):
    short, long = assess_headers(result, "c1", False), assess_headers(result, "c2", True)
    return claims.Finding(short.holds and long.holds,
                          f"short max-age, late Expires: {short.measured}. Long max-age, past Expires: "
                          f"{long.measured}")


def evicted(result, policy, first):
    """Objects that a first round leaves uncached, by the second round in the opposite order. That begins
    with what was inserted last, so that hits come before the first miss evicts anything."""
    second = next(name for name in ORDERS if name != first)
    hits = result.objects[policy, first, second][0]
    return [size for size, hit in zip(ORDERS[second], hits) if not hit]


def assess_fifo(result):
    gone = {first: evicted(result, "fifo", first) for first in ORDERS}
    holds = all(gone[first] == order[:1] for first, order in ORDERS.items())
    return claims.Finding(holds, "missing after the first round: " + "; ".join(
        f"{order[0]} MB first: {claims.join(f'{size} MB' for size in gone[first]) or 'nothing'}"
        for first, order in ORDERS.items()))


def mean_hits(result, policy, first, second):
    return mean_and_sd([sum(hits) for hits in result.objects[policy, first, second]])


def assess_order(result):
    same = [mean_hits(result, "fifo", first, first)[0] for first in ORDERS]
    opposite = [mean_hits(result, "fifo", first, second)[0] for first, second in ROUNDS if first != second]
    return claims.Finding(max(same) < min(opposite), "hits of five in the same order again: "
                          + claims.join(f"{n:g}" for n in same) + "; in the opposite order: "
                          + claims.join(f"{n:g}" for n in opposite))


def assess_policies(result):
    def total(policy):
        return sum(mean_hits(result, policy, *orders)[0] for orders in ROUNDS)

    fifo, votes = total("fifo"), []
    for policy in POLICIES[1:]:
        error = sum(mean_hits(result, policy, *orders)[1] ** 2 for orders in ROUNDS)
        runs = len(result.objects[(policy, *ROUNDS[0])])
        votes.append(claims.vote(total(policy) - fifo, claims.SPREADS * (error / runs) ** 0.5))
    return claims.Finding(
        claims.decide({"policies": votes}),
        f"hits of the 20 requests of four second rounds: FIFO {fifo:g}; "
        + claims.join(f"{policy.upper()} {total(policy):.3g}" for policy in POLICIES[1:]))


def claim(published, criterion, assess):
    return claims.Claim("geni", "GENI", published, criterion, assess)


CLAIMS = [
    claim("The first fetch of a video of 87 MB takes as long through the cache as without it",
          f"times tie (within {100 * claims.NOISE:.0f} %, or the spread)", assess_first_fetch),
    claim("The second and third fetch are faster with a cache", "each beyond noise and spread",
          assess_later_fetches),
    claim("a: Expires alone states the lifetime: a hit before it, a validation after it",
          "Cache-Status, and a 304 of the origin", lambda result: assess_headers(result, "a", False)),
    claim("b: max-age alone states the lifetime likewise", "Cache-Status, and a 304 of the origin",
          lambda result: assess_headers(result, "b", False)),
    claim("c: of max-age and Expires, max-age counts", "whichever of the two is the longer lifetime",
          assess_both),
    claim("Five objects of 293 MB in 256 MB: FIFO evicts the one that was requested first, in both orders",
          "the only one that misses in the opposite order", assess_fifo),
    claim("The order decides what FIFO hits in a second round", "fewer hits in the same order than in the "
          "opposite one, for both", assess_order),
    claim("Other policies hit more than FIFO here", "no policy less, over both orders of both rounds",
          assess_policies),
]


def assess(result):
    return [claims.Row(one, one.assess(result), None) for one in CLAIMS]
