/*
 * The time limits of a fetch (struct fetch_config): which one applies in the phase that it is in,
 * and when it expires. Times are monotonic, in microseconds. The fetcher's thread.
 */
#ifndef SUNPROXY_FETCH_DEADLINE_H
#define SUNPROXY_FETCH_DEADLINE_H

#include "fetch/fetching.h"

/*
 * The next deadline, INT64_MAX if there is none, and what will have taken too long then (static).
 * Received bytes move it later without a call.
 */
int64_t deadline_find(const struct fetch *fetch, const char **what);

#endif
