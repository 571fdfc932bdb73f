/*
 * The figures of a trace as it is, without a cache: see figures.js.
 */
"use strict";

const reportTraceFigures = (() => {
    const { count, percent, bytes, short, plural, text, plot, byteTicks } = reportLooks;
    const { timeAxis, timeMarks } = reportTimes;

    // Opacity of a cell by its requests, on a logarithmic scale.
    const shade = (requests, most) => 0.12 + 0.88 * Math.log(requests + 1) / Math.log(most + 1);
    const isDots = (t) => t.pattern.every((r) => r.requests === 1 && r.request === r.request_to);

    const pattern = {
        id: "pattern", title: "Access pattern", wide: () => true, needs: ["pattern", "frontier"],
        tables: ["pattern", "frontier"],
        keys(t) {
            const most = d3.max(t.pattern, (r) => r.requests);
            return [isDots(t) ? { dot: true, color: "var(--dot)", text: "requests" } :
                { shades: [1, most ** (1 / 3), most ** (2 / 3), most].map((n) => shade(n, most)), color: "var(--dot)",
                    text: `requests in a cell: 1 to ${count(most)}, logarithmic` },
            { color: "var(--red)", text: "first requests: distinct URLs so far" }];
        },
        say(t, trace) {
            const again = 1 - trace.distinct_urls / trace.requests;
            const half = t.frontier.find((r) => r.urls_seen >= trace.distinct_urls / 2);
            return "URLs are numbered in the order of first appearance. Points on the line are first requests: " +
                "compulsory misses. Points below it are repeated requests, which a cache can serve: " +
                `${percent(again)} of the requests. Horizontal bands are URLs that stay popular. Half of ` +
                `the URLs have been seen after ${percent(half.request / trace.requests)} of the requests.` +
                (timeAxis(t) ? " Times (UTC, or since the beginning of the trace) are at the top." : "");
        },
        draw(t, width, trace) {
            const dots = isDots(t);
            const most = d3.max(t.pattern, (r) => r.requests);
            const tip = (r) => dots ? `request ${count(r.request)}: URL ${count(r.url_number)}`
                : `${count(r.requests)} requests\nrequests ${count(r.request)} to ${count(r.request_to)}\n` +
                  `URLs ${count(r.url_number)} to ${count(r.url_number_to)}`;
            return plot(width, {
                height: Math.round(Math.min(440, Math.max(280, width * 0.5))),
                x: { label: "request number", tickFormat: short, domain: [0, trace.requests] },
                y: { label: "URL number", tickFormat: short, domain: [0, trace.distinct_urls] },
                marks: [
                    ...timeMarks(t, trace.requests, width - 62),
                    dots ? Plot.dot(t.pattern, { x: "request", y: "url_number", r: width < 500 ? 1.2 : 1.7,
                        fill: "var(--dot)", fillOpacity: 0.75 })
                        : Plot.rect(t.pattern, { x1: (r) => r.request - 1, x2: "request_to",
                            y1: (r) => r.url_number - 1, y2: "url_number_to", fill: "var(--dot)",
                            fillOpacity: (r) => shade(r.requests, most) }),
                    Plot.line(t.frontier, { x: "request", y: "urls_seen", stroke: "var(--red)", strokeWidth: 2,
                        curve: "step-after" }),
                    Plot.tip(t.pattern, Plot.pointer({ x: (r) => (r.request + r.request_to) / 2,
                        y: (r) => (r.url_number + r.url_number_to) / 2, title: tip, fill: "var(--card)",
                        stroke: "var(--line)" })),
                ],
            });
        },
    };

    const shares = {
        id: "shares", title: "Share of each URL", wide: (t) => !t.sizes, needs: ["popularity", "busiest", "popular"],
        tables: ["shares", "popularity", "busiest"],
        say(t, trace) {
            const [{ busiest_tenth, requests_for_busiest_tenth }] = t.popular;
            return `The busiest URL takes ${percent(t.busiest[0].share)} of the requests, the busiest tenth ` +
                `(${plural(busiest_tenth, "URL")}) ${percent(requests_for_busiest_tenth / trace.requests)}. The ` +
                "steeper the decline, the higher the hit ratio of a small cache.";
        },
        draw(t, width) {
            const low = 100 * t.popularity.at(-1).share, high = 100 * t.popularity[0].share;
            const tens = d3.range(-9, 3).map((e) => 10 ** e).filter((n) => n >= low && n <= high);
            if (t.shares)
                return plot(width, {
                    x: { label: "URL number, by first appearance", tickFormat: short, type: "linear",
                        domain: [0.5, t.shares.length + 0.5] },
                    y: { label: "share of the requests, %" },
                    marks: [
                        Plot.rectY(t.shares, { x1: (r) => r.url_number - 0.4, x2: (r) => r.url_number + 0.4,
                            y: (r) => 100 * r.share, fill: "var(--dot)" }),
                        Plot.ruleY([0]),
                        Plot.tip(t.shares, Plot.pointerX({ x: "url_number",
                            y: (r) => 100 * r.share, fill: "var(--card)", stroke: "var(--line)",
                            title: (r) => `${r.url_number}: ${r.url.slice(0, 60)}\n${count(r.requests)} ` +
                                `requests, ${percent(r.share)}` })),
                    ],
                });
            return plot(width, {
                x: { label: "rank of the URL, busiest first", type: "log", tickFormat: short },
                y: { label: "share of the requests, %", type: "log", ticks: tens.length > 1 ? tens : undefined,
                    tickFormat: (n) => String(+n.toPrecision(3)) },
                marks: [
                    Plot.line(t.popularity, { x: "rank", y: (r) => 100 * r.share, stroke: "var(--dot)", strokeWidth: 2 }),
                    Plot.tip(t.popularity, Plot.pointerX({ x: "rank", y: (r) => 100 * r.share,
                        fill: "var(--card)", stroke: "var(--line)", title: (r) => `rank ${count(r.rank)}: ` +
                            `${plural(r.requests, "request")}, ${percent(r.share)}\nthe busiest ${count(r.rank)}: ${percent(r.share_of_this_and_busier)}` })),
                ],
            });
        },
    };

    const SIZE_LINES = [
        { column: "share_of_requests", text: "requests", color: "var(--blue)", width: 2.5 },
        { column: "share_of_urls", text: "distinct URLs", color: "var(--orange)", dash: "6 3" },
        { column: "share_of_bytes_requested", text: "bytes requested", color: "var(--green)", dash: "1.5 3" },
    ];

    const sizes = {
        id: "sizes", title: "Sizes of requested pages", needs: ["sizes"], tables: ["sizes"],
        keys: () => SIZE_LINES,
        say(t, trace) {
            const at = (column, share) => t.sizes.find((r) => r[column] >= share)?.bytes ?? 0;
            return `Half of the requests are for pages of at most ${bytes(at("share_of_requests", 0.5))}, and ` +
                `three quarters of at most ${bytes(at("share_of_requests", 0.75))}; half of the bytes come in pages of ` +
                `more than ${bytes(at("share_of_bytes_requested", 0.5))}.` + (trace.sizes_assumed > 0 ?
                ` The sizes of ${plural(trace.sizes_assumed, "URL")} of ${count(trace.distinct_urls)} are imputed: ` +
                "the median of the known sizes, a step in these lines." : "");
        },
        draw(t, width) {
            const rows = t.sizes.filter((r) => r.bytes > 0);
            return plot(width, {
                x: { label: "size of the body, at most", type: "log", base: 2,
                    ticks: byteTicks(rows, "bytes", width), tickFormat: bytes },
                y: { label: "share, %", domain: [0, 100] },
                marks: [
                    ...SIZE_LINES.map((l) => Plot.line(rows, { x: "bytes", y: (r) => 100 * r[l.column],
                        stroke: l.color, strokeWidth: l.width ?? 2, strokeDasharray: l.dash, curve: "step-after" })),
                    Plot.ruleY([0]),
                    Plot.tip(rows, Plot.pointerX({ x: "bytes", y: (r) => 100 * r.share_of_requests,
                        fill: "var(--card)", stroke: "var(--line)",
                        title: (r) => `at most ${bytes(r.bytes)}\n` + SIZE_LINES.map((l) =>
                            `${percent(r[l.column])} of the ${l.text}`).join("\n") })),
                ],
            });
        },
    };

    return { pattern, shares, sizes };
})();
