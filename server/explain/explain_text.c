#include "server/explain/explain_text.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "base/hash.h"
#include "fetch/fetch.h"
#include "http/cache_control.h"
#include "http/field.h"
#include "http/request_head.h"
#include "metrics/recent.h"
#include "proxy.h"
#include "rules/rules.h"
#include "server/explain/explain.h"
#include "base/timestamp.h"
#include "server/rpc/front_target.h"

/* What is explained, on its way. */
struct asking {
    struct service *service;
    struct config *config;
    struct request request;
    struct exchange exchange;
    struct buf lines; /* of the request, as the rules have them */
    struct buf *out;
    struct explain_read *read;
    struct span user; /* a NULL pointer: none is named, or needed */
    char url[PROXY_MAX_URL + RULES_LOCATION_MAX];
};

static void line(struct buf *out, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void
line(struct buf *out, const char *name, const char *format, ...)
{
    va_list args;

    buf_printf(out, "%s: ", name);
    va_start(args, format);
    buf_vprintf(out, format, args);
    va_end(args);
    buf_append_char(out, '\n');
}

static void
span_line(struct buf *out, const char *name, struct span value)
{
    line(out, name, "%.*s", (int)value.len, value.ptr);
}

static void
tell_reason(struct buf *out, const char *name, enum http_reason reason)
{
    if (reason)
        line(out, name, "%s: %s", http_reason_word(reason), http_reason_sentence(reason));
}

/* ---- the request ----------------------------------------------------------------------------- */

static uint32_t
fields_of(struct span lines)
{
    struct span rest = lines, text, name, value;
    uint32_t has = 0;

    while (http_next_line(&rest, &text))
        if (http_split_field(text, &name, &value))
            has |= http_request_field_of(name);
    return has;
}

/* By a row, or as a forward proxy. False with a sentence. */
static bool
route(struct asking *a, const struct explain_request *asked)
{
    const struct http_origins *origins = &a->config->origins;
    const char *why = "the URL is not one of http or https";
    struct span url;

    if (origins->count) {
        if (front_target_row(origins, &a->request, asked->url, &why) == 0)
            return true;
        buf_append_str(a->out, why);
        return false;
    }
    url = proxy_normal_url(&a->service->proxy, asked->url);
    a->request.url = url;
    if (span_starts_with(url, span_str("http://")) || span_starts_with(url, span_str("https://")))
        return true;
    buf_append_str(a->out, why);
    return false;
}

static void
tell_row(struct asking *a)
{
    const struct origin_route *route = a->request.route;

    if (!route)
        return;
    for (unsigned i = 0; i < route->count; i++) {
        const struct span url = route->members[i].url;
        char state[64];

        origin_route_state(route, i, a->request.arrived_us, state, sizeof(state));
        line(a->out, "member", "%.*s%s%s", (int)url.len, url.ptr, *state ? ", " : "", state);
    }
}

/* ---- rules ----------------------------------------------------------------------------------- */

static void
tell_rule(void *context, size_t number)
{
    const struct asking *a = context;
    const struct option_list *list = &a->config->options->rule;

    line(a->out, "rule", "%s%s", option_place(list, number), list->items[number]);
}

static const char *
verdict_word(enum rules_verdict verdict)
{
    static const char *const words[] = {
        [RULES_GO_ON] = "",
        [RULES_DENY] = "denied",
        [RULES_REDIRECT] = "redirect",
        [RULES_LIMIT] = "limited",
    };

    return words[verdict];
}

/* Without the one that names the user. */
static void
take_lines(struct asking *a, struct span lines)
{
    static const struct span field = {"Explain-User", sizeof("Explain-User") - 1};
    struct span text, value;

    while (http_next_line(&lines, &text)) {
        if (http_line_is(text, field, &value)) {
            a->user = value;
            continue;
        }
        buf_append(&a->lines, text.ptr, text.len);
        buf_append_str(&a->lines, "\r\n");
    }
}

static struct rules_request
to_rules(const struct asking *a)
{
    const struct span lines = buf_span(&a->lines);

    return (struct rules_request){
        .method = a->request.method,
        .url = a->request.url,
        .lines = lines,
        .has = fields_of(lines),
        .now_us = a->request.arrived_us,
        .user = a->user,
    };
}

/* The request of a client over TCP gets status 407. */
static bool
demand_user(struct asking *a)
{
    const struct rules_request request = to_rules(a);
    enum http_reason reason = HTTP_REASON_NONE;

    if (!config_asks_users(a->config) || a->config->origins.count ||
        (a->config->table && !rules_demand_user(a->config->table, &request))) {
        a->user = span_of(NULL, 0);
        return false;
    }
    if (!a->user.ptr)
        reason = HTTP_REASON_USER_DEMANDED;
    else if (a->config->users && !user_file_find(a->config->users, a->user))
        reason = HTTP_REASON_USER_REFUSED;
    span_line(a->out, "user", a->user.ptr ? a->user : span_str("none, and one is needed"));
    if (!reason)
        return false;
    line(a->out, "answer", "denied, status 407");
    tell_reason(a->out, "reason", reason);
    return true;
}

/* True: the rules answer the request. */
static bool
apply_rules(struct asking *a)
{
    const struct rules_request request = to_rules(a);
    struct rules_answer answer;

    a->request.lacks = ~request.has;
    if (!a->config->table)
        return false;
    rules_visit(a->config->table, &request, tell_rule, a);
    rules_peek(a->config->table, &request, a->url, sizeof(a->url), &answer);
    if (answer.verdict != RULES_GO_ON) {
        line(a->out, "answer", "%s, status %u", verdict_word(answer.verdict), answer.status);
        if (answer.verdict == RULES_REDIRECT)
            span_line(a->out, "location", answer.location);
        return true;
    }
    if (answer.edits)
        rules_edit_fields(a->config->table, &request, &a->lines);
    a->request.url = answer.url;
    a->request.lacks = ~answer.has;
    a->request.passes = answer.passes ? HTTP_REASON_RULE : HTTP_REASON_NONE;
    return false;
}

/* ---- what is stored -------------------------------------------------------------------------- */

static const char *
source_of(const struct explanation *e)
{
    struct span rest = object_fields(e->object), text, name, value;
    struct http_cache_control control;

    switch (e->storing.lifetime) {
    case HTTP_LIFETIME_UNSTATED:
        return "it states none";
    case HTTP_LIFETIME_HEURISTIC:
        return "a heuristic from Last-Modified (RFC 9111 section 4.2.2)";
    case HTTP_LIFETIME_RULE:
        return "a rule";
    case HTTP_LIFETIME_EXPLICIT:
        break;
    }
    http_cache_control_init(&control);
    while (http_next_line(&rest, &text))
        if (http_split_field(text, &name, &value) && http_name_is(name, "Cache-Control"))
            http_cache_control_read(&control, value);
    if (control.s_maxage != HTTP_SECONDS_ABSENT)
        return "s-maxage (RFC 9111 section 5.2.2.10)";
    if (control.max_age != HTTP_SECONDS_ABSENT)
        return "max-age (RFC 9111 section 5.2.2.1)";
    return "Expires, or CDN-Cache-Control (RFC 9111 section 5.3, RFC 9213)";
}

static void
tell_object(struct asking *a, const struct explanation *e)
{
    const struct object *object = e->object;
    const int64_t lifetime_us = object_lifetime(object), as_of_us = a->exchange.as_of_us;
    struct span fields = object_fields(object), tags = object_tags(object);
    struct span etag = http_first_value(fields, "ETag");
    struct span modified = http_first_value(fields, "Last-Modified");

    line(a->out, "stored", "status %u, %" PRIu64 " bytes%s", object->status, object_length(object),
         e->on_disk ? ", on disk" : "");
    line(a->out, "age", "%.3f s", (double)object_age(object, as_of_us) / 1e6);
    if (lifetime_us == INT64_MAX)
        line(a->out, "lifetime", "not limited: %s", source_of(e));
    else
        line(a->out, "lifetime", "%.3f s by %s", (double)lifetime_us / 1e6, source_of(e));
    if (e->storing.stale_while_revalidate_us || e->storing.stale_if_error_us)
        line(a->out, "grace", "%.3f s while it is fetched again, %.3f s if the origin fails",
             (double)e->storing.stale_while_revalidate_us / 1e6,
             (double)e->storing.stale_if_error_us / 1e6);
    if (tags.len)
        span_line(a->out, "tags", tags);
    if (etag.ptr)
        span_line(a->out, "etag", etag);
    if (modified.ptr)
        span_line(a->out, "last-modified", modified);
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Who is asked before the origin, without what a client's fields change. */
static void
tell_peer(struct asking *a, enum explained would)
{
    struct origin_peers *peers = config_peers_of(&a->config->peers);
    unsigned owner;

    if (!peers || (would != EXPLAINED_MISS && would != EXPLAINED_VALIDATES &&
                   would != EXPLAINED_ASKS_STORE))
        return;
    owner = origin_peers_owner(peers, a->request.url, a->request.arrived_us);
    line(a->out, "peer", "%.*s%s", (int)peers->route->members[owner].url.len,
         peers->route->members[owner].url.ptr, owner == peers->self ? ", which is this daemon" : "");
}

static void
tell(struct asking *a, const struct explanation *e)
{
    struct span variant = buf_span(&e->variant), text;

    span_line(a->out, "key", a->request.url);
    if (e->names.len)
        span_line(a->out, "varies by", buf_span(&e->names));
    while (e->names.len && http_next_line(&variant, &text))
        if (text.len)
            span_line(a->out, "variant", text);
    if (e->object)
        tell_object(a, e);
    line(a->out, "answer", "%s", explained_word(e->would));
    tell_peer(a, e->would);
    if (e->passes_for_now)
        line(a->out, "reason",
             "uri-miss: an earlier response was one client's, and for a while "
             "requests for the URL do not wait for each other");
    else
        tell_reason(a->out, "reason", e->reason);
}

static void
tell_last(struct asking *a, unsigned last)
{
    struct recent_miss misses[EXPLAIN_LAST];
    size_t count = recent_find(a->service->proxy.recent, hash64_bytes(a->request.url), misses,
                               last < EXPLAIN_LAST ? last : EXPLAIN_LAST);

    for (size_t i = 0; i < count; i++) {
        const struct recent_miss *miss = &misses[i];
        char when[TIMESTAMP_SIZE];

        timestamp_format(miss->wall_us, when);
        line(a->out, "last", "%s %s, status %u, %.1f ms%s%s%s%s", when, miss->how, miss->status,
             (double)miss->us / 1e3, miss->reason ? "; " : "", http_reason_word(miss->reason),
             miss->reason ? ": " : "", http_reason_sentence(miss->reason));
    }
    if (last && !count)
        line(a->out, "last", "no miss of the URL is among the latest");
}

static void
ask_cache(struct asking *a)
{
    struct explanation e;

    a->request.fields = a->lines.len ? buf_span(&a->lines) : span_str("");
    a->request.flags |= REQUEST_STREAMS;
    a->request.rules = &a->config->rules.shared;
    a->request.peers = config_peers_of(&a->config->peers);
    a->exchange.proxy = &a->service->proxy;
    a->exchange.request = &a->request;
    a->exchange.worker = net_worker_number(a->read->worker);
    explain_exchange(&a->exchange, a->read->object, &e);
    if (e.would == EXPLAINED_ASKS_STORE && a->read->stage == EXPLAIN_READ_NOT) {
        explain_read_begin(a->read, &a->exchange, buf_span(&e.variant));
        explanation_free(&e);
        explain_exchange(&a->exchange, a->read->object, &e);
    }
    tell(a, &e);
    explanation_free(&e);
}

/* False with a sentence for a request that the daemon would not take. */
static bool
write_lines(struct service *service, const struct explain_request *asked, struct explain_read *read,
            struct buf *out)
{
    struct asking a = {
        .service = service,
        .config = service_config(service),
        .request = {.method = http_method_of(asked->method),
                    .method_name = asked->method,
                    .arrived_us = proxy_now_us(&service->proxy)},
        .out = out,
        .read = read,
    };

    if (!route(&a, asked))
        return false;
    buf_init(&a.lines, 2 * PROXY_MAX_HEADERS);
    line(out, "request", "%.*s %.*s", asked->method.len ? (int)asked->method.len : 3,
         asked->method.len ? asked->method.ptr : "GET", (int)asked->url.len, asked->url.ptr);
    tell_row(&a);
    take_lines(&a, asked->lines);
    if (!demand_user(&a) && !apply_rules(&a))
        ask_cache(&a);
    tell_last(&a, asked->last);
    buf_free(&a.lines);
    return !buf_failed(out);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void
take_read(struct net_task *task)
{
    struct explain_call *call = container_of(task, struct explain_call, read.task);

    explain_read_take(&call->read);
    buf_reset(&call->out);
    call->ok = write_lines(call->service, &call->request, &call->read, &call->out);
    call->done(call);
}

/* The request's bytes, which may not stay. False without memory. */
static bool
keep(struct explain_call *call, const struct explain_request *asked)
{
    char *at = malloc(asked->method.len + asked->url.len + asked->lines.len + 1);

    if (!at)
        return false;
    call->kept = at;
    call->request = (struct explain_request){
        .method = span_of(at, asked->method.len),
        .url = span_of(at + asked->method.len, asked->url.len),
        .lines = span_of(at + asked->method.len + asked->url.len, asked->lines.len),
        .last = asked->last,
    };
    span_put(span_put(span_put(at, asked->method), asked->url), asked->lines);
    return true;
}

bool
explain_begin(struct explain_call *call, const struct explain_request *asked)
{
    call->read = (struct explain_read){.worker = call->worker, .task.run = take_read};
    call->kept = NULL;
    call->ok = false;
    if (!keep(call, asked))
        return true;
    call->ok = write_lines(call->service, &call->request, &call->read, &call->out);
    return call->read.stage != EXPLAIN_READ_ASKED;
}

void
explain_end(struct explain_call *call)
{
    explain_read_end(&call->read);
    free(call->kept);
    buf_free(&call->out);
}
