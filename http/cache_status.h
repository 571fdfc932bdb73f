/*
 * What a cache says about its answer: Cache-Status (RFC 9211) and Age (RFC 9111 section 5.1). Safe
 * on any thread.
 */
#ifndef SUNPROXY_HTTP_CACHE_STATUS_H
#define SUNPROXY_HTTP_CACHE_STATUS_H

#include <stdint.h>

#include "base/span.h"
#include "http/response_head.h"

/* Why a request went on to the origin: RFC 9211 section 2.2. */
enum http_forwarded {
    HTTP_FORWARDED_NOT, /* a hit, or an answer of the proxy's own */
    HTTP_FORWARDED_BYPASS,
    HTTP_FORWARDED_METHOD,
    HTTP_FORWARDED_URI_MISS,
    HTTP_FORWARDED_VARY_MISS,
    HTTP_FORWARDED_MISS,    /* one of the two */
    HTTP_FORWARDED_REQUEST, /* fresh, but the request asked for a validation */
    HTTP_FORWARDED_STALE,
    HTTP_FORWARDED_PARTIAL,
};

struct http_cache_status {
    const char *cache; /* the name of this cache */
    bool hit;          /* answered without the origin; excludes `forwarded` */
    enum http_forwarded forwarded;
    unsigned origin_status; /* 0: none, or that of the answer; only if forwarded */
    bool stored;            /* likewise */
    bool collapsed;         /* likewise */
    bool has_ttl;
    int64_t ttl_s;      /* remaining freshness lifetime; negative: stale */
    struct span detail; /* anything; bytes that a string may not have become "?"; empty: none */
};

#define HTTP_CACHE_STATUS_DETAIL_MAX 200u /* bytes of `detail` that are written */

/* Writes the field line. It follows the lines of caches that are nearer to the origin. */
void http_write_cache_status(struct http_writer *writer, const struct http_cache_status *status);

/* Writes the parameter for the remaining freshness lifetime, to a line that is being written. */
void http_write_cache_status_ttl(struct http_writer *writer, int64_t ttl_s);

/* Writes Age, in whole seconds from 0 to 2^31 (RFC 9111 section 1.2.2). */
void http_write_age(struct http_writer *writer, int64_t age_us);

#endif
