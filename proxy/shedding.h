/*
 * The bodies that are being received from origins, and which of them are given up when the memory
 * for objects is used up.
 *
 * A body moves while it grows by at least a 64th of its memory a second, so the more a body holds
 * the faster it has to come. When memory is short, bodies that have not moved for more than a
 * second are given up, the largest first. Otherwise bodies that stall would hold the memory until
 * they time out, and every new fetch would be refused.
 *
 * If none is stalled, the largest body of the client whose bodies hold most is given up, unless
 * the client for which memory is charged would then hold more itself. Otherwise one client could
 * hold the memory with bodies that move just fast enough.
 *
 * Everything here is for the fetcher's thread, and for the thread that calls shedding_init().
 */
#ifndef SUNPROXY_PROXY_SHEDDING_H
#define SUNPROXY_PROXY_SHEDDING_H

#include <stdbool.h>
#include <sys/queue.h>

#include "base/clients.h"

/* Without growth for this long a body is stalled. */
#define SHEDDING_STALL_US ((int64_t)1000000)

/* A body that is being received; the memory is the owner's. All zero: none. */
struct shedding_body {
    TAILQ_ENTRY(shedding_body) link;
    struct client *client; /* that it is received for; NULL when not listed */
    size_t size;           /* bytes of memory */
    int64_t moved_us;      /* when it last moved, */
    size_t moved_at;       /* and its length then */
    /* It has been removed from the list: frees its memory and ends its fetch, which calls back
     * later and not in this call. */
    void (*give_up)(struct shedding_body *body);
};

struct shedding {
    TAILQ_HEAD(shedding_bodies, shedding_body) bodies; /* in the order in which they last moved */
    LIST_HEAD(shedding_clients, client) clients;       /* that have a body */
    size_t bytes;                                      /* of all bodies */
    struct client *charging; /* the client for which memory is charged now: a reference, or NULL */
    const struct shedding_body *growing; /* not given up: memory is being charged for it now */
};

void shedding_init(struct shedding *shedding);

/* No body is listed. */
void shedding_free(struct shedding *shedding);

/*
 * Memory is charged from now on for a fetch of this client and, unless `body` is NULL, for this
 * body.
 */
void shedding_charge_for(struct shedding *shedding, struct client *client,
                         const struct shedding_body *body);

/* Lists a body of `size` bytes of memory, with give_up set. The client stays as long as it. */
void shedding_add(struct shedding *shedding, struct shedding_body *body, struct client *client,
                  size_t size, int64_t now_us);

/*
 * The body takes `size` bytes of memory now, which may be fewer than before, and its length is
 * `length`. It may be given up again.
 */
void shedding_grow(struct shedding *shedding, struct shedding_body *body, size_t size,
                   size_t length, int64_t now_us);

/* The body is complete or over. Harmless when it is not listed. */
void shedding_remove(struct shedding *shedding, struct shedding_body *body);

/*
 * Gives up bodies until `bytes` are free or there is none that should be: stalled ones, and then
 * those of the client that holds most. Returns the bytes given up, which are free unless responses
 * refer to them.
 */
size_t shedding_shed(struct shedding *shedding, size_t bytes, int64_t now_us);

#endif
