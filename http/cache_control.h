/*
 * Cache-Control of a response (RFC 9111 section 5.2.2), as far as a shared cache without validation
 * follows it. What cannot be read errs towards not storing. Safe on any thread.
 */
#ifndef SUNPROXY_HTTP_CACHE_CONTROL_H
#define SUNPROXY_HTTP_CACHE_CONTROL_H

#include <stdint.h>

#include "base/span.h"

#define HTTP_SECONDS_MAX \
    ((int64_t)1 << 31) /* larger numbers are this one: RFC 9111 section 1.2.2 */
#define HTTP_SECONDS_ABSENT ((int64_t)-1)

struct http_cache_control {
    bool no_store;
    bool no_cache;    /* also where it names fields: RFC 9111 section 5.2.2.4 allows that */
    bool is_private;  /* likewise: section 5.2.2.7 */
    bool malformed;   /* something in it is no directive */
    int64_t max_age;  /* seconds, or HTTP_SECONDS_ABSENT; 0 also for what is no number */
    int64_t s_maxage; /* likewise */
};

/* That of a response without the field. */
void http_cache_control_init(struct http_cache_control *control);

/*
 * Takes in the value of one Cache-Control line; of several, every line. Directives that are not
 * known are passed over. Of a directive that is repeated the smallest number counts.
 */
void http_cache_control_read(struct http_cache_control *control, struct span value);

/* Digits, saturating at HTTP_SECONDS_MAX: RFC 9111 section 1.2.2. False for anything else. */
bool http_seconds_parse(struct span text, int64_t *seconds);

#endif
