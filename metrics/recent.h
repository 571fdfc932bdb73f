/*
 * The latest requests that were no hits, and why: so that a miss can be explained afterwards. Each
 * worker keeps a number of its own, by the hash of the URL.
 */
#ifndef SUNPROXY_METRICS_RECENT_H
#define SUNPROXY_METRICS_RECENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/reason.h"

#define RECENT_MISSES 1024u /* of a worker */

struct recent_miss {
    uint64_t url; /* hash64_bytes() of the URL, as it is a key */
    int64_t wall_us;
    int64_t us;      /* until the response was complete, or the failure */
    const char *how; /* the word for logs of the outcome or the failure; static */
    enum http_reason reason;
    unsigned status; /* of the response; 0: there was none */
};

struct recent;

/* For this number of workers; NULL without memory. */
struct recent *recent_create(unsigned workers);
void recent_free(struct recent *recent);

/* [the worker's thread] */
void recent_add(struct recent *recent, unsigned worker, const struct recent_miss *miss);

/* Copies the latest misses of a URL, the latest first; returns their number. [any thread] */
size_t recent_find(struct recent *recent, uint64_t url, struct recent_miss *found, size_t most);

#endif
