/*
 * What a daemon has purged and no server of the shared tier has when it ends (tier/tier.h): other
 * daemons do not learn of that. With a store it is kept in a file of the store's folder,
 * "untold-NUMBER", and the next daemon that has the store tells it: when it starts, or, if it
 * replaces another one, when that has left the store. A file has items (server/peers/peer_item.h)
 * and a full stop; without that everything is purged.
 *
 * A daemon that is killed keeps nothing. For the main thread, which does not wait for a disk that
 * hangs: a thread of its own does the work.
 */
#ifndef SUNPROXY_SERVER_STORE_UNTOLD_H
#define SUNPROXY_SERVER_STORE_UNTOLD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define UNTOLD_FILES 16u
#define UNTOLD_MOST ((size_t)4 << 20) /* bytes of a file */
#define UNTOLD_BEGIN_US ((int64_t)5000000)
#define UNTOLD_END_US ((int64_t)10000000)

struct tier;

struct untold {
    const char *folder; /* of the store; NULL: nothing is kept */
    struct tier *tier;
    bool taken;         /* at the last look another process had the store still */
    bool again;         /* it has left it since: there may be new files */
    bool runs;          /* the thread was not joined */
    pthread_t thread;
    /* the thread's while it runs */
    unsigned count; /* of the files that were read and are there still */
    uint64_t files[UNTOLD_FILES];
};

/*
 * Purges in the tier what earlier daemons have kept, before it is started; later, and with a
 * warning, if the disk does not answer for UNTOLD_BEGIN_US. `folder` stays, or is NULL.
 */
void untold_begin(struct untold *untold, const char *folder, struct tier *tier);

/*
 * Removes the files once a server has all of that. `taken`: another process, which this one
 * replaces, has the store still. True: it is to be called again.
 */
bool untold_look(struct untold *untold, bool taken);

/* After tier_leave(): keeps what no server has. False: the disk has not answered for UNTOLD_END_US,
 * and the thread is there still. */
bool untold_end(struct untold *untold);

#endif
