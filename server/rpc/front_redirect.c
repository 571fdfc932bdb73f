#include "server/rpc/front_redirect.h"

#include <stdio.h>

#include "base/hash.h"
#include "http/field.h"
#include "http/target.h"
#include "proxy.h"
#include "server/rpc/front_way.h"

/* How often a request begins again whose redirect another one has fetched. */
#define MAX_RESTARTS 16

static const char out_of_memory[] = "Cannot allocate memory";

/* Keeps the client's own fields for a URL to which a redirect leads: what was sent for one origin
 * is no other's business. False without memory. */
static bool
keep_own_fields(struct front_exchange *front, bool same_origin)
{
    static const char *const secrets[] = {"Authorization", "Cookie", NULL};
    struct span lines = front->exchange.request->fields, line, name, value;
    struct buf *kept = &front->way->fields;

    buf_reset(kept);
    if (!(front->request.flags & REQUEST_OWN_FIELDS))
        return true;
    while (http_next_line(&lines, &line))
        if (same_origin || !http_split_field(line, &name, &value) ||
            !http_name_is_one_of(name, secrets)) {
            buf_append(kept, line.ptr, line.len);
            buf_append_str(kept, "\r\n");
        }
    return !buf_failed(kept);
}

/* Appends where a reference of a row's origin leads its clients. */
static bool
resolve_in_row(const struct origin_route *route, struct span url, struct span location,
               struct buf *next)
{
    bool found = false;

    for (unsigned i = 0; !found && i < route->count; i++)
        found = origin_route_resolve(route, i, url, location, next);
    return found;
}

/* Was the URL fetched for this request? */
static bool
was_visited(const struct front_way *way, struct span url)
{
    for (unsigned i = 0; i <= way->redirects; i++)
        if (way->visited[i] == hash64_bytes(url))
            return true;
    return false;
}

static void refuse_redirect(struct front_exchange *front, enum failure why, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void
refuse_redirect(struct front_exchange *front, enum failure why, const char *format, ...)
{
    struct front_way *way = front->way;
    va_list args;

    front->why = why;
    front->sentence = way->sentence;
    va_start(args, format);
    vsnprintf(way->sentence, sizeof(way->sentence), format, args);
    va_end(args);
}

/* The URL of the response, as the client would ask for it. */
static struct span
current_url(const struct front_exchange *front)
{
    return front->way->url.len ? buf_span(&front->way->url) : front->exchange.url;
}

/* Is the response that another request has fetched perhaps that of another URL on the way? With
 * --freshness off all that a URL leads to is fetched for that URL. */
static bool
shares_way(const struct front_exchange *front)
{
    const struct exchange *exchange = &front->exchange;

    return !exchange->proxy->config.follows_http && exchange->outcome == OUTCOME_COALESCED;
}

/* Appends where the reference leads: FETCH_OK, or an error with a sentence in `why`. */
static enum fetch_error
resolve(const struct front_exchange *front, struct span location, struct buf *next,
        bool *same_origin, char *why, size_t why_size)
{
    const struct origin_route *route = front->exchange.request->route;
    const struct span url = current_url(front);
    enum fetch_error error = FETCH_OK;

    *same_origin = true;
    if (location.len <= PROXY_MAX_URL && !(route && resolve_in_row(route, url, location, next)))
        error = fetch_follow(url, location, next, same_origin, why, why_size);
    if (!error && (location.len > PROXY_MAX_URL || next->len > PROXY_MAX_URL)) {
        snprintf(why, why_size, "it is longer than %u bytes", (unsigned)PROXY_MAX_URL);
        error = FETCH_BAD_URL;
    }
    return error;
}

/* Finds where the redirect leads: front->way->url, or front->why. */
static void
find_next(struct front_exchange *front, struct span location)
{
    const struct config *config = service_config(service_of(front_request(front)));
    const unsigned most = (unsigned)config->options->max_redirects;
    struct front_way *way = front->way;
    const struct span url = current_url(front);
    enum fetch_error error;
    bool same_origin;
    char why[256];
    struct buf next;

    if (way->restarts)
        front->request.passes = HTTP_REASON_NONE; /* the client has not set it */
    way->visited[way->redirects] = shares_way(front) ? 0 : hash64_bytes(url);
    buf_init(&next, 4 * PROXY_MAX_URL);
    error = resolve(front, location, &next, &same_origin, why, sizeof(why));
    if (error == FETCH_INTERNAL)
        refuse_redirect(front, FAILURE_INTERNAL, "%s", out_of_memory);
    else if (error)
        refuse_redirect(front, FAILURE_REDIRECT, "%.*s redirects to \"%.*s\": %s",
                        (int)(url.len < 100 ? url.len : 100), url.ptr,
                        (int)(location.len < 100 ? location.len : 100), location.ptr, why);
    else if (was_visited(way, buf_span(&next)))
        refuse_redirect(front, FAILURE_REDIRECT, "redirected in a circle, back to %.200s",
                        buf_str(&next));
    else if (way->redirects >= most)
        refuse_redirect(front, FAILURE_REDIRECT, "redirected more than %u times, last by %.*s",
                        most, (int)(url.len < 200 ? url.len : 200), url.ptr);
    buf_reset(&way->url);
    if (!front->why)
        buf_append(&way->url, next.data, next.len);
    if (buf_failed(&way->url) || !keep_own_fields(front, same_origin))
        refuse_redirect(front, FAILURE_INTERNAL, "%s", out_of_memory);
    buf_free(&next);
    way->redirects++;
}

/*
 * Begins a way anew: by where it leads, or, if that depends on where the response is from, at the
 * client's URL, past the cache, so that it is not another one's again.
 */
static void
start_over(struct front_exchange *front, struct span location)
{
    struct front_way *way = front->way;

    way->redirects = 0;
    if (way->restarts++ == MAX_RESTARTS) {
        refuse_redirect(front, FAILURE_OVERLOADED,
                        "too many requests are redirected from this URL; try again");
    } else if (http_scheme_length(location)) {
        find_next(front, location);
    } else {
        front->request.passes = HTTP_REASON_REQUEST_NO_STORE;
        buf_reset(&way->url);
        if (!buf_append(&way->url, way->first.data, way->first.len))
            refuse_redirect(front, FAILURE_INTERNAL, "%s", out_of_memory);
    }
}

void
front_redirect(struct front_exchange *front, struct span location)
{
    if (front->way || front_way_begin(front)) {
        if (shares_way(front))
            start_over(front, location);
        else
            find_next(front, location);
    } else {
        front->why = FAILURE_OVERLOADED;
        front->sentence = "too many requests wait already; try again";
    }
}
