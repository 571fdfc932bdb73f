/*
 * The figures: each says what tables it needs, what to see in it, and draws itself with Observable
 * Plot at a width. `t` has the tables as arrays of objects.
 */
"use strict";

const reportFigures = (() => {
    const { count, percent, bytes, short, list, plural, text, points, ratio, real, looks, policyKeys, bandKeys, plot,
        labelledPlot, byteTicks, policyLines, ratioAxis, finished, complete, SPACE } = reportLooks;
    const { timeAxis, timeMarks, place, scale } = reportTimes;
    const { pattern, shares, sizes } = reportTraceFigures;

    // ---- hit ratio and access time by size -------------------------------------------------------

    // Sizes of hit ratios: in bytes where sizes are known, unless the command line has others.
    const inBytes = (t) => t.hits.some((r) => r.capacity_bytes > 0);
    const sizeOf = (r) => r.capacity_bytes || r.capacity_urls;
    const sizeText = (size, isBytes) => isBytes ? bytes(size) : plural(size, "URL");
    const shareText = (share) => `${+(100 * share).toPrecision(3)}${SPACE}%`;

    // By size, its share of everything.
    const sharesOf = (rows) => new Map(d3.sort(rows, sizeOf)
        .map((r) => [sizeOf(r), r.capacity_share ?? r.share_of_urls]));

    const sizeAxis = (rows, width, isBytes) => {
        const shares = sharesOf(rows);
        const all = isBytes ? "distinct bytes" : "distinct URLs";
        const axis = { type: "point", domain: [...shares.keys()], padding: 0.3 };
        // Short, so that they do not overlap; tips and tables have all digits.
        const percent = (share) => `${share < 0.01 ? +(100 * share).toPrecision(1) : Math.round(100 * share)}`;
        if (width < 480)
            return { ...axis, tickFormat: (size) => percent(shares.get(size)), label: `capacity, % of the ${all}` };
        return { ...axis,
            tickFormat: (size) => `${shareText(shares.get(size))}\n(${isBytes ? bytes(size) : count(size)})`,
            label: `capacity, as a share of the ${all} (and ${isBytes ? "in bytes" : "their number"})` };
    };
    const byteAxis = (rows, width) => ({
        type: "point", domain: [...new Set(d3.sort(rows.map((r) => r.capacity_bytes)))],
        padding: 0.3, label: "capacity in bytes",
        tickFormat: width < 480 ? (size) => bytes(size).replace(/\s/, "\n") : bytes });

    const bestAndWorst = (rows, y) => [d3.greatest(rows, (r) => r[y]), d3.least(rows, (r) => r[y])];

    // What counts: the ratio, and how sentences name it.
    const goals = {
        requests: { y: "hit_ratio", miss: "miss_ratio", label: "hit ratio, %", name: "hit ratio",
            ideal: (trace) => `an infinite cache has a hit ratio of ${percent(trace.infinite.hit_ratio)}.` },
        bytes: { y: "byte_hit_ratio", miss: "byte_miss_ratio", label: "byte hit ratio, %", name: "byte hit ratio",
            ideal: (trace) => `an infinite cache has a byte hit ratio of ${percent(trace.infinite.byte_hit_ratio)}.` },
    };
    const goalOf = (trace) => trace.by_bytes ? goals.bytes : goals.requests;

    // Two ratios tie if they do not differ beyond the sample's error and the spread of the seeds.
    const tie = (a, b, y) => Math.abs(a[y] - b[y]) <= Math.max(1e-6,
        1.96 * Math.hypot(a[`${y}_error`] ?? 0, b[`${y}_error`] ?? 0),
        2 * Math.hypot(a[`${y}_sd`] ?? 0, b[`${y}_sd`] ?? 0));
    const tied = (rows, best, y) => rows.filter((r) => tie(r, best, y)).map((r) => text(r.policy));
    const names = (all) => list(all) + (all.length > 1 ? " (a tie)" : "");

    const REACHED = 0.9; // of an infinite cache's ratio, as advise takes it

    // As "sunproxy advise": requests that were independent of each other would be so uncertain at least.
    const INTERVAL = 1.96, MOST_UNCERTAIN = 0.05; // standard errors of a 95 % interval; share
    function littleData(trace, ratio) {
        const counted = (trace.sample_requests ?? trace.requests) * (1 - trace.warmup / trace.requests);
        const half = INTERVAL * Math.sqrt(ratio * (1 - ratio) / counted);
        return half > MOST_UNCERTAIN ? `Too little data: the ratio is uncertain by ±${Math.round(100 * half)} points ` +
            "(95\u00a0%) or more, so this is a guess. " : "";
    }

    // The smallest simulated cache that reaches a share of an infinite cache's ratio.
    function recommendation(t, trace) {
        const goal = goalOf(trace);
        const table = t.curve_bytes ? "curve_bytes" : "curve_urls";
        const x = t.curve_bytes ? "capacity_bytes" : "capacity_urls";
        const there = complete(t, table);
        const rows = t[table].filter((r) => real(t).includes(r.policy) && there.has(r.policy));
        const wanted = REACHED * trace.infinite[goal.y];
        const enough = rows.filter((r) => 1 - r[goal.miss] >= wanted - 1e-9);
        if (wanted === 0)
            return "No cache: no URL is requested twice.";
        if (enough.length === 0)
            return `No simulated cache reaches ${100 * REACHED}${SPACE}% of an infinite cache’s ${goal.name}.`;
        const size = d3.min(enough, (r) => r[x]);
        const best = d3.least(enough.filter((r) => r[x] === size), (r) => r[goal.miss]);
        const winners = tied(enough.filter((r) => r[x] === size), best, goal.miss);
        return `${names(winners)} with ${x === "capacity_bytes" ? bytes(size) : plural(size, "URL")}: the smallest ` +
            `simulated cache that reaches ${100 * REACHED}${SPACE}% of an infinite cache’s ${goal.name} ` +
            `(${percent(1 - best[goal.miss])} of ${percent(trace.infinite[goal.y])}). ` + littleData(trace, 1 - best[goal.miss]) +
            (t.curve_bytes && trace.count_bytes === "body" ? "Bytes are those of bodies; the server counts " +
                "more for a page, as --count-bytes whole does here. " : "") + "“sunproxy advise” searches the sizes between those that are simulated here.";
    }

    // Replays with a capacity in URLs alone, or in bytes alone.
    const replays = (t, column) => (t.live ?? []).filter((r) => r[column] > 0 &&
        r[column === "capacity_urls" ? "capacity_bytes" : "capacity_urls"] === 0);
    const unitOf = (t) => inBytes(t) ? "capacity_bytes" : "capacity_urls";
    const replaysAt = (t, rows) => replays(t, unitOf(t)).map((r) => ({ ...r, size: sizeOf(r) }))
        .filter((r) => rows.some((h) => sizeOf(h) === r.size));
    const circles = (t, rows, x, y) => [...d3.group(rows.filter((r) => r[y] !== null), (r) => r.policy)]
        .map(([policy, own]) => Plot.dot(own, { x, y: (r) => 100 * r[y], r: 8, strokeWidth: 1.2,
            stroke: looks(t).get(policy)?.color ?? "var(--soft)", ariaDescription: `policy ${policy}` }));
    const liveKey = (rows) => rows.length ?
        [{ dot: true, open: true, color: "var(--soft)", text: "measured live" }] : [];

    // Policies that do the same at every size are one line.
    function together(t, trace, y) {
        const groups = [...d3.group(complete(t, "hits"), (policy) =>
            t.hits.filter((r) => r.policy === policy).map((r) => r[y]).join(" ")).values()].filter((g) => g.length > 1);
        if (groups.length === 0)
            return "";
        const why = !trace.sized && groups.some((g) => g.includes("fifo") && g.includes("maxs")) ?
            " (without sizes all pages are equally large, and MAXS evicts the oldest)" : "";
        return ` Ties at every size: ${groups.map((g) => list(g.map(text))).join("; ")}${why}.`;
    }

    // How far replays through the server are from their simulations.
    function liveAgrees(t) {
        const simulated = new Map(t.hits.map((r) => [`${r.policy} ${sizeOf(r)}`, r]));
        const pairs = replays(t, unitOf(t)).map((r) => [r, simulated.get(`${r.policy} ${sizeOf(r)}`)])
            .filter(([, s]) => s !== undefined);
        // The largest difference, in points.
        const apart = (some) => 100 * d3.max(some, ([r, s]) => Math.abs(r.hit_ratio - s.hit_ratio));
        const exact = pairs.filter(([, s]) => s.seeds === 1);
        const drawn = pairs.filter(([, s]) => s.seeds > 1);
        if (pairs.length === 0)
            return "";
        return ` Circles are ${plural(pairs.length, "replay")} through the server.` + (exact.length === 0 ? "" :
            apart(exact) < 0.0005 ? " The hit ratios equal those of the simulations." :
                ` At most ${apart(exact).toFixed(2)} points from the simulation.`) + (drawn.length === 0 ? "" :
            ` Those of randomised policies are of one seed, up to ${apart(drawn).toFixed(2)} points from the mean of ` +
            `${d3.max(drawn, ([, s]) => s.seeds)} simulated seeds.`);
    }

    const FALL = 0.01; // of a ratio: a fall that can be seen

    // Where a larger cache hits less under most policies, and a large page fits there for the first time.
    function falls(t, y) {
        if (!inBytes(t) || !t.large_pages?.length)
            return "";
        const sizes = [...sharesOf(t.hits).keys()];
        const at = new Map(t.hits.map((r) => [`${r.policy} ${sizeOf(r)}`, r[y]]));
        const policies = real(t);
        for (const [a, b] of d3.pairs(sizes)) {
            const lower = policies.filter((p) => at.get(`${p} ${b}`) < at.get(`${p} ${a}`) - FALL);
            const pages = t.large_pages.filter((r) => r.bytes > a && r.bytes <= b);
            if (lower.length > policies.length / 2 && pages.length > 0)
                return ` From ${bytes(a)} to ${bytes(b)} it falls under ${lower.length} of ${policies.length} policies: ` +
                    `${plural(pages.length, "large page")} (${list(pages.map((r) => bytes(r.bytes)))}) first fit there, and ` +
                    "many small pages are evicted for them.";
        }
        return "";
    }

    const hits = {
        id: "hits", title: (trace) => trace.by_bytes ? "Byte hit ratio by cache size and policy" :
            "Hit ratio by cache size and policy", wide: () => true, needs: ["hits"], tables: ["hits"],
        keys: (t, trace) => [...policyKeys(t, [...t.hits, ...replaysAt(t, t.hits)], true),
            ...bandKeys(t.hits, goalOf(trace).y), ...liveKey(replaysAt(t, t.hits))],
        say(t, trace) {
            const goal = goalOf(trace);
            const there = real(t).filter((policy) => complete(t, "hits").has(policy));
            const rows = t.hits.filter((r) => there.includes(r.policy));
            if (real(t).length === 0)
                return (t.policies.some((p) => p.needs_future) ? "No simulated policy can be used in a cache: OPT " +
                    "knows the future. For comparison, " : "Nothing is stored, so nothing hits; ") + goal.ideal(trace) +
                    liveAgrees(t);
            if (rows.length === 0)
                return `No policy has all its sizes here. For comparison, ${goal.ideal(trace)}`;
            const small = d3.min(rows, sizeOf);
            const smallest = rows.filter((r) => sizeOf(r) === small);
            const [best, worst] = bestAndWorst(smallest, goal.y);
            const top = d3.greatest(rows, (r) => r[goal.y]);
            const enough = d3.least(rows.filter((r) => r[goal.y] >= top[goal.y] - 0.01), sizeOf);
            const sufficient = rows.filter((r) => r[goal.y] >= top[goal.y] - 0.01 && sizeOf(r) === sizeOf(enough));
            return `With ${sizeText(small, inBytes(t))} ` + (there.length > 1 && tie(best, worst, goal.y) ?
                `all policies tie (${ratio(best, goal.y)}). ` :
                `the highest ${goal.name} is that of ${names(tied(smallest, best, goal.y))}: ${ratio(best, goal.y)}` +
                (there.length > 1 ? `; the lowest that of ${names(tied(smallest, worst, goal.y))}: ` +
                    `${ratio(worst, goal.y)}. ` : ". ")) +
                `${list(sufficient)} ${sufficient.length > 1 ? "come" : "comes"} within one point of the highest of all sizes (${ratio(top, goal.y)}) with ` +
                `${sizeText(sizeOf(enough), inBytes(t))}; ${goal.ideal(trace)}` + falls(t, goal.y) +
                together(t, trace, goal.y) + liveAgrees(t);
        },
        draw(t, width, trace) {
            const goal = goalOf(trace);
            const isBytes = inBytes(t);
            const rows = t.hits.map((r) => ({ ...r, size: sizeOf(r) }));
            return labelledPlot(width, rows, t, "size", goal.y, {
                height: Math.round(Math.min(460, Math.max(300, width * 0.5))), marginBottom: 56,
                x: sizeAxis(t.hits, width, isBytes),
                y: ratioAxis(goal.label, t.hits.map((r) => r[goal.y]), trace),
                marks: [
                    ...policyLines(rows, t, "size", goal.y, (r) =>
                        `${text(r.policy)}, ${sizeText(r.size, isBytes)}\nhit ratio ${ratio(r, "hit_ratio")}` +
                        (r.byte_hit_ratio === null ? "" : `\nbyte hit ratio ${ratio(r, "byte_hit_ratio")}`) +
                        `\n${plural(r.evictions, "eviction")}`, { dots: true }),
                    ...circles(t, replaysAt(t, t.hits), "size", goal.y),
                ],
            });
        },
    };

    const milliseconds = (ms) => `${ms >= 100 ? Math.round(ms) : ms.toFixed(1)}${SPACE}ms`;

    function correlation(rows, x, y) {
        const [mx, my] = [d3.mean(rows, (r) => r[x]), d3.mean(rows, (r) => r[y])];
        const spread = Math.sqrt(d3.sum(rows, (r) => (r[x] - mx) ** 2) * d3.sum(rows, (r) => (r[y] - my) ** 2));
        return spread ? d3.sum(rows, (r) => (r[x] - mx) * (r[y] - my)) / spread : 0;
    }

    // Access times, one figure for capacities in URLs and one for capacities in bytes.
    function access(id, title, column) {
        const inUrls = column === "capacity_urls";
        const rowsOf = (t) => t.live.filter((r) => r.policy === "none" ? false : inUrls ? r.capacity_urls > 0
            : r.capacity_bytes > 0 && r.capacity_urls === 0);
        const size = (r) => inUrls ? plural(r.capacity_urls, "URL") : bytes(r.capacity_bytes);
        return {
            id, title, wide: () => true, needs: ["live"], tables: ["live"], when: (t) => rowsOf(t).length > 0,
            keys: (t) => policyKeys(t, rowsOf(t), true),
            say(t) {
                const rows = rowsOf(t);
                const none = t.live.find((r) => r.policy === "none");
                const slow = d3.greatest(rows, (r) => r.mean_ms);
                const fast = d3.least(rows, (r) => r.mean_ms);
                return `Measured live, through the server: from ${milliseconds(fast.mean_ms)} (${text(fast.policy)}, ` +
                    `${size(fast)}) to ${milliseconds(slow.mean_ms)} (${text(slow.policy)}, ${size(slow)})` +
                    (none ? `, against ${milliseconds(none.mean_ms)} without a cache, ` +
                    `${(none.mean_ms / slow.mean_ms).toFixed(1)} times the slowest. ` : ". ") +
                    (rows.length > 2 ? "Misses cost the time, so the lines mirror those of the hit ratio (correlation " +
                    `${correlation(rows, "mean_ms", "hit_ratio").toFixed(2).replace("-", "−")}).` : "");
            },
            draw(t, width) {
                const rows = d3.sort(rowsOf(t), (r) => r[column]).map((r) => ({ ...r, ms: r.mean_ms / 100 }));
                const none = t.live.filter((r) => r.policy === "none");
                return labelledPlot(width, rows, t, column, "ms", {
                    height: Math.round(Math.min(420, Math.max(300, width * 0.45))), marginBottom: 56,
                    x: inUrls ? sizeAxis(rows, width, false) : byteAxis(rows, width),
                    y: { label: "mean access time, ms", nice: true, zero: true },
                    marks: [
                        ...policyLines(rows, t, column, "ms", (r) => `${text(r.policy)}, ${size(r)}\n` +
                            `${milliseconds(r.mean_ms)}\nhit ratio ${percent(r.hit_ratio)}`, { dots: true }),
                        Plot.ruleY(none, { y: "mean_ms", stroke: "var(--ink)", strokeDasharray: "4 4" }),
                        Plot.text(none, { y: "mean_ms", text: () => "no cache", frameAnchor: "right", dy: -8,
                            fill: "var(--ink)" }),
                        Plot.ruleY([0]),
                    ],
                });
            },
        };
    }

    const accessUrls = access("access", "Access time by cache size and policy", "capacity_urls");
    const accessBytes = access("access-bytes", "Access time by capacity in bytes and policy", "capacity_bytes");

    // ---- as it goes ------------------------------------------------------------------------------

    const RUN_LINES = [
        { column: "hits", text: "hits", color: "var(--blue)", width: 2 },
        { column: "misses", text: "misses", color: "var(--red)", width: 2 },
        { column: "compulsory_misses", text: "compulsory misses", color: "var(--ink)",
            dash: "2 3", width: 1.5 },
    ];

    const runtime = {
        id: "runtime", title: "Run-time behaviour", wide: () => true, needs: ["runtime", "hits"],
        tables: ["runtime"],
        keys: () => [...RUN_LINES, { color: "var(--soft)", text: "first eviction", width: 1.2 }],
        choose: (t) => ({ label: "Policy", start: t.policies[0].policy,
            values: t.policies.map((p) => [p.policy, text(p.policy)]) }),
        say: (t, trace) => "Cumulative hits and misses by size, all on one scale. The dotted line counts compulsory " +
            "misses (first requests); misses above it are pages that were evicted and fetched again, which a larger " +
            "cache would save. The thin dark vertical line marks the first eviction" +
            (timeAxis(t) ? "; times (UTC, or since the beginning) are at the top." : ".") +
            (trace.sample_urls ? " Estimated for the whole trace from the sample." : "") +
            (trace.warmup ? " The lines begin with the first request; the shares of hits leave the warm-up out." : ""),
        draw(t, width, trace, policy) {
            const several = document.createElement("div");
            several.className = "several";
            const columns = Math.max(1, Math.min(3, Math.floor((width + 18) / 268)));
            const own = Math.floor((width + 18) / columns) - 18;
            const most = d3.max(t.runtime, (r) => Math.max(r.hits, r.misses));
            const dates = timeMarks(t, trace.requests, own - 58);
            for (const [size, rows] of d3.group(t.runtime.filter((r) => r.policy === policy), sizeOf)) {
                const box = several.appendChild(document.createElement("div"));
                const title = box.appendChild(document.createElement("h4"));
                const all = t.hits.find((r) => r.policy === policy && sizeOf(r) === size);
                const start = { request: 0, hits: 0, misses: 0, compulsory_misses: 0 };
                title.textContent = `${sizeText(size, inBytes(t))} (${shareText(all.capacity_share)}): ` +
                    `${ratio(all, "hit_ratio")} hits`;
                box.append(plot(own, {
                    height: 190, marginTop: 18, marginLeft: 44, marginBottom: 36,
                    x: { label: "request number", tickFormat: short, ticks: 4, domain: [0, trace.requests] },
                    y: { label: null, tickFormat: short, ticks: 4, domain: [0, most] },
                    marks: [
                        ...dates,
                        Plot.ruleX([all].filter((r) => r.first_victim_at_request !== null),
                            { x: "first_victim_at_request", stroke: "var(--soft)", strokeWidth: 1.2 }),
                        ...RUN_LINES.map((l) => Plot.line([start, ...rows], { x: "request", y: l.column,
                            stroke: l.color, strokeWidth: l.width, strokeDasharray: l.dash })),
                        Plot.tip(rows, Plot.pointerX({ x: "request", y: "hits", fill: "var(--card)",
                            stroke: "var(--line)", title: (r) => `by request ${count(r.request)}\n` +
                                `${count(r.hits)} hits\n${count(r.misses)} misses\n` +
                                `${count(r.compulsory_misses)} compulsory misses` })),
                    ],
                }));
            }
            return several;
        },
    };

    // How many windows on either side a window's mean covers: none where there are few.
    const windowsOf = (t) => new Set(t.runtime.map((r) => r.request)).size;
    const besideOf = (windows) => windows >= 24 ? 2 : windows >= 9 ? 1 : 0;

    const smooth = (rows, beside) => [...d3.group(rows, (r) => r.policy).values()].flatMap((own) => own.map((r, i) =>
        ({ ...r, mean: d3.mean(own.slice(Math.max(0, i - beside), i + beside + 1), (w) => w.window_hit_ratio) })));

    const time = {
        id: "time", title: "Hit ratio over time", wide: () => true, needs: ["runtime"], tables: ["runtime"],
        keys: (t) => policyKeys(t, t.runtime),
        choose(t) {
            const there = [...sharesOf(t.runtime)];
            return { label: "Capacity", start: there[Math.min(1, there.length - 1)][0],
                values: there.map(([size, share]) => [size, `${sizeText(size, inBytes(t))} (${shareText(share)})`]) };
        },
        say(t, trace) {
            const windows = windowsOf(t);
            const share = windows / (2 * besideOf(windows) + 1);
            return `Moving-average hit ratio (window: 1/${Math.round(share)} of the trace): each point is the mean of ` +
                `about ${plural(Math.round(trace.requests / share), "request")}. Where all lines fall together, many ` +
                "requests are first requests; where they differ, the policy matters." +
                (trace.sample_urls ? " Estimated for the whole trace from the sample." : "");
        },
        draw(t, width, trace, size) {
            const windows = windowsOf(t);
            const axis = t.runtime.every((r) => r.time_us !== null) ? timeAxis(t) : null;
            const rows = smooth(t.runtime.filter((r) => sizeOf(r) === +size), besideOf(windows))
                .map((r) => ({ ...r, at: axis ? place(axis, r.time_us / 1000) : r.request }));
            return labelledPlot(width, rows, t, "at", "mean", {
                x: axis ? scale(axis, width) : { label: "request number", tickFormat: short },
                y: ratioAxis("moving-average hit ratio, %", rows.map((r) => r.mean), trace,
                    trace.requests * (2 * besideOf(windows) + 1) / windows),
                marks: policyLines(rows, t, "at", "mean",
                    (r) => `${text(r.policy)}, about request ${count(r.request)}\nmoving-average hit ratio ` +
                        percent(r.mean), { curve: axis ? "linear" : "monotone-x", dots: windows < 9 }),
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
        say(t, trace) {
            const { sizes, largest } = t.planned.find((p) => p.table === "anomaly");
            const parts = ["fifo", "rand"].map((policy) => {
                const dips = lost(t, policy);
                const worst = d3.greatest(dips, (r) => r.lost_to_a_smaller_cache);
                const done = t.anomaly.filter((r) => r.policy === policy).length;
                return (worst ? `${text(policy)} with ${plural(worst.capacity_urls, "URL")} hits ` +
                    `${plural(worst.lost_to_a_smaller_cache, "request")} fewer than a smaller cache of the same ` +
                    `policy (${plural(dips.length, "size")} in all)` : done === 0 ? `${text(policy)} was not simulated` :
                    `${text(policy)} shows none`) + (done === sizes ? worst ? "" : " here" :
                    done === 0 ? "" : ` at the ${done} of ${sizes} sizes that were finished`);
            });
            return "A larger cache can have fewer hits. Capacities here count pages: " +
                `${parts[0]}; ${parts[1]}. In pages LRU and OPT cannot show the anomaly: a larger cache holds ` +
                "all that a smaller one holds. In bytes, with variable sizes, that is not so, and every policy " +
                "can show it." + (trace.sample_urls ? " Capacities and hits are those of the sample itself, " +
                `${plural(trace.sample_requests, "request")} for ${plural(largest, "URL")}; the whole trace may ` +
                "show it at other sizes." : "");
        },
        draw(t, width, trace) {
            const all = [...lost(t, "fifo"), ...lost(t, "rand")];
            const big = t.planned.find((p) => p.table === "anomaly").largest > 500;
            return plot(width, {
                x: { label: `capacity in ${trace.sample_urls ? "the sample’s " : ""}URLs`, type: big ? "log" : "linear", tickFormat: short },
                y: { label: "hits", tickFormat: short, zero: true, nice: true },
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

    // The most that a sample may be off.
    function uncertain(rows, y) {
        const own = rows.filter((r) => r[y] !== null);
        const errors = own.map((r) => r[`${y}_error`]).filter((error) => error !== null);
        const unknown = own.filter((r) => r[`${y}_error`] === null && r.error_unknown).length;
        return errors.length > 0 ? ` From a sample: off by up to ${points(d3.max(errors))} points` + (unknown > 0 ?
            `, and at ${unknown} of ${own.length} points it cannot tell by how much.` : ".") :
            unknown > 0 ? " From a sample that cannot tell how far off this is." : "";
    }

    const BOUND = { color: "var(--soft)", dash: "2 4", width: 2, text: "PFOO-L: no policy has fewer misses" };

    const LARGE = { color: "var(--soft)", dash: "1 3", width: 1, text: "a large page first fits" };

    // Large pages within the range of the curves, numbered.
    const largePages = (t) => {
        const least = d3.min(t.curve_bytes, (r) => r.capacity_bytes);
        return (t.large_pages ?? []).filter((r) => r.bytes >= least).map((r, i) => ({ ...r, mark: String(i + 1) }));
    };
    const largeText = (pages) => pages.length === 0 ? "" : ` Dotted lines: the capacit${pages.length === 1 ? "y" : "ies"} ` +
        "at which a large page first fits. Smaller caches never store it; larger ones do, so that its requests hit, and " +
        "many small pages are evicted for it. So curves can step down or up there. " +
        pages.map((r) => `${pages.length === 1 ? "" : `${r.mark}: `}${r.url.replace(/^https?:\/\//, "").slice(0, 40)} ` +
            `(${bytes(r.bytes)}, ${percent(r.share_of_requests)} of the requests, ` +
            `${percent(r.share_of_bytes_saved)} of the bytes)`).join("; ") + ".";

    // Their numbers above the lines; those of near lines stand together.
    function largeMarks(pages, rows, x, width) {
        const [low, high] = d3.extent(rows, (r) => r[x]);
        const at = (r) => Math.log(r.bytes / low) / Math.log(high / low) * (width - 140);
        const labels = [];
        for (const r of pages.length > 1 ? pages : [])
            if (labels.length && at(r) - at(labels.at(-1)) < 16)
                labels.at(-1).mark += `,${r.mark}`;
            else
                labels.push({ ...r });
        return [
            Plot.ruleX(pages, { x: "bytes", stroke: "var(--soft)", strokeDasharray: "1 3", ariaDescription: "large page" }),
            Plot.text(labels, { x: "bytes", text: "mark", frameAnchor: "top", dy: -9, fontSize: 11,
                fill: "var(--soft)", ariaDescription: "large page label" }),
        ];
    }

    function curve(id, title, table, x, y, say, label, wide) {
        const isBytes = x === "capacity_bytes";
        const size = (r) => isBytes ? bytes(r[x]) : plural(r[x], "URL");
        const measured = (t) => replays(t, x).map((r) => ({ ...r, miss_ratio: 1 - r.hit_ratio,
            byte_miss_ratio: r.byte_hit_ratio === null ? null : 1 - r.byte_hit_ratio })).filter((r) => r[y] !== null);
        const bound = (t) => isBytes ? t.bound_bytes ?? [] : [];
        const large = (t) => isBytes ? largePages(t) : [];
        return {
            id, title, needs: [table, "policies"], tables: isBytes ? [table, "bound_bytes"] : [table], wide: (t, trace) => wide(trace),
            keys: (t) => [...policyKeys(t, [...t[table], ...measured(t)]), ...bandKeys(t[table], y),
                ...liveKey(measured(t)), ...(bound(t).length ? [BOUND] : []), ...(large(t).length ? [LARGE] : [])],
            say: (t, trace) => say(t, trace) + uncertain(t[table], y) + largeText(large(t)),
            draw(t, width) {
                const ticks = isBytes ? byteTicks(t[table], x, width) : undefined;
                return labelledPlot(width, t[table], t, x, y, {
                    x: { label: `capacity in ${isBytes ? "bytes" : "URLs"} (logarithmic)`, type: "log",
                        base: isBytes ? 2 : 10, tickFormat: isBytes ? bytes : short, ticks },
                    y: { label, zero: true, nice: true },
                    marks: [
                        ...largeMarks(large(t), t[table], x, width),
                        ...policyLines(t[table], t, x, y, (r) => `${text(r.policy)}, ${size(r)}\n` +
                            `miss ratio ${ratio(r, "miss_ratio")}` + (r.byte_miss_ratio === null ? "" :
                            `\nbyte miss ratio ${ratio(r, "byte_miss_ratio")}`)),
                        ...circles(t, measured(t), x, y),
                        Plot.line(bound(t), { x, y: (r) => 100 * r[y], stroke: BOUND.color,
                            strokeWidth: BOUND.width, strokeDasharray: BOUND.dash, ariaDescription: "bound" }),
                    ],
                });
            },
        };
    }

    // Which usable policy has the lowest curve, by the mean over all sizes; all that tie.
    function lowest(table, t, y) {
        const all = complete(t, table);
        const means = real(t).filter((policy) => all.has(policy))
            .map((policy) => [policy, d3.mean(t[table].filter((r) => r.policy === policy), (r) => r[y])]);
        const [low, high] = d3.extent(means, ([, mean]) => mean);
        const first = means.filter(([, mean]) => mean - low < 1e-6).map(([policy]) => text(policy));
        return low < high ? `The lowest mean over all sizes, OPT aside, is that of ${names(first)}. ` : "";
    }

    const hasBound = (t) => t.policies.some((p) => p.needs_future);

    const curveUrls = curve("curve-urls", "Miss ratio curves, in URLs", "curve_urls", "capacity_urls", "miss_ratio",
        (t, trace) => (hasBound(t) ? "OPT knows the future: with capacities in pages, no policy that stores every page it " +
            "misses has a lower miss ratio. A policy with admission control, such as TinyLFU, can. " : "") +
            lowest("curve_urls", t, "miss_ratio") + `The minimum is ${percent(1 - trace.infinite.hit_ratio)}: ` +
            "compulsory misses.",
        "miss ratio, %", (trace) => !trace.by_bytes);

    const curveBytes = curve("curve-bytes", "Miss ratio curves, in bytes", "curve_bytes", "capacity_bytes", "miss_ratio",
        (t, trace) => lowest("curve_bytes", t, "miss_ratio") + (hasBound(t) ? "OPT ignores sizes; with variable " +
            "sizes it is not an upper bound. " : "") + (t.bound_bytes ? "PFOO-L is a bound with variable sizes. " : "") + `The minimum is ${percent(1 - trace.infinite.hit_ratio)}: ` +
            "compulsory misses.",
        "miss ratio, %", () => false);

    const curveByteMisses = curve("curve-byte-misses", "Byte miss ratio curves", "curve_bytes", "capacity_bytes",
        "byte_miss_ratio",
        (t) => "The share of the requested bytes that is fetched from origins. " +
            lowest("curve_bytes", t, "byte_miss_ratio") + "A high hit ratio does not imply a low byte miss ratio.",
        "byte miss ratio, %", (trace) => trace.by_bytes);

    // What counts comes first.
    const curves = (trace) => trace.by_bytes ? [curveByteMisses, curveBytes, curveUrls]
        : [curveUrls, curveBytes, curveByteMisses];

    return {
        recommendation,
        list: (trace) => [pattern, shares, sizes, hits, accessUrls, accessBytes, ...curves(trace), runtime, time,
            anomaly],
    };
})();
