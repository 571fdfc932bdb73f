"""What is asked of the Leiden study: questions, criteria, verdicts. See reproduce_leiden.py."""

import math
import statistics

import reproduce_claims as claims
import reproduce_leiden as leiden

# The modes in which every cache gets to know of every write.
COMPLETE = ("tags", "validate")


def percent(spread):
    """A ratio and its standard deviation."""
    return f"{100 * spread.mean:.1f} ± {100 * spread.sd:.1f} %"


def compare(one, other, share=1):
    """The vote on the first spread being larger than a share of the other. Runs with the same seed have the
    same requests, so what counts is how much the difference varies over the seeds."""
    apart = [a - share * b for a, b in zip(one.values, other.values)]
    return claims.vote(statistics.mean(apart), claims.SPREADS * statistics.stdev(apart) / math.sqrt(len(apart)))


def sums(result, modes, caches=None):
    """(stale answers, answers) of all cells of these modes."""
    chosen = [one for cell, one in result.cells.items()
              if cell.mode in modes and (caches is None or cell.caches in caches)]
    return sum(one.stale for one in chosen), sum(one.reads for one in chosen)


def assess_stale(result):
    stale, reads = sums(result, COMPLETE)
    control, asked = sums(result, ["url"])
    # Where only the written URL is removed there must be some: otherwise the check finds nothing.
    holds = None if control == 0 and stale == 0 else stale == 0
    return claims.Finding(holds, f"{stale} of {reads:,} answers to reads; where only the written URL is removed, "
                          f"{control:,} of {asked:,}")


def assess_every_cache(result):
    several = [count for count in result.scale.caches if count > 1]
    one, asked = sums(result, ["tags, one cache"], several)
    every, reads = sums(result, ["tags"], several)
    return claims.Finding(one > 0 and every == 0,
                          f"with {claims.join(map(str, several))} caches: {one:,} stale of {asked:,} with rules in the "
                          f"first alone, {every} of {reads:,} with purges in the others")


def assess_validation(result):
    votes, texts = {"objects": [], "bytes": []}, []
    pairs = zip(leiden.mode_cells(result.scale, "tags"), leiden.mode_cells(result.scale, "validate"))
    for removed, validated in pairs:
        a, b = result.cells[removed], result.cells[validated]
        votes["objects"].append(compare(b.object_ratio, a.object_ratio))
        votes["bytes"].append(compare(b.byte_ratio, a.byte_ratio))
        texts.append(f"{removed.caches}: objects {percent(a.object_ratio)} and {percent(b.object_ratio)}, bytes "
                     f"{percent(a.byte_ratio)} and {percent(b.byte_ratio)}")
    return claims.Finding(claims.decide(votes), "removed and validated, by number of caches: " + "; ".join(texts))


def assess_steps(result, cells, sign):
    """Whether the object hit ratio rises (sign 1) or falls (-1) from each cell to the next."""
    ratios = [result.cells[cell].object_ratio for cell in cells]
    return [compare(b, a) if sign > 0 else compare(a, b) for a, b in zip(ratios, ratios[1:])]


def assess_requests(result):
    cells = leiden.request_cells(result.scale)
    return claims.Finding(
        claims.decide({"requests": assess_steps(result, cells, 1)}),
        claims.join(f"{cell.requests:,}: {percent(result.cells[cell].object_ratio)}" for cell in cells))


def assess_caches(result):
    groups = {mode: assess_steps(result, leiden.mode_cells(result.scale, mode), -1) for mode in COMPLETE}
    return claims.Finding(claims.decide(groups), "; ".join(
        f"{mode}: " + claims.join(percent(result.cells[cell].object_ratio)
                                  for cell in leiden.mode_cells(result.scale, mode)) for mode in COMPLETE))


def smallest_share(result, policy):
    """The smallest capacity that was run and has ENOUGH of an unbounded cache's hit ratio; None: none has."""
    unbounded = result.cells[result.scale.base].object_ratio.mean
    return next((cell.share for cell in leiden.size_cells(result.scale, policy)
                 if result.cells[cell].object_ratio.mean >= leiden.ENOUGH * unbounded), None)


def assess_half(result):
    unbounded = result.cells[result.scale.base].object_ratio
    groups, texts = {}, []
    for policy in leiden.POLICIES:
        largest = [cell for cell in leiden.size_cells(result.scale, policy) if cell.share <= 50][-1]
        groups[policy] = [compare(result.cells[largest].object_ratio, unbounded, leiden.ENOUGH)]
        share = smallest_share(result, policy)
        texts.append(f"{policy.upper()} {f'{share} %' if share else 'none that was run'}")
    return claims.Finding(claims.decide(groups), f"unbounded {percent(unbounded)}; the smallest that was "
                          f"run with {100 * leiden.ENOUGH:.0f} % of that: {claims.join(texts)}")


def claim(published, criterion, assess):
    return claims.Claim("leiden", "Leiden", published, criterion, assess)


CLAIMS = [
    claim("No answer is stale if writes invalidate pools in every cache",
          "none of any run is older than the last write that was answered before the request; and the check "
          "finds stale answers where only the written URL is removed", assess_stale),
    claim("With several caches, a write must reach each of them",
          "stale answers with rules in the first cache alone, and none with purges in the others",
          assess_every_cache),
    claim("Validation by entity tags keeps what the invalidation of a pool would lose",
          "more hits, of objects and of bytes, than where pools are removed, for each number of caches",
          assess_validation),
    claim("The hit ratio rises with the number of requests", "of objects, from each number to the next",
          assess_requests),
    claim("More caches before one service hit less", "of objects, from each number of caches to the next",
          assess_caches),
    claim("A cache of half the bytes has 90 % of the hit ratio of an unbounded one",
          "of objects, each policy", assess_half),
]


def assess(result):
    return [claims.Row(one, one.assess(result), None) for one in CLAIMS]
