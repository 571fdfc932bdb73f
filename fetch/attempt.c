#include "fetch/attempt.h"

#include <stdio.h>

#include "base/clock.h"
#include "http/field.h"

static bool
choose_next(struct attempt *attempt, const struct request *request, int64_t now_us)
{
    attempt->next = attempt->choice;
    return attempt->peers ? origin_peers_next(attempt->peers, &attempt->next, now_us)
                          : origin_route_next(request->route, &attempt->next, now_us);
}

static bool
enter_member(struct attempt *attempt, const struct request *request)
{
    attempt->choice = attempt->next;
    origin_server_enter(attempt_member(attempt, request)->server);
    attempt->choice.urgent = attempt->choice.unsent = false;
    attempt->counted = true;
    attempt->stage = ATTEMPT_OPEN;
    return true;
}

static void
leave_member(struct attempt *attempt, const struct request *request)
{
    if (attempt->counted)
        origin_server_exit(attempt_member(attempt, request)->server);
    attempt->counted = false;
}

/* Of the peers, or of the row. */
static bool
begin_at(struct attempt *attempt, const struct request *request, int64_t now_us)
{
    struct origin_route *route = attempt_route(attempt, request);

    attempt->choice = (struct origin_choice){0};
    attempt->stage = ATTEMPT_OPEN;
    if (!route)
        return true;
    origin_route_set_key(route, &attempt->choice, request_fetched_url(request));
    return choose_next(attempt, request, now_us) && enter_member(attempt, request);
}

/* No peer is asked any more. */
static bool
begin_at_origin(struct attempt *attempt, const struct request *request, int64_t now_us)
{
    attempt->peers = NULL;
    attempt->timeouts = 0;
    return begin_at(attempt, request, now_us);
}

bool
attempt_begin(struct attempt *attempt, const struct request *request, int64_t now_us)
{
    return begin_at(attempt, request, now_us) ||
           (attempt->peers && begin_at_origin(attempt, request, now_us));
}

/* A member that cannot reach its own origin, or does not serve now. */
static bool
is_failure(unsigned status)
{
    return status == 502 || status == 503 || status == 504;
}

/* A server says so before it reads the fields. What a request to a peer has beside the client's
 * may be too much. */
static bool
is_too_large(unsigned status)
{
    return status == 400 || status == 414 || status == 431;
}

/* What is no response of a peer says that there is none at its URL, or that it has another key. */
static bool
counts_of_peer(struct attempt *attempt, const struct fetch_response *response, int64_t now_us)
{
    struct origin_peers *peers = attempt->peers;
    const enum peer_outcome outcome = peer_response_read(
        &peers->keys, &attempt->code, http_first_value(response->lines, PEER_FIELD));
    char reason[64];

    attempt->stage = outcome == PEER_SERVED ? ATTEMPT_COUNTS : ATTEMPT_PASSED_OVER;
    if (outcome != PEER_NONE) {
        origin_route_succeeded(peers->route, &attempt->choice, now_us);
    } else if (is_too_large(response->status)) {
        origin_route_give_back(peers->route, &attempt->choice, now_us);
    } else {
        snprintf(reason, sizeof(reason), "its response is not a peer's (status %u)",
                 response->status);
        origin_route_failed(peers->route, &attempt->choice, now_us, reason);
    }
    return outcome == PEER_SERVED;
}

bool
attempt_counts(struct attempt *attempt, const struct request *request,
               const struct fetch_response *response, int64_t now_us)
{
    const struct origin_member *member;
    const unsigned status = response->status;
    char reason[32];

    if (!attempt_route(attempt, request))
        return true;
    attempt->stage = ATTEMPT_COUNTS;
    member = attempt_member(attempt, request);
    origin_latency_add(&member->server->latency, response->waited_us, now_us);
    if (attempt->peers)
        return counts_of_peer(attempt, response, now_us);
    if (!is_failure(status)) {
        origin_route_responded(request->route, &attempt->choice, status, response->waited_us,
                               now_us);
        return true;
    }
    snprintf(reason, sizeof(reason), "its status is %u", status);
    origin_route_failed(request->route, &attempt->choice, now_us, reason);
    if (request_may_repeat(request) && choose_next(attempt, request, now_us))
        attempt->stage = ATTEMPT_PASSED_OVER;
    return attempt->stage == ATTEMPT_COUNTS;
}

/* May the request go to another member after this end, which is the member's fault? */
static bool
may_go_on(struct attempt *attempt, const struct request *request, const struct attempt_end *end)
{
    if (fetch_is_unconnected(end->error))
        return !end->supplied;
    /* Each may take as long, so there is no third. */
    if (end->error == FETCH_TIMED_OUT && attempt->timeouts++)
        return false;
    return request_may_repeat(request);
}

/*
 * Is the end the member's fault? A request that has waited for its turn all the time has not
 * reached it. One that may not be repeated fails, too, where the member has closed a connection
 * that was kept, as it may.
 */
static bool
blames_member(const struct request *request, const struct attempt_end *end)
{
    return fetch_is_disconnected(end->error) && (end->error != FETCH_TIMED_OUT || end->had_turn) &&
           (end->error != FETCH_ORIGIN_BROKE || request_may_repeat(request));
}

/* An attempt without a response has ended: is the next member to be asked? */
static bool
leaves_member(struct attempt *attempt, const struct request *request, const struct attempt_end *end,
              int64_t now_us)
{
    if (end->error == FETCH_BUSY) {
        attempt->choice.urgent = attempt->choice.unsent = true;
        origin_route_give_back(request->route, &attempt->choice, now_us);
        return true;
    }
    if (blames_member(request, end)) {
        origin_route_failed(request->route, &attempt->choice, now_us, end->sentence);
        return may_go_on(attempt, request, end);
    }
    /* One that its client has cancelled may have waited for the member. */
    if (!end->had_turn && end->error != FETCH_CANCELLED)
        origin_route_give_back(request->route, &attempt->choice, now_us);
    return false;
}

/* Is the request still to be answered after this end at a peer? */
static bool
leaves_peer(struct attempt *attempt, const struct request *request, const struct attempt_end *end,
            int64_t now_us)
{
    const bool open = attempt->stage == ATTEMPT_OPEN;

    if (attempt->stage != ATTEMPT_PASSED_OVER && blames_member(request, end))
        origin_route_failed(attempt->peers->route, &attempt->choice, now_us, end->sentence);
    else if (open)
        origin_route_give_back(attempt->peers->route, &attempt->choice, now_us);
    return (attempt->stage != ATTEMPT_COUNTS ||
            (end->continues && fetch_is_disconnected(end->error))) &&
           end->error != FETCH_CANCELLED && end->error != FETCH_STOPPING &&
           end->error != FETCH_DISPLACED;
}

static bool
goes_on_from_peer(struct attempt *attempt, const struct request *request,
                  const struct attempt_end *end, int64_t now_us)
{
    const bool goes_on = leaves_peer(attempt, request, end, now_us);

    leave_member(attempt, request);
    if (!goes_on)
        return false;
    return choose_next(attempt, request, now_us) ? enter_member(attempt, request)
                                                 : begin_at_origin(attempt, request, now_us);
}

bool
attempt_goes_on(struct attempt *attempt, const struct request *request,
                const struct attempt_end *end, int64_t now_us)
{
    bool goes_on = false;

    if (attempt->peers && attempt->stage != ATTEMPT_REPEATS)
        return goes_on_from_peer(attempt, request, end, now_us);

    switch (attempt->stage) {
    case ATTEMPT_OPEN:
        goes_on = attempt->counted && leaves_member(attempt, request, end, now_us) &&
                  choose_next(attempt, request, now_us);
        break;
    case ATTEMPT_COUNTS:
        break;
    case ATTEMPT_PASSED_OVER:
        goes_on = end->error != FETCH_CANCELLED && end->error != FETCH_STOPPING;
        if (!goes_on)
            origin_route_give_back(request->route, &attempt->next, now_us);
        break;
    case ATTEMPT_REPEATS:
        if (end->error == FETCH_OK)
            attempt->stage = ATTEMPT_OPEN;
        else
            leave_member(attempt, request);
        return end->error == FETCH_OK;
    }
    leave_member(attempt, request);
    return goes_on && enter_member(attempt, request);
}

struct span
attempt_url(const struct attempt *attempt, const struct request *request, struct attempt_text *text)
{
    const struct span url = request_fetched_url(request);
    struct span path;

    if (attempt->peers)
        return attempt_member(attempt, request)->url;
    if (!request->route)
        return url;
    (void)origin_route_client(fetch_normal_url(url, text->client, sizeof(text->client)), &path);
    return span_of(text->url, origin_route_write_url(request->route, attempt->choice.member, path,
                                                     text->url, sizeof(text->url)));
}

struct span
attempt_host(const struct request *request, struct attempt_text *text)
{
    const struct origin_route *route = request->route;

    if (!route || route->host == ORIGIN_HOST_MEMBER)
        return span_of(NULL, 0);
    if (route->host == ORIGIN_HOST_NAMED)
        return route->name;
    return origin_route_authority(
        fetch_normal_url(request_fetched_url(request), text->client, sizeof(text->client)));
}

struct span
attempt_name_client(const struct attempt *attempt, const struct request *request,
                    char name[PEER_NAME_SIZE])
{
    const struct client *client = request->client;

    if (!client)
        return span_of(NULL, 0);
    peer_auth_name(attempt->peers->auth, span_of((const char *)&client->key, sizeof(client->key)),
                   name);
    return span_of(name, PEER_NAME_SIZE - 1);
}

bool
attempt_write_proof(struct attempt *attempt, const struct request *request, struct buf *value)
{
    const struct origin_peers *peers = attempt->peers;
    const struct peer_words words = {
        .from = peers->route->members[peers->self].url,
        .to = attempt_member(attempt, request)->url,
        .method = request->method_name.len ? request->method_name : span_str("GET"),
        .target = request_fetched_url(request),
        .says = span_of(NULL, 0),
    };

    return peer_auth_write(peers->auth, &peers->keys, &words, clock_wall_us(), value,
                           &attempt->code);
}
