#include "proxy/origin_fill.h"

#include <errno.h>
#include <stdio.h>

#include "base/container_of.h"
#include "base/units.h"
#include "http/conditional.h"
#include "http/range.h"
#include "http/response_head.h"
#include "proxy/filling.h"
#include "proxy/proxy_rules.h"
#include "proxy/stored.h"
#include "store/store_fill.h"
#include "tier/tier.h"

static const char out_of_memory[] = "Cannot allocate memory";
static const char stopping[] = "the server is shutting down";

size_t
origin_fill_size(void)
{
    const size_t most =
        store_fill_size() > tier_fill_size() ? store_fill_size() : tier_fill_size();

    return sizeof(struct origin_fill) > most ? sizeof(struct origin_fill) : most;
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
        return out_of_memory;
    }
}

/* 0, or an error for origin_fill_refusal(). */
static int
charge(struct origin_fill *fill)
{
    const size_t waiting_bytes = fill->request->waiting_bytes;
    struct proxy *proxy = fill->proxy;
    /* The object without a head, and as much for its failure. */
    size_t bytes = sizeof(*fill) + 2 * object_size(fill->base.object) + OBJECT_MAX_FAILURE +
                   fill->lines.capacity + fetcher_fetch_bytes();

    if (!client_share_take(&proxy->waiting, fill->request->client, bytes + waiting_bytes))
        return errno;
    if (!memory_charge(proxy->config.account, MEMORY_REQUESTS, bytes)) {
        client_share_give_back(&proxy->waiting, fill->request->client, bytes + waiting_bytes);
        return ENOBUFS;
    }
    fill->charged = bytes;
    fill->counted = bytes + waiting_bytes;
    return 0;
}

/* The fill has ended: nothing refers to it any more. */
static void
free_fill(struct origin_fill *fill)
{
    struct proxy *proxy = fill->proxy;

    relay_close(&fill->relay);
    invalidation_free(&fill->write);
    buf_free(&fill->lines);
    if (fill->counted) {
        memory_uncharge(proxy->config.account, MEMORY_REQUESTS, fill->charged);
        client_share_give_back(&proxy->waiting, fill->request->client, fill->counted);
    }
    request_release(&fill->request);
    cache_fill_free(&fill->base);
}

/* ---- bodies that are not stored -------------------------------------------------------------- */

static void
resume(struct cache_fill *base)
{
    struct origin_fill *fill = (struct origin_fill *)base;
    const struct origin *origin = &fill->proxy->config.origin;

    origin->ops->resume(origin->context, fill->fetch);
}

/* Can the body get a window? An inline one has all its memory already. */
static bool
can_open_window(const struct origin_fill *fill)
{
    return request_streams(fill->request) && fill->base.object->segmented &&
           !object_is_windowed(fill->base.object);
}

/* Ends hit-for-miss of the URL if the response proves that those to others may be shared. */
static void
end_pass(struct origin_fill *fill)
{
    /* Of what the origin evaluated a passed request to, only 200 is for all. */
    if (fill->sharing.unshared || !fill->sharing.joinable ||
        (origin_fill_is_as_is(fill) && fill->base.object->status != 200))
        return;
    cache_fill_end_pass(&fill->base);
}

/*
 * The object is not stored, and has a window from now on: 0 or an errno. Waiters that do not stream
 * fail for the reason `why`; 0: if there are any, the answer is EBUSY.
 */
static int
open_window(struct origin_fill *fill, enum failure why)
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
    origin_response_explain(fill,
                        why == FAILURE_OVERLOADED ? HTTP_REASON_MEMORY : HTTP_REASON_TOO_LARGE);
    end_pass(fill);
    stored_begins(fill, -1);
    return cache_fill_unstore(&fill->base, &window);
}

/* The body has or is going to have `length` bytes: opens the window if that is too much. */
static int
open_window_for(struct origin_fill *fill, uint64_t length)
{
    uint64_t max_body = fill->proxy->config.max_body;
    int error;

    /* After a purge it is one that is not stored. */
    if (fill->max_whole > ORIGIN_FILL_WINDOW && !cache_fill_may_store(&fill->base))
        fill->max_whole = ORIGIN_FILL_WINDOW;
    if (length <= fill->max_whole || !can_open_window(fill))
        return 0;
    error = open_window(fill, length > max_body ? FAILURE_TOO_LARGE : 0);
    return error == EBUSY ? 0 : error;
}

/* ---- readers of a part ----------------------------------------------------------------------- */

static bool
wants_whole(const struct object_waiter *base, void *context)
{
    (void)context;
    return !((const struct origin_waiter *)base)->wants_part;
}

/*
 * Is the response of no use to a leader with a range: may it be followed to its end neither for the
 * cache and other requests nor for the leader? After fill->keeping is known.
 */
static bool
misses_range(struct origin_fill *fill, const struct fetch_head *head)
{
    const struct proxy_rules *rules = proxy_rules_of(fill->proxy, fill->request);

    if (fill->wanted == HTTP_WANTS_WHOLE)
        return false;
    /* The range was not sent, and the part that has come need not be the leader's. */
    if (head->status == 206)
        return true;
    if (head->status != 200 || !http_accepts_ranges(head->headers))
        return false;
    if (atomic_load(&fill->keeping) != KEEPING_STORED)
        return true;
    return fill->wanted == HTTP_WANTS_PART &&
           (head->content_length < 0 || (uint64_t)head->content_length > rules->range_fill) &&
           !cache_fill_has_waiter(&fill->base, wants_whole, NULL);
}

/* Then: the object ends, all requests look up again, and later ones pass. Before the head. */
static void
give_up_range(struct origin_fill *fill)
{
    cache_fill_restrict(&fill->base, FILL_PRIVATE, proxy_now_us(fill->proxy) + ORIGIN_FILL_PASS_US);
    cache_fill_fail(&fill->base, FAILURE_CANCELLED, "", origin_fill_is_any, NULL);
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
           (uint64_t)base->declared <= proxy_rules_of(fill->proxy, fill->request)->range_fill &&
           (fill->wanted != HTTP_WANTS_WHOLE ||
            (ours && http_has_condition(fill->request->fields)));
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

/* cache_fill.unwanted. */
static bool
is_unwanted(struct cache_fill *base)
{
    struct origin_fill *fill = (struct origin_fill *)base;
    const struct origin *origin = &fill->proxy->config.origin;

    if (is_worth_finishing(fill))
        return false;
    origin->ops->cancel(origin->context, fill->fetch);
    return true;
}

/* ECANCELED if the fetch is to end because no request waits for it; 0: it goes on. */
static int
check_wanted(struct origin_fill *fill)
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

/* ---- on the fetcher's thread ----------------------------------------------------------------- */

/*
 * Is there user information in the authority of the URL (RFC 3986, section 3.2)? The fetcher, which
 * parses the URL exactly, says so again with each response (struct fetch_response); known now, no
 * request waits for a response that is not shared.
 */
static bool
has_user(struct span url)
{
    const struct span authority = origin_route_authority(url);

    return memchr(authority.ptr, '@', authority.len) != NULL;
}

static void
fill_member(void *context, unsigned member)
{
    struct origin_fill *fill = context;

    const struct origin_route *route = fill->request->route;

    fill->member = member;
    fill->peer = NULL;
    request_note_member(fill->request, route ? &route->members[member] : NULL);
}

static void
fill_peer(void *context, const struct origin_member *peer)
{
    struct origin_fill *fill = context;

    fill->peer = peer;
    request_note_member(fill->request, peer);
}

/* Only what is for the cache, and no one client's. */
static struct origin_peers *
fill_peers(void *context)
{
    const struct origin_fill *fill = context;
    const struct request *request = fill->request;

    if (!request->peers || request->method != HTTP_GET || fill->purpose > ORIGIN_FILL_REFRESHES ||
        request_has_body(request) || request->flags & REQUEST_OWN_FIELDS ||
        http_credentials_of(origin_fill_selecting(fill)) || has_user(object_url(fill->base.object)))
        return NULL;
    return request->peers;
}

static struct span
fill_fields(void *context)
{
    return origin_fill_fields(context);
}

static void
fill_begin(void *context)
{
    struct origin_fill *fill = context;

    shedding_charge_for(&fill->proxy->shedding, fill->request->client, NULL);
}

static void
fill_response(void *context, const struct fetch_response *response)
{
    struct origin_fill *fill = context;
    const struct proxy_config *config = &fill->proxy->config;

    metrics_observe(config->metrics, metrics_fetcher_slot(config->metrics),
                    HISTOGRAM_ORIGIN_FIRST_BYTE, response->waited_us);
    fill->status = response->status;
    if (response->passed_over)
        return;
    origin_response_arrived(fill, response);
}

static void
fill_interim(void *context, unsigned status, struct span lines)
{
    struct origin_fill *fill = context;

    if (fill->relay)
        relay_add_interim(fill->relay, status, lines);
}

/* Why a fill fails before its fetch has ended, by errno; the last one for any other. */
static const struct {
    int error;
    enum failure failure;
    const char *sentence;
} early_ends[] = {
    {ENOBUFS, FAILURE_OVERLOADED,
     "too many bytes are being fetched, or wait for clients to read them; try again"},
    {EFBIG, FAILURE_TOO_LARGE, "the response is larger than the proxy takes"},
    {EINVAL, FAILURE_INTERNAL, "the head of the response is larger than the proxy takes"},
    {ECANCELED, FAILURE_CANCELLED, "no request waits for the response any more"},
    {EPERM, FAILURE_ORIGIN,
     "the origin, or the upstream proxy, asked for a proxy's credentials"},
    {0, FAILURE_INTERNAL, out_of_memory},
};

/* After cache_fill_fail(): where failed bodies have used up their share, their readers are to leave
 * (memory_hooks.relieve). */
static void
relieve_failed(const struct origin_fill *fill)
{
    (void)memory_charge(fill->proxy->config.account, MEMORY_FAILED, 0);
}

static void
fail_early(struct origin_fill *fill, int error)
{
    unsigned i = 0;

    while (early_ends[i].error && early_ends[i].error != error)
        i++;
    fill->failure = early_ends[i].failure;
    fill->sentence = early_ends[i].sentence;
    shedding_remove(&fill->proxy->shedding, &fill->body);
    fill->stage = ORIGIN_FILL_FAILED;
    cache_fill_fail(&fill->base, fill->failure, fill->sentence, NULL, NULL);
    relieve_failed(fill);
}

/* Memory is short, and this body is stalled, or the largest of the client that holds most. */
static void
give_up(struct shedding_body *body)
{
    struct origin_fill *fill = container_of(body, struct origin_fill, body);
    const struct origin *origin = &fill->proxy->config.origin;

    fail_early(fill, ENOBUFS);
    origin->ops->cancel(origin->context, fill->fetch);
}

/* ---- the response ---------------------------------------------------------------------------- */

static unsigned
notes_of(const struct origin_fill *fill, const struct fetch_head *head, struct span fields)
{
    return origin_response_notes(head, fields, &fill->sharing) |
           (origin_fill_may_keep(fill) ? stored_notes(fill) : HTTP_KNOWN_PASSING);
}

#define HOT_URLS 65536u /* that the sketch counts well: it takes 8 bytes for each */

/* Counts a fetch from a peer. Has the URL been fetched from there often? Without memory for the
 * counts it has. */
static bool
is_hot(struct origin_fill *fill)
{
    struct sketch *sketch = &fill->proxy->at_peers;

    if (!sketch->words) {
        if (!sketch_init(sketch, 4, 10))
            return true;
        sketch_fit(sketch, HOT_URLS);
    }
    sketch_count(sketch, fill->base.key);
    return sketch_estimate(sketch, fill->base.key) >= ORIGIN_FILL_HOT;
}

/*
 * What a peer owns it keeps for all: a response from there is stored here, too, if its URL is hot,
 * if one was stored before, and where a range is waited for. Requests that wait for a long one,
 * which gets a window, ask for themselves.
 */
static void
leave_at_peer(struct origin_fill *fill, const struct fetch_head *head)
{
    if (!fill->peer || fill->reason || is_hot(fill) || fill->base.previous ||
        fill->wanted != HTTP_WANTS_WHOLE)
        return;
    origin_response_explain(fill, HTTP_REASON_PEER);
    if (head->content_length < 0 || (uint64_t)head->content_length > ORIGIN_FILL_WINDOW)
        cache_fill_restrict(&fill->base, FILL_VALIDATE, 0);
}

/* The object begins: 0 or an errno; EAGAIN if the leader's range is the origin's. */
static int
begin_object(struct origin_fill *fill, const struct fetch_head *head,
             const struct response_parts *parts)
{
    struct proxy *proxy = fill->proxy;
    uint64_t largest = proxy_largest_page(proxy, fill->request);
    int error;

    origin_response_explain(fill, origin_response_why_unstored(fill, head->no_store));
    if (head->content_length > 0 && (uint64_t)head->content_length > largest)
        origin_response_explain(fill, HTTP_REASON_TOO_LARGE);
    leave_at_peer(fill, head);
    if (fill->reason)
        atomic_store(&fill->keeping, KEEPING_NOT);
    if (misses_range(fill, head))
        return EAGAIN;
    fill->max_whole = origin_fill_may_keep(fill) ? largest : ORIGIN_FILL_WINDOW;
    error = cache_fill_head(
        &fill->base,
        &(struct object_head){
            .status = head->status,
            .notes = notes_of(fill, head, buf_span(&parts->fields)),
            .fields = buf_span(&parts->fields),
            .tags = buf_span(&parts->tags),
            .fetched_us = fill->sharing.born_us,
            .fresh_until_us = fill->sharing.fresh_until_us,
            .while_revalidate_us = fill->sharing.while_revalidate_us,
            .length = head->content_length,
            .max_length = request_streams(fill->request) ? UINT64_MAX : proxy->config.max_body,
            .account = proxy->config.account,
        });
    if (!error && head->content_length > 0)
        error = open_window_for(fill, (uint64_t)head->content_length);
    if (!error)
        error = check_wanted(fill);
    if (!error)
        stored_begins(fill, head->content_length);
    fill->body.give_up = give_up;
    if (!error)
        shedding_add(&proxy->shedding, &fill->body, fill->request->client,
                     object_size(fill->base.object), proxy_now_us(proxy));
    return error;
}

static enum fetch_flow
fill_head(void *context, const struct fetch_head *head)
{
    struct origin_fill *fill = context;
    struct response_parts parts;
    enum origin_response use;
    int error;

    shedding_charge_for(&fill->proxy->shedding, fill->request->client, NULL);
    buf_init(&parts.fields, OBJECT_MAX_META);
    buf_init(&parts.tags, OBJECT_MAX_TAG_BYTES);
    use = origin_response_head(fill, head, &parts, &error);
    if (use == ORIGIN_RESPONSE_HEAD)
        error = begin_object(fill, head, &parts);
    if (use == ORIGIN_RESPONSE_HEAD && !error)
        origin_own_begin(fill, head, &parts);
    buf_free(&parts.fields);
    buf_free(&parts.tags);
    if (!error)
        return use == ORIGIN_RESPONSE_REPEAT ? FETCH_REPEAT : FETCH_CONTINUE;
    if (error == EAGAIN)
        give_up_range(fill);
    else
        fail_early(fill, error);
    return FETCH_ABORT;
}

static enum fetch_flow
fill_body(void *context, const void *bytes, size_t len)
{
    struct origin_fill *fill = context;
    struct shedding *shedding = &fill->proxy->shedding;
    int error;

    if (fill->stage == ORIGIN_FILL_ENDED)
        return FETCH_CONTINUE;
    shedding_charge_for(shedding, fill->request->client, &fill->body);
    origin_own_append(fill, bytes, len);
    error = check_wanted(fill);
    if (!error)
        error = open_window_for(fill, object_length(fill->base.object) + len);
    if (!error)
        error = cache_fill_append(&fill->base, bytes, len);
    /* Out of memory the object is passed on and not stored. */
    if ((error == ENOBUFS || error == ENOMEM) && can_open_window(fill)) {
        error = open_window(fill, FAILURE_OVERLOADED);
        if (!error)
            error = cache_fill_append(&fill->base, bytes, len);
    }
    if (error && error != CACHE_FILL_PAUSE) {
        fail_early(fill, error);
        return FETCH_ABORT;
    }
    shedding_grow(shedding, &fill->body, object_size(fill->base.object),
                  (size_t)object_length(fill->base.object), proxy_now_us(fill->proxy));
    return error ? FETCH_PAUSE : FETCH_CONTINUE;
}

static enum fetch_supply
fill_supply(void *context, void *buffer, size_t size, size_t *len)
{
    struct origin_fill *fill = context;

    return relay_supply(fill->relay, fill->fetch, buffer, size, len);
}

static void
finish(struct origin_fill *fill, int64_t total_us)
{
    const struct stored_offer offer = stored_begin_offer(fill);
    const int64_t born_us = fill->sharing.born_us;
    bool store;

    origin_response_explain(fill, origin_response_why_unstored(fill, false));
    if (object_length(fill->base.object) > fill->max_whole)
        origin_response_explain(fill, HTTP_REASON_TOO_LARGE);
    store = origin_fill_may_keep(fill) && !fill->reason;

    shedding_charge_for(&fill->proxy->shedding, fill->request->client, NULL);
    if (fill->sharing.unshared)
        origin_response_isolate(fill);
    else if (!store)
        end_pass(fill);
    cache_fill_finish(&fill->base, store, (uint64_t)total_us, born_us,
                      sharing_lifetime(&fill->sharing, born_us));
    stored_filled(fill, store, &offer);
}

static bool
is_of_another_client(const struct object_waiter *base, void *context)
{
    const struct origin_waiter *waiter = (const struct origin_waiter *)base;

    return atomic_load(&waiter->client) != context;
}

/* The fetch has failed. Returns the failure, also if an older object is used instead. */
static enum failure
fail(struct origin_fill *fill, enum fetch_error error, const char *sentence)
{
    enum failure failure = error == FETCH_CANCELLED && cache_fill_is_unwanted(&fill->base)
                               ? FAILURE_CANCELLED
                               : failure_of_fetch(error);
    bool (*retries)(const struct object_waiter *waiter, void *context) = NULL;

    if (error == FETCH_DISPLACED)
        retries = is_of_another_client;
    if (fetch_is_disconnected(error) && fill->base.stage == FILL_BEGUN)
        origin_response_back_off(fill);
    if (origin_fill_writes(fill) && fill->base.stage == FILL_BEGUN)
        invalidation_unanswered(&fill->write);
    if (fill->base.stage != FILL_BEGUN ||
        !origin_response_fall_back(
            fill, fetch_is_disconnected(error) ? STALENESS_DISCONNECTED : STALENESS_IF_ERROR,
            failure))
        cache_fill_fail(&fill->base, failure, sentence, retries, fill->request->client);
    relieve_failed(fill);
    return failure;
}

_Static_assert((int)METRIC_FETCHES_CANCELLED - (int)METRIC_FETCHES_OK == (int)FAILURE_CANCELLED,
               "each failure of a fetch has a row, in its order");

/* The row that counts fetches with this result; 0: the fetch has succeeded. */
static enum metric
metric_of(enum failure failure)
{
    if (failure == FAILURE_CONNECT_TIMEOUT)
        failure = FAILURE_TIMEOUT;
    return (enum metric)((unsigned)METRIC_FETCHES_OK + (unsigned)failure);
}

/* A fetch from the member has ended; if it is repeated, another member is tried. */
static void
report(const struct origin_fill *fill, enum failure failure, const char *sentence, int64_t total_us,
       bool repeated)
{
    const struct proxy_config *config = &fill->proxy->config;

    metrics_add(config->metrics, metrics_fetcher_slot(config->metrics), metric_of(failure), 1);
    if (config->fetched)
        config->fetched(config->fetched_context,
                        &(struct proxy_fetched){
                            .url = object_url(fill->base.object),
                            .member = failure != FAILURE_DOWN ? request_member(fill->request)
                                                              : span_of(NULL, 0),
                            .total_us = total_us,
                            .failure = failure,
                            .sentence = sentence,
                            .repeated = repeated,
                            .status = fill->status,
                            .reason = fill->reason,
                        });
}

static void
fill_again(void *context, enum fetch_error error, const char *sentence, int64_t total_us)
{
    struct origin_fill *fill = context;
    const struct origin *origin = &fill->proxy->config.origin;

    report(fill, failure_of_fetch(error), sentence, total_us, true);
    fill->status = 0;
    if (check_wanted(fill) != 0)
        origin->ops->cancel(origin->context, fill->fetch);
}

static void
fill_done(void *context, enum fetch_error error, const char *sentence, int64_t total_us)
{
    struct origin_fill *fill = context;
    enum failure failure = 0;

    shedding_remove(&fill->proxy->shedding, &fill->body);
    origin_own_end(fill, fill->stage != ORIGIN_FILL_FAILED && error == FETCH_OK, total_us);
    switch (fill->stage) {
    case ORIGIN_FILL_RUNS:
        if (error)
            failure = fail(fill, error, sentence);
        else
            finish(fill, total_us);
        break;
    case ORIGIN_FILL_ENDED:
        sentence = "";
        break;
    case ORIGIN_FILL_FAILED:
        failure = fill->failure;
        sentence = fill->sentence;
        break;
    }
    report(fill, failure, sentence, total_us, false);
    stored_ended(fill);
    free_fill(fill);
}

static const struct fetch_sink sink = {
    .member = fill_member,
    .peers = fill_peers,
    .peer = fill_peer,
    .fields = fill_fields,
    .begin = fill_begin,
    .response = fill_response,
    .interim = fill_interim,
    .head = fill_head,
    .body = fill_body,
    .supply = fill_supply,
    .again = fill_again,
    .done = fill_done,
};

/* ---- submission ------------------------------------------------------------------------------ */

/* Takes the token of a fetch: 0, or in how many microseconds there will be one. */
static int64_t
take_token(const struct origin_fill_order *order, int64_t now_us)
{
    if (order->rate == ORIGIN_FILL_RATED)
        return client_take_fetch(order->request->client, now_us);
    if (order->rate == ORIGIN_FILL_INDEBTED)
        client_charge_fetch(order->request->client, now_us);
    return 0;
}

/*
 * Submits the fetch. False: refused, with the reason; `text`, of FAILURE_SENTENCE bytes, may have
 * the sentence.
 */
static bool
submit(struct origin_fill *fill, const struct origin_fill_order *order, char *text,
       enum failure *why, const char **sentence)
{
    struct proxy *proxy = fill->proxy;
    const struct origin *origin = &proxy->config.origin;
    enum fetch_error invalid;
    int64_t wait_us;
    int error;

    *why = FAILURE_INTERNAL;
    *sentence = out_of_memory;
    if (!origin_response_request(fill))
        return false;
    order->leader->sends_conditions = fill->conditions == CONDITIONS_CLIENTS;
    /* Before anything is charged: a URL that cannot be fetched costs its client nothing. */
    invalid = fetch_check_request(fill->request, origin_fill_fields(fill), text, FAILURE_SENTENCE);
    if (invalid) {
        *why = failure_of_fetch(invalid);
        *sentence = text;
        return false;
    }
    error = charge(fill);
    if (error) {
        *sentence = origin_fill_refusal(error, why);
        return false;
    }
    wait_us = take_token(order, proxy_now_us(proxy));
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
        origin_response_isolate(fill);
    if (origin_fill_writes(fill)) {
        invalidation_init(&fill->write, proxy, fill->request, object_url(fill->base.object));
        if (!invalidation_before(&fill->write)) {
            *sentence = origin_fill_refusal(ENOBUFS, why);
            return false;
        }
    }
    fill->epoch = cache_epoch(proxy->config.cache);
    if (origin->ops->submit(origin->context, fill->request, &sink, fill, &fill->fetch))
        return true;
    if (errno == ESHUTDOWN) {
        *why = FAILURE_STOPPING;
        *sentence = stopping;
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

/* No other thread has the fill yet: its leader is not notified. */
static void
refuse(struct origin_fill *fill, struct origin_waiter *leader, enum failure why,
       const char *sentence)
{
    leader->base.notify = object_waiter_ignore;
    cache_fill_fail(&fill->base, why, sentence, origin_fill_is_no_leader, NULL);
    free_fill(fill);
}

void
origin_fill_refuse(struct proxy *proxy, struct cache_fill *base,
                   const struct origin_fill_order *order, int error)
{
    struct origin_fill *fill = (struct origin_fill *)base;
    enum failure why;
    const char *sentence = origin_fill_refusal(error, &why);

    fill->proxy = proxy;
    fill->relay = order->relay;
    refuse(fill, order->leader, why, sentence);
}

bool
origin_fill_start(struct proxy *proxy, struct cache_fill *base,
                  const struct origin_fill_order *order)
{
    const struct proxy_rules *rules = proxy_rules_of(proxy, order->request);
    struct origin_fill *fill = (struct origin_fill *)base;
    enum failure why = FAILURE_INTERNAL;
    const char *sentence = "";
    char text[FAILURE_SENTENCE];

    fill->proxy = proxy;
    fill->request = request_retain(order->request);
    fill->purpose = order->purpose;
    fill->relay = order->relay;
    fill->passes = order->passes;
    sharing_init(&fill->own_sharing, false, rules->max_age_us);
    fill->wanted = order->wanted;
    atomic_init(&fill->keeping, origin_fill_bypasses(fill) ? KEEPING_NOT
                                : stores_objects(proxy)    ? KEEPING_STORED
                                                           : KEEPING_WHOLE);
    base->unwanted = is_unwanted;
    sharing_init(&fill->sharing, !proxy->config.follows_http, rules->max_age_us);
    if ((fill->purpose != ORIGIN_FILL_REFRESHES ||
         !proxy_backs_off(proxy, base->key)) &&
        submit(fill, order, text, &why, &sentence))
        return true;
    refuse(fill, order->leader, why, sentence);
    return false;
}
