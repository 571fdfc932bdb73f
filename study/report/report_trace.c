#include "study/report/report.h"

#include <math.h>
#include <stdlib.h>

#include "cli/statistics.h"

#define MAX_DOTS 4000u /* more requests than that are counted in the cells of a grid */
#define GRID_WIDTH 160u
#define GRID_HEIGHT 100u
#define FRONTIER_POINTS 400u
#define MAX_BARS 400u  /* more URLs than that have no bar each */
#define MAX_RANKS 200u /* more ranks than that are thinned out */
#define BUSIEST 10u
#define SIZE_STEPS 240u

struct ranked {
    uint64_t requests;
    uint32_t id;
};

/* Most requests first, then by first appearance. */
static int
by_requests(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;

    if (a->requests != b->requests)
        return a->requests < b->requests ? 1 : -1;
    return (a->id > b->id) - (a->id < b->id);
}

/* ---- facts ----------------------------------------------------------------------------------- */

void
report_trace_facts(struct json *j, const struct simulate_subject *subject)
{
    const struct trace *trace = subject->trace;
    int64_t first = INT64_MAX, last = INT64_MIN;
    char lifetime[SIMULATE_LIFETIME_TEXT];

    for (size_t i = 0; trace->times_us && i < trace->request_count; i++) {
        if (trace->times_us[i] == TRACE_TIME_UNKNOWN)
            continue;
        first = trace->times_us[i] < first ? trace->times_us[i] : first;
        last = trace->times_us[i] > last ? trace->times_us[i] : last;
    }
    simulate_json_subject(j, subject);
    json_cstring(j, "lifetime", simulate_lifetime(subject, lifetime));
    json_bool(j, "sized", subject->sized);
    if (first <= last) {
        json_int(j, "first_us", first);
        json_int(j, "last_us", last);
    }
}

/* ---- times ----------------------------------------------------------------------------------- */

const int64_t *
report_times(const struct trace *trace)
{
    int64_t first = INT64_MAX, latest = INT64_MIN, back = 0;

    for (size_t i = 0; trace->times_us && i < trace->request_count; i++) {
        int64_t time = trace->times_us[i];

        if (time == TRACE_TIME_UNKNOWN)
            continue;
        first = time < first ? time : first;
        latest = time > latest ? time : latest;
        back = latest - time > back ? latest - time : back;
    }
    return first < latest && back <= (latest - first) / 100 ? trace->times_us : NULL;
}

void
report_time(struct json *j, const int64_t *times, size_t request)
{
    if (times && times[request] != TRACE_TIME_UNKNOWN)
        json_int(j, NULL, times[request]);
    else
        json_null(j, NULL);
}

/* ---- order of the requests ------------------------------------------------------------------- */

static void
row_of_uints(struct json *j, const uint64_t *values, size_t count)
{
    json_open_array(j, NULL);
    for (size_t i = 0; i < count; i++)
        json_uint(j, NULL, values[i]);
    json_close_array(j);
}

static void
pattern_as_dots(struct json *j, const struct trace *trace)
{
    for (size_t i = 0; i < trace->request_count; i++)
        row_of_uints(j, (const uint64_t[]){i + 1, i + 1, trace->ids[i] + 1, trace->ids[i] + 1, 1},
                     5);
}

/* The first number of a part, where the numbers from 0 to count - 1 are divided into parts. */
static uint64_t
part_begin(uint64_t part, uint64_t count, uint64_t parts)
{
    return (part * count + parts - 1) / parts;
}

static bool
pattern_as_grid(struct json *j, const struct trace *trace)
{
    uint64_t requests = trace->request_count, urls = trace->url_count;
    uint64_t height = urls < GRID_HEIGHT ? urls : GRID_HEIGHT;
    uint64_t *cells = calloc(GRID_WIDTH * GRID_HEIGHT, sizeof(*cells));

    if (!cells)
        return false;
    for (uint64_t i = 0; i < requests; i++)
        cells[i * GRID_WIDTH / requests * height + trace->ids[i] * height / urls]++;
    for (uint64_t x = 0; x < GRID_WIDTH; x++)
        for (uint64_t y = 0; y < height; y++)
            if (cells[x * height + y] != 0)
                row_of_uints(j,
                             (const uint64_t[]){part_begin(x, requests, GRID_WIDTH) + 1,
                                                part_begin(x + 1, requests, GRID_WIDTH),
                                                part_begin(y, urls, height) + 1,
                                                part_begin(y + 1, urls, height),
                                                cells[x * height + y]},
                             5);
    free(cells);
    return true;
}

static bool
add_pattern(struct json *j, const struct trace *trace)
{
    bool whole = true;

    report_table_open(j, "pattern", "request", "request_to", "url_number", "url_number_to",
                      "requests", NULL);
    if (trace->request_count <= MAX_DOTS)
        pattern_as_dots(j, trace);
    else
        whole = pattern_as_grid(j, trace);
    report_table_close(j);
    return whole;
}

/* Numbers are given in the order of first appearance: the largest so far is the count so far. */
static void
add_frontier(struct json *j, const struct trace *trace)
{
    size_t step = (trace->request_count + FRONTIER_POINTS - 1) / FRONTIER_POINTS;
    const int64_t *times = report_times(trace);
    uint64_t seen = 0;

    report_table_open(j, "frontier", "request", "time_us", "urls_seen", NULL);
    for (size_t i = 0; i < trace->request_count; i++) {
        if (trace->ids[i] >= seen)
            seen = (uint64_t)trace->ids[i] + 1;
        if ((i + 1) % step != 0 && i != 0 && i + 1 != trace->request_count)
            continue;
        json_open_array(j, NULL);
        json_uint(j, NULL, i + 1);
        report_time(j, times, i);
        json_uint(j, NULL, seen);
        json_close_array(j);
    }
    report_table_close(j);
}

/* ---- shares ---------------------------------------------------------------------------------- */

static void
add_url_row(struct json *j, const struct trace *trace, const struct ranked *url)
{
    char text[TRACE_URL_TEXT];

    json_open_array(j, NULL);
    json_uint(j, NULL, (uint64_t)url->id + 1);
    json_string(j, NULL, trace_url_text(trace, url->id, text));
    json_uint(j, NULL, url->requests);
    json_double(j, NULL, statistics_ratio(url->requests, trace->request_count), 8);
    json_close_array(j);
}

/* Ranks get sparser, evenly on a logarithmic scale. */
static void
add_popularity(struct json *j, const struct trace *trace, const struct ranked *urls)
{
    size_t count = trace->url_count;
    uint64_t sum = 0;
    double next = 1, factor = pow((double)count, 1.0 / MAX_RANKS);

    report_table_open(j, "popularity", "rank", "requests", "share", "share_of_this_and_busier",
                      NULL);
    for (size_t i = 0; i < count; i++) {
        sum += urls[i].requests;
        if (count > MAX_RANKS && (double)(i + 1) < next && i + 1 < count)
            continue;
        while (count > MAX_RANKS && next <= (double)(i + 1))
            next *= factor;
        json_open_array(j, NULL);
        json_uint(j, NULL, i + 1);
        json_uint(j, NULL, urls[i].requests);
        json_double(j, NULL, statistics_ratio(urls[i].requests, trace->request_count), 8);
        json_double(j, NULL, statistics_ratio(sum, trace->request_count), 8);
        json_close_array(j);
    }
    report_table_close(j);
}

static bool
add_shares(struct json *j, const struct trace *trace)
{
    struct ranked *urls = calloc(trace->url_count, sizeof(*urls));
    uint64_t once = 0, tenth = (trace->url_count + 5) / 10, of_tenth = 0;

    if (!urls)
        return false;
    for (size_t i = 0; i < trace->url_count; i++)
        urls[i].id = (uint32_t)i;
    for (size_t i = 0; i < trace->request_count; i++)
        urls[trace->ids[i]].requests++;
    for (size_t i = 0; i < trace->url_count; i++)
        once += urls[i].requests == 1;
    if (trace->url_count <= MAX_BARS) {
        report_table_open(j, "shares", "url_number", "url", "requests", "share", NULL);
        for (size_t i = 0; i < trace->url_count; i++)
            add_url_row(j, trace, &urls[i]);
        report_table_close(j);
    }
    qsort(urls, trace->url_count, sizeof(*urls), by_requests);
    add_popularity(j, trace, urls);
    report_table_open(j, "busiest", "url_number", "url", "requests", "share", NULL);
    for (size_t i = 0; i < trace->url_count && i < BUSIEST; i++)
        add_url_row(j, trace, &urls[i]);
    report_table_close(j);
    tenth = tenth ? tenth : 1;
    for (size_t i = 0; i < tenth && i < trace->url_count; i++)
        of_tenth += urls[i].requests;
    report_table_open(j, "popular", "urls", "urls_requested_once", "busiest_tenth",
                      "requests_for_busiest_tenth", NULL);
    row_of_uints(j, (const uint64_t[]){trace->url_count, once, tenth, of_tenth}, 4);
    report_table_close(j);
    free(urls);
    return true;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* What is at most so large, but larger than the step before. */
struct size_step {
    uint64_t limit;
    uint64_t requests;
    uint64_t urls;
    uint64_t bytes; /* of the requests */
};

/* Limits from the smallest to the largest size, evenly on a logarithmic scale. */
static size_t
make_steps(const struct trace_totals *facts, struct size_step *steps)
{
    double low = facts->smallest > 0 ? facts->smallest : 1, high = facts->largest;
    size_t count = 0;

    steps[count++].limit = facts->smallest;
    for (size_t i = 1; i <= SIZE_STEPS; i++) {
        uint64_t limit = i == SIZE_STEPS
                             ? facts->largest
                             : (uint64_t)(low * pow(high / low, (double)i / SIZE_STEPS));

        if (limit > steps[count - 1].limit)
            steps[count++].limit = limit;
    }
    return count;
}

static struct size_step *
find_step(struct size_step *steps, size_t count, uint32_t size)
{
    size_t low = 0, high = count - 1;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (steps[middle].limit >= size)
            high = middle;
        else
            low = middle + 1;
    }
    return &steps[low];
}

/* A URL has the size of its first request; the warm-up counts here as the rest does. */
static void
add_sizes(struct json *j, const struct simulate_subject *subject)
{
    const struct sim_trace *trace = &subject->sim;
    struct size_step steps[SIZE_STEPS + 1] = {{0}}, sum = {0};
    size_t count = make_steps(&subject->facts, steps);
    uint64_t seen = 0, bytes = 0;

    for (size_t i = 0; i < trace->request_count; i++) {
        struct size_step *step = find_step(steps, count, trace->sizes[i]);

        step->requests++;
        step->bytes += trace->sizes[i];
        bytes += trace->sizes[i];
        if (trace->ids[i] >= seen) {
            seen++;
            step->urls++;
        }
    }
    report_table_open(j, "sizes", "bytes", "share_of_requests", "share_of_urls",
                      "share_of_bytes_requested", NULL);
    for (size_t i = 0; i < count; i++) {
        sum.requests += steps[i].requests;
        sum.urls += steps[i].urls;
        sum.bytes += steps[i].bytes;
        json_open_array(j, NULL);
        json_uint(j, NULL, steps[i].limit);
        json_double(j, NULL, statistics_ratio(sum.requests, trace->request_count), 6);
        json_double(j, NULL, statistics_ratio(sum.urls, trace->page_count), 6);
        json_double(j, NULL, statistics_ratio(sum.bytes, bytes), 6);
        json_close_array(j);
    }
    report_table_close(j);
}

bool
report_trace_tables(struct json *j, const struct simulate_subject *subject)
{
    if (!add_pattern(j, subject->trace))
        return false;
    add_frontier(j, subject->trace);
    if (!add_shares(j, subject->trace))
        return false;
    if (!subject->sized)
        return true;
    add_sizes(j, subject);
    return report_large_table(j, subject);
}
