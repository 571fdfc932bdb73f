/*
 * A store: objects of a cache on disk, in a log of segments (disk_log.h) with an index in memory
 * (disk_index.h). It outlives the process. Objects that a cache has are offered to it and written
 * by a thread of its own. A version that the cache does not have is filled from it (store_fill.h).
 * The oldest segments are removed, so that the files stay within a bound.
 *
 * What is purged in the cache is purged here, too: the purge is noted in a journal
 * (disk_journal.h), and answered when that is on disk. docs/STORE.md has the design.
 *
 * Every function is safe on any thread. But for opening and closing none does I/O: they take locks
 * that are never held over it.
 */
#ifndef SUNPROXY_STORE_STORE_H
#define SUNPROXY_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/memory_account.h"
#include "store/source.h"

struct disk_ring;
struct store;

enum store_severity { STORE_ERROR, STORE_WARNING, STORE_INFO };

struct store_clock {
    int64_t (*monotonic_us)(void *context);
    int64_t (*wall_us)(void *context);
    void *context;
    uint64_t boot; /* names the run of the machine; 0: as the system has it */
};

#define STORE_LEAST ((uint64_t)16 << 20) /* bytes that a store has at least, */
#define STORE_MOST ((uint64_t)16 << 40)  /* and at most: those of all segments (disk_log.h) */

/* Descriptors of a store of this size, whose records are larger than a quarter of a segment at most
 * now and then. */
uint32_t store_descriptors(uint64_t max_bytes);

#define STORE_LATE_US ((int64_t)40000)
#define STORE_RETRY_US ((int64_t)500000)
#define STORE_STUCK_US ((int64_t)3000000)
#define STORE_NOTE_US ((int64_t)5000000) /* that a purge waits for its mark, on such a disk */
#define STORE_OPEN_US ((int64_t)5000000)

struct store_config {
    const char *folder;
    uint64_t max_bytes; /* of all files, STORE_LEAST to STORE_MOST */
    uint64_t terms;     /* a hash of what decides about keys and tags: what was stored under other
                           ones is removed */
    bool write_all;     /* objects are admitted at their first request, not at the second */
    int64_t waits_us;   /* another process has the store, and is to leave it within this time; 0:
                           none has it */
    int64_t opens_us;   /* the start waits this long for the disk, and has the store opened later
                           then; 0: STORE_OPEN_US */
    bool reads_later;   /* no read is tried at once, as if the kernel had nothing in memory: for
                           tests */
    unsigned readers;   /* threads that read */
    int64_t late_us;    /* a read that takes longer is given up, and with it the use of the store
                           for a while; 0: STORE_LATE_US */
    int64_t stuck_us;   /* a write that takes longer ends the use of the store until it ends; 0:
                           STORE_STUCK_US */
    int64_t retry_us;   /* between two attempts of a disk that was slow or has failed; 0:
                           STORE_RETRY_US */
    unsigned lanes;     /* threads that fill, at least one (store_lane.h) */
    struct disk_ring *const *rings; /* one for each lane, NULL for a lane that has none; not owned,
                                       they outlive the store. NULL: none has */
    int64_t sync_us;    /* what was written is on disk after this time */
    struct cache *cache;
    struct memory_account *account; /* of the objects that are filled */
    unsigned failure; /* the number of a failure for waiters that have begun to read
                         (cache/fill.h) */
    struct store_clock clock;
    /* What an operator is told. [any thread] */
    void (*log)(void *context, enum store_severity severity, const char *sentence);
    /* Purges what the process has purged that had the store before, here as well. [a thread of the
     * store's] */
    void (*purged)(void *context, const struct source *from, const struct source_purge *purge);
    void *context;
};

/* What is counted since the start. */
enum store_count {
    STORE_HITS,          /* objects that were read */
    STORE_READ_AT_ONCE,  /* records that the kernel had in memory */
    STORE_READ_BY_RING,  /* others, by io_uring */
    STORE_READ_BY_THREAD,
    STORE_MISSES,        /* that were not there, though the index led to them: purged or collided */
    STORE_DAMAGED,       /* records and other parts that did not verify, and were dropped */
    STORE_READ_ERRORS,
    STORE_READ_REFUSED,  /* reads that were not begun: too many wait, or another one takes long */
    STORE_READ_LATE,     /* reads that took too long: the origin was asked */
    STORE_WRITTEN,       /* objects */
    STORE_WRITE_ERRORS,
    STORE_WRITE_REFUSED, /* objects that were not written: too many wait */
    STORE_REINSERTED,    /* objects of a removed segment that were written again */
    STORE_EVICTED,       /* objects of removed segments */
    STORE_PURGES,        /* marks that were written to the journal */
    STORE_COUNTS
};

struct store_stats {
    uint64_t counts[STORE_COUNTS];
    uint64_t objects;
    uint64_t bytes;         /* of all segments and the journal */
    uint64_t max_bytes;
    uint64_t written_bytes; /* since the start */
    uint64_t index_bytes;   /* of memory */
    uint64_t loaded;        /* 1: what was there at the start is known */
    uint64_t sick;          /* 1: it is not used for now: its disk is slow, or fails */
};

/*
 * Opens a store, whose folder is there, and starts its threads. What is in it is read by a thread,
 * and unknown until then. NULL with a sentence if the folder or the journal is not usable, or
 * another process has the store. With `waits_us` the journal is only read then. With that, and
 * where the disk has not answered after `opens_us`, that is found out later: a store that is not
 * usable then is as if it had been left, and all waiters are notified.
 */
struct store *store_open(const struct store_config *config, struct buf *why);

#define STORE_FOREVER INT64_MAX

/*
 * Writes what is offered, and leaves the store to other processes; it finds nothing from now on. No
 * more reads begin, and those that wait end. False if threads of the store are at the disk still
 * after about this time: its waiters have been notified as lost, it keeps its lock until the
 * process ends or a later call succeeds, and what it was configured with has to stay until then.
 */
bool store_leave(struct store *store, int64_t us);

/*
 * Waits for this time at most until the reads of all rings have ended. The threads that fill have.
 * False: the disk does not answer, and what the store was configured with has to stay.
 */
bool store_end_reads(struct store *store, int64_t us);

/*
 * The process is replaced by another one, which gets the store, and serves from now on: what is
 * purged here is to hold there as well. First what is purged is kept, and then store_hand_over()
 * leaves the store to it, and passes to it what was kept, and from now on all, over `fd`, which is
 * the store's. Those that wait are notified when it is noted there, or lost: that process is gone,
 * or its disk does not answer. False as of store_leave(): the other process gets the store when
 * this one has ended.
 */
void store_prepare_hand_over(struct store *store);
bool store_hand_over(struct store *store, int fd, int64_t us);

/* This process is the other one: it takes over `fd` what is purged there. 0 or an errno. */
int store_take_purges(struct store *store, int fd);

/* Does the other process still pass what is purged there? */
bool store_takes_purges(struct store *store);

/* store_leave() without a bound, and frees it; no other function is being called. NULL is
 * harmless. */
void store_close(struct store *store);

void store_get_stats(struct store *store, struct store_stats *stats);

/*
 * Other terms hold from now on: what is stored already is to be purged by store_mark(), and a later
 * start is to have these terms. They are noted in the journal, as marks are.
 */
void store_set_terms(struct store *store, uint64_t terms);

/* Waits until what was there at the start is known, and all offers are written; for tests. */
void store_settle(struct store *store);

/* As a source of versions, which calls the functions below. NULL: NULL. */
struct source *store_source(struct store *store);

/* ---- objects --------------------------------------------------------------------------------- */

/* May the store have this URL and variant, or for the empty one another variant? */
bool store_may_have(struct store *store, struct span url, struct span variant);

/*
 * Begins an offer, before the object is found to be current: purges from then on concern it.
 * Returns its position, for store_offer() or store_drop_offer(), one of which follows.
 */
uint64_t store_begin_offer(struct store *store);
void store_drop_offer(struct store *store);

/*
 * Was this page requested before, as far as is remembered, or are all to be written? Remembers it.
 */
bool store_admits(struct store *store, uint64_t key);

/*
 * Offers a ready object that is stored in the cache or was to be, and that all may have. `position`
 * is from before that was found so. It is written later, unless that is refused; the store takes a
 * reference. `names` are those by which the URL varies. False: refused. What is there of the URL is
 * outdated if it varies and the object does not, or the other way round. If the object cannot be
 * written later, what it would have replaced is outdated; where the disk fails, until the end of
 * the process.
 */
bool store_offer(struct store *store, struct object *object, struct span names, uint64_t position);

/*
 * Is there a record that an object of this URL and variant takes the place of, as far as is known?
 * So it may be while the store is not used for reading, other than for store_may_have().
 */
bool store_replaces(struct store *store, struct span url, struct span variant);

/*
 * A response that is not written takes the place of what there is of this URL and variant, or with
 * `all` of the URL: nothing of the URL is used any more, as after a purge without a waiter.
 */
void store_outdate(struct store *store, struct span url, struct span variant, bool all);

/* ---- purges ---------------------------------------------------------------------------------- */

/*
 * Purges, or with `soft` expires, what has an earlier position; all with an empty prefix. A tag of
 * a scope concerns the URLs that begin with that. It is called before the purge of the cache, with
 * `before` NULL, so that what is there is not read again; and once more after it, with what the
 * first call has returned, so that it concerns what was offered meanwhile. The second call has it
 * noted in the journal, but for a URL of which there was certainly nothing at both.
 */
struct source_marked store_mark(struct store *store, enum cache_by kind, bool soft,
                                struct span name, struct span scope,
                                const struct source_marked *before);

/*
 * Is the mark that `waiter` names on disk, and each before it, as far as they can be, or lost? If
 * not, it is notified once when they are, with its notify set. One that was left behind
 * store_leave() is lost; so is one whose mark the disk has not taken after STORE_NOTE_US, and each
 * later one until it answers. Those marks hold in this process, and are noted then. So is one that
 * the journal could not take, which could not be made unreadable either; it is noted with the next
 * one that can be.
 */
bool store_is_synced(struct store *store, struct source_waiter *waiter);

/* It waits no longer. False: it has been notified, or is being. */
bool store_forget_waiter(struct store *store, struct source_waiter *waiter);

/* Waits itself, for this time at most. */
enum store_synced {
    STORE_SYNCS,    /* not all marks up to now are on disk */
    STORE_SYNCED,   /* they are, as far as they can be */
    STORE_SYNC_LOST /* they are not waited for: the store was left meanwhile, since the process
                       ends, or the disk does not answer */
};

enum store_synced store_await_sync(struct store *store, int64_t us);

#endif
