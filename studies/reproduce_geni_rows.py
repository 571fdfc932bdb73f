"""The table of the GENI study: each figure, table and stated result of "Web Caching", CS655 GENI
mini project final report. See reproduce_geni.py for what is run, and verdict.py for verdicts.
"""

import statistics

import geni_origin
import reproduce_geni as geni
import verdict
from paper_table import Paper, Row, cannot
from statements import join, plus_minus
from verdict import decide, decide_exactly

# The criteria. Shares by which a mean may differ from the printed one and be equal to it.
SECONDS_MARGIN = 0.05
LOOP_MARGIN = 0.05
ROW_MARGIN = 0.10
# Percentage points about 27.95.
REDUCTION, REDUCTION_MARGIN = 27.95, 2.0
# Seconds: Age is rounded to one, and a request takes time.
AGE_MARGIN = 1.5


def list_mb(sizes):
    return join(f"{size} MB" for size in sizes) or "none"


def mean_and_error(values, unit, digits=2):
    return f"{plus_minus(values, f'%.{digits}f')} {unit}"


def observed(holds, *responses):
    """The verdict on what these responses show; a failed or wrong one (or none) shows nothing."""
    return decide_exactly(holds if responses and all(one is not None and one.right
                                                     for one in responses) else None)


def near(values, printed, margin):
    """That a mean is equal to a printed one."""
    estimate = verdict.of_mean(values)
    return verdict.equal(estimate._replace(difference=estimate.difference - printed),
                         margin * printed)


# ---- 3.1 -----------------------------------------------------------------------------------------

def seconds(result, how):
    return [response.seconds for response in result.fetches[how]]


def reduction(cached, none):
    return 100 * (1 - statistics.mean(cached) / statistics.mean(none))


def row_table_of_latency(result):
    comparisons, texts = [], []
    for how, printed in geni.PUBLISHED_SECONDS.items():
        mean = statistics.mean(printed)
        comparisons.append(near(seconds(result, how), mean, SECONDS_MARGIN))
        texts.append(f"{how} a cache {join(f'{one:.3f}' for one in seconds(result, how))}, "
                     + mean_and_error(seconds(result, how), "s", 3))
    return Row("3.1, table", "Seconds (time_total of curl) of an 87 MB video: 11.273102, 8.905976, "
               "10.915969, average 10.365, without a cache; 7.459160, 7.443174, 7.554811, average "
               "7.4857, with a warm one",
               f"both means within {100 * SECONDS_MARGIN:.0f} % of the printed ones. The "
               "bandwidths of the links are inputs, from these means; the table tests whether the "
               "cache adds to them",
               "; ".join(texts), decide(comparisons))


def row_faster(result):
    none, cached = seconds(result, "without"), seconds(result, "with")
    return Row("3.1", "A cache shortens the retrieval of an object that it has",
               "the mean with a cache is smaller", f"{mean_and_error(cached, 's', 3)} with, "
               f"{mean_and_error(none, 's', 3)} without",
               decide([verdict.above(verdict.unpaired(none, cached))]))


def row_reduction(result):
    none, cached = seconds(result, "without"), seconds(result, "with")
    low, high = (1 - (REDUCTION + sign * REDUCTION_MARGIN) / 100 for sign in (1, -1))
    return Row("3.1, sentence below the table; 4, item 1",
               "With a cache retrieval is faster by 27.95 % on average",
               f"the mean with a cache is shorter by 27.95 ± {REDUCTION_MARGIN:g} points",
               f"{reduction(cached, none):.2f} %",
               decide(verdict.within_factors(verdict.unpaired, cached, none, low, high)))


def row_arithmetic(published):
    none, cached = published["without"], published["with"]
    of_means = reduction(cached, none)
    of_pairs = statistics.mean(100 * (1 - a / b) for a, b in zip(cached, none))
    return Row("27.95 %", "The percentage follows from the table above it",
               "it is the reduction of the averages, or the average of the reductions, to two "
               "digits",
               f"the averages give {of_means:.2f} %, the three pairs {of_pairs:.2f} % on average",
               decide_exactly(any(round(one, 2) == REDUCTION for one in (of_means, of_pairs))),
               ours=True)


# ---- 3.2 -----------------------------------------------------------------------------------------

def age(response):
    text = geni.field(response, "age")
    return int(text) if text.isdigit() else 0


def describe(response):
    return (f"after {response.moment:.1f} s "
            f"{'a hit' if geni.is_hit(response) else 'from the source'}, Age {age(response)}, "
            f"{response.size:,} bytes")


def split_by_expiry(result):
    """Of the page with max-age, the hits between its first two fetches, and the answer of the
    second (or None)."""
    responses = result.headers["max-age"][1:]
    second = next((n for n, one in enumerate(responses) if not geni.is_hit(one)), None)
    return responses[:second], None if second is None else responses[second]


def row_way(result):
    """2.1: hit, miss, stale."""
    page, both = result.headers["max-age"], result.headers["both"]
    right = (not geni.is_hit(page[0]) and geni.is_hit(both[1]) and result.seen["both"] == [200]
             and len(result.seen["max-age"]) >= 2)
    return Row("2.1", "The cache returns an object that it has and that is fresh by itself, and "
               "gets one that it lacks or that is stale from the source, stores and returns it",
               "the first request reaches the source, one within the lifetime does not, one after "
               "it does",
               f"{len(result.seen['max-age'])} of {len(page)} requests for the page with max-age "
               f"reached the source, {len(result.seen['both'])} of {len(both)} for that with a "
               f"lifetime of {result.scale.lifetimes.long} s",
               observed(right, *page, *both))


def row_age_at_limit(result):
    hits_before, _ = split_by_expiry(result)
    last = hits_before[-1] if hits_before else None
    limit = result.scale.lifetimes.max_age
    return Row("3.2 (a), left response; 4, item 2",
               "Age: 120 with Cache-Control: max-age=120 is fresh: an object is fresh if "
               "Age ≤ max-age",
               f"an answer of the cache alone has Age {limit}; requests every {geni.INTERVAL:g} s",
               f"the last hit: {describe(last)}. RFC 9111, 4.2, has a response fresh while its "
               "lifetime exceeds its age"
               if last else "no hit", observed(last is not None
                                               and age(last) == limit, *result.headers["max-age"]))


def row_refetch(result):
    _, after = split_by_expiry(result)
    new = geni_origin.PAGE_BYTES[1]
    first = result.headers["max-age"][0]
    right = (after is not None and age(after) <= AGE_MARGIN
             and (first.size, after.size) == geni_origin.PAGE_BYTES)
    return Row("3.2 (a), right response",
               "Beyond max-age the cache updates the object from the source: Age 0, and the "
               "Last-Modified, ETag and length (238 instead of 228 bytes) of the modified page",
               f"the first answer after the last hit has Age 0 or 1 and {new} bytes",
               f"first {describe(first)}; then {describe(after)}" if after else "no second fetch",
               observed(right, first, *result.headers["max-age"][1:]))


def row_age(result):
    """Age is the time since the fetch."""
    first = result.headers["max-age"][0]
    apart = [age(one) - (one.moment - first.moment) for one in split_by_expiry(result)[0]]
    apart += [age(one) - (one.moment - some[0].moment) for some in (result.headers["expires"],
                                                                    result.headers["both"])
              for one in some[1:] if geni.is_hit(one)]
    worst = max(map(abs, apart), default=None)
    return Row("3.2 (a)", "Age counts from the last update of the object",
               f"of each hit within {AGE_MARGIN:g} s (Age is rounded, and a request takes time)",
               f"{len(apart)} hits, off by at most {worst:.2f} s" if apart else "no hit",
               decide_exactly(worst <= AGE_MARGIN if apart else None))


def row_expires_to_max_age(result):
    hit = result.headers["expires"][1]
    control = geni.field(hit, "cache-control")
    return Row("3.2 (b); 4, item 2",
               "From Expires alone the cache (ATS) calculates a max-age: the response has "
               "Cache-Control: max-age=180 and Expires 180 s after Date",
               "a response from the cache has a max-age that the source did not send",
               f"Cache-Control: {control or 'absent'}; Expires passes through unchanged, and its "
               "lifetime is used (next row). The paper shows no response of the source: Apache’s "
               "mod_expires sends Expires and max-age together",
               observed("max-age" in control, hit))


def row_expires_lifetime(result):
    _, within, behind = result.headers["expires"]
    return Row("3.2 (b), response", "An object with Expires alone is fresh at Age 95 of 180 s",
               f"at {result.scale.expires_at} s a hit of the whole object",
               describe(within) + (f"; beyond the lifetime, {describe(behind)}; the source "
                                   f"answered {join(result.seen['expires'])}"),
               observed(geni.is_hit(within), within))


def row_priority(result):
    hit = result.headers["both"][1]
    lifetimes = result.scale.lifetimes
    return Row("3.2 (c); 4, item 2",
               "Of max-age=600 and Expires 180 s after Date max-age has priority: Age 181 is fresh",
               f"with max-age={lifetimes.long} and Expires after {lifetimes.expires} s a hit at "
               f"{result.scale.both_at} s", describe(hit),
               observed(geni.is_hit(hit) and age(hit) >= result.scale.both_at - 1, hit))


# ---- 3.3 -----------------------------------------------------------------------------------------

def speeds(result, order):
    """Of each request, in MiB/s."""
    return [response.speed / geni.MIB for response in result.sequences[order]]


def hits(result, order):
    return [geni.is_hit(response) for response in result.sequences[order]]


def row_evicted(result):
    left = [size for size in geni.OBJECTS if size not in result.stored]
    return Row("3.3, step 2, both lists",
               "Objects of 83, 52, 38 and 23 MB are stored in 256 MB; an object of 97 MB then "
               "makes that of 83 MB leave, and no other",
               "FIFO, which is “least recently cached”: exactly 83 MB left",
               f"stored: {list_mb(result.stored)}; left: {list_mb(left)}",
               decide_exactly(left == [83] if result.stored else None))


def row_proof(result):
    same = [policy for policy, found in result.policies.items()
            if policy != "fifo" and all(left == [83] for left in found["left"])]
    others = {policy: found["left"] for policy, found in result.policies.items()
              if policy not in ("fifo", *same)}
    return Row("3.3, step 3; 4, item 3",
               "The experiment proves that the policy is “least recently cached”",
               "among the other policies here none makes the same object leave",
               "the same object leaves under "
               f"{join(policy.upper() for policy in same) or 'no other'}; another under "
               + (join(f"{policy.upper()} "
                       f"({' or '.join(sorted({list_mb(left) for left in lists}))})"
                       for policy, lists in others.items()) or "none"),
               decide_exactly(not same if len(result.policies) > 1 else None))


def row_unit(published):
    implied = 8 * geni_origin.VIDEO_BYTES / statistics.mean(published["with"]) / 1e6
    return Row("unit", "The speeds of 3.3 are in Mbps, as printed",
               "the largest, 11.1, agrees within 10 % with the rate of a hit in 3.1",
               f"a hit in 3.1 has {implied:.1f} Mbit/s, which is "
               f"{implied * 1e6 / 8 / geni.MIB:.1f} MiB/s, the unit of curl’s meter; the speeds "
               "are compared in MiB/s", decide_exactly(abs(implied / 11.1 - 1) <= 0.1), ours=True)


def row_loop(result):
    values = speeds(result, "loop")
    return Row("3.3 (a), table",
               "83, 52, 38, 23, 97 MB, three times in this order: 1.84 to 9.66, average 6.51",
               f"the mean within {100 * LOOP_MARGIN:.0f} % of 6.51 MiB/s. That is the bandwidth of "
               "the source’s link here, so hits would show as a larger mean; its variation is not "
               "emulated",
               f"{min(values):.2f} to {max(values):.2f}, {mean_and_error(values, 'MiB/s')}",
               decide([near(values, 6.51, LOOP_MARGIN)]))


def row_in_a_row(result):
    values = speeds(result, "in a row")
    return Row("3.3 (b), table", "Each object three times in a row: 1.2 to 11.1, average 9.18",
               f"the mean within {100 * ROW_MARGIN:.0f} % of 9.18 MiB/s, with the source’s link at "
               "the mean of (a) and the client’s at that of 3.1",
               f"{min(values):.2f} to {max(values):.2f}, {mean_and_error(values, 'MiB/s')}. The "
               "paper’s hits vary from 8.68 to 11.1 and its misses from 1.2 to 9.66; these links "
               "do not vary",
               decide([near_mean(values, 9.18, ROW_MARGIN)]))


def near_mean(values, printed, margin):
    """As near(), where which requests are slow does not depend on chance: the mean has the error of
    the requests of each kind, not that of their mixture."""
    middle = (min(values) + max(values)) / 2
    kinds = [[one for one in values if one <= middle], [one for one in values if one > middle]]
    error = sum((len(some) / len(values)) ** 2 * verdict.of_mean(some).error ** 2 for some in kinds
                if len(some) > 1) ** 0.5
    freedom = min([len(some) - 1 for some in kinds if len(some) > 1], default=1)
    return verdict.equal(verdict.Estimate(statistics.mean(values) - printed, error, freedom),
                         margin * printed)


def row_best_in_a_row(result):
    loop, row = speeds(result, "loop"), speeds(result, "in a row")
    return Row("3.3, last paragraph",
               "The policy serves objects requested continuously better than a loop over them "
               "(9.18 against 6.51)",
               "the mean of 15 requests in a row is larger than that of 15 in a loop",
               f"{mean_and_error(row, 'MiB/s')} and {mean_and_error(loop, 'MiB/s')}: "
               f"{statistics.mean(row) / statistics.mean(loop):.2f} times (published "
               f"{9.18 / 6.51:.2f})", decide([verdict.above(verdict.unpaired(row, loop))]))


def row_always_from_cache(result):
    found = hits(result, "in a row")
    expected = [False] + [True] * (geni.ROUNDS - 1)
    return Row("3.3, last paragraph", "Requested continuously, objects come from the cache always",
               "each second and third request is a hit", f"{sum(found)} hits of 15",
               observed(found == expected * len(geni.OBJECTS), *result.sequences["in a row"]))


def row_never_from_cache(result):
    found = hits(result, "loop")
    return Row("3.3, last paragraph",
               "In the loop, objects have to be retrieved that were just evicted, always",
               "no request is a hit", f"{sum(found)} hits of 15",
               observed(not any(found), *result.sequences["loop"]))


def row_policies(result):
    def cell(policy, order):
        return "/".join(map(str, sorted(set(result.policies[policy][order]))))

    others = [min(found["loop"]) for policy, found in result.policies.items() if policy != "fifo"]
    holds = max(others) > 0 and max(result.policies["fifo"]["loop"]) == 0 if others else None
    return Row("other policies", "In the loop, which FIFO cannot hit, another policy can",
               "one has hits with every seed; sizes divided by 100, which does not change hits",
               "hits of 15 in the loop: " + join(f"{policy.upper()} {cell(policy, 'loop')}"
                                                 for policy in result.policies),
               decide_exactly(holds), ours=True)


def rows(result):
    return [
        cannot("2.1, both diagrams", "Client and cache in Boston, source in Los Angeles",
               "They show a setup and no result. The distance is emulated by the bandwidths and a "
               "delay."),
        row_way(result),
        row_table_of_latency(result), row_faster(result), row_reduction(result),
        row_arithmetic(geni.PUBLISHED_SECONDS),
        row_age_at_limit(result), row_refetch(result), row_age(result),
        row_expires_to_max_age(result),
        row_expires_lifetime(result), row_priority(result),
        cannot("3.3, first sentence",
               "ATS has one eviction policy, which overwrites the least recently cached object",
               "A statement on Apache Traffic Server 7.1.2 after its documentation. FIFO of "
               "sunproxyd stands for it here."),
        row_evicted(result), row_proof(result), row_unit(geni.PUBLISHED_SECONDS), row_loop(result),
        row_in_a_row(result),
        row_best_in_a_row(result), row_always_from_cache(result), row_never_from_cache(result),
        row_policies(result),
        cannot("4, item 3",
               "ATS lets its users choose other policies for the RAM cache, but not for the cache",
               "A statement on Apache Traffic Server, without a measurement."),
    ]


def paper(result, took):
    scale = result.scale
    scaled = ("Sizes, lifetimes and numbers of requests are those of the paper."
              if not scale.smoke else f"A smoke test: a MB is {scale.megabyte:,} bytes, lifetimes "
              "are seconds.")
    return Paper("geni", "Web Caching (CS655 GENI mini project)", [
        "curl fetches from a source server, directly or through sunproxyd as a reverse proxy with "
        f"FIFO. The links are emulated: {8 * geni.CLIENT_LINK / 1e6:.1f} Mbit/s from the client to "
        f"the cache and {8 * geni.SOURCE_LINK / 1e6:.1f} Mbit/s from the source in 3.1, which the "
        f"paper’s mean times give, and {8 * geni.OBJECTS_LINK / 1e6:.1f} Mbit/s (6.51 MiB/s) from "
        f"the source in 3.3. The paper states no delay; {1000 * geni.DELAY:.0f} ms before the "
        f"first byte are chosen here. {scaled} Of every body its digest was compared with what the "
        f"source sends; {result.failures} were wrong."], rows(result), took)
