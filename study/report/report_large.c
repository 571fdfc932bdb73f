/*
 * The table of large pages: where a capacity in bytes passes the size of one of them, curves may
 * make a step.
 */
#include "study/report/report.h"

#include <stdlib.h>

#include "cli/statistics.h"

#define MOST 4u /* marks that remain distinguishable */

/* Of the requested bytes and of the requests: a step of a curve that can be seen. */
#define LEAST_BYTES 0.02
#define LEAST_REQUESTS 0.05

#define LEAST_CAPACITY 0.002 /* of what holds every page: smaller ones fit nearly everywhere */

struct large {
    uint32_t id;
    uint32_t size;     /* at the first request, with which the page is stored first */
    uint64_t requests; /* for it */
    uint64_t bytes;    /* of its requests after the first: what a cache that holds it can save */
    double weight;     /* share of the requests and share of the bytes that it can save, together */
};

/* Those that can save most come first. */
static int
by_weight(const void *left, const void *right)
{
    const struct large *a = left, *b = right;

    if (a->weight < b->weight || a->weight > b->weight)
        return a->weight < b->weight ? 1 : -1;
    return (a->id > b->id) - (a->id < b->id);
}

static int
by_size(const void *left, const void *right)
{
    const struct large *a = left, *b = right;

    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* Sums by page; returns the bytes of all requests. */
static uint64_t
sum_up(const struct sim_trace *trace, struct large *pages)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < trace->request_count; i++) {
        struct large *page = &pages[trace->ids[i]];

        bytes += trace->sizes[i];
        if (page->requests++ == 0) {
            page->id = trace->ids[i];
            page->size = trace->sizes[i];
        } else {
            page->bytes += trace->sizes[i];
        }
    }
    return bytes;
}

/* Moves those that matter to the front, the smallest first; returns their number. */
static size_t
choose(const struct simulate_subject *subject, struct large *pages, uint64_t bytes)
{
    const struct sim_trace *trace = &subject->sim;
    size_t count = 0;

    for (size_t i = 0; i < trace->page_count; i++) {
        struct large page = pages[i];
        double of_requests = statistics_ratio(page.requests - 1, trace->request_count);
        double of_bytes = statistics_ratio(page.bytes, bytes);

        if ((double)page.size < LEAST_CAPACITY * (double)subject->all_bytes ||
            (of_requests < LEAST_REQUESTS && of_bytes < LEAST_BYTES))
            continue;
        page.weight = of_requests + of_bytes;
        pages[count++] = page;
    }
    if (count == 0)
        return 0;
    qsort(pages, count, sizeof(*pages), by_weight);
    count = count < MOST ? count : MOST;
    qsort(pages, count, sizeof(*pages), by_size);
    return count;
}

bool
report_large_table(struct json *j, const struct simulate_subject *subject)
{
    const struct sim_trace *trace = &subject->sim;
    struct large *pages = calloc(trace->page_count + 1, sizeof(*pages));
    uint64_t bytes;
    size_t count;

    if (!pages)
        return false;
    bytes = sum_up(trace, pages);
    count = choose(subject, pages, bytes);
    report_table_open(j, "large_pages", "url", "bytes", "requests", "share_of_requests",
                      "share_of_bytes_saved", NULL);
    for (size_t i = 0; i < count; i++) {
        char text[TRACE_URL_TEXT];

        json_open_array(j, NULL);
        json_string(j, NULL, trace_url_text(subject->trace, pages[i].id, text));
        json_uint(j, NULL, pages[i].size + (trace->charges ? trace->charges[pages[i].id] : 0));
        json_uint(j, NULL, pages[i].requests);
        json_double(j, NULL, statistics_ratio(pages[i].requests, trace->request_count), 6);
        json_double(j, NULL, statistics_ratio(pages[i].bytes, bytes), 6);
        json_close_array(j);
    }
    report_table_close(j);
    free(pages);
    return true;
}
