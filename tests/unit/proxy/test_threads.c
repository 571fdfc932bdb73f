/*
 * Exchanges on several workers against one origin, whose thread is the test's, with purges and
 * changes of the configuration meanwhile. Every response is the URL's, in full; a private one
 * reaches its own client only.
 */
#include <stdio.h>

#include "proxy/control.h"
#include "tests/unit/net/stream.h"
#include "tests/unit/proxy/scene.h"

#define WORKERS 3
#define REQUESTS 3000 /* of each worker */
#define AT_ONCE 12    /* of those */
#define URLS 24

/* What the origin responds to, by the URL's number. */
enum kind { SMALL, LARGE, PRIVATE, FAILS, DISPLACED, NOT_FOUND, KINDS };

static struct worker {
    pthread_t thread;
    unsigned number;
    uint64_t draws;
    unsigned under_way, started;
    unsigned ends, failures, hits, cancelled;
    pthread_mutex_t lock;
    pthread_cond_t wakes;
    STAILQ_HEAD(, request) woken; /* protected by the lock */
} workers[WORKERS];

struct request {
    struct exchange exchange; /* first */
    STAILQ_ENTRY(request) woken;
    struct worker *worker;
    unsigned url, client;
    bool busy, cancels;
    struct object_place place;
    uint64_t got;
};

static struct request requests[WORKERS][AT_ONCE];
static char urls[URLS][32];
static char pattern[256 + 50000]; /* the bytes of each body, from some place on */
static _Atomic unsigned running;

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
    return pattern + (at + url) % 256;
}

/* ---- workers --------------------------------------------------------------------------------- */

static void
wake(struct exchange *exchange)
{
    struct request *request = (struct request *)exchange;
    struct worker *worker = request->worker;

    pthread_mutex_lock(&worker->lock);
    STAILQ_INSERT_TAIL(&worker->woken, request, woken);
    pthread_cond_signal(&worker->wakes);
    pthread_mutex_unlock(&worker->lock);
}

static void
end(struct request *request)
{
    exchange_end(&request->exchange);
    request->busy = false;
    request->worker->under_way--;
    request->worker->ends++;
}

static void
take_body(struct request *request)
{
    const struct object *object = request->exchange.object;
    struct span fields = object_fields(object), run;
    enum kind kind = kind_of(request->url);
    unsigned client;

    REQUIRE(span_equal(request->exchange.url, span_str(urls[request->url])));
    REQUIRE(span_equal(object_url(object), request->exchange.url));
    if (kind == PRIVATE) {
        char text[64];

        REQUIRE(fields.len < sizeof(text));
        memcpy(text, fields.ptr, fields.len);
        text[fields.len] = '\0';
        REQUIRE(sscanf(text, "Set-Cookie: client=%u", &client) == 1);
        REQUIRE(client == request->client);
        REQUIRE(request->exchange.outcome == OUTCOME_MISS ||
                request->exchange.outcome == OUTCOME_BYPASS);
    }
    while ((run = object_read(object, &request->place)).len) {
        for (size_t i = 0, n; i < run.len; i += n) {
            n = run.len - i < 50000 ? run.len - i : 50000;
            REQUIRE(memcmp(run.ptr + i, body_at(request->url, request->got), n) == 0);
            request->got += n;
        }
    }
    if (!request->exchange.complete) {
        exchange_taken(&request->exchange, request->got);
        return;
    }
    REQUIRE(request->got == length_of(request->url));
    REQUIRE(object->status == (kind == NOT_FOUND ? 404 : 200));
    request->worker->hits += request->exchange.outcome == OUTCOME_HIT;
    end(request);
}

static void
head(struct exchange *exchange)
{
    take_body((struct request *)exchange);
}

static void
failed(struct exchange *exchange, enum failure why, struct span sentence)
{
    struct request *request = (struct request *)exchange;

    REQUIRE(sentence.len > 0);
    REQUIRE(span_equal(exchange->url, span_str(urls[request->url])));
    request->worker->failures++;
    if (why == FAILURE_CANCELLED)
        REQUIRE(request->cancels);
    else
        REQUIRE(kind_of(request->url) == FAILS || kind_of(request->url) == DISPLACED);
    end(request);
}

static const struct front whole = {.wake = wake, .head = head, .fail = failed};
static const struct front streaming = {
    .streams = true, .wake = wake, .head = head, .more = head, .fail = failed};

static void
start(struct worker *worker, struct request *request)
{
    bool bypass = unit_draw(&worker->draws, 20) == 0;

    *request = (struct request){
        .worker = worker,
        .url = unit_draw(&worker->draws, URLS),
        .client = unit_draw(&worker->draws, 1000),
        .busy = true,
        .cancels = unit_draw(&worker->draws, 10) == 0,
    };
    request->exchange.proxy = &scene.proxy;
    request->exchange.front = unit_draw(&worker->draws, 2) ? &whole : &streaming;
    request->exchange.url = span_str(urls[request->url]);
    request->exchange.client = client_key_of_uid(request->client);
    request->exchange.no_store = bypass;
    request->exchange.waiting_bytes = 100;
    request->exchange.arrived_us = scene.now_us;
    request->exchange.worker = worker->number;
    worker->started++;
    worker->under_way++;
    if (exchange_start(&request->exchange))
        REQUIRE(!request->busy);
    else if (request->cancels && exchange_cancel(&request->exchange))
        end(request);
}

static void
run_woken(struct worker *worker)
{
    struct request *request;

    pthread_mutex_lock(&worker->lock);
    while (STAILQ_EMPTY(&worker->woken))
        pthread_cond_wait(&worker->wakes, &worker->lock);
    request = STAILQ_FIRST(&worker->woken);
    STAILQ_REMOVE_HEAD(&worker->woken, woken);
    pthread_mutex_unlock(&worker->lock);
    exchange_run(&request->exchange);
}

static void *
work(void *context)
{
    struct worker *worker = context;
    struct request *mine = requests[worker->number];

    while (worker->started < REQUESTS || worker->under_way) {
        for (unsigned i = 0; i < AT_ONCE && worker->started < REQUESTS; i++)
            if (!mine[i].busy)
                start(worker, &mine[i]);
        if (worker->under_way)
            run_woken(worker);
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
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
    memcpy(&client, fetch->client.bytes, sizeof(client));
    if (kind == PRIVATE)
        snprintf(lines, sizeof(lines), "Set-Cookie: client=%u\r\n", ntohl(client));
    fetch->sink->begin(fetch->context);
    if (kind == DISPLACED && unit_draw(draws, 2)) {
        scene_done(fetch, FETCH_DISPLACED, "displaced");
        return;
    }
    scene_hop(fetch, lines, false);
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
    for (unsigned i = 0; atomic_load(&running); i++) {
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
    pthread_t disturber;
    uint64_t draws = 9;

    for (size_t i = 0; i < sizeof(pattern); i++)
        pattern[i] = (char)i;
    for (unsigned i = 0; i < URLS; i++)
        snprintf(urls[i], sizeof(urls[i]), "http://origin.test/%u", i);
    memset(workers, 0, sizeof(workers));
    memset(requests, 0, sizeof(requests));
    atomic_store(&running, WORKERS);
    for (unsigned i = 0; i < WORKERS; i++) {
        struct worker *worker = &workers[i];

        worker->number = i;
        worker->draws = i + 1;
        pthread_mutex_init(&worker->lock, NULL);
        pthread_cond_init(&worker->wakes, NULL);
        STAILQ_INIT(&worker->woken);
    }
    for (unsigned i = 0; i < WORKERS; i++)
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    if (disturbed)
        ck_assert_int_eq(pthread_create(&disturber, NULL, disturb, NULL), 0);
    /* Fetches of cancelled requests go on without waiters. */
    while (atomic_load(&running) || scene_fetches()) {
        struct scene_fetch *fetch = scene_find(NULL);

        if (fetch)
            respond(fetch, &draws);
        else
            usleep(100);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        ck_assert_uint_eq(workers[i].ends, REQUESTS);
        ck_assert_uint_gt(workers[i].failures, 0);
        pthread_mutex_destroy(&workers[i].lock);
        pthread_cond_destroy(&workers[i].wakes);
    }
    if (disturbed)
        pthread_join(disturber, NULL);
}

START_TEST(workers_share_what_may_be_shared)
{
    unsigned hits = 0;

    scene_begin(&(struct scene_options){.workers = WORKERS, .shards = 2});
    serve_all(false);
    for (unsigned i = 0; i < WORKERS; i++)
        hits += workers[i].hits;
    ck_assert_uint_gt(hits, REQUESTS / 4);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"hit\"}"), hits);
    scene_end();
}
END_TEST

START_TEST(purges_and_changes_meanwhile_lose_no_request)
{
    scene_begin(&(struct scene_options){.workers = WORKERS, .shards = 2});
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
