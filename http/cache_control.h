/*
 * Cache-Control of requests and responses (RFC 9111 section 5.2, RFC 5861), Pragma of requests
 * (RFC 9111 section 5.4), and CDN-Cache-Control of responses (RFC 9213). What cannot be read errs
 * towards not storing, not reusing, and validating. Spans point into the lines that were read.
 * Nothing is allocated. Safe on any thread.
 */
#ifndef SUNPROXY_HTTP_CACHE_CONTROL_H
#define SUNPROXY_HTTP_CACHE_CONTROL_H

#include <stdint.h>

#include "base/span.h"

#define HTTP_SECONDS_MAX \
    ((int64_t)1 << 31) /* larger numbers are this one: RFC 9111 section 1.2.2 */
#define HTTP_SECONDS_ABSENT ((int64_t)-1)
#define HTTP_SECONDS_ANY INT64_MAX /* max-stale without a number: section 5.2.1.2 */

/* Names of fields in the arguments of no-cache and private together. */
#define HTTP_NAMED_FIELDS_MAX 32

/*
 * Directives of a response. Numbers are seconds, or HTTP_SECONDS_ABSENT, or 0 for what is no number
 * (section 4.2.1).
 */
struct http_cache_control {
    bool no_store;
    bool no_cache;   /* without names, or with names that are not usable */
    bool is_private; /* likewise */
    bool is_public;
    bool must_revalidate;
    bool proxy_revalidate;
    bool must_understand;
    bool malformed;      /* something in it is no directive */
    bool names_private;  /* private names fields, which are in `named` */
    bool names_no_cache; /* likewise */
    int64_t max_age;
    int64_t s_maxage;
    int64_t stale_while_revalidate; /* RFC 5861 section 3 */
    int64_t stale_if_error;         /* RFC 5861 section 4 */
    /*
     * Fields that may not be stored (private) or not be reused without validation (no-cache). A
     * cache that stores neither of them obeys both: RFC 9111 sections 5.2.2.4 and 5.2.2.7. Not
     * usable are more names than that, what is no name, and fields such as Vary, Content-Encoding
     * and Content-Type, without which the response could not be reused.
     */
    struct span named[HTTP_NAMED_FIELDS_MAX];
    size_t named_count;
};

/* That of a response without the field. */
void http_cache_control_init(struct http_cache_control *control);

/*
 * Takes in the value of one Cache-Control line; of several, every line. Directives that are not
 * known (immutable is for clients: RFC 8246) are passed over. Of a directive that is repeated the
 * smallest number counts.
 */
void http_cache_control_read(struct http_cache_control *control, struct span value);

/* Init and read for every Cache-Control line among the field lines of a response. */
void http_cache_control_read_lines(struct http_cache_control *control, struct span lines);

/*
 * Reads the CDN-Cache-Control lines of a response into *control, which holds only their directives
 * then: those of Cache-Control, and Expires, do not count (RFC 9213 section 2.2). False, with
 * *control as it was, if there are none, they are empty or no valid dictionary, or a number or a
 * name has another type than the directive (section 2.1): the response is then one without them.
 */
bool http_cdn_cache_control_read(struct http_cache_control *control, struct span lines);

/* Is the field one of those that no-cache or private names? */
bool http_cache_control_names(const struct http_cache_control *control, struct span field);

/* Directives of a request: RFC 9111 section 5.2.1. */
struct http_request_control {
    bool no_cache; /* also by Pragma, where there is no Cache-Control */
    bool no_store;
    bool only_if_cached;
    int64_t max_age;   /* HTTP_SECONDS_ABSENT: none; 0 also for what is no number */
    int64_t min_fresh; /* 0: none; of several the largest */
    int64_t max_stale; /* 0: none; HTTP_SECONDS_ANY: any; of several the smallest */
};

/* Reads the field lines of a request. */
void http_request_control_read(struct http_request_control *control, struct span lines);

/* Digits, saturating at HTTP_SECONDS_MAX: RFC 9111 section 1.2.2. False for anything else. */
bool http_seconds_parse(struct span text, int64_t *seconds);

#endif
