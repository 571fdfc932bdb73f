/*
 * A part of a cache's capacity, for policies that divide it among queues. Where a cache is bounded
 * both in pages and in bytes, so is the part, and it is exceeded when either bound is.
 */
#ifndef SUNPROXY_POLICIES_SHARE_H
#define SUNPROXY_POLICIES_SHARE_H

#include "policies/list.h"
#include "policies/policy.h"

/* UINT64_MAX: not bounded. */
struct share {
    uint64_t pages;
    uint64_t bytes;
};

/* That many times a number, rounded down; UINT64_MAX if it is too large. */
static inline uint64_t
share_times(uint64_t whole, double fraction)
{
    double part = (double)whole * fraction;

    return part < 0x1p64 ? (uint64_t)part : UINT64_MAX;
}

/*
 * A fraction of a capacity, rounded down, but at least one page unless it is 0. A part of the cache
 * is at most 1; ghosts may have more than the capacity.
 */
static inline struct share
share_of(const struct policy_config *config, double fraction)
{
    struct share share = {UINT64_MAX, UINT64_MAX};

    if (config->capacity_pages) {
        share.pages = share_times(config->capacity_pages, fraction);
        if (share.pages == 0 && fraction > 0)
            share.pages = 1;
    }
    if (config->capacity_bytes)
        share.bytes = share_times(config->capacity_bytes, fraction);
    return share;
}

/* The capacity less a part. */
static inline struct share
share_rest(const struct policy_config *config, struct share part)
{
    struct share rest = {UINT64_MAX, UINT64_MAX};

    /* A part may be more than the whole by what a double is rounded up. */
    if (config->capacity_pages)
        rest.pages = part.pages < config->capacity_pages ? config->capacity_pages - part.pages : 0;
    if (config->capacity_bytes)
        rest.bytes = part.bytes < config->capacity_bytes ? config->capacity_bytes - part.bytes : 0;
    return rest;
}

/* Is a queue over its share? */
static inline bool
share_is_exceeded(const struct share *share, const struct list *list)
{
    return list->pages > share->pages || list->bytes > share->bytes;
}

/* Is it at its share, or over it? */
static inline bool
share_is_full(const struct share *share, const struct list *list)
{
    return list->pages >= share->pages || list->bytes >= share->bytes;
}

/* Would a page fit into the queue's share? And by itself, into an empty queue? */
static inline bool
share_fits(const struct share *share, const struct list *list, uint64_t bytes)
{
    return list->pages < share->pages && bytes <= share->bytes &&
           list->bytes <= share->bytes - bytes;
}

static inline bool
share_can_hold(const struct share *share, uint64_t bytes)
{
    return bytes <= share->bytes;
}

#endif
