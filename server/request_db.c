#include "server/request_db.h"

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/ring.h"
#include "base/thread.h"
#include "server/log.h"
#include "server/request_queue.h"

#define ALL_QUEUES ((size_t)16 << 20) /* bytes, divided among the workers */
#define LEAST_QUEUE ((size_t)1 << 20)
#define WAKE_PARTS 4u    /* a queue of which a quarter is filled is written at once */
#define MOST_ROWS 16384u /* in one transaction */
#define BOUND_PARTS 16u  /* of the bound: bytes in one transaction, so that its log is short */
#define LEAST_BATCH ((uint64_t)1 << 20)
#define ROW_BYTES 160u        /* without its texts, about */
#define WRITE_EVERY_SECONDS 1 /* and so often it is tried again after a failure */
#define REOPEN_SECONDS 2      /* at most, that a caller waits for it */
#define COMPLAIN_EVERY_US ((int64_t)10 * 1000000)
#define LEAVE_EVERY_US ((int64_t)900000) /* so often it is tried to leave a file that was moved */
#define LAST_ROWS_US ((int64_t)2 * 1000000) /* for the last rows, where writing fails */

struct request_db {
    char *path;
    uint64_t max_bytes;
    struct ring *queues; /* by worker */
    unsigned queue_count;
    pthread_t thread;
    _Atomic uint64_t written, lost, removed, errors;
    _Atomic bool asked; /* a queue is filled */

    pthread_mutex_t lock; /* protects what follows */
    pthread_cond_t wake;
    pthread_cond_t reopened;
    unsigned reopens_wanted, reopens_done;
    unsigned reopens_tried; /* the old file could not be left yet */
    bool stop;
    int64_t stop_us; /* when that was set */

    /* the thread's */
    struct request_table *table; /* NULL: it has to be opened */
    bool failing;                /* since the last success, which was logged */
    bool over; /* the last commit removed rows: there may be more over the bound */
    uint64_t dropped_told;
    int64_t complained_us;
    bool leaving;     /* the old file, which other processes read; that was logged */
    int64_t leave_us; /* when that was tried last */
    unsigned first;   /* the queue that the next transaction begins with */
};

/* ---- workers --------------------------------------------------------------------------------- */

static void
ask_for_writing(struct request_db *db)
{
    if (atomic_exchange_explicit(&db->asked, true, memory_order_relaxed))
        return;
    pthread_mutex_lock(&db->lock);
    pthread_cond_signal(&db->wake);
    pthread_mutex_unlock(&db->lock);
}

void
request_db_add(struct request_db *db, const struct access_entry *entry)
{
    struct ring *queue = &db->queues[entry->worker];

    if (request_queue_add(queue, entry) && ring_is_filled(queue, WAKE_PARTS) &&
        !atomic_load_explicit(&db->asked, memory_order_relaxed))
        ask_for_writing(db);
}

void
request_db_get_stats(const struct request_db *db, struct request_db_stats *stats)
{
    *stats = (struct request_db_stats){
        .written = atomic_load(&db->written),
        .dropped = atomic_load(&db->lost),
        .removed = atomic_load(&db->removed),
        .errors = atomic_load(&db->errors),
    };
    for (unsigned i = 0; i < db->queue_count; i++)
        stats->dropped += ring_refused(&db->queues[i]);
}

/* ---- failures -------------------------------------------------------------------------------- */

static uint64_t
count_dropped(const struct request_db *db)
{
    struct request_db_stats stats;

    request_db_get_stats(db, &stats);
    return stats.dropped;
}

static void
note_failure(struct request_db *db, const char *why)
{
    atomic_fetch_add(&db->errors, 1);
    if (!db->failing)
        log_error("request database %s: %s; requests wait in memory, and are dropped when that is "
                  "full",
                  db->path, why);
    db->failing = true;
}

static void
note_success(struct request_db *db)
{
    uint64_t dropped = count_dropped(db);

    if (db->failing)
        log_info("request database %s is written again; %" PRIu64 " requests dropped so far",
                 db->path, dropped);
    db->failing = false;
}

/* Logs, now and then, that workers were faster than this thread. */
static void
log_dropped(struct request_db *db)
{
    uint64_t dropped = count_dropped(db);
    int64_t now_us = clock_monotonic_us();

    if (dropped == db->dropped_told || db->failing ||
        (db->complained_us && now_us - db->complained_us < COMPLAIN_EVERY_US))
        return;
    db->dropped_told = dropped;
    db->complained_us = now_us;
    log_warning("request database %s: requests came faster than they could be written; %" PRIu64
                " dropped so far",
                db->path, dropped);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void
close_table(struct request_db *db)
{
    if (!request_table_close(db->table))
        log_error("request database %s: the file was moved away, and rows are left in %s-wal",
                  db->path, db->path);
    db->table = NULL;
}

static bool
open_table(struct request_db *db, struct buf *why)
{
    db->table = request_table_open(db->path, db->max_bytes, why);
    db->over = db->table != NULL;
    return db->table != NULL;
}

/* True if there is a table to write to. */
static bool
have_table(struct request_db *db)
{
    struct buf why;

    if (db->table)
        return true;
    buf_init(&why, 1024);
    if (!open_table(db, &why))
        note_failure(db, buf_str(&why));
    buf_free(&why);
    return db->table != NULL;
}

struct batch {
    unsigned rows, bad;
    uint64_t bytes;
};

static bool
is_full(const struct request_db *db, const struct batch *batch)
{
    uint64_t most = db->max_bytes / BOUND_PARTS;

    if (most < LEAST_BATCH)
        most = LEAST_BATCH;
    return batch->rows + batch->bad >= MOST_ROWS || (db->max_bytes && batch->bytes >= most);
}

/* Inserts the requests of one queue. A result code. */
static int
insert_queue(struct request_db *db, struct ring *queue, struct batch *batch)
{
    struct request_row row;

    while (!is_full(db, batch) && request_queue_read(queue, &row)) {
        int rc = request_table_insert(db->table, &row);

        batch->bytes += ROW_BYTES + row.method.len + row.url.len;
        if (rc == SQLITE_OK)
            batch->rows++;
        else if (request_table_blames_row(rc))
            batch->bad++;
        else
            return rc;
    }
    return SQLITE_OK;
}

static int
write_transaction(struct request_db *db, struct batch *batch, uint64_t *removed)
{
    int rc = request_table_begin(db->table);

    for (unsigned i = 0; rc == SQLITE_OK && i < db->queue_count; i++)
        rc = insert_queue(db, &db->queues[(db->first + i) % db->queue_count], batch);
    return rc == SQLITE_OK ? request_table_commit(db->table, removed) : rc;
}

static void
undo(struct request_db *db, int rc)
{
    note_failure(db, request_table_explain(db->table, rc));
    request_table_rollback(db->table);
    for (unsigned i = 0; i < db->queue_count; i++)
        ring_rewind(&db->queues[i]);
    if (request_table_may_recover(rc))
        return;
    close_table(db);
}

static bool
is_empty(const struct request_db *db)
{
    for (unsigned i = 0; i < db->queue_count; i++) {
        size_t len;
        bool empty = ring_read(&db->queues[i], &len) == NULL;

        ring_rewind(&db->queues[i]);
        if (!empty)
            return false;
    }
    return true;
}

/* One transaction. True if there may be more to do at once. */
static bool
write_batch(struct request_db *db)
{
    struct batch batch = {0};
    uint64_t removed = 0;
    int rc;

    if ((!db->table || !db->over) && is_empty(db))
        return false;
    if (!have_table(db))
        return false;
    rc = write_transaction(db, &batch, &removed);
    if (rc != SQLITE_OK) {
        undo(db, rc);
        return false;
    }
    for (unsigned i = 0; i < db->queue_count; i++)
        ring_release(&db->queues[i]);
    db->first = (db->first + 1) % db->queue_count;
    db->over = removed != 0;
    atomic_fetch_add(&db->written, batch.rows);
    atomic_fetch_add(&db->removed, removed);
    if (batch.bad) {
        atomic_fetch_add(&db->lost, batch.bad);
        atomic_fetch_add(&db->errors, 1);
    }
    note_success(db);
    return is_full(db, &batch) || removed != 0;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* False if the old file has to be written on, because it does not have all of its rows yet. */
static bool
leave_table(struct request_db *db)
{
    int rc = request_table_settle(db->table);

    if (rc != SQLITE_OK && request_table_may_recover(rc) &&
        request_table_place(db->table) == REQUEST_TABLE_MOVED) {
        if (!db->leaving)
            log_warning("request database %s: the old file is written on until it can take its "
                        "last rows from %s-wal: %s",
                        db->path, db->path,
                        (rc & 0xff) == SQLITE_BUSY ? "another process reads it"
                                                   : request_table_explain(db->table, rc));
        db->leaving = true;
        db->leave_us = clock_monotonic_us();
        return false;
    }
    db->leaving = false;
    close_table(db);
    return true;
}

/* False if that has to be tried again. */
static bool
open_again(struct request_db *db)
{
    struct buf why;

    if (db->table && request_table_place(db->table) == REQUEST_TABLE_NAMED) {
        log_info("request database %s stays open, as the file was not moved", db->path);
        db->leaving = false;
        return true;
    }
    if (db->table && !leave_table(db))
        return false;
    buf_init(&why, 1024);
    if (open_table(db, &why))
        log_info("request database %s opened again", db->path);
    else
        note_failure(db, buf_str(&why));
    buf_free(&why);
    return true;
}

static void
note_reopened(struct request_db *db, unsigned reopens)
{
    pthread_mutex_lock(&db->lock);
    db->reopens_done = db->reopens_tried = reopens;
    pthread_cond_broadcast(&db->reopened);
    pthread_mutex_unlock(&db->lock);
}

static void
add_seconds(struct timespec *until, int seconds)
{
    clock_gettime(CLOCK_MONOTONIC, until);
    until->tv_sec += seconds;
}

/* After the old file could not be left it is tried again now and then, with no other request. */
static void
note_tried(struct request_db *db, unsigned reopens)
{
    pthread_mutex_lock(&db->lock);
    db->reopens_tried = reopens;
    pthread_mutex_unlock(&db->lock);
}

static bool
is_to_be_reopened(const struct request_db *db, unsigned reopens)
{
    if (reopens == db->reopens_done)
        return false;
    return !db->leaving || reopens != db->reopens_tried ||
           clock_monotonic_us() - db->leave_us >= LEAVE_EVERY_US;
}

/* Waits until there is something to do. Returns whether to stop, and the reopenings wanted. */
static bool
wait_for_work(struct request_db *db, unsigned *reopens)
{
    struct timespec until;
    bool stop;

    add_seconds(&until, WRITE_EVERY_SECONDS);
    pthread_mutex_lock(&db->lock);
    while (!db->stop && db->reopens_wanted == db->reopens_tried &&
           (db->failing || !atomic_load_explicit(&db->asked, memory_order_relaxed)))
        if (pthread_cond_timedwait(&db->wake, &db->lock, &until) == ETIMEDOUT)
            break;
    stop = db->stop;
    *reopens = db->reopens_wanted;
    pthread_mutex_unlock(&db->lock);
    /* Before the queues are read: a worker that fills one afterwards asks again. */
    atomic_store_explicit(&db->asked, false, memory_order_relaxed);
    return stop;
}

static bool
is_waited_for(struct request_db *db)
{
    bool waited_for;

    pthread_mutex_lock(&db->lock);
    waited_for = db->stop || db->reopens_wanted != db->reopens_tried;
    pthread_mutex_unlock(&db->lock);
    return waited_for;
}

static void
write_last(struct request_db *db)
{
    const struct timespec pause = {.tv_nsec = 50000000};

    for (;;) {
        bool more;

        do {
            db->over = false;
            more = write_batch(db);
            if (clock_monotonic_us() - db->stop_us > LAST_ROWS_US)
                return;
        } while (more);
        if (is_empty(db))
            return;
        nanosleep(&pause, NULL);
    }
}

static void *
write_requests(void *argument)
{
    struct request_db *db = argument;
    unsigned reopens;

    while (!wait_for_work(db, &reopens)) {
        /* What came before the reopening is in the old file. */
        while (write_batch(db) && !is_waited_for(db))
            ;
        log_dropped(db);
        if (!is_to_be_reopened(db, reopens))
            continue;
        if (open_again(db))
            note_reopened(db, reopens);
        else
            note_tried(db, reopens);
    }
    write_last(db);
    return NULL;
}

/* ---- start and end --------------------------------------------------------------------------- */

static void
free_db(struct request_db *db)
{
    close_table(db);
    for (unsigned i = 0; db->queues && i < db->queue_count; i++)
        ring_free(&db->queues[i]);
    free(db->queues);
    free(db->path);
    free(db);
}

static bool
make_queues(struct request_db *db, unsigned workers)
{
    size_t size = ALL_QUEUES;

    while (size > LEAST_QUEUE && size * workers > ALL_QUEUES)
        size /= 2;
    db->queues = aligned_alloc(_Alignof(struct ring), workers * sizeof(*db->queues));
    for (unsigned i = 0; db->queues && i < workers; i++) {
        if (!ring_init(&db->queues[i], size))
            return false;
        db->queue_count++;
    }
    return db->queues != NULL;
}

static int
start_thread(struct request_db *db)
{
    int error;

    pthread_mutex_init(&db->lock, NULL);
    thread_cond_init(&db->wake);
    thread_cond_init(&db->reopened);
    error = thread_start(&db->thread, write_requests, db);
    if (error) {
        pthread_cond_destroy(&db->wake);
        pthread_cond_destroy(&db->reopened);
        pthread_mutex_destroy(&db->lock);
    }
    return error;
}

struct request_db *
request_db_start(const char *path, uint64_t max_bytes, unsigned workers, struct buf *why)
{
    struct request_db *db = calloc(1, sizeof(*db));
    int error = ENOMEM;

    if (!db || !(db->path = strdup(path)) || !make_queues(db, workers)) {
        if (db)
            free_db(db);
        buf_append_str(why, strerror(ENOMEM));
        return NULL;
    }
    db->max_bytes = max_bytes;
    if (open_table(db, why)) {
        error = start_thread(db);
        if (error == 0)
            return db;
        buf_append_str(why, strerror(error));
    }
    free_db(db);
    return NULL;
}

static uint64_t
count_unwritten(struct request_db *db)
{
    uint64_t count = 0;
    size_t len;

    for (unsigned i = 0; i < db->queue_count; i++)
        while (ring_read(&db->queues[i], &len))
            count++;
    return count;
}

void
request_db_close(struct request_db *db)
{
    uint64_t unwritten;

    if (!db)
        return;
    pthread_mutex_lock(&db->lock);
    db->stop = true;
    db->stop_us = clock_monotonic_us();
    pthread_cond_signal(&db->wake);
    pthread_mutex_unlock(&db->lock);
    pthread_join(db->thread, NULL);
    unwritten = count_unwritten(db);
    if (unwritten)
        log_warning("request database %s: the last %" PRIu64 " requests could not be written",
                    db->path, unwritten);
    pthread_cond_destroy(&db->wake);
    pthread_cond_destroy(&db->reopened);
    pthread_mutex_destroy(&db->lock);
    free_db(db);
}

void
request_db_reopen(struct request_db *db)
{
    struct timespec until;
    unsigned wanted;

    add_seconds(&until, REOPEN_SECONDS);
    pthread_mutex_lock(&db->lock);
    wanted = ++db->reopens_wanted;
    pthread_cond_signal(&db->wake);
    while ((int)(wanted - db->reopens_done) > 0)
        if (pthread_cond_timedwait(&db->reopened, &db->lock, &until) == ETIMEDOUT)
            break;
    pthread_mutex_unlock(&db->lock);
}
