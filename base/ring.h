/*
 * A bounded queue of records of any length between two threads: one appends, the other reads. Bytes
 * in a ring, without a lock, an allocation or a locked instruction. When it is full, a record is
 * refused and counted, so the appending thread never waits.
 *
 * The reader releases records explicitly: until then it may rewind and read them again, as after a
 * transaction that was rolled back.
 */
#ifndef SUNPROXY_BASE_RING_H
#define SUNPROXY_BASE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring {
    char *bytes;
    size_t size; /* a power of two */

    /* the appending thread's */
    _Alignas(64) _Atomic size_t head; /* bytes appended since the beginning */
    size_t tail_seen;                 /* a value of `tail`, perhaps an old one */
    size_t reserved;                  /* bytes behind `head` that are not published yet */
    _Atomic uint64_t refused;

    /* the reading thread's */
    _Alignas(64) _Atomic size_t tail; /* bytes released */
    size_t at;                        /* bytes read */
    size_t head_seen;
};

/* A place for `size` bytes, a power of two of at least 64. False without memory. */
bool ring_init(struct ring *ring, size_t size);

/* Harmless after a failed ring_init(). */
void ring_free(struct ring *ring);

/* ---- the appending thread */

/*
 * Memory for a record of `len` bytes, aligned for any type; it is in the queue after
 * ring_publish(). NULL, counted as refused, if the queue is full or the record takes more than a
 * quarter of it.
 */
void *ring_reserve(struct ring *ring, size_t len);
void ring_publish(struct ring *ring);

/* Does more than this share of the ring hold records, 1/`parts`? May err to "yes". */
bool ring_is_filled(struct ring *ring, size_t parts);

/* ---- the reading thread */

/* The next record and its length, valid until it is released; NULL: there is none. */
const void *ring_read(struct ring *ring, size_t *len);

/* Releases what has been read: the memory may be used for new records. */
void ring_release(struct ring *ring);

/* The next ring_read() returns the first record that is not released. */
void ring_rewind(struct ring *ring);

/* ---- any thread */

/* Records that were refused so far. */
uint64_t ring_refused(const struct ring *ring);

#endif
