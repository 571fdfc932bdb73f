/*
 * The figures: each says what tables it needs, what to see in it, and draws itself with Observable
 * Plot at a width. `t` has the tables as arrays of objects.
 */
"use strict";

const reportFigures = (() => {
    const { count, percent, bytes, short, plural, text, real, policyKeys, plot, byteTicks, policyLines } = reportLooks;
    const { pattern, shares, sizes } = reportTraceFigures;

    // ---- hit ratio and access time by size -------------------------------------------------------

    // Sizes as words of an ordinal axis.
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

    const bestAndWorst = (rows) => [d3.greatest(rows, (r) => r.hit_ratio), d3.least(rows, (r) => r.hit_ratio)];

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
            const there = new Set(real(t));
            const rows = t.hits.filter((r) => there.has(r.policy));
            const ideal = `a cache that never forgets hits ${percent(trace.infinite_hit_ratio)}.`;
            if (rows.length === 0)
                return (t.policies.some((p) => p.needs_future) ? "No policy is here that a cache could have: OPT " +
                    "knows the future. For comparison, " : "Nothing is stored, so nothing hits; ") + ideal + liveAgrees(t);
            const small = d3.min(rows, (r) => r.capacity_urls);
            const [best, worst] = bestAndWorst(rows.filter((r) => r.capacity_urls === small));
            const top = d3.max(rows, (r) => r.hit_ratio);
            const enough = d3.least(rows.filter((r) => r.hit_ratio >= top - 0.01), (r) => r.capacity_urls);
            return `With room for ${plural(small, "URL")} ${text(best.policy)} hits most (${percent(best.hit_ratio)})` +
                (there.size > 1 ? ` and ${text(worst.policy)} least (${percent(worst.hit_ratio)}). ` : ". ") +
                `${text(enough.policy)} comes within one point of the best of all (${percent(top)}) with ` +
                `${plural(enough.capacity_urls, "URL")}; ${ideal}` + liveAgrees(t);
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
        keys: () => [{ policy: "fifo", color: "var(--fifo)", text: "FIFO" },
            { policy: "rand", color: "var(--rand)", text: "RAND" },
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
                        x: "capacity_urls", y: "hits", stroke: `var(--${policy})`, strokeWidth: 1.8,
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

    // Which policy that can be had lies nearest to the bound, by the mean over all sizes of a curve.
    function lowest(rows, t, y) {
        const means = real(t).map((policy) => [policy, d3.mean(rows.filter((r) => r.policy === policy), (r) => r[y])])
            .filter(([, mean]) => mean !== undefined);
        const first = d3.least(means, ([, mean]) => mean)?.[0];
        return means.length > 1 ? `Over all sizes ${text(first)} lies lowest of those that can be had. ` : "";
    }

    const hasBound = (t) => t.policies.some((p) => p.needs_future);

    const curveUrls = curve("curve-urls", "Miss ratio curves, in URLs", "curve_urls", "capacity_urls", "miss_ratio",
        (t, trace) => (hasBound(t) ? "OPT knows the future: no policy that stores whatever it misses can come below " +
            "its line, and what lies between it and another line is what a cleverer one could still win. One that " +
            "may turn pages away, such as TinyLFU, could come below even that. " : "") +
            lowest(t.curve_urls, t, "miss_ratio") + `The floor is ${percent(1 - trace.infinite_hit_ratio)}: ` +
            "first requests, which no cache can hit.",
        "miss ratio, %", { wide: () => true });

    const curveBytes = curve("curve-bytes", "Miss ratio curves, in bytes", "curve_bytes", "capacity_bytes", "miss_ratio",
        (t, trace) => lowest(t.curve_bytes, t, "miss_ratio") + (hasBound(t) ? "Where sizes differ, OPT, which passes " +
            "them over, is no strict bound: a policy that prefers small pages may hit more often." :
            `The floor is ${percent(1 - trace.infinite_hit_ratio)}: first requests, which no cache can hit.`),
        "miss ratio, %");

    const curveByteMisses = curve("curve-byte-misses", "Byte miss ratio curves", "curve_bytes", "capacity_bytes",
        "byte_miss_ratio",
        (t) => "The share of the bytes that must be fetched: what a slow line feels. " +
            lowest(t.curve_bytes, t, "byte_miss_ratio") + "Who hits most often need not lie low here.",
        "byte miss ratio, %");

    return {
        list: [pattern, shares, sizes, hits, access, curveUrls, curveBytes, curveByteMisses, runtime, time, anomaly],
    };
})();
