/*
 * The figures: each says what tables it needs, what to see in it, and draws itself with Observable
 * Plot at a width. `t` has the tables as arrays of objects.
 */
"use strict";

const reportFigures = (() => {
    // ---- numbers for people ----------------------------------------------------------------------

    const count = (n) => n.toLocaleString("en-GB");
    const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.9995 ? 1 : 0)} %`;

    function bytes(n) {
        const units = ["B", "KiB", "MiB", "GiB", "TiB"];
        let unit = 0;
        for (; n >= 1024 && unit < units.length - 1; unit++)
            n /= 1024;
        return `${n < 10 && unit ? +n.toFixed(1) : Math.round(n)} ${units[unit]}`;
    }

    function span(trace) {
        const seconds = (trace.last_us - trace.first_us) / 1e6;
        const [value, unit] = seconds >= 172800 ? [seconds / 86400, "days"]
            : seconds >= 7200 ? [seconds / 3600, "hours"]
                : seconds >= 120 ? [seconds / 60, "minutes"] : [seconds, "seconds"];
        return `in ${count(Math.round(value))} ${unit}`;
    }

    const short = (n) => d3.format("~s")(n).replace("G", "B");
    const list = (words) => words.length < 2 ? words.join("") :
        `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
    const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

    // ---- looks -----------------------------------------------------------------------------------

    const HUES = ["sky", "red", "blue", "green", "orange", "purple"];
    const DASHES = ["6 3", "1.5 3", "9 3 1.5 3"];
    const CLASSICS = { lru: "blue", lfu: "orange", fifo: "green", rand: "purple", maxs: "red" };
    const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "cross", "wye"];

    // By policy: the classics in solid lines, OPT in ink, all others in dashes of several kinds.
    function looks(t) {
        const of = new Map();
        let others = 0;
        t.policies.forEach((p, i) => {
            const look = { policy: p.policy, text: p.policy.toUpperCase().replace(/:.*/, (s) => s.toLowerCase()),
                title: p.summary, symbol: SYMBOLS[i % SYMBOLS.length], width: 2 };
            if (p.needs_future) {
                Object.assign(look, { color: "var(--ink)", width: 3 });
            } else if (CLASSICS[p.policy]) {
                look.color = `var(--${CLASSICS[p.policy]})`;
            } else {
                look.color = `var(--${HUES[others % HUES.length]})`;
                look.dash = DASHES[Math.floor(others / HUES.length) % DASHES.length];
                others++;
            }
            of.set(p.policy, look);
        });
        return of;
    }

    const policyKeys = (t) => [...looks(t).values()];

    // What all plots share. On a narrow screen there are fewer ticks.
    function plot(width, options) {
        const height = options.height ?? Math.round(Math.min(380, Math.max(240, width * 0.62)));
        return Plot.plot({
            marginLeft: 48, marginRight: 14, marginBottom: 42, marginTop: 24,
            ...options, width, height,
            style: { fontSize: "12px", ...options.style },
            x: { labelAnchor: "center", labelArrow: "none", ...options.x },
            y: { grid: true, labelArrow: "none", ...options.y },
        });
    }

    // Powers of two, or of the least power of it that leaves room for the labels.
    function byteTicks(rows, column, width) {
        const [low, high] = d3.extent(rows, (r) => r[column]).map(Math.log2);
        const step = Math.max(1, Math.ceil((high - low) * 72 / (width - 60)));
        return d3.range(0, 60, step).filter((e) => e >= low && e <= high).map((e) => 2 ** e);
    }

    // A line for each policy that can be told from the others by hue, dash and a tip.
    function policyLines(rows, t, x, y, tip, extra = {}) {
        const marks = [];
        for (const [policy, look] of looks(t)) {
            const own = rows.filter((r) => r.policy === policy && r[y] !== null);
            if (own.length === 0)
                continue;
            const options = { x, y: (r) => 100 * r[y], stroke: look.color, strokeWidth: look.width,
                strokeDasharray: look.dash, curve: extra.curve, ariaDescription: `policy ${policy}` };
            marks.push(Plot.line(own, extra.smooth
                ? Plot.windowY({ k: Math.min(extra.smooth, own.length), anchor: "middle" }, options)
                : options));
            if (extra.dots)
                marks.push(Plot.dot(own, { x, y: (r) => 100 * r[y], stroke: look.color, fill: "var(--card)",
                    symbol: look.symbol, r: 4, ariaDescription: `policy ${policy}` }));
        }
        if (tip)
            marks.push(Plot.tip(rows.filter((r) => r[y] !== null), Plot.pointer({ x, y: (r) => 100 * r[y],
                title: tip, fill: "var(--card)", stroke: "var(--line)" })));
        return marks;
    }

    const text = (policy) => policy.toUpperCase();
    const urlsOf = (trace) => trace.distinct_urls;

    // ---- the trace itself ------------------------------------------------------------------------

    const pattern = {
        id: "pattern", title: "Access pattern", wide: () => true, needs: ["pattern", "frontier"],
        tables: ["pattern", "frontier"],
        keys: () => [{ dot: true, color: "var(--dot)", text: "requests" },
            { color: "var(--red)", text: "frontier: distinct URLs so far" }],
        say(t, trace) {
            const again = 1 - trace.distinct_urls / trace.requests;
            const half = t.frontier.find((r) => r.urls_seen >= trace.distinct_urls / 2);
            return "URLs are numbered as they first appear. What lies on the frontier is new and must be " +
                "fetched; what lies below it has been asked for before, and could come from a cache: " +
                `${percent(again)} of the requests. Horizontal bands are URLs that stay popular. Half of ` +
                `the URLs have been seen after ${percent(half.request / trace.requests)} of the requests.`;
        },
        draw(t, width, trace) {
            const dots = t.pattern.every((r) => r.requests === 1 && r.request === r.request_to);
            const most = d3.max(t.pattern, (r) => r.requests);
            const tip = (r) => dots ? `request ${count(r.request)}: URL ${count(r.url_number)}`
                : `${count(r.requests)} requests\nrequests ${count(r.request)} to ${count(r.request_to)}\n` +
                  `URLs ${count(r.url_number)} to ${count(r.url_number_to)}`;
            return plot(width, {
                height: Math.round(Math.min(440, Math.max(280, width * 0.5))),
                x: { label: "request number", tickFormat: short, domain: [0, trace.requests] },
                y: { label: "URL number", tickFormat: short, domain: [0, urlsOf(trace)] },
                marks: [
                    dots ? Plot.dot(t.pattern, { x: "request", y: "url_number", r: width < 500 ? 1.2 : 1.7,
                        fill: "var(--dot)", fillOpacity: 0.75 })
                        : Plot.rect(t.pattern, { x1: (r) => r.request - 1, x2: "request_to",
                            y1: (r) => r.url_number - 1, y2: "url_number_to", fill: "var(--dot)",
                            fillOpacity: (r) => 0.12 + 0.88 * Math.log(r.requests + 1) / Math.log(most + 1) }),
                    Plot.line(t.frontier, { x: "request", y: "urls_seen", stroke: "var(--red)", strokeWidth: 2,
                        curve: "step-after" }),
                    Plot.tip(t.pattern, Plot.pointer({ x: (r) => (r.request + r.request_to) / 2,
                        y: (r) => (r.url_number + r.url_number_to) / 2, title: tip, fill: "var(--card)",
                        stroke: "var(--line)" })),
                ],
            });
        },
    };

    function busiestShare(t, trace, part) {
        const rank = Math.max(1, Math.round(urlsOf(trace) * part));
        const row = t.popularity.find((r) => r.rank >= rank);
        return [row.rank, row.share_of_this_and_busier];
    }

    const shares = {
        id: "shares", title: "Share of each URL", wide: (t) => !t.sizes, needs: ["popularity", "busiest"],
        tables: ["shares", "popularity", "busiest"],
        say(t, trace) {
            const [rank, share] = busiestShare(t, trace, 0.1);
            return `The busiest URL takes ${percent(t.busiest[0].share)} of the requests, the busiest tenth ` +
                `(${plural(rank, "URL")}) ${percent(share)}. The steeper, the more a small cache can do.`;
        },
        draw(t, width) {
            if (t.shares)
                return plot(width, {
                    x: { label: "URL number, by first appearance", tickFormat: short, type: "linear" },
                    y: { label: "share of the requests, %" },
                    marks: [
                        Plot.rectY(t.shares, { x1: (r) => r.url_number - 0.9, x2: (r) => r.url_number - 0.1,
                            y: (r) => 100 * r.share, fill: "var(--dot)" }),
                        Plot.ruleY([0]),
                        Plot.tip(t.shares, Plot.pointerX({ x: (r) => r.url_number - 0.5,
                            y: (r) => 100 * r.share, fill: "var(--card)", stroke: "var(--line)",
                            title: (r) => `${r.url_number}: ${r.url.slice(0, 60)}\n${count(r.requests)} ` +
                                `requests, ${percent(r.share)}` })),
                    ],
                });
            return plot(width, {
                x: { label: "rank of the URL, busiest first", type: "log", tickFormat: short },
                y: { label: "requests", type: "log", tickFormat: short,
                    ticks: t.popularity[0].requests >= 100 ? d3.range(10).map((e) => 10 ** e)
                        .filter((n) => n <= t.popularity[0].requests) : undefined },
                marks: [
                    Plot.line(t.popularity, { x: "rank", y: "requests", stroke: "var(--dot)", strokeWidth: 2 }),
                    Plot.tip(t.popularity, Plot.pointerX({ x: "rank", y: "requests", fill: "var(--card)",
                        stroke: "var(--line)", title: (r) => `rank ${count(r.rank)}: ${count(r.requests)} ` +
                            `requests\nthe busiest ${count(r.rank)}: ${percent(r.share_of_this_and_busier)}` })),
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
        id: "sizes", title: "Sizes of what is requested", needs: ["sizes"], tables: ["sizes"],
        keys: () => SIZE_LINES,
        say(t) {
            const at = (column, share) => t.sizes.find((r) => r[column] >= share)?.bytes ?? 0;
            return `Half of the requests are for pages of at most ${bytes(at("share_of_requests", 0.5))}, and ` +
                `three quarters of at most ${bytes(at("share_of_requests", 0.75))}; half of the bytes come in pages of ` +
                `more than ${bytes(at("share_of_bytes_requested", 0.5))}.`;
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

    // ---- hit ratio and access time by size -------------------------------------------------------

    // Sizes as words of an ordinal axis.
    const sizeName = (r) => `${+(100 * r.share_of_urls).toFixed(1)} %\n${count(r.capacity_urls)}`;
    const sizeNames = (rows) => [...new Map(d3.sort(rows, (r) => r.capacity_urls)
        .map((r) => [r.capacity_urls, Math.round(1000 * r.share_of_urls) / 10]))];

    const sizeAxis = (rows) => {
        const names = new Map(sizeNames(rows));
        return { type: "point", domain: [...names.keys()], padding: 0.3,
            tickFormat: (urls) => `${Math.round(names.get(urls))} %\n(${count(urls)})`,
            label: null };
    };
    const sizeLabel = (width) => width < 480 ? "room: % of the distinct URLs (number)"
        : "room, as a share of the distinct URLs (and their number)";

    function bestAndWorst(rows, policies) {
        const own = rows.filter((r) => policies.has(r.policy) && r.hit_ratio !== null);
        return [d3.greatest(own, (r) => r.hit_ratio), d3.least(own, (r) => r.hit_ratio)];
    }

    // How far replays through the server are from their simulations.
    function liveAgrees(t) {
        const simulated = new Map(t.hits.map((r) => [`${r.policy} ${r.capacity_urls}`, r.hit_ratio]));
        const apart = (t.live ?? []).map((r) => Math.abs(r.hit_ratio - simulated.get(`${r.policy} ${r.capacity_urls}`)))
            .filter((difference) => !Number.isNaN(difference));
        if (apart.length === 0)
            return "";
        const most = 100 * d3.max(apart);
        return ` Circles are ${plural(apart.length, "replay")} through the server: ` + (most < 0.0005
            ? "each hit exactly what its simulation says." : `at most ${most.toFixed(2)} points from the simulation.`);
    }

    const hits = {
        id: "hits", title: "Hit ratio by cache size and policy", wide: () => true, needs: ["hits"],
        tables: ["hits"],
        keys: (t) => [...policyKeys(t),
            ...(t.live ? [{ dot: true, open: true, color: "var(--soft)", text: "measured live" }] : [])],
        say(t, trace) {
            const real = new Set(t.policies.filter((p) => !p.needs_future).map((p) => p.policy));
            const small = d3.min(t.hits, (r) => r.capacity_urls);
            const [best, worst] = bestAndWorst(t.hits.filter((r) => r.capacity_urls === small), real);
            const top = d3.max(t.hits.filter((r) => real.has(r.policy)), (r) => r.hit_ratio);
            const enough = d3.least(t.hits.filter((r) => real.has(r.policy) && r.hit_ratio >= top - 0.01),
                (r) => r.capacity_urls);
            return `With room for ${plural(small, "URL")} ${text(best.policy)} hits most (${percent(best.hit_ratio)})` +
                (real.size > 1 ? ` and ${text(worst.policy)} least (${percent(worst.hit_ratio)}). ` : ". ") +
                `${text(enough.policy)} comes within one point of the best of all (${percent(top)}) with ` +
                `${plural(enough.capacity_urls, "URL")}; a cache that never forgets hits ` +
                `${percent(trace.infinite_hit_ratio)}.` +
                liveAgrees(t);
        },
        draw(t, width) {
            const live = (t.live ?? []).filter((r) => r.capacity_urls > 0 &&
                t.hits.some((h) => h.capacity_urls === r.capacity_urls));
            return plot(width, {
                height: Math.round(Math.min(460, Math.max(300, width * 0.5))), marginBottom: 56,
                x: { ...sizeAxis(t.hits), label: sizeLabel(width) },
                y: { label: "hit ratio, %", nice: true },
                marks: [
                    ...policyLines(t.hits, t, "capacity_urls", "hit_ratio", (r) =>
                        `${text(r.policy)}, ${plural(r.capacity_urls, "URL")}\nhit ratio ${percent(r.hit_ratio)}` +
                        (r.byte_hit_ratio === null ? "" : `\nbyte hit ratio ${percent(r.byte_hit_ratio)}`) +
                        `\n${plural(r.evictions, "eviction")}`, { dots: true }),
                    Plot.dot(live, { x: "capacity_urls", y: (r) => 100 * r.hit_ratio, r: 8, stroke: "var(--soft)",
                        strokeWidth: 1.2 }),
                ],
            });
        },
    };

    const milliseconds = (ms) => `${ms >= 100 ? Math.round(ms) : ms.toFixed(1)} ms`;

    function correlation(rows, x, y) {
        const [mx, my] = [d3.mean(rows, (r) => r[x]), d3.mean(rows, (r) => r[y])];
        const spread = Math.sqrt(d3.sum(rows, (r) => (r[x] - mx) ** 2) * d3.sum(rows, (r) => (r[y] - my) ** 2));
        return spread ? d3.sum(rows, (r) => (r[x] - mx) * (r[y] - my)) / spread : 0;
    }

    const access = {
        id: "access", title: "Access time by cache size and policy", wide: () => true, needs: ["live"],
        tables: ["live"],
        keys: (t) => policyKeys(t).filter((k) => t.live.some((r) => r.policy === k.policy && r.capacity_urls > 0)),
        say(t) {
            const none = t.live.find((r) => r.policy === "none");
            const with_ = t.live.filter((r) => r.capacity_urls > 0);
            const slow = d3.greatest(with_, (r) => r.mean_ms);
            const fast = d3.least(with_, (r) => r.mean_ms);
            if (!slow)
                return "Measured live, through the server.";
            return `Measured live, through the server: from ${milliseconds(fast.mean_ms)} (${text(fast.policy)}, ` +
                `${plural(fast.capacity_urls, "URL")}) to ${milliseconds(slow.mean_ms)} (${text(slow.policy)}, ` +
                `${plural(slow.capacity_urls, "URL")})` + (none ? `, against ${milliseconds(none.mean_ms)} without a ` +
                `cache, ${(none.mean_ms / slow.mean_ms).toFixed(1)} times the slowest. ` : ". ") +
                (with_.length > 2 ? "Misses cost the time, so the lines mirror those of the hit ratio (correlation " +
                    `${correlation(with_, "mean_ms", "hit_ratio").toFixed(2)}).` : "");
        },
        draw(t, width) {
            const rows = t.live.filter((r) => r.capacity_urls > 0).map((r) => ({ ...r, ms: r.mean_ms / 100 }));
            const none = t.live.filter((r) => r.policy === "none");
            const sorted = d3.sort(rows, (r) => r.capacity_urls);
            return plot(width, {
                height: Math.round(Math.min(420, Math.max(300, width * 0.45))), marginBottom: 56,
                x: { ...sizeAxis(rows), label: sizeLabel(width) },
                y: { label: "mean access time, ms", nice: true, zero: true },
                marks: [
                    ...policyLines(sorted, t, "capacity_urls", "ms", (r) =>
                        `${text(r.policy)}, ${plural(r.capacity_urls, "URL")}\n${milliseconds(r.mean_ms)}\n` +
                        `hit ratio ${percent(r.hit_ratio)}`, { dots: true }),
                    Plot.ruleY(none, { y: "mean_ms", stroke: "var(--ink)", strokeDasharray: "4 4" }),
                    Plot.text(none, { y: "mean_ms", text: () => "no cache", frameAnchor: "right", dy: -8,
                        fill: "var(--ink)" }),
                    Plot.ruleY([0]),
                ],
            });
        },
    };

    // ---- as it goes ------------------------------------------------------------------------------

    const RUN_LINES = [
        { column: "hits", text: "hits", color: "var(--blue)", width: 2 },
        { column: "misses", text: "misses", color: "var(--red)", width: 2 },
        { column: "initial_misses", text: "initial misses, which no cache avoids", color: "var(--ink)",
            dash: "2 3", width: 1.5 },
    ];

    const runtime = {
        id: "runtime", title: "Run-time behaviour", wide: () => true, needs: ["runtime", "hits"],
        tables: ["runtime"],
        keys: () => [...RUN_LINES, { color: "var(--soft)", text: "full: the first victim leaves", width: 1 }],
        choose: (t) => ({ label: "Policy", start: t.policies[0].policy,
            values: t.policies.map((p) => [p.policy, text(p.policy)]) }),
        say: () => "Hits and misses as they add up, for each size. Where the misses leave the dotted line, pages " +
            "are fetched again that the cache had and let go: the gap is what a larger cache would save. The " +
            "thin upright line is the request at which the cache was full.",
        draw(t, width, trace, policy) {
            const several = document.createElement("div");
            several.className = "several";
            const columns = Math.max(1, Math.min(3, Math.floor((width + 18) / 268)));
            const own = Math.floor((width + 18) / columns) - 18;
            for (const [urls, rows] of d3.group(t.runtime.filter((r) => r.policy === policy), (r) => r.capacity_urls)) {
                const box = several.appendChild(document.createElement("div"));
                const title = box.appendChild(document.createElement("h4"));
                const last = rows.at(-1);
                const full = t.hits.filter((r) => r.policy === policy && r.capacity_urls === urls &&
                    r.first_victim_at_request !== null);
                const start = { request: 0, hits: 0, misses: 0, initial_misses: 0 };
                title.textContent = `${plural(urls, "URL")} (${+(100 * last.share_of_urls).toFixed(1)} %): ` +
                    `${percent(last.hits / last.request)} hits`;
                box.append(plot(own, {
                    height: 190, marginTop: 10, marginLeft: 44, marginBottom: 36,
                    x: { label: "request number", tickFormat: short, ticks: 4 },
                    y: { label: null, tickFormat: short, ticks: 4 },
                    marks: [
                        Plot.ruleX(full, { x: "first_victim_at_request", stroke: "var(--soft)" }),
                        ...RUN_LINES.map((l) => Plot.line([start, ...rows], { x: "request", y: l.column,
                            stroke: l.color, strokeWidth: l.width, strokeDasharray: l.dash })),
                        Plot.tip(rows, Plot.pointerX({ x: "request", y: "hits", fill: "var(--card)",
                            stroke: "var(--line)", title: (r) => `by request ${count(r.request)}\n` +
                                `${count(r.hits)} hits\n${count(r.misses)} misses\n` +
                                `${count(r.initial_misses)} initial misses` })),
                    ],
                }));
            }
            return several;
        },
    };

    const time = {
        id: "time", title: "Hit ratio over time", wide: () => true, needs: ["runtime"], tables: ["runtime"],
        keys: policyKeys,
        choose(t) {
            const sizesThere = sizeNames(t.runtime);
            return { label: "Room for", start: sizesThere[Math.min(1, sizesThere.length - 1)][0],
                values: sizesThere.map(([urls, share]) => [urls, `${plural(urls, "URL")} (${share} %)`]) };
        },
        say: () => "The hit ratio of the moment, a moving average over a twelfth of the trace. Where all lines fall " +
            "together, much is new; where they part, the policy matters.",
        draw(t, width, trace, urls) {
            return plot(width, {
                x: { label: "request number", tickFormat: short },
                y: { label: "hit ratio of late, %", nice: true },
                marks: policyLines(t.runtime.filter((r) => r.capacity_urls === +urls), t, "request",
                    "hit_ratio_lately", null, { smooth: 5, curve: "monotone-x" }),
            });
        },
    };

    // ---- Belady's anomaly ------------------------------------------------------------------------

    const lost = (t, policy) => t.anomaly.filter((r) => r.policy === policy && r.lost_to_a_smaller_cache > 0);

    const anomaly = {
        id: "anomaly", title: "Belady’s anomaly", wide: () => true, needs: ["anomaly", "policies"], tables: ["anomaly"],
        keys: () => [{ policy: "fifo", color: "var(--green)", text: "FIFO" },
            { policy: "rand", color: "var(--purple)", text: "RAND" },
            { dot: true, color: "var(--lost)", text: "hits less than a smaller cache" }],
        say(t) {
            const parts = ["fifo", "rand"].map((policy) => {
                const dips = lost(t, policy);
                const worst = d3.greatest(dips, (r) => r.lost_to_a_smaller_cache);
                return worst ? `${text(policy)} with room for ${plural(worst.capacity_urls, "URL")} hits ` +
                    `${plural(worst.lost_to_a_smaller_cache, "request")} fewer than a smaller cache of the same ` +
                    `policy (${plural(dips.length, "size")} in all)` : `${text(policy)} shows none here`;
            });
            return "A larger cache can hit less, where the order of leaving does not follow use. " +
                `${parts[0]}; ${parts[1]}. LRU and OPT cannot show it: what a smaller cache holds, a larger one ` +
                "holds too.";
        },
        draw(t, width) {
            const all = [...lost(t, "fifo"), ...lost(t, "rand")];
            const big = t.anomaly.at(-1).capacity_urls > 500;
            return plot(width, {
                x: { label: "room for so many URLs", type: big ? "log" : "linear", tickFormat: short },
                y: { label: "hits", tickFormat: short },
                marks: [
                    ...["fifo", "rand"].map((policy) => Plot.line(t.anomaly.filter((r) => r.policy === policy), {
                        x: "capacity_urls", y: "hits", stroke: `var(--${CLASSICS[policy]})`, strokeWidth: 1.8,
                        ariaDescription: `policy ${policy}` })),
                    Plot.dot(all, { x: "capacity_urls", y: "hits", r: 3, fill: "var(--lost)" }),
                    Plot.tip(t.anomaly, Plot.pointer({ x: "capacity_urls", y: "hits", fill: "var(--card)",
                        stroke: "var(--line)", title: (r) => `${text(r.policy)}, ${plural(r.capacity_urls, "URL")}\n` +
                            `${count(r.hits)} hits` + (r.lost_to_a_smaller_cache ?
                            `\n${count(r.lost_to_a_smaller_cache)} fewer than a smaller cache` : "") })),
                ],
            });
        },
    };

    // ---- miss ratio curves -----------------------------------------------------------------------

    function curve(id, title, table, x, y, say, label, extra = {}) {
        const inBytes = x === "capacity_bytes";
        const size = (r) => inBytes ? bytes(r[x]) : plural(r[x], "URL");
        return {
            id, title, needs: [table, "policies"], tables: [table], keys: policyKeys, say, ...extra,
            when: (t) => t[table].some((r) => r[y] !== null),
            draw(t, width) {
                const ticks = inBytes ? byteTicks(t[table], x, width) : undefined;
                return plot(width, {
                    x: { label: `${inBytes ? "room in bytes" : "room for so many URLs"} (logarithmic)`, type: "log",
                        base: inBytes ? 2 : 10, tickFormat: inBytes ? bytes : short, ticks },
                    y: { label, zero: true, nice: true },
                    marks: policyLines(t[table], t, x, y, (r) => `${text(r.policy)}, ${size(r)}\n` +
                        `miss ratio ${percent(r.miss_ratio)}` + (r.byte_miss_ratio === null ? "" :
                        `\nbyte miss ratio ${percent(r.byte_miss_ratio)}`)),
                });
            },
        };
    }

    // The policy that can be had and lies nearest to the bound, by the mean over all sizes of a curve.
    function nearest(rows, t, y) {
        const means = t.policies.filter((p) => !p.needs_future).map((p) => [p.policy,
            d3.mean(rows.filter((r) => r.policy === p.policy), (r) => r[y])]).filter(([, mean]) => mean !== undefined);
        return d3.least(means, ([, mean]) => mean)?.[0] ?? "none";
    }

    const curveUrls = curve("curve-urls", "Miss ratio curves, in URLs", "curve_urls", "capacity_urls", "miss_ratio",
        (t, trace) => (t.policies.some((p) => p.needs_future) ? "OPT knows the future: below its line no policy can " +
            "come, and what lies between it and another line is what a cleverer policy could still win. " : "") +
            `Over all sizes ${text(nearest(t.curve_urls, t, "miss_ratio"))} lies lowest of those that can be had. ` +
            `The floor is ${percent(1 - trace.infinite_hit_ratio)}: first requests.`,
        "miss ratio, %", { wide: () => true });

    const curveBytes = curve("curve-bytes", "Miss ratio curves, in bytes", "curve_bytes", "capacity_bytes", "miss_ratio",
        (t) => `Here ${text(nearest(t.curve_bytes, t, "miss_ratio"))} lies lowest. Where sizes differ, OPT, which ` +
            "passes them over, is no strict bound: a policy that prefers small pages may hit more often.",
        "miss ratio, %");

    const curveByteMisses = curve("curve-byte-misses", "Byte miss ratio curves", "curve_bytes", "capacity_bytes",
        "byte_miss_ratio",
        (t) => `The share of the bytes that must be fetched: what a slow line feels. ` +
            `${text(nearest(t.curve_bytes, t, "byte_miss_ratio"))} lies lowest; it need not be who hits most often.`,
        "byte miss ratio, %");

    return {
        list: [pattern, shares, sizes, hits, access, curveUrls, curveBytes, curveByteMisses, runtime, time, anomaly],
        format: { count, percent, bytes, span },
    };
})();
