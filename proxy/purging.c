#include "proxy/purging.h"

#include "store/store.h"

/*
 * Before the purge of the cache a mark keeps what is purged from being read into it again. The one
 * after it, which is noted, concerns what was offered to the store meanwhile.
 */
static struct store_marked
mark(struct proxy *proxy, const struct purging *purging, bool soft,
     const struct store_marked *before)
{
    static const enum store_purge kinds[] = {
        [CACHE_BY_URL] = STORE_PURGE_URL,
        [CACHE_BY_PREFIX] = STORE_PURGE_PREFIX,
        [CACHE_BY_TAG] = STORE_PURGE_TAG,
    };

    if (!proxy->config.store)
        return (struct store_marked){.count = 0};
    return store_mark(proxy->config.store, kinds[purging->by], soft, purging->name, purging->origin,
                      before);
}

uint64_t
purging_remove(struct proxy *proxy, const struct purging *p)
{
    const struct store_marked stored = mark(proxy, p, false, NULL);
    uint64_t count =
        cache_purge_part(proxy->config.cache, p->by, p->name, p->scope, p->tags, p->change);

    mark(proxy, p, false, &stored);
    return count > stored.count ? count : stored.count;
}

uint64_t
purging_remove_all(struct proxy *proxy)
{
    const struct purging all = {.by = CACHE_BY_PREFIX};
    const struct store_marked stored = mark(proxy, &all, false, NULL);
    const uint64_t count = cache_purge_all(proxy->config.cache);

    mark(proxy, &all, false, &stored);
    return count;
}

uint64_t
purging_expire(struct proxy *proxy, const struct purging *p)
{
    const struct store_marked stored = mark(proxy, p, true, NULL);
    const uint64_t count = cache_expire(proxy->config.cache, p->by, p->name, proxy_now_us(proxy));

    mark(proxy, p, true, &stored);
    return count > stored.count ? count : stored.count;
}
