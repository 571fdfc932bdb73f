/*
 * Facts about a trace: popularity, sizes, times.
 */
#ifndef SUNPROXY_TRACE_FACTS_H
#define SUNPROXY_TRACE_FACTS_H

#include "trace/totals.h"

/* Some values of a set, by nearest rank: the smallest value that is not exceeded by that share. */
struct trace_percentiles {
    uint64_t count; /* 0: there are none */
    double mean;
    uint32_t min, p10, p25, p50, p75, p90, p99, max;
};

struct trace_busy {
    uint32_t id;
    uint64_t requests;
};

struct trace_facts {
    uint64_t requests;
    uint64_t urls;
    uint64_t one_hit;           /* URLs that are requested once */
    struct trace_busy *busiest; /* the most requested first, ties by number; owned */
    size_t busiest_count;
    double zipf; /* the constant of Zipf's law that fits best; see trace_fit_zipf() */
    struct trace_totals totals;

    bool has_sizes;
    uint64_t unknown_sizes; /* requests */
    uint64_t size_changes;  /* requests whose size is not that of the one before for the URL */
    struct trace_percentiles request_sizes;
    struct trace_percentiles url_sizes;

    bool has_times;
    int64_t first_us, last_us; /* the earliest and the latest */
    uint64_t out_of_order;     /* requests earlier than the one before */
};

/* TRACE_OK or TRACE_NO_MEMORY. Of the busiest, at most `busiest`. */
enum trace_error trace_facts_make(const struct trace *trace, size_t busiest,
                                  struct trace_facts *facts);
void trace_facts_free(struct trace_facts *facts);

/*
 * The constant s of Zipf's law on n ranks, p(r) proportional to r^-s, that makes the counts most
 * likely (maximum likelihood: the mean of ln r under the law is that of the requests), in [0, 10].
 * counts are sorted, largest first. Since the ranks are those of the same counts, the fit is too
 * steep for few requests per URL.
 */
double trace_fit_zipf(const uint32_t *counts, size_t n);

/* Of values that it sorts. */
void trace_percentiles_of(uint32_t *values, size_t count, struct trace_percentiles *of);

#endif
