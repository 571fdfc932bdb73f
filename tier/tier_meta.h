/*
 * Replies of memcached to meta commands (doc/protocol.txt of memcached 1.6), as they arrive.
 * Nothing in them is trusted: what a value means is for tier_value.h. Safe on any thread.
 */
#ifndef SUNPROXY_TIER_TIER_META_H
#define SUNPROXY_TIER_TIER_META_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

#define TIER_META_LINE 2048u              /* bytes of a line at most, */
#define TIER_META_VALUE ((size_t)1 << 20) /* and of a value */

enum tier_meta_code {
    TIER_META_VALUE_HERE, /* VA */
    TIER_META_DONE,       /* HD */
    TIER_META_MISS,       /* EN */
    TIER_META_NOT_STORED, /* NS */
    TIER_META_EXISTS,     /* EX: it has another cas value */
    TIER_META_NOT_FOUND,  /* NF */
    TIER_META_NOTHING,    /* MN */
    TIER_META_ERROR,      /* SERVER_ERROR: of this request alone */
    TIER_META_STAT,       /* a line of "stats", */
    TIER_META_END,        /* and its end */
};

struct tier_meta {
    enum tier_meta_code code;
    struct span value; /* VALUE_HERE; it points into the input */
    uint64_t cas;      /* 0: not stated */
    uint64_t time_s;   /* STAT of "time"; 0: of others */
    uint64_t left_s;   /* until it expires; UINT64_MAX: never, or not stated */
    bool wins;         /* W: the asker is to fetch, */
    bool waits;        /* or Z: another one does */
    bool is_stale;     /* X: it was marked stale */
};

enum tier_meta_state { TIER_META_MORE, TIER_META_READ, TIER_META_BROKEN };

/*
 * Reads the first reply of the input: READ with its length in *used; MORE: it is not all there, and
 * has *used bytes at least; BROKEN: it is no reply, so that what follows has no meaning either.
 */
enum tier_meta_state tier_meta_read(struct span input, struct tier_meta *reply, size_t *used);

#endif
