/*
 * What the daemon would do with a request, and why, in lines for an administrator: "NAME: VALUE".
 */
#ifndef SUNPROXY_SERVER_EXPLAIN_EXPLAIN_TEXT_H
#define SUNPROXY_SERVER_EXPLAIN_EXPLAIN_TEXT_H

#include "base/buf.h"
#include "server/explain/explain_read.h"
#include "server/service.h"

#define EXPLAIN_LAST 64u /* misses that are told at most */

struct explain_request {
    struct span method; /* empty: GET */
    struct span url;
    struct span lines; /* fields, each ended by CR LF; Explain-User is none of the request, but names
                          its user */
    unsigned last;     /* the number of latest misses that are told, too */
};

struct explain_call {
    /* Set by the caller. */
    struct service *service;
    struct net_worker *worker;
    void (*done)(struct explain_call *call); /* [worker] */
    struct buf out; /* gets the lines; or a sentence on a request that the daemon would not take */

    bool ok; /* they are the lines */
    struct explain_request request;
    char *kept; /* owned: its bytes */
    struct explain_read read;
};

/*
 * Explains a request. Nothing is fetched, counted as a request, or changed, but that a page on disk
 * may be read. False: that is under way, and done() is called. [worker]
 */
bool explain_begin(struct explain_call *call, const struct explain_request *request);

/* Frees what it has; after its end. */
void explain_end(struct explain_call *call);

#endif
