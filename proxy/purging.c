#include "proxy/purging.h"

struct marks {
    struct source_marked of[PROXY_SOURCES];
};

/*
 * Before the purge of the cache a mark keeps what is purged from being read into it again. The one
 * after it, which is noted, concerns what was offered to the source meanwhile.
 */
static struct marks
mark(struct proxy *proxy, const struct purging *p, const struct marks *before)
{
    struct source *const *sources = proxy->config.sources;
    const struct source_purge purge = {p->by, p->fate == CACHE_EXPIRED, p->name, p->origin};
    struct marks marks = {0};

    for (unsigned i = 0; sources[i]; i++) {
        if (sources[i] == p->told_by || (p->local && sources[i]->ops->is_shared))
            continue;
        marks.of[i] = sources[i]->ops->mark(sources[i], &purge, before ? &before->of[i] : NULL);
        if (p->marks && marks.of[i].number > p->marks->of[i])
            p->marks->of[i] = marks.of[i].number;
    }
    return marks;
}

struct purging_marks
purging_all_marks(void)
{
    struct purging_marks marks;

    for (unsigned i = 0; i < PROXY_SOURCES; i++)
        marks.of[i] = SOURCE_ALL_MARKS;
    return marks;
}

static uint64_t
most(const struct marks *marks, uint64_t count)
{
    for (unsigned i = 0; i < PROXY_SOURCES; i++)
        if (marks->of[i].count > count)
            count = marks->of[i].count;
    return count;
}

uint64_t
purging_apply(struct proxy *proxy, const struct purging *p)
{
    const struct marks marks = mark(proxy, p, NULL);
    const struct cache_purge purge = {.by = p->by,
                                      .name = p->name,
                                      .fate = p->fate,
                                      .scope = p->scope,
                                      .now_us = proxy_now_us(proxy),
                                      .tags = p->tags,
                                      .change = p->change};
    const uint64_t count = cache_purge(proxy->config.cache, &purge);

    mark(proxy, p, &marks);
    return most(&marks, count);
}

uint64_t
purging_remove_all(struct proxy *proxy, struct purging_marks *left)
{
    const struct purging all = {.by = CACHE_BY_PREFIX, .marks = left};
    const struct marks marks = mark(proxy, &all, NULL);
    const uint64_t count = cache_purge_all(proxy->config.cache);

    mark(proxy, &all, &marks);
    return count;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void
take_result(struct purging_wait *wait, const struct source_waiter *waiter)
{
    if (waiter->lost)
        atomic_store(&wait->lost, true);
    if (waiter->untold)
        atomic_store(&wait->untold, true);
}

static void
note(struct source_waiter *waiter)
{
    struct purging_wait *wait = ((struct purging_noted *)waiter)->wait;

    take_result(wait, waiter);
    if (atomic_fetch_sub(&wait->pending, 1) == 1)
        wait->notify(wait);
}

bool
purging_is_noted(const struct proxy *proxy, struct purging_wait *wait)
{
    struct source *const *sources = proxy->config.sources;

    atomic_store(&wait->pending, 1);
    atomic_store(&wait->lost, false);
    atomic_store(&wait->untold, false);
    for (unsigned i = 0; sources[i]; i++) {
        wait->noted[i] = (struct purging_noted){
            .base = {.notify = note, .number = wait->marks.of[i]}, .wait = wait};
        if (!wait->marks.of[i])
            continue;
        atomic_fetch_add(&wait->pending, 1);
        if (!sources[i]->ops->is_synced(sources[i], &wait->noted[i].base))
            continue;
        take_result(wait, &wait->noted[i].base);
        atomic_fetch_sub(&wait->pending, 1);
    }
    return atomic_fetch_sub(&wait->pending, 1) == 1;
}

bool
purging_forget(const struct proxy *proxy, struct purging_wait *wait)
{
    struct source *const *sources = proxy->config.sources;
    unsigned forgotten = 0;

    for (unsigned i = 0; sources[i]; i++)
        forgotten += sources[i]->ops->forget_waiter(sources[i], &wait->noted[i].base);
    /* The last one to be noted, if there is another one, notifies. */
    return forgotten && atomic_fetch_sub(&wait->pending, forgotten) == forgotten;
}
