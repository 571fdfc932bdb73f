/* The beginning of a fill: its request is checked, charged and submitted; and its memory. */
#include <errno.h>
#include <stdio.h>

#include "base/units.h"
#include "proxy/invalidation.h"
#include "proxy/origin_fill_parts.h"

size_t
origin_fill_size(void)
{
    return sizeof(struct origin_fill);
}

/* ---- memory ---------------------------------------------------------------------------------- */

const char *
origin_fill_refusal(int error, enum failure *why)
{
    *why = error == ENOMEM ? FAILURE_INTERNAL : FAILURE_OVERLOADED;
    switch (error) {
    case EDQUOT:
        return "too many requests of this client wait already; try again";
    case ENOBUFS:
        return "too many requests wait already; try again";
    default:
        return origin_fill_out_of_memory;
    }
}

/* 0, or an error for origin_fill_refusal(). */
static int
charge(struct origin_fill *fill, const struct fetch_request *fetch, size_t waiting_bytes)
{
    struct proxy *proxy = fill->proxy;
    /* The object without a head, and as much for its failure. */
    size_t bytes = sizeof(*fill) + 2 * object_size(fill->base.object) + OBJECT_MAX_FAILURE +
                   fill->lines.capacity + fetcher_request_bytes(fetch) +
                   (fill->route ? origin_route_longest(fill->route) : 0);

    if (!fill->client)
        return ENOMEM;
    if (!client_share_take(&proxy->waiting, fill->client, bytes + waiting_bytes))
        return errno;
    if (!memory_charge(proxy->config.account, MEMORY_REQUESTS, bytes)) {
        client_share_give_back(&proxy->waiting, fill->client, bytes + waiting_bytes);
        return ENOBUFS;
    }
    fill->charged = bytes;
    fill->counted = bytes + waiting_bytes;
    return 0;
}

/* ---- submission ------------------------------------------------------------------------------ */

/*
 * Is there user information in the authority of the URL (RFC 3986, section 3.2)? The fetcher, which
 * parses the URL exactly, says so again with each response (struct fetch_hop); known now, no
 * request waits for a response that is not shared.
 */
static bool
has_user(struct span url)
{
    const char *end = url.ptr + url.len;
    const char *c = memmem(url.ptr, url.len, "//", 2);

    for (c = c ? c + 2 : end; c < end && *c != '/' && *c != '?' && *c != '#'; c++)
        if (*c == '@')
            return true;
    return false;
}

/* Takes the token of a fetch: 0, or in how many microseconds there will be one. */
static int64_t
take_token(const struct origin_fill_request *request, int64_t now_us)
{
    if (request->rate == ORIGIN_FILL_RATED)
        return client_take_fetch(request->client, now_us);
    if (request->rate == ORIGIN_FILL_INDEBTED)
        client_charge_fetch(request->client, now_us);
    return 0;
}

/*
 * Submits the fetch. False: refused, with the reason; `text`, of FAILURE_SENTENCE bytes, may have
 * the sentence.
 */
static bool
submit(struct origin_fill *fill, const struct origin_fill_request *request, char *text,
       enum failure *why, const char **sentence)
{
    struct proxy *proxy = fill->proxy;
    const struct origin *origin = &proxy->config.origin;
    struct origin_route_text url;
    struct fetch_request fetch;
    enum fetch_error invalid;
    int64_t wait_us;
    int error;

    *why = FAILURE_INTERNAL;
    *sentence = origin_fill_out_of_memory;
    if (fill->raw && !origin_raw_request(fill, request->fields))
        return false;
    request->leader->sends_conditions = fill->forwards;
    if (!origin_attempt_begin(fill, request))
        return false;
    fetch = origin_fill_fetch_request(
        fill, fill->raw ? span_of(fill->lines.data, fill->sent) : request->fields, &url);
    fetch.method = request->method;
    fetch.body = origin_fill_request_body(fill);
    /* Before anything is charged: a URL that cannot be fetched costs its client nothing. */
    invalid = fetch_check_request(&fetch, text, FAILURE_SENTENCE);
    if (invalid) {
        *why = failure_of_fetch(invalid);
        *sentence = text;
        return false;
    }
    error = charge(fill, &fetch, request->waiting_bytes);
    if (error) {
        *sentence = origin_fill_refusal(error, why);
        return false;
    }
    wait_us = take_token(request, proxy_now_us(proxy));
    if (wait_us) {
        char wait[32];

        *why = FAILURE_OVERLOADED;
        snprintf(text, FAILURE_SENTENCE,
                 "the rate of fetches for this client is used up; try again in %s",
                 units_format_duration(wait_us, wait, sizeof(wait)));
        *sentence = text;
        return false;
    }
    if (proxy->config.follows_http && has_user(object_url(fill->base.object)))
        origin_fill_isolate(fill);
    if (origin_fill_writes(fill)) {
        invalidation_init(&fill->write, proxy, request->route, object_url(fill->base.object),
                          fill->owned);
        if (!invalidation_before(&fill->write)) {
            *sentence = origin_fill_refusal(ENOBUFS, why);
            return false;
        }
    }
    fill->epoch = cache_epoch(proxy->config.cache);
    if (origin->ops->submit(origin->context, &fetch, &origin_fill_sink, fill, &fill->first_fetch))
        return true;
    if (errno == ESHUTDOWN) {
        *why = FAILURE_STOPPING;
        *sentence = origin_fill_stopping;
    }
    return false;
}

static bool
stores_objects(const struct proxy *proxy)
{
    struct cache_config config;

    cache_get_config(proxy->config.cache, &config);
    return config.policy.ops != NULL;
}

bool
origin_fill_start(struct proxy *proxy, struct cache_fill *base,
                  const struct origin_fill_request *request)
{
    struct origin_fill *fill = (struct origin_fill *)base;
    enum failure why = FAILURE_INTERNAL;
    const char *sentence = "";
    char text[FAILURE_SENTENCE];

    fill->proxy = proxy;
    if (request->client)
        fill->client = client_retain(request->client);
    fill->relay = request->relay;
    fill->bypass = request->bypass;
    fill->raw = request->raw;
    fill->owned = request->owned;
    fill->as_is = request->as_is;
    fill->alone = request->alone;
    fill->passes = request->passes;
    fill->whole_server = request->whole_server;
    fill->method = request->method_id;
    fill->background = request->background;
    sharing_init(&fill->own_sharing, false, proxy->config.max_age_us);
    fill->streams = request->streams;
    fill->stores = stores_objects(proxy);
    fill->wanted = request->wanted;
    atomic_init(&fill->may_keep, !request->bypass);
    base->unwanted = origin_fill_unwanted;
    sharing_init(&fill->sharing, !proxy->config.follows_http, proxy->config.max_age_us);
    if ((!request->background || !backoff_holds(&proxy->backoff, base->key, proxy_now_us(proxy))) &&
        submit(fill, request, text, &why, &sentence))
        return true;
    if (fill->route)
        origin_route_give_back(fill->route, &fill->choice, proxy_now_us(proxy));
    /* No other thread has the fill yet. */
    request->leader->base.notify = object_waiter_ignore;
    cache_fill_fail(base, why, sentence, origin_fill_is_no_leader, NULL);
    origin_fill_free(fill);
    return false;
}
