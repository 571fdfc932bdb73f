/*
 * The response to a POST that is a representation of its own URL (RFC 9110 section 9.3.3, RFC 9111
 * section 3): beside the object that goes to the client, which bypasses the cache, a fill for later
 * GET requests gets the same head and body. It begins when the request has invalidated the URL. Any
 * other invalidation since the request was forwarded, and any later one, keeps it from being
 * stored: the response may be older than what another write has made.
 */
#include "http/field.h"
#include "http/known_fields.h"
#include "http/reference.h"
#include "http/storing.h"
#include "http/variant.h"
#include "proxy/filling.h"
#include "proxy/proxy_rules.h"
#include "rules/rules.h"

/* It has been finished or has failed. */
static void
end_own(struct origin_fill *fill)
{
    cache_fill_free(fill->own);
    fill->own = NULL;
    object_waiter_take(&fill->own_waiter);
    object_waiter_clear(&fill->own_waiter);
}

/* It fails: requests that have joined it look up again, or break off after its head. */
static void
drop_own(struct origin_fill *fill, bool has_head)
{
    cache_fill_fail(fill->own, FAILURE_ORIGIN, "the response broke off",
                    has_head ? NULL : origin_fill_is_no_leader, NULL);
    end_own(fill);
}

/* Longer bodies are not kept twice, nor those whose length is not known. */
#define OWN_MAX ((uint64_t)1 << 20)

/* Does the reference name the URL of the request, as the client's or as the member's? */
static bool
names_url(const struct origin_fill *fill, struct span reference)
{
    struct span url = object_url(fill->base.object);
    struct buf location;
    bool same;

    buf_init(&location, OBJECT_MAX_META);
    same =
        http_resolve_same_origin(url, reference, &location) && span_equal(buf_span(&location), url);
    buf_reset(&location);
    same = same ||
           (fill->request->route &&
            origin_route_resolve(fill->request->route, fill->member, url, reference, &location) &&
            span_equal(buf_span(&location), url));
    buf_free(&location);
    return same;
}

/* Is Content-Location the URL of the request? */
static bool
is_own_location(const struct origin_fill *fill, struct span lines)
{
    struct span line, name, value;
    bool own = false;

    while (!own && http_next_line(&lines, &line))
        own = http_split_field(line, &name, &value) && http_name_is(name, "Content-Location") &&
              names_url(fill, value);
    return own;
}

/* May the response answer later GET requests, all of them alike? */
static bool
is_storable(struct origin_fill *fill, const struct fetch_head *head)
{
    const struct proxy *proxy = fill->proxy;
    const struct http_storing_rules rules = proxy_storing_rules(
        proxy, fill->request,
        &(struct rules_response){
            .url = object_url(fill->base.object), .status = head->status, .lines = head->headers});
    const struct http_received received = {
        .method = HTTP_POST,
        .request_lines = origin_fill_selecting(fill),
        .status = head->status,
        .lines = head->headers,
        .arrival = {.wall_s = proxy_wall_s(proxy), .waited_us = fill->waited_us},
        .own_location = true,
    };
    struct http_vary vary;

    sharing_evaluate(&fill->own_sharing, &received, &rules, proxy_now_us(proxy));
    /* A Set-Cookie that a rule overrides is in the parts, for the client of the POST. */
    return !fill->own_sharing.refusal && !fill->own_sharing.unshared && !head->no_store &&
           !(fill->own_sharing.notes & HTTP_KNOWN_NO_SET_COOKIE) && !rules.key_count &&
           http_vary_read(&vary, head->headers) == HTTP_VARY_NONE;
}

/*
 * Begins the fill beside this one, which no request has led to, and whose waiter has to stay until
 * its end. None if the cache has an answer already, if another write has invalidated the same since
 * the request was sent, or without memory.
 */
static void
begin_own(struct origin_fill *fill)
{
    const struct cache_key key = cache_key_of(object_url(fill->base.object));
    struct cache *cache = fill->proxy->config.cache;
    const struct cache_request request = {
        .waiter = &fill->own_waiter,
        .fill_size = sizeof(struct cache_fill),
        .epoch = fill->epoch,
        .own_epoch = fill->write.change.epoch,
    };
    struct cache_found found;

    if (fill->write.change.latest > fill->epoch)
        return;
    fill->own_waiter = (struct object_waiter){.notify = object_waiter_ignore};
    if (cache_lookup(cache, &key, &request, proxy_now_us(fill->proxy), &found) == CACHE_BUSY) {
        cache_leave(&fill->own_waiter);
        object_waiter_clear(&fill->own_waiter);
    }
    object_release(&found.object);
    fill->own = found.fill;
}

/* False if it cannot: without memory, or with too many tags. */
static bool
begin_object(struct origin_fill *fill, const struct fetch_head *head,
             const struct response_parts *parts)
{
    struct object_head own = {
        .status = head->status,
        .notes = origin_response_notes(head, buf_span(&parts->fields), &fill->own_sharing),
        .fields = buf_span(&parts->fields),
        .length = head->content_length,
        .max_length = OWN_MAX,
        .fetched_us = fill->own_sharing.born_us,
        .fresh_until_us = fill->own_sharing.fresh_until_us,
        .while_revalidate_us = fill->own_sharing.while_revalidate_us,
        .account = fill->proxy->config.account,
    };
    struct buf tags;
    bool begun;

    buf_init(&tags, OBJECT_MAX_TAG_BYTES);
    begun = origin_response_tags(fill, head->headers, &tags);
    own.tags = buf_span(&tags);
    begun = begun && cache_fill_head(fill->own, &own) == 0;
    buf_free(&tags);
    return begun;
}

/* Do rules change what requests for the URL are sent with, or the response, for either method? */
static bool
is_edited(const struct origin_fill *fill)
{
    const struct rules *rules = proxy_rules_of(fill->proxy, fill->request)->table;
    const struct span url = object_url(fill->base.object);

    return rules &&
           (rules_concern(rules, 0, SIZE_MAX, HTTP_GET, url) == RULES_CONCERN_CONTENT ||
            rules_concern(rules, 0, SIZE_MAX, HTTP_POST, url) == RULES_CONCERN_CONTENT);
}

void
origin_own_begin(struct origin_fill *fill, const struct fetch_head *head,
                 const struct response_parts *parts)
{
    if (fill->request->method != HTTP_POST || fill->request->passes || fill->sharing.any ||
        is_edited(fill) || head->content_length < 0 || head->content_length > (int64_t)OWN_MAX ||
        !is_own_location(fill, head->headers) || !is_storable(fill, head))
        return;
    begin_own(fill);
    if (fill->own && !fill->own_sharing.joinable)
        cache_fill_restrict(fill->own, FILL_VALIDATE, 0);
    if (fill->own && !begin_object(fill, head, parts))
        drop_own(fill, false);
}

void
origin_own_append(struct origin_fill *fill, const void *bytes, size_t len)
{
    if (fill->own && cache_fill_append(fill->own, bytes, len) != 0)
        drop_own(fill, true);
}

void
origin_own_end(struct origin_fill *fill, bool complete, int64_t total_us)
{
    int64_t born_us = fill->own_sharing.born_us;

    if (fill->own && !complete)
        drop_own(fill, true);
    if (!fill->own)
        return;
    cache_fill_finish(fill->own, true, (uint64_t)total_us, born_us,
                      sharing_lifetime(&fill->own_sharing, born_us));
    end_own(fill);
}
