/*
 * The rings of the workers, by which they read from the store (store/store_lane.h): made before the
 * sandbox, which takes the call away that makes them, and polled by the workers' loops.
 */
#ifndef SUNPROXY_SERVER_STORE_WORKER_RINGS_H
#define SUNPROXY_SERVER_STORE_WORKER_RINGS_H

#include <stdbool.h>

#include "server/config/options.h"
#include "store/store.h"

struct net_server;
struct worker_rings;

/*
 * Makes a ring for each worker, as --store-reads says. *rings is NULL without a store, for
 * --store-reads threads, and where the kernel has no rings or refuses them, which is logged. False,
 * also logged: they are what is asked for, and cannot be made; or without memory.
 */
bool worker_rings_make(const struct options *options, unsigned workers,
                       struct worker_rings **rings);

/* For the store's configuration, which does not own them; NULL for NULL. */
struct disk_ring *const *worker_rings_of(const struct worker_rings *rings);

/* Before the workers start: has them poll their rings, and take their turns. False without memory.
 * NULL is harmless. */
bool worker_rings_begin(struct worker_rings *rings, struct store *store, struct net_server *server);

/* After they have ended, before store_close(). NULL is harmless. */
void worker_rings_end(struct worker_rings *rings);

/* After store_close(). NULL is harmless. */
void worker_rings_free(struct worker_rings *rings);

#endif
