"""Figures and tables of the page of `make reproduce`: SVG in the colours of its style sheet."""

import html

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 420, 270, 44, 48, 14, 38
# Bars lie on their side, so that long names fit beside them on a telephone, too.
BAR, BAR_GAP, GROUP_GAP, BAR_LEFT, BAR_RIGHT, KEY = 13, 2, 10, 92, 56, 22

# The colours of lines and bars: those of policies, and of the series of a bar chart in turn.
COLOURS = {"lru": "lru", "lfu": "lfu", "fifo": "fifo", "rand": "rand", "maxs": "maxs",
           "gds": "purple",
           "gdsf": "red", "tinylfu": "green", "pool": "blue", "sunproxyd": "green",
           "executor": "orange",
           "aiohttp": "purple", "1": "blue", "2": "orange", "3": "green", "4": "purple"}
OWN = "".join(f".own-{name} {{ --own: var(--{colour}); }}\n" for name, colour in COLOURS.items())


def escape(text):
    return html.escape(str(text))


def ticks(low, high):
    """Round numbers from low to high, four or so."""
    span = high - low
    step = next(m * 10 ** e for e in range(-3, 7) for m in (1, 2, 5) if span / (m * 10 ** e) <= 5)
    first = int(low / step)
    return [n * step for n in range(first, int(high / step) + 2) if low <= n * step <= high]


def spread_labels(ends):
    """Where names stand so that none covers another: {name: y}, near the lines' ends."""
    placed, last = {}, TOP - 13
    for y, name in sorted(ends):
        last = max(y, last + 13)
        placed[name] = last
    over = max(0, last - (HEIGHT - BOTTOM))
    return {name: y - over for name, y in placed.items()}


def chart(title, x_title, xs, lines, none=None, top=None, errors=None, printed=None):
    """lines: {policy: [value by x]}; `none`, the time without a cache, is the labelled baseline;
    errors: {policy: [standard deviation by x]}, drawn as bars; printed: what a paper prints, as
    `lines`, dotted."""
    printed = printed or {}
    values = [v for some in (lines, printed) for line in some.values() for v in line
              if v is not None]
    values += [none] if none is not None else []
    high = top or max(values) * 1.05 or 1
    # A ratio's axis begins where the lines do, and the caption says so; that of times begins at 0.
    low = max(0, int(min(values) // 10 * 10)) if top else 0

    right = max(RIGHT, 14 + 8 * max(map(len, lines)))

    def x_at(x):
        return LEFT + (x - xs[0]) / ((xs[-1] - xs[0]) or 1) * (WIDTH - LEFT - right)

    def y_at(v):
        return HEIGHT - BOTTOM - (v - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">']
    for t in ticks(low, high):
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - right}" y1="{y_at(t):.1f}" '
                   f'y2="{y_at(t):.1f}"/><text x="{LEFT - 7}" y="{y_at(t) + 4:.1f}" '
                   f'text-anchor="end">{t:g}</text>')
    for x in xs:
        out.append(f'<text x="{x_at(x):.1f}" y="{HEIGHT - BOTTOM + 17}" text-anchor="middle">'
                   f"{x:g}</text>")
    out.append(f'<text x="{(LEFT + WIDTH - right) / 2}" y="{HEIGHT - 4}" text-anchor="middle">'
               f"{escape(x_title)}</text>")
    if none is not None:
        out.append(f'<line class="none" x1="{LEFT}" x2="{WIDTH - right}" y1="{y_at(none):.1f}" '
                   f'y2="{y_at(none):.1f}"/><text x="{LEFT + 4}" y="{y_at(none) + 14:.1f}">no cache'
                   "</text>")
    for policy, line in printed.items():
        points = [(x_at(x), y_at(v), v) for x, v in zip(xs, line) if v is not None]
        out.append(f'<polyline class="p own-{policy}" points="'
                   + " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points) + '"/>')
    labels = spread_labels([(y_at(line[-1]), policy) for policy, line in lines.items()])
    for policy, line in lines.items():
        points = [(x_at(x), y_at(v)) for x, v in zip(xs, line)]
        out.append(f'<polyline class="s own-{policy}" points="'
                   + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>')
        for (x, y), value, sd in zip(points, line, (errors or {}).get(policy, [])):
            if sd > 0:
                out.append(f'<line class="e own-{policy}" x1="{x:.1f}" x2="{x:.1f}" '
                           f'y1="{y_at(max(low, value - sd)):.1f}" '
                           f'y2="{y_at(min(high, value + sd)):.1f}"/>')
        out += [f'<circle class="d own-{policy}" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>'
                f"{policy.upper()}, {size:g}: {v:.1f}</title></circle>"
                for (x, y), size, v in zip(points, xs, line)]
        out.append(f'<text class="name k own-{policy}" x="{WIDTH - right + 8}" '
                   f'y="{labels[policy] + 4:.1f}">{policy.upper()}</text>')
    note = f" (the axis begins at {low})" if low else ""
    note += "; dotted: published" if printed else ""
    return f'<figure>{"".join(out)}</svg><figcaption>{escape(title + note)}</figcaption></figure>'


def bars(title, groups, series, errors=None, top=None, form="%g", own=None):
    """series: {name: [value by group]}, a bar each, None where there is none; errors: {name:
    [standard deviation by group]}; top: where the axis ends; own: whose colours the series have, by
    name."""
    errors = errors or {}
    high = top or max(v for line in series.values() for v in line if v is not None) * 1.05 or 1
    key = KEY if len(series) > 1 else 0
    step = len(series) * (BAR + BAR_GAP) + GROUP_GAP
    bottom = key + len(groups) * step
    span = WIDTH - BAR_LEFT - BAR_RIGHT

    def x_at(value):
        return BAR_LEFT + min(value, high) / high * span

    out = [f'<svg viewBox="0 0 {WIDTH} {bottom + 22}" role="img" aria-label="{escape(title)}">']
    for t in ticks(0, high):
        out.append(f'<line class="grid" x1="{x_at(t):.1f}" x2="{x_at(t):.1f}" y1="{key}" '
                   f'y2="{bottom}"/>'
                   f'<text x="{x_at(t):.1f}" y="{bottom + 15}" text-anchor="middle">{t:g}</text>')
    at = 0
    for number, (name, line) in enumerate(series.items()):
        colour = f"own-{(own or {}).get(name, number + 1)}"
        if key:
            out.append(f'<rect class="b {colour}" x="{at}" y="3" width="10" height="10"/>'
                       f'<text x="{at + 14}" y="12">{escape(name)}</text>')
            at += 30 + 6.4 * len(name)
        for place, value in enumerate(line):
            if value is None:
                continue
            y = key + GROUP_GAP / 2 + place * step + number * (BAR + BAR_GAP)
            sd = errors.get(name, [0] * len(line))[place]
            end = x_at(value + sd)
            out.append(f'<rect class="b {colour}" x="{BAR_LEFT}" y="{y:.1f}" '
                       f'width="{x_at(value) - BAR_LEFT:.1f}" '
                       f'height="{BAR}"><title>{escape(groups[place])}, {escape(name)}: '
                       f'{form % value}'
                       f'{f" ± {form % sd}" if sd else ""}</title></rect>')
            if sd > 0:
                out.append(f'<line class="w" x1="{x_at(max(0, value - sd)):.1f}" x2="{end:.1f}" '
                           f'y1="{y + BAR / 2:.1f}" y2="{y + BAR / 2:.1f}"/>')
            out.append(f'<text x="{end + 4:.1f}" y="{y + BAR - 2:.1f}">{form % value}</text>')
    for place, group in enumerate(groups):
        y = key + place * step + (step + BAR) / 2 - 2
        out.append(f'<text class="name" x="{BAR_LEFT - 7}" y="{y:.1f}" '
                   f'text-anchor="end">{escape(group)}</text>')
    return f'<figure>{"".join(out)}</svg><figcaption>{escape(title)}</figcaption></figure>'


def numbers(columns, rows):
    head = "".join(f"<th>{escape(c)}</th>" for c in ["", *columns])
    body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in rows)
    return (f'<div class="wide"><table class="numbers"><thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>")
