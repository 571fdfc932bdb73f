/*
 * The exchanges of an RPC request: the first one, and one for each redirect that is followed (RFC
 * 9110 section 15.4). A redirect is a response like any other to the cache. Its body is not needed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "base/hash.h"
#include "fetch/headers.h"
#include "http/field.h"
#include "http/request_head.h"
#include "http/target.h"
#include "proxy.h"
#include "server/rpc/front.h"

#define MAX_REDIRECTS 100u /* that --max-redirects may permit */

/* How often a request begins again whose redirect another one has fetched. */
#define MAX_RESTARTS 16

/* Bytes of the fields of a request, the client's own and ours. */
#define FIELDS (2u * PROXY_MAX_HEADERS)

/* The way of a request over its redirects. */
struct front_way {
    struct buf first;                    /* the client's URL */
    struct buf url;                      /* where the last redirect leads; empty before that */
    struct buf fields;                   /* the client's own, as they are sent there */
    uint64_t visited[MAX_REDIRECTS + 1]; /* hashes of URLs that were fetched, one a redirect; 0 of
                                            what another request may have fetched from anywhere */
    unsigned redirects, restarts;
    int64_t fetch_us; /* of the exchanges that have ended; -1: none of them led to a fetch */
    char sentence[FAILURE_SENTENCE];
};

static const char out_of_memory[] = "Cannot allocate memory";

void
front_forget_way(struct front_exchange *front)
{
    struct front_way *way = front->way;

    if (!way)
        return;
    memory_uncharge(front->exchange.proxy->config.account, MEMORY_REQUESTS, sizeof(*way));
    buf_free(&way->first);
    buf_free(&way->url);
    buf_free(&way->fields);
    free(way);
    front->way = NULL;
}

/* Begins at the URL of the exchange. False without memory. */
static bool
make_way(struct front_exchange *front)
{
    struct memory_account *account = front->exchange.proxy->config.account;
    struct front_way *way;

    if (!memory_charge(account, MEMORY_REQUESTS, sizeof(*way)))
        return false;
    way = memory_realloc(account, NULL, sizeof(*way));
    if (!way) {
        memory_uncharge(account, MEMORY_REQUESTS, sizeof(*way));
        return false;
    }
    memset(way, 0, sizeof(*way));
    way->fetch_us = -1;
    buf_init(&way->first, OBJECT_MAX_META);
    buf_init(&way->url, PROXY_MAX_URL);
    buf_init(&way->fields, FIELDS);
    front->way = way;
    return buf_append(&way->first, front->exchange.url.ptr, front->exchange.url.len);
}

struct span
front_url(const struct front_exchange *front)
{
    return front->way ? buf_span(&front->way->first) : front->exchange.url;
}

struct span
front_final_url(const struct exchange *exchange)
{
    const struct front_way *way = ((const struct front_exchange *)exchange)->way;

    return way ? buf_span(&way->url) : exchange->url;
}

int64_t
front_fetch_us(const struct front_exchange *front, int64_t since_us)
{
    int64_t earlier_us = front->way ? front->way->fetch_us : -1;
    int64_t fetch_us = exchange_fetch_us(&front->exchange, since_us);

    if (earlier_us < 0 || fetch_us < 0)
        return fetch_us < 0 ? earlier_us : fetch_us;
    return earlier_us + fetch_us < since_us ? earlier_us + fetch_us : since_us;
}

/* ---- the fields of a request ----------------------------------------------------------------- */

/* Writes a field that the client has not sent itself. */
static char *
put_field(char *end, struct span own, const char *name, struct span value)
{
    const char *const names[] = {name, NULL};

    if (headers_have(own, names))
        return end;
    end = span_put(span_put(end, span_str(name)), span_str(": "));
    return span_put(span_put(end, value), span_str("\r\n"));
}

void
front_fields(struct exchange *exchange)
{
    static _Thread_local char text[FIELDS];
    struct front_exchange *front = front_of(exchange);
    const char *user_agent = service_of(front_request(front))->options->user_agent;
    const struct span agent = user_agent ? span_str(user_agent) : span_of(NULL, 0);
    const struct span own = front->own_fields;
    char *end = text;

    if (agent.len && agent.len < PROXY_MAX_HEADERS / 2)
        end = put_field(end, own, "User-Agent", agent);
    end = put_field(end, own, "Accept", span_str("*/*"));
    end = put_field(end, own, "Accept-Encoding", span_str("identity"));
    if (own.len <= (size_t)(text + sizeof(text) - end))
        end = span_put(end, own);
    front->request.fields = span_of(text, (size_t)(end - text));
}

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

/* ---- rows ------------------------------------------------------------------------------------ */

static enum failure
refuse(enum failure failure, const char *sentence, const char **why)
{
    *why = sentence;
    return failure;
}

/*
 * By a row of --origin, as a request over HTTP in absolute form; its URL is in memory of this
 * thread then. 0; or the failure if there is none, and why.
 */
static enum failure
find_row(const struct http_origins *origins, struct request *request, struct span fetched,
         const char **why)
{
    static const char too_long[] = "the URL is longer than 8,192 bytes";
    static _Thread_local char url[PROXY_MAX_URL], normal[FETCH_NORMAL_SIZE], path[PROXY_MAX_URL];
    struct http_origin_request asked;
    struct http_authority authority;
    struct span text = fetch_normal_url(fetched, normal, sizeof(normal));
    struct http_origin *row;
    size_t len;

    asked.https = span_starts_with(text, span_str("https://"));
    if ((!asked.https && !span_starts_with(text, span_str("http://"))) ||
        !http_authority_read(origin_route_authority(text), &authority))
        return refuse(FAILURE_DENIED, "this server serves no such URL", why);
    (void)origin_route_client(text, &asked.path);
    if (asked.path.len > sizeof(path))
        return refuse(FAILURE_BAD_URL, too_long, why);
    asked.path = http_origins_clean_path(asked.path, path);
    asked.host = authority.host;
    asked.port = authority.port;
    row = http_origins_path_leads_up(asked.path)
              ? NULL
              : http_origins_find(origins, asked.host, asked.path);
    if (!row)
        return refuse(FAILURE_DENIED, "this server does not serve that host and path", why);
    len = http_origin_write_url(row, &asked, url, sizeof(url));
    if (!len)
        return refuse(FAILURE_BAD_URL, too_long, why);
    request->url = span_of(url, len);
    request->route = &row->route;
    request->flags |= REQUEST_OWNED;
    return 0;
}

/* ---- exchanges ------------------------------------------------------------------------------- */

static bool
have_same_host(struct span url, struct span other)
{
    struct http_authority one, two;

    return http_authority_read(origin_route_authority(url), &one) &&
           http_authority_read(origin_route_authority(other), &two) &&
           http_same_name(one.host, two.host);
}

/* A row for any host is for those that clients name: a redirect may lead to another server. */
static bool
stays_in_row(const struct front_exchange *front)
{
    const struct http_origin *row = container_of(front->request.route, struct http_origin, route);

    return row->host.len || have_same_host(front->request.url, front_url(front));
}

static void
leave_row(struct front_exchange *front)
{
    front->request.url = buf_span(&front->way->url);
    front->request.route = NULL;
    front->request.flags &= ~(unsigned)REQUEST_OWNED;
}

/*
 * Sets URL, route and fields of the request: the client's, or where redirects have led. 0, or why
 * it is refused.
 */
static enum failure
set_request(struct front_exchange *front, const char **why)
{
    struct proxy *proxy = front->exchange.proxy;
    const struct http_origins *origins = &service_of(front_request(front))->origins;
    struct request *request = &front->request;
    const struct front_way *way = front->way;
    enum failure failure = 0;

    if (way) {
        request->url = buf_span(&way->url);
        front->own_fields = buf_span(&way->fields);
    }
    request->flags &= ~(unsigned)(REQUEST_OWNED | REQUEST_OWN_FIELDS);
    request->flags |= front->own_fields.len ? (unsigned)REQUEST_OWN_FIELDS : 0;
    request->lacks = front->own_fields.len ? 0 : ~(uint32_t)HTTP_HAS_ACCEPT_ENCODING;
    request->fields = span_of(NULL, 0);
    request->target = span_of(NULL, 0);
    request->route = NULL;
    if (origins->count)
        failure = find_row(origins, request, request->url, why);
    if (way && !failure && request->route && !stays_in_row(front))
        leave_row(front);
    /* What no row has is another server's, which a redirect may lead to, but no client. */
    if (way && failure == FAILURE_DENIED)
        failure = 0;
    if (!failure && !request->route)
        request->url = proxy_normal_url(proxy, request->url);
    if (way && !proxy->config.follows_http) {
        request->target = request->url;
        request->url = front_url(front);
    }
    return failure;
}

/* Starts an exchange. True: it has ended. */
static bool
start(struct front_exchange *front)
{
    const char *why = "";
    enum failure failure = set_request(front, &why);

    front->stage = FRONT_PASSES;
    if (!failure)
        return exchange_start(&front->exchange);
    exchange_refuse(&front->exchange, failure, why);
    return true;
}

/* Adds the time of the fetch that the exchange has caused, which goes on if it was left. */
static void
count_fetch(struct front_exchange *front)
{
    const struct exchange *exchange = &front->exchange;
    struct front_way *way = front->way;
    int64_t fetch_us = exchange_fetch_us(exchange, 0);

    if (fetch_us < 0 && exchange->led)
        fetch_us = proxy_now_us(exchange->proxy) - exchange->as_of_us;
    if (fetch_us >= 0)
        way->fetch_us = fetch_us + (way->fetch_us < 0 ? 0 : way->fetch_us);
}

/* Has the request had the time of a fetch already? */
static bool
is_late(struct front_exchange *front)
{
    const int64_t most_us = service_of(front_request(front))->options->fetch_timeout;

    return most_us && proxy_now_us(front->exchange.proxy) - front->request.arrived_us > most_us;
}

/* The exchange has ended without an answer to the client: begins the next one, or fails. */
static bool
go_on(struct front_exchange *front)
{
    struct exchange *exchange = &front->exchange;
    const struct exchange ended = *exchange;

    if (!front->why && is_late(front)) {
        front->why = FAILURE_TIMEOUT;
        front->sentence = "the redirects took too long";
    }
    if (front->why) {
        front->stage = FRONT_PASSES;
        exchange_refuse(exchange, front->why, front->sentence);
        return true;
    }
    count_fetch(front);
    exchange_end(exchange);
    memset(exchange, 0, sizeof(*exchange));
    exchange->proxy = ended.proxy;
    exchange->front = ended.front;
    exchange->worker = ended.worker;
    /* Unless the client bypasses the cache the front has, to find where it is. */
    exchange->before =
        ended.outcome == OUTCOME_BYPASS && front->way->restarts ? OUTCOME_COALESCED : ended.outcome;
    exchange->request = &front->request;
    exchange->as_of_us = proxy_now_us(ended.proxy);
    return start(front);
}

/*
 * Runs exchanges until one waits, or one that is answered has ended, by the first of these
 * functions and then by go_on(). True: it has ended, and the request may be gone unless the
 * procedure runs.
 */
static bool
run_exchanges(struct front_exchange *front, bool (*begin)(struct front_exchange *front))
{
    bool redirected, ended;

    do {
        redirected = false;
        front->redirected = &redirected;
        ended = begin(front);
        begin = go_on;
    } while (ended && redirected);
    if (!ended)
        front->redirected = NULL;
    return ended;
}

bool_t
front_start(struct front_exchange *front, void *result)
{
    bool ended;

    front->result = result;
    ended = run_exchanges(front, start);
    front->result = NULL;
    if (ended)
        return front->has_result;
    /* Wake-ups are posted to this very thread, so none can come before the deferral. */
    rpc_request_defer(front_request(front));
    return FALSE;
}

/* The exchange has ended: run_exchanges() goes on, if it has called this. */
static void
end_leaving(struct front_exchange *front)
{
    front->stage = FRONT_STARTS;
    if (front->redirected)
        *front->redirected = true;
    else
        (void)run_exchanges(front, go_on);
}

/* The response is not the one that the client gets. */
static void
leave(struct front_exchange *front)
{
    struct exchange *exchange = &front->exchange;

    front->stage = FRONT_LEAVES;
    if (exchange_is_complete(exchange) || exchange_cancel(exchange))
        end_leaving(front);
}

static void
run_exchange(struct net_task *task)
{
    exchange_run(&container_of(task, struct front_exchange, task)->exchange);
}

void
front_wake(struct exchange *exchange)
{
    struct front_exchange *front = front_of(exchange);

    front->task.run = run_exchange;
    net_worker_post(rpc_request_worker(front_request(front)), &front->task);
}

bool
front_is_bounded(struct exchange *exchange)
{
    return rpc_request_is_bounded(front_request(front_of(exchange)));
}

/* ---- redirects ------------------------------------------------------------------------------- */

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
    const unsigned most = (unsigned)service_of(front_request(front))->options->max_redirects;
    struct front_way *way = front->way;
    const struct span url = current_url(front);
    enum fetch_error error;
    bool same_origin;
    char why[256];
    struct buf next;

    if (way->restarts)
        front->request.flags &= ~(unsigned)REQUEST_NO_STORE; /* the client has not set it */
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
        front->request.flags |= REQUEST_NO_STORE;
        buf_reset(&way->url);
        if (!buf_append(&way->url, way->first.data, way->first.len))
            refuse_redirect(front, FAILURE_INTERNAL, "%s", out_of_memory);
    }
}

static void
follow(struct front_exchange *front, struct span location)
{
    if (front->way || make_way(front)) {
        if (shares_way(front))
            start_over(front, location);
        else
            find_next(front, location);
    } else {
        front->why = FAILURE_OVERLOADED;
        front->sentence = "too many requests wait already; try again";
    }
    leave(front);
}

/* ---- the front's calls ----------------------------------------------------------------------- */

void
front_head(struct exchange *exchange)
{
    struct front_exchange *front = front_of(exchange);
    struct span location = exchange_redirect(exchange);

    if (location.len) {
        follow(front, location);
    } else if (exchange_is_unasked(exchange)) {
        front->why = FAILURE_ORIGIN;
        front->sentence = exchange->object->status == 206
                              ? "the origin sent a part of the page (status 206) unasked"
                              : "the origin sent \"not modified\" (status 304) unasked";
        leave(front);
    } else {
        front->redirected = NULL;
        front_begin_content(front);
        front_version_of(front)->answer(front);
    }
}

void
front_more(struct exchange *exchange)
{
    front_version_of(front_of(exchange))->more(exchange);
}

void
front_fail(struct exchange *exchange, enum failure why, struct span sentence)
{
    struct front_exchange *front = front_of(exchange);

    if (front->stage == FRONT_LEAVES) {
        end_leaving(front);
        return;
    }
    if (front->way && (why == FAILURE_DENIED || why == FAILURE_BAD_URL))
        why = FAILURE_REDIRECT;
    if (front->way || front->why)
        sentence = failure_for_client(why, sentence);
    front->redirected = NULL;
    front_version_of(front)->fail(exchange, why, sentence);
}
