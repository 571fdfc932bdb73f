/*
 * Makes traces up, seeded: the same options give the same trace. Each workload is one row of a
 * table.
 */
#ifndef SUNPROXY_TRACE_GENERATE_H
#define SUNPROXY_TRACE_GENERATE_H

#include "trace/trace.h"

enum generate_law {
    GENERATE_NO_SIZES,
    GENERATE_FIXED,     /* a */
    GENERATE_UNIFORM,   /* from a to b bytes */
    GENERATE_LOGNORMAL, /* median a, and b the standard deviation of the logarithm */
    GENERATE_PARETO,    /* at least a, shape b */
};

/* Bytes of a page, drawn once for each. */
struct generate_sizes {
    enum generate_law law;
    double a, b;
};

struct generate_options {
    uint64_t requests;
    uint64_t urls;
    double constant; /* of Zipf's law: the page of rank r is requested in proportion to 1 /
                        r^constant */
    double reads;    /* share of the requests, or scans, that only read; the others write */
    struct generate_sizes sizes;
    double rate; /* requests a second, evenly spaced; 0: no times */
    uint64_t seed;
};

struct generate_state;

struct generate_workload {
    const char *name;
    const char *summary;
    struct generate_options defaults; /* requests 0: six for each URL */
    bool has_constant;                /* or the option is refused */
    /* The page, from 0, of the i-th request; settles whether that writes. */
    uint64_t (*draw)(struct generate_state *state, uint64_t i);
};

/* Every workload there is, ended by a name of NULL. */
extern const struct generate_workload generate_workloads[];

const struct generate_workload *generate_find(const char *name);

/*
 * "none", "fixed:1000", "uniform:100:5000", "lognormal:45000:0.8", "pareto:1000:1.2"; anything else
 * is false with a sentence that says what was meant.
 */
bool generate_parse_sizes(const char *text, struct generate_sizes *sizes, char *why,
                          size_t why_size);

/*
 * Makes the trace, of numbers and no URLs: pages are numbered from 1, the most popular first where
 * a law says which that is, but for scans and for reads of the newest. *writes (NULL if all read)
 * says by request which ones write. Both are the caller's to free. TRACE_NO_MEMORY, or
 * TRACE_BAD_OPTION with a sentence.
 */
enum trace_error generate_trace(const struct generate_workload *workload,
                                const struct generate_options *options, struct trace **trace,
                                uint8_t **writes, char *why, size_t why_size);

/*
 * Ranks from 1 to n by Zipf's law with any constant >= 0, in constant time (rejection-inversion:
 * Hörmann, Derflinger, "Rejection-inversion to generate variates from monotone discrete
 * distributions", 1996).
 */
struct zipf {
    double n, constant;
    double at_1_5, at_end, squeeze;
};

struct random_numbers;

void zipf_init(struct zipf *z, uint64_t n, double constant);
uint64_t zipf_draw(const struct zipf *z, struct random_numbers *random);

#endif
