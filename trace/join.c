#include "trace/join.h"

#include <stdlib.h>
#include <string.h>

#include "trace/builder.h"

static bool
all_have_times(struct trace *const *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!parts[i]->times_us)
            return false;
    return true;
}

static bool
all_of_one_kind(struct trace *const *parts, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (!parts[i]->urls != !parts[0]->urls)
            return false;
    return true;
}

/* The part whose next request is the earliest, of equal ones the first; `count` at the end. */
static size_t
next_part(struct trace *const *parts, const size_t *at, size_t count, bool by_time)
{
    size_t best = count;

    for (size_t i = 0; i < count; i++) {
        if (at[i] == parts[i]->request_count)
            continue;
        if (best == count ||
            (by_time && parts[i]->times_us[at[i]] < parts[best]->times_us[at[best]]))
            best = i;
    }
    return best;
}

static struct trace_request
request_of(const struct trace *part, size_t request)
{
    struct trace_request entry = TRACE_REQUEST_EMPTY;
    uint32_t id = part->ids[request];

    if (part->urls)
        entry.url = part->urls[id];
    else
        entry.number = part->numbers[id];
    if (part->times_us)
        entry.time_us = part->times_us[request];
    if (part->sizes && part->sizes[request] != TRACE_SIZE_UNKNOWN)
        entry.size = part->sizes[request];
    if (part->statuses)
        entry.status = part->statuses[request];
    entry.method = span_str(trace_method(part, request));
    return entry;
}

/* What was left out of the parts, and what is not as it was there. */
static void
add_counts(struct trace_counts *sum, const struct trace_counts *part)
{
    sum->skipped_orphan += part->skipped_orphan;
    sum->skipped_method += part->skipped_method;
    sum->skipped_status += part->skipped_status;
    sum->skipped_redirect += part->skipped_redirect;
    sum->skipped_scheme += part->skipped_scheme;
    sum->skipped_time += part->skipped_time;
    sum->skipped_unique += part->skipped_unique;
    sum->skipped_bad += part->skipped_bad;
    sum->large_sizes += part->large_sizes;
    sum->logged_hits += part->logged_hits;
    sum->logged_outcomes += part->logged_outcomes;
}

static bool
add_all(struct trace_builder *builder, struct trace *const *parts, size_t count, bool by_time)
{
    size_t *at = calloc(count, sizeof(*at));
    uint64_t requests = 0;
    size_t part;

    if (!at)
        return false;
    for (size_t i = 0; i < count; i++)
        requests += parts[i]->request_count;
    trace_expect(builder, requests);
    while ((part = next_part(parts, at, count, by_time)) < count) {
        struct trace_request entry = request_of(parts[part], at[part]++);

        if (!trace_add(builder, &entry))
            break; /* at the limit, or without memory */
    }
    free(at);
    return !trace_builder_failed(builder);
}

enum trace_error
trace_join(struct trace *const *parts, size_t count, const struct trace_options *options,
           struct trace **whole, bool *by_time)
{
    /* What is in a part was wanted when it was loaded. */
    struct trace_options own = {.methods = "all",
                                .statuses = "all",
                                .redirects = TRACE_REDIRECTS_KEEP,
                                .all_schemes = true,
                                .unique = options->unique,
                                .sizes_as_read = options->sizes_as_read,
                                .limit = options->limit,
                                .since_us = INT64_MIN,
                                .until_us = INT64_MAX};
    struct trace_builder *builder;

    *whole = NULL;
    *by_time = all_have_times(parts, count);
    if (!all_of_one_kind(parts, count))
        return TRACE_NOT_A_TRACE;
    builder = trace_builder_create(&own);
    if (builder && add_all(builder, parts, count, *by_time)) {
        for (size_t i = 0; i < count; i++)
            add_counts(trace_builder_counts(builder), &parts[i]->counts);
        *whole = trace_builder_finish(builder, parts[0]->format);
    }
    trace_builder_destroy(builder);
    return *whole ? TRACE_OK : TRACE_NO_MEMORY;
}
