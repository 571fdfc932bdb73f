/*
 * The index of a store: where on disk the objects are, by the hashes of URL and variant. It has 12
 * bytes for an object in tables that are at most four fifths full and at least 64 %, so an object
 * takes 15 to 19 bytes. It keeps parts of the hashes, so what it finds may be another object, which
 * the record on disk shows.
 *
 * The index is divided into tables with a lock each. A search takes one lock and no other.
 */
#ifndef SUNPROXY_STORE_DISK_INDEX_H
#define SUNPROXY_STORE_DISK_INDEX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

#define DISK_TABLES 1024u
#define DISK_SEGMENTS 65535u              /* numbers of segments are from 1 to this */
#define DISK_OFFSETS ((uint64_t)1 << 24)  /* of records in a segment, in units */

/* Where a record is. */
struct disk_place {
    uint16_t segment;
    uint32_t offset; /* in units (DISK_UNIT) */
    uint32_t length; /* bytes, at least the record's, and at most 17/16 of them; UINT32_MAX: more */
};

struct disk_slot {
    uint32_t url;     /* a part of the hash */
    uint16_t variant; /* likewise, and the highest bit for a record that was read */
    uint16_t segment; /* 0: the slot is free */
    uint32_t where;   /* offset, and a class of length */
};

struct disk_table {
    pthread_mutex_t lock;
    struct disk_slot *slots;
    uint32_t size, used;
};

struct disk_index {
    struct disk_table tables[DISK_TABLES];
    _Atomic size_t used, size; /* slots of all tables: counted, so that no lock is taken for them */
};

/* A key as the index has it. */
struct disk_key {
    uint64_t url;
    uint32_t variant; /* 0 for the empty one alone */
};

/* `secret` is that of the store's identity. */
struct disk_key disk_key_of(uint64_t secret, struct span url, struct span variant);

void disk_index_init(struct disk_index *index);

/* Space for this many objects, so that the tables, which are empty, grow no more for them. */
void disk_index_reserve(struct disk_index *index, size_t count);
void disk_index_free(struct disk_index *index);

/* Objects, and bytes of the tables. Neither takes a lock: statistics are asked for often. */
size_t disk_index_count(const struct disk_index *index);
size_t disk_index_bytes(const struct disk_index *index);

/*
 * Finds the key, or for the empty variant any one of the URL. `hold` is called under the lock,
 * which an eviction of the segment takes before it goes. Notes that it was read, if `hold` is not
 * NULL.
 */
bool disk_index_find(struct disk_index *index, const struct disk_key *key, struct disk_place *place,
                     void (*hold)(void *context, uint16_t segment), void *context);

/* Is there any one of the URL? */
bool disk_index_has_url(struct disk_index *index, uint64_t url);

/*
 * Is there a record that one of this key takes the place of? That of the same key; for the empty
 * variant any one of the URL, and for another one that of the empty variant: the URL does not vary
 * any more, or has not before. *turns then.
 */
bool disk_index_replaces(struct disk_index *index, const struct disk_key *key, bool *turns);

/* In place of what there is; `absent`: only if there is nothing. False without memory or then. */
bool disk_index_put(struct disk_index *index, const struct disk_key *key,
                    const struct disk_place *place, bool absent);

/* Moves the key from one place to another; false if it is not there. */
bool disk_index_move(struct disk_index *index, const struct disk_key *key,
                     const struct disk_place *from, const struct disk_place *to);

/* Removes the key if it is at this place; *was_read: has it been found since it was put there? */
bool disk_index_remove(struct disk_index *index, const struct disk_key *key,
                       const struct disk_place *place, bool *was_read);

/* Is the key at this place? *was_read: has it been found since it was put there? */
bool disk_index_is_at(struct disk_index *index, const struct disk_key *key,
                      const struct disk_place *place, bool *was_read);

/* Removes all of a URL; returns how many. */
unsigned disk_index_remove_url(struct disk_index *index, uint64_t url);

/* Removes all of a segment; 0: all of all. */
void disk_index_remove_segment(struct disk_index *index, uint16_t segment);

#endif
