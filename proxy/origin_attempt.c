/*
 * The members of a route that a fill is fetched from, one after the other. A request that was not
 * sent goes on to the next member, whatever its method. One that may be repeated, without a body,
 * does so as well after 502, 503 or 504, after a connection that broke before the head, and once
 * after a timeout. Each member is tried once at most.
 */
#include <errno.h>
#include <stdio.h>

#include "fetch/method_rules.h"
#include "http/reference.h"
#include "proxy/origin_fill_parts.h"

bool
origin_attempt_begin(struct origin_fill *fill, const struct origin_fill_request *request)
{
    fill->route = request->route;
    fill->has_body = request->has_body;
    fill->body_length = request->body_length;
    fill->sent = fill->lines.len;
    if (!fill->route)
        return true;
    (void)origin_route_next(fill->route, &fill->choice, proxy_now_us(fill->proxy));
    if (!fill->raw) {
        buf_init(&fill->lines, OBJECT_MAX_META);
        buf_append(&fill->lines, request->fields.ptr, request->fields.len);
        fill->plain = fill->sent = fill->lines.len;
    }
    buf_append(&fill->lines, request->method.ptr, request->method.len);
    return !buf_failed(&fill->lines);
}

static struct span
method_of(const struct origin_fill *fill)
{
    return span_of(fill->lines.data + fill->sent, fill->lines.len - fill->sent);
}

struct fetch_request
origin_fill_fetch_request(const struct origin_fill *fill, struct span lines,
                          struct origin_route_text *text)
{
    struct fetch_request fetch = {
        .client = fill->client,
        .headers = lines,
        .flags = (fill->raw ? FETCH_UNDECODED | FETCH_NO_REDIRECTS : 0u) |
                 (fill->streams ? FETCH_MAY_PAUSE | FETCH_ANY_LENGTH : 0u) |
                 (fill->whole_server ? FETCH_WHOLE_SERVER : 0u),
    };

    origin_route_set(fill->route, fill->choice.member, object_url(fill->base.object), text, &fetch);
    return fetch;
}

struct span
origin_attempt_final_url(const struct origin_fill *fill, struct span url, struct buf *mapped)
{
    const struct origin_route *route = fill->route;
    const struct span client_url = object_url(fill->base.object), none = span_of(NULL, 0);
    struct origin_route_text text;
    struct fetch_request asked = {0};

    origin_route_set(route, fill->choice.member, client_url, &text, &asked);
    if (span_equal(url, asked.url))
        return none;
    if (!route)
        return url;
    if (origin_route_resolve(route, fill->choice.member, client_url, url, mapped))
        return span_equal(buf_span(mapped), client_url) ? none : buf_span(mapped);
    /* Outside of the row, at a member, which may be a host of the inside. */
    for (unsigned i = 0; i < route->count; i++)
        if (http_have_same_origin(route->members[i].url, url))
            return none;
    return url;
}

struct fetch_body
origin_fill_request_body(const struct origin_fill *fill)
{
    return fill->has_body
               ? (struct fetch_body){.kind = FETCH_BODY_SUPPLIED, .length = fill->body_length}
               : (struct fetch_body){.kind = FETCH_BODY_NONE};
}

bool
origin_fill_submit_again(struct origin_fill *fill, const struct fetch_request *fetch)
{
    const struct origin *origin = &fill->proxy->config.origin;
    uint64_t id;

    fill->has_turn = fill->has_answer = fill->passes_over = false;
    if (!origin->ops->submit(origin->context, fetch, &origin_fill_sink, fill, &id))
        return false;
    /* No call-back of it comes before this thread's next turn. */
    atomic_store(&fill->second_fetch, id);
    /* The last request may have left before, and have cancelled the earlier fetch. */
    if (origin_fill_check_wanted(fill) != 0)
        origin->ops->cancel(origin->context, id);
    return true;
}

/* Is another request like it harmless, though the first one has reached a member? */
static bool
may_repeat(const struct origin_fill *fill)
{
    return method_may_repeat(
        &(struct fetch_request){.method = method_of(fill), .body = origin_fill_request_body(fill)});
}

/* A member that cannot reach its own origin, or does not serve now. */
static bool
is_failure(unsigned status)
{
    return status == 502 || status == 503 || status == 504;
}

bool
origin_attempt_answers(struct origin_fill *fill, unsigned status)
{
    char reason[32];

    /* After a redirect it may be another origin's. */
    if (!fill->route || fill->has_answer)
        return true;
    if (!is_failure(status)) {
        proxy_use_member(fill->proxy, fill->route, &fill->choice);
        fill->has_answer = true;
        return true;
    }
    snprintf(reason, sizeof(reason), "its status is %u", status);
    proxy_leave_member(fill->proxy, fill->route, &fill->choice, reason);
    fill->has_answer = !may_repeat(fill) || !origin_route_has_next(fill->route, &fill->choice);
    fill->passes_over = !fill->has_answer;
    return fill->has_answer;
}

/* May the request go to another member after this end of its fetch, which is the member's fault? */
static bool
may_go_on(struct origin_fill *fill, enum fetch_error error)
{
    if (failure_is_unconnected(error))
        return !fill->supplied;
    if (error == FETCH_TIMED_OUT) {
        /* Each may take as long, so there is no third. */
        if (fill->timed_out)
            return false;
        fill->timed_out = true;
    }
    return may_repeat(fill);
}

bool
origin_fill_is_disconnected(enum fetch_error error)
{
    return failure_is_unconnected(error) || error == FETCH_TLS_FAILED || error == FETCH_TIMED_OUT ||
           error == FETCH_ORIGIN_BROKE;
}

/*
 * Is the end of the fetch the member's fault? One that has waited for its turn all the time has not
 * reached it. A request that may not be repeated fails, too, where the member has closed a
 * connection that was kept, as it may.
 */
static bool
blames_member(const struct origin_fill *fill, enum fetch_error error)
{
    return origin_fill_is_disconnected(error) && (error != FETCH_TIMED_OUT || fill->has_turn) &&
           (error != FETCH_ORIGIN_BROKE || may_repeat(fill));
}

bool
origin_attempt_goes_on(struct origin_fill *fill, enum fetch_error error, const char *sentence)
{
    if (!fill->route || fill->has_answer || fill->failure)
        return false;
    if (!fill->passes_over) {
        if (!blames_member(fill, error)) {
            /* One that its client has cancelled may have waited for the member. */
            if (!fill->has_turn && error != FETCH_CANCELLED)
                origin_route_give_back(fill->route, &fill->choice, proxy_now_us(fill->proxy));
            return false;
        }
        proxy_leave_member(fill->proxy, fill->route, &fill->choice, sentence);
        if (!may_go_on(fill, error))
            return false;
    } else if (error == FETCH_CANCELLED) {
        return false;
    }
    return origin_route_next(fill->route, &fill->choice, proxy_now_us(fill->proxy));
}

bool
origin_attempt_go_on(struct origin_fill *fill)
{
    struct origin_route_text text;
    size_t len = fill->conditional || fill->forwards ? fill->sent : fill->plain;
    struct fetch_request fetch =
        origin_fill_fetch_request(fill, span_of(fill->lines.data, len), &text);

    fetch.method = method_of(fill);
    fetch.body = origin_fill_request_body(fill);
    return origin_fill_submit_again(fill, &fetch);
}
