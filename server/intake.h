/*
 * The bodies that are being received from origins, and which of them are given up when the memory
 * for pages is used up.
 *
 * A body moves while it grows by at least a 64th of its size a second, so the more a body holds the
 * faster it has to come. When memory is short, bodies that have not moved for more than a second
 * are given up, the largest first. Otherwise bodies that stall would hold the memory until they
 * time out, and every newcomer would be refused.
 *
 * If none is stalled, the largest body of the client whose bodies hold most is given up, unless
 * the client that asks for memory would then hold more itself. Otherwise one client could hold the
 * memory with bodies that move just fast enough.
 *
 * Everything here is for the fetcher's thread, the call of intake_shed() included, and for the
 * thread that makes the intake.
 */
#ifndef SUNPROXY_SERVER_INTAKE_H
#define SUNPROXY_SERVER_INTAKE_H

#include <sys/queue.h>

#include "base/client_key.h"
#include "cache/page.h"

/* Without growth for this long a body is stalled. */
#define INTAKE_STALL_US ((int64_t)1000000)

/* A body that is being received; the memory is the owner's. All zero: none. */
struct intake_body {
    TAILQ_ENTRY(intake_body) link;
    struct page_builder builder;
    struct intake_client *client; /* that it is received for; NULL when not listed */
    size_t counted;               /* bytes of it among the client's */
    int64_t moved_us;             /* when it last moved, */
    size_t moved_at;              /* and its size then */
    /* It has been given up and its page freed: ends the fetch, later, not in this call. */
    void (*give_up)(struct intake_body *body);
};

struct intake {
    TAILQ_HEAD(intake_bodies, intake_body) bodies;    /* the one that moved longest ago first */
    LIST_HEAD(intake_clients, intake_client) clients; /* that have a body */
    size_t bytes;                                     /* of all bodies */
    struct client_key asking;          /* the client that memory is charged for now */
    const struct intake_body *growing; /* inside intake_append(): not to be shed */
};

void intake_init(struct intake *intake);

/* Memory is charged for a fetch of this client from now on. */
void intake_ask(struct intake *intake, const struct client_key *client);

/* Lists a body whose builder has been begun, for a client; false without memory. */
bool intake_add(struct intake *intake, struct intake_body *body, const struct client_key *client,
                int64_t now_us);

/* page_append() to the body's page, which may shed others. */
int intake_append(struct intake *intake, struct intake_body *body, const void *bytes, size_t len,
                  int64_t now_us);

/* The body is complete or over; its builder is left alone. Harmless when it is not listed. */
void intake_remove(struct intake *intake, struct intake_body *body);

/*
 * Gives up bodies until `bytes` are free or there is none that should be: stalled ones, and then
 * those of the client that holds most. Returns the bytes freed.
 */
size_t intake_shed(struct intake *intake, size_t bytes, int64_t now_us);

#endif
