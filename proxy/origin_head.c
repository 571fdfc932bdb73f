/*
 * What a response to HEAD means for the stored response to GET that its request did not get (RFC
 * 9111 section 4.3.5): the same representation has its fields updated, any other one is stale from
 * now on. Only the object that was there at the lookup is concerned: one from later may be newer
 * than the response.
 */
#include "http/storing.h"
#include "http/update.h"
#include "http/variant.h"
#include "proxy/origin_fill_parts.h"

static int64_t
wall_s(const struct origin_fill *fill)
{
    const struct proxy_clock *clock = &fill->proxy->config.clock;

    return clock->wall_us(clock->context) / 1000000;
}

/* May the object be stored with the updated fields, where it is, for all that get it? */
static bool
may_keep(const struct origin_fill *fill, const struct fetch_head *head, struct span fields,
         struct sharing *sharing)
{
    const struct proxy_config *config = &fill->proxy->config;
    const struct http_storing_rules rules = proxy_storing_rules(fill->proxy, fill->owned);
    const struct http_received received = {
        .method = span_str("GET"),
        .request_lines = span_of(fill->lines.data, fill->plain),
        .status = fill->stored->status,
        .lines = fields,
        .validated_by = head->headers,
        .arrival = {.wall_s = wall_s(fill), .waited_us = fill->waited_us},
    };
    struct http_vary before, after;

    sharing_init(sharing, false, config->max_age_us);
    sharing_add_raw(sharing, &received, &rules, proxy_now_us(fill->proxy));
    return sharing->storable && !sharing->unshared && !head->no_store &&
           http_vary_read(&before, object_fields(fill->stored)) == http_vary_read(&after, fields) &&
           http_vary_equal(&before, &after);
}

/* Replaces the object by one with these fields, if it is stored still. */
static void
replace(struct origin_fill *fill, struct span fields, struct span tags, struct sharing *sharing)
{
    static const struct cache_conditions any = {.no_cache = true, .max_age_us = INT64_MAX};
    int64_t born_us = sharing->born_us;
    struct object_waiter waiter;
    struct object *stored;
    struct cache_fill *beside =
        origin_fill_beside(fill, object_variant(fill->stored), &any, &waiter, &stored);
    bool same = stored == fill->stored;
    enum cache_outcome outcome;

    object_release(&stored);
    if (!beside)
        return;
    /* What was purged since the request is purged for its response, too. */
    beside->tag_purges = fill->base.tag_purges;
    if (same && !sharing->joinable)
        cache_fill_send_back(beside);
    if (same && cache_fill_refresh(beside,
                                   &(struct object_head){.status = fill->stored->status,
                                                         .fields = fields,
                                                         .tags = tags,
                                                         .fetched_us = born_us,
                                                         .account = fill->proxy->config.account},
                                   true, (uint64_t)fill->waited_us, born_us,
                                   sharing_lifetime(sharing, born_us), &outcome) == 0)
        origin_fill_end_beside(&beside, &waiter);
    else
        origin_fill_drop_beside(&beside, &waiter, false);
}

/* False if the object is to be considered stale. */
static bool
update(struct origin_fill *fill, const struct fetch_head *head, struct buf *fields,
       struct buf *tags)
{
    const struct http_storing_rules rules = proxy_storing_rules(fill->proxy, fill->owned);
    struct sharing sharing;

    if (!http_update_fields(object_fields(fill->stored), head->headers, &rules, wall_s(fill),
                            fields))
        return false;
    /* What the request has (Authorization) says nothing about the object. */
    if (!may_keep(fill, head, buf_span(fields), &sharing))
        return sharing.by_request;
    if (!origin_fill_tags(fill, buf_span(fields), tags))
        return false;
    replace(fill, buf_span(fields), buf_span(tags), &sharing);
    return true;
}

void
origin_head_apply(struct origin_fill *fill, const struct fetch_head *head)
{
    struct proxy *proxy = fill->proxy;
    struct object *stored = fill->stored;
    struct buf fields, tags;
    bool current = true;

    buf_init(&fields, OBJECT_MAX_META);
    buf_init(&tags, OBJECT_MAX_TAG_BYTES);
    switch (http_head_effect(head->status, head->headers, stored->status, object_fields(stored),
                             (int64_t)object_length(stored))) {
    case HTTP_HEAD_NO_EFFECT:
        break;
    case HTTP_HEAD_UPDATES:
        current = update(fill, head, &fields, &tags);
        break;
    case HTTP_HEAD_OUTDATES:
        current = false;
        break;
    }
    if (!current)
        cache_expire_object(proxy->config.cache, stored, proxy_now_us(proxy));
    buf_free(&fields);
    buf_free(&tags);
}
