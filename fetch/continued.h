/*
 * A response that is continued by another one: a peer (origins/origin_peers.h) has sent its head
 * and a part of its body, which the consumer has, and fails. The request is sent again, to another
 * peer or the origin. What that sends continues the response if it has the same status, length and
 * strong validator (RFC 9110 section 8.8.3), or the same Last-Modified where there is no entity
 * tag, and begins with the same bytes, of which a hash is kept. The consumer gets the rest of it.
 *
 * On the fetcher's thread.
 */
#ifndef SUNPROXY_FETCH_CONTINUED_H
#define SUNPROXY_FETCH_CONTINUED_H

#include <stdbool.h>
#include <stdint.h>

#include "fetch/fetch.h"

struct continued;

/* The consumer has this head. NULL: its response cannot be continued, or there is no memory. */
struct continued *continued_create(const struct fetch_head *head);

/* Frees and clears it; NULL is harmless. */
void continued_free(struct continued **continued);

/* The consumer gets these bytes next. */
void continued_add(struct continued *continued, const void *bytes, size_t len);

/* Another response begins. Has it a head that continues the one before? */
bool continued_begin(struct continued *continued, const struct fetch_head *head);

/* Has all come again that the consumer has? */
bool continued_is_through(const struct continued *continued);

/*
 * Takes off what the consumer has, of the bytes that follow. False: they are others.
 */
bool continued_skip(struct continued *continued, const void **bytes, size_t *len);

#endif
