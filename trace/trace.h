/*
 * Traces: sequences of requests, read from a file of any known format. Loading gives every distinct
 * URL a dense number once, from 0 in the order of first appearance, so that whoever replays works
 * on arrays.
 *
 * A loaded trace is immutable; any thread may read it.
 */
#ifndef SUNPROXY_TRACE_TRACE_H
#define SUNPROXY_TRACE_TRACE_H

#include <stdint.h>
#include <stdio.h>

#include "base/span.h"

struct trace_request {
    int64_t time_us; /* since 1970-01-01 UTC, or 0 where the format has no times */
    uint32_t url;    /* number of the URL */
};

/* What was read, what was left out, and why. */
struct trace_counts {
    uint64_t requests;       /* in the trace as loaded */
    uint64_t skipped_orphan; /* visits whose URL row is missing */
    uint64_t skipped_scheme; /* neither http nor https, unless all schemes are wanted */
    uint64_t skipped_time;   /* outside since/until */
    uint64_t skipped_unique; /* seen before, with --unique */
    uint64_t skipped_bad;    /* malformed lines; visits with no time, or no URL that could be one */
    uint64_t first_bad_line; /* of the lines, the first; 0: none */
};

struct trace {
    const char *format; /* name of the format it was read as; static */
    struct trace_request *requests;
    size_t request_count;
    struct span *urls; /* by number; each is followed by a zero byte; with --base-urls, reduced */
    size_t url_count;
    int64_t *sizes; /* by number: bytes of the body where the trace says so, else -1 */
    struct trace_counts counts;
};

struct trace_options {
    const char *format; /* a name from trace_formats, or NULL: look at the content */
    bool all_schemes;   /* keep URLs other than http and https */
    bool base_urls;     /* reduce each URL to scheme://host[:port], as the paper did */
    bool unique;        /* only the first request for each URL */
    uint64_t limit;     /* at most so many requests, after all else; 0: no limit */
    int64_t since_us;   /* inclusive; INT64_MIN: no bound */
    int64_t until_us;   /* exclusive; INT64_MAX: no bound */
};

#define TRACE_OPTIONS_DEFAULT ((struct trace_options){.since_us = INT64_MIN, .until_us = INT64_MAX})

enum trace_error {
    TRACE_OK = 0,
    TRACE_CANNOT_OPEN, /* no such file, no permission: errno's story */
    TRACE_NOT_A_TRACE, /* not the format it was taken for, or truncated, or other columns */
    TRACE_EMPTY,       /* no request is left; the sentence says what was left out */
    TRACE_NO_MEMORY,
};

/*
 * Loads a file. On success *trace is the caller's, freed with trace_free(). Otherwise a sentence in
 * `why` that names the file and what was expected.
 */
enum trace_error trace_load(const char *path, const struct trace_options *options,
                            struct trace **trace, char *why, size_t why_size);

/* NULL is harmless. */
void trace_free(struct trace *trace);

/* A format: one file in trace/, one row in trace_formats. */
struct trace_builder;
struct trace_format {
    const char *name;
    const char *summary;
    /* Could these first bytes of a file be this format? Asked in the order of the rows. */
    bool (*sniff)(struct span head);
    /* Reads a file and adds its requests in order with trace_add(). */
    enum trace_error (*read)(const char *path, const struct trace_options *options,
                             struct trace_builder *builder, char *why, size_t why_size);
};

/* Every format there is, ended by NULL. */
extern const struct trace_format *const trace_formats[];

/*
 * For readers: one more request; the builder filters by scheme, time, limit, uniqueness and
 * reduces URLs as the options say. `size` is -1 where unknown. False: stop reading, the limit is
 * reached or memory is out (trace_builder_failed() tells which).
 */
bool trace_add(struct trace_builder *builder, int64_t time_us, struct span url, int64_t size);
bool trace_builder_failed(const struct trace_builder *builder);
struct trace_counts *trace_builder_counts(struct trace_builder *builder);

#endif
