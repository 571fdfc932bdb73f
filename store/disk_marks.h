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

#define MARKS_MAX ((size_t)1 << 20) /* of URLs and tags, 24 bytes each at least */
#define MARKS_PREFIXES 256u

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
    int64_t wall_us;     /* the wall clock then */
};

struct mark_slot {
    uint64_t hash; /* 0: free */
    uint64_t position;
    int64_t wall_us;
};

struct mark_prefix {
    char *text; /* owned */
    size_t len;
    bool soft;
    uint64_t position;
    int64_t wall_us;
};

struct disk_marks {
    pthread_mutex_t lock;
    uint64_t secret; /* so that hashes that fall together in the table cannot be made on purpose */
    struct mark_slot *slots;
    size_t size, used;
    struct mark_prefix prefixes[MARKS_PREFIXES];
    size_t prefix_count;
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

/* Of a record; *wall_us is when it expired softly. */
enum mark_verdict disk_marks_find(struct disk_marks *marks, const struct disk_record *record,
                                  int64_t *wall_us);


/* Forgets the marks that are before this position: there is no earlier record. */
void disk_marks_forget(struct disk_marks *marks, uint64_t position);

/* Forgets all marks: those of another store. */
void disk_marks_clear(struct disk_marks *marks);

/* Calls `visit` for each mark, under the lock. Everything earlier is one of an empty prefix. */
void disk_marks_visit(struct disk_marks *marks,
                      void (*visit)(void *context, const struct disk_mark *mark), void *context);

#endif
