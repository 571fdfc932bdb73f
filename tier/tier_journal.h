/*
 * The journal of a tier: the latest purges, as a value that each server has under one key. It
 * has an entry for each purge, numbered by the journal, with the purge's time, its epoch. Its
 * readers take the entries that are new. Entries that were dropped to keep its size are earlier than
 * its floor: a reader that missed them purges all from before that.
 *
 * A server that has lost its journal gets another one, whose floor is later than all that was
 * purged: a missing epoch means now.
 *
 * The numbers are those of the machine. Safe on any thread.
 */
#ifndef SUNPROXY_TIER_TIER_JOURNAL_H
#define SUNPROXY_TIER_TIER_JOURNAL_H

#include "base/buf.h"
#include "cache/cache.h"

#define TIER_JOURNAL_BYTES ((size_t)256 << 10) /* of its entries */
#define TIER_JOURNAL_NAME 8192u /* a longer URL or prefix is cut to a prefix, which purges more */

struct tier_journal {
    uint64_t incarnation; /* random: of its beginning */
    uint64_t number;      /* of its last entry */
    uint64_t count;       /* of entries */
    uint64_t floor;       /* epoch: everything up to it is outdated, for a reader that has read
                             nothing since */
    uint64_t latest;      /* the greatest epoch in it, or its floor */
};

struct tier_entry {
    uint64_t id; /* random: the same at each server */
    uint64_t epoch;
    int64_t wall_us; /* when it was purged, by its purger's clock */
    enum cache_by by;
    bool soft;
    struct span name;
    struct span scope;
};

/* Reads a journal and its entries, the earliest first, for tier_entry_next(). False: it is damaged.
 */
bool tier_journal_read(struct span content, struct tier_journal *journal, struct span *entries);

/* Takes the first entry off; false at the end. */
bool tier_entry_next(struct span *entries, struct tier_entry *entry);

/* Appends an entry as bytes, and how many these are. */
size_t tier_entry_size(const struct tier_entry *entry);
void tier_entry_write(struct buf *entries, const struct tier_entry *entry);

/*
 * Appends a journal with these entries, of which the earliest are dropped if they are too many
 * bytes: it counts them, and moves the floor.
 */
void tier_journal_write(struct buf *content, struct tier_journal *journal, struct span entries);

#endif
