/*
 * Adds requests in batches. The tables of a trace with millions of URLs exceed the processor's
 * caches, and each lookup waits for memory several times; the prefetches of a batch let its lookups
 * wait together. builder.h has the measured gain.
 */
#include "trace/builder_parts.h"

#define BATCH 32u

/* Does no option depend on the requests before? */
static bool
takes_all(const struct trace_builder *b)
{
    const struct trace_options *o = b->options;

    return !b->failed && o->limit == 0 && !o->unique && o->since_us == INT64_MIN &&
           o->until_us == INT64_MAX;
}

static bool
add_one_by_one(struct trace_builder *b, const struct trace_request *requests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!trace_add(b, &requests[i]))
            return false;
    }
    return true;
}

static bool
add_batch(struct trace_builder *b, const struct trace_request *requests, size_t count)
{
    const struct trace_request *wanted[BATCH];
    struct span urls[BATCH];
    uint64_t hashes[BATCH];
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        const struct trace_request *e = &requests[i];

        if (builder_filters_out(b, e))
            continue;
        wanted[n] = e;
        urls[n] = builder_cut_url(b, e->url);
        hashes[n] = url_table_hash(&b->urls, urls[n]);
        url_table_prefetch_slot(&b->urls, hashes[n]);
        n++;
    }
    for (size_t i = 0; i < n; i++)
        url_table_prefetch_row(&b->urls, hashes[i]);
    for (size_t i = 0; i < n; i++)
        url_table_prefetch_bytes(&b->urls, hashes[i]);
    for (size_t i = 0; i < n && !b->failed; i++) {
        uint32_t id;
        bool fresh;

        b->failed = !url_table_put_hashed(&b->urls, urls[i], hashes[i], &id, &fresh) ||
                    !builder_append(b, wanted[i], id);
    }
    return !b->failed;
}

bool
trace_add_many(struct trace_builder *b, const struct trace_request *requests, size_t count)
{
    if (!takes_all(b) || b->options->base_urls)
        return add_one_by_one(b, requests, count);
    for (size_t at = 0; at < count; at += BATCH) {
        size_t n = count - at < BATCH ? count - at : BATCH;

        if (!add_batch(b, requests + at, n))
            return false;
    }
    return true;
}

/* ---- numbers ------------------------------------------------------------------------------- */

/* Reserves `count` more, the first of which is this one. */
static bool
prepare(struct trace_builder *b, const struct trace_numbered *first, size_t count)
{
    struct trace_request request = TRACE_REQUEST_EMPTY;

    request.time_us = first->time_us;
    request.size = first->size;
    return builder_reserve(b, &request, count);
}

/* Is nothing filtered or limited, and have all requests the same known values as the first? */
static bool
can_take_all(const struct trace_builder *b, const struct trace_numbered *requests, size_t count)
{
    const struct trace_options *o = b->options;

    if (b->failed || b->status_of || o->limit != 0 || o->unique || o->since_us != INT64_MIN ||
        o->until_us != INT64_MAX)
        return false;
    for (size_t i = 1; i < count; i++)
        if ((requests[i].size < 0) != (requests[0].size < 0) ||
            (requests[i].time_us == TRACE_TIME_UNKNOWN) !=
                (requests[0].time_us == TRACE_TIME_UNKNOWN))
            return false;
    return count != 0;
}

static bool
add_numbers_one_by_one(struct trace_builder *b, const struct trace_numbered *requests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct trace_request request = TRACE_REQUEST_EMPTY;

        request.number = requests[i].number;
        request.time_us = requests[i].time_us;
        request.size = requests[i].size;
        if (!trace_add(b, &request))
            return false;
    }
    return true;
}

bool
trace_add_numbered(struct trace_builder *b, const struct trace_numbered *requests, size_t count)
{
    for (size_t i = 0; i < count; i++)
        __builtin_prefetch(number_table_place(&b->numbers, requests[i].number));
    if (!can_take_all(b, requests, count))
        return add_numbers_one_by_one(b, requests, count);
    b->failed = !prepare(b, &requests[0], count);
    for (size_t i = 0; i < count && !b->failed; i++) {
        uint32_t *id = &b->ids[b->count + i];
        bool fresh;

        if (!number_table_find(&b->numbers, requests[i].number, id))
            b->failed = !number_table_put(&b->numbers, requests[i].number, id, &fresh);
    }
    if (b->failed)
        return false;
    for (size_t i = 0; i < count && b->times_us; i++)
        builder_set_time(b, b->count + i, requests[i].time_us);
    for (size_t i = 0; i < count && b->sizes; i++)
        builder_set_size(b, b->count + i, requests[i].size, TRACE_STATUS_UNKNOWN);
    b->count += count;
    b->counts.requests = b->count;
    return true;
}

void
trace_add_soon(const struct trace_builder *b, const struct trace_request *e)
{
    if (!e->url.ptr)
        __builtin_prefetch(number_table_place(&b->numbers, e->number));
}
