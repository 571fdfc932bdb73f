#include "base/ring.h"

#include <assert.h>
#include <stdalign.h>
#include <stdlib.h>

/* Stands in front of a record. A record is in one piece: what is left at the end of the memory and
 * too short for the next one is skipped. */
struct ring_mark {
    alignas(max_align_t) size_t len; /* SKIP: up to the end of the memory */
};

#define MARK sizeof(struct ring_mark)
#define SKIP SIZE_MAX

bool
ring_init(struct ring *ring, size_t size)
{
    assert(size >= 64 && (size & (size - 1)) == 0);
    *ring = (struct ring){.bytes = malloc(size), .size = size};
    return ring->bytes != NULL;
}

void
ring_free(struct ring *ring)
{
    free(ring->bytes);
    ring->bytes = NULL;
}

static struct ring_mark *
mark_at(const struct ring *ring, size_t position)
{
    return (struct ring_mark *)(void *)(ring->bytes + (position & (ring->size - 1)));
}

/* With its mark, in units of marks: so a mark always fits in front of the end of the memory. */
static size_t
bytes_of(size_t len)
{
    return MARK + (len + MARK - 1) / MARK * MARK;
}

/* Are there `need` free bytes behind `head`? */
static bool
has_space(struct ring *ring, size_t head, size_t need)
{
    if (ring->size - (head - ring->tail_seen) >= need)
        return true;
    ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
    return ring->size - (head - ring->tail_seen) >= need;
}

void *
ring_reserve(struct ring *ring, size_t len)
{
    size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    size_t to_end = ring->size - (head & (ring->size - 1)), skip = 0;

    if (len <= ring->size / 4) {
        if (to_end < bytes_of(len))
            skip = to_end;
        if (has_space(ring, head, skip + bytes_of(len))) {
            if (skip)
                mark_at(ring, head)->len = SKIP;
            mark_at(ring, head + skip)->len = len;
            ring->reserved = skip + bytes_of(len);
            return mark_at(ring, head + skip) + 1;
        }
    }
    atomic_store_explicit(&ring->refused,
                          atomic_load_explicit(&ring->refused, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    return NULL;
}

void
ring_publish(struct ring *ring)
{
    size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

    atomic_store_explicit(&ring->head, head + ring->reserved, memory_order_release);
    ring->reserved = 0;
}

bool
ring_is_filled(struct ring *ring, size_t parts)
{
    size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

    return !has_space(ring, head, ring->size - ring->size / parts);
}

const void *
ring_read(struct ring *ring, size_t *len)
{
    const struct ring_mark *mark;

    if (ring->at == ring->head_seen) {
        ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire);
        if (ring->at == ring->head_seen)
            return NULL;
    }
    mark = mark_at(ring, ring->at);
    if (mark->len == SKIP) {
        /* The record for which the rest was skipped was published with the mark. */
        ring->at += ring->size - (ring->at & (ring->size - 1));
        mark = mark_at(ring, ring->at);
    }
    *len = mark->len;
    ring->at += bytes_of(mark->len);
    return mark + 1;
}

void
ring_release(struct ring *ring)
{
    atomic_store_explicit(&ring->tail, ring->at, memory_order_release);
}

void
ring_rewind(struct ring *ring)
{
    ring->at = atomic_load_explicit(&ring->tail, memory_order_relaxed);
}

uint64_t
ring_refused(const struct ring *ring)
{
    return atomic_load_explicit(&ring->refused, memory_order_relaxed);
}
