#include "server/logs/request_db.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "server/logs/log.h"
#include "server/logs/request_queue.h"
#include "server/logs/request_writer.h"

#define WAKE_PARTS 4u /* a queue of which a quarter is filled is written at once */

const struct request_times request_times = {
    .write_us = 1000000,
    .leave_us = 900000,
    .reopen_us = 2000000,
    .last_us = 2000000,
    .busy_ms = 1000,
};

struct request_db {
    struct request_times times;
    struct request_writer writer; /* the thread's, but for queues and counts */
    pthread_t thread;
    _Atomic bool asked; /* a queue is filled */

    pthread_mutex_t lock; /* protects what follows */
    pthread_cond_t wake;
    pthread_cond_t reopened;
    unsigned reopens_wanted, reopens_done;
    unsigned reopens_tried; /* the old file could not be left yet */
    bool stop;
    int64_t stop_us; /* when that was set */
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
    struct ring *queue = &db->writer.queues[entry->worker];

    if (request_queue_add(queue, entry) && ring_is_filled(queue, WAKE_PARTS) &&
        !atomic_load_explicit(&db->asked, memory_order_relaxed))
        ask_for_writing(db);
}

void
request_db_get_stats(const struct request_db *db, struct request_db_stats *stats)
{
    *stats = (struct request_db_stats){
        .written = atomic_load(&db->writer.written),
        .dropped = request_writer_count_dropped(&db->writer),
        .removed = atomic_load(&db->writer.removed),
        .errors = atomic_load(&db->writer.errors),
    };
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void
note_reopened(struct request_db *db, unsigned reopens)
{
    pthread_mutex_lock(&db->lock);
    db->reopens_done = db->reopens_tried = reopens;
    pthread_cond_broadcast(&db->reopened);
    pthread_mutex_unlock(&db->lock);
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
    return !db->writer.leaving || reopens != db->reopens_tried ||
           clock_monotonic_us() - db->writer.leave_us >= db->times.leave_us;
}

/* Waits until there is something to do. Returns whether to stop, and the reopenings wanted. */
static bool
wait_for_work(struct request_db *db, unsigned *reopens)
{
    const struct timespec until = clock_timespec(clock_monotonic_us() + db->times.write_us);
    bool stop;

    pthread_mutex_lock(&db->lock);
    while (!db->stop && db->reopens_wanted == db->reopens_tried &&
           (db->writer.failing || !atomic_load_explicit(&db->asked, memory_order_relaxed)))
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

static void *
write_requests(void *argument)
{
    struct request_db *db = argument;
    unsigned reopens;

    while (!wait_for_work(db, &reopens)) {
        /* What came before the reopening is in the old file. */
        while (request_writer_write(&db->writer) && !is_waited_for(db))
            ;
        request_writer_log_dropped(&db->writer);
        if (!is_to_be_reopened(db, reopens))
            continue;
        if (request_writer_reopen(&db->writer))
            note_reopened(db, reopens);
        else
            note_tried(db, reopens);
    }
    request_writer_write_last(&db->writer, db->stop_us + db->times.last_us);
    return NULL;
}

/* ---- start and end --------------------------------------------------------------------------- */

static void
free_db(struct request_db *db)
{
    request_writer_free(&db->writer);
    free(db);
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
request_db_start(const char *path, uint64_t max_bytes, unsigned workers,
                 const struct request_times *times, struct buf *why)
{
    struct request_db *db = calloc(1, sizeof(*db));
    int error = ENOMEM;

    if (!db || !request_writer_init(&db->writer, path, max_bytes, workers, times->busy_ms)) {
        if (db)
            free_db(db);
        buf_append_str(why, strerror(ENOMEM));
        return NULL;
    }
    db->times = *times;
    if (request_writer_open(&db->writer, why)) {
        error = start_thread(db);
        if (error == 0)
            return db;
        buf_append_str(why, strerror(error));
    }
    free_db(db);
    return NULL;
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
    unwritten = request_writer_count_unwritten(&db->writer);
    if (unwritten)
        log_warning("request database %s: the last %" PRIu64 " requests could not be written",
                    db->writer.path, unwritten);
    pthread_cond_destroy(&db->wake);
    pthread_cond_destroy(&db->reopened);
    pthread_mutex_destroy(&db->lock);
    free_db(db);
}

void
request_db_reopen(struct request_db *db)
{
    const struct timespec until = clock_timespec(clock_monotonic_us() + db->times.reopen_us);
    unsigned wanted;

    pthread_mutex_lock(&db->lock);
    wanted = ++db->reopens_wanted;
    pthread_cond_signal(&db->wake);
    while ((int)(wanted - db->reopens_done) > 0)
        if (pthread_cond_timedwait(&db->reopened, &db->lock, &until) == ETIMEDOUT)
            break;
    pthread_mutex_unlock(&db->lock);
}
