/*
 * What has been purged in a store: marks at URLs, tags and prefixes of URLs, each with the position
 * of the store at the purge. A record with an earlier position is outdated if a mark concerns it. A
 * soft purge leaves a mark as well, by which a record has expired.
 *
 * URLs and tags are kept as hashes of 64 bits, so by a collision a record may be taken for outdated
 * that is not, never the other way round. The number of marks is bounded: beyond it everything
 * earlier is outdated. Safe on any thread.
 */
#ifndef SUNPROXY_STORE_DISK_MARKS_H
#define SUNPROXY_STORE_DISK_MARKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "store/disk_record.h"

#define MARKS_MAX ((size_t)1 << 20) /* of URLs and tags at most, 24 bytes each at least */
#define MARKS_PREFIXES 256u

/* Bytes of a mark in a journal, without its text, which is there twice as well. */
#define JOURNAL_MARK_BYTES ((size_t)128)

enum mark_kind {
    MARK_URL = 1,
    MARK_TAG,    /* of the URLs that begin with the scope, unless that is empty */
    MARK_PREFIX, /* an empty one: everything */
};

/* A purge, in memory and in the journal. */
struct disk_mark {
    enum mark_kind kind;
    bool soft;
    uint64_t hash;       /* of a URL or a tag: disk_mark_hash() */
    struct span prefix;  /* of MARK_PREFIX */
    uint64_t position;
    int64_t us;          /* the monotonic clock then */
};

struct mark_slot {
    uint64_t hash; /* 0: free */
    uint64_t position;
    int64_t us;
};

struct mark_prefix {
    char *text; /* owned */
    size_t len;
    bool soft;
    uint64_t position;
    int64_t us;
};

struct disk_marks {
    pthread_mutex_t lock;
    uint64_t secret; /* so that hashes that fall together in the table cannot be made on purpose */
    struct mark_slot *slots;
    size_t size, used;
    size_t most;      /* of them; constant */
    uint64_t rebuilt; /* how often they have moved */
    bool walked;      /* a walk goes on, for which none is forgotten */
    struct mark_prefix prefixes[MARKS_PREFIXES];
    size_t prefix_count;
    size_t text_bytes, most_text; /* of the prefixes; the latter is constant */
    uint64_t all; /* records before this position are outdated */
};

/* What the marks say of a record. */
enum mark_verdict {
    MARKED_NOT,
    MARKED_EXPIRED, /* softly purged, */
    MARKED_PURGED,
};

void disk_marks_init(struct disk_marks *marks);
void disk_marks_free(struct disk_marks *marks);

/* The hash of what a purge names; `scope` is of a tag. */
uint64_t disk_mark_hash(enum mark_kind kind, bool soft, struct span name, struct span scope);

/*
 * Adds a mark, or moves the one that there is to a later position. False if everything earlier is
 * outdated from now on, without memory or place for it: then the position of that is in *all.
 */
bool disk_marks_add(struct disk_marks *marks, const struct disk_mark *mark, uint64_t *all);

/* Of a record; *us is when it expired softly, by the monotonic clock. */
enum mark_verdict disk_marks_find(struct disk_marks *marks, const struct disk_record *record,
                                  int64_t *us);

/* Does a mark of this URL purge each record of it before this position? */
bool disk_marks_outdate(struct disk_marks *marks, struct span url, uint64_t position);

/* Forgets the marks that are before this position: there is no earlier record. */
void disk_marks_forget(struct disk_marks *marks, uint64_t position);

/* Forgets all marks: those of another store. */
void disk_marks_clear(struct disk_marks *marks);

/* Bytes of a journal of them. */
uint64_t disk_marks_bytes(struct disk_marks *marks);

/*
 * A walk over all marks, which takes the lock for a piece at a time: those that are added meanwhile
 * may be missing, and one may come more than once. One walk at a time.
 */
struct marks_walk {
    struct disk_marks *marks;
    uint64_t rebuilt;
    size_t prefix, slot; /* the next of either */
    char *text;          /* of a prefix, owned */
    bool begun, failed;  /* failed: without memory */
};

void disk_marks_begin_walk(struct disk_marks *marks, struct marks_walk *walk);

/* The next ones, at most this many; 0: there are no more, or walk->failed. Everything earlier is
 * one of an empty prefix. A text is valid until the next call. */
size_t disk_marks_walk(struct marks_walk *walk, struct disk_mark *out, size_t most);

void disk_marks_end_walk(struct marks_walk *walk);

#endif
