/* What the beginning of a fill, its fetch and the rules of raw responses all use. */
#include "proxy/origin_fill_parts.h"

#include "proxy/tag_rules.h"
#include "proxy/tags.h"

const char origin_fill_out_of_memory[] = "Cannot allocate memory";
const char origin_fill_stopping[] = "the server is shutting down";

void
origin_fill_isolate(struct origin_fill *fill)
{
    /* What the request forbids says nothing about responses to others. */
    bool marks = !fill->sharing.by_request;

    atomic_store(&fill->may_keep, false);
    if (!fill->bypass)
        cache_fill_restrict(&fill->base, FILL_PRIVATE,
                            marks ? proxy_now_us(fill->proxy) + ORIGIN_FILL_MARKER_US : 0);
}

bool
origin_fill_tags(const struct origin_fill *fill, struct span lines, struct buf *tags)
{
    const struct proxy_config *config = &fill->proxy->config;

    if (fill->raw &&
        !tags_read(lines, config->tag_fields ? config->tag_fields : tags_default_fields, tags))
        return false;
    return !config->tag_rules ||
           tag_rules_apply(config->tag_rules, object_url(fill->base.object), tags);
}

void
origin_fill_untag(struct origin_fill *fill, struct buf *tags)
{
    fill->sharing.unshared = HTTP_REASON_TAGS;
    fill->sharing.by_request = false;
    origin_fill_isolate(fill);
    buf_reset(tags);
}

enum http_reason
origin_fill_why_unstored(const struct origin_fill *fill, unsigned status)
{
    const struct sharing *sharing = &fill->sharing;

    if (fill->bypass)
        return fill->passes;
    if (sharing->unshared)
        return sharing->unshared;
    if (fill->raw && !sharing->storable)
        return sharing->refusal;
    /* The status of what is not raw is that of the last of several responses. */
    if (!fill->raw && status != 200)
        return HTTP_REASON_STATUS;
    if (fill->no_store)
        return HTTP_REASON_FRAMING;
    if (!cache_fill_may_store(&fill->base))
        return fill->passes ? fill->passes : HTTP_REASON_PURGED;
    return HTTP_REASON_NONE;
}

void
origin_fill_explain(struct origin_fill *fill, enum http_reason reason)
{
    if (fill->reason || !reason)
        return;
    fill->reason = reason;
    cache_fill_explain(&fill->base, reason);
}

bool
origin_fill_is_no_leader(const struct object_waiter *waiter, void *context)
{
    (void)context;
    return !waiter->leader;
}

struct cache_fill *
origin_fill_beside(const struct origin_fill *fill, struct span variant,
                   struct object_waiter *waiter)
{
    const struct cache_key key = cache_key_of_variant(object_url(fill->base.object), variant);
    struct cache *cache = fill->proxy->config.cache;
    struct cache_found found;

    *waiter = (struct object_waiter){.notify = object_waiter_ignore};
    if (cache_lookup(cache, &key,
                     &(struct cache_request){.waiter = waiter,
                                             .fill_size = sizeof(struct cache_fill)},
                     proxy_now_us(fill->proxy), &found) == CACHE_BUSY) {
        cache_leave(cache, waiter);
        object_waiter_clear(waiter);
    }
    object_release(&found.object);
    return found.fill;
}

void
origin_fill_end_beside(struct cache_fill **beside, struct object_waiter *waiter)
{
    cache_fill_free(*beside);
    *beside = NULL;
    object_waiter_take(waiter);
    object_waiter_clear(waiter);
}

void
origin_fill_drop_beside(struct cache_fill **beside, struct object_waiter *waiter, bool has_head)
{
    cache_fill_fail(*beside, FAILURE_ORIGIN, "the response broke off", has_head ? NULL : origin_fill_is_no_leader,
                    NULL);
    origin_fill_end_beside(beside, waiter);
}

void
origin_fill_free(struct origin_fill *fill)
{
    struct proxy *proxy = fill->proxy;

    relay_close(&fill->relay);
    invalidation_free(&fill->write);
    buf_free(&fill->lines);
    if (fill->counted) {
        memory_uncharge(proxy->config.account, MEMORY_REQUESTS, fill->charged);
        client_share_give_back(&proxy->waiting, fill->client, fill->counted);
    }
    client_release(&fill->client);
    cache_fill_free(&fill->base);
}
