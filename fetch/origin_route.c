#include "fetch/origin_route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/reference.h"

/* ---- members --------------------------------------------------------------------------------- */

static int64_t
time_left(unsigned failures)
{
    int64_t us = ORIGIN_ROUTE_LEFT_US;

    while (failures-- > 1 && us < ORIGIN_ROUTE_LONGEST_US)
        us *= 2;
    return us < ORIGIN_ROUTE_LONGEST_US ? us : ORIGIN_ROUTE_LONGEST_US;
}

static bool
choose(struct origin_choice *choice, unsigned member, bool trial)
{
    choice->tried |= 1u << member;
    choice->member = member;
    choice->trial = trial;
    return true;
}

bool
origin_route_next(struct origin_route *route, struct origin_choice *choice, int64_t now_us)
{
    unsigned soonest = ORIGIN_ROUTE_MEMBERS;
    int64_t soonest_us = INT64_MAX;

    for (unsigned i = 0; i < route->count; i++) {
        struct origin_member *member = &route->members[i];
        int64_t until_us = atomic_load(&member->left_until_us);

        if (choice->tried & 1u << i)
            continue;
        if (!until_us)
            return choose(choice, i, false);
        /* One request tries it, and the next one not before the same time has passed. */
        if (until_us <= now_us &&
            atomic_compare_exchange_strong(&member->left_until_us, &until_us,
                                           now_us + time_left(atomic_load(&member->failures))))
            return choose(choice, i, true);
        if (until_us < soonest_us) {
            soonest_us = until_us;
            soonest = i;
        }
    }
    return soonest < ORIGIN_ROUTE_MEMBERS && choose(choice, soonest, false);
}

unsigned
origin_route_first(const struct origin_route *route)
{
    for (unsigned i = 0; route && i < route->count; i++)
        if (!atomic_load(&route->members[i].left_until_us))
            return i;
    return 0;
}

bool
origin_route_has_next(const struct origin_route *route, const struct origin_choice *choice)
{
    return choice->tried != (1u << route->count) - 1;
}

static void
report(const struct origin_route *route, unsigned member, int64_t left_us, const char *reason)
{
    if (route->changed)
        route->changed(&(struct origin_change){
            .url = route->members[member].url, .left_us = left_us, .reason = reason});
}

/* Returns for how long the member is left from now on, or 0. */
static int64_t
leave(const struct origin_route *route, struct origin_member *member, bool trial, int64_t now_us)
{
    int64_t in_use = 0, left_us;

    if (route->count == 1)
        return 0;
    if (trial) {
        left_us = time_left(atomic_fetch_add(&member->failures, 1) + 1);
        atomic_store(&member->left_until_us, now_us + left_us);
        return left_us;
    }
    /* Of several requests that fail at a time one counts. */
    if (!atomic_compare_exchange_strong(&member->left_until_us, &in_use,
                                        now_us + ORIGIN_ROUTE_LEFT_US))
        return 0;
    atomic_store(&member->failures, 1);
    return ORIGIN_ROUTE_LEFT_US;
}

void
origin_route_failed(struct origin_route *route, const struct origin_choice *choice, int64_t now_us,
                    const char *reason)
{
    int64_t left_us = leave(route, &route->members[choice->member], choice->trial, now_us);

    if (left_us)
        report(route, choice->member, left_us, reason);
}

void
origin_route_succeeded(struct origin_route *route, const struct origin_choice *choice)
{
    struct origin_member *member = &route->members[choice->member];

    if (atomic_load(&member->left_until_us) && atomic_exchange(&member->left_until_us, 0))
        report(route, choice->member, 0, "");
}

void
origin_route_give_back(struct origin_route *route, const struct origin_choice *choice,
                       int64_t now_us)
{
    struct origin_member *member = &route->members[choice->member];
    int64_t until_us = atomic_load(&member->left_until_us);

    /* A response may have come from it meanwhile. */
    if (choice->trial && until_us > now_us)
        atomic_compare_exchange_strong(&member->left_until_us, &until_us, now_us);
}

/* ---- URLs ------------------------------------------------------------------------------------ */

struct span
origin_route_client(struct span url, struct span *path)
{
    const char *after = memmem(url.ptr, url.len, "://", 3), *end = url.ptr + url.len;
    const char *at = after ? after + 3 : url.ptr;

    while (at < end && *at != '/' && *at != '?' && *at != '#')
        at++;
    *path = span_of(at, (size_t)(end - at));
    return span_of(url.ptr, (size_t)(at - url.ptr));
}

/* Has the URL nothing behind its authority? */
static bool
is_authority(struct span url)
{
    struct span path;

    (void)origin_route_client(url, &path);
    return path.len == 0;
}

size_t
origin_route_write_url(const struct origin_route *route, unsigned member, struct span path,
                       char *out, size_t size)
{
    struct span url = route->members[member].url;
    struct span rest = route->prefix.len
                           ? span_of(path.ptr + route->prefix.len, path.len - route->prefix.len)
                           : path;
    bool slash = (rest.len == 0 || rest.ptr[0] != '/') && is_authority(url);
    char *end = out;

    if (url.len + slash + rest.len > size)
        return 0;
    end = span_put(end, url);
    if (slash)
        *end++ = '/';
    end = span_put(end, rest);
    return (size_t)(end - out);
}

size_t
origin_route_longest(const struct origin_route *route)
{
    size_t longest = 0;

    for (unsigned i = 0; i < route->count; i++)
        if (route->members[i].url.len > longest)
            longest = route->members[i].url.len;
    return longest + 1;
}

struct span
origin_route_authority(struct span url)
{
    struct span path, client = origin_route_client(url, &path);
    const char *after = memmem(client.ptr, client.len, "://", 3);

    return after ? span_of(after + 3, (size_t)(client.ptr + client.len - after - 3)) : client;
}

/* ---- references ------------------------------------------------------------------------------ */

/* Is it below the URL of the member with the name for which that takes itself? */
static bool
is_below_name(const struct origin_route *route, unsigned member, struct span reference,
              struct span *rest)
{
    static const char *const schemes[] = {"http://", "https://"};
    char base[FETCH_NORMAL_SIZE];
    struct span path;

    (void)origin_route_client(route->members[member].url, &path);
    if (route->name.len + path.len > sizeof(base) - sizeof("https://"))
        return false;
    for (unsigned i = 0; i < 2; i++) {
        char *end = span_put(span_put(span_put(base, span_str(schemes[i])), route->name), path);

        if (http_reference_is_below(span_of(base, (size_t)(end - base)), reference, rest))
            return true;
    }
    return false;
}

bool
origin_route_names_member(const struct origin_route *route, struct span reference,
                          struct span *rest)
{
    for (unsigned i = 0; i < route->count; i++)
        if (http_reference_is_below(route->members[i].url, reference, rest) ||
            (route->host == ORIGIN_HOST_NAMED && is_below_name(route, i, reference, rest)))
            return true;
    return false;
}

char *
origin_route_write_path(const struct origin_route *route, struct span rest, char *out)
{
    out = span_put(out, route->prefix);
    /* A path begins with a slash, and a row with a slash at its end needs it. */
    if ((route->prefix.len == 0 || route->below) && (rest.len == 0 || rest.ptr[0] != '/'))
        *out++ = '/';
    /* Without a prefix a second slash would begin an authority. */
    while (route->prefix.len == 0 && rest.len > 1 && rest.ptr[0] == '/' && rest.ptr[1] == '/')
        rest = span_of(rest.ptr + 1, rest.len - 1);
    return span_put(out, rest);
}

/* Appends the client's URL for what follows the URL of a member. */
static bool
append_client_url(const struct origin_route *route, struct span client_url, struct span rest,
                  struct buf *out)
{
    struct span path, client = origin_route_client(client_url, &path);
    char *text = malloc(route->prefix.len + 1 + rest.len + 1);
    bool appended = false;

    if (text) {
        size_t len = (size_t)(origin_route_write_path(route, rest, text) - text);
        const char *fragment = memchr(text, '#', len);

        len = fragment ? (size_t)(fragment - text) : len;
        appended = buf_append(out, client.ptr, client.len) && buf_append(out, text, len);
    }
    free(text);
    return appended;
}

bool
origin_route_resolve(const struct origin_route *route, unsigned member, struct span client_url,
                     struct span reference, struct buf *out)
{
    char url[FETCH_NORMAL_SIZE];
    struct span path, rest;
    struct buf absolute;
    bool found = false;
    size_t len;

    if (origin_route_names_member(route, reference, &rest))
        return append_client_url(route, client_url, rest, out);
    (void)origin_route_client(client_url, &path);
    len = origin_route_write_url(route, member, path, url, sizeof(url));
    buf_init(&absolute, 2 * sizeof(url));
    if (len && http_resolve_same_origin(span_of(url, len), reference, &absolute) &&
        origin_route_names_member(route, buf_span(&absolute), &rest))
        found = append_client_url(route, client_url, rest, out);
    buf_free(&absolute);
    return found;
}

/* ---- attempts -------------------------------------------------------------------------------- */

void
attempt_begin(struct attempt *attempt, const struct request *request, int64_t now_us)
{
    if (request->route)
        (void)origin_route_next(request->route, &attempt->choice, now_us);
}

/* A member that cannot reach its own origin, or does not serve now. */
static bool
is_failure(unsigned status)
{
    return status == 502 || status == 503 || status == 504;
}

bool
attempt_counts(struct attempt *attempt, const struct request *request, unsigned status,
               int64_t now_us)
{
    char reason[32];

    if (!request->route)
        return true;
    attempt->stage = ATTEMPT_COUNTS;
    if (!is_failure(status)) {
        origin_route_succeeded(request->route, &attempt->choice);
        return true;
    }
    snprintf(reason, sizeof(reason), "its status is %u", status);
    origin_route_failed(request->route, &attempt->choice, now_us, reason);
    if (request_may_repeat(request) && origin_route_has_next(request->route, &attempt->choice))
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
    if (blames_member(request, end)) {
        origin_route_failed(request->route, &attempt->choice, now_us, end->sentence);
        return may_go_on(attempt, request, end);
    }
    /* One that its client has cancelled may have waited for the member. */
    if (!end->had_turn && end->error != FETCH_CANCELLED)
        origin_route_give_back(request->route, &attempt->choice, now_us);
    return false;
}

bool
attempt_goes_on(struct attempt *attempt, const struct request *request,
                const struct attempt_end *end, int64_t now_us)
{
    bool goes_on = false;

    switch (attempt->stage) {
    case ATTEMPT_OPEN:
        goes_on = request->route && leaves_member(attempt, request, end, now_us) &&
                  origin_route_next(request->route, &attempt->choice, now_us);
        break;
    case ATTEMPT_COUNTS:
        break;
    case ATTEMPT_PASSED_OVER:
        goes_on = end->error != FETCH_CANCELLED && end->error != FETCH_STOPPING &&
                  origin_route_next(request->route, &attempt->choice, now_us);
        break;
    case ATTEMPT_REPEATS:
        goes_on = end->error == FETCH_OK;
        break;
    }
    if (goes_on)
        attempt->stage = ATTEMPT_OPEN;
    return goes_on;
}

struct span
attempt_url(const struct attempt *attempt, const struct request *request, struct attempt_text *text)
{
    const struct span url = request_fetched_url(request);
    struct span path;

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
