/*
 * The backlog of a connection: input that was read and that its protocol has not taken, because of
 * a bound. It is copied once, charged (MEMORY_REQUESTS), and stays where it is while parts of it
 * are taken. For one thread. All zero is an empty one.
 */
#ifndef SUNPROXY_NET_BACKLOG_H
#define SUNPROXY_NET_BACKLOG_H

#include "base/memory_account.h"
#include "base/span.h"

struct net_backlog {
    char *bytes;      /* owned; NULL: nothing is kept */
    size_t len;       /* of the allocation */
    struct span rest; /* to be taken */
    char *begun;      /* the bytes, while they are taken */
};

/*
 * Input becomes the backlog: a part of what was begun stays where it is, other input is copied.
 * False without memory for that.
 */
bool net_backlog_keep(struct net_backlog *backlog, struct memory_account *memory, struct span rest);

/* The input to take again. It is valid until net_backlog_end(), also after net_backlog_drop(). */
struct span net_backlog_begin(struct net_backlog *backlog);

/* Frees what was begun, unless it was kept again. */
void net_backlog_end(struct net_backlog *backlog, struct memory_account *memory);

/* Frees the backlog, but not one that was begun. */
void net_backlog_drop(struct net_backlog *backlog, struct memory_account *memory);

#endif
