/*
 * The journal of a tier: the latest purges, as a value that each server has under one key. It
 * has an entry for each purge, numbered by the journal, with the purge's time, its epoch. Its
 * readers take the entries that are new. Entries that were dropped to keep its size are earlier
 * than its floor: a reader that missed them purges all from before that.
 *
 * What servers keep: a server keeps a purge while its journal has an entry of the purge, or a floor
 * that is not earlier. A daemon writes a purge to each server that it reaches, so a majority of the
 * servers keeps it, unless fewer can be reached.
 *
 * A server without a journal has lost it, and keeps nothing. While those that have lost theirs and
 * those that cannot be reached are together fewer than a majority, one of the others keeps each
 * purge that a majority has kept (tier_journal_judge()). Then a daemon that has read the lost
 * journal writes it again: what the daemon knows of it, and what the others have besides, under the
 * same lineage. The floor covers what the daemon knew and has in no journal any more. So the server
 * keeps each purge that it has kept, and daemons that have read the lost journal miss none.
 *
 * Otherwise a purge may have been in the lost journal alone. The server gets a journal of another
 * lineage, whose floor is later than all that was purged: a missing epoch means now.
 *
 * A purge that only a minority keeps, since the other servers could not be reached, is written
 * again as well if a daemon has read it. A daemon that has not read the journal of a server does
 * not know whether there was one. It leaves the server to the daemons that have for a time; then it
 * counts as now.
 *
 * No daemon overwrites a journal that it has not read: a journal is added where there is none, or
 * takes the place of the one that was read, by its cas value.
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
    uint64_t lineage; /* random: of its beginning. Another one: it is not known what was purged */
    uint64_t incarnation; /* random: of its beginning or the time that it was written again */
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

/* What a daemon knows of the entries of servers. */
struct tier_known {
    const struct span *entries;
    unsigned count;
};

/*
 * Appends to `lacking` those of what is known that these entries lack: their id is not there, or
 * with an earlier epoch, and their epoch is later than the floor. Each once, with its latest epoch.
 * Without memory `lacking` has failed.
 */
void tier_entries_lacking(struct buf *lacking, struct span entries, uint64_t floor,
                          const struct tier_known *known);

/* Of the configured servers of a tier, of which one has lost its journal. */
struct tier_journals {
    unsigned servers;
    unsigned kept; /* others whose journals were read since the loss was found */
    unsigned lost; /* those that have lost theirs, this one included; the rest was not reached */
};

/* Is each purge that a majority has kept in one of the journals that were read? */
enum tier_judgement {
    TIER_IS_KEPT,
    TIER_MAY_BE_KEPT, /* if those that were not reached have theirs */
    TIER_IS_LOST,
};

enum tier_judgement tier_journal_judge(const struct tier_journals *journals);

#endif
