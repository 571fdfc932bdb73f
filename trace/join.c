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
request_of(const struct trace *part, size_t at)
{
    struct trace_request request = TRACE_REQUEST_EMPTY;
    uint32_t id = part->ids[at];

    if (part->urls)
        request.url = part->urls[id];
    else
        request.number = part->numbers[id];
    if (part->times_us)
        request.time_us = part->times_us[at];
    if (part->sizes && part->sizes[at] != TRACE_SIZE_UNKNOWN)
        request.size = part->sizes[at];
    if (part->statuses)
        request.status = part->statuses[at];
    request.method = span_str(trace_method(part, at));
    return request;
}

/* Requests left out of the parts, and values that were changed there. */
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
    size_t part;

    if (!at)
        return false;
    while ((part = next_part(parts, at, count, by_time)) < count) {
        struct trace_request request = request_of(parts[part], at[part]++);

        if (!trace_add(builder, &request))
            break; /* at the limit, or without memory */
    }
    free(at);
    return !trace_builder_failed(builder);
}

enum trace_error
trace_join(struct trace *const *parts, size_t count, const struct trace_options *options,
           struct trace **whole, bool *by_time)
{
    /* The parts were filtered when they were loaded. */
    struct trace_options own = {.methods = "all",
                                .statuses = "all",
                                .redirects = TRACE_REDIRECTS_KEEP,
                                .all_schemes = true,
                                .unique = options->unique,
                                .without_times = options->without_times,
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
