/*
 * The text form of a point in time, as after --since and --until.
 */
#ifndef SUNPROXY_CLI_WHEN_H
#define SUNPROXY_CLI_WHEN_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Microseconds since 1970-01-01 UTC of "2024-05-31", "2024-05-31T12:30", "2024-05-31 12:30:15.25",
 * each UTC or with "Z", "+02:00" or "-0530" after it (RFC 3339), or of seconds since 1970, at
 * least five digits ("1717158600"). False for anything else, also for dates that do not exist.
 */
bool when_parse(const char *text, int64_t *us);

#endif
