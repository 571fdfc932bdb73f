/*
 * A trace made ready to be simulated: loaded, with every size known or none, with its
 * totals.
 */
#ifndef SUNPROXY_STUDY_SIMULATE_SIMULATE_SUBJECT_H
#define SUNPROXY_STUDY_SIMULATE_SIMULATE_SUBJECT_H

#include "study/simulate/simulate_options.h"
#include "study/simulate/simulate_sizes.h"
#include "sim/sample.h"
#include "sim/sweep.h"
#include "trace/totals.h"

/* Length that is assumed of a URL of which a trace has only a number. */
#define SIMULATE_URL_BYTES 64u

struct simulate_subject {
    const char *path;     /* of the first file */
    size_t files;         /* that were joined to this trace; 1: it is that file's */
    bool by_time;         /* several were joined in the order of time, else as they were given */
    struct trace *trace;  /* owned */
    struct sim_trace sim; /* of the whole trace */
    bool sized;           /* sizes are known and used */
    size_t warmup;        /* requests */
    struct trace_totals facts;
    struct simulate_sizes_known assumed; /* URLs whose size is assumed: the median of the others */
    struct sim_storage storage;          /* as in the options */
    bool whole_pages;                    /* bytes count whole pages: SIMULATE_COUNT_WHOLE */
    uint32_t *charges;                   /* owned; see struct sim_trace; NULL: nothing */

    /*
     * The smallest capacity in bytes that holds every page under every policy: distinct_bytes, with
     * what is charged for each page where whole pages count. Shares of the bytes are of this.
     */
    uint64_t all_bytes;
    double rate;              /* of the sample; 1: there is none, and all is simulated */
    struct sim_sample sample; /* if --sample was given, or all is too much */
    uint32_t *sizes;          /* owned: where they are not the trace's own */
    uint32_t *next;           /* owned: where a policy needs it, of the sample if there is one */
};

/*
 * Loads and prepares the files as one trace, in the order of time where all have times (join.h).
 * EX_OK, or the exit status after a complaint, with nothing to be freed. Catches SIGINT and SIGTERM
 * from then on (interrupt.h): EXIT_INTERRUPTED if one has come. Says on stderr what was left out or
 * taken for granted. EX_USAGE where options->needs_sizes and too few are known. The paths are kept,
 * not copied.
 */
int simulate_subject_load(char *const *paths, size_t count, const struct simulate_options *options,
                          struct simulate_subject *subject);

#define SIMULATE_LIFETIME_TEXT 96u
/*
 * Which lifetime is assumed of pages: "pages are assumed never to expire (no --ttl)" or "pages
 * expire 10 m after they are stored (--ttl)". Returns text.
 */
const char *simulate_lifetime(const struct simulate_subject *subject,
                              char text[SIMULATE_LIFETIME_TEXT]);

/*
 * Draws the sample of a subject that has none, at a rate below 1. EX_OK, or the exit status after a
 * complaint.
 */
int simulate_subject_sample(struct simulate_subject *subject,
                            const struct simulate_options *options, double rate);

/* "7 requests for 1 URL". */
void simulate_print_counts(const struct sim_trace *trace);

/* Harmless on one that is all zero. */
void simulate_subject_free(struct simulate_subject *subject);

/*
 * A run of this policy in a cache of this capacity, which is made smaller if there is a sample;
 * both 0: nothing is stored.
 */
struct sim_job simulate_job(const struct simulate_subject *subject,
                            const struct simulate_options *options, const struct policy_spec *spec,
                            uint64_t urls, uint64_t bytes);

/* The ratio that counts. */
double simulate_goal(const struct sim_result *result, bool by_bytes);

#endif
