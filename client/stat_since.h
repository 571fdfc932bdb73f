/*
 * sunproxy stat --since: the past of a server from its request database.
 */
#ifndef SUNPROXY_CLIENT_STAT_SINCE_H
#define SUNPROXY_CLIENT_STAT_SINCE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"

struct since_options {
    const char *path; /* of the database; NULL: not given */
    int64_t since_us; /* since 1970; INT64_MIN: not given */
    int64_t until_us; /* INT64_MAX: not given */
    uint64_t top;     /* rows of a list */
};

extern const struct option_row since_option_rows[];

/* Prints what the options ask for, of the database at this path. An exit status. */
int stat_since(const struct since_options *options, const char *path, bool json);

#endif
