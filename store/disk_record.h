/*
 * The format of a record: what a store keeps of one object, and the checksums over it. A record is
 * its head, the texts of the object, a checksum for each part of the body, and the body. Numbers
 * are those of the machine: a store is not moved to one with another order of bytes, which its
 * magic numbers show.
 *
 * The checksums are XXH3 with a seed that is the segment's own. So a record that is found in
 * another place than it was written to is damaged, too. Safe on any thread.
 */
#ifndef SUNPROXY_STORE_DISK_RECORD_H
#define SUNPROXY_STORE_DISK_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "cache/object.h"

#define DISK_VERSION 3u
#define DISK_UNIT 16u                  /* records begin at multiples of this many bytes */
#define DISK_PART ((size_t)256 << 10)  /* bytes of a body under one checksum */
#define DISK_RECORD_MAGIC 0x52505531u  /* "1UPR" */

/* The beginning of a record, as it is on disk. */
struct disk_head {
    uint32_t magic;
    uint32_t head_len;   /* bytes up to the body */
    uint64_t sum;        /* of the bytes behind it, up to the body */
    uint64_t body_len;
    uint64_t position;   /* of the store, before the object was last found current */
    uint64_t url_hash;   /* as the index has it */
    int64_t born_wall_us; /* the wall clock, when the response's age was 0 */
    int64_t born_us;     /* the monotonic clock then, valid while the machine runs */
    uint64_t boot;       /* which names that run */
    uint32_t variant_hash;
    uint32_t lifetime;   /* as struct object has it */
    uint32_t fetch_us;
    uint32_t notes;
    uint32_t url_len;
    uint32_t variant_len;
    uint32_t names_len;
    uint32_t fields_len;
    uint32_t tags_len;
    uint32_t status;
};

/* A head that has been verified. The spans point into the bytes that it was read from. */
struct disk_record {
    struct disk_head head;
    struct span url, variant;
    struct span names; /* of the fields by which the URL varies; empty for the empty variant */
    struct span fields, tags;
    const char *sums; /* of the parts of the body */
};

/* Most bytes of a head, without the checksums of parts. */
#define DISK_HEAD_MAX                                                                              \
    (sizeof(struct disk_head) + 2 * OBJECT_MAX_META + 2 * OBJECT_MAX_VARIANT +                     \
     OBJECT_MAX_TAG_BYTES + 8)

/* Checksum of a run of bytes. */
uint64_t disk_sum(uint64_t seed, const void *bytes, size_t len);

/* Bytes of a head with these texts and a body of that length; and of the whole record. */
size_t disk_head_len(const struct disk_head *head);
uint64_t disk_record_len(const struct disk_head *head);

/*
 * Writes a head to `out`, which has disk_head_len() bytes: the lengths in `head` are those of the
 * spans, magic, head_len and sum are set. The checksums of the parts are made of the ready object's
 * body.
 */
void disk_head_write(char *out, uint64_t seed, struct disk_head *head,
                     const struct disk_record *texts, const struct object *object);

/* Has the fixed part of a head lengths that a store writes? The texts may be damaged. */
bool disk_head_is_likely(const struct disk_head *head);

/*
 * Reads a head from the `len` bytes at `bytes`. False if they are no undamaged head, or not all of
 * it.
 */
bool disk_head_read(const char *bytes, size_t len, uint64_t seed, struct disk_record *record);

/* Is this the part of the record's body with that number, undamaged? */
bool disk_part_verify(const struct disk_record *record, uint64_t seed, size_t part,
                      const void *bytes, size_t len);

/* The clocks, and the run of the machine that the monotonic one belongs to. */
struct disk_now {
    uint64_t boot;
    int64_t monotonic_us, wall_us;
};

/*
 * When the age of the record's response was 0, by the monotonic clock, and its lifetime from then
 * on. `expired_us` is of a soft purge, by that clock; INT64_MAX: there was none. A record from the
 * future has no age that is known: its age is 0, and it has expired.
 */
void disk_record_times(const struct disk_head *head, const struct disk_now *now,
                       int64_t expired_us, int64_t *born_us, int64_t *lifetime_us);

/*
 * Verifies the whole record, whose head has been read from `bytes` with this seed, and gives it
 * another position and the checksums of another segment. False if it is damaged.
 */
bool disk_record_reseal(char *bytes, size_t len, uint64_t seed, uint64_t new_seed,
                        uint64_t position, struct disk_record *record);

#endif
