/*
 * What bounds a fill beside memory: the window of a body that is not stored, and the requests that
 * wait for the object.
 */
#include <errno.h>

#include "http/range.h"
#include "proxy/origin_fill_parts.h"

/* ---- bodies that are not stored -------------------------------------------------------------- */

uint64_t
origin_fill_largest(const struct origin_fill *fill)
{
    const struct proxy_config *config = &fill->proxy->config;
    struct cache_config cache;
    uint64_t share;

    if (config->max_page)
        return config->max_page;
    if (!fill->streams)
        return config->max_body;
    cache_get_config(config->cache, &cache);
    share = cache.capacity_bytes / 8;
    /* Of objects for RPC, those that version 1 can carry are stored in small caches, too: studies
     * replay traces of any pages. */
    return share && (fill->raw || share > config->max_body) ? share : config->max_body;
}

static void
resume(struct cache_fill *base)
{
    struct origin_fill *fill = (struct origin_fill *)base;
    const struct origin *origin = &fill->proxy->config.origin;

    origin->ops->resume(origin->context, origin_fill_fetch(fill));
}

bool
origin_fill_can_open_window(const struct origin_fill *fill)
{
    return fill->streams && fill->base.object->segmented && !object_is_windowed(fill->base.object);
}

void
origin_fill_unmark(struct origin_fill *fill)
{
    /* Of what the origin evaluated a passed request to, only 200 is for all. */
    if (fill->unmarked || fill->sharing.unshared || !fill->sharing.joinable ||
        (fill->as_is && fill->base.object->status != 200))
        return;
    fill->unmarked = true;
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

    atomic_store(&fill->may_keep, false);
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
    if (!fill->stores || !atomic_load(&fill->may_keep))
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
    cache_fill_restrict(&fill->base, FILL_PRIVATE,
                        proxy_now_us(fill->proxy) + ORIGIN_FILL_MARKER_US);
    cache_fill_fail(&fill->base, FAILURE_CANCELLED, "", all, NULL);
    fill->ended = true;
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
    if (fill->method == HTTP_HEAD || status == 204 || status == 304)
        return true;
    return base->declared >= 0 && (uint64_t)base->declared == object_length(base->object);
}

/* With the lock of the cache, or on the fetcher's thread. */
static bool
is_worth_finishing(const struct origin_fill *fill)
{
    const struct cache_fill *base = &fill->base;
    bool kept = fill->stores && atomic_load(&fill->may_keep) && cache_fill_may_store(base);
    uint64_t length = object_length(base->object), declared;

    if (base->stage == FILL_BEGUN && !http_method_is_safe(fill->method))
        return true;
    if (is_whole(fill))
        return true;
    if (!kept || fill->background)
        return kept;
    /* Before the head nothing has come that would be lost. RPC's clients repeat requests. */
    if (base->stage == FILL_BEGUN)
        return !fill->raw;
    if (fill->completes)
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
    origin->ops->cancel(origin->context, origin_fill_fetch(fill));
    return true;
}

int
origin_fill_check_wanted(struct origin_fill *fill)
{
    int64_t now_us = proxy_now_us(fill->proxy);
    int64_t longest_us =
        fill->background || fill->completes ? ORIGIN_FILL_REFRESH_US : ORIGIN_FILL_UNWANTED_US;
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
    if (worth && fill->background) /* the origin is too slow */
        origin_raw_back_off(fill);
    return ECANCELED;
}
