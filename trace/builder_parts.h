/*
 * The fields of a builder. For builder.c and bulk.c only.
 */
#ifndef SUNPROXY_TRACE_BUILDER_PARTS_H
#define SUNPROXY_TRACE_BUILDER_PARTS_H

#include "base/buf.h"
#include "trace/builder.h"
#include "trace/method_names.h"
#include "trace/formats/number_table.h"
#include "trace/url_table.h"
#include "trace/wanted.h"

struct trace_builder {
    const struct trace_options *options; /* not owned */
    const char *methods;
    struct wanted_statuses statuses;
    struct wanted_statuses redirects; /* those among the unwanted that are counted as such */
    struct url_table urls;
    struct number_table numbers;
    uint32_t *ids;
    int64_t *times_us;   /* NULL until the first is known */
    uint32_t *sizes;     /* likewise */
    uint16_t *status_of; /* likewise */
    uint8_t *methods_of; /* likewise */
    struct method_names method_names;
    bool lacks_sizes; /* some are unknown */
    size_t count;
    size_t capacity;
    struct buf base; /* the reduced URL */
    struct trace_counts counts;
    bool failed;
};

/*
 * The URL as a cache knows it: without its fragment, which no client sends (RFC 9110 section 7.1;
 * http_normal_url() drops it), and without its query if the options say so.
 */
static inline struct span
builder_cut_url(const struct trace_builder *b, struct span url)
{
    const char *end = url.len ? memchr(url.ptr, '#', url.len) : NULL;

    if (end)
        url.len = (size_t)(end - url.ptr);
    end = b->options->cut_query && url.len ? memchr(url.ptr, '?', url.len) : NULL;
    if (end)
        url.len = (size_t)(end - url.ptr);
    return url;
}

/* True if the request is left out; it is then counted under its reason. */
bool builder_filters_out(struct trace_builder *b, const struct trace_request *e);

/* Grows all arrays for `count` more requests of this kind. False without memory. */
bool builder_reserve(struct trace_builder *b, const struct trace_request *e, size_t count);

/* False without memory. */
bool builder_append(struct trace_builder *b, const struct trace_request *e, uint32_t id);

/* An unknown time among known ones is that of the request before. */
static inline void
builder_set_time(struct trace_builder *b, size_t at, int64_t time_us)
{
    b->times_us[at] = time_us != TRACE_TIME_UNKNOWN ? time_us : b->times_us[at - 1];
}

/* A 304 has no body: a logged size is not that of the page. */
static inline void
builder_set_size(struct trace_builder *b, size_t at, int64_t size, unsigned status)
{
    bool unknown = size < 0 || (status == 304 && !b->options->sizes_as_read);
    bool large = !unknown && size > TRACE_SIZE_MOST;

    b->sizes[at] = unknown ? TRACE_SIZE_UNKNOWN : large ? TRACE_SIZE_MOST : (uint32_t)size;
    b->lacks_sizes |= unknown;
    b->counts.large_sizes += large;
}

#endif
