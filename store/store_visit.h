/*
 * Looking through a store's files, without the daemon whose they are, or beside it: nothing is
 * changed. For a program of its own.
 */
#ifndef SUNPROXY_STORE_STORE_VISIT_H
#define SUNPROXY_STORE_STORE_VISIT_H

#include "base/buf.h"
#include "store/disk_marks.h"

/* An object of the store, or what is damaged or cannot be read. What it refers to is valid during
 * the call. */
struct store_entry {
    const struct disk_record *record; /* NULL: bytes that are no record, or could not be read */
    int error;                        /* the errno then; else 0 */
    struct span body;                 /* if bodies are read, and it is not damaged */
    int64_t age_us;                   /* of the response, now */
    int64_t lifetime_us;              /* of it, as a request would find it; INT64_MAX: not
                                         limited */
    uint64_t segment;                 /* number of its file */
    uint64_t offset;                  /* in that */
    bool current;                     /* what a request would get: the latest one, and not purged */
    bool expired;                     /* by a soft purge */
    bool damaged;                     /* its body; only if that is verified */
};

struct store_totals {
    uint64_t objects; /* that are current */
    uint64_t records;
    uint64_t bytes; /* of the files */
    uint64_t segments;
    uint64_t damaged;  /* records, or runs of bytes that are none */
    uint64_t unread;   /* segments or records that cannot be read now: it is not known what they
                          have */
    bool in_use;       /* a process has the store: what it writes meanwhile may be missing */
    bool journal_lost; /* the next start removes all segments */
};

struct store_wanted {
    struct span url; /* only records of this one; an empty one: all */
    bool bodies;     /* are read and verified */
    bool scans;      /* segments are read from end to end, whatever their footers say */
};

/*
 * Calls `visit` for each record, the latest first. False with a sentence if the folder cannot be
 * read, or is none of a store. Of a store that is in use, what is being written or removed
 * meanwhile is left out.
 */
bool store_visit(const char *folder, const struct store_wanted *wanted,
                 void (*visit)(void *context, const struct store_entry *entry), void *context,
                 struct store_totals *totals, struct buf *why);

/*
 * Removes the oldest segments until all have at most `bytes`; *removed: their number. False with a
 * sentence, also where a process has the store.
 */
bool store_trim(const char *folder, uint64_t bytes, uint64_t *removed, struct buf *why);

#endif
