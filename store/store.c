#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/thread.h"
#include "store/disk_file.h"
#include "store/disk_fill.h"

#define LOCK_TRIES 10u /* of 10 ms */
#define JOIN_US ((int64_t)5000)    /* between two looks at a thread that is to end */
#define GRACE_US ((int64_t)100000) /* for it, though others have taken all of the time */
#define MEAN_OBJECT ((uint64_t)16 << 10) /* for the number of ghosts */
#define FEWEST_GHOSTS ((uint64_t)1 << 12)
#define MOST_GHOSTS ((uint64_t)1 << 22)

/* ---- clocks ---------------------------------------------------------------------------------- */

static int64_t
monotonic_us(void *context)
{
    (void)context;
    return clock_monotonic_us();
}

static int64_t
wall_us(void *context)
{
    (void)context;
    return clock_wall_us();
}

/* Each segment is open twice; and folder, lock, journals. */
uint32_t
store_descriptors(uint64_t max_bytes)
{
    const uint64_t segments = max_bytes / disk_log_segment_bytes(max_bytes);

    return (uint32_t)(2 * (segments + segments / 4) + 8);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* A program that looks whether the store is in use has the lock for a moment (store_visit.h). */
static bool
take_lock(int lock)
{
    static const struct timespec pause = {.tv_nsec = 10000000};

    for (unsigned i = 0; flock(lock, LOCK_EX | LOCK_NB) != 0; i++) {
        if (errno != EWOULDBLOCK || i == LOCK_TRIES)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

static bool
open_folder(struct store *store, struct buf *why)
{
    store->folder = open(store->config.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store->folder >= 0)
        store->lock = disk_open(store->folder, DISK_LOCK, O_RDWR | O_CREAT);
    if (store->lock < 0) {
        disk_tell(why, store->folder, store->folder >= 0 ? DISK_LOCK : "", errno);
        return false;
    }
    if (store->config.waits_us || take_lock(store->lock))
        return true;
    buf_append_str(why, errno == EWOULDBLOCK ? "another process uses it" : strerror(errno));
    return false;
}

static bool
make_ghosts(struct store *store)
{
    uint64_t wanted = store->config.max_bytes / MEAN_OBJECT;

    store->ghost_count = FEWEST_GHOSTS;
    while (store->ghost_count < wanted && store->ghost_count < MOST_GHOSTS)
        store->ghost_count *= 2;
    store->ghosts = calloc(store->ghost_count, sizeof(*store->ghosts));
    return store->ghosts != NULL;
}

static void
init_locks(struct store *store)
{
    pthread_mutex_init(&store->order, NULL);
    pthread_mutex_init(&store->offers_lock, NULL);
    pthread_mutex_init(&store->reads_lock, NULL);
    pthread_mutex_init(&store->purges_lock, NULL);
    thread_cond_init(&store->offers_wake);
    thread_cond_init(&store->offers_idle);
    thread_cond_init(&store->offers_looked);
    thread_cond_init(&store->reads_wake);
    thread_cond_init(&store->watch_wake);
    thread_cond_init(&store->purges_wake);
    thread_cond_init(&store->synced_wake);
}

static void
free_store(struct store *store)
{
    disk_lanes_free(store);
    disk_journal_close(&store->journal);
    disk_log_free(&store->log);
    disk_index_free(&store->index);
    disk_marks_free(&store->marks);
    pthread_mutex_destroy(&store->order);
    pthread_mutex_destroy(&store->offers_lock);
    pthread_mutex_destroy(&store->reads_lock);
    pthread_mutex_destroy(&store->purges_lock);
    pthread_cond_destroy(&store->offers_wake);
    pthread_cond_destroy(&store->offers_idle);
    pthread_cond_destroy(&store->offers_looked);
    pthread_cond_destroy(&store->reads_wake);
    pthread_cond_destroy(&store->watch_wake);
    pthread_cond_destroy(&store->purges_wake);
    pthread_cond_destroy(&store->synced_wake);
    if (store->lock >= 0)
        close(store->lock);
    if (store->folder >= 0)
        close(store->folder);
    free((void *)store->ghosts);
    free(store->numbers);
    free(store->readers);
    free(store);
}

/* A sixteenth of the store is for them, each time that the journal begins anew. */
static size_t
most_marks(uint64_t max_bytes)
{
    const uint64_t most = max_bytes / 16 / JOURNAL_MARK_BYTES;

    return most < MARKS_MAX ? (size_t)most : MARKS_MAX;
}

static struct store *
make_store(const struct store_config *config)
{
    struct store *store = calloc(1, sizeof(*store));

    if (!store)
        return NULL;
    store->config = *config;
    store->terms = config->terms;
    if (!config->late_us)
        store->config.late_us = STORE_LATE_US;
    if (!config->stuck_us)
        store->config.stuck_us = STORE_STUCK_US;
    if (!config->retry_us)
        store->config.retry_us = STORE_RETRY_US;
    if (!config->opens_us)
        store->config.opens_us = STORE_OPEN_US;
    store->opens_now = true;
    if (!config->clock.monotonic_us)
        store->config.clock = (struct store_clock){monotonic_us, wall_us, NULL, 0};
    store->folder = -1;
    store->lock = -1;
    store->journal = (struct disk_journal)JOURNAL_NONE;
    store->boot = config->clock.boot ? config->clock.boot : disk_boot();
    atomic_init(&store->position, 1);
    disk_index_init(&store->index);
    disk_marks_init(&store->marks);
    store->marks.most = most_marks(config->max_bytes);
    store->marks.most_text = (size_t)(config->max_bytes / 64);
    init_locks(store);
    STAILQ_INIT(&store->offers);
    STAILQ_INIT(&store->reads);
    TAILQ_INIT(&store->active);
    STAILQ_INIT(&store->pending);
    STAILQ_INIT(&store->passed);
    store->pass.fd = store->taker_fd = -1;
    STAILQ_INIT(&store->waiters);
    return store;
}

static int
start_readers(struct store *store)
{
    int error = 0;

    store->readers = calloc(store->config.readers, sizeof(*store->readers));
    if (!store->readers)
        return ENOMEM;
    while (!error && store->reader_count < store->config.readers) {
        error = thread_start(&store->readers[store->reader_count], store_reader_run, store);
        store->reader_count += !error;
    }
    return error;
}

static int
start_threads(struct store *store)
{
    int error = start_readers(store);

    if (!error)
        error = thread_start(&store->watcher, store_watcher_run, store);
    store->has_watcher = !error;
    if (!error)
        error = thread_start(&store->noter, disk_noter_run, store);
    store->has_noter = !error;
    if (!error)
        error = thread_start(&store->writer, disk_writer_run, store);
    store->has_writer = !error;
    return error;
}

struct store *
store_open(const struct store_config *config, struct buf *why)
{
    struct store *store = make_store(config);
    int error = store && make_ghosts(store) && disk_lanes_make(store) ? 0 : ENOMEM;

    if (!error && !open_folder(store, why)) {
        store_close(store);
        return NULL;
    }
    if (!error)
        error = start_threads(store);
    if (!error)
        error = disk_writer_await(store);
    if (!error)
        return store;
    disk_tell(why, store ? store->folder : -1, store ? store->journal.bad : "", error);
    store_close(store);
    return NULL;
}

/* ---- leaving --------------------------------------------------------------------------------- */

static int64_t
end_of(int64_t us)
{
    return us == STORE_FOREVER ? us : clock_monotonic_us() + us;
}

/* Waits for the end of a thread that is to end, which *is_there. False: it is there still. */
static bool
join(pthread_t thread, bool *is_there, int64_t until_us)
{
    const struct timespec pause = clock_timespec(JOIN_US);
    const int64_t least_us = clock_monotonic_us() + GRACE_US;

    if (*is_there && until_us == STORE_FOREVER)
        *is_there = pthread_join(thread, NULL) != 0;
    while (*is_there && (*is_there = pthread_tryjoin_np(thread, NULL) != 0)) {
        if (clock_monotonic_us() >= (until_us > least_us ? until_us : least_us))
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

/* The watcher has requests wait no longer for readers that are at the disk. */
static bool
stop_readers(struct store *store, int64_t until_us)
{
    bool ended = true;

    pthread_mutex_lock(&store->reads_lock);
    store->readers_stop = true;
    pthread_cond_broadcast(&store->reads_wake);
    pthread_mutex_unlock(&store->reads_lock);
    while (store->reader_count && ended) {
        bool is_there = true;

        ended = join(store->readers[store->reader_count - 1], &is_there, until_us);
        store->reader_count -= ended;
    }
    if (!ended)
        return false;
    pthread_mutex_lock(&store->reads_lock);
    store->watcher_stops = true;
    pthread_cond_signal(&store->watch_wake);
    pthread_mutex_unlock(&store->reads_lock);
    return join(store->watcher, &store->has_watcher, until_us);
}

static bool
stop_writer(struct store *store, int64_t until_us)
{
    pthread_mutex_lock(&store->offers_lock);
    store->writer_stops = true;
    pthread_cond_broadcast(&store->offers_wake);
    pthread_cond_broadcast(&store->offers_looked);
    pthread_mutex_unlock(&store->offers_lock);
    return join(store->writer, &store->has_writer, until_us);
}

static void
close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static bool
stop_noter(struct store *store, int64_t until_us)
{
    pthread_mutex_lock(&store->purges_lock);
    store->noter_stops = true;
    pthread_cond_broadcast(&store->purges_wake);
    pthread_mutex_unlock(&store->purges_lock);
    /* It may wait for the other process. */
    if (store->pass.fd >= 0)
        (void)shutdown(store->pass.fd, SHUT_RDWR);
    if (!join(store->noter, &store->has_noter, until_us))
        return false;
    close_fd(&store->pass.fd);
    return true;
}

/* It may wait for the noter, which has ended. */
static bool
stop_taker(struct store *store, int64_t until_us)
{
    if (store->taker_fd >= 0)
        (void)shutdown(store->taker_fd, SHUT_RDWR);
    if (!join(store->taker, &store->has_taker, until_us))
        return false;
    close_fd(&store->taker_fd);
    return true;
}

static void
unlock(struct store *store)
{
    if (store->lock >= 0)
        (void)flock(store->lock, LOCK_UN);
}

bool
store_leave(struct store *store, int64_t us)
{
    const int64_t until_us = end_of(us);
    bool ended = stop_readers(store, until_us);

    ended = stop_writer(store, until_us) && ended;
    ended = stop_noter(store, until_us) && ended;
    if (!ended)
        disk_noter_leave(store, false);
    ended = stop_taker(store, until_us) && ended;
    if (!ended)
        return false;
    atomic_store_explicit(&store->stage, STORE_LEFT, memory_order_release);
    unlock(store);
    return true;
}

bool
store_end_reads(struct store *store, int64_t us)
{
    return disk_lanes_end(store, end_of(us));
}

void
store_prepare_hand_over(struct store *store)
{
    pthread_mutex_lock(&store->purges_lock);
    store->passes = true;
    pthread_mutex_unlock(&store->purges_lock);
}

bool
store_hand_over(struct store *store, int fd, int64_t us)
{
    const int64_t until_us = end_of(us);
    bool ended = stop_readers(store, until_us);

    ended = stop_writer(store, until_us) && ended && disk_noter_pass(store, fd, until_us);
    if (ended) {
        unlock(store);
        return true;
    }
    close(fd);
    disk_noter_leave(store, false);
    return false;
}

int
store_take_purges(struct store *store, int fd)
{
    int error;

    store->taker_fd = fd;
    atomic_store(&store->taking, true);
    error = thread_start(&store->taker, pass_take_run, store);
    store->has_taker = !error;
    if (error)
        atomic_store(&store->taking, false);
    return error;
}

bool
store_takes_purges(struct store *store)
{
    return atomic_load(&store->taking);
}

void
store_close(struct store *store)
{
    if (!store)
        return;
    (void)store_leave(store, STORE_FOREVER);
    free_store(store);
}

void
store_settle(struct store *store)
{
    pthread_mutex_lock(&store->offers_lock);
    while (!(STAILQ_EMPTY(&store->offers) && !store->writer_busy &&
             store_stage(store) >= STORE_OPEN))
        pthread_cond_wait(&store->offers_idle, &store->offers_lock);
    pthread_mutex_unlock(&store->offers_lock);
}

void
store_get_stats(struct store *store, struct store_stats *stats)
{
    const enum store_stage stage = store_stage(store);

    *stats = (struct store_stats){
        .objects = disk_index_count(&store->index),
        .max_bytes = store->config.max_bytes,
        .index_bytes = disk_index_bytes(&store->index),
        .loaded = stage == STORE_OPEN,
        .sick = atomic_load(&store->sick),
    };
    for (unsigned i = 0; i < STORE_COUNTS; i++)
        stats->counts[i] = atomic_load_explicit(&store->counts[i], memory_order_relaxed);
    if (stage == STORE_OPENING)
        return;
    stats->bytes = atomic_load(&store->log.bytes) + atomic_load(&store->journal_bytes);
    stats->written_bytes = atomic_load(&store->log.written);
}

/* ---- objects --------------------------------------------------------------------------------- */

bool
store_may_have(struct store *store, struct span url, struct span variant)
{
    const enum store_stage stage = store_stage(store);
    struct disk_key key;
    struct disk_place place;

    if ((stage != STORE_LOADING && stage != STORE_OPEN) || atomic_load(&store->sick))
        return false;
    key = store_key(store, url, variant);
    return disk_index_find(&store->index, &key, &place, NULL, NULL);
}

uint64_t
store_begin_offer(struct store *store)
{
    atomic_fetch_add(&store->offering, 1);
    return atomic_fetch_add(&store->position, 1);
}

void
store_drop_offer(struct store *store)
{
    atomic_fetch_sub(&store->offering, 1);
}

bool
store_admits(struct store *store, uint64_t key)
{
    const uint32_t part = (uint32_t)(key >> 32) | 1u;
    _Atomic uint32_t *ghost = &store->ghosts[key & (store->ghost_count - 1)];

    if (store->config.write_all)
        return true;
    return atomic_exchange_explicit(ghost, part, memory_order_relaxed) == part;
}

static bool
may_offer(const struct store *store, const struct object *object)
{
    return store->offer_count < STORE_MOST_OFFERS && !store->writer_stops &&
           store->offered_bytes + object_length(object) <= STORE_MOST_OFFERED;
}

/*
 * The URL varies from now on, or does not any more: nothing of it is used that is earlier. Before
 * the object is in the queue, so that it is not in the index yet.
 */
static void
outdate_others(struct store *store, const struct object *object, uint64_t position)
{
    const struct disk_key key = store_key(store, object_url(object), object_variant(object));
    /* What has not been loaded is not known. */
    bool turns = store_stage(store) == STORE_LOADING;

    if (turns || (disk_index_replaces(&store->index, &key, &turns) && turns) ||
        disk_has_hidden(store, object_url(object)))
        disk_outdate(store, object_url(object), position - 1, true);
}

bool
store_offer(struct store *store, struct object *object, struct span names, uint64_t position)
{
    struct offer *offer = malloc(sizeof(*offer) + names.len);
    const enum store_stage stage = store_stage(store);
    bool takes = false;

    if (stage == STORE_LOADING || stage == STORE_OPEN)
        outdate_others(store, object, position);
    pthread_mutex_lock(&store->offers_lock);
    if (offer && (stage == STORE_LOADING || stage == STORE_OPEN) && may_offer(store, object)) {
        *offer = (struct offer){
            .object = object_retain(object), .position = position, .names_len = names.len};
        span_put(offer->names, names);
        STAILQ_INSERT_TAIL(&store->offers, offer, link);
        store->offer_count++;
        disk_count_offer(store, object, 1);
        store->offered_bytes += object_length(object);
        pthread_cond_signal(&store->offers_wake);
        takes = true;
    }
    pthread_mutex_unlock(&store->offers_lock);
    store_drop_offer(store); /* it is in the queue, or over */
    if (!takes) {
        free(offer);
        store_add(store, STORE_WRITE_REFUSED, 1);
    }
    return takes;
}
