/*
 * Builds a trace from the requests that a reader adds one by one: filters them by the options and
 * counts those left out, by reason; reduces URLs; numbers URLs; stores the known values.
 *
 * The first request decides whether a trace has URLs or numbers. A builder belongs to one
 * thread.
 */
#ifndef SUNPROXY_TRACE_BUILDER_H
#define SUNPROXY_TRACE_BUILDER_H

#include "trace/trace.h"

/* Whether the server that wrote a log had the page in its cache. */
enum trace_outcome {
    TRACE_OUTCOME_UNKNOWN,
    TRACE_OUTCOME_HIT,
    TRACE_OUTCOME_MISS,
};

/* A request as a reader adds it. */
struct trace_request {
    struct span url;    /* .ptr NULL: there is only a number */
    uint64_t number;    /* the format's, where there is no URL */
    int64_t time_us;    /* or TRACE_TIME_UNKNOWN */
    int64_t size;       /* of the body; -1: unknown, which a 304's always is */
    struct span method; /* empty: unknown, passes the filter */
    unsigned status;    /* TRACE_STATUS_UNKNOWN passes the filter */
    enum trace_outcome outcome;
    uint64_t line; /* from 1, for messages; 0: unknown */
};

/* A request of a format with these values only; as above. */
struct trace_numbered {
    uint64_t number;
    int64_t time_us;
    int64_t size;
};

#define TRACE_REQUEST_EMPTY ((struct trace_request){.time_us = TRACE_TIME_UNKNOWN, .size = -1})

/* NULL without memory. The options, which are right, must stay as long as the builder. */
struct trace_builder *trace_builder_create(const struct trace_options *options);
void trace_builder_destroy(struct trace_builder *builder);

/*
 * One more request. False: stop reading, the limit is reached or memory is out
 * (see trace_builder_failed()).
 */
bool trace_add(struct trace_builder *builder, const struct trace_request *request);

/*
 * Prefetches what trace_add() will read for this request, if it has a number and no URL; to be
 * called some twenty requests before. It halves the CPU time of loading 50 million records with 7
 * million ids (9.2 to 4.3 s).
 */
void trace_add_soon(const struct trace_builder *builder, const struct trace_request *request);

/*
 * Adds several requests, in batches whose lookups wait for memory together. A list of 13 million
 * URLs (1 GB, 2.4 million distinct) takes 2.4 s of CPU time instead of 6.4 s; 40 million numbers
 * (960 MB) take 1.85 s instead of 2.06 s, and 2.3 s without the prefetches. The result is that of
 * trace_add(). URLs must stay valid until the function returns.
 */
bool trace_add_many(struct trace_builder *builder, const struct trace_request *requests,
                    size_t count);
bool trace_add_numbered(struct trace_builder *builder, const struct trace_numbered *requests,
                        size_t count);

/* Counts a malformed line or record and keeps the first ones. `text` may be empty. */
void trace_add_bad(struct trace_builder *builder, uint64_t line, struct span text);

/*
 * Adds a remark on how the input was read, for the user: a guess that may be wrong. The same remark
 * twice is one; remarks beyond TRACE_REMARKS are dropped.
 */
void trace_remark(struct trace_builder *builder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

bool trace_builder_failed(const struct trace_builder *builder);
struct trace_counts *trace_builder_counts(struct trace_builder *builder);

/* Turns what was built into a trace; the builder is then empty. NULL without memory. */
struct trace *trace_builder_finish(struct trace_builder *builder, const char *format);

#endif
