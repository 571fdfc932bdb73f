#include "server/logs/request_writer.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "server/logs/log.h"
#include "server/logs/request_queue.h"

#define ALL_QUEUES ((size_t)16 << 20) /* bytes, divided among the workers */
#define LEAST_QUEUE ((size_t)1 << 20)
#define MOST_ROWS 16384u /* in one transaction */
#define BOUND_PARTS 16u  /* of the bound: bytes in one transaction, so that its log is short */
#define LEAST_BATCH ((uint64_t)1 << 20)
#define ROW_BYTES 160u /* without its texts, about */
#define COMPLAIN_EVERY_US ((int64_t)10 * 1000000)

/* ---- failures -------------------------------------------------------------------------------- */

uint64_t
request_writer_count_dropped(const struct request_writer *writer)
{
    uint64_t dropped = atomic_load(&writer->lost);

    for (unsigned i = 0; i < writer->queue_count; i++)
        dropped += ring_refused(&writer->queues[i]);
    return dropped;
}

static void
note_failure(struct request_writer *writer, const char *why)
{
    atomic_fetch_add(&writer->errors, 1);
    if (!writer->failing)
        log_error("request database %s: %s; requests wait in memory, and are dropped when that is "
                  "full",
                  writer->path, why);
    writer->failing = true;
}

static void
note_success(struct request_writer *writer)
{
    uint64_t dropped = request_writer_count_dropped(writer);

    if (writer->failing)
        log_info("request database %s is written again; %" PRIu64 " requests dropped so far",
                 writer->path, dropped);
    writer->failing = false;
}

void
request_writer_log_dropped(struct request_writer *writer)
{
    uint64_t dropped = request_writer_count_dropped(writer);
    int64_t now_us = clock_monotonic_us();

    if (dropped == writer->dropped_told || writer->failing ||
        (writer->complained_us && now_us - writer->complained_us < COMPLAIN_EVERY_US))
        return;
    writer->dropped_told = dropped;
    writer->complained_us = now_us;
    log_warning("request database %s: requests came faster than they could be written; %" PRIu64
                " dropped so far",
                writer->path, dropped);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void
close_table(struct request_writer *writer)
{
    if (!request_table_close(writer->table))
        log_error("request database %s: the file was moved away, and rows are left in %s-wal",
                  writer->path, writer->path);
    writer->table = NULL;
}

bool
request_writer_open(struct request_writer *writer, struct buf *why)
{
    writer->table = request_table_open(writer->path, writer->max_bytes, writer->busy_ms, why);
    writer->over = writer->table != NULL;
    return writer->table != NULL;
}

/* True if there is a table to write to. */
static bool
have_table(struct request_writer *writer)
{
    struct buf why;

    if (writer->table)
        return true;
    buf_init(&why, 1024);
    if (!request_writer_open(writer, &why))
        note_failure(writer, buf_str(&why));
    buf_free(&why);
    return writer->table != NULL;
}

struct batch {
    unsigned rows, bad;
    uint64_t bytes;
};

static bool
is_full(const struct request_writer *writer, const struct batch *batch)
{
    uint64_t most = writer->max_bytes / BOUND_PARTS;

    if (most < LEAST_BATCH)
        most = LEAST_BATCH;
    return batch->rows + batch->bad >= MOST_ROWS || (writer->max_bytes && batch->bytes >= most);
}

/* Inserts the requests of one queue. A result code. */
static int
insert_queue(struct request_writer *writer, struct ring *queue, struct batch *batch)
{
    struct request_row row;

    while (!is_full(writer, batch) && request_queue_read(queue, &row)) {
        int rc = request_table_insert(writer->table, &row);

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
write_transaction(struct request_writer *writer, struct batch *batch, uint64_t *removed)
{
    int rc = request_table_begin(writer->table);

    for (unsigned i = 0; rc == SQLITE_OK && i < writer->queue_count; i++)
        rc =
            insert_queue(writer, &writer->queues[(writer->first + i) % writer->queue_count], batch);
    return rc == SQLITE_OK ? request_table_commit(writer->table, removed) : rc;
}

static void
undo(struct request_writer *writer, int rc)
{
    note_failure(writer, request_table_explain(writer->table, rc));
    request_table_rollback(writer->table);
    for (unsigned i = 0; i < writer->queue_count; i++)
        ring_rewind(&writer->queues[i]);
    if (request_table_may_recover(rc))
        return;
    close_table(writer);
}

static bool
is_empty(const struct request_writer *writer)
{
    for (unsigned i = 0; i < writer->queue_count; i++) {
        size_t len;
        bool empty = ring_read(&writer->queues[i], &len) == NULL;

        ring_rewind(&writer->queues[i]);
        if (!empty)
            return false;
    }
    return true;
}

bool
request_writer_write(struct request_writer *writer)
{
    struct batch batch = {0};
    uint64_t removed = 0;
    int rc;

    if ((!writer->table || !writer->over) && is_empty(writer))
        return false;
    if (!have_table(writer))
        return false;
    rc = write_transaction(writer, &batch, &removed);
    if (rc != SQLITE_OK) {
        undo(writer, rc);
        return false;
    }
    for (unsigned i = 0; i < writer->queue_count; i++)
        ring_release(&writer->queues[i]);
    writer->first = (writer->first + 1) % writer->queue_count;
    writer->over = removed != 0;
    atomic_fetch_add(&writer->written, batch.rows);
    atomic_fetch_add(&writer->removed, removed);
    if (batch.bad) {
        atomic_fetch_add(&writer->lost, batch.bad);
        atomic_fetch_add(&writer->errors, 1);
    }
    note_success(writer);
    return is_full(writer, &batch) || removed != 0;
}

void
request_writer_write_last(struct request_writer *writer, int64_t until_us)
{
    const struct timespec pause = {.tv_nsec = 50000000};

    for (;;) {
        bool more, empty;

        do {
            writer->over = false;
            more = request_writer_write(writer);
            empty = is_empty(writer);
        } while (more && !(empty && clock_monotonic_us() > until_us));
        if (empty || clock_monotonic_us() > until_us)
            return;
        nanosleep(&pause, NULL);
    }
}

uint64_t
request_writer_count_unwritten(struct request_writer *writer)
{
    uint64_t count = 0;
    size_t len;

    for (unsigned i = 0; i < writer->queue_count; i++)
        while (ring_read(&writer->queues[i], &len))
            count++;
    return count;
}

/* ---- another file ---------------------------------------------------------------------------- */

/* False if the old file has to be written on, because it does not have all of its rows yet. */
static bool
leave_table(struct request_writer *writer)
{
    int rc = request_table_settle(writer->table);

    if (rc != SQLITE_OK && request_table_may_recover(rc) &&
        request_table_place(writer->table) == REQUEST_MOVED) {
        if (!writer->leaving)
            log_warning("request database %s: the old file is written on until it can take its "
                        "last rows from %s-wal: %s",
                        writer->path, writer->path,
                        (rc & 0xff) == SQLITE_BUSY ? "another process reads it"
                                                   : request_table_explain(writer->table, rc));
        writer->leaving = true;
        writer->leave_us = clock_monotonic_us();
        return false;
    }
    writer->leaving = false;
    close_table(writer);
    return true;
}

bool
request_writer_reopen(struct request_writer *writer)
{
    struct buf why;

    if (writer->table && request_table_place(writer->table) == REQUEST_NAMED) {
        log_info("request database %s stays open, as the file was not moved", writer->path);
        writer->leaving = false;
        return true;
    }
    if (writer->table && !leave_table(writer))
        return false;
    buf_init(&why, 1024);
    if (request_writer_open(writer, &why))
        log_info("request database %s opened again", writer->path);
    else
        note_failure(writer, buf_str(&why));
    buf_free(&why);
    return true;
}

/* ---- start and end --------------------------------------------------------------------------- */

static bool
make_queues(struct request_writer *writer, unsigned workers)
{
    size_t size = ALL_QUEUES;

    while (size > LEAST_QUEUE && size * workers > ALL_QUEUES)
        size /= 2;
    writer->queues = aligned_alloc(_Alignof(struct ring), workers * sizeof(*writer->queues));
    for (unsigned i = 0; writer->queues && i < workers; i++) {
        if (!ring_init(&writer->queues[i], size))
            return false;
        writer->queue_count++;
    }
    return writer->queues != NULL;
}

bool
request_writer_init(struct request_writer *writer, const char *path, uint64_t max_bytes,
                    unsigned workers, int busy_ms)
{
    writer->busy_ms = busy_ms;
    writer->max_bytes = max_bytes;
    writer->path = strdup(path);
    return writer->path && make_queues(writer, workers);
}

void
request_writer_free(struct request_writer *writer)
{
    close_table(writer);
    for (unsigned i = 0; writer->queues && i < writer->queue_count; i++)
        ring_free(&writer->queues[i]);
    free(writer->queues);
    free(writer->path);
}
