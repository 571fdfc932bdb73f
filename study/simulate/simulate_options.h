/*
 * Options that `sunproxy simulate`, `advise` and `report` share: the trace, the policies, and how
 * the simulation is to go.
 */
#ifndef SUNPROXY_STUDY_SIMULATE_SIMULATE_OPTIONS_H
#define SUNPROXY_STUDY_SIMULATE_SIMULATE_OPTIONS_H

#include "cli/trace_options.h"
#include "policies/policy.h"
#include "sim/sim.h"

/* Of a longer trace, a sample of this many requests is simulated where all would take minutes. */
#define SIMULATE_ENOUGH 1000000u
#define SIMULATE_ENOUGH_HELP "more than a million requests"

/* Bytes of header fields that are assumed of each page, unless --header-bytes states them. */
#define SIMULATE_HEADER_BYTES 300u

/* What of a page counts in bytes, in the order of "body|whole". */
enum simulate_count { SIMULATE_COUNT_BODY, SIMULATE_COUNT_WHOLE };

struct simulate_options {
    struct trace_options trace;
    enum simulate_count count_bytes;
    uint64_t header_bytes;   /* of header fields, assumed of each page where whole pages count */
    bool header_bytes_given; /* by the user, who may have measured them */
    const char *sizes;       /* a file of URLs and bytes; NULL: the trace's own */
    const char **all_sizes;  /* owned; every such file, in the order given; `sizes` is the last */
    size_t sizes_count;
    struct sim_storage storage; /* which pages are stored, and for how long */
    bool ignore_sizes;          /* every page counts 1 */
    bool by_bytes;              /* the byte hit ratio is what counts */
    bool needs_sizes;           /* a trace without sizes is refused: what is asked is in bytes */
    struct policy_spec *specs;  /* owned */
    size_t spec_count;
    uint64_t warmup; /* requests */
    double warmup_percent;
    double rate;     /* of sampling, 1: all; 0: all, unless that is too much */
    uint64_t enough; /* requests in a sample that is drawn because all are too much; 0: never */
    uint64_t seed;
    uint64_t seeds; /* runs of a policy that draws, with successive seeds */
    uint64_t jobs;
};

/* For struct simulate_options; its trace has trace_option_group. */
extern const struct option_group simulate_option_group;

/* Of a command's own group: --policy, for a whole struct simulate_options */
option_take simulate_take_policies;
#define SIMULATE_POLICY_HELP                                                                   \
    "policies, separated by commas, with parameters or without: lru,lru-k:k=3 (see 'sunproxy " \
    "policies'); all; none (default: the classics, opt, the best of the modern ones)"

/* The defaults, with no policy chosen. */
void simulate_options_init(struct simulate_options *options);
void simulate_options_free(struct simulate_options *options);

/*
 * When all options were read. Without --policy: the five classics, OPT and the best of the modern
 * ones. With it a note for each that depends on fetch times, which traces lack. False, after a
 * complaint, without memory.
 */
bool simulate_settle_policies(struct simulate_options *options);

#endif
