/*
 * The page around the figures: what is known of each trace, a card for each figure with its
 * sentence, its keys, its data as a table and as CSV, and drawing anew when the width changes.
 */
"use strict";

(() => {
    const MOST_ROWS = 400; // of a table in the page; CSV has all
    const data = JSON.parse(document.getElementById("data").textContent);
    const page = document.getElementById("page");
    let errors = 0;

    function element(tag, attributes = {}, ...children) {
        const e = document.createElement(tag);
        for (const [name, value] of Object.entries(attributes))
            if (name.startsWith("on"))
                e.addEventListener(name.slice(2), value);
            else if (value !== false && value !== null && value !== undefined)
                e.setAttribute(name, value === true ? "" : value);
        e.append(...children.filter((c) => c !== null && c !== undefined));
        return e;
    }

    // An error is shown on the page, and counted for programs that load it.
    function complain(what) {
        errors++;
        document.body.dataset.errors = errors;
        page.prepend(element("p", { class: "trouble" }, `A figure cannot be drawn: ${what}`));
    }

    window.addEventListener("error", (event) => complain(event.message));

    // ---- data ------------------------------------------------------------------------------------

    // A table's rows as objects, with the names of its columns.
    function records(table) {
        const rows = table.rows.map((row) =>
            Object.fromEntries(table.columns.map((name, i) => [name, row[i]])));
        rows.columns = table.columns;
        return rows;
    }

    function csv(table) {
        const field = (value) => {
            const text = value === null ? "" : String(value);
            return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
        };
        return [table.columns, ...table.rows].map((row) => row.map(field).join(",") + "\r\n").join("");
    }

    function csvLink(trace, name) {
        const table = trace.tables[name];
        const link = element("a", { href: "#", download: `${trace.slug}-${name}.csv`, "data-csv": name },
            `${name}.csv`);
        link.addEventListener("click", () => {
            if (link.href.startsWith("blob:"))
                return;
            link.href = URL.createObjectURL(new Blob([csv(table)], { type: "text/csv" }));
        });
        return link;
    }

    // Without columns in which nothing stands; CSV has them.
    function tableOf(table) {
        const columns = d3.range(table.columns.length).filter((i) => table.rows.some((row) => row[i] !== null));
        const text = table.columns.map((_, i) => table.rows.some((row) => typeof row[i] === "string"));
        const cells = (tag, row) => columns.map((i) => [i, row[i]]).map(([i, value]) =>
            element(tag, { class: text[i] ? "text" : false },
                value === null ? "" : String(value).replaceAll("_", tag === "th" ? " " : "_")));
        return element("table", {},
            element("thead", {}, element("tr", {}, ...cells("th", table.columns))),
            element("tbody", {}, ...table.rows.slice(0, MOST_ROWS).map((row) =>
                element("tr", {}, ...cells("td", row)))));
    }

    function dataOf(trace, names) {
        const details = element("details", {}, element("summary", {}, "Data",
            ...names.map((name) => csvLink(trace, name))));
        details.addEventListener("toggle", () => {
            if (!details.open || details.querySelector(".scroll"))
                return;
            for (const name of names) {
                const table = trace.tables[name];
                details.append(element("div", { class: "scroll" }, tableOf(table)));
                if (table.rows.length > MOST_ROWS)
                    details.append(element("p", {},
                        `${MOST_ROWS} of ${table.rows.length} rows; the CSV has all.`));
            }
        });
        return element("div", { class: "data" }, details);
    }

    // ---- keys ------------------------------------------------------------------------------------

    let pressed = null; // the policy that stands out on the whole page

    function showOnly(policy) {
        for (const e of document.querySelectorAll("[aria-description^='policy ']"))
            e.toggleAttribute("data-dim",
                policy !== null && e.getAttribute("aria-description") !== `policy ${policy}`);
        for (const key of document.querySelectorAll(".keys button"))
            key.setAttribute("aria-pressed", key.dataset.policy === pressed);
    }

    function swatch(key) {
        const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
        svg.setAttribute("width", 26);
        svg.setAttribute("height", 12);
        svg.setAttribute("aria-hidden", "true");
        if (key.shades || key.band) {
            const opacities = key.shades ?? [0.25];
            opacities.forEach((opacity, i) => {
                const rect = svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "rect"));
                const width = 24 / opacities.length;
                for (const [name, value] of Object.entries({ x: 1 + i * width, y: 1, width, height: 10 }))
                    rect.setAttribute(name, value);
                Object.assign(rect.style, { fill: key.color, fillOpacity: opacity });
            });
            return svg;
        }
        svg.innerHTML = key.dot
            ? '<circle cx="13" cy="6" r="4"></circle>'
            : '<line x1="1" x2="25" y1="6" y2="6"></line>';
        const mark = svg.firstChild;
        if (key.dot) {
            Object.assign(mark.style, key.open
                ? { fill: "none", stroke: key.color, strokeWidth: 1.5 }
                : { fill: key.color });
        } else {
            Object.assign(mark.style, { stroke: key.color, strokeWidth: key.width ?? 2,
                strokeDasharray: key.dash ?? "" });
        }
        if (key.symbol) {
            const symbol = svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "path"));
            symbol.setAttribute("d", d3.symbol(d3[`symbol${key.symbol[0].toUpperCase()}${key.symbol.slice(1)}`], 36)());
            symbol.setAttribute("transform", "translate(13, 6)");
            Object.assign(symbol.style, { fill: "var(--card)", stroke: key.color, strokeWidth: 1.5 });
        }
        return svg;
    }

    function keyOf(key) {
        if (!key.policy)
            return element("span", {}, swatch(key), key.text);
        return element("button", {
            type: "button", title: key.title ?? false, "data-policy": key.policy,
            "aria-pressed": "false",
            onmouseenter: () => showOnly(key.policy),
            onmouseleave: () => showOnly(pressed),
            onfocus: () => showOnly(key.policy),
            onblur: () => showOnly(pressed),
            onclick: () => {
                pressed = pressed === key.policy ? null : key.policy;
                showOnly(pressed);
            },
        }, swatch(key), key.text);
    }

    // ---- cards -----------------------------------------------------------------------------------

    // A line's label and the line itself show their policy alone, under the pointer and with focus.
    function highlight(drawing) {
        for (const e of drawing.querySelectorAll("[aria-description^='policy ']")) {
            const show = () => showOnly(e.getAttribute("aria-description").slice("policy ".length));
            const end = () => showOnly(pressed);
            e.addEventListener("mouseenter", show);
            e.addEventListener("mouseleave", end);
            e.addEventListener("focus", show);
            e.addEventListener("blur", end);
        }
    }

    // On paper a drawing's width does not depend on the screen's; the style sheet scales it to its place.
    const PAPER_WIDTHS = [480, 860];
    const paper = matchMedia("print");
    let onPaper = paper.matches;

    const redraw = []; // what to draw anew when there is another width

    function chooser(figure, t, state, draw) {
        const choice = figure.choose(t);
        state.choice = choice.start;
        const select = element("select", {
            onchange: () => {
                state.choice = select.value;
                draw();
            },
        }, ...choice.values.map(([value, text]) =>
            element("option", { value, selected: String(value) === String(choice.start) }, text)));
        return element("label", {}, `${choice.label} `, select);
    }

    // Of an interrupted report.
    function whatIsMissing(t, figure) {
        const table = figure.tables[0] === "runtime" ? "hits" : figure.tables[0];
        if (!t.planned?.some((p) => p.table === table))
            return "";
        const [done, all] = reportLooks.finished(t, table);
        return done < all ? `Incomplete: ${done} of ${all} simulations were finished. ` : "";
    }

    function card(trace, figure) {
        const drawing = element("div", { class: "drawing" });
        const t = trace.records;
        const state = {};
        let width = 0;
        const draw = () => {
            try {
                drawing.replaceChildren(figure.draw(t, width, trace, state.choice));
                highlight(drawing);
                showOnly(pressed);
            } catch (error) {
                complain(`${figure.id}: ${error.message}`);
            }
        };
        const keys = figure.keys ? figure.keys(t, trace) : [];
        const title = typeof figure.title === "function" ? figure.title(trace) : figure.title;
        const e = element("figure", {
            class: figure.wide?.(t, trace) ? "wide" : false, id: `${trace.slug}-${figure.id}`, "data-figure": figure.id,
        },
            element("figcaption", {}, element("h3", {}, title),
                element("p", {}, whatIsMissing(t, figure) + figure.say(t, trace))),
            keys.length ? element("div", { class: "keys" }, ...keys.map(keyOf)) : null,
            figure.choose ? chooser(figure, t, state, draw) : null,
            drawing, dataOf(trace, figure.tables.filter((name) => trace.tables[name])));
        redraw.push(() => {
            const now = onPaper ? PAPER_WIDTHS[e.classList.contains("wide") ? 1 : 0]
                : Math.floor(drawing.clientWidth);
            if (now > 0 && now !== width) {
                width = now;
                draw();
            }
        });
        return e;
    }

    // A figure that fails does not prevent the others.
    function cardOrNothing(trace, figure) {
        try {
            return card(trace, figure);
        } catch (error) {
            complain(`${figure.id}: ${error.message}`);
            return null;
        }
    }

    // ---- facts -----------------------------------------------------------------------------------

    function facts(trace) {
        const { count, percent, bytes } = reportLooks;
        const [{ urls, urls_requested_once: once }] = trace.records.popular;
        const list = [
            ["requests", count(trace.requests),
                trace.first_us === undefined ? trace.format : reportLooks.span(trace)],
            ["distinct URLs", count(urls), `${percent(once / urls)} requested once`],
            ["highest hit ratio", percent(trace.infinite.hit_ratio), "of an infinite cache"],
        ];
        if (trace.sized)
            list.push(["bytes requested", bytes(trace.bytes), `${bytes(trace.distinct_bytes)} distinct`],
                ["highest byte hit ratio", percent(trace.infinite.byte_hit_ratio),
                    "of an infinite cache"]);
        return element("dl", { class: "facts" }, ...list.map(([name, value, more]) =>
            element("div", {}, element("dt", {}, name),
                element("dd", {}, value, element("small", {}, more)))));
    }

    function howToMeasure() {
        return element("p", { class: "soft", "data-hint": "live" },
            "Access times are measured, not simulated. To add them, replay the trace through a running server once " +
            "for each policy and size, for instance with ",
            element("code", {}, "sunproxy replay --json --policy lru --capacity 10% TRACE > lru-10.json"),
            ", and pass the output to the report: ",
            element("code", {}, "sunproxy report --live lru-10.json TRACE"), ".");
    }

    function section(trace) {
        const files = trace.files > 1 ? ` and ${reportLooks.plural(trace.files - 1, "more file")}` : "";
        const notes = [`${trace.trace}${files}, read as ${trace.format}.`,
            `${trace.lifetime[0].toUpperCase()}${trace.lifetime.slice(1)}.`];
        if (trace.warmup)
            notes.push(`The first ${reportLooks.count(trace.warmup)} requests are the warm-up, ` +
                "which hit ratios exclude.");
        if (trace.sizes_assumed > 0)
            notes.push(`Imputed sizes: ${reportLooks.plural(trace.sizes_assumed, "URL")} of ` +
                `${reportLooks.count(trace.distinct_urls)} (the median of the known sizes).`);
        if (trace.sizes_inferred > 0)
            notes.push(`Sizes taken from other requests for the same URL: ${reportLooks.count(trace.sizes_inferred)}.`);
        if (trace.sample_urls)
            notes.push(`Simulated results are estimates for the whole trace, from a sample of ` +
                `${reportLooks.percent(trace.sample)} of the URLs (${reportLooks.count(trace.sample_requests)} ` +
                "requests) in caches smaller by the same factor. The number after ± is half the width of the 95 % " +
                "interval, in points; ± ? means that the sample gives none, and the table of data states why. The " +
                "figures of the trace itself use all requests.");
        return element("section", { id: trace.slug },
            element("h2", {}, trace.name),
            element("div", { class: "soft" }, notes.join(" ")),
            trace.records.policies && trace.records.curve_urls ? element("p", { class: "recommendation" },
                element("b", {}, "Recommendation: "), reportFigures.recommendation(trace.records, trace)) : null,
            facts(trace),
            element("div", { class: "figures" }, ...reportFigures.list(trace)
                .filter((figure) => figure.needs.every((name) => trace.records[name]?.length) &&
                    (figure.when?.(trace.records) ?? true))
                .map((figure) => cardOrNothing(trace, figure)).filter((e) => e !== null)),
            trace.records.live ? null : howToMeasure());
    }

    // ---- provenance ------------------------------------------------------------------------------

    // A word of a command line, quoted where a shell needs it.
    const quoted = (word) => /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

    function excluded(trace) {
        const reasons = Object.entries(trace.left_out).filter(([, n]) => n > 0)
            .map(([reason, n]) => `${reportLooks.count(n)} ${reason.replaceAll("_", " ")}`);
        return `${trace.name}: ${reasons.length ? reasons.join(", ") : "none"}`;
    }

    function provenance() {
        const { version, date, machine, arguments: words, seed, seeds } = data.provenance;
        const rows = [
            ["Command", element("code", {}, ["sunproxy", "report", ...words].map(quoted).join(" "))],
            ["Excluded requests", data.traces.map(excluded).join("; ")],
            ["Randomised policies", `${reportLooks.plural(seeds, "run")} with seeds from ${seed} on`],
            ["Versions", `sunproxy ${version}; Observable Plot ${Plot.version} and D3 ${d3.version} (ISC licence)`],
            ["Machine", `${machine.system} ${machine.release}, ${machine.architecture}, ` +
                reportLooks.plural(machine.processors, "processor")],
            ["Date", date ?? "unknown"],
        ];
        return element("footer", {}, element("h2", {}, "Provenance"), element("dl", { class: "provenance" },
            ...rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])));
    }

    // Enough of each path to tell it from the others.
    function nameTraces(traces) {
        const tail = (trace, parts) => trace.trace.split("/").slice(-parts).join("/");
        for (const trace of traces) {
            let parts = 1;
            while (parts < 20 && traces.some((t) => t !== trace && t.trace !== trace.trace &&
                tail(t, parts) === tail(trace, parts)))
                parts++;
            trace.name = tail(trace, parts) || trace.trace;
        }
        traces.forEach((trace, i) => {
            trace.slug = `${i + 1}-${trace.name.replace(/[^A-Za-z0-9]+/g, "-").slice(0, 40)}`;
        });
    }

    function build() {
        nameTraces(data.traces);
        for (const trace of data.traces)
            trace.records = Object.fromEntries(Object.entries(trace.tables).map(([name, table]) =>
                [name, records(table)]));
        page.append(element("header", {}, element("h1", {}, data.title),
            element("div", { class: "soft" },
                "Requests of a trace, and hit ratios by replacement policy and cache size. Point at a figure for " +
                "its numbers; point at a line's name, or click a policy in a legend, to highlight it."),
            data.traces.length > 1
                ? element("nav", {}, ...data.traces.map((t) =>
                    element("a", { href: `#${t.slug}` }, t.name)))
                : null));
        if (data.interrupted)
            page.append(element("p", { class: "trouble" },
                "The simulation was interrupted: this page has the results that were finished."));
        page.append(...data.traces.map(section));
        page.append(provenance());
        const drawAll = () => redraw.forEach((draw) => draw());
        drawAll();
        document.body.dataset.errors = errors;
        document.body.dataset.figures = document.querySelectorAll("figure .drawing svg").length;
        const print = (is) => {
            onPaper = is;
            drawAll();
        };
        window.addEventListener("beforeprint", () => print(true));
        window.addEventListener("afterprint", () => print(paper.matches));
        paper.addEventListener("change", () => print(paper.matches));
        let waiting = 0;
        new ResizeObserver(() => {
            cancelAnimationFrame(waiting);
            waiting = requestAnimationFrame(drawAll);
        }).observe(page);
    }

    build();
})();
