#include "cache/epochs.h"

#include "base/hash.h"
#include "base/word_list.h"

/* The bits of a hash that number a cell, for each row others. */
#define CELL_BITS 14u

_Static_assert(EPOCH_CELLS == 1u << CELL_BITS && EPOCH_ROWS * CELL_BITS <= 64, "bits of a hash");

void
epochs_init(struct epochs *epochs)
{
    pthread_mutex_init(&epochs->lock, NULL); /* without attributes it cannot fail */
    atomic_init(&epochs->present, 1);
}

void
epochs_destroy(struct epochs *epochs)
{
    pthread_mutex_destroy(&epochs->lock);
}

/* Under the lock, as is whatever else changes an epoch. */
static uint64_t
advance(struct epochs *epochs)
{
    return atomic_fetch_add_explicit(&epochs->present, 1, memory_order_acq_rel) + 1;
}

static void
raise(_Atomic uint64_t *cell, uint64_t epoch)
{
    if (atomic_load_explicit(cell, memory_order_relaxed) < epoch)
        atomic_store_explicit(cell, epoch, memory_order_release);
}

static _Atomic uint64_t *
cell_of(struct epochs *epochs, unsigned row, uint64_t hash)
{
    return &epochs->names[row][hash >> row * CELL_BITS & (EPOCH_CELLS - 1)];
}

/* The latest epoch of a name. */
static uint64_t
latest(struct epochs *epochs, uint64_t hash)
{
    uint64_t least = UINT64_MAX;

    for (unsigned row = 0; row < EPOCH_ROWS; row++) {
        uint64_t epoch = atomic_load_explicit(cell_of(epochs, row, hash), memory_order_acquire);

        if (epoch < least)
            least = epoch;
    }
    return least;
}

uint64_t
epochs_leave(struct epochs *epochs, uint64_t hash, uint64_t *epoch)
{
    uint64_t before, left;

    pthread_mutex_lock(&epochs->lock);
    if (!*epoch)
        *epoch = advance(epochs);
    before = latest(epochs, hash);
    left = before > *epoch ? advance(epochs) : *epoch;
    for (unsigned row = 0; row < EPOCH_ROWS; row++)
        raise(cell_of(epochs, row, hash), left);
    pthread_mutex_unlock(&epochs->lock);
    return before;
}

/* What a prefix is kept in: its own, a free one, or that with the earliest epoch. */
static struct epoch_prefix *
find_prefix(struct epochs *epochs, uint64_t hash, uint64_t len)
{
    struct epoch_prefix *earliest = &epochs->prefixes[0];

    for (unsigned i = 0; i < EPOCH_PREFIXES; i++) {
        struct epoch_prefix *prefix = &epochs->prefixes[i];
        uint64_t epoch = atomic_load_explicit(&prefix->epoch, memory_order_relaxed);

        if (epoch && prefix->hash == hash && prefix->len == len)
            return prefix;
        if (epoch < atomic_load_explicit(&earliest->epoch, memory_order_relaxed))
            earliest = prefix;
    }
    return earliest;
}

void
epochs_leave_prefix(struct epochs *epochs, struct span prefix)
{
    uint64_t hash = hash64_bytes(prefix), before, epoch;
    struct epoch_prefix *kept;

    pthread_mutex_lock(&epochs->lock);
    epoch = advance(epochs);
    if (prefix.len == 0) {
        raise(&epochs->all, epoch);
        pthread_mutex_unlock(&epochs->lock);
        return;
    }
    kept = find_prefix(epochs, hash, prefix.len);
    before = atomic_load_explicit(&kept->epoch, memory_order_relaxed);
    if (before && (kept->hash != hash || kept->len != prefix.len))
        raise(&epochs->all, before);
    /* A reader that sees the new hash or length sees the epoch change, too. */
    atomic_store_explicit(&kept->epoch, UINT64_MAX, memory_order_relaxed);
    atomic_store_explicit(&kept->hash, hash, memory_order_release);
    atomic_store_explicit(&kept->len, prefix.len, memory_order_release);
    atomic_store_explicit(&kept->epoch, epoch, memory_order_release);
    pthread_mutex_unlock(&epochs->lock);
}

/* Did an invalidation by this prefix that concerns the URL begin after the epoch? */
static bool
prefix_outdates(struct epoch_prefix *prefix, uint64_t epoch, struct span url)
{
    uint64_t later = atomic_load_explicit(&prefix->epoch, memory_order_acquire), hash, len;

    if (later <= epoch)
        return false;
    hash = atomic_load_explicit(&prefix->hash, memory_order_acquire);
    len = atomic_load_explicit(&prefix->len, memory_order_acquire);
    /* What has changed meanwhile may have concerned it. */
    if (atomic_load_explicit(&prefix->epoch, memory_order_acquire) != later)
        return true;
    return later == UINT64_MAX ||
           (len <= url.len && hash64_bytes(span_of(url.ptr, (size_t)len)) == hash);
}

static bool
name_outdates(struct epochs *epochs, uint64_t epoch, uint64_t own, uint64_t hash)
{
    uint64_t later = latest(epochs, hash);

    return later > epoch && later != own;
}

bool
epochs_outdate_tags(struct epochs *epochs, uint64_t epoch, uint64_t own, struct span tags)
{
    struct span tag;

    if (epochs_present(epochs) == epoch)
        return false;
    while (words_next(&tags, &tag))
        if (name_outdates(epochs, epoch, own, hash64_bytes(tag)))
            return true;
    return false;
}

bool
epochs_outdate_url(struct epochs *epochs, uint64_t epoch, uint64_t own, struct span url)
{
    uint64_t all;

    if (epochs_present(epochs) == epoch)
        return false;
    if (name_outdates(epochs, epoch, own, hash64_bytes(url)))
        return true;
    for (unsigned i = 0; i < EPOCH_PREFIXES; i++)
        if (prefix_outdates(&epochs->prefixes[i], epoch, url))
            return true;
    /* Last, since a prefix that has given way to another one is in it before that replaces it. */
    all = atomic_load_explicit(&epochs->all, memory_order_acquire);
    return all > epoch;
}
