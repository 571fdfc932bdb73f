/*
 * Exchanges on several workers against one origin, whose thread is the test's, with purges and
 * changes of the configuration meanwhile. Every response is the URL's, in full; a private one
 * reaches its own client only.
 */
#include <stdio.h>

#include "proxy/control.h"
#include "tests/unit/proxy/crew.h"

#define REQUESTS 3000 /* of each worker */
#define AT_ONCE 12    /* of those */
#define URLS 24

/* What the origin responds to, by the URL's number. */
enum kind { SMALL, LARGE, PRIVATE, FAILS, DISPLACED, NOT_FOUND, KINDS };

struct call {
    struct crew_request base; /* first */
    unsigned url, client;
    bool cancels;
    struct object_place place;
    uint64_t got;
};

static char urls[URLS][32];
static unsigned failures[CREW_WORKERS], hits[CREW_WORKERS];

static enum kind
kind_of(unsigned url)
{
    return (enum kind)(url % KINDS);
}

static uint64_t
length_of(unsigned url)
{
    return kind_of(url) == LARGE ? 300000 + url : 1000 + url;
}

/* 50,000 bytes of a URL's body. */
static const char *
body_at(unsigned url, uint64_t at)
{
    return crew_pattern + (at + url) % 256;
}

/* ---- workers --------------------------------------------------------------------------------- */

static void
take_body(struct call *request)
{
    const struct exchange *x = &request->base.exchange;
    const struct object *object = x->object;
    struct span fields = object_fields(object), run;
    enum kind kind = kind_of(request->url);
    unsigned client;

    REQUIRE(span_equal(x->url, span_str(urls[request->url])));
    REQUIRE(span_equal(object_url(object), x->url));
    if (kind == PRIVATE) {
        char text[64];

        REQUIRE(fields.len < sizeof(text));
        memcpy(text, fields.ptr, fields.len);
        text[fields.len] = '\0';
        REQUIRE(sscanf(text, "Set-Cookie: client=%u", &client) == 1);
        REQUIRE(client == request->client);
        REQUIRE(x->outcome == OUTCOME_MISS || x->outcome == OUTCOME_BYPASS);
    }
    while ((run = object_read(object, &request->place)).len) {
        for (size_t i = 0, n; i < run.len; i += n) {
            n = run.len - i < 50000 ? run.len - i : 50000;
            REQUIRE(memcmp(run.ptr + i, body_at(request->url, request->got), n) == 0);
            request->got += n;
        }
    }
    if (!exchange_is_complete(x)) {
        exchange_taken(&request->base.exchange, request->got);
        return;
    }
    REQUIRE(request->got == length_of(request->url));
    REQUIRE(object->status == (kind == NOT_FOUND ? 404 : 200));
    hits[x->worker] += x->outcome == OUTCOME_HIT;
    crew_end(&request->base);
}

static void
head(struct exchange *exchange)
{
    take_body((struct call *)exchange);
}

static void
failed(struct exchange *exchange, enum failure why, struct span sentence)
{
    struct call *request = (struct call *)exchange;

    REQUIRE(sentence.len > 0);
    REQUIRE(span_equal(exchange->url, span_str(urls[request->url])));
    failures[exchange->worker]++;
    if (why == FAILURE_CANCELLED)
        REQUIRE(request->cancels);
    else
        REQUIRE(kind_of(request->url) == FAILS || kind_of(request->url) == DISPLACED);
    crew_end(&request->base);
}

static const struct front whole = {.wake = crew_wake, .head = head, .fail = failed};
static const struct front streaming = {
    .wake = crew_wake, .head = head, .more = head, .fail = failed};

static void
start(struct crew_worker *worker, struct crew_request *base)
{
    struct call *request = (struct call *)base;
    bool bypass = unit_draw(&worker->draws, 20) == 0;
    unsigned url = unit_draw(&worker->draws, URLS), client = unit_draw(&worker->draws, 1000);

    crew_request_init(worker, base, unit_draw(&worker->draws, 2) ? &whole : &streaming, urls[url],
                      client);
    request->url = url;
    request->client = client;
    request->cancels = unit_draw(&worker->draws, 10) == 0;
    base->asked.flags |= REQUEST_PAGE_ONLY;
    base->asked.passes = bypass ? HTTP_REASON_REQUEST_NO_STORE : HTTP_REASON_NONE;
    if (exchange_start(&base->exchange))
        REQUIRE(!base->busy);
    else if (request->cancels && exchange_cancel(&base->exchange))
        crew_end(base);
}

/* ---- the origin, on the test's thread -------------------------------------------------------- */

static bool
send_body(struct scene_fetch *fetch, unsigned url)
{
    uint64_t at = 0, len = length_of(url);

    while (at < len) {
        size_t n = len - at < 50000 ? (size_t)(len - at) : 50000;

        if (fetch->sink->body(fetch->context, body_at(url, at), n) != FETCH_CONTINUE)
            return false;
        at += n;
    }
    return true;
}

/* Some fetches that fail have had a head and a body. */
static void
respond(struct scene_fetch *fetch, uint64_t *draws)
{
    unsigned url = 0;
    enum kind kind;
    char lines[64] = "";
    uint32_t client;

    ck_assert_int_eq(sscanf(fetch->url, "http://origin.test/%u", &url), 1);
    kind = kind_of(url);
    memcpy(&client, fetch->client->key.bytes, sizeof(client));
    if (kind == PRIVATE)
        snprintf(lines, sizeof(lines), "Set-Cookie: client=%u\r\n", ntohl(client));
    fetch->sink->begin(fetch->context);
    if (kind == DISPLACED && unit_draw(draws, 2)) {
        scene_done(fetch, FETCH_DISPLACED, "displaced");
        return;
    }
    scene_response_of(fetch, kind == NOT_FOUND ? 404 : 200, lines);
    if (kind == FAILS && unit_draw(draws, 2)) {
        scene_done(fetch, FETCH_TIMED_OUT, "late");
        return;
    }
    /* Where no request waits any more, a response that is not stored is aborted. */
    if (scene_head(fetch, kind == NOT_FOUND ? 404 : 200, lines,
                   unit_draw(draws, 2) ? (int64_t)length_of(url) : -1) != FETCH_CONTINUE ||
        !send_body(fetch, url)) {
        scene_done(fetch, FETCH_INTERNAL, "aborted");
        return;
    }
    scene_done(fetch, kind == FAILS ? FETCH_ORIGIN_BROKE : FETCH_OK, kind == FAILS ? "broken" : "");
}

static void *
disturb(void *context)
{
    static const struct control_change changes[] = {
        {.policy = "lfu"},  {.shards = 4},  {.policy = "none"},
        {.policy = "slru"}, {.cold = true}, {.policy = "lru", .shards = 1},
    };
    uint64_t draws = 5;
    struct cache_config config;
    char why[CONTROL_SENTENCE];

    (void)context;
    for (unsigned i = 0; crew_is_running(); i++) {
        unsigned url = unit_draw(&draws, URLS);

        control_purge(&scene.proxy, CONTROL_PURGE_URL, span_str(urls[url]));
        if (i % 8 == 0)
            control_purge(&scene.proxy, CONTROL_PURGE_PREFIX, span_str("http://origin.test/1"));
        if (i % 16 == 0)
            control_purge(&scene.proxy, CONTROL_PURGE_ALL, span_of(NULL, 0));
        if (i % 5 == 0)
            REQUIRE(control_configure(&scene.proxy, &changes[i / 5 % 6], &config, why,
                                      sizeof(why)) == CONTROL_OK);
        usleep(200);
    }
    return NULL;
}

static void
serve_all(bool disturbed)
{
    struct crew crew = {.requests = REQUESTS,
                        .at_once = AT_ONCE,
                        .request_size = sizeof(struct call),
                        .start = start,
                        .respond = respond,
                        .disturb = disturbed ? disturb : NULL};

    for (unsigned i = 0; i < URLS; i++)
        snprintf(urls[i], sizeof(urls[i]), "http://origin.test/%u", i);
    memset(failures, 0, sizeof(failures));
    memset(hits, 0, sizeof(hits));
    crew_run(&crew);
    for (unsigned i = 0; i < CREW_WORKERS; i++)
        ck_assert_uint_gt(failures[i], 0);
}

START_TEST(workers_share_what_may_be_shared)
{
    unsigned all = 0;

    scene_begin(&(struct scene_options){.workers = CREW_WORKERS, .shards = 2});
    serve_all(false);
    for (unsigned i = 0; i < CREW_WORKERS; i++)
        all += hits[i];
    ck_assert_uint_gt(all, REQUESTS / 4);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"hit\"}"), all);
    scene_end();
}
END_TEST

START_TEST(purges_and_changes_meanwhile_lose_no_request)
{
    scene_begin(&(struct scene_options){.workers = CREW_WORKERS, .shards = 2});
    serve_all(true);
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: threads");
    TCase *tests = tcase_create("threads");

    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, workers_share_what_may_be_shared);
    tcase_add_test(tests, purges_and_changes_meanwhile_lose_no_request);
    suite_add_tcase(suite, tests);
    return suite;
}
