/*
 * Names to addresses, so that a look-up that hangs does not delay others: a bounded pool of threads
 * over getaddrinfo(), one look-up per name at a time that many queries may wait for, and a small
 * cache. Time-outs are the caller's: it cancels and goes on, while the thread stays with its name.
 *
 * Clients take turns and have shares of the threads (fair_queue.h). A name that several clients ask
 * for is looked up in the turn of whichever comes first, and counts to that client until its thread
 * returns, even when the query was cancelled.
 *
 * One thread asks, cancels, collects and destroys. Threads of the pool are all the rest.
 */
#ifndef SUNPROXY_FETCH_RESOLVER_H
#define SUNPROXY_FETCH_RESOLVER_H

#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fair_queue.h"

struct resolver;

#define RESOLVED_MAX 32u /* addresses kept of a name */

/* An address to connect to; its port is 0 as resolved. */
union address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

/* What a name stands for. Immutable, counted by references. */
struct resolved {
    _Atomic unsigned references;
    size_t count;
    union address list[];
};

struct resolved *resolved_retain(struct resolved *resolved);

/* Drops the reference in *resolved and clears it. *resolved may be NULL. */
void resolved_release(struct resolved **resolved);

/* Memory for `count` addresses, all zero, with one reference. NULL without memory. */
struct resolved *resolved_create(size_t count);

struct resolver_config {
    unsigned threads;
    unsigned per_client; /* look-ups at once; 0: not bounded */
    size_t max_names;    /* remembered */
    int64_t ttl_us;      /* how long; 0: not at all */
    int (*getaddrinfo)(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **result);
    void (*freeaddrinfo)(struct addrinfo *result);
    void (*notify)(void *context); /* something can be collected; from any thread, under the lock */
    void *context;
};

/* A query, in the caller's memory. Zero before the first use. */
struct resolver_query {
    TAILQ_ENTRY(resolver_query) link; /* the resolver's */
    struct name *name;                /* the resolver's */
    struct queue_item turn;           /* the resolver's */
    bool pending;                     /* asked, neither collected nor cancelled */
    int error;                        /* the answer: 0, or getaddrinfo's */
    struct resolved *resolved;        /* the answer: a reference that the asker drops, when 0 */
};

enum resolver_answer { RESOLVER_ANSWERED, RESOLVER_PENDING, RESOLVER_NO_MEMORY };

/* Starts a thread, and more when names find none idle. NULL if that fails. */
struct resolver *resolver_create(const struct resolver_config *config);

/* Changes what the configuration has under these names. [the thread that asks] */
void resolver_configure(struct resolver *resolver, unsigned per_client, int64_t ttl_us);

/*
 * No query may be pending. Threads that are idle are joined; those that are inside getaddrinfo()
 * are given up, and free what they share when they come back. NULL is harmless.
 */
void resolver_destroy(struct resolver *resolver);

/* Asks for a host for a client; the answer may be there at once. */
enum resolver_answer resolver_lookup(struct resolver *resolver, struct resolver_query *query,
                                     struct client *client, const char *host);

/* Takes a question back. Harmless for one that is not pending. */
void resolver_cancel(struct resolver *resolver, struct resolver_query *query);

/* The next question that has been answered; NULL if there is none. */
struct resolver_query *resolver_collect(struct resolver *resolver);

#endif
