/*
 * What is only on disk is read for an explanation, past the cache: nothing there changes. As for a
 * request, the store's own reads do that (store/store_fill.h), so that no worker waits for a disk.
 */
#ifndef SUNPROXY_SERVER_EXPLAIN_EXPLAIN_READ_H
#define SUNPROXY_SERVER_EXPLAIN_EXPLAIN_READ_H

#include "net/worker.h"
#include "proxy/exchange.h"

enum explain_read_stage {
    EXPLAIN_READ_NOT, /* nothing was asked for */
    EXPLAIN_READ_ASKED,
    EXPLAIN_READ_DONE,
};

struct explain_read {
    /* Set by the owner. */
    struct net_worker *worker;
    struct net_task task; /* posted when what was asked for has come: calls explain_read_take() */

    enum explain_read_stage stage;
    struct object *object; /* of EXPLAIN_READ_DONE: a reference; NULL: it cannot be used, or is that
                              of another variant */
    struct object_waiter waiter;
};

/*
 * Has what the store has of this variant read, for the exchange of an explanation. `stage` is
 * EXPLAIN_READ_DONE if that is over, and EXPLAIN_READ_ASKED if the task is going to be posted.
 * [worker]
 */
void explain_read_begin(struct explain_read *read, struct exchange *x, struct span variant);

/* The task has been posted. [worker] */
void explain_read_take(struct explain_read *read);

/* Releases the object; not while it is EXPLAIN_READ_ASKED. */
void explain_read_end(struct explain_read *read);

#endif
