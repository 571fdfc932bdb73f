/*
 * Queues for naive policies (naive.h): arrays of page numbers, searched and moved from end to end,
 * the oldest first; and what a share of the capacity is to them.
 */
#ifndef SUNPROXY_TESTS_POLICIES_SEQ_H
#define SUNPROXY_TESTS_POLICIES_SEQ_H

#include "tests/unit/policies/naive.h"

struct seq {
    uint32_t ids[NAIVE_IDS];
    uint32_t count;
};

static inline uint32_t
seq_find(const struct seq *s, uint32_t id)
{
    uint32_t i = 0;

    while (i < s->count && s->ids[i] != id)
        i++;
    return i;
}

static inline bool
seq_has(const struct seq *s, uint32_t id)
{
    return seq_find(s, id) < s->count;
}

/* Takes it out; false if it was not in. */
static inline bool
seq_take(struct seq *s, uint32_t id)
{
    uint32_t i = seq_find(s, id);

    if (i == s->count)
        return false;
    for (s->count--; i < s->count; i++)
        s->ids[i] = s->ids[i + 1];
    return true;
}

static inline void
seq_append(struct seq *s, uint32_t id)
{
    if (s->count == NAIVE_IDS || seq_has(s, id))
        ck_abort_msg("the model is wrong");
    s->ids[s->count++] = id;
}

static inline void
seq_to_end(struct seq *s, uint32_t id)
{
    seq_take(s, id);
    seq_append(s, id);
}

static inline uint64_t
seq_bytes(const struct naive *n, const struct seq *s)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < s->count; i++)
        bytes += n->bytes[s->ids[i]];
    return bytes;
}

/* ---- shares of the capacity ------------------------------------------------------------------ */

static inline uint64_t
seq_share_pages(const struct naive *n, double fraction)
{
    uint64_t pages = (uint64_t)((double)n->capacity_pages * fraction);

    return !n->capacity_pages ? UINT64_MAX : pages || fraction <= 0 ? pages : 1;
}

static inline uint64_t
seq_share_bytes(const struct naive *n, double fraction)
{
    return n->capacity_bytes ? (uint64_t)((double)n->capacity_bytes * fraction) : UINT64_MAX;
}

static inline bool
seq_is_over(const struct naive *n, const struct seq *s, double fraction)
{
    return s->count > seq_share_pages(n, fraction) ||
           seq_bytes(n, s) > seq_share_bytes(n, fraction);
}

/* The rest of the capacity beside a share. */
static inline uint64_t
seq_rest_pages(const struct naive *n, double fraction)
{
    return n->capacity_pages ? n->capacity_pages - seq_share_pages(n, fraction) : UINT64_MAX;
}

static inline uint64_t
seq_rest_bytes(const struct naive *n, double fraction)
{
    return n->capacity_bytes ? n->capacity_bytes - seq_share_bytes(n, fraction) : UINT64_MAX;
}

static inline bool
seq_is_over_rest(const struct naive *n, const struct seq *s, double fraction)
{
    return s->count > seq_rest_pages(n, fraction) || seq_bytes(n, s) > seq_rest_bytes(n, fraction);
}

/* ---- ghosts: evicted pages that are remembered ----------------------------------------------- */

/* The bytes that a ghost counts: at least one. */
static inline uint64_t
seq_ghost_bytes(const struct naive *n, uint32_t id)
{
    return n->bytes[id] ? n->bytes[id] : 1;
}

/* Forgets from the oldest on while there is more than a share. */
static inline void
seq_forget(const struct naive *n, struct seq *s, double fraction)
{
    for (;;) {
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < s->count; i++)
            bytes += seq_ghost_bytes(n, s->ids[i]);
        if (s->count <= seq_share_pages(n, fraction) && bytes <= seq_share_bytes(n, fraction))
            return;
        seq_take(s, s->ids[0]);
    }
}

static inline void
seq_remember(const struct naive *n, struct seq *s, uint32_t id, double fraction)
{
    if (seq_ghost_bytes(n, id) > seq_share_bytes(n, fraction))
        return;
    seq_append(s, id);
    seq_forget(n, s, fraction);
}

#endif
