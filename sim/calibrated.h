/*
 * For which policies the errors that are computed from a sample (sim/estimate.h) are those that are
 * made: measured with many samples of several traces by tests/bench/calibrate_main.c (`make
 * calibrate-samples` prints the table). For all others no error is stated.
 */
#ifndef SUNPROXY_SIM_CALIBRATED_H
#define SUNPROXY_SIM_CALIBRATED_H

#include "policies/policy.h"

/* Of which ratio, in caches with a capacity in which unit. */
#define CALIBRATED_URLS_HITS 1u   /* the hit ratio, capacity in URLs */
#define CALIBRATED_URLS_BYTES 2u  /* the byte hit ratio, capacity in URLs */
#define CALIBRATED_BYTES_HITS 4u  /* the hit ratio, capacity in bytes */
#define CALIBRATED_BYTES_BYTES 8u /* the byte hit ratio, capacity in bytes */

/*
 * The kinds of errors that the calibration supports. A policy that is not in the table has none,
 * nor does one with parameters off their defaults, since only the defaults were measured.
 */
unsigned calibrated_kinds(const struct policy_spec *spec);

/* Of a policy, in one unit, of one ratio, over all traces and capacities. */
struct calibration {
    unsigned samples;
    unsigned stated; /* with an error */
    unsigned within; /* of those, the truth within 1.96 standard errors */

    /* The trace and capacity with the smallest share of them, of those where most state an error */
    unsigned worst_stated, worst_within;
};

/*
 * What counts as support: at least a quarter of the samples state an error; of these at least 90 in
 * 100 are within it (95 are meant), and of the worst trace at one capacity no fewer than come by
 * chance once in 1,000 times where 90 in 100 are meant: 7 of 12, 29 of 40.
 */
bool calibration_supports(const struct calibration *calibration);

#endif
