/*
 * The sizes that simulate and report try where none are given, the same in both.
 */
#ifndef SUNPROXY_STUDY_DEFAULT_SIZES_H
#define SUNPROXY_STUDY_DEFAULT_SIZES_H

#include "study/simulate/simulate_subject.h"
#include "study/size_scale.h"

/* Number of sizes of a curve, as the default of --points. */
#define DEFAULT_POINTS "50"

/* For help and manuals: what default_sizes_shares() gives. */
#define DEFAULT_SHARES_HELP                                                                        \
    "1, 2, 5, 10, 20 and 50 % of the bytes, or of the URLs without sizes; 10, 20, 30, 40, 50 and " \
    "80 % of at most 500 URLs, as in the Sun RPC paper"

/* Shares of everything, ended by 0; static. */
const double *default_sizes_shares(const struct simulate_subject *subject);

/*
 * At most `points` sizes of a curve, in bytes or in URLs: from a thousandth of everything to
 * everything, evenly on a logarithmic scale. False without memory.
 */
bool default_sizes_curve(const struct simulate_subject *subject, bool in_bytes, size_t points,
                         struct size_scale *scale);

#endif
