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

/* A fraction in (0, 1] of a capacity, rounded down, but at least one page. */
static inline struct share
share_of(const struct policy_config *config, double fraction)
{
    struct share share = {UINT64_MAX, UINT64_MAX};

    if (config->capacity_pages) {
        share.pages = (uint64_t)((double)config->capacity_pages * fraction);
        if (share.pages == 0)
            share.pages = 1;
    }
    if (config->capacity_bytes)
        share.bytes = (uint64_t)((double)config->capacity_bytes * fraction);
    return share;
}

/* What a part leaves of the capacity. */
static inline struct share
share_rest(const struct policy_config *config, struct share part)
{
    struct share rest = {UINT64_MAX, UINT64_MAX};

    if (config->capacity_pages)
        rest.pages = config->capacity_pages - part.pages;
    if (config->capacity_bytes)
        rest.bytes = config->capacity_bytes - part.bytes;
    return rest;
}

/* Has a queue more than its share? */
static inline bool
share_is_exceeded(const struct share *share, const struct list *list)
{
    return list->pages > share->pages || list->bytes > share->bytes;
}

/* Has it no room for anything more? */
static inline bool
share_is_full(const struct share *share, const struct list *list)
{
    return list->pages >= share->pages || list->bytes >= share->bytes;
}

/* Would a page fit besides what is in the queue? And by itself? */
static inline bool
share_has_room(const struct share *share, const struct list *list, uint64_t bytes)
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
