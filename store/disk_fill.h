/*
 * A fill from a store, and what its ways of reading share: a thread of the store (store_fill.c),
 * and a ring (store_lane.c). Private.
 */
#ifndef SUNPROXY_STORE_DISK_FILL_H
#define SUNPROXY_STORE_DISK_FILL_H

#include "cache/fill.h"
#include "store/disk_store.h"
#include "store/source.h"

/* Bytes that are read first at most: a body of 1 MiB, as long as the index takes its record for. */
#define DISK_FILL_FIRST ((size_t)11 << 17)
/* A body of this length is not copied: the object takes the memory that it was read into. */
#define DISK_FILL_TAKEN ((size_t)64 << 10)

struct store_fill {
    struct cache_fill base; /* first */
    STAILQ_ENTRY(store_fill) link;  /* in the queue, while no thread reads it */
    TAILQ_ENTRY(store_fill) active; /* in the list of what is under way, until it has been read:
                                       under the lock of the queue, or the lane's */
    int64_t started_us;
    enum { FILL_WAITS, FILL_READS, FILL_IS_LATE } stage; /* likewise */
    struct store *store;
    struct disk_segment *segment; /* held */
    struct disk_place place;
    uint64_t most;
    struct source_review review; /* with a reference to the rules */
    struct span fields; /* of the request */
    char *kept;   /* them, owned, once the fill outlives the call that began it */
    char *bytes;  /* of `memory` or the lane's, while a ring reads into them */
    size_t size;  /* of them, as they are read */
    struct segment *memory; /* that the record is read into, unless that is the lane's; owned until
                               an object takes it */
    bool direct;  /* it is read past the kernel's memory */
};

/* ---- store_fill.c ---------------------------------------------------------------------------- */

/* Has what was read of a record the whole of it, as far as its first bytes say? */
bool disk_fill_is_whole(const char *bytes, size_t len);

/* Fills with a record, of which the beginning was read, and ends the fill. */
void disk_fill_use(struct store_fill *fill, const char *bytes, size_t len);

/* Ends it: the requests that wait look up again. */
void disk_fill_send_back(struct store_fill *fill);

/* After that of the version's part. */
void disk_fill_free(struct store_fill *fill);

/* A thread of the store is to read it. False: too many wait. */
bool disk_fill_enqueue(struct store_fill *fill);

/* Counts a failure, and logs the first one, the second, the fourth and so on: a disk that fails
 * does not fill the log. */
void disk_fill_tell(const struct store_fill *fill, enum store_count which, const char *what);

/* A read has succeeded, or failed, or takes too long. */
void disk_fill_note_read(struct store *store, bool failed);
void disk_fill_note_late(struct store *store);

/*
 * Does a list of reads that are under way count as slow, whose first one was begun then, INT64_MAX:
 * there is none? *counts: it did so before.
 */
void disk_fill_note_slow(struct store *store, int64_t started_us, int64_t now_us, bool *counts);

/* Is a read that was begun then to be given up? One of a store that is sick is at once. */
bool disk_fill_is_late(struct store *store, int64_t started_us, int64_t now_us);

/* ---- store_lane.c ---------------------------------------------------------------------------- */

struct store_lane *disk_lane_of(const struct store *store, unsigned number);

/* Reads a short record that the kernel has in memory, and fills with it; false if it has not. */
bool disk_lane_read_at_once(struct store_lane *lane, struct store_fill *fill);

/* Has the ring read it. False: it has none, or no space for it. */
bool disk_lane_read(struct store_lane *lane, struct store_fill *fill);

/* False without memory. */
bool disk_lanes_make(struct store *store);

/* The threads of all lanes have ended: waits for what is under way, up to this time. */
bool disk_lanes_end(struct store *store, int64_t until_us);

/* The same without a bound, and frees them. */
void disk_lanes_free(struct store *store);

#endif
