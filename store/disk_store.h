/*
 * What the files of store/ share: the store itself. Private.
 *
 * Threads: the writer appends to the log, and loads at the start what is there; the readers fill
 * versions; the watcher gives up reads that take too long; the noter writes the journal.
 *
 * Locks, each taken alone unless stated: `offers` is the writer's queue, `reads` that of the
 * readers, `purges` that of the noter. A table of the index and the marks have one each. The marks'
 * may be taken under `order`, which makes the check of a record and its insertion into the index
 * one step for purges; a table's lock as well.
 */
#ifndef SUNPROXY_STORE_DISK_STORE_H
#define SUNPROXY_STORE_DISK_STORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/disk_log.h"
#include "store/disk_marks.h"
#include "store/store.h"
#include "store/store_pass.h"

#define STORE_MOST_OFFERS 4096u
#define STORE_MOST_OFFERED ((uint64_t)64 << 20) /* bytes of the bodies of those that wait */

/* An object that is to be written. */
struct offer {
    STAILQ_ENTRY(offer) link;
    struct object *object; /* a reference */
    uint64_t position;
    size_t names_len;
    char names[];
};

STAILQ_HEAD(offers, offer);

/*
 * OPENING -the lock is taken, and the journal read-> LOADING -segments are known-> OPEN -another
 * process has the store, and is passed what is purged-> PASSES -> LEFT. Before LOADING and after
 * OPEN nothing is found or written. If opening fails LEFT follows at once.
 */
enum store_stage { STORE_OPENING, STORE_LOADING, STORE_OPEN, STORE_PASSES, STORE_LEFT };

#define STORE_OFFERED 1024u

struct store_lane;
struct store_fill;
STAILQ_HEAD(store_fills, store_fill);

struct store {
    struct source source;       /* first */
    struct store_config config; /* constant */
    int folder;                 /* descriptor */
    int lock;                   /* that of the file "lock", held; -1 */
    uint64_t boot;              /* constant: names the run of the machine */
    _Atomic enum store_stage stage;
    struct disk_identity identity; /* constant from LOADING on, but for the terms: the noter's */
    _Atomic uint64_t position;
    _Atomic uint64_t counts[STORE_COUNTS];
    _Atomic bool sick;
    _Atomic unsigned slow; /* lists of reads that are under way, of which the first one takes long:
                              no other read begins meanwhile */
    _Atomic unsigned offering; /* offers that have begun */

    struct disk_index index;
    struct disk_marks marks;
    struct disk_log log; /* the writer's */
    pthread_mutex_t order;

    _Atomic uint32_t *ghosts; /* what was requested once: parts of keys */
    size_t ghost_count;

    /* the writer */
    pthread_t writer;
    bool has_writer;
    pthread_mutex_t offers_lock;
    pthread_cond_t offers_wake, offers_idle, offers_looked;
    struct offers offers;
    _Atomic uint32_t offered[STORE_OFFERED]; /* how many of them, by hashes of URL and variant:
                                                those in the queue, and those not settled */
    /* Records to which the index does not lead, though a later start may find them: there may be
     * some before this position, in segments whose numbers are not higher, by hashes of URLs, and
     * of any URL. */
    _Atomic uint64_t hidden[STORE_OFFERED], hidden_any;
    _Atomic uint64_t oldest; /* the number of the first segment; 0 where files were left, and while
                                one is removed */
    _Atomic uint64_t unlisted; /* the position when it got 0: there may be such records before */
    size_t offer_count;
    uint64_t offered_bytes;
    bool writer_busy, writer_stops;
    bool writer_looks; /* it is to see whether the journal has space */
    bool opens_now;     /* store_open() waits until the journal is open */
    bool has_opened;    /* or that has failed */
    int open_error;     /* with this errno */
    uint64_t *numbers; /* of the segments that are to be loaded */
    size_t number_count;
    struct offer_placed *placed; /* appended, and not written yet */
    size_t placed_count;
    int64_t written_us; /* when something was appended that is not synced; 0 */
    int write_error;    /* since which nothing was synced; 0: none */
    bool wants_space;   /* the file system was full */
    int64_t retry_us;   /* nothing is written before, since that has failed */

    struct store_lane *lanes; /* config.lanes of them, each of its thread */

    /* the readers */
    pthread_t *readers;
    unsigned reader_count;
    pthread_mutex_t reads_lock;
    pthread_cond_t reads_wake;
    struct store_fills reads;
    size_t read_count; /* that wait */
    TAILQ_HEAD(active_fills, store_fill) active; /* reads that wait or go on, the oldest first */
    bool active_slow; /* it is one of `slow` */
    bool readers_stop, watcher_stops;
    pthread_t watcher;
    bool has_watcher;
    pthread_cond_t watch_wake;
    bool watches;        /* it looks at `active` by itself */
    _Atomic bool watches_writes; /* and at these two, */
    _Atomic int64_t writing_us, noting_us; /* since when the writer and the noter are at the disk;
                                              0: they are not. While the store is opened the writer
                                              is there for the noter */
    int64_t stuck_us;    /* the last of them that took too long; the watcher's */
    enum { PROBE_NONE, PROBE_WANTED, PROBE_RUNS } probe;
    _Atomic unsigned failures; /* of reads in succession; changed under the lock */
    int64_t probed_us;   /* the last probe's end */

    /* the noter */
    pthread_t noter;
    bool has_noter;
    pthread_mutex_t purges_lock;
    pthread_cond_t purges_wake, synced_wake;
    struct disk_journal journal; /* the noter's, once the store is open */
    _Atomic uint64_t journal_bytes, journal_most; /* of its files, now and before the next is
                                                     begun */
    STAILQ_HEAD(pending_marks, pending_mark) pending;
    size_t pending_count;
    bool stuck; /* the disk does not take marks: none is waited for until it has taken one */
    _Atomic unsigned purging; /* by tag or prefix: first calls whose second is to come */
    uint64_t terms;          /* those that are to be in the journal */
    uint64_t marked, noted, synced; /* numbers of marks: left, in the journal or passed, answered */
    uint64_t unnoted; /* and the last one that is answered as lost: the journal did not take it */
    /* The number of the last mark of a URL, by hashes of URLs. The index does not lead to what it
     * concerns any more, though a later start may until it is noted. */
    struct mark_expected {
        uint64_t url;    /* its hash; 0: several */
        uint64_t number; /* UINT64_MAX: it will be left */
    } expected[STORE_OFFERED];
    bool notes;        /* the noter uses the journal, without the lock */
    bool passes;       /* what is noted is kept in `passed`, and answered later */
    bool lost_passed;  /* a mark of those for which there was no memory */
    struct pending_marks passed;
    struct pass pass;
    struct source_waiters waiters;
    bool lost; /* a mark for which there was no memory */
    bool all_unnoted; /* all was purged by a mark that is not noted by itself */
    bool noter_stops, noter_ended;
    bool gone; /* no mark is needed: the store could not be opened, and has been removed or is
                  another process's */
    bool spoils; /* the journal lacks marks, and cannot be spoiled; the noter's */

    /* what another process passes */
    pthread_t taker;
    bool has_taker;
    _Atomic bool taking;
    int taker_fd; /* -1: none */
};

static inline enum store_stage
store_stage(struct store *store)
{
    return atomic_load_explicit(&store->stage, memory_order_acquire);
}

static inline void
store_add(struct store *store, enum store_count which, uint64_t n)
{
    atomic_fetch_add_explicit(&store->counts[which], n, memory_order_relaxed);
}

static inline int64_t
store_now_us(const struct store *store)
{
    return store->config.clock.monotonic_us(store->config.clock.context);
}

static inline int64_t
store_wall_us(const struct store *store)
{
    return store->config.clock.wall_us(store->config.clock.context);
}

void store_say(const struct store *store, enum store_severity severity, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The key of a URL and variant. */
struct disk_key store_key(const struct store *store, struct span url, struct span variant);

/* Is the writer to stop? [any thread] */
bool disk_writer_is_to_stop(void *store);

/* Has the writer remove segments if there is no space for this many bytes of the journal, and waits
 * for that, for a second at most. [the noter] */
void disk_writer_reserve(struct store *store, uint64_t most);

/* The calling thread, the writer or the noter, is at the disk from now on, until it sets this to 0:
 * the watcher looks whether that takes too long. */
void disk_begin_write(struct store *store, _Atomic int64_t *since_us);

/* ---- disk_writer.c --------------------------------------------------------------------------- */

/* Its thread's; the lock of the store's folder is taken here if another process has it. */
void *disk_writer_run(void *store);

/* Waits until it has read the journal and the names of segments, or only the former if another
 * process has the store: 0 or an errno. Where that takes too long it is done later, as if another
 * process had the store meanwhile. */
int disk_writer_await(struct store *store);

/*
 * A record of this URL, whose hash is the key's, is on disk, or was given up in the middle, and the
 * index will not lead there; any: of any URL. What outdates the URL leaves a mark for it then, as
 * long as there are segments from now or before. It is called before the record leaves the index.
 * [any thread]
 */
void disk_hide(struct store *store, uint64_t url);
void disk_hide_any(struct store *store);

/*
 * May a later start find a record of the URL to which the index does not lead, and which no mark of
 * the URL outdates? The index is looked into first. [any thread]
 */
bool disk_has_hidden(struct store *store, struct span url);

/* Segments have come or gone; or one is about to leave the index. [the writer] */
void disk_note_oldest(struct store *store);
void disk_note_removal(struct store *store);

/* ---- disk_load.c ----------------------------------------------------------------------------- */

/* Has the index lead to what the segments have, the newest first. False: the writer is to stop. */
bool disk_load(struct store *store);

static inline struct disk_now
store_now(const struct store *store)
{
    return (struct disk_now){store->boot, store_now_us(store), store_wall_us(store)};
}

/* ---- disk_noter.c ---------------------------------------------------------------------------- */

void *disk_noter_run(void *store);

/*
 * How many offers are there of this URL and variant, or for the empty one of the URL, or of those
 * that fall together with them? And one more or less.
 */
uint32_t disk_offered(struct store *store, struct span url, struct span variant);
void disk_count_offer(struct store *store, const struct object *object, int more);

/*
 * Outdates what there is of a URL, up to this position, 0: up to now. Without `noted` that holds
 * until the process ends.
 */
void disk_outdate(struct store *store, struct span url, uint64_t position, bool noted);

/* Is each purge up to now in the journal, so that a later start knows it? */
bool disk_noter_has_all(struct store *store);

/*
 * The journal is open, and the log known: STORE_LOADING begins. Marks from before are later than
 * all that is on disk. False: the store was left meanwhile, since its disk did not answer.
 */
bool disk_noter_begin(struct store *store);

/* Answers those whose marks the disk does not take. [the watcher] */
void disk_noter_answer_late(struct store *store);

/* All marks are noted, the noter is done with the journal, and it is closed: STORE_PASSES
 * begins. False: not up to this time. */
bool disk_noter_pass(struct store *store, int fd, int64_t until_us);

/* The store cannot be opened: STORE_LEFT begins, and no mark is waited for. Without `gone` a later
 * start may find what is purged, which is answered so. */
void disk_noter_leave(struct store *store, bool gone);

/* ---- store_fill.c ---------------------------------------------------------------------------- */

void *store_reader_run(void *store);
void *store_watcher_run(void *store);

#endif
