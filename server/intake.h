/*
 * The bodies that are being received from origins, and which of them are given up when the memory
 * for pages is used up.
 *
 * A body moves while it grows by at least a 64th of its size a second, so the more a body holds the
 * faster it has to come. When memory is short, bodies that have not moved for more than a second
 * are given up, the largest first. Otherwise bodies that stall would hold the memory until they
 * time out, and every newcomer would be refused.
 *
 * Everything here is for the fetcher's thread, the call of intake_shed() included, and for the
 * thread that makes the intake.
 */
#ifndef SUNPROXY_SERVER_INTAKE_H
#define SUNPROXY_SERVER_INTAKE_H

#include <sys/queue.h>

#include "cache/page.h"

/* Without growth for this long a body is stalled. */
#define INTAKE_STALL_US ((int64_t)1000000)

/* A body that is being received; the memory is the owner's. All zero: none. */
struct intake_body {
    TAILQ_ENTRY(intake_body) link;
    struct page_builder builder;
    int64_t moved_us; /* when it last moved, */
    size_t moved_at;  /* and its size then */
    bool listed;
    /* It has been given up and its page freed: ends the fetch, later, not in this call. */
    void (*give_up)(struct intake_body *body);
};

struct intake {
    TAILQ_HEAD(intake_bodies, intake_body) bodies; /* the one that moved longest ago first */
    const struct intake_body *growing;             /* inside intake_append(): not to be shed */
};

void intake_init(struct intake *intake);

/* Lists a body whose builder has been begun. */
void intake_add(struct intake *intake, struct intake_body *body, int64_t now_us);

/* page_append() to the body's page, which may shed others. */
int intake_append(struct intake *intake, struct intake_body *body, const void *bytes, size_t len,
                  int64_t now_us);

/* The body is complete or over; its builder is left alone. Harmless when it is not listed. */
void intake_remove(struct intake *intake, struct intake_body *body);

/*
 * Gives up stalled bodies until `bytes` are free or none is stalled. Returns the bytes freed.
 */
size_t intake_shed(struct intake *intake, size_t bytes, int64_t now_us);

#endif
