/* The writer: appends what is offered, makes space, and syncs. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "store/disk_file.h"
#include "store/disk_store.h"

#define MOST_PLACED 8192u
#define LOCK_US ((int64_t)50000)   /* between two attempts */
#define JOURNAL_TRIES 3u           /* the process that has it may begin another one meanwhile */
#define CLOSE_US ((int64_t)1000000) /* between two looks for removed segments to be closed */
#define SLACK_SHARE 256             /* of the store, for marks before the journal begins anew */
#define MOST_SLACK ((uint64_t)16 << 20)
#define REINSERTED_SHARE 2          /* of a segment: one half is written again at most */

/* A record that has been appended: in the index when its bytes are written. */
struct offer_placed {
    struct disk_key key;
    struct disk_place place;
    struct offer *offer; /* NULL: reinserted, from `from` */
    struct disk_place from;
};

/* ---- the queue ------------------------------------------------------------------------------- */

static void
free_offer(struct store *store, struct offer *offer)
{
    disk_count_offer(store, offer->object, -1);
    object_release(&offer->object);
    free(offer);
}

static struct offer *
take_first(struct store *store)
{
    struct offer *offer = STAILQ_FIRST(&store->offers);

    STAILQ_REMOVE_HEAD(&store->offers, link);
    store->offer_count--;
    store->offered_bytes -= object_length(offer->object);
    return offer;
}

/* The next offer, or NULL after this time, or when the writer is to look or to stop. */
static struct offer *
take_offer(struct store *store, int64_t wait_us)
{
    const struct timespec until = clock_timespec(clock_monotonic_us() + wait_us);
    struct offer *offer = NULL;
    int error = 0;

    pthread_mutex_lock(&store->offers_lock);
    while (STAILQ_EMPTY(&store->offers) && !store->writer_stops && !store->writer_looks &&
           error != ETIMEDOUT) {
        store->writer_busy = store->placed_count != 0;
        if (!store->writer_busy)
            pthread_cond_broadcast(&store->offers_idle);
        error = pthread_cond_timedwait(&store->offers_wake, &store->offers_lock, &until);
    }
    if (!STAILQ_EMPTY(&store->offers) && (!store->writer_looks || store->writer_stops)) {
        offer = take_first(store);
        store->writer_busy = true;
    }
    pthread_mutex_unlock(&store->offers_lock);
    return offer;
}

static void
drop_offers(struct store *store)
{
    pthread_mutex_lock(&store->offers_lock);
    while (!STAILQ_EMPTY(&store->offers))
        free_offer(store, take_first(store));
    store->writer_busy = false;
    pthread_cond_broadcast(&store->offers_idle);
    pthread_mutex_unlock(&store->offers_lock);
}

/* ---- what was appended ----------------------------------------------------------------------- */

/* Is the object purged, as far as is known? Under `order`. */
static bool
is_purged(struct store *store, const struct offer *offer)
{
    const struct disk_record record = {
        .head.position = offer->position,
        .url = object_url(offer->object),
        .tags = object_tags(offer->object),
    };
    int64_t us;

    return disk_marks_find(&store->marks, &record, &us) == MARKED_PURGED;
}

/*
 * The object is not written: what it takes the place of is not used any more. On a disk that cannot
 * be written to the journal cannot either, so no mark is noted.
 */
static void
outdate_replaced(struct store *store, const struct offer *offer)
{
    const struct span url = object_url(offer->object), variant = object_variant(offer->object);

    if (disk_offered(store, url, variant) > 1 || store_replaces(store, url, variant) ||
        disk_has_hidden(store, url))
        disk_outdate(store, url, offer->position, !store->write_error);
}

static void
settle_one(struct store *store, struct offer_placed *placed, bool written)
{
    if (!placed->offer) {
        if (!written)
            disk_hide(store, placed->key.url);
        if (written &&
            disk_index_move(&store->index, &placed->key, &placed->from, &placed->place))
            store_add(store, STORE_REINSERTED, 1);
        return;
    }
    pthread_mutex_lock(&store->order);
    if (written && !is_purged(store, placed->offer) &&
        disk_index_put(&store->index, &placed->key, &placed->place, false))
        store_add(store, STORE_WRITTEN, 1);
    else
        disk_hide(store, placed->key.url);
    pthread_mutex_unlock(&store->order);
    if (!written)
        outdate_replaced(store, placed->offer);
    free_offer(store, placed->offer);
}

static void
settle(struct store *store, bool written)
{
    for (size_t i = 0; i < store->placed_count; i++)
        settle_one(store, &store->placed[i], written);
    store->placed_count = 0;
}

/* Writing has failed: the open segment is left as it is. */
static void
fail(struct store *store, int error)
{
    store_add(store, STORE_WRITE_ERRORS, 1);
    if (!store->write_error)
        store_say(store, STORE_ERROR, "pages cannot be written: %s", strerror(error));
    store->write_error = error;
    store->wants_space = error == ENOSPC;
    store->written_us = 0;
    settle(store, false);
    disk_log_abandon(&store->log);
    store->retry_us = clock_monotonic_us() + store->config.retry_us;
}

static bool
flush(struct store *store)
{
    int error = disk_log_flush(&store->log);

    if (error)
        fail(store, error);
    else
        settle(store, true);
    return !error;
}

static void
sync_log(struct store *store)
{
    int error;

    if (!flush(store))
        return;
    error = disk_log_sync(&store->log);
    if (error) {
        fail(store, error);
        return;
    }
    store->written_us = 0;
    if (store->write_error)
        store_say(store, STORE_INFO, "pages are written again");
    store->write_error = 0;
}

/* ---- space ----------------------------------------------------------------------------------- */

static struct disk_place
place_of(const struct disk_segment *segment, const struct disk_listed *listed)
{
    return (struct disk_place){.segment = segment->id, .offset = listed->offset};
}

/* Appends a record of an old segment as it is read, with the seed of the open one. */
static bool
reinsert(struct store *store, const struct disk_segment *segment, const struct disk_listed *listed)
{
    const size_t len = (size_t)listed->length * DISK_UNIT;
    const uint64_t position = atomic_fetch_add(&store->position, 1);
    const struct disk_key key = {listed->url_hash, listed->variant_hash};
    struct disk_record record;
    struct disk_place place;
    int64_t us;
    char *bytes;
    int error;

    if (!disk_log_has_space(&store->log, len) || store->placed_count == MOST_PLACED)
        return false;
    bytes = malloc(len);
    if (!bytes ||
        disk_read(segment->fd, bytes, len, (uint64_t)listed->offset * DISK_UNIT) != (ssize_t)len ||
        !disk_head_read(bytes, len, segment->seed, &record) ||
        disk_marks_find(&store->marks, &record, &us) != MARKED_NOT ||
        !disk_record_reseal(bytes, len, segment->seed, store->log.head->seed, position,
                            &record)) {
        free(bytes);
        return false;
    }
    disk_log_list(&store->log, &key, position, len, &place);
    store->placed[store->placed_count++] =
        (struct offer_placed){.key = key, .place = place, .from = place_of(segment, listed)};
    error = disk_log_append(&store->log, bytes, len);
    free(bytes);
    if (error)
        fail(store, error);
    return !error;
}

/* Has the cache the object of this record? Then it is requested, whether or not the store is. */
static bool
is_cached(struct store *store, const struct disk_segment *segment, const struct disk_listed *listed)
{
    char bytes[4096];
    const ssize_t n = disk_read(segment->fd, bytes, sizeof(bytes),
                                (uint64_t)listed->offset * DISK_UNIT);
    struct cache_peeked peeked = {.object = NULL};
    struct disk_record record;
    struct cache_key key;
    bool cached;

    if (n <= 0 || !disk_head_read(bytes, (size_t)n, segment->seed, &record))
        return false;
    key = cache_key_of_variant(record.url, record.variant);
    cache_peek(store->config.cache, &key, store_now_us(store), &peeked);
    cached = peeked.object && !peeked.varies;
    object_release(&peeked.object);
    return cached;
}

/* Is the record in use, and was it requested since it was written? */
static bool
is_requested(struct store *store, const struct disk_segment *segment,
             const struct disk_listed *listed)
{
    const struct disk_key key = {listed->url_hash, listed->variant_hash};
    const struct disk_place place = place_of(segment, listed);
    bool was_read;

    return disk_index_is_at(&store->index, &key, &place, &was_read) &&
           (was_read || is_cached(store, segment, listed));
}

/* Writes again what was requested of the segment, as far as there is space for it. */
static void
reinsert_requested(struct store *store, const struct disk_segment *segment,
              const struct disk_listed *listed, size_t count)
{
    uint64_t left = segment->size / REINSERTED_SHARE / DISK_UNIT;

    for (size_t i = 0; i < count; i++) {
        if (listed[i].length <= left && is_requested(store, segment, &listed[i]) &&
            reinsert(store, segment, &listed[i]))
            left -= listed[i].length;
    }
    flush(store);
}

void
disk_note_oldest(struct store *store)
{
    const struct disk_segment *oldest = TAILQ_FIRST(&store->log.segments);
    const uint64_t number = oldest ? oldest->number : UINT64_MAX;
    const bool gone = disk_log_sync_names(&store->log) == 0 && !store->log.left;

    if (gone)
        atomic_store(&store->oldest, number);
    else if (!atomic_load(&store->unlisted) || atomic_load(&store->oldest))
        disk_note_removal(store);
}

void
disk_note_removal(struct store *store)
{
    atomic_store(&store->unlisted, atomic_load(&store->position));
    atomic_store(&store->oldest, 0);
}

/* Removes what the index has of a segment. */
static void
forget_listed(struct store *store, const struct disk_segment *segment,
              const struct disk_listed *listed, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct disk_key key = {listed[i].url_hash, listed[i].variant_hash};
        const struct disk_place place = place_of(segment, &listed[i]);
        bool was_read;

        if (disk_index_remove(&store->index, &key, &place, &was_read))
            store_add(store, STORE_EVICTED, 1);
    }
}

/* Segments were removed. From when that is on disk on a later start finds nothing of them. */
static void
note_removed(struct store *store)
{
    disk_note_oldest(store);
    disk_marks_forget(&store->marks, disk_log_least(&store->log));
}

/*
 * Removes what was left at the start, of which a later one may find what has been replaced since,
 * or else the oldest segment. What was read of that is written to the open one, `again`. False:
 * there is none. note_removed() is to follow.
 */
static bool
evict_segment(struct store *store, bool again)
{
    struct disk_segment *oldest = TAILQ_FIRST(&store->log.segments);
    struct disk_listed *listed;
    size_t count = 0;

    if (disk_log_remove_left(&store->log))
        return true;
    if (!oldest)
        return false;
    listed = disk_segment_footer(oldest, &count);
    if (listed && again)
        reinsert_requested(store, oldest, listed, count);
    /* A later start may find what the index does not lead to any more. */
    disk_note_removal(store);
    if (listed)
        forget_listed(store, oldest, listed, count);
    if (!listed)
        disk_index_remove_segment(&store->index, oldest->id);
    free(listed);
    disk_log_remove(&store->log, oldest);
    return true;
}

/* Could this many more segments exceed a bound? */
static bool
is_full(struct store *store, unsigned more)
{
    return store->log.segment_count + more > store->log.most_segments ||
           atomic_load(&store->log.bytes) + atomic_load(&store->journal_most) +
               more * store->log.segment_bytes >
           store->log.max_bytes;
}

/* Removes the oldest segments until there is space for this many more. */
static void
evict_segments(struct store *store, unsigned more)
{
    bool removed = false;

    while (is_full(store, more) && evict_segment(store, false))
        removed = true;
    if (removed)
        note_removed(store);
}

static void
look(struct store *store)
{
    if (flush(store))
        evict_segments(store, 0);
    pthread_mutex_lock(&store->offers_lock);
    store->writer_looks = false;
    pthread_cond_broadcast(&store->offers_looked);
    pthread_mutex_unlock(&store->offers_lock);
}

/* Begins a segment. */
static bool
begin_segment(struct store *store)
{
    int error = 0;

    if (!flush(store))
        return false;
    error = disk_log_end(&store->log);
    if (!error) {
        evict_segments(store, 1);
        error = disk_log_begin(&store->log, atomic_fetch_add(&store->position, 1));
        disk_note_oldest(store);
    }
    if (error)
        fail(store, error);
    return !error;
}

/* When a segment is begun, the one that has to be removed next is, while there is space for what is
 * written again of it. */
static void
evict_next(struct store *store)
{
    bool removed = false;

    while (store->log.head && is_full(store, 2) &&
           TAILQ_FIRST(&store->log.segments) != store->log.head)
        removed = evict_segment(store, true) || removed;
    if (removed)
        note_removed(store);
}

/* Space for a record. */
static bool
make_space(struct store *store, uint64_t length)
{
    /* Where the file system is full, though the store is not, the store gets smaller, until the
     * next start. */
    if (store->wants_space && (store->log.left || !TAILQ_EMPTY(&store->log.segments))) {
        store->log.max_bytes =
            atomic_load(&store->log.bytes) + atomic_load(&store->journal_most);
        if (evict_segment(store, false))
            note_removed(store);
    }
    store->wants_space = false;
    while (!disk_log_has_space(&store->log, length)) {
        if (!begin_segment(store))
            return false;
        evict_next(store);
        if (!store->log.head)
            return false;
    }
    return true;
}

/* ---- records --------------------------------------------------------------------------------- */

static struct disk_head
head_of(const struct store *store, const struct offer *offer, const struct disk_key *key)
{
    const struct object *object = offer->object;
    const int64_t age_us = object_age(object, store_now_us(store));

    return (struct disk_head){
        .body_len = object_length(object),
        .position = offer->position,
        .url_hash = key->url,
        .variant_hash = key->variant,
        .born_wall_us = store_wall_us(store) - age_us,
        .born_us = object->fetched_us,
        .boot = store->boot,
        .lifetime = atomic_load_explicit(&object->lifetime, memory_order_relaxed),
        .fetch_us = object->fetch_us,
        .notes = object->notes,
        .url_len = object->url_len,
        .variant_len = object->variant_len,
        .names_len = (uint32_t)offer->names_len,
        .fields_len = object->fields_len,
        .tags_len = object->tags_len,
        .status = object->status,
    };
}

static int
append_body(struct disk_log *log, const struct object *object, size_t padding)
{
    static const char zeros[DISK_UNIT];
    struct object_place place = {0};
    struct span run;
    int error = 0;

    while (!error && (run = object_read(object, &place), run.len))
        error = disk_log_append(log, run.ptr, run.len);
    return error ? error : disk_log_append(log, zeros, padding);
}

/* Appends an object; the offer is the list's of those that are placed, or freed. */
static void
write_offer(struct store *store, struct offer *offer)
{
    const struct disk_key key =
        store_key(store, object_url(offer->object), object_variant(offer->object));
    struct disk_head head = head_of(store, offer, &key);
    const uint64_t length = disk_record_len(&head);
    const struct disk_record texts = {
        .url = object_url(offer->object),
        .variant = object_variant(offer->object),
        .names = span_of(offer->names, offer->names_len),
        .fields = object_fields(offer->object),
        .tags = object_tags(offer->object),
    };
    struct disk_place place;
    char *bytes;
    int error;

    bytes = clock_monotonic_us() >= store->retry_us && length <= disk_log_largest(&store->log) &&
                    make_space(store, length)
                ? malloc(disk_head_len(&head))
                : NULL;
    if (!bytes) {
        store_add(store, STORE_WRITE_REFUSED, 1);
        outdate_replaced(store, offer);
        free_offer(store, offer);
        return;
    }
    disk_head_write(bytes, store->log.head->seed, &head, &texts, offer->object);
    disk_log_list(&store->log, &key, offer->position, length, &place);
    store->placed[store->placed_count++] =
        (struct offer_placed){.key = key, .place = place, .offer = offer};
    error = disk_log_append(&store->log, bytes, head.head_len);
    free(bytes);
    if (!error)
        error = append_body(&store->log, offer->object,
                            (size_t)(length - head.head_len - head.body_len));
    if (!store->written_us)
        store->written_us = clock_monotonic_us();
    if (error)
        fail(store, error);
    else if (store->placed_count == MOST_PLACED)
        flush(store);
}

/* ---- the thread ------------------------------------------------------------------------------ */

struct segment_names {
    struct store *store;
    size_t size;
    bool failed;
};

static void
note_segment(void *context, uint64_t number)
{
    struct segment_names *names = context;
    struct store *store = names->store;

    if (store->number_count == names->size) {
        size_t size = names->size ? 2 * names->size : 256;
        uint64_t *grown = realloc(store->numbers, size * sizeof(*grown));

        names->failed = names->failed || !grown;
        if (!grown)
            return;
        store->numbers = grown;
        names->size = size;
    }
    store->numbers[store->number_count++] = number;
}

static int
compare_numbers(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The names of the segments, ascending. */
static int
list_segments(struct store *store)
{
    struct segment_names names = {.store = store};
    int error = disk_list(store->folder, "segment", note_segment, &names);

    if (!error && names.failed)
        error = ENOMEM;
    if (store->number_count)
        qsort(store->numbers, store->number_count, sizeof(*store->numbers), compare_numbers);
    return error;
}

/* Nothing of what is there may be used. */
static void
remove_all(struct store *store, enum journal_found found)
{
    if (found == JOURNAL_OTHER) {
        store_say(store, STORE_WARNING,
                  "rules about keys, tags or storing, or origins, have changed: all %zu segments "
                  "are removed",
                  store->number_count);
    } else {
        store_add(store, STORE_DAMAGED, 1);
        store_say(store, STORE_ERROR,
                  "the journal is damaged, and with it what was purged: all %zu segments are "
                  "removed",
                  store->number_count);
    }
    for (size_t i = 0; i < store->number_count; i++)
        disk_log_unlink(&store->log, store->numbers[i]);
    store->number_count = 0;
}

/* Makes space on a full disk, for the journal; false if there is no segment. */
static bool
remove_oldest(struct store *store)
{
    if (!store->number_count || !disk_unlink(store->folder, "segment", store->numbers[0]))
        return false;
    store_add(store, STORE_WRITE_ERRORS, 1);
    store_say(store, STORE_WARNING, "the disk is full: segment %016llx is removed for the journal",
              (unsigned long long)store->numbers[0]);
    store->number_count--;
    memmove(store->numbers, store->numbers + 1, store->number_count * sizeof(*store->numbers));
    return true;
}

static int
open_journal(struct store *store, enum journal_found *found)
{
    int error;

    store->journal.folder = store->folder;
    store->journal.now = store_now(store);
    store->journal.slack = store->config.max_bytes / SLACK_SHARE < MOST_SLACK
                               ? store->config.max_bytes / SLACK_SHARE
                               : MOST_SLACK;
    store->journal.bytes = &store->journal_bytes;
    do
        error = disk_journal_open(&store->journal, store->config.terms, &store->marks,
                                  &store->identity, found);
    while (error == ENOSPC && remove_oldest(store));
    atomic_store(&store->journal_most, disk_journal_most(&store->journal));
    return error;
}

/* Reads journal and names of segments: 0 or an errno. The lock is held. */
static int
open_files(struct store *store)
{
    enum journal_found found;
    int error = list_segments(store);

    if (!error)
        error = open_journal(store, &found);
    if (!error && !disk_log_init(&store->log, store->folder, &store->identity,
                                 store->config.max_bytes))
        error = ENOMEM;
    if (error)
        return error;
    store->log.direct = store->config.rings != NULL;
    /* Segments without a journal are those of a store whose journal was removed. */
    if (found != JOURNAL_READ && (found == JOURNAL_LOST || store->number_count))
        remove_all(store, found);
    return disk_noter_begin(store) ? 0 : ECANCELED;
}

/* Another process has the store: could the journal be read? 0 or an errno. */
static int
look_at_journal(struct store *store)
{
    struct disk_identity identity;
    enum journal_found found;
    struct disk_marks marks;
    int error = ENOENT;

    store->journal.folder = store->folder;
    store->journal.now = store_now(store);
    disk_marks_init(&marks);
    for (unsigned i = 0; error == ENOENT && i < JOURNAL_TRIES; i++)
        error = disk_journal_read(&store->journal, &marks, &identity, &found);
    disk_marks_free(&marks);
    return error == ENOENT ? 0 : error;
}

/* Until another process has left the store: 0, ECANCELED if the writer is to stop, ETIMEDOUT. */
static int
await_lock(struct store *store)
{
    const int64_t until_us = clock_monotonic_us() + store->config.waits_us;

    while (flock(store->lock, LOCK_EX | LOCK_NB) != 0) {
        const struct timespec pause = clock_timespec(LOCK_US);

        if (disk_writer_is_to_stop(store))
            return ECANCELED;
        if (clock_monotonic_us() >= until_us)
            return ETIMEDOUT;
        nanosleep(&pause, NULL);
    }
    return 0;
}

/* What is purged without a journal must not be found by the next start. False: some may be there
 * still. */
static bool
give_up_segments(struct store *store)
{
    bool all;

    /* The list may be what has failed. */
    store->number_count = 0;
    all = list_segments(store) == 0;
    while (store->number_count)
        all = disk_unlink(store->folder, "segment", store->numbers[--store->number_count]) && all;
    return all && fsync(store->folder) == 0;
}

/* Tells store_open(), if that waits still. */
static bool
tell_opened(struct store *store, int error)
{
    bool told;

    pthread_mutex_lock(&store->offers_lock);
    told = store->opens_now;
    store->has_opened = true;
    store->open_error = error;
    pthread_cond_broadcast(&store->offers_idle);
    pthread_mutex_unlock(&store->offers_lock);
    return told;
}

int
disk_writer_await(struct store *store)
{
    const struct timespec until =
        clock_timespec(clock_monotonic_us() + store->config.opens_us);
    int late = 0, error;

    pthread_mutex_lock(&store->offers_lock);
    while (!store->has_opened && late != ETIMEDOUT)
        late = pthread_cond_timedwait(&store->offers_idle, &store->offers_lock, &until);
    error = store->has_opened ? store->open_error : 0;
    if (!store->has_opened)
        store_say(store, STORE_WARNING, "the disk does not answer: it is opened when it does");
    store->opens_now = false;
    pthread_mutex_unlock(&store->offers_lock);
    return error;
}

static bool
begin(struct store *store)
{
    const bool waits = store->config.waits_us != 0;
    bool locked, gone;
    int error;

    disk_begin_write(store, &store->noting_us); /* purges wait for what follows, too */
    error = waits ? look_at_journal(store) : 0;
    /* Nothing is taken from the other process then. */
    if (waits && tell_opened(store, error) && error)
        return false;
    error = waits ? await_lock(store) : 0;
    locked = !error;
    if (locked)
        error = open_files(store);
    if ((!waits && tell_opened(store, error)) || !error)
        return !error;
    if (store_stage(store) == STORE_LEFT)
        return false;
    gone = locked ? give_up_segments(store) : error == ETIMEDOUT;
    if (gone && !locked) {
        store_say(store, STORE_ERROR,
                  "another process does not leave it: it is not used, and what is purged from now "
                  "on may be found again by a later start");
    } else if (locked) {
        store_say(store, STORE_ERROR, "it cannot be opened, and is not used: %s%s%s; %s",
                  store->journal.bad, store->journal.bad[0] ? ": " : "", disk_strerror(error),
                  gone ? "its segments are removed"
                       : "its segments cannot be removed: a later start may find what is purged");
    }
    disk_noter_leave(store, gone);
    return false;
}

/* What is appended is written, and found, as soon as nothing else is to be appended. */
static int64_t
time_to_wait(const struct store *store)
{
    if (store->placed_count)
        return 0;
    if (store->written_us)
        return store->config.sync_us;
    return disk_log_has_unclosed(&store->log) ? CLOSE_US : (int64_t)60 * 1000000;
}

static void
write_offers(struct store *store)
{
    for (;;) {
        struct offer *offer = take_offer(store, time_to_wait(store));

        disk_begin_write(store, &store->writing_us);
        if (offer)
            write_offer(store, offer);
        else
            look(store);
        disk_log_close_released(&store->log);
        if (store->written_us &&
            clock_monotonic_us() - store->written_us >= store->config.sync_us)
            sync_log(store);
        atomic_store(&store->writing_us, 0);
        if (!offer && disk_writer_is_to_stop(store))
            return;
    }
}

void *
disk_writer_run(void *context)
{
    struct store *store = context;

    if (begin(store) && disk_load(store)) {
        disk_note_oldest(store);
        evict_segments(store, 1);
        atomic_store_explicit(&store->stage, STORE_OPEN, memory_order_release);
        store->placed = calloc(MOST_PLACED, sizeof(*store->placed));
        if (store->placed)
            write_offers(store);
        if (disk_log_end(&store->log) != 0)
            store_say(store, STORE_WARNING, "the last segment could not be ended");
        free(store->placed);
    }
    drop_offers(store);
    return NULL;
}
