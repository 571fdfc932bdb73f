#include "store/store_fill.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "http/known_fields.h"
#include "store/disk_file.h"
#include "store/disk_fill.h"
#include "store/record_fill.h"

#define MOST_READS 256u /* that wait */
#define WATCH_US ((int64_t)5000)
#define WATCH_WRITES_US ((int64_t)100000)
#define MOST_FAILURES 8u

size_t
store_fill_size(void)
{
    return sizeof(struct store_fill);
}

/* ---- the end --------------------------------------------------------------------------------- */

void
disk_fill_free(struct store_fill *fill)
{
    disk_segment_release(fill->segment);
    segments_free(fill->memory);
    shared_release(&fill->review.rules);
    free(fill->kept);
    cache_fill_free(&fill->base);
}

void
disk_fill_send_back(struct store_fill *fill)
{
    record_fill_send_back(&fill->base);
    disk_fill_free(fill);
}

void
disk_fill_tell(const struct store_fill *fill, enum store_count which, const char *what)
{
    const uint64_t count = atomic_fetch_add(&fill->store->counts[which], 1) + 1;

    if ((count & (count - 1)) == 0)
        store_say(fill->store, STORE_WARNING, "segment %016llx: a record %s; %llu since the start",
                  (unsigned long long)fill->segment->number, what, (unsigned long long)count);
}

/* Drops the record from the index. It is on disk still, and a later start finds it unless
 * `outdated`, by marks that are there as well. */
static void
drop(struct store_fill *fill, const struct disk_key *key, bool outdated)
{
    bool was_read;

    if (!outdated)
        disk_hide(fill->store, key->url);
    (void)disk_index_remove(&fill->store->index, key, &fill->place, &was_read);
}

static void
drop_damaged(struct store_fill *fill, const struct disk_key *key)
{
    disk_fill_tell(fill, STORE_DAMAGED, "is damaged, and was dropped");
    drop(fill, key, false);
}

/* ---- what was read --------------------------------------------------------------------------- */

/* The body as it is read: what has come with the head, and the rest from the file. */
struct body_reader {
    const struct store_fill *fill;
    const struct disk_record *record;
    const char *bytes; /* of the record, from its beginning on */
    size_t len;
    char *part; /* memory for one, or NULL */
};

/* The part of the body with that number; NULL if it cannot be read or is damaged. */
static const char *
read_part(struct body_reader *reader, size_t number, size_t len)
{
    const uint64_t seed = reader->fill->segment->seed;
    const uint64_t offset = reader->record->head.head_len + (uint64_t)number * DISK_PART;
    const char *part = reader->bytes + offset;

    if (offset + len > reader->len) {
        if (!reader->part)
            reader->part = malloc(DISK_PART);
        part = reader->part;
        if (!part || disk_read(reader->fill->segment->fd, reader->part, len,
                               (uint64_t)reader->fill->place.offset * DISK_UNIT + offset) !=
                         (ssize_t)len)
            return NULL;
    }
    return disk_part_verify(reader->record, seed, number, part, len) ? part : NULL;
}

/* 0, EIO for a part that cannot be read or is damaged, or another errno. */
static int
append_body(struct store_fill *fill, struct body_reader *reader, const char *first)
{
    uint64_t left = reader->record->head.body_len;
    int error = 0;

    for (size_t number = 0; left && !error; number++) {
        const size_t len = left < DISK_PART ? (size_t)left : DISK_PART;
        const char *part = number ? read_part(reader, number, len) : first;

        error = part ? cache_fill_append(&fill->base, part, len) : EIO;
        left -= len;
    }
    return error;
}

/* The whole body, all of which was read and is verified; NULL if it is damaged. */
static const char *
whole_body(struct body_reader *reader)
{
    const struct disk_head *head = &reader->record->head;
    uint64_t left = head->body_len;

    for (size_t number = 0; left; number++) {
        const size_t len = left < DISK_PART ? (size_t)left : DISK_PART;

        if (!read_part(reader, number, len))
            return NULL;
        left -= len;
    }
    return reader->bytes + head->head_len;
}

/* Is the whole body in memory that the object takes? */
static bool
is_taken(const struct body_reader *reader)
{
    const struct disk_head *head = &reader->record->head;

    return reader->fill->memory && head->body_len >= DISK_FILL_TAKEN &&
           head->body_len <= reader->len - head->head_len;
}

static void
publish(struct store_fill *fill, const struct disk_record *record, struct body_reader *reader,
        int64_t born_us, int64_t lifetime_us)
{
    struct store *store = fill->store;
    const struct disk_head *head = &record->head;
    const struct disk_key key = {head->url_hash, head->variant_hash};
    const size_t first_len = head->body_len < DISK_PART ? (size_t)head->body_len : DISK_PART;
    const bool taken = is_taken(reader);
    const char *first = taken       ? whole_body(reader)
                        : first_len ? read_part(reader, 0, first_len)
                                    : NULL;
    struct object_head own = {.notes = HTTP_KNOWN_SAVED, .account = store->config.account};
    int error;

    /* Nothing is published of a body whose beginning is damaged. */
    if (head->body_len && !first) {
        drop_damaged(fill, &key);
        disk_fill_send_back(fill);
        return;
    }
    if (taken) {
        own.segment = fill->memory;
        own.body = span_of(first, (size_t)head->body_len);
    }
    error = record_fill_head(&fill->base, record, born_us, lifetime_us, &own);
    if (error) {
        disk_fill_send_back(fill);
        return;
    }
    if (taken)
        fill->memory = NULL;
    else
        error = append_body(fill, reader, first);
    if (error) {
        if (error == EIO)
            drop_damaged(fill, &key);
        cache_fill_fail(&fill->base, store->config.failure,
                        "a part of the stored response cannot be read", NULL, NULL);
    } else {
        store_add(store, STORE_HITS, 1);
        cache_fill_finish(&fill->base, head->body_len <= fill->most, head->fetch_us, born_us,
                          lifetime_us);
    }
    disk_fill_free(fill);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Moves the fill of a URL that varies to the variant that the request selects. True if that is the
 * record's. */
static bool
move_to_variant(struct store_fill *fill, const struct disk_record *record)
{
    struct buf variant;
    bool is_same;

    buf_init(&variant, OBJECT_MAX_VARIANT);
    is_same = record_fill_vary(&fill->base, record, fill->fields,
                               &variant) &&
              span_equal(buf_span(&variant), record->variant);
    buf_free(&variant);
    return is_same;
}

/* What was read is not used any more: it is outdated, or the options in force do not allow it. */
static void
drop_record(struct store_fill *fill, const struct disk_record *record, bool outdated)
{
    const struct disk_key key = {record->head.url_hash, record->head.variant_hash};

    store_add(fill->store, STORE_MISSES, 1);
    drop(fill, &key, outdated && disk_noter_has_all(fill->store));
    disk_fill_send_back(fill);
}

void
disk_fill_use(struct store_fill *fill, const char *bytes, size_t len)
{
    struct store *store = fill->store;
    const struct object *name = fill->base.object;
    const struct disk_key asked = store_key(store, object_url(name), object_variant(name));
    struct disk_record record;
    struct body_reader reader = {.fill = fill, .record = &record, .bytes = bytes, .len = len};
    const struct disk_now now = store_now(store);
    enum mark_verdict verdict;
    enum http_reason refusal;
    int64_t expired_us = 0, born_us, lifetime_us;

    if (!disk_head_read(bytes, len, fill->segment->seed, &record)) {
        drop_damaged(fill, &asked);
        disk_fill_send_back(fill);
        return;
    }
    if (!record_fill_is_wanted(&fill->base, &record)) {
        store_add(store, STORE_MISSES, 1);
        disk_fill_send_back(fill);
        return;
    }
    verdict = disk_marks_find(&store->marks, &record, &expired_us);
    if (verdict == MARKED_PURGED) {
        drop_record(fill, &record, true);
        return;
    }
    if (!span_equal(record.variant, object_variant(name)) && !move_to_variant(fill, &record)) {
        disk_fill_send_back(fill);
        return;
    }
    refusal = record_fill_times(&fill->review, &record, &now,
                                verdict == MARKED_EXPIRED ? expired_us : INT64_MAX, &born_us,
                                &lifetime_us);
    if (refusal == HTTP_REASON_MEMORY) {
        disk_fill_send_back(fill);
        return;
    }
    if (refusal) {
        drop_record(fill, &record, false);
        return;
    }
    publish(fill, &record, &reader, born_us, lifetime_us);
    free(reader.part);
}

static ssize_t
read_into_memory(struct store_fill *fill, size_t size, uint64_t at)
{
    segments_free(fill->memory);
    fill->memory = segment_make(size, 1, &fill->bytes);
    return fill->memory ? disk_read(fill->segment->fd, fill->bytes, size, at) : -1;
}

/* The head may be longer than what the index says of short records. */
static ssize_t
read_record(struct store_fill *fill)
{
    const uint64_t at = (uint64_t)fill->place.offset * DISK_UNIT;
    size_t size = fill->place.length < DISK_FILL_FIRST ? fill->place.length : DISK_FILL_FIRST;
    struct disk_head head;
    ssize_t n;

    n = read_into_memory(fill, size, at);
    if (n < (ssize_t)sizeof(head))
        return n;
    memcpy(&head, fill->bytes, sizeof(head));
    if (head.magic == DISK_RECORD_MAGIC && head.head_len > (size_t)n &&
        head.head_len <= DISK_HEAD_MAX + DISK_FILL_FIRST)
        n = read_into_memory(fill, head.head_len, at);
    return n;
}

/* The disk is slow, or fails. Under the lock. */
static void
set_sick(struct store *store, const char *why)
{
    if (atomic_load(&store->sick))
        return;
    store_say(store, STORE_WARNING, "%s: it is not used until a probe succeeds", why);
    store->probed_us = clock_monotonic_us();
    store->watches = true;
    atomic_store(&store->sick, true);
    pthread_cond_signal(&store->watch_wake);
}

/* Under the lock. */
static void
note_read(struct store *store, bool failed)
{
    const unsigned failures = failed ? atomic_load(&store->failures) + 1 : 0;

    atomic_store(&store->failures, failures);
    if (failures >= MOST_FAILURES)
        set_sick(store, "reads fail");
}

void
disk_fill_note_read(struct store *store, bool failed)
{
    if (!failed && atomic_load(&store->failures) == 0)
        return;
    pthread_mutex_lock(&store->reads_lock);
    note_read(store, failed);
    pthread_mutex_unlock(&store->reads_lock);
}

/* Under the lock. */
static void
note_late(struct store *store)
{
    store_add(store, STORE_READ_LATE, 1);
    set_sick(store, "a read takes too long");
}

void
disk_fill_note_late(struct store *store)
{
    pthread_mutex_lock(&store->reads_lock);
    note_late(store);
    pthread_mutex_unlock(&store->reads_lock);
}

void
disk_fill_note_slow(struct store *store, int64_t started_us, int64_t now_us, bool *counts)
{
    const bool slow = started_us <= now_us - store->config.late_us / 2;

    if (slow && !*counts)
        atomic_fetch_add(&store->slow, 1);
    else if (!slow && *counts)
        atomic_fetch_sub(&store->slow, 1);
    *counts = slow;
}

bool
disk_fill_is_late(struct store *store, int64_t started_us, int64_t now_us)
{
    return now_us - started_us >= store->config.late_us || atomic_load(&store->sick);
}

/* The fill has been read, or that has failed. False: it was given up meanwhile. */
static bool
end_read(struct store_fill *fill, bool failed)
{
    struct store *store = fill->store;
    bool wanted;

    pthread_mutex_lock(&store->reads_lock);
    wanted = fill->stage != FILL_IS_LATE;
    if (wanted)
        TAILQ_REMOVE(&store->active, fill, active);
    note_read(store, failed);
    pthread_mutex_unlock(&store->reads_lock);
    return wanted;
}

static void
run(struct store_fill *fill)
{
    const ssize_t n = read_record(fill);

    if (n < 0)
        disk_fill_tell(fill, STORE_READ_ERRORS, "cannot be read");
    else
        store_add(fill->store, STORE_READ_BY_THREAD, 1);
    if (!end_read(fill, n < 0))
        disk_fill_free(fill);
    else if (n < 0)
        disk_fill_send_back(fill);
    else
        disk_fill_use(fill, fill->bytes, (size_t)n);
}

/* Under the lock. */
static struct store_fill *
take_read(struct store *store)
{
    struct store_fill *fill = STAILQ_FIRST(&store->reads);

    if (fill) {
        STAILQ_REMOVE_HEAD(&store->reads, link);
        store->read_count--;
        fill->stage = FILL_READS;
    }
    return fill;
}

/*
 * Does the disk answer soon? A write and its sync do not find it in the kernel's memory; whether
 * they succeed does not matter here. Under the lock, which is released meanwhile.
 */
static void
probe(struct store *store)
{
    const int64_t begun_us = store_now_us(store);
    const char byte = 0;
    int64_t us;

    store->probe = PROBE_RUNS;
    pthread_mutex_unlock(&store->reads_lock);
    if (pwrite(store->lock, &byte, 1, 0) == 1)
        (void)fdatasync(store->lock);
    us = store_now_us(store) - begun_us;
    pthread_mutex_lock(&store->reads_lock);
    store->probe = PROBE_NONE;
    store->probed_us = clock_monotonic_us();
    if (us >= store->config.late_us)
        return;
    atomic_store(&store->failures, 0);
    if (atomic_exchange(&store->sick, false))
        store_say(store, STORE_INFO, "the disk answers again");
}

void *
store_reader_run(void *context)
{
    struct store *store = context;

    memory_set_relief(false);
    pthread_mutex_lock(&store->reads_lock);
    for (;;) {
        struct store_fill *fill = take_read(store);

        if (!fill && store->readers_stop)
            break;
        if (!fill && store->probe == PROBE_WANTED) {
            probe(store);
            continue;
        }
        if (!fill) {
            pthread_cond_wait(&store->reads_wake, &store->reads_lock);
            continue;
        }
        pthread_mutex_unlock(&store->reads_lock);
        run(fill);
        pthread_mutex_lock(&store->reads_lock);
    }
    pthread_mutex_unlock(&store->reads_lock);
    return NULL;
}

/* ---- the watcher ----------------------------------------------------------------------------- */

/*
 * Gives up the reads that take too long: their requests look up again, and go to the origin. A
 * thread that hangs in one frees it when it returns. Under the lock.
 */
static void
give_up_late(struct store *store, int64_t now_us)
{
    struct store_fill *fill;

    while ((fill = TAILQ_FIRST(&store->active)) &&
           disk_fill_is_late(store, fill->started_us, now_us)) {
        TAILQ_REMOVE(&store->active, fill, active);
        note_late(store);
        if (fill->stage == FILL_WAITS) {
            STAILQ_REMOVE(&store->reads, fill, store_fill, link);
            store->read_count--;
            disk_fill_send_back(fill);
        } else {
            fill->stage = FILL_IS_LATE;
            record_fill_send_back(&fill->base);
        }
    }
    disk_fill_note_slow(store, fill ? fill->started_us : INT64_MAX, now_us, &store->active_slow);
}

static void
want_probe(struct store *store)
{
    if (store->probe != PROBE_NONE || !atomic_load(&store->sick) ||
        clock_monotonic_us() - store->probed_us < store->config.retry_us)
        return;
    store->probe = PROBE_WANTED;
    pthread_cond_signal(&store->reads_wake);
}

/* Has this write, which has begun then, just been found to take too long? */
static bool
gets_stuck(struct store *store, int64_t since_us, int64_t now_us)
{
    if (!since_us || since_us == store->stuck_us || now_us - since_us < store->config.stuck_us)
        return false;
    store->stuck_us = since_us;
    return true;
}

/* Under the lock, which is released meanwhile if the noter is at the disk. */
static void
watch_writes(struct store *store)
{
    const bool opens = store_stage(store) == STORE_OPENING; /* nothing is read of it */
    const int64_t noting_us = atomic_load(&store->noting_us);

    if (noting_us) {
        pthread_mutex_unlock(&store->reads_lock);
        disk_noter_answer_late(store);
        pthread_mutex_lock(&store->reads_lock);
    }
    atomic_store(&store->watches_writes, false);
    if (atomic_load(&store->writing_us) || atomic_load(&store->noting_us))
        atomic_store(&store->watches_writes, true);
    if (gets_stuck(store, atomic_load(&store->writing_us), store_now_us(store)))
        set_sick(store, "a page takes too long to be written");
    if (!opens && gets_stuck(store, noting_us, store_now_us(store)))
        set_sick(store, "a purge takes too long to be noted");
}

void *
store_watcher_run(void *context)
{
    struct store *store = context;

    pthread_mutex_lock(&store->reads_lock);
    while (watch_writes(store), !store->watcher_stops) {
        const int64_t next_us = store->watches ? WATCH_US : WATCH_WRITES_US;
        const struct timespec until = clock_timespec(clock_monotonic_us() + next_us);

        give_up_late(store, store_now_us(store));
        want_probe(store);
        store->watches = !TAILQ_EMPTY(&store->active) || atomic_load(&store->sick);
        if (store->watches || atomic_load(&store->watches_writes))
            pthread_cond_timedwait(&store->watch_wake, &store->reads_lock, &until);
        else
            pthread_cond_wait(&store->watch_wake, &store->reads_lock);
    }
    pthread_mutex_unlock(&store->reads_lock);
    return NULL;
}

/* ---- the queue ------------------------------------------------------------------------------- */

/* Behind those that were begun earlier: a ring may have tried this one before. Under the lock. */
static void
insert_active(struct store *store, struct store_fill *fill)
{
    struct store_fill *before = TAILQ_LAST(&store->active, active_fills);

    while (before && before->started_us > fill->started_us)
        before = TAILQ_PREV(before, active_fills, active);
    if (before)
        TAILQ_INSERT_AFTER(&store->active, before, fill, active);
    else
        TAILQ_INSERT_HEAD(&store->active, fill, active);
}

bool
disk_fill_enqueue(struct store_fill *fill)
{
    struct store *store = fill->store;
    bool takes;

    pthread_mutex_lock(&store->reads_lock);
    takes = store->read_count < MOST_READS && !store->readers_stop && !atomic_load(&store->sick);
    if (takes) {
        if (!fill->started_us)
            fill->started_us = store_now_us(store);
        fill->stage = FILL_WAITS;
        STAILQ_INSERT_TAIL(&store->reads, fill, link);
        insert_active(store, fill);
        store->read_count++;
        pthread_cond_signal(&store->reads_wake);
        if (!store->watches) {
            store->watches = true;
            pthread_cond_signal(&store->watch_wake);
        }
    }
    pthread_mutex_unlock(&store->reads_lock);
    if (!takes)
        store_add(store, STORE_READ_REFUSED, 1);
    return takes;
}

bool
disk_fill_is_whole(const char *bytes, size_t len)
{
    struct disk_head head;

    if (len < sizeof(head))
        return false;
    memcpy(&head, bytes, sizeof(head));
    return head.magic == DISK_RECORD_MAGIC && head.body_len <= len &&
           head.head_len <= len - head.body_len;
}
