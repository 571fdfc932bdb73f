"""The GENI study on the page of `make reproduce`."""

import geni_origin
import reproduce_geni as geni
import reproduce_geni_claims as geni_claims
from reproduce_figures import bars, escape, numbers

SHOWN = ("date", "cache-control", "expires", "etag", "age", "cache-status")
TITLES = {
    "a": "a: Expires alone",
    "b": "b: max-age alone",
    "c1": "c: a short max-age and a late Expires",
    "c2": "c: a long max-age and an Expires in the past",
}


def scaling(result):
    """What differs from the study, in sentences."""
    scale = result.scale
    sizes = ("Sizes of objects and cache are those of the study; none is scaled" if scale.megabyte == 10 ** 6
             else f"Sizes of objects and cache are divided by {10 ** 6 // scale.megabyte:,}")
    return (f"{sizes}. A MB is {scale.megabyte:,} bytes. The video’s link has {8 * scale.video_link / 1e6:g} "
            f"Mbit/s, that of the five objects {8 * scale.objects_link / 1e6:g} Mbit/s, so that {4 * len(geni.POLICIES)} sequences end "
            f"soon. Either has a latency of {1000 * scale.latency:g} ms before the first byte of each response. "
            f"The lifetimes that end during the header experiments are {geni_origin.LIFETIME} s.")


def video_figure(result):
    series, errors = {}, {}
    for how in ("without", "with"):
        times = geni_claims.fetch_times(result, how)
        name = f"{how} a cache"
        series[name] = [mean for mean, _ in times]
        errors[name] = [sd for _, sd in times]
    return bars(f"Time of each fetch of {geni.VIDEO} MB, s", ["first", "second", "third"], series, errors,
                form="%.3f")


def order_figures(result):
    """A figure for each order of the first round."""
    out = []
    for first, order in geni.ORDERS.items():
        series, errors = {}, {}
        for second in sorted(geni.ORDERS, key=lambda name: name != first):
            name = f"second round {'the same' if first == second else 'opposite'}"
            hits = [geni_claims.mean_hits(result, policy, first, second) for policy in geni.POLICIES]
            series[name] = [mean for mean, _ in hits]
            errors[name] = [sd for _, sd in hits]
        out.append(bars(f"Hits of five, first round {', '.join(map(str, order))} MB",
                        [policy.upper() for policy in geni.POLICIES], series, errors, top=5, form="%.3g"))
    return "".join(out)


def head_lines(response):
    lines = [f"HTTP/1.1 {response.status}"]
    lines += [f"{name}: {value}" for name, value in response.fields if name.lower() in SHOWN]
    return "\n".join(lines)


def header_section(result):
    out = []
    for name, responses in result.headers.items():
        texts = (f"# {'at once' if moment == 0 else f'after {moment:g} s'}\n{head_lines(response)}"
                 for moment, response in zip(geni.MOMENTS, responses))
        out.append(f'<h3>{escape(TITLES[name])}</h3><div class="figures">'
                   + "".join(f"<pre>{escape(text)}</pre>" for text in texts) + "</div>")
    return "".join(out)


def hits_table(result):
    """Which requests of a second round hit, by policy and orders."""
    columns = [f"{first}, then {second}" for first, second in geni.ROUNDS]

    def cell(policy, first, second):
        mean, sd = geni_claims.mean_hits(result, policy, first, second)
        runs = result.objects[policy, first, second]
        hit = [str(size) for n, size in enumerate(geni.ORDERS[second]) if all(run[n] for run in runs)]
        return (f"{mean:.1f} ± {sd:.1f}" if len(runs) > 1 else f"{mean:.0f}") + (f": {' '.join(hit)}" if hit else "")

    return numbers(columns, [[policy.upper(), *(cell(policy, *orders) for orders in geni.ROUNDS)]
                             for policy in geni.POLICIES])


def section(result):
    return (
        "<h2>GENI study: a cache before a slow link</h2>"
        "<p>The questions of the GENI study of web caching, over HTTP. Its text and its figures are not at hand: the "
        "claims are its questions, and their criteria are those of this evaluation. sunproxyd is a reverse proxy "
        "before an origin on this machine whose link has a limited bandwidth and an added latency. "
        f"{escape(scaling(result))}</p>"
        f'<p class="soft">Means of {result.scale.repeats} runs, each with a daemon and an origin of its own; bars are '
        "standard deviations. Every body was compared with what the origin sends: "
        f"{result.failures} were wrong.</p>"
        f'<div class="figures">{video_figure(result)}{order_figures(result)}</div>'
        f"<h3>Five objects in {geni.CAPACITY} MB: hits of the second round, and the objects that hit, MB</h3>"
        + hits_table(result)
        + f'<p class="soft">Listed is {", ".join(map(str, geni.OBJECTS))} MB, reversed the opposite. Policies that '
        f"draw random numbers have {result.scale.repeats} runs with different seeds; others need one.</p>"
        "<h3>Header experiments: the responses</h3>"
        f"<p>Each page is requested three times. The cache answers alone, validates what is stored, or fetches; "
        f"Cache-Status (RFC 9211) says which.</p>{header_section(result)}")


def as_json(result):
    return {
        "scale": result.scale._asdict(),
        "video_seconds": result.video,
        "headers": {name: [{"after_seconds": moment, "status": r.status, "fields": r.fields}
                           for moment, r in zip(geni.MOMENTS, responses)]
                    for name, responses in result.headers.items()},
        "origin_statuses": result.seen,
        "objects": [{"policy": policy, "first": first, "second": second, "order": geni.ORDERS[second], "hits": runs}
                    for (policy, first, second), runs in result.objects.items()],
        "wrong_bodies": result.failures,
        "seconds": result.seconds,
    }
