/*
 * A thing that several owners share and none changes, counted by references: a part of the object
 * that it keeps alive. Safe on any thread.
 */
#ifndef SUNPROXY_BASE_SHARED_H
#define SUNPROXY_BASE_SHARED_H

#include <stdatomic.h>
#include <stddef.h>

struct shared {
    _Atomic unsigned references;
    void (*destroy)(struct shared *shared); /* frees the object, on the thread of the last release */
};

/* One reference, the caller's. */
static inline void
shared_init(struct shared *shared, void (*destroy)(struct shared *shared))
{
    atomic_init(&shared->references, 1);
    shared->destroy = destroy;
}

/* Returns it; NULL is harmless. */
static inline struct shared *
shared_retain(struct shared *shared)
{
    if (shared)
        atomic_fetch_add_explicit(&shared->references, 1, memory_order_relaxed);
    return shared;
}

/* Releases and clears *shared, which may be NULL. */
static inline void
shared_release(struct shared **shared)
{
    struct shared *gone = *shared;

    *shared = NULL;
    if (gone && atomic_fetch_sub_explicit(&gone->references, 1, memory_order_acq_rel) == 1)
        gone->destroy(gone);
}

#endif
