/*
 * The prober: sends the probes of the rows of --origin (origins/origin_probe.h) as fetches. They
 * take their turns in the fetcher's queue as those of a client of its own.
 *
 * For the main thread, but for what the fetcher calls.
 */
#ifndef SUNPROXY_SERVER_PROBER_H
#define SUNPROXY_SERVER_PROBER_H

#include <sys/queue.h>

#include "server/service.h"

#define PROBER_LOOK_MS 250 /* from one prober_look() to the next */

struct probe;

struct prober {
    struct service *service;
    struct clients *clients; /* owned: a table of one */
    struct client *client;   /* a reference */
    pthread_mutex_t lock;
    TAILQ_HEAD(, probe) probes; /* under way; protected by lock */
};

/* False without memory. The service outlives it. */
bool prober_init(struct prober *prober, struct service *service);

/* Sends the probes that are due, and ends those that take too long. False: no row has any. */
bool prober_look(struct prober *prober);

/* The fetcher has stopped. Harmless if all is zero. */
void prober_free(struct prober *prober);

#endif
