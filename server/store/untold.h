/*
 * What a daemon has purged and no server of the shared tier has when it ends (tier/tier.h): other
 * daemons do not learn of that. With a store it is kept in a file of the store's folder,
 * "untold-NUMBER", and the next daemon that has the store tells it. A file has items
 * (server/peers/peer_item.h) and a full stop; without that everything is purged.
 *
 * A daemon that is killed keeps nothing. For the main thread; it waits for the disk.
 */
#ifndef SUNPROXY_SERVER_STORE_UNTOLD_H
#define SUNPROXY_SERVER_STORE_UNTOLD_H

#include <stdbool.h>
#include <stdint.h>

#define UNTOLD_FILES 16u
#define UNTOLD_MOST ((size_t)4 << 20) /* bytes of a file */

struct tier;

struct untold {
    const char *folder; /* of the store; NULL: nothing is kept */
    struct tier *tier;
    unsigned count; /* of the files that were read and are there still */
    uint64_t files[UNTOLD_FILES];
};

/* Purges in the tier what earlier daemons have kept, before it is started. `folder` stays, or is
 * NULL. */
void untold_begin(struct untold *untold, const char *folder, struct tier *tier);

/* Removes the files once a server has all of that. True: it is to be called again. */
bool untold_look(struct untold *untold);

/* After tier_leave(): keeps what no server has. */
void untold_end(struct untold *untold);

#endif
