#include "proxy/purging.h"

#include "store/store.h"

/*
 * Before the purge of the cache a mark keeps what is purged from being read into it again. The one
 * after it, which is noted, concerns what was offered to the store meanwhile.
 */
static unsigned
mark(struct proxy *proxy, const struct purging *purging, bool soft, bool noted)
{
    static const enum store_purge kinds[] = {
        [CACHE_BY_URL] = STORE_PURGE_URL,
        [CACHE_BY_PREFIX] = STORE_PURGE_PREFIX,
        [CACHE_BY_TAG] = STORE_PURGE_TAG,
    };

    if (!proxy->config.store)
        return 0;
    return store_mark(proxy->config.store, kinds[purging->by], soft, purging->name,
                      purging->origin, noted);
}

uint64_t
purging_remove(struct proxy *proxy, const struct purging *p)
{
    const uint64_t stored = mark(proxy, p, false, false);
    uint64_t count =
        cache_purge_part(proxy->config.cache, p->by, p->name, p->scope, p->tags, p->change);

    mark(proxy, p, false, true);
    return count > stored ? count : stored;
}

uint64_t
purging_remove_all(struct proxy *proxy)
{
    const struct purging all = {.by = CACHE_BY_PREFIX};
    uint64_t count;

    mark(proxy, &all, false, false);
    count = cache_purge_all(proxy->config.cache);
    mark(proxy, &all, false, true);
    return count;
}

uint64_t
purging_expire(struct proxy *proxy, const struct purging *p)
{
    uint64_t count;

    mark(proxy, p, true, false);
    count = cache_expire(proxy->config.cache, p->by, p->name, p->scope, proxy_now_us(proxy));
    mark(proxy, p, true, true);
    return count;
}
