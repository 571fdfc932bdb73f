/*
 * What `sunproxy simulate` and `sunproxy advise` are told alike: the trace, the policies, and how
 * the simulation is to go.
 */
#ifndef SUNPROXY_STUDY_SIMULATE_OPTIONS_H
#define SUNPROXY_STUDY_SIMULATE_OPTIONS_H

#include <getopt.h>

#include "cli/trace_options.h"
#include "policies/policy.h"

/* So many requests are simulated of a trace that is longer, where all would take minutes. */
#define SIMULATE_ENOUGH 1000000u
#define SIMULATE_ENOUGH_HELP "more than a million requests"

struct simulate_options {
    struct trace_options trace;
    const char *sizes;         /* a file of URLs and bytes; NULL: the trace's own */
    bool ignore_sizes;         /* every page counts 1 */
    bool by_bytes;             /* the byte hit ratio is what counts */
    bool needs_sizes;          /* a trace without sizes is refused: what is asked is in bytes */
    struct policy_spec *specs; /* owned */
    size_t spec_count;
    uint64_t warmup; /* requests */
    double warmup_percent;
    double rate;     /* of sampling, 1: all; 0: all, unless that is too much */
    uint64_t enough; /* requests in a sample that is drawn because all are too much; 0: never */
    uint64_t seed;
    uint64_t jobs;
};

enum {
    SIMULATE_OPTION_POLICY = TRACE_OPTION_END,
    SIMULATE_OPTION_SIZES,
    SIMULATE_OPTION_IGNORE_SIZES,
    SIMULATE_OPTION_BY_BYTES,
    SIMULATE_OPTION_WARMUP,
    SIMULATE_OPTION_SAMPLE,
    SIMULATE_OPTION_SEED,
    SIMULATE_OPTION_END,
};

#define SIMULATE_LONG_OPTIONS                                              \
    {"policy", required_argument, NULL, SIMULATE_OPTION_POLICY},           \
        {"sizes", required_argument, NULL, SIMULATE_OPTION_SIZES},         \
        {"ignore-sizes", no_argument, NULL, SIMULATE_OPTION_IGNORE_SIZES}, \
        {"by-bytes", no_argument, NULL, SIMULATE_OPTION_BY_BYTES},         \
        {"warmup", required_argument, NULL, SIMULATE_OPTION_WARMUP},       \
        {"sample", required_argument, NULL, SIMULATE_OPTION_SAMPLE},       \
        {"seed", required_argument, NULL, SIMULATE_OPTION_SEED},           \
        {"jobs", required_argument, NULL, 'j'}, TRACE_LONG_OPTIONS

#define SIMULATE_OPTIONS_HELP                                                             \
    "The simulation:\n"                                                                   \
    "      --ignore-sizes     every page counts 1, whatever its size\n"                   \
    "      --sizes FILE       sizes for a trace that has none: a line for each URL,\n"    \
    "                         URL, tab, bytes; where most are known, the others\n"        \
    "                         are taken to be their median\n"                             \
    "      --by-bytes         the byte hit ratio is what counts\n"                        \
    "      --warmup N         do not count the first N requests, or per cent of them\n"   \
    "      --sample RATE      only so much of the URLs, such as 1% or 0.01, in a cache\n" \
    "                         as much smaller; the error that this costs is told, or\n"   \
    "                         why the sample cannot tell it\n"                            \
    "      --seed N           for policies that draw, and for the sample (default: 1)\n"  \
    "  -j, --jobs N           threads (default: one a processor)\n"

/* The defaults, with no policy chosen. */
void simulate_options_init(struct simulate_options *options);
void simulate_options_free(struct simulate_options *options);

/* 1: taken; 0: not one of these; -1: wrong, and complained about. */
int simulate_option(struct simulate_options *options, int option, const char *argument);

/*
 * When all options were read. Without --policy: the five classics, OPT and the best of the modern
 * ones. With it a note for each that looks at what no trace tells. False, after a complaint,
 * without memory.
 */
bool simulate_settle_policies(struct simulate_options *options);

#endif
