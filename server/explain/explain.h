/*
 * What would be done with a request, and why, without doing it.
 */
#ifndef SUNPROXY_SERVER_EXPLAIN_EXPLAIN_H
#define SUNPROXY_SERVER_EXPLAIN_EXPLAIN_H

#include "base/buf.h"
#include "http/storing.h"
#include "proxy/exchange.h"

enum explained {
    EXPLAINED_HIT,
    EXPLAINED_STALE, /* a stale object is used */
    EXPLAINED_JOINS, /* the response of a fetch that is under way, unless that may not be shared */
    EXPLAINED_ASKS_STORE, /* it is read from disk, if it is there and serves the request */
    EXPLAINED_ASKS_TIER,  /* the shared tier is asked, and without an answer it is a miss */
    EXPLAINED_VALIDATES,  /* the origin is asked whether the object is still right */
    EXPLAINED_MISS,       /* the response is fetched, and stored if it may be */
    EXPLAINED_PASSES,     /* it is fetched past the cache */
    EXPLAINED_NOT_CACHED, /* the request is not to cause a fetch, and there is nothing for it */
    EXPLAINED_DOWN,       /* no member of the row gets it, and nothing is stored for it */
};

const char *explained_word(enum explained explained);

struct explanation {
    enum explained would;
    enum http_reason reason; /* the first one against a hit; HTTP_REASON_NONE: it is a hit, or what
                                a source has decides */
    bool passes_for_now;     /* that is, that an earlier response was one client's: requests pass
                                for a while */
    struct object *object;   /* that is stored in memory, or was read; NULL: none. A reference */
    bool on_disk;            /* it was read */
    struct buf names;        /* of the fields by which what is stored is selected; empty: none */
    struct buf variant;      /* the key that the request's fields make for them */
    struct http_storing storing; /* of the object, if there is one */
};

/*
 * Explains what would come of an exchange that has been set as for exchange_start(), whose fields
 * have an address; of it `url` and `as_of_us` are set. `read` is what the store has for it, where
 * that was read (explain_read.h), or NULL: then it is not known whether what is there serves the
 * request. On the exchange's thread; to be freed.
 */
void explain_exchange(struct exchange *exchange, struct object *read,
                      struct explanation *explanation);

void explanation_free(struct explanation *explanation);

#endif
