#include "trace/builder.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/hash.h"
#include "trace/base_url.h"
#include "trace/formats/number_table.h"
#include "trace/method_names.h"
#include "trace/url_table.h"
#include "trace/wanted.h"

#define FIRST_REQUESTS 256u

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
static struct span
cut_url(const struct trace_builder *b, struct span url)
{
    const char *end = url.len ? memchr(url.ptr, '#', url.len) : NULL;

    if (end)
        url.len = (size_t)(end - url.ptr);
    end = b->options->cut_query && url.len ? memchr(url.ptr, '?', url.len) : NULL;
    if (end)
        url.len = (size_t)(end - url.ptr);
    return url;
}

/* An unknown time among known ones is that of the request before. */
static void
set_time(struct trace_builder *b, size_t at, int64_t time_us)
{
    b->times_us[at] = time_us != TRACE_TIME_UNKNOWN ? time_us : b->times_us[at - 1];
}

/* A 304 has no body: a logged size is not that of the page. */
static void
set_size(struct trace_builder *b, size_t at, int64_t size, unsigned status)
{
    bool unknown = size < 0 || (status == 304 && !b->options->sizes_as_read);
    bool large = !unknown && size > TRACE_SIZE_MOST;

    b->sizes[at] = unknown ? TRACE_SIZE_UNKNOWN : large ? TRACE_SIZE_MOST : (uint32_t)size;
    b->lacks_sizes |= unknown;
    b->counts.large_sizes += large;
}

/* What trace_load() hands out: the public part first, then what it points into. */
struct owned_trace {
    struct trace trace;
    struct url_table table;
    struct method_names method_names;
};

/* ---- options ------------------------------------------------------------------------------- */

static const unsigned redirects[] = {301, 302, 303, 307, 308};
#define REDIRECTS (sizeof(redirects) / sizeof(redirects[0]))

static bool
choose_statuses(struct trace_builder *b)
{
    const struct trace_options *o = b->options;

    if (!wanted_parse_statuses(o->statuses ? o->statuses : TRACE_DEFAULT_STATUSES, &b->statuses))
        return false;
    for (size_t i = 0; i < REDIRECTS; i++) {
        if (o->redirects == TRACE_REDIRECTS_KEEP)
            wanted_set_status(&b->statuses, redirects[i], true);
        else if (o->redirects == TRACE_REDIRECTS_DROP || !wanted_status(&b->statuses, redirects[i]))
            wanted_set_status(&b->redirects, redirects[i], true);
    }
    return true;
}

struct trace_builder *
trace_builder_create(const struct trace_options *options)
{
    struct trace_builder *b = calloc(1, sizeof(*b));

    if (!b)
        return NULL;
    b->options = options;
    b->methods = options->methods ? options->methods : TRACE_DEFAULT_METHODS;
    choose_statuses(b);
    url_table_init(&b->urls);
    number_table_init(&b->numbers);
    method_names_init(&b->method_names);
    buf_init(&b->base, TRACE_URL_MAX);
    return b;
}

void
trace_builder_destroy(struct trace_builder *b)
{
    if (!b)
        return;
    url_table_free(&b->urls);
    number_table_free(&b->numbers);
    free(b->ids);
    free(b->times_us);
    free(b->sizes);
    free(b->status_of);
    free(b->methods_of);
    buf_free(&b->base);
    free(b);
}

bool
trace_builder_failed(const struct trace_builder *b)
{
    return b->failed;
}

struct trace_counts *
trace_builder_counts(struct trace_builder *b)
{
    return &b->counts;
}

/* ---- requests ------------------------------------------------------------------------------ */

/* realloc() of what a pointer of any type points to. False: no memory. */
static bool
extend(void *pointer, size_t element, size_t capacity)
{
    char *array;

    memcpy(&array, pointer, sizeof(array));
    array = realloc(array, capacity * element);
    if (!array)
        return false;
    memcpy(pointer, &array, sizeof(array));
    return true;
}

/* If a later array cannot grow, earlier ones are longer than `capacity` says: harmless. */
static bool
grow(struct trace_builder *b)
{
    size_t capacity = b->capacity ? b->capacity * 2 : FIRST_REQUESTS;

    if (capacity > SIZE_MAX / sizeof(*b->times_us) || !extend(&b->ids, sizeof(*b->ids), capacity) ||
        (b->times_us && !extend(&b->times_us, sizeof(*b->times_us), capacity)) ||
        (b->sizes && !extend(&b->sizes, sizeof(*b->sizes), capacity)) ||
        (b->status_of && !extend(&b->status_of, sizeof(*b->status_of), capacity)) ||
        (b->methods_of && !extend(&b->methods_of, sizeof(*b->methods_of), capacity)))
        return false;
    b->capacity = capacity;
    return true;
}

/* Creates the arrays that this request is the first to need, filled for all requests before it. */
static bool
make_arrays(struct trace_builder *b, const struct trace_request *e)
{
    if (e->time_us != TRACE_TIME_UNKNOWN && !b->times_us && !b->options->without_times) {
        if (!extend(&b->times_us, sizeof(*b->times_us), b->capacity))
            return false;
        for (size_t i = 0; i < b->count; i++)
            b->times_us[i] = e->time_us;
    }
    if (e->size >= 0 && !b->sizes && !b->options->without_sizes) {
        if (!extend(&b->sizes, sizeof(*b->sizes), b->capacity))
            return false;
        for (size_t i = 0; i < b->count; i++)
            b->sizes[i] = TRACE_SIZE_UNKNOWN;
        b->lacks_sizes = b->count != 0;
    }
    if (e->status != TRACE_STATUS_UNKNOWN && !b->status_of) {
        b->status_of = calloc(b->capacity, sizeof(*b->status_of));
        if (!b->status_of)
            return false;
    }
    if (e->method.len != 0 && !b->methods_of && !b->options->without_methods) {
        b->methods_of = calloc(b->capacity, sizeof(*b->methods_of));
        if (!b->methods_of)
            return false;
    }
    return true;
}

static bool
reserve(struct trace_builder *b, const struct trace_request *e, size_t count)
{
    while (b->capacity - b->count < count) {
        if (!grow(b))
            return false;
    }
    return make_arrays(b, e);
}

static bool
append(struct trace_builder *b, const struct trace_request *e, uint32_t id)
{
    if (!reserve(b, e, 1))
        return false;
    b->ids[b->count] = id;
    if (b->times_us)
        set_time(b, b->count, e->time_us);
    if (b->sizes)
        set_size(b, b->count, e->size, e->status);
    if (b->status_of)
        b->status_of[b->count] = (uint16_t)(e->status > UINT16_MAX ? UINT16_MAX : e->status);
    if (b->methods_of)
        b->methods_of[b->count] = method_names_put(&b->method_names, e->method);
    b->counts.logged_hits += e->outcome == TRACE_OUTCOME_HIT;
    b->counts.logged_outcomes += e->outcome != TRACE_OUTCOME_UNKNOWN;
    b->count++;
    b->counts.requests = b->count;
    return true;
}

static bool
filters_out(struct trace_builder *b, const struct trace_request *e)
{
    const struct trace_options *o = b->options;
    bool web = e->url.ptr && base_url_is_web(e->url);

    if (e->url.ptr && (e->url.len == 0 || e->url.len > TRACE_URL_MAX || span_has_zero(e->url) ||
                       (web && base_url_host_port(e->url).len == 0)))
        trace_add_bad(b, e->line, e->url);
    else if (e->method.len != 0 && !wanted_method(b->methods, e->method))
        b->counts.skipped_method++;
    else if (e->status != TRACE_STATUS_UNKNOWN && !b->redirects.all &&
             wanted_status(&b->redirects, e->status))
        b->counts.skipped_redirect++;
    else if (e->status != TRACE_STATUS_UNKNOWN && !wanted_status(&b->statuses, e->status))
        b->counts.skipped_status++;
    else if (e->url.ptr && !web && !o->all_schemes)
        b->counts.skipped_scheme++;
    else if ((o->since_us != INT64_MIN || o->until_us != INT64_MAX) &&
             (e->time_us == TRACE_TIME_UNKNOWN || e->time_us < o->since_us ||
              e->time_us >= o->until_us))
        b->counts.skipped_time++;
    else
        return false;
    return true;
}

/* Reduces the URL as the options say; false without memory. */
static bool
reduce(struct trace_builder *b, struct span *url)
{
    *url = cut_url(b, *url);
    if (b->options->base_urls) {
        buf_reset(&b->base);
        if (!base_url_append(&b->base, *url))
            return false;
        *url = buf_span(&b->base);
    }
    return true;
}

bool
trace_add(struct trace_builder *b, const struct trace_request *e)
{
    const struct trace_options *o = b->options;
    struct span url = e->url;
    uint32_t id;
    bool fresh;

    if (b->failed || (o->limit != 0 && b->count >= o->limit))
        return false;
    if (filters_out(b, e))
        return true;
    if (!url.ptr)
        b->failed = !number_table_put(&b->numbers, e->number, &id, &fresh);
    else
        b->failed = !reduce(b, &url) || !url_table_put(&b->urls, url, &id, &fresh);
    if (b->failed)
        return false;
    if (o->unique && !fresh) {
        b->counts.skipped_unique++;
        return true;
    }
    b->failed = !append(b, e, id);
    return !b->failed && (o->limit == 0 || b->count < o->limit);
}

void
trace_add_bad(struct trace_builder *b, uint64_t line, struct span text)
{
    struct trace_counts *c = &b->counts;

    c->skipped_bad++;
    if (line != 0 && c->first_bad_line == 0)
        c->first_bad_line = line;
    if (c->bad_count < TRACE_BAD_LINES) {
        struct trace_bad_line *bad = &c->bad[c->bad_count++];
        size_t len = text.len < sizeof(bad->text) - 1 ? text.len : sizeof(bad->text) - 1;

        bad->line = line;
        for (size_t i = 0; i < len; i++)
            bad->text[i] = text.ptr[i] >= ' ' && text.ptr[i] < 0x7f ? text.ptr[i] : '?';
        bad->text[len] = '\0';
    }
}

void
trace_remark(struct trace_builder *b, const char *format, ...)
{
    struct trace_counts *c = &b->counts;
    char text[TRACE_REMARK_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    for (size_t i = 0; i < c->remark_count; i++) {
        if (strcmp(c->remarks[i], text) == 0)
            return;
    }
    if (c->remark_count < TRACE_REMARKS)
        memcpy(c->remarks[c->remark_count++], text, sizeof(text));
}

/* ---- batches ------------------------------------------------------------------------------- */

/*
 * The tables of a trace with millions of URLs exceed the processor's caches, and each lookup waits
 * for memory several times; the prefetches of a batch let its lookups wait together. builder.h has
 * the measured gain.
 */
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

        if (filters_out(b, e))
            continue;
        wanted[n] = e;
        urls[n] = cut_url(b, e->url);
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
                    !append(b, wanted[i], id);
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
    return reserve(b, &request, count);
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
        set_time(b, b->count + i, requests[i].time_us);
    for (size_t i = 0; i < count && b->sizes; i++)
        set_size(b, b->count + i, requests[i].size, TRACE_STATUS_UNKNOWN);
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

/* ---- the end ------------------------------------------------------------------------------- */

/* Unknown sizes become the last known of their URL, those before the first known that one. */
static bool
fill_sizes(struct trace_builder *b, size_t url_count)
{
    uint32_t *known = malloc(url_count * sizeof(*known));

    if (!known)
        return false;
    memset(known, 0xff, url_count * sizeof(*known));
    for (size_t i = b->count; i-- != 0;) {
        if (b->sizes[i] != TRACE_SIZE_UNKNOWN)
            known[b->ids[i]] = b->sizes[i];
    }
    for (size_t i = 0; i < b->count; i++) {
        if (b->sizes[i] != TRACE_SIZE_UNKNOWN) {
            known[b->ids[i]] = b->sizes[i];
        } else if (known[b->ids[i]] != TRACE_SIZE_UNKNOWN) {
            b->sizes[i] = known[b->ids[i]];
            b->counts.inferred_sizes++;
            b->counts.inferred_bytes += b->sizes[i];
        }
    }
    free(known);
    return true;
}

/*
 * Programs that do not know sizes write 1, as oracleGeneral demands a number: if no known size is
 * another, none is known. Pages of 1 byte each are counted the same in either case.
 */
static void
drop_ones(struct trace_builder *b)
{
    for (size_t i = 0; i < b->count; i++) {
        if (b->sizes[i] != 1 && b->sizes[i] != TRACE_SIZE_UNKNOWN)
            return;
    }
    trace_remark(b, "all sizes are 1 and taken to be unknown");
    free(b->sizes);
    b->sizes = NULL;
    b->lacks_sizes = false;
}

static uint64_t *
make_keys(const struct trace_builder *b, size_t url_count)
{
    uint64_t *keys = malloc(url_count * sizeof(*keys));

    for (size_t i = 0; keys && i < url_count; i++)
        keys[i] =
            b->urls.count != 0 ? hash64_bytes(b->urls.urls[i]) : hash64_uint(b->numbers.numbers[i]);
    return keys;
}

struct trace *
trace_builder_finish(struct trace_builder *b, const char *format)
{
    struct owned_trace *owned = calloc(1, sizeof(*owned));
    bool has_urls = b->urls.count != 0;
    size_t url_count = has_urls ? b->urls.count : b->numbers.count;
    uint64_t *keys = make_keys(b, url_count);

    if (b->sizes && !b->options->sizes_as_read)
        drop_ones(b);
    if (!owned || !keys ||
        (b->lacks_sizes && !b->options->sizes_as_read && !fill_sizes(b, url_count))) {
        free(owned);
        free(keys);
        return NULL;
    }
    url_table_settle(&b->urls);
    owned->table = b->urls;
    owned->method_names = b->method_names;
    owned->trace = (struct trace){
        .format = format,
        .unit = "request",
        .request_count = b->count,
        .ids = b->ids,
        .times_us = b->times_us,
        .sizes = b->sizes,
        .statuses = b->status_of,
        .methods = b->methods_of,
        .url_count = url_count,
        .urls = has_urls ? owned->table.urls : NULL,
        .numbers = has_urls ? NULL : b->numbers.numbers,
        .keys = keys,
        .counts = b->counts,
    };
    if (!has_urls)
        b->numbers.numbers = NULL;
    url_table_init(&b->urls);
    b->ids = NULL;
    b->times_us = NULL;
    b->sizes = NULL;
    b->status_of = NULL;
    b->methods_of = NULL;
    b->count = 0;
    b->capacity = 0;
    return &owned->trace;
}

const char *
trace_method(const struct trace *trace, size_t request)
{
    const struct owned_trace *owned = (const struct owned_trace *)trace;

    return trace->methods ? owned->method_names.names[trace->methods[request]] : "";
}

void
trace_free(struct trace *trace)
{
    struct owned_trace *owned = (struct owned_trace *)trace;

    if (!owned)
        return;
    free(owned->trace.ids);
    free(owned->trace.times_us);
    free(owned->trace.sizes);
    free(owned->trace.statuses);
    free(owned->trace.methods);
    free(owned->trace.numbers);
    free(owned->trace.keys);
    url_table_free(&owned->table);
    free(owned);
}
