/* The noter: writes marks to the journal, syncs it, and tells those that wait for it. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/disk_store.h"

#define MOST_PENDING ((size_t)1 << 16) /* while the disk does not take any */

struct pending_mark {
    STAILQ_ENTRY(pending_mark) link;
    struct disk_mark mark;
    struct source_purge purge;
    char text[]; /* of that */
};

/* ---- marking --------------------------------------------------------------------------------- */

static enum mark_kind
kind_of(enum cache_by kind)
{
    static const enum mark_kind kinds[] = {
        [CACHE_BY_URL] = MARK_URL,
        [CACHE_BY_PREFIX] = MARK_PREFIX,
        [CACHE_BY_TAG] = MARK_TAG,
    };

    return kinds[kind];
}

/* NULL without memory. */
static struct pending_mark *
make_pending(const struct source_purge *purge)
{
    const size_t name_len = purge->name.len;
    struct pending_mark *pending = malloc(sizeof(*pending) + name_len + purge->scope.len);

    if (!pending)
        return NULL;
    pending->purge = *purge;
    span_put(pending->text, purge->name);
    span_put(pending->text + name_len, purge->scope);
    pending->purge.name.ptr = pending->text;
    pending->purge.scope.ptr = pending->text + name_len;
    return pending;
}

static void
free_all(struct pending_marks *marks)
{
    struct pending_mark *pending;

    while ((pending = STAILQ_FIRST(marks))) {
        STAILQ_REMOVE_HEAD(marks, link);
        free(pending);
    }
}

/* Under the lock of the purges: one of everything takes the place of those that wait. */
static void
replace_all(struct store *store, struct pending_mark *pending, struct disk_mark *mark)
{
    free_all(&store->pending);
    store->pending_count = 0;
    pending->purge = (struct source_purge){.by = CACHE_BY_PREFIX, .name = span_of("", 0)};
    *mark = (struct disk_mark){.kind = MARK_PREFIX};
    store_say(store, STORE_WARNING, "too much is purged while the disk does not answer: all is");
}

/* Under the lock of the purges. Without memory everything is purged, which needs less. */
static void
leave(struct store *store, struct pending_mark *pending, struct disk_mark *mark)
{
    uint64_t all = 0;

    if (!mark->position)
        mark->position = atomic_fetch_add(&store->position, 1);
    if (!disk_marks_add(&store->marks, mark, &all)) {
        store_say(store, STORE_WARNING, "too much was purged to be remembered: all is");
        if (pending)
            pending->mark = (struct disk_mark){.kind = MARK_PREFIX, .position = all};
        else
            store->all_unnoted = true;
    } else if (pending) {
        pending->mark = *mark;
        if (mark->kind == MARK_PREFIX)
            pending->mark.prefix = pending->purge.name;
    }
}

static _Atomic uint64_t *
hidden_of(struct store *store, uint64_t url)
{
    return &store->hidden[hash64_uint(url) % STORE_OFFERED];
}

/* Up to the position now. */
static void
hide(struct store *store, _Atomic uint64_t *hidden)
{
    const uint64_t position = atomic_load(&store->position);
    uint64_t before = atomic_load(hidden);

    while (before < position && !atomic_compare_exchange_weak(hidden, &before, position))
        ;
}

void
disk_hide(struct store *store, uint64_t url)
{
    hide(store, hidden_of(store, url));
}

void
disk_hide_any(struct store *store)
{
    hide(store, &store->hidden_any);
}

/* The position before which there may be a hidden record of the URL; 0: there is none. */
static uint64_t
hidden_before(struct store *store, struct span url)
{
    const uint64_t oldest = atomic_load(&store->oldest);
    const uint64_t any = atomic_load(&store->hidden_any);
    uint64_t hidden =
        atomic_load(hidden_of(store, store_key(store, url, span_of(NULL, 0)).url));

    if (hidden < any)
        hidden = any;
    if (!oldest && hidden < atomic_load(&store->unlisted))
        hidden = atomic_load(&store->unlisted);
    return hidden >= oldest ? hidden : 0;
}

bool
disk_has_hidden(struct store *store, struct span url)
{
    const uint64_t before = hidden_before(store, url);

    return before && !disk_marks_outdate(&store->marks, url, before);
}

/* May there be a record of the URL that is about to be written, or that is not loaded yet? */
static bool
is_unsure(struct store *store, struct span url)
{
    return store_stage(store) != STORE_OPEN || atomic_load(&store->offering) ||
           disk_offered(store, url, span_of(NULL, 0));
}

/* Under the lock of the purges. */
static void
expect_mark(struct store *store, struct span url, uint64_t number)
{
    const uint64_t hash = hash64_bytes(url);
    struct mark_expected *expected = &store->expected[hash64_uint(hash) % STORE_OFFERED];

    if (expected->number <= store->synced)
        expected->url = hash;
    else if (expected->url != hash)
        expected->url = 0;
    expected->number = number;
}

/* Has the URL a mark that is not noted yet? */
static bool
expects_mark(struct store *store, struct span url)
{
    const uint64_t hash = hash64_bytes(url);
    const struct mark_expected *expected = &store->expected[hash64_uint(hash) % STORE_OFFERED];
    bool expects;

    pthread_mutex_lock(&store->purges_lock);
    expects = expected->number > store->synced && (!expected->url || expected->url == hash);
    pthread_mutex_unlock(&store->purges_lock);
    return expects;
}

bool
disk_noter_has_all(struct store *store)
{
    bool has = !atomic_load(&store->purging);

    pthread_mutex_lock(&store->purges_lock);
    has = has && store->synced == store->marked;
    pthread_mutex_unlock(&store->purges_lock);
    return has;
}

/* Returns its number; 0 without `noted`, if nothing is to be noted. With `follows` another one that
 * is noted follows it. */
static uint64_t
add_mark(struct store *store, const struct source_purge *purge, struct disk_mark *mark, bool noted,
         bool follows)
{
    struct pending_mark *pending;
    uint64_t number = 0;

    /* disk_noter_begin() moves those that are to be noted alone. */
    noted = noted || store_stage(store) == STORE_OPENING;
    pending = noted ? make_pending(purge) : NULL;
    pthread_mutex_lock(&store->purges_lock);
    if (pending && store->pending_count >= MOST_PENDING &&
        (store->stuck || store_stage(store) == STORE_OPENING))
        replace_all(store, pending, mark);
    leave(store, pending, mark);
    if (noted || store->all_unnoted)
        number = ++store->marked;
    if (purge->by == CACHE_BY_URL && (noted || follows))
        expect_mark(store, purge->name, noted ? number : UINT64_MAX);
    if (pending) {
        STAILQ_INSERT_TAIL(&store->pending, pending, link);
        store->pending_count++;
    }
    store->lost = store->lost || (noted && !pending);
    pthread_cond_signal(&store->purges_wake);
    pthread_mutex_unlock(&store->purges_lock);
    return number;
}

/* Those of a URL in the index: are there any, or removes them, and returns their number. */
static unsigned
take_url(struct store *store, struct span url, bool stay)
{
    const enum store_stage stage = store_stage(store);
    uint64_t hash;

    if (stage != STORE_LOADING && stage != STORE_OPEN)
        return 0;
    hash = store_key(store, url, span_of(NULL, 0)).url;
    return stay ? disk_index_has_url(&store->index, hash)
                : disk_index_remove_url(&store->index, hash);
}

/* The store was left: no mark is noted, and none is waited for either if it is gone. */
static struct source_marked
lose_mark(struct store *store, bool counts)
{
    struct source_marked now = {.count = 0};

    pthread_mutex_lock(&store->purges_lock);
    now.marked = !store->gone;
    if (now.marked && counts)
        now.number = ++store->marked;
    pthread_mutex_unlock(&store->purges_lock);
    return now;
}

struct source_marked
store_mark(struct store *store, enum cache_by kind, bool soft, struct span name,
           struct span scope, const struct source_marked *before)
{
    struct disk_mark mark = {
        .kind = kind_of(kind),
        .soft = soft,
        .hash = disk_mark_hash(kind_of(kind), soft, name, scope),
        .prefix = kind == CACHE_BY_PREFIX ? name : span_of(NULL, 0),
        .us = store_now_us(store),
    };
    const struct source_purge purge = {kind, soft, name, scope};
    struct source_marked now = {.count = 0};

    if (store_stage(store) == STORE_LEFT)
        return lose_mark(store, before != NULL);
    /* Before the look into the index: what is written meanwhile is in one of the two. What the
     * first call has marked may be on disk since, though not in the index. After it: what another
     * purge takes from there has its mark before, and what else leaves the index before the disk
     * is hidden before. */
    now.marked = kind != CACHE_BY_URL || (before && before->marked) || is_unsure(store, name) ||
                 take_url(store, name, true) || hidden_before(store, name) ||
                 expects_mark(store, name);
    if (!now.marked)
        return now;
    now.begun = !before && kind != CACHE_BY_URL;
    if (now.begun)
        atomic_fetch_add(&store->purging, 1);
    now.number = add_mark(store, &purge, &mark, before != NULL, !before);
    if (before && before->begun)
        atomic_fetch_sub(&store->purging, 1);
    if (kind == CACHE_BY_URL)
        now.count = take_url(store, name, soft);
    return now;
}

static _Atomic uint32_t *
counter_of(struct store *store, struct span url, struct span variant)
{
    const uint64_t of_variant = variant.len ? hash64_uint(hash64_bytes(variant)) : 0;

    return &store->offered[hash64_uint(hash64_bytes(url) ^ of_variant) % STORE_OFFERED];
}

uint32_t
disk_offered(struct store *store, struct span url, struct span variant)
{
    return atomic_load(counter_of(store, url, variant));
}

void
disk_count_offer(struct store *store, const struct object *object, int more)
{
    const struct span url = object_url(object), variant = object_variant(object);

    atomic_fetch_add(counter_of(store, url, span_of(NULL, 0)), (uint32_t)more);
    if (variant.len)
        atomic_fetch_add(counter_of(store, url, variant), (uint32_t)more);
}

void
disk_outdate(struct store *store, struct span url, uint64_t position, bool noted)
{
    struct disk_mark mark = {
        .kind = MARK_URL,
        .hash = disk_mark_hash(MARK_URL, false, url, span_of(NULL, 0)),
        .position = position,
        .us = store_now_us(store),
    };

    if (!noted)
        disk_hide(store, store_key(store, url, span_of(NULL, 0)).url);
    (void)add_mark(store, &(struct source_purge){.by = CACHE_BY_URL, .name = url}, &mark, noted,
                   false);
    (void)take_url(store, url, false);
}

bool
store_replaces(struct store *store, struct span url, struct span variant)
{
    const enum store_stage stage = store_stage(store);
    struct disk_key key;
    bool turns;

    if (stage != STORE_LOADING && stage != STORE_OPEN)
        return false;
    key = store_key(store, url, variant);
    return disk_index_replaces(&store->index, &key, &turns);
}

void
store_outdate(struct store *store, struct span url, struct span variant, bool all)
{
    const enum store_stage stage = store_stage(store);

    if (stage >= STORE_PASSES)
        return;
    /* What has not been loaded is not known. In the order of store_mark(). */
    if (stage == STORE_OPEN && !atomic_load(&store->offering) &&
        !disk_offered(store, url, all ? span_of(NULL, 0) : variant) &&
        !(all ? disk_index_has_url(&store->index, store_key(store, url, variant).url)
              : store_replaces(store, url, variant)) &&
        !disk_has_hidden(store, url))
        return;
    disk_outdate(store, url, 0, true);
}

void
store_set_terms(struct store *store, uint64_t terms)
{
    pthread_mutex_lock(&store->purges_lock);
    if (store->terms != terms)
        store->marked++;
    store->terms = terms;
    pthread_cond_signal(&store->purges_wake);
    pthread_mutex_unlock(&store->purges_lock);
}

bool
disk_noter_begin(struct store *store)
{
    const uint64_t first = disk_first_position(&store->identity);
    struct pending_mark *pending;

    pthread_mutex_lock(&store->purges_lock);
    if (store_stage(store) == STORE_LEFT) {
        pthread_mutex_unlock(&store->purges_lock);
        return false;
    }
    atomic_fetch_add(&store->position, first);
    STAILQ_FOREACH(pending, &store->pending, link)
    {
        uint64_t all;

        pending->mark.position += first;
        (void)disk_marks_add(&store->marks, &pending->mark, &all);
    }
    atomic_store(&store->noting_us, 0);
    atomic_store_explicit(&store->stage, STORE_LOADING, memory_order_release);
    pthread_cond_signal(&store->purges_wake);
    pthread_mutex_unlock(&store->purges_lock);
    return true;
}

/* ---- those that wait ------------------------------------------------------------------------- */

/* Under the lock. */
static enum store_synced
find_synced(struct store *store, uint64_t number)
{
    if (store->synced >= number || store->gone)
        return STORE_SYNCED;
    return store->unnoted >= number || store->stuck || store->noter_ended ||
                   store_stage(store) == STORE_LEFT
               ? STORE_SYNC_LOST
               : STORE_SYNCS;
}

/* Under the lock. */
static void
list_waiter(struct store *store, struct source_waiter *waiter)
{
    waiter->listed = true;
    waiter->since_us = store_now_us(store);
    STAILQ_INSERT_TAIL(&store->waiters, waiter, link);
}

bool
store_is_synced(struct store *store, struct source_waiter *waiter)
{
    enum store_synced synced;

    pthread_mutex_lock(&store->purges_lock);
    if (waiter->number > store->marked)
        waiter->number = store->marked;
    synced = find_synced(store, waiter->number);
    waiter->lost = synced == STORE_SYNC_LOST;
    if (synced == STORE_SYNCS)
        list_waiter(store, waiter);
    pthread_mutex_unlock(&store->purges_lock);
    return synced != STORE_SYNCS;
}

bool
store_forget_waiter(struct store *store, struct source_waiter *waiter)
{
    bool listed;

    pthread_mutex_lock(&store->purges_lock);
    listed = waiter->listed;
    if (listed)
        STAILQ_REMOVE(&store->waiters, waiter, source_waiter, link);
    waiter->listed = false;
    pthread_mutex_unlock(&store->purges_lock);
    return listed;
}

static void
ignore(struct source_waiter *waiter)
{
    (void)waiter;
}

enum store_synced
store_await_sync(struct store *store, int64_t us)
{
    const struct timespec until = clock_timespec(clock_monotonic_us() + us);
    struct source_waiter waiter = {.notify = ignore};
    enum store_synced synced;
    int error = 0;

    pthread_mutex_lock(&store->purges_lock);
    waiter.number = store->marked;
    list_waiter(store, &waiter);
    while (!(synced = find_synced(store, waiter.number)) && !error)
        error = pthread_cond_timedwait(&store->synced_wake, &store->purges_lock, &until);
    if (waiter.listed)
        STAILQ_REMOVE(&store->waiters, &waiter, source_waiter, link);
    pthread_mutex_unlock(&store->purges_lock);
    return synced;
}

/* Under the lock: those that wait for marks which are noted, or lost, or all. */
static void
notify_waiters(struct store *store, bool all)
{
    const uint64_t last = store->synced > store->unnoted ? store->synced : store->unnoted;
    struct source_waiters waiters = STAILQ_HEAD_INITIALIZER(waiters);
    struct source_waiter *waiter;

    STAILQ_CONCAT(&waiters, &store->waiters);
    while ((waiter = STAILQ_FIRST(&waiters))) {
        STAILQ_REMOVE_HEAD(&waiters, link);
        if (!all && waiter->number > last) {
            STAILQ_INSERT_TAIL(&store->waiters, waiter, link);
            continue;
        }
        waiter->listed = false;
        waiter->lost = waiter->number > store->synced && !store->gone;
        waiter->notify(waiter);
    }
}

/* What the successor of this process is passed is not for the disk to take. */
void
disk_noter_answer_late(struct store *store)
{
    const int64_t now_us = store_now_us(store);
    const struct source_waiter *first;

    pthread_mutex_lock(&store->purges_lock);
    first = STAILQ_FIRST(&store->waiters);
    if (!store->stuck && !store->passes && atomic_load(&store->noting_us) && first &&
        now_us - first->since_us >= STORE_NOTE_US) {
        store->stuck = true;
        store_say(store, STORE_ERROR,
                  "%s: purges hold in this process, and are lost if it is killed before they are "
                  "noted",
                  store_stage(store) == STORE_OPENING && store->config.waits_us
                      ? "another process has not left it"
                      : "the disk does not answer");
        pthread_cond_broadcast(&store->synced_wake);
    }
    if (store->stuck)
        notify_waiters(store, true);
    pthread_mutex_unlock(&store->purges_lock);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* What could not be noted holds until the process ends, and then would not: nothing may be left. */
static void
give_up(struct store *store, int error)
{
    const struct disk_mark mark = {.kind = MARK_PREFIX,
                                   .position = atomic_fetch_add(&store->position, 1)};
    uint64_t all;

    store_add(store, STORE_WRITE_ERRORS, 1);
    store_say(store, STORE_ERROR,
              "a purge cannot be written to the journal (%s): all that is stored is dropped",
              strerror(error));
    (void)disk_marks_add(&store->marks, &mark, &all);
    store->spoils = !disk_journal_spoil(&store->journal);
}

/* Bytes of the journal's files at most, from its next beginning to the one behind that. */
static uint64_t
most_bytes(struct store *store)
{
    return 4 * disk_marks_bytes(&store->marks) + 2 * store->journal.slack;
}

/* There is space for both files before the second one is written. */
static int
renew(struct store *store)
{
    const uint64_t most = most_bytes(store);
    int error;

    if (most > atomic_load(&store->journal_most))
        disk_writer_reserve(store, most);
    error = disk_journal_renew(&store->journal, &store->marks, &store->identity);
    store->spoils = store->spoils && error; /* the new one has what could not be noted */
    if (disk_journal_most(&store->journal) > most)
        disk_writer_reserve(store, disk_journal_most(&store->journal));
    else
        atomic_store(&store->journal_most, most);
    return error;
}

/* Appends those from this one on; with `bounded` as long as the journal is not worth being renewed.
 * Returns the first that was not appended. */
static struct pending_mark *
append_marks(struct store *store, struct pending_mark *pending, bool bounded, int *error)
{
    while (pending && !*error &&
           !(bounded && store->journal.size >= store->journal.renew_size)) {
        *error = disk_journal_append(&store->journal, &pending->mark);
        store_add(store, STORE_PURGES, 1);
        pending = STAILQ_NEXT(pending, link);
    }
    return pending;
}

/* Marks that are pending are known already, so a journal that begins anew has them. */
static void
note(struct store *store, struct pending_mark *pending, bool lost, bool renews)
{
    int error = lost ? ENOMEM : 0;
    bool renewed = false;

    store->journal.now = store_now(store);
    if (!store->spoils)
        pending = append_marks(store, pending, true, &error);
    if (!error && (pending || renews)) {
        int cause = renew(store);

        renewed = !cause;
        error = renews ? cause : 0;
    }
    for (; renewed && pending; pending = STAILQ_NEXT(pending, link))
        store_add(store, STORE_PURGES, 1);
    (void)append_marks(store, pending, false, &error);
    if (!error && !renewed)
        error = disk_journal_sync(&store->journal);
    if (error)
        give_up(store, error);
}

/* The journal has got long. One that cannot be begun anew goes on, as far as a start reads it. */
static void
shorten(struct store *store)
{
    int error = renew(store);

    if (!error)
        return;
    store->journal.renew_size += store->journal.renew_size / 2;
    disk_writer_reserve(store, disk_journal_most(&store->journal));
    if (store->journal.size > JOURNAL_MAX / 2)
        give_up(store, error);
}

/* Under the lock. If the journal lacks marks, and cannot say so, they are lost when the process is
 * killed, unless another one follows that is noted. */
static void
answer(struct store *store, uint64_t number, bool noted)
{
    if (noted)
        store->synced = number;
    else
        store->unnoted = number;
    notify_waiters(store, false);
    pthread_cond_broadcast(&store->synced_wake);
}

/* Under the lock, which is released meanwhile. */
static void
note_pending(struct store *store)
{
    const uint64_t marked = store->marked;
    struct pending_marks marks = STAILQ_HEAD_INITIALIZER(marks);
    const bool lost = store->lost;
    const bool renews =
        store->terms != store->identity.terms || store->all_unnoted || store->spoils;

    STAILQ_CONCAT(&marks, &store->pending);
    store->pending_count = 0;
    store->lost = store->all_unnoted = false;
    store->notes = true;
    store->identity.terms = store->terms;
    pthread_mutex_unlock(&store->purges_lock);
    disk_begin_write(store, &store->noting_us);
    note(store, STAILQ_FIRST(&marks), lost, renews);
    pthread_mutex_lock(&store->purges_lock);
    store->noted = marked;
    if (store->stuck && !store->spoils)
        store_say(store, STORE_INFO, "purges are noted again");
    store->stuck = false;
    if (store->passes) {
        STAILQ_CONCAT(&store->passed, &marks);
        store->lost_passed = store->lost_passed || lost;
    } else {
        free_all(&marks);
        answer(store, marked, !store->spoils);
    }
    if (store->journal.size >= store->journal.renew_size) {
        pthread_mutex_unlock(&store->purges_lock);
        disk_begin_write(store, &store->noting_us);
        shorten(store);
        pthread_mutex_lock(&store->purges_lock);
    }
    atomic_store(&store->noting_us, 0);
    store->notes = false;
    pthread_cond_broadcast(&store->synced_wake);
}

/* Under the lock. */
static void
drop_pending(struct store *store)
{
    notify_waiters(store, true);
    pthread_cond_broadcast(&store->synced_wake);
    free_all(&store->pending);
    free_all(&store->passed);
}

void
disk_noter_leave(struct store *store, bool gone)
{
    pthread_mutex_lock(&store->purges_lock);
    store->gone = gone;
    atomic_store(&store->noting_us, 0);
    atomic_store_explicit(&store->stage, STORE_LEFT, memory_order_release);
    drop_pending(store);
    pthread_mutex_unlock(&store->purges_lock);
}

/* Is there a mark to be written, and the journal for it? Under the lock. */
static bool
has_to_note(struct store *store)
{
    const enum store_stage stage = store_stage(store);

    return store->noted != store->marked && (stage == STORE_LOADING || stage == STORE_OPEN);
}

/* ---- passing --------------------------------------------------------------------------------- */

bool
disk_noter_pass(struct store *store, int fd, int64_t until_us)
{
    const struct timespec until = clock_timespec(until_us);
    bool waits;
    int error = 0;

    pthread_mutex_lock(&store->purges_lock);
    while ((waits = has_to_note(store) || store->notes) && !error)
        error = pthread_cond_timedwait(&store->synced_wake, &store->purges_lock, &until);
    if (!waits) {
        disk_journal_close(&store->journal);
        store->noted = store->synced; /* what is in the journal alone is passed */
        store->pass.fd = fd;
        atomic_store_explicit(&store->stage, STORE_PASSES, memory_order_release);
        pthread_cond_signal(&store->purges_wake);
    }
    pthread_mutex_unlock(&store->purges_lock);
    return !waits;
}

static bool
pass_marks(struct pass *pass, const struct pending_marks *marks, bool lost)
{
    static const struct source_purge all = {.by = CACHE_BY_PREFIX};
    const struct pending_mark *pending;
    bool passed = !lost || pass_send(pass, &all);

    STAILQ_FOREACH(pending, marks, link)
        passed = passed && pass_send(pass, &pending->purge);
    return passed && pass_await(pass);
}

/* Under the lock, which is released meanwhile. */
static void
pass_pending(struct store *store)
{
    struct pending_marks marks = STAILQ_HEAD_INITIALIZER(marks);
    const uint64_t marked = store->marked;
    const bool lost = store->lost || store->lost_passed;
    bool passed;

    STAILQ_CONCAT(&marks, &store->passed);
    STAILQ_CONCAT(&marks, &store->pending);
    store->pending_count = 0;
    store->lost = store->lost_passed = store->all_unnoted = false;
    pthread_mutex_unlock(&store->purges_lock);
    passed = pass_marks(&store->pass, &marks, lost);
    pthread_mutex_lock(&store->purges_lock);
    free_all(&marks);
    store->noted = marked;
    if (passed) {
        answer(store, marked, !store->pass.lost);
        return;
    }
    if (!store->noter_stops)
        store_say(store, STORE_WARNING,
                  "the process that has it is gone: what is purged here is not passed on");
    atomic_store_explicit(&store->stage, STORE_LEFT, memory_order_release);
    drop_pending(store);
}

/* Under the lock. */
static bool
has_to_pass(struct store *store)
{
    return store->noted != store->marked && store_stage(store) == STORE_PASSES;
}

void *
disk_noter_run(void *context)
{
    struct store *store = context;

    pthread_mutex_lock(&store->purges_lock);
    for (;;) {
        if (has_to_note(store))
            note_pending(store);
        else if (has_to_pass(store))
            pass_pending(store);
        else if (store->noter_stops)
            break;
        else
            pthread_cond_wait(&store->purges_wake, &store->purges_lock);
    }
    if (store->spoils)
        (void)disk_journal_spoil(&store->journal);
    store->noter_ended = true;
    drop_pending(store);
    pthread_mutex_unlock(&store->purges_lock);
    return NULL;
}
