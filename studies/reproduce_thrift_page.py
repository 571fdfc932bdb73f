"""Figures and tables of the Thrift study on the page of `make reproduce`, and its JSON."""

import statistics

import replays
from reproduce_figures import chart, numbers
from reproduce_thrift_rows import OPTIMUM
from statements import name, plus_minus


def workload_section(part):
    sizes = part.sizes
    count = len(part.none)

    def lines(figure, of):
        return {p: [of(figure(part.runs[p, kb])) for kb in sizes] for p in part.policies}

    def table(figure, form):
        none = plus_minus(figure(part.none), form)
        return numbers([f"{kb} KB" for kb in sizes],
                       [[name(p), *(plus_minus(figure(part.runs[p, kb]), form) for kb in sizes)]
                        for p in part.policies] + [["no cache", *[none] * len(sizes)]])

    hits = f"Hit ratio, per cent ({part.name})"
    times = f"Mean response time, ms ({part.name})"
    return (f"<h3>Thrift study: {part.name} workload</h3>"
            f'<p class="soft">Means of {count} runs, each with another seed for RAND; bars are '
            'standard deviations, '
            "± half of an interval of 95 %. The capacity counts the bytes of bodies."
            + (f" The optimum is {OPTIMUM:.1f} %." if part.name == "repeated" else "") + "</p>"
            '<div class="figures">'
            + chart(hits, "capacity, KB", sizes, lines(replays.ratios, statistics.mean), top=100,
                    errors=lines(replays.ratios, statistics.stdev))
            + chart(times, "capacity, KB", sizes, lines(replays.times, statistics.mean),
                    statistics.mean(replays.times(part.none)),
                    errors=lines(replays.times, statistics.stdev))
            + "</div><h4>Hit ratio, per cent</h4>" + table(replays.ratios, "%.1f")
            + "<h4>Mean response time, ms</h4>" + table(replays.times, "%.2f"))


def section(study):
    return "".join(map(workload_section, study.parts.values()))


def as_json(study):
    return {"workloads": {name: replays.part_as_json(part, "capacity_kb")
                          for name, part in study.parts.items()},
            "bytes": {name: sum(sizes) for name, sizes in study.bytes.items()},
            "loop_hits": study.loop}
