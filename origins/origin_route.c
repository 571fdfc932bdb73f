#include "origins/origin_route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "http/reference.h"
#include "origins/origin_balance.h"

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

void
origin_route_set_key(const struct origin_route *route, struct origin_choice *choice,
                     struct span url)
{
    if (route->balance == ORIGIN_BALANCE_HASH)
        choice->key = hash64_bytes(url);
}

const char *
origin_route_state(const struct origin_route *route, unsigned number, int64_t now_us, char *text,
                   size_t size)
{
    const struct origin_server *server = route->members[number].server;
    int64_t until_us = atomic_load(&server->left_until_us);

    if (atomic_load(&server->drained))
        snprintf(text, size, "drained");
    else if (!until_us || (route->count == 1 && until_us != ORIGIN_SERVER_DOWN))
        snprintf(text, size, "%s", "");
    else if (until_us == ORIGIN_SERVER_DOWN)
        snprintf(text, size, "down");
    else
        snprintf(text, size, "left for %lld s",
                 until_us > now_us ? (long long)((until_us - now_us + 999999) / 1000000) : 0);
    return text;
}

/* What a request finds of the members that it has not tried. */
struct candidates {
    unsigned in_use;
    unsigned full;    /* of those, the ones that have reached their limits */
    unsigned due;     /* their time has ended */
    unsigned soonest; /* whose time ends first; ORIGIN_ROUTE_MEMBERS: none is left */
    int64_t soonest_us;
};

/* For how long requests leave the member, as of left_until_us; ORIGIN_SERVER_DOWN: probes or an
 * administrator end that. */
static int64_t
find_until(const struct origin_route *route, const struct origin_server *server)
{
    int64_t until_us = atomic_load(&server->left_until_us);

    if (atomic_load(&server->drained) || until_us == ORIGIN_SERVER_DOWN)
        return ORIGIN_SERVER_DOWN;
    return route->count == 1 ? 0 : until_us;
}

bool
origin_route_serves(const struct origin_route *route, int64_t now_us)
{
    bool left = false;

    for (unsigned i = 0; i < route->count; i++) {
        const int64_t until_us = find_until(route, route->members[i].server);

        if (until_us <= now_us)
            return true;
        left = left || until_us != ORIGIN_SERVER_DOWN;
    }
    return left && atomic_load(&route->trial_due_us) <= now_us;
}

static struct candidates
find_candidates(const struct origin_route *route, const struct origin_choice *choice, bool backup,
                int64_t now_us)
{
    struct candidates found = {.soonest = ORIGIN_ROUTE_MEMBERS, .soonest_us = ORIGIN_SERVER_DOWN};

    for (unsigned i = 0; i < route->count; i++) {
        const struct origin_member *member = &route->members[i];
        int64_t until_us = find_until(route, member->server);

        if (choice->tried & 1u << i || member->backup != backup)
            continue;
        if (!until_us)
            found.in_use |= 1u << i;
        else if (until_us <= now_us)
            found.due |= 1u << i;
        if (!until_us && origin_server_is_full(member->server))
            found.full |= 1u << i;
        if (until_us && until_us < found.soonest_us) {
            found.soonest_us = until_us;
            found.soonest = i;
        }
    }
    return found;
}

/* One request tries a member that is left until then, and the next one not before the same time
 * has passed. */
static bool
begin_trial(struct origin_server *server, int64_t until_us, int64_t now_us)
{
    return atomic_compare_exchange_strong(&server->left_until_us, &until_us,
                                          now_us + time_left(atomic_load(&server->failures)));
}

/* One whose time has ended. */
static bool
begin_due_trial(struct origin_server *server, int64_t now_us)
{
    int64_t until_us = atomic_load(&server->left_until_us);

    return until_us && until_us <= now_us && begin_trial(server, until_us, now_us);
}

/* Among the members that are backups, or those that are none. */
static bool
choose_among(struct origin_route *route, struct origin_choice *choice,
             const struct candidates *found, int64_t now_us)
{
    unsigned due = found->due, in_use;

    /* In order, what comes behind one in use is not needed. */
    if (route->balance == ORIGIN_BALANCE_FIRST && found->in_use)
        due &= (found->in_use & -found->in_use) - 1;
    for (unsigned i = 0; i < route->count; i++)
        if (due >> i & 1 && begin_due_trial(route->members[i].server, now_us))
            return choose(choice, i, true);
    in_use = found->in_use & ~found->full ? found->in_use & ~found->full : found->in_use;
    return in_use && !(choice->urgent && found->full == found->in_use) &&
           choose(choice, origin_balance_pick(route, in_use, choice, now_us), false);
}

/* Is a member in use, other than this one? */
static bool
has_other(const struct origin_route *route, const struct origin_server *server)
{
    for (unsigned i = 0; i < route->count; i++)
        if (route->members[i].server != server && !find_until(route, route->members[i].server))
            return true;
    return false;
}

/* If all members are left, may this request try one all the same? */
static bool
is_trial_due(struct origin_route *route, int64_t now_us)
{
    int64_t due_us = atomic_load(&route->trial_due_us);

    return !has_other(route, NULL) && due_us <= now_us &&
           atomic_compare_exchange_strong(&route->trial_due_us, &due_us,
                                          now_us + ORIGIN_ROUTE_TRIAL_US);
}

static bool
choose_next(struct origin_route *route, struct origin_choice *choice, int64_t now_us)
{
    const struct candidates found[] = {find_candidates(route, choice, false, now_us),
                                       find_candidates(route, choice, true, now_us)};
    const struct candidates *soonest = &found[found[1].soonest_us < found[0].soonest_us];

    for (unsigned i = 0; i < 2; i++)
        if (choose_among(route, choice, &found[i], now_us))
            return true;
    return soonest->soonest < ORIGIN_ROUTE_MEMBERS && is_trial_due(route, now_us) &&
           begin_trial(route->members[soonest->soonest].server, soonest->soonest_us, now_us) &&
           choose(choice, soonest->soonest, true);
}

bool
origin_route_next(struct origin_route *route, struct origin_choice *choice, int64_t now_us)
{
    struct origin_choice next = *choice;

    if (!choice->tried)
        origin_budget_add(&route->budget, now_us);
    if (!choose_next(route, &next, now_us))
        return false;
    if (choice->tried && !choice->unsent && !origin_budget_take(&route->budget, now_us)) {
        origin_route_give_back(route, &next, now_us);
        choice->refused = true;
        return false;
    }
    *choice = next;
    return true;
}

unsigned
origin_route_retry_after_s(const struct origin_route *route)
{
    int64_t us = route->probes.path.len ? route->probes.interval_us : ORIGIN_ROUTE_LEFT_US;

    for (unsigned i = 0; i < route->count; i++)
        if (find_until(route, route->members[i].server) != ORIGIN_SERVER_DOWN)
            us = ORIGIN_ROUTE_TRIAL_US;
    return (unsigned)((us + 999999) / 1000000);
}

unsigned
origin_route_first(const struct origin_route *route)
{
    for (unsigned i = 0; route && i < route->count; i++)
        if (!atomic_load(&route->members[i].server->left_until_us))
            return i;
    return 0;
}

static void
report(const struct origin_route *route, unsigned member, int64_t left_us, const char *reason)
{
    if (route->changed)
        route->changed(&(struct origin_change){
            .url = route->members[member].url, .left_us = left_us, .reason = reason});
}

/* A trial has failed. */
static int64_t
leave_again(struct origin_server *server, int64_t now_us)
{
    int64_t until_us = atomic_load(&server->left_until_us);
    int64_t left_us = time_left(atomic_fetch_add(&server->failures, 1) + 1);

    /* Of one that is down the probes decide. */
    return until_us != ORIGIN_SERVER_DOWN &&
                   atomic_compare_exchange_strong(&server->left_until_us, &until_us,
                                                  now_us + left_us)
               ? left_us
               : 0;
}

/* Returns for how long the member is left from now on, or 0. */
static int64_t
leave(const struct origin_route *route, struct origin_server *server, bool trial, int64_t now_us)
{
    int64_t in_use = 0;

    if (route->count == 1)
        return 0;
    if (trial)
        return leave_again(server, now_us);
    if (atomic_fetch_add(&server->streak, 1) + 1 < ORIGIN_ROUTE_LAST_FAILURES &&
        !has_other(route, server))
        return 0;
    /* Of several requests that fail at a time one counts. */
    if (!atomic_compare_exchange_strong(&server->left_until_us, &in_use,
                                        now_us + ORIGIN_ROUTE_LEFT_US))
        return 0;
    atomic_store(&server->failures, 1);
    return ORIGIN_ROUTE_LEFT_US;
}

void
origin_route_failed(struct origin_route *route, const struct origin_choice *choice, int64_t now_us,
                    const char *reason)
{
    struct origin_server *server = route->members[choice->member].server;
    int64_t left_us = leave(route, server, choice->trial, now_us);

    atomic_fetch_add_explicit(&server->failed, 1, memory_order_relaxed);
    atomic_store_explicit(&server->failed_us, now_us, memory_order_relaxed);
    if (left_us || !atomic_load(&server->left_until_us))
        origin_reason_set(&server->reason, reason);
    if (left_us)
        report(route, choice->member, left_us, reason);
}

void
origin_route_succeeded(struct origin_route *route, const struct origin_choice *choice,
                       int64_t now_us)
{
    struct origin_server *server = route->members[choice->member].server;
    int64_t until_us = atomic_load(&server->left_until_us);

    if (atomic_load_explicit(&server->streak, memory_order_relaxed))
        atomic_store(&server->streak, 0);
    /* Other requests than a trial began before the member was left. Of one that is down the probes
     * decide. */
    if (!choice->trial || !until_us || until_us == ORIGIN_SERVER_DOWN)
        return;
    atomic_store(&server->used_again_us, now_us);
    if (atomic_compare_exchange_strong(&server->left_until_us, &until_us, 0))
        report(route, choice->member, 0, "");
}

/* Counts a response in a series of bad ones. Are they too many, or has a trial failed? */
static bool
count_bad(_Atomic unsigned *series, bool is_bad, unsigned most, bool trial)
{
    if (is_bad)
        return atomic_fetch_add(series, 1) + 1 >= most || trial;
    if (atomic_load_explicit(series, memory_order_relaxed))
        atomic_store(series, 0);
    return false;
}

/* The member responds, but badly: is it left for that? */
static bool
leave_bad(struct origin_route *route, const struct origin_choice *choice, int64_t now_us,
          const char *reason)
{
    struct origin_server *server = route->members[choice->member].server;
    int64_t left_us = has_other(route, server) ? leave(route, server, choice->trial, now_us) : 0;

    if (!left_us)
        return false;
    atomic_store(&server->slow, 0);
    atomic_store(&server->errors, 0);
    origin_reason_set(&server->reason, reason);
    report(route, choice->member, left_us, reason);
    return true;
}

void
origin_route_responded(struct origin_route *route, const struct origin_choice *choice,
                       unsigned status, int64_t took_us, int64_t now_us)
{
    struct origin_server *server = route->members[choice->member].server;
    const bool slow = count_bad(&server->slow, route->slow_us && took_us > route->slow_us,
                                ORIGIN_ROUTE_SLOW, choice->trial);
    const bool fails =
        count_bad(&server->errors, route->errors && status >= 500, route->errors, choice->trial);
    char reason[64];

    if (fails)
        snprintf(reason, sizeof(reason), "its status is %u time after time", status);
    else
        snprintf(reason, sizeof(reason), "its responses take more than %lld ms",
                 (long long)(route->slow_us / 1000));
    if ((!slow && !fails) || !leave_bad(route, choice, now_us, reason))
        origin_route_succeeded(route, choice, now_us);
}

void
origin_route_give_back(struct origin_route *route, const struct origin_choice *choice,
                       int64_t now_us)
{
    struct origin_server *server = route->members[choice->member].server;
    int64_t until_us = atomic_load(&server->left_until_us);

    /* A response may have come from it meanwhile. */
    if (choice->trial && until_us > now_us)
        atomic_compare_exchange_strong(&server->left_until_us, &until_us, now_us);
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
    char base[ORIGIN_ROUTE_URL];
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
    char url[ORIGIN_ROUTE_URL];
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
