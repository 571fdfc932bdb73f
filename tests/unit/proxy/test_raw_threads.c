/*
 * Raw exchanges on several workers against one origin, whose thread is the test's: objects that are
 * validated, that vary, that are refreshed in the background, and that requests with bodies change.
 * Every response is that of the URL and variant, in full, and none is older than a change whose
 * response has been received.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/net/stream.h"
#include "tests/unit/proxy/scene.h"

#define WORKERS 3
#define REQUESTS 1500 /* of each worker */
#define AT_ONCE 10    /* of those */
#define URLS 10
#define SENT 100000 /* bytes of a request's body */

/* What the origin responds to, by the URL's number. */
enum kind { FRESH, VALIDATED, VARIES, BACKGROUND, CHANGED, KINDS };

static const char *const control[] = {
    [FRESH] = "Cache-Control: max-age=1000\r\n",
    [VALIDATED] = "ETag: \"a\"\r\nCache-Control: max-age=0\r\n",
    [VARIES] = "Vary: Accept\r\nCache-Control: max-age=1000\r\n",
    [BACKGROUND] = "ETag: \"a\"\r\nCache-Control: max-age=0, stale-while-revalidate=100\r\n",
    [CHANGED] = "Cache-Control: max-age=1000\r\n",
};

static struct worker {
    pthread_t thread;
    unsigned number;
    uint64_t draws;
    unsigned under_way, started, ends;
    unsigned outcomes[OUTCOME_STALE + 1];
    pthread_mutex_t lock;
    pthread_cond_t wakes;
    STAILQ_HEAD(, request) woken; /* protected by the lock */
} workers[WORKERS];

struct request {
    struct exchange exchange; /* first */
    STAILQ_ENTRY(request) woken;
    struct worker *worker;
    unsigned url, variant, least; /* version that it may get */
    bool busy, cancels, posts;
    char fields[32];
    struct object_place place;
    uint64_t got, sent;
};

static struct request requests[WORKERS][AT_ONCE];
static char urls[URLS][32];
static char pattern[256 + SENT];
static _Atomic unsigned running;
static unsigned versions[URLS];         /* the origin's, by group */
static _Atomic unsigned received[URLS]; /* of responses to changes */
static bool tagged;                     /* a change of one URL is one of all that can change */

static enum kind
kind_of(unsigned url)
{
    return (enum kind)(url % KINDS);
}

/* The first of the URLs that change together. */
static unsigned
group_of(unsigned url)
{
    return tagged && kind_of(url) == CHANGED ? (unsigned)CHANGED : url;
}

static uint64_t
length_of(unsigned url, unsigned variant)
{
    return 500 + 37 * url + (kind_of(url) == VARIES ? 20000 * variant : 0);
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

/* The version in the field lines, which end with it. */
static unsigned
version_of(const struct object *object)
{
    const struct span fields = object_fields(object);
    const char *at = memmem(fields.ptr, fields.len, "X-Version: ", 11);

    REQUIRE(at != NULL);
    return (unsigned)strtoul(at + 11, NULL, 10);
}

static void
finish_response(struct request *request)
{
    const struct exchange *x = &request->exchange;
    unsigned version = version_of(x->object);

    REQUIRE(x->object->status == 200);
    REQUIRE(request->got == length_of(request->url, request->variant));
    REQUIRE(version >= request->least);
    if (request->posts) {
        _Atomic unsigned *group = &received[group_of(request->url)];
        unsigned before = atomic_load(group);

        while (before < version && !atomic_compare_exchange_weak(group, &before, version))
            continue;
    }
    request->worker->outcomes[x->outcome]++;
    end(request);
}

static void
take_body(struct exchange *exchange)
{
    struct request *request = (struct request *)exchange;
    struct span run;

    REQUIRE(span_equal(object_url(exchange->object), span_str(urls[request->url])));
    while ((run = object_read(exchange->object, &request->place)).len) {
        for (size_t i = 0; i < run.len; i++)
            REQUIRE(run.ptr[i] == pattern[(request->got + i + request->url) % 256]);
        request->got += run.len;
    }
    if (exchange->complete)
        finish_response(request);
    else
        exchange_taken(exchange, request->got);
}

static void
failed(struct exchange *exchange, enum failure why, struct span sentence)
{
    struct request *request = (struct request *)exchange;

    REQUIRE(sentence.len > 0);
    REQUIRE(why == FAILURE_CANCELLED && request->cancels);
    end(request);
}

static void
interim(struct exchange *exchange, unsigned status, struct span lines)
{
    (void)exchange;
    REQUIRE(status == 103 && lines.len == 0);
}

static void
send_more(struct exchange *exchange)
{
    struct request *request = (struct request *)exchange;

    request->sent +=
        exchange_send(exchange, pattern + request->sent % 256, (size_t)(SENT - request->sent));
    if (request->sent == SENT)
        exchange_send_end(exchange);
}

static const struct front front = {.streams = true,
                                   .wake = wake,
                                   .head = take_body,
                                   .more = take_body,
                                   .fail = failed,
                                   .interim = interim,
                                   .space = send_more};

static void
start(struct worker *worker, struct request *request)
{
    *request = (struct request){
        .worker = worker,
        .url = unit_draw(&worker->draws, URLS),
        .variant = unit_draw(&worker->draws, 3),
        .busy = true,
        .cancels = unit_draw(&worker->draws, 10) == 0,
    };
    request->posts = kind_of(request->url) == CHANGED && unit_draw(&worker->draws, 4) == 0;
    request->least = atomic_load(&received[group_of(request->url)]);
    snprintf(request->fields, sizeof(request->fields), "Accept: %u\r\n", request->variant);
    request->exchange.proxy = &scene.proxy;
    request->exchange.front = &front;
    request->exchange.url = span_str(urls[request->url]);
    request->exchange.raw = true;
    request->exchange.method = span_str(request->posts ? "POST" : "GET");
    request->exchange.fields = span_str(request->fields);
    request->exchange.has_body = request->posts;
    request->exchange.body_length = request->variant ? SENT : -1;
    request->exchange.client = client_key_of_uid(unit_draw(&worker->draws, 1000));
    request->exchange.waiting_bytes = 100;
    request->exchange.arrived_us = scene.now_us;
    request->exchange.worker = worker->number;
    worker->started++;
    worker->under_way++;
    if (exchange_start(&request->exchange))
        return;
    if (request->posts)
        send_more(&request->exchange);
    if (request->cancels && exchange_cancel(&request->exchange))
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

/* Takes the request's body; false if its client has left. */
static bool
take_request(struct scene_fetch *fetch)
{
    static char bytes[30000];
    enum fetch_supply supply;
    uint64_t got = 0;
    size_t len;

    while ((supply = scene_supply(fetch, bytes, sizeof(bytes), &len)) != FETCH_SUPPLY_END) {
        if (supply == FETCH_SUPPLY_FAILED)
            return false;
        for (size_t i = 0; i < len; i++)
            REQUIRE(bytes[i] == pattern[(got + i) % 256]);
        got += len;
        if (supply == FETCH_SUPPLY_LATER)
            usleep(20);
    }
    ck_assert_uint_eq(got, SENT);
    return true;
}

static void
respond(struct scene_fetch *fetch, uint64_t *draws)
{
    bool posts = fetch->body.kind == FETCH_BODY_SUPPLIED, confirms;
    unsigned url = 0, variant = 0, status;
    uint64_t length, at = 0;
    enum fetch_flow flow;
    char lines[200];

    ck_assert_int_eq(sscanf(fetch->url, "http://origin.test/%u", &url), 1);
    ck_assert_int_eq(sscanf(fetch->fields, "Accept: %u", &variant), 1);
    fetch->sink->begin(fetch->context);
    if (posts && !take_request(fetch)) {
        scene_done(fetch, FETCH_BODY_FAILED, "the client has left");
        return;
    }
    versions[group_of(url)] += posts;
    if (unit_draw(draws, 3) == 0)
        fetch->sink->interim(fetch->context, 103, span_of(NULL, 0));
    confirms = strstr(fetch->fields, "If-None-Match") && unit_draw(draws, 4);
    status = confirms ? 304 : 200;
    snprintf(lines, sizeof(lines), "%sX-Version: %u\r\n", control[kind_of(url)],
             versions[group_of(url)]);
    fetch->sink->hop(
        fetch->context,
        &(struct fetch_hop){.status = status, .lines = span_str(lines), .waited_us = 1000});
    length = confirms ? 0 : length_of(url, variant);
    flow = scene_head(fetch, status, lines, unit_draw(draws, 2) ? (int64_t)length : -1);
    while (flow == FETCH_CONTINUE && at < length) {
        size_t n = length - at < 7000 ? (size_t)(length - at) : 7000;

        flow = fetch->sink->body(fetch->context, pattern + (at + url) % 256, n);
        at += n;
    }
    scene_done(fetch, flow == FETCH_CONTINUE ? FETCH_OK : FETCH_INTERNAL, "aborted");
}

START_TEST(responses_are_whole_and_no_older_than_what_is_known)
{
    unsigned outcomes[OUTCOME_STALE + 1] = {0};
    uint64_t draws = 9;

    scene_begin(
        &(struct scene_options){.workers = WORKERS, .shards = 2, .verify_share = _i ? 0.2 : 0});
    tagged = _i;
    if (tagged) {
        scene_add_rule(&scene.tag_rules, "/4 -> four");
        scene_add_rule(&scene.tag_rules, "/9 -> nine");
        scene_add_rule(&scene.write_rules, "/4 -> nine");
        scene_add_rule(&scene.write_rules, "/9 -> four");
    }
    for (size_t i = 0; i < sizeof(pattern); i++)
        pattern[i] = (char)i;
    for (unsigned i = 0; i < URLS; i++)
        snprintf(urls[i], sizeof(urls[i]), "http://origin.test/%u", i);
    atomic_store(&running, WORKERS);
    for (unsigned i = 0; i < WORKERS; i++) {
        struct worker *worker = &workers[i];

        worker->number = i;
        worker->draws = i + 1;
        pthread_mutex_init(&worker->lock, NULL);
        pthread_cond_init(&worker->wakes, NULL);
        STAILQ_INIT(&worker->woken);
        ck_assert_int_eq(pthread_create(&worker->thread, NULL, work, worker), 0);
    }
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
        for (unsigned k = 0; k <= OUTCOME_STALE; k++)
            outcomes[k] += workers[i].outcomes[k];
        pthread_mutex_destroy(&workers[i].lock);
        pthread_cond_destroy(&workers[i].wakes);
    }
    for (unsigned k = 0; k <= OUTCOME_STALE; k++)
        ck_assert_msg(outcomes[k] > 0, "%s", outcome_word((enum outcome)k));
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: threads, raw");
    TCase *tests = tcase_create("threads");

    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, responses_are_whole_and_no_older_than_what_is_known, 0, 2);
    suite_add_tcase(suite, tests);
    return suite;
}
