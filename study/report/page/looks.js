/*
 * What the figures share: numbers as people read them, each policy's looks, and plots with lines.
 */
"use strict";

const reportLooks = (() => {
    // ---- numbers for people ----------------------------------------------------------------------

    // A number and its unit stand on one line.
    const SPACE = "\u00a0";
    const count = (n) => n.toLocaleString("en-GB");
    const percent = (share) => `${share > 0 && share < 0.0005 ? +(100 * share).toPrecision(1) :
        (100 * share).toFixed(share > 0 && share < 0.9995 ? 1 : 0)}${SPACE}%`;

    // A row's ratio; where it is a sample's, with what 95 % of all samples are as near as to the truth, or
    // a question mark where the sample cannot tell.
    const points = (error) => (196 * error).toFixed(1);
    const ratio = (r, column) => percent(r[column]) +
        (r[`${column}_error`] !== null ? `${SPACE}±${SPACE}${points(r[`${column}_error`])}` :
            r.error_unknown ? `${SPACE}±${SPACE}?` : "");

    function bytes(n) {
        const units = ["B", "KiB", "MiB", "GiB", "TiB"];
        let unit = 0;
        for (; n >= 1024 && unit < units.length - 1; unit++)
            n /= 1024;
        return `${n < 10 && unit ? +n.toFixed(1) : Math.round(n)}${SPACE}${units[unit]}`;
    }

    function span(trace) {
        const seconds = (trace.last_us - trace.first_us) / 1e6;
        const [value, unit] = seconds >= 172800 ? [seconds / 86400, "days"]
            : seconds >= 7200 ? [seconds / 3600, "hours"]
                : seconds >= 120 ? [seconds / 60, "minutes"] : [seconds, "seconds"];
        return `in ${count(Math.round(value))} ${unit}`;
    }

    // On axes of things that are counted: nothing lies between two of them.
    const short = (n) => !Number.isInteger(n) ? "" : n < 1000 ? String(n) : d3.format("~s")(n).replace("G", "B");
    const list = (words) => words.length < 2 ? words.join("") :
        `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
    const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

    // ---- looks -----------------------------------------------------------------------------------

    // Related policies have the colour of the classic that they extend, in dashes.
    const FAMILIES = {
        lru: ["lru", "lru-k", "2q", "slru", "mq", "arc", "car", "lirs", "mru", "lecar", "cacheus"],
        lfu: ["lfu", "lfu-da", "lfuda", "tinylfu", "w-tinylfu", "wtinylfu", "hyperbolic", "lhd"],
        fifo: ["fifo", "clock", "clock-pro", "clockpro", "gclock", "sieve", "s3-fifo", "s3fifo", "qd-lp"],
        rand: ["rand"],
        maxs: ["maxs", "gds", "gdsf", "gd-size", "size"],
    };
    const DASHES = ["6 3", "1.5 3", "9 3 1.5 3", "12 4", "3 2", "9 3 1.5 3 1.5 3", "14 3 4 3", "2 6", "5 2 2 2 2 2"];
    const CLASSICS = new Set(Object.keys(FAMILIES)); // have solid lines
    const familyOf = (policy) => Object.keys(FAMILIES).find((f) => FAMILIES[f].includes(policy.replace(/:.*/, "")));
    const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "cross", "wye"];

    // By policy: the classics in solid lines, OPT in ink, all others in their family's colour, dashed.
    function looks(t) {
        const of = new Map();
        const others = new Map(); // of each colour, the number of dashed lines so far
        const simulated = new Set(t.policies.map((p) => p.policy));
        const live = new Set((t.live ?? []).map((r) => r.policy).filter((p) => p !== "none" && !simulated.has(p)));
        [...t.policies, ...[...live].map((policy) => ({ policy, summary: "" }))].forEach((p, i) => {
            const look = { policy: p.policy, text: p.policy.toUpperCase().replace(/:.*/, (s) => s.toLowerCase()),
                title: p.summary, symbol: SYMBOLS[i % SYMBOLS.length], width: 2 };
            if (p.needs_future) {
                Object.assign(look, { color: "var(--ink)", width: 3, future: true });
            } else if (CLASSICS.has(p.policy)) {
                look.color = `var(--${p.policy})`;
            } else {
                const hue = familyOf(p.policy) ?? "sky";
                const before = others.get(hue) ?? 0;
                look.color = `var(--${hue})`;
                look.dash = DASHES[before % DASHES.length];
                others.set(hue, before + 1);
            }
            of.set(p.policy, look);
        });
        return of;
    }

    // Keys of the policies in rows; with their symbols where the figure has dots.
    const policyKeys = (t, rows, dots = false) => [...looks(t).values()]
        .filter((look) => rows.some((r) => r.policy === look.policy))
        .map((look) => dots ? look : { ...look, symbol: undefined });

    // The key of bands: what lies within one standard deviation of means over several seeds.
    const bandKeys = (rows, y) => rows.some((r) => r[`${y}_sd`] > 0) ? [{ band: true, color: "var(--rand)",
        text: `± 1 standard deviation over ${d3.max(rows, (r) => r.seeds)} seeds` }] : [];

    /*
     * An axis of ratios, in per cent. Of n requests it spans at least twice the 95 % interval of a ratio, and 5
     * points, so that differences of a few requests do not fill the figure.
     */
    function ratioAxis(label, ratios, trace, n = trace.sample_requests ?? trace.requests - trace.warmup) {
        const p = d3.mean(ratios);
        let [low, high] = d3.extent(ratios, (r) => 100 * r);
        const least = Math.min(100, Math.max(5, 4 * 196 * Math.sqrt(p * (1 - p) / Math.max(1, n))));
        if (high - low < least) {
            low = Math.min(100 - least, Math.max(0, (low + high - least) / 2));
            high = low + least;
        }
        const step = high - low > 30 ? 10 : high - low > 12 ? 5 : 1;
        const domain = [Math.max(0, step * Math.floor(low / step)), Math.min(100, step * Math.ceil(high / step))];
        return { label: domain[0] > 0 ? `${label} (from ${domain[0]})` : label, domain };
    }

    // What all plots share. On a narrow screen there are fewer ticks.
    function plot(width, options) {
        const height = options.height ?? Math.round(Math.min(380, Math.max(240, width * 0.62)));
        const drawn = Plot.plot({
            marginLeft: 48, marginRight: 14, marginBottom: 42, marginTop: 24,
            ...options, width, height,
            style: { fontSize: "12px", ...options.style },
            x: { labelAnchor: "center", labelArrow: "none", ...options.x },
            y: { grid: true, labelArrow: "none", tickFormat: (n) => String(+n.toFixed(2)), ...options.y },
        });
        // The library's own style sheet, which the page's security policy would keep out, stands in page.css.
        for (const style of drawn.querySelectorAll("style"))
            style.remove();
        return drawn;
    }

    const LABEL_WIDTH = 92; // right of a figure, where its lines are labelled
    const LABEL_HEIGHT = 13;
    const hasLabels = (width) => width >= 480;

    function svgElement(tag, attributes) {
        const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
        for (const [name, value] of Object.entries(attributes))
            e.setAttribute(name, value);
        return e;
    }

    // Names at the line ends, moved apart; a thin line leads from each end to its name.
    function labelEnds(drawn, rows, t, x, y) {
        const [xs, ys] = [drawn.scale("x"), drawn.scale("y")];
        const middle = (xs.bandwidth ?? 0) / 2;
        const ends = [];
        for (const [policy, look] of looks(t)) {
            const last = rows.findLast((r) => r.policy === policy && r[y] !== null);
            if (last)
                ends.push({ policy, look, x: xs.apply(last[x]) + middle, y: ys.apply(100 * last[y]) });
        }
        ends.sort((a, b) => a.y - b.y);
        const bottom = Math.max(...ys.range);
        ends.forEach((e, i) => { e.at = Math.max(e.y, i ? ends[i - 1].at + LABEL_HEIGHT : LABEL_HEIGHT / 2); });
        // From below upward: nothing reaches under the axis.
        let limit = Math.max(bottom, ends.length * LABEL_HEIGHT);
        for (const e of [...ends].reverse()) {
            e.at = Math.min(e.at, limit);
            limit = e.at - LABEL_HEIGHT;
        }
        const from = Math.max(...xs.range, ...ends.map((e) => e.x));
        for (const e of ends) {
            const g = svgElement("g", { "aria-label": "line label", "aria-description": `policy ${e.policy}`,
                "data-policy": e.policy, tabindex: "0" });
            const leader = svgElement("line", { x1: e.x + 5, y1: e.y, x2: from + 14, y2: e.at });
            Object.assign(leader.style, { stroke: e.look.color, strokeWidth: 0.7, strokeOpacity: 0.7 });
            const name = svgElement("text", { x: from + 17, y: e.at, dy: "0.32em",
                "text-anchor": "start" });
            Object.assign(name.style, { fill: e.look.color, fontSize: "11px", fontWeight: 600 });
            name.textContent = e.look.text.length > 12 ? `${e.look.text.slice(0, 11)}…` : e.look.text;
            g.append(leader, name);
            drawn.append(g);
        }
        return drawn;
    }

    const FEW_LINES = 4; // these remain distinguishable on a narrow screen

    // On a narrow screen a panel for each family: its lines in colour with their names, OPT, the others in grey.
    function panels(width, rows, t, x, y, options) {
        const all = [...looks(t)].filter(([policy]) => rows.some((r) => r.policy === policy && r[y] !== null));
        const box = document.createElement("div");
        box.className = "panels";
        const groups = d3.group(all.filter(([, look]) => !look.future), ([policy]) => familyOf(policy) ?? "others");
        for (const [family, members] of groups) {
            const own = new Set([...members, ...all.filter(([, look]) => look.future)].map(([policy]) => policy));
            const title = box.appendChild(document.createElement("h4"));
            title.textContent = members.length > 1 ? `${CLASSICS.has(family) ? family.toUpperCase() : "Others"} and ` +
                "related" : members[0][1].text;
            const drawn = plot(width, { ...options, height: 200, marginRight: LABEL_WIDTH });
            for (const e of drawn.querySelectorAll("[aria-description^='policy '], [aria-description^='seeds of ']"))
                e.toggleAttribute("data-back", !own.has(e.getAttribute("aria-description").replace(/^(policy|seeds of) /, "")));
            box.append(labelEnds(drawn, rows.filter((r) => own.has(r.policy)), t, x, y));
        }
        return box;
    }

    // A plot of policyLines() with names at the line ends.
    function labelledPlot(width, rows, t, x, y, options) {
        if (hasLabels(width))
            return labelEnds(plot(width, { ...options, marginRight: LABEL_WIDTH }), rows, t, x, y);
        return new Set(rows.map((r) => r.policy)).size > FEW_LINES ? panels(width, rows, t, x, y, options)
            : plot(width, { ...options, marginRight: 14 });
    }

    // Powers of two, or of the least power of it at which labels do not overlap.
    function byteTicks(rows, column, width) {
        const [low, high] = d3.extent(rows, (r) => r[column]).map(Math.log2);
        const step = Math.max(1, Math.ceil((high - low) * 72 / (width - 60)));
        return d3.range(0, 60, step).filter((e) => e >= low && e <= high).map((e) => 2 ** e);
    }

    // A line for each policy, distinguished by hue, dash and a tip.
    function policyLines(rows, t, x, y, tip, extra = {}) {
        const marks = [];
        const error = `${y}_error`;
        let beside = 0; // errors of several policies stand side by side
        for (const [policy, look] of looks(t)) {
            const own = rows.filter((r) => r.policy === policy && r[y] !== null);
            const ariaDescription = `policy ${policy}`;
            if (own.length === 0)
                continue;
            // Means of several seeds lie in a band of one standard deviation to each side.
            if (own.some((r) => r[`${y}_sd`] > 0))
                marks.push(Plot.areaY(own, { x, y1: (r) => 100 * Math.max(0, r[y] - r[`${y}_sd`]),
                    y2: (r) => 100 * Math.min(1, r[y] + r[`${y}_sd`]), fill: look.color, fillOpacity: 0.25,
                    curve: extra.curve, ariaDescription: `seeds of ${policy}` }));
            marks.push(Plot.line(own, { x, y: (r) => 100 * r[y], stroke: look.color, strokeWidth: look.width,
                strokeDasharray: look.dash, curve: extra.curve, ariaDescription }));
            beside = beside > 0 ? -beside : 2 - beside;
            if (extra.dots)
                marks.push(
                    Plot.ruleX(own.filter((r) => (r[error] ?? null) !== null), { x, dx: beside, stroke: look.color,
                        strokeOpacity: 0.7, y1: (r) => 100 * Math.max(0, r[y] - 1.96 * r[error]),
                        y2: (r) => 100 * Math.min(1, r[y] + 1.96 * r[error]), ariaDescription }),
                    Plot.dot(own, { x, y: (r) => 100 * r[y], stroke: look.color, fill: "var(--card)",
                        symbol: look.symbol, r: 4, ariaDescription }));
        }
        marks.push(Plot.tip(rows.filter((r) => r[y] !== null), Plot.pointer({ x, y: (r) => 100 * r[y],
            title: tip, fill: "var(--card)", stroke: "var(--line)" })));
        return marks;
    }

    // ---- what was simulated ----------------------------------------------------------------------

    // How many simulations of a table were finished, of how many: all, unless there was an interrupt.
    function finished(t, table) {
        const plan = t.planned.find((p) => p.table === table);
        return [t[table].length, plan.policies * plan.sizes];
    }

    // Those policies of a table that have all their sizes: only they can be compared.
    function complete(t, table) {
        const sizes = t.planned.find((p) => p.table === table).sizes;
        const have = d3.rollup(t[table], (rows) => rows.length, (r) => r.policy);
        return new Set([...have.keys()].filter((policy) => have.get(policy) === sizes));
    }

    // The policies that a cache can have: they store, and do not know the future.
    const real = (t) => t.policies.filter((p) => !p.needs_future && p.name !== "none").map((p) => p.policy);

    const text = (policy) => policy.toUpperCase();

    return { count, percent, bytes, span, short, list, plural, text, points, ratio, SPACE, real, looks, policyKeys, bandKeys,
        plot, ratioAxis, labelledPlot, byteTicks, policyLines, finished, complete };
})();
