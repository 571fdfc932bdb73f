/*
 * Epochs: which responses are older than an invalidation of their URL, or of one of their tags.
 *
 * A cache has one number, its present epoch. An invalidation advances it and leaves its own epoch
 * at the names that it concerns: URLs, tags, prefixes of URLs, or all. A response has the epoch
 * that was the present one when its request was sent. It is outdated if one of its names has a
 * later epoch. That is a comparison: it takes no lock, and no number of invalidations makes it
 * slower.
 *
 * The epochs of names are kept by hash, in a sketch of several rows: a name's is the least of its
 * cells in the rows, each of which has the latest epoch of the names that share it (as a count-min
 * sketch counts: Cormode and Muthukrishnan, "An improved data stream summary", 2005). So a
 * response may be taken for outdated that is not; never the other way round. With n names
 * invalidated while its request is under way that happens with a probability of (1 - exp(-n /
 * EPOCH_CELLS))^4 for each name: 1 in 81,000 for n = 1,000, and 1 % for n = 6,200. Invalidations
 * before do not count.
 *
 * Of the prefixes the latest are kept. The one that gives way to another counts as an invalidation
 * of everything.
 *
 * The epoch is advanced and left at the names before the stored objects are looked for, and a
 * response is compared under the lock of its shard, where that search finds it later. So one of the
 * two sees the other. Epochs begin at 1.
 */
#ifndef SUNPROXY_CACHE_EPOCHS_H
#define SUNPROXY_CACHE_EPOCHS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

#define EPOCH_ROWS 4u
#define EPOCH_CELLS 16384u /* of a row; a power of two */
#define EPOCH_PREFIXES 32u

struct epoch_prefix {
    _Atomic uint64_t epoch; /* 0: none; UINT64_MAX while the others are being changed */
    _Atomic uint64_t hash;  /* of the prefix, */
    _Atomic uint64_t len;   /* and its length */
};

struct epochs {
    _Atomic uint64_t present;
    _Atomic uint64_t all; /* of everything */
    _Atomic uint64_t names[EPOCH_ROWS][EPOCH_CELLS];
    pthread_mutex_t lock; /* of those that invalidate */
    struct epoch_prefix prefixes[EPOCH_PREFIXES];
};

/* Initialises a zeroed one. */
void epochs_init(struct epochs *epochs);

void epochs_destroy(struct epochs *epochs);

/* For a request that is sent now. */
static inline uint64_t
epochs_present(struct epochs *epochs)
{
    return atomic_load_explicit(&epochs->present, memory_order_acquire);
}

/*
 * An invalidation of a URL or a tag with this hash64_bytes(): leaves its epoch there, and sets
 * *epoch to it if that is 0, as for the first name of several that are invalidated together. Where
 * another invalidation has left a later epoch than theirs, a new one is left. Returns the latest
 * epoch of the name before, or a later one by a collision.
 */
uint64_t epochs_leave(struct epochs *epochs, uint64_t hash, uint64_t *epoch);

/* An invalidation of all URLs with a prefix; of everything if that is empty. */
void epochs_leave_prefix(struct epochs *epochs, struct span prefix);

/*
 * Is a response to a request of this epoch outdated by an invalidation of its URL, of a prefix of
 * it, or of everything; or of one of its tags (base/word_list.h)? `own` is the epoch of an
 * invalidation that does not count, or 0.
 */
bool epochs_outdate_url(struct epochs *epochs, uint64_t epoch, uint64_t own, struct span url);
bool epochs_outdate_tags(struct epochs *epochs, uint64_t epoch, uint64_t own, struct span tags);

#endif
