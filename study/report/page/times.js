/*
 * Axes of time, for traces whose requests have times and are in their order. Requests are not evenly
 * spread over time, so an axis of request numbers has dates where they belong, at uneven distances.
 */
"use strict";

const reportTimes = (() => {
    const US = 1000; // microseconds in a millisecond
    const RELATIVE = Date.UTC(1990, 0, 1); // earlier times count from the beginning of a trace
    const LABEL_GAP = 58; // pixels from one date to the next

    const UNITS = [[86400000, "days"], [3600000, "hours"], [60000, "minutes"], [1000, "seconds"]];

    const milliseconds = (r) => r.time_us / US;

    // First and last time in milliseconds and what they count from; null without times.
    function timeAxis(t) {
        const [first, last] = d3.extent((t.frontier ?? []).filter((r) => r.time_us !== null), milliseconds);
        if (first === undefined || first === last)
            return null;
        const [unit, name] = UNITS.find(([ms]) => last - first >= 2 * ms) ?? UNITS.at(-1);
        return { first, last, absolute: first >= RELATIVE, unit, name };
    }

    // Where a row is on an axis of time: a date, or a number of units since the beginning.
    const place = (axis, ms) => axis.absolute ? new Date(ms) : (ms - axis.first) / axis.unit;

    const scale = (axis, width) => ({
        type: axis.absolute ? "utc" : "linear",
        label: axis.absolute ? "time (UTC)" : `${axis.name} since the beginning of the trace`,
        ticks: Math.max(2, Math.floor(width / 110)),
    });

    function label(axis, ms) {
        if (!axis.absolute)
            return `${+((ms - axis.first) / axis.unit).toFixed(2)} ${axis.name[0]}`;
        const midnight = ms % 86400000 === 0;
        return d3.utcFormat(midnight ? "%-d %b" : ms % 60000 === 0 ? "%H:%M" : "%H:%M:%S")(new Date(ms));
    }

    // The request at a time, between two points of the frontier.
    function requestAt(rows, ms) {
        const i = d3.bisector(milliseconds).left(rows, ms);
        if (i === 0)
            return rows[0].request;
        const [a, b] = [rows[i - 1], rows[Math.min(i, rows.length - 1)]];
        const share = milliseconds(b) > milliseconds(a) ?
            (ms - milliseconds(a)) / (milliseconds(b) - milliseconds(a)) : 1;
        return a.request + share * (b.request - a.request);
    }

    // Dates along an axis of request numbers of this width in pixels.
    function ticks(t, requests, pixels) {
        const axis = timeAxis(t);
        if (!axis)
            return [];
        const rows = t.frontier.filter((r) => r.time_us !== null);
        const wanted = Math.max(2, Math.floor(pixels / 90));
        const times = axis.absolute ? d3.utcTicks(new Date(axis.first), new Date(axis.last), wanted).map(Number)
            : d3.ticks(0, (axis.last - axis.first) / axis.unit, wanted).map((n) => axis.first + n * axis.unit);
        const placed = [];
        for (const ms of times) {
            const request = requestAt(rows, ms);
            const x = request / requests * pixels;
            if ((placed.length === 0 || x - placed.at(-1).x >= LABEL_GAP) && x <= pixels - LABEL_GAP / 3)
                placed.push({ request, x, label: label(axis, ms) });
        }
        return placed;
    }

    // Marks of these dates; the plot needs a top margin for them.
    function timeMarks(t, requests, pixels) {
        const dates = ticks(t, requests, pixels);
        return [
            Plot.ruleX(dates, { x: "request", stroke: "var(--line)", ariaDescription: "date" }),
            Plot.text(dates, { x: "request", text: "label", frameAnchor: "top", dy: -9, fontSize: 11,
                fill: "var(--soft)", ariaDescription: "date label" }),
        ];
    }

    return { timeAxis, timeMarks, place, scale };
})();
