/*
 * What bounds a fill beside memory: whose the response is and whether it is stored, the window
 * of a body that is not stored, and the requests that wait for the object.
 */
#include <errno.h>

#include "http/conditional.h"
#include "http/range.h"
#include "http/response_head.h"
#include "proxy/filling.h"
#include "proxy/tag_rules.h"

/* ---- whose it is ----------------------------------------------------------------------------- */

void
origin_fill_isolate(struct origin_fill *fill)
{
    /* What the request forbids says nothing about responses to others. */
    bool pass = !sharing_is_by_request(&fill->sharing);

    atomic_store(&fill->keeping, KEEPING_NOT);
    if (!origin_fill_bypasses(fill))
        cache_fill_restrict(&fill->base, FILL_PRIVATE,
                            pass ? proxy_now_us(fill->proxy) + ORIGIN_FILL_PASS_US : 0);
}

bool
origin_fill_tags(const struct origin_fill *fill, struct span lines, struct buf *tags)
{
    const struct proxy_config *config = &fill->proxy->config;

    if (!tags_read(lines, config->tag_fields ? config->tag_fields : tags_default_fields, tags))
        return false;
    return !config->tag_rules ||
           (tag_rules_apply(config->tag_rules, object_url(fill->base.object), tags) &&
            (!fill->request->target.len ||
             tag_rules_apply(config->tag_rules, fill->request->target, tags)));
}

void
origin_fill_untag(struct origin_fill *fill, struct buf *tags)
{
    fill->sharing.unshared = HTTP_REASON_TAGS;
    origin_fill_isolate(fill);
    buf_reset(tags);
}

enum http_reason
origin_fill_why_unstored(const struct origin_fill *fill, bool no_store)
{
    const struct sharing *sharing = &fill->sharing;

    if (origin_fill_bypasses(fill))
        return fill->passes;
    if (sharing->unshared)
        return sharing->unshared;
    if (sharing->refusal)
        return sharing->refusal;
    if (no_store)
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

/* ---- bodies that are not stored -------------------------------------------------------------- */

uint64_t
origin_fill_largest(const struct origin_fill *fill)
{
    const struct proxy_config *config = &fill->proxy->config;
    struct cache_config cache;
    uint64_t share;

    if (config->max_page)
        return config->max_page;
    if (!request_streams(fill->request))
        return config->max_body;
    cache_get_config(config->cache, &cache);
    share = cache.capacity_bytes / 8;
    /* Those that version 1 of RPC can carry are stored in small caches, too: studies replay traces
     * of any pages. */
    if (fill->request->flags & REQUEST_PAGE_ONLY && share < config->max_body)
        return config->max_body;
    return share ? share : config->max_body;
}

static void
resume(struct cache_fill *base)
{
    struct origin_fill *fill = (struct origin_fill *)base;
    const struct origin *origin = &fill->proxy->config.origin;

    origin->ops->resume(origin->context, fill->fetch);
}

bool
origin_fill_can_open_window(const struct origin_fill *fill)
{
    return request_streams(fill->request) && fill->base.object->segmented &&
           !object_is_windowed(fill->base.object);
}

void
origin_fill_unmark(struct origin_fill *fill)
{
    /* Of what the origin evaluated a passed request to, only 200 is for all. */
    if (fill->sharing.unshared || !fill->sharing.joinable ||
        (origin_fill_is_as_is(fill) && fill->base.object->status != 200))
        return;
    cache_fill_end_pass(&fill->base);
}

int
origin_fill_open_window(struct origin_fill *fill, enum failure why)
{
    static const char *const sentences[] = {
        [FAILURE_TOO_LARGE] = "the response is larger than the proxy takes for this client",
        [FAILURE_OVERLOADED] = "too many bytes are being fetched; try again",
    };
    const struct cache_window window = {
        .size = ORIGIN_FILL_WINDOW,
        .lag = ORIGIN_FILL_LAG,
        .lags = {FAILURE_OVERLOADED,
                 "the response is not stored, and another client reads it much faster; try again"},
        .whole = {why, why ? sentences[why] : NULL},
        .resume = resume,
    };

    atomic_store(&fill->keeping, KEEPING_NOT);
    origin_fill_explain(fill,
                        why == FAILURE_OVERLOADED ? HTTP_REASON_MEMORY : HTTP_REASON_TOO_LARGE);
    origin_fill_unmark(fill);
    return cache_fill_unstore(&fill->base, &window);
}

int
origin_fill_open_window_for(struct origin_fill *fill, uint64_t length)
{
    uint64_t max_body = fill->proxy->config.max_body;
    int error;

    /* After a purge it is one that is not stored. */
    if (fill->max_whole > ORIGIN_FILL_WINDOW && !cache_fill_may_store(&fill->base))
        fill->max_whole = ORIGIN_FILL_WINDOW;
    if (length <= fill->max_whole || !origin_fill_can_open_window(fill))
        return 0;
    error = origin_fill_open_window(fill, length > max_body ? FAILURE_TOO_LARGE : 0);
    return error == EBUSY ? 0 : error;
}

/* ---- readers of a part ----------------------------------------------------------------------- */

static bool
wants_whole(const struct object_waiter *base, void *context)
{
    (void)context;
    return !((const struct origin_waiter *)base)->wants_part;
}

bool
origin_fill_misses_range(struct origin_fill *fill, const struct fetch_head *head)
{
    const struct proxy_config *config = &fill->proxy->config;

    if (fill->wanted == RANGE_WHOLE)
        return false;
    /* The range was not sent, and the part that has come need not be the leader's. */
    if (head->status == 206)
        return true;
    if (head->status != 200 || !http_accepts_ranges(head->headers))
        return false;
    if (atomic_load(&fill->keeping) != KEEPING_STORED)
        return true;
    return fill->wanted == RANGE_PART &&
           (head->content_length < 0 || (uint64_t)head->content_length > config->range_fill) &&
           !cache_fill_has_waiter(&fill->base, wants_whole, NULL);
}

static bool
all(const struct object_waiter *waiter, void *context)
{
    (void)waiter;
    (void)context;
    return true;
}

void
origin_fill_give_up_range(struct origin_fill *fill)
{
    cache_fill_restrict(&fill->base, FILL_PRIVATE, proxy_now_us(fill->proxy) + ORIGIN_FILL_PASS_US);
    cache_fill_fail(&fill->base, FAILURE_CANCELLED, "", all, NULL);
    fill->stage = ORIGIN_FILL_ENDED;
}

/* ---- fetches that no request waits for ------------------------------------------------------- */

/* Has the whole response come? The fetch is about to end, and leaves its connection to the origin
 * for others, which a cancelled one does not. */
static bool
is_whole(const struct origin_fill *fill)
{
    const struct cache_fill *base = &fill->base;
    unsigned status = base->object->status;

    if (base->stage == FILL_BEGUN)
        return false;
    if (fill->request->method == HTTP_HEAD || status == 204 || status == 304)
        return true;
    return base->declared >= 0 && (uint64_t)base->declared == object_length(base->object);
}

/*
 * Does the leader's request, which may be satisfied before the end, lead to an object that is
 * fetched to its end all the same, if it is kept? It asks for a part, or its condition was answered
 * by the cache's own.
 */
static bool
completes(const struct origin_fill *fill)
{
    const struct cache_fill *base = &fill->base;
    bool ours = fill->lines.len > fill->plain && fill->conditions != CONDITIONS_CLIENTS;

    return base->stage != FILL_BEGUN && base->declared >= 0 &&
           (uint64_t)base->declared <= fill->proxy->config.range_fill &&
           (fill->wanted != RANGE_WHOLE || (ours && http_has_condition(fill->request->fields)));
}

/* Is it a redirect that its front has left, and that is short? Read to its end it leaves its
 * connection for where it leads, which is often the same origin. */
static bool
is_short_redirect(const struct origin_fill *fill)
{
    const struct cache_fill *base = &fill->base;
    const uint64_t length = object_length(base->object);

    return base->stage != FILL_BEGUN && fill->request->flags & REQUEST_PAGE_ONLY &&
           http_status_is_redirect(base->object->status) &&
           (base->declared < 0 ? length : (uint64_t)base->declared) <= ORIGIN_FILL_SHORT;
}

/* With the lock of the cache, or on the fetcher's thread. */
static bool
is_worth_finishing(const struct origin_fill *fill)
{
    const struct cache_fill *base = &fill->base;
    bool kept = atomic_load(&fill->keeping) == KEEPING_STORED && cache_fill_may_store(base);
    uint64_t length = object_length(base->object), declared;

    if (base->stage == FILL_BEGUN && !http_method_is_safe(fill->request->method))
        return true;
    if (is_whole(fill) || is_short_redirect(fill))
        return true;
    if (!kept || (fill->purpose == ORIGIN_FILL_REFRESHES))
        return kept;
    /* Before the head nothing has come that would be lost. RPC's clients repeat requests. */
    if (base->stage == FILL_BEGUN)
        return fill->request->flags & REQUEST_PAGE_ONLY;
    if (completes(fill))
        return true;
    if (base->declared < 0)
        return length < ORIGIN_FILL_LITTLE;
    declared = (uint64_t)base->declared;
    return declared - length < ORIGIN_FILL_LITTLE || length > declared / 4 * 3;
}

bool
origin_fill_unwanted(struct cache_fill *base)
{
    struct origin_fill *fill = (struct origin_fill *)base;
    const struct origin *origin = &fill->proxy->config.origin;

    if (is_worth_finishing(fill))
        return false;
    origin->ops->cancel(origin->context, fill->fetch);
    return true;
}

int
origin_fill_check_wanted(struct origin_fill *fill)
{
    int64_t now_us = proxy_now_us(fill->proxy);
    int64_t longest_us = (fill->purpose == ORIGIN_FILL_REFRESHES) || completes(fill)
                             ? ORIGIN_FILL_REFRESH_US
                             : ORIGIN_FILL_UNWANTED_US;
    bool worth;

    if (!cache_fill_is_unwanted(&fill->base)) {
        fill->unwanted_us = 0;
        return 0;
    }
    if (!fill->unwanted_us)
        fill->unwanted_us = now_us;
    worth = is_worth_finishing(fill);
    if ((worth && now_us - fill->unwanted_us <= longest_us) || !cache_fill_abandon(&fill->base))
        return 0;
    if (worth && fill->purpose == ORIGIN_FILL_REFRESHES) /* the origin is too slow */
        origin_response_back_off(fill);
    return ECANCELED;
}
