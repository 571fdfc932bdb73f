/* The front of scene.h: what the visits of a test do and expect. */
#include "tests/unit/proxy/scene.h"

#include <stdio.h>

#include "base/container_of.h"
#include "http/known_fields.h"
#include "http/request_head.h"

static struct visit *
visit_of(struct exchange *exchange)
{
    return container_of(exchange, struct visit, exchange);
}

static void
wake(struct exchange *exchange)
{
    struct visit *visit = visit_of(exchange);

    pthread_mutex_lock(&scene.lock);
    ck_assert(!visit->ended && !visit->listed);
    visit->listed = true;
    visit->wakes++;
    TAILQ_INSERT_TAIL(&scene.woken, visit, link);
    pthread_mutex_unlock(&scene.lock);
}

/* A visit's client is known from its beginning, or found when it waits, which has one effect. */
static struct client *
client(struct exchange *exchange)
{
    const struct visit *visit = visit_of(exchange);

    return visit->client ? visit->client : SCENE_CLIENT;
}

static bool
is_bounded(struct exchange *exchange)
{
    return visit_of(exchange)->bounded;
}

/* Nothing may touch the exchange from here on: scene_end() and expect_*() look. */
static void
end(struct visit *visit)
{
    struct span url = visit->exchange.url;

    ck_assert(!visit->ended && !visit->listed);
    ck_assert_uint_lt(url.len, sizeof(visit->ended_url));
    memcpy(visit->ended_url, url.ptr, url.len);
    visit->ended_url[url.len] = '\0';
    visit->ended = true;
    scene.visits--;
    exchange_end(&visit->exchange);
    memset((void *)&visit->exchange, 0x5a, sizeof(visit->exchange));
}

static void
read_body(struct visit *visit)
{
    const struct exchange *exchange = &visit->exchange;
    struct span run;

    ck_assert(visit->streams || exchange_is_complete(exchange));
    visit->outcome = exchange->outcome;
    visit->status = exchange->object->status;
    while ((!visit->paces || visit->got < visit->reads_to) &&
           (run = object_read(exchange->object, &visit->place)).len) {
        if (visit->paces && run.len > visit->reads_to - visit->got)
            run.len = visit->reads_to - visit->got;
        ck_assert(scene_has_bytes(run.ptr, visit->got, run.len));
        visit->got += run.len;
        if (visit->streams)
            exchange_count_sent(exchange, run.len);
        visit->place.offset = visit->got;
    }
    if (visit->streams)
        exchange_taken(&visit->exchange, visit->got);
    if (!exchange_is_complete(exchange) ||
        (visit->paces && visit->got < object_length(exchange->object)))
        return;
    ck_assert_int_eq(object_state(exchange->object), OBJECT_READY);
    ck_assert_uint_eq(visit->got, object_length(exchange->object));
    snprintf(visit->lines, sizeof(visit->lines), "%.*s", (int)object_fields(exchange->object).len,
             object_fields(exchange->object).ptr);
    snprintf(visit->tags, sizeof(visit->tags), "%.*s", (int)object_tags(exchange->object).len,
             object_tags(exchange->object).ptr);
    visit->age_us = object_age(exchange->object, scene.now_us);
    visit->as_of_us = exchange->as_of_us;
    visit->evaluated = exchange->evaluated;
    visit->as_is = exchange->evaluated == EVALUATED_ALL;
    visit->origin_status = exchange->origin_status;
    visit->stored = exchange_is_stored(exchange);
    visit->evicted = exchange->evicted;
    visit->victims = exchange->victims->count;
    end(visit);
}

void
visit_read_to(struct visit *visit, size_t offset)
{
    ck_assert(visit->paces && !visit->ended && visit->heads == 1);
    visit->reads_to = offset;
    read_body(visit);
}

static void
head(struct exchange *exchange)
{
    struct visit *visit = visit_of(exchange);

    visit->heads++;
    /* What a front need not search the field lines for. */
    ck_assert_uint_eq(exchange->object->notes & HTTP_KNOWN_OF_FIELDS,
                      http_known_fields(object_fields(exchange->object)));
    snprintf(visit->redirect, sizeof(visit->redirect), "%.*s", (int)exchange_redirect(exchange).len,
             exchange_redirect(exchange).ptr);
    if (visit->cancels_in_head && visit_cancel(visit))
        return;
    read_body(visit);
}

static void
more(struct exchange *exchange)
{
    struct visit *visit = visit_of(exchange);

    ck_assert_uint_eq(visit->heads, 1);
    visit->mores++;
    read_body(visit);
}

static void
failed(struct exchange *exchange, enum failure why, struct span sentence)
{
    struct visit *visit = visit_of(exchange);

    visit->fails++;
    visit->why = why;
    ck_assert(span_equal(sentence, failure_for_client(why, exchange->error)));
    snprintf(visit->sentence, sizeof(visit->sentence), "%.*s", (int)exchange->error.len,
             exchange->error.ptr);
    end(visit);
}

static void
interim(struct exchange *exchange, unsigned status, struct span lines)
{
    struct visit *visit = visit_of(exchange);

    ck_assert_uint_eq(visit->heads, 0);
    ck_assert_uint_eq(status, 103);
    ck_assert(span_equal(lines, span_str("Link: </a>\r\n")));
    visit->interims++;
}

/* As the front of each protocol does it. */
static struct span
write_fields(const struct visit *visit)
{
    static char text[5000];
    const char *own = visit->fields ? visit->fields : "";

    ck_assert_uint_lt(strlen(own) + sizeof(SCENE_RPC_FIELDS), sizeof(text));
    snprintf(text, sizeof(text), "%s%s", visit->http ? "" : SCENE_RPC_FIELDS, own);
    return span_str(text);
}

static void
make_fields(struct exchange *exchange)
{
    struct visit *visit = visit_of(exchange);

    visit->makes++;
    visit->request.fields = write_fields(visit);
}

static void
space(struct exchange *exchange)
{
    visit_of(exchange)->spaces++;
}

static const struct front whole = {.wake = wake,
                                   .fields = make_fields,
                                   .client = client,
                                   .is_bounded = is_bounded,
                                   .head = head,
                                   .fail = failed};
static const struct front streaming = {.wake = wake,
                                       .fields = make_fields,
                                       .client = client,
                                       .is_bounded = is_bounded,
                                       .head = head,
                                       .more = more,
                                       .fail = failed};
static const struct front http = {.wake = wake,
                                  .fields = make_fields,
                                  .client = client,
                                  .is_bounded = is_bounded,
                                  .head = head,
                                  .more = more,
                                  .fail = failed,
                                  .interim = interim,
                                  .space = space};

static unsigned
flags_of(const struct visit *visit)
{
    const unsigned rpc =
        REQUEST_PAGE_ONLY | (visit->fields && *visit->fields ? (unsigned)REQUEST_OWN_FIELDS : 0u);

    return (visit->http ? 0u : rpc) | (visit->streams ? (unsigned)REQUEST_STREAMS : 0u) |
           (visit->owned ? (unsigned)REQUEST_OWNED : 0u);
}

/* What the request over RPC certainly has not. */
static uint32_t
lacks_of_rpc(const struct visit *visit)
{
    return visit->fields && *visit->fields ? 0 : ~(uint32_t)HTTP_HAS_ACCEPT_ENCODING;
}

bool
visit(struct visit *visit)
{
    static char url[512];
    const bool later = !visit->http || visit->streams;
    struct span sent;

    /* The front's bytes are there during the call only. */
    snprintf(url, sizeof(url), "%s", visit->url);
    sent = span_str(url);
    visit->request = (struct request){
        .url = visit->http ? sent : proxy_normal_url(&scene.proxy, sent),
        .target = span_str(visit->target ? visit->target : ""),
        .flags = flags_of(visit),
        .passes = visit->no_store ? HTTP_REASON_REQUEST_NO_STORE : HTTP_REASON_NONE,
        .route = visit->route,
        .method = http_method_of(span_str(visit->method ? visit->method : "")),
        .method_name = span_str(visit->method ? visit->method : ""),
        .fields = later ? span_of(NULL, 0) : write_fields(visit),
        .lacks = visit->http ? visit->lacks : lacks_of_rpc(visit),
        .body = {.kind = visit->has_body ? REQUEST_BODY_SUPPLIED : REQUEST_BODY_NONE,
                 .length = visit->body_length},
        .client = visit->http ? NULL : client(&visit->exchange),
        .waiting_bytes = visit->waiting_bytes ? visit->waiting_bytes : 10,
        .arrived_us = scene.now_us,
    };
    visit->exchange = (struct exchange){
        .proxy = &scene.proxy,
        .front = visit->http && visit->streams ? &http
                 : visit->streams              ? &streaming
                                               : &whole,
        .request = &visit->request,
        .before = visit->before,
    };
    scene.visits++;
    if (exchange_start(&visit->exchange)) {
        ck_assert(visit->ended);
        memset(url, 'x', sizeof(url));
        return true;
    }
    memset(url, 'x', sizeof(url));
    ck_assert(!visit->ended);
    return false;
}

bool
visit_http(struct visit *v, const char *url, const char *fields)
{
    *v = (struct visit){.url = url, .fields = fields, .http = true, .streams = true};
    return visit(v);
}

void
visit_url(struct visit *v, const char *url, unsigned client)
{
    *v = (struct visit){
        .url = url, .client = unit_client(client), .streams = v->streams, .paces = v->paces};
    ck_assert(!visit(v));
}

bool
visit_cancel(struct visit *visit)
{
    bool over;

    over = exchange_cancel(&visit->exchange);
    ck_assert_int_eq(over, !visit->listed);
    if (over)
        end(visit);
    return over;
}

static void
expect_end(const struct visit *visit)
{
    const char *bytes = (const char *)&visit->exchange;
    struct span url = span_str(visit->url);

    ck_assert(visit->ended);
    if (!visit->http)
        url = proxy_normal_url(&scene.proxy, url);
    ck_assert(span_equal(span_str(visit->ended_url), url));
    for (size_t i = 0; i < sizeof(visit->exchange); i++)
        ck_assert_int_eq(bytes[i], 0x5a);
}

void
expect_body(const struct visit *visit, enum outcome outcome, size_t len)
{
    expect_end(visit);
    ck_assert_msg(visit->fails == 0, "%s", visit->sentence);
    ck_assert_uint_eq(visit->heads, 1);
    ck_assert_str_eq(outcome_word(visit->outcome), outcome_word(outcome));
    ck_assert_uint_eq(visit->got, len);
}

void
expect_failure(const struct visit *visit, enum failure why, const char *part_of_sentence)
{
    expect_end(visit);
    ck_assert_uint_eq(visit->fails, 1);
    ck_assert_str_eq(failure_word(visit->why), failure_word(why));
    ck_assert_msg(strstr(visit->sentence, part_of_sentence) != NULL, "%s", visit->sentence);
}

void
expect_waiting(const struct visit *visit)
{
    ck_assert(!visit->ended);
    ck_assert_uint_eq(visit->heads + visit->mores + visit->fails, 0);
}
