/*
 * What a response to HEAD means for the stored response to GET that its request did not get (RFC
 * 9111 section 4.3.5): the same representation has its fields updated, any other one is stale from
 * now on, and one that is for no other client any more is removed. Only the object that was there
 * at the lookup is concerned: one from later may be newer than the response. One that has been
 * expired by a purge stays so until it is validated.
 */
#include "http/field.h"
#include "http/known_fields.h"
#include "http/storing.h"
#include "http/update.h"
#include "http/variant.h"
#include "proxy/origin_fill_parts.h"

/* What becomes of the object. */
enum verdict {
    KEPT,
    EXPIRED,
    REMOVED,
};

/* Evaluates a response with these lines; `validated_by` as struct http_received has it. */
static void
evaluate(const struct origin_fill *fill, struct span lines, struct span validated_by,
         struct sharing *sharing)
{
    const struct proxy_config *config = &fill->proxy->config;
    const struct http_storing_rules rules = proxy_storing_rules(fill->proxy, fill->owned);
    const struct http_received received = {
        .method = HTTP_GET,
        .request_lines = span_of(fill->lines.data, fill->plain),
        .status = fill->stored->status,
        .lines = lines,
        .validated_by = validated_by,
        .arrival = {.wall_s = proxy_wall_s(fill->proxy), .waited_us = fill->waited_us},
        .made_for = validated_by.ptr ? sharing_made_for(fill->stored->notes) : 0,
    };

    sharing_init(sharing, false, config->max_age_us);
    sharing_add_raw(sharing, &received, &rules, proxy_now_us(fill->proxy));
}

/* Is the response this request's own, so that it says nothing about what others may have? */
static bool
is_personal(const struct origin_fill *fill, const struct sharing *sharing)
{
    return sharing->unshared &&
           http_credentials_of(span_of(fill->lines.data, fill->plain)) != 0;
}

/* Are the stored response and one with these lines selected by the same fields of requests? */
static bool
varies_alike(const struct origin_fill *fill, struct span fields)
{
    struct http_vary before, after;

    return http_vary_read(&before, object_fields(fill->stored)) == http_vary_read(&after, fields) &&
           http_vary_equal(&before, &after);
}

/* Replaces the object by one with these fields, if it is stored still. */
static void
replace(struct origin_fill *fill, struct span fields, struct span tags, struct sharing *sharing)
{
    static const struct cache_conditions any = {.no_cache = true, .max_age_us = INT64_MAX};
    const unsigned version = fill->stored->notes & HTTP_KNOWN_VERSION_1_0;
    int64_t born_us = sharing->born_us;
    struct object_waiter waiter;
    struct object *stored;
    struct cache_fill *beside =
        origin_fill_beside(fill, object_variant(fill->stored), &any, &waiter, &stored);
    /* A purge may have expired it until now; from now on one ends the fill. */
    bool same = stored == fill->stored && !object_was_expired(stored);
    enum cache_outcome outcome;

    object_release(&stored);
    if (!beside)
        return;
    /* What was purged since the request is purged for its response, too. */
    cache_fill_dates_from(beside, fill->epoch, 0);
    if (same && !sharing->joinable)
        cache_fill_send_back(beside);
    if (same &&
        cache_fill_refresh(beside,
                           &(struct object_head){.status = fill->stored->status,
                                                 .notes = http_known_fields(fields) | version |
                                                          sharing->notes,
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

static enum verdict
update(struct origin_fill *fill, const struct fetch_head *head, struct buf *fields,
       struct buf *tags)
{
    const struct http_storing_rules rules = proxy_storing_rules(fill->proxy, fill->owned);
    struct sharing sharing;

    if (!http_update_fields(object_fields(fill->stored), head->headers, &rules,
                            proxy_wall_s(fill->proxy), fields))
        return EXPIRED;
    evaluate(fill, buf_span(fields), head->headers, &sharing);
    if (is_personal(fill, &sharing))
        return KEPT;
    if (head->no_store)
        return EXPIRED;
    /* The request is no user's: the object is one's, which the origin does not share any more. */
    if (sharing.unshared)
        return sharing.by_request && !sharing.by_user ? KEPT : REMOVED;
    if (!sharing.storable || !varies_alike(fill, buf_span(fields)) ||
        !origin_fill_tags(fill, buf_span(fields), tags))
        return EXPIRED;
    replace(fill, buf_span(fields), buf_span(tags), &sharing);
    return KEPT;
}

static enum verdict
outdate(struct origin_fill *fill, const struct fetch_head *head)
{
    struct sharing sharing;

    evaluate(fill, head->headers, span_of(NULL, 0), &sharing);
    if (is_personal(fill, &sharing))
        return KEPT;
    return sharing.unshared && !sharing.by_request ? REMOVED : EXPIRED;
}

void
origin_head_apply(struct origin_fill *fill, const struct fetch_head *head)
{
    struct proxy *proxy = fill->proxy;
    struct object *stored = fill->stored;
    enum verdict verdict = KEPT;
    struct buf fields, tags;

    buf_init(&fields, OBJECT_MAX_META);
    buf_init(&tags, OBJECT_MAX_TAG_BYTES);
    switch (http_head_effect(head->status, head->headers, stored->status, object_fields(stored),
                             (int64_t)object_length(stored))) {
    case HTTP_HEAD_NO_EFFECT:
        break;
    case HTTP_HEAD_UPDATES:
        if (!object_was_expired(stored))
            verdict = update(fill, head, &fields, &tags);
        break;
    case HTTP_HEAD_OUTDATES:
        verdict = outdate(fill, head);
        break;
    }
    if (verdict == EXPIRED)
        cache_expire_object(proxy->config.cache, stored, proxy_now_us(proxy));
    else if (verdict == REMOVED)
        cache_purge_object(proxy->config.cache, stored);
    buf_free(&fields);
    buf_free(&tags);
}
