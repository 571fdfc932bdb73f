"""Figures of the GENI study on the page of `make reproduce`, beside its table."""

import reproduce_geni as geni
import verdict
from reproduce_figures import bars, escape, numbers
from reproduce_geni_rows import describe, seconds, speeds

SHOWN = ("date", "last-modified", "etag", "content-length", "cache-control", "expires", "age",
         "cache-status")
TITLES = {"max-age": "3.2 (a): max-age alone", "expires": "3.2 (b): Expires alone",
          "both": "3.2 (c): max-age and Expires"}


def fetches_figure(result):
    series = {"without": seconds(result, "without"), "with": seconds(result, "with"),
              "paper, without": geni.PUBLISHED_SECONDS["without"],
              "paper, with": geni.PUBLISHED_SECONDS["with"]}
    return bars("3.1: seconds of each fetch, with and without a cache",
                ["first", "second", "third"], series, form="%.2f")


def speeds_figure(result, order, title):
    names = [f"{number}. {size} MB" for number, size in enumerate(geni.ORDERS[order], 1)]
    return bars(f"{title}: MiB/s of each request", names,
                {"here": speeds(result, order), "published": geni.PUBLISHED_SPEEDS[order]},
                form="%.2f")


def head_lines(response):
    lines = [f"HTTP/1.1 {response.status}"]
    lines += [f"{name}: {value}" for name, value in response.fields if name.lower() in SHOWN]
    return "\n".join(lines)


def shown_responses(responses):
    """The first, and each last or first one of its kind after that."""
    kinds = [geni.is_hit(one) for one in responses]
    keep = [n for n in range(len(kinds)) if n == 0 or n == len(kinds) - 1
            or kinds[n] != kinds[n + 1]
            or (n > 1 and kinds[n] != kinds[n - 1])]
    return [responses[n] for n in keep]


def headers_section(result):
    out = []
    for name, responses in result.headers.items():
        texts = (f"# {describe(one)}\n{head_lines(one)}" for one in shown_responses(responses))
        out.append(f'<h3>{escape(TITLES[name])}</h3><div class="figures">'
                   + "".join(f"<pre>{escape(text)}</pre>" for text in texts) + "</div>")
    return "".join(out)


def policies_table(result):
    def mean(values):
        return f"{verdict.of_mean(values).difference:.3g}"

    rows = [[policy.upper(),
             " or ".join(sorted({", ".join(map(str, left)) for left in found["left"]})),
             *(mean(found[order]) for order in geni.ORDERS)]
            for policy, found in result.policies.items()]
    return numbers(["leaves, MB", *(f"hits, {order}" for order in geni.ORDERS)], rows)


def section(result):
    return (f'<div class="figures">{fetches_figure(result)}'
            f'{speeds_figure(result, "loop", "3.3 (a), loop")}'
            f'{speeds_figure(result, "in a row", "3.3 (b), in a row")}</div>'
            "<h3>3.3: the object that leaves for the fifth, and hits of 15 requests, by policy</h3>"
            + policies_table(result)
            + '<p class="soft">Sizes divided by 100. Policies that draw random numbers: means of '
            f'{len(result.scale.seeds)} seeds.'
            "</p>" + headers_section(result))


def as_json(result):
    def responses(some):
        return [{name: value for name, value in one._asdict().items() if name != "right"}
                for one in some]

    return {
        "links_bytes_per_second": {"client": geni.CLIENT_LINK, "source_3.1": geni.SOURCE_LINK,
                                   "source_3.3": geni.OBJECTS_LINK},
        "scale": {**result.scale._asdict(), "lifetimes": result.scale.lifetimes._asdict()},
        "fetches": {how: responses(some) for how, some in result.fetches.items()},
        "headers": {name: responses(some) for name, some in result.headers.items()},
        "origin_statuses": result.seen,
        "sequences": {order: responses(some) for order, some in result.sequences.items()},
        "stored_after_five": result.stored,
        "policies": result.policies,
        "wrong_bodies": result.failures,
    }
