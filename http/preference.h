/*
 * Lists of preferences with weights, as Accept-Encoding (RFC 9110 section 12.5.3) and
 * Accept-Language (section 12.5.4) have them, and one spelling for all lists that mean the same.
 * Nothing is copied before it is written. Safe on any thread.
 */
#ifndef SUNPROXY_HTTP_PREFERENCE_H
#define SUNPROXY_HTTP_PREFERENCE_H

#include "base/buf.h"
#include "base/span.h"

#define HTTP_PREFERENCES_MAX 32

/*
 * The content codings that sets of codings can hold, as bits; others are in none. The names, in
 * lower case, are those of single bits in ascending order.
 */
#define HTTP_CODINGS 5u
#define HTTP_CODINGS_ALL ((1u << HTTP_CODINGS) - 1)

struct http_preference {
    struct span range; /* points into the value that was read */
    unsigned weight;   /* 0 to 1000 */
};

struct http_preferences {
    struct http_preference of[HTTP_PREFERENCES_MAX];
    size_t count;
};

/* 0: it has none. "x-gzip" and "x-compress" are "gzip" and "compress" (section 8.4.1). */
unsigned http_coding_bit(struct span coding);
const char *http_coding_name(unsigned bit);

/* The empty list. */
void http_preferences_init(struct http_preferences *preferences);

/*
 * Adds the members of one value. False if a member is no token with at most a weight (section
 * 12.4.2), or if there are too many; the list is then of no use.
 */
bool http_preferences_read(struct http_preferences *preferences, struct span value);

/*
 * Appends the codings that are acceptable, in lower case and ascending order, separated by commas:
 * a coding of weight 0 is left out, and so are those of the set `unused` and identity, which needs
 * no mention. What excludes identity or a coding that "*" includes is kept with ";q=0", whether
 * that coding is used or not. Weights above 0 do not count: any stored coding of the list is
 * acceptable to all that accept it.
 */
void http_preferences_write_codings(struct http_preferences *preferences, unsigned unused,
                                    struct buf *out);

/*
 * Appends the ranges of languages in lower case, those of the highest weight first and in ascending
 * order where weights are equal, each with its weight unless that is 1.
 */
void http_preferences_write_ranges(struct http_preferences *preferences, struct buf *out);

#endif
