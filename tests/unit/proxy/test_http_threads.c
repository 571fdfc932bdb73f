/*
 * Requests over HTTP on several workers against one origin, whose thread is the test's: objects that are
 * validated, that vary, that are refreshed in the background, and that requests with bodies change.
 * Every response is that of the URL and variant, in full, and none is older than a change whose
 * response has been received.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/proxy/crew.h"

#define REQUESTS 1500 /* of each worker */
#define AT_ONCE 10    /* of those */
#define URLS 10
#define SENT CREW_PATTERN /* bytes of a request's body */

/* What the origin responds to, by the URL's number. */
enum kind { FRESH, VALIDATED, VARIES, BACKGROUND, CHANGED, KINDS };

static const char *const control[] = {
    [FRESH] = "Cache-Control: max-age=1000\r\n",
    [VALIDATED] = "ETag: \"a\"\r\nCache-Control: max-age=0\r\n",
    [VARIES] = "Vary: Accept\r\nCache-Control: max-age=1000\r\n",
    [BACKGROUND] = "ETag: \"a\"\r\nCache-Control: max-age=0, stale-while-revalidate=100\r\n",
    [CHANGED] = "Cache-Control: max-age=1000\r\n",
};

struct call {
    struct crew_request base;     /* first */
    unsigned url, variant, least; /* version that it may get */
    bool cancels, posts;
    char fields[64];
    struct object_place place;
    uint64_t got, sent;
};

static char urls[URLS][32];
static unsigned outcomes[CREW_WORKERS][OUTCOME_STALE + 1];
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
finish_response(struct call *request)
{
    const struct exchange *x = &request->base.exchange;
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
    outcomes[x->worker][x->outcome]++;
    crew_end(&request->base);
}

static void
take_body(struct exchange *exchange)
{
    struct call *request = (struct call *)exchange;
    struct span run;

    REQUIRE(span_equal(object_url(exchange->object), span_str(urls[request->url])));
    while ((run = object_read(exchange->object, &request->place)).len) {
        for (size_t i = 0; i < run.len; i++)
            REQUIRE(run.ptr[i] == crew_pattern[(request->got + i + request->url) % 256]);
        request->got += run.len;
    }
    if (exchange_is_complete(exchange))
        finish_response(request);
    else
        exchange_taken(exchange, request->got);
}

static void
failed(struct exchange *exchange, enum failure why, struct span sentence)
{
    struct call *request = (struct call *)exchange;

    REQUIRE(sentence.len > 0);
    REQUIRE(why == FAILURE_CANCELLED && request->cancels);
    crew_end(&request->base);
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
    struct call *request = (struct call *)exchange;

    request->sent +=
        exchange_send(exchange, crew_pattern + request->sent % 256, (size_t)(SENT - request->sent));
    if (request->sent == SENT)
        exchange_send_end(exchange);
}

static const struct front front = {.wake = crew_wake,
                                   .head = take_body,
                                   .more = take_body,
                                   .fail = failed,
                                   .interim = interim,
                                   .space = send_more};

static void
start(struct crew_worker *worker, struct crew_request *base)
{
    struct call *request = (struct call *)base;
    struct exchange *x = &base->exchange;
    unsigned url = unit_draw(&worker->draws, URLS);

    crew_request_init(worker, base, &front, urls[url], unit_draw(&worker->draws, 1000));
    request->url = url;
    request->variant = unit_draw(&worker->draws, 3);
    request->cancels = unit_draw(&worker->draws, 10) == 0;
    request->posts = kind_of(url) == CHANGED && unit_draw(&worker->draws, 4) == 0;
    request->least = atomic_load(&received[group_of(url)]);
    /* The origin takes no ranges, and its responses have no length by which the front could. */
    snprintf(request->fields, sizeof(request->fields), "Accept: %u\r\n%s", request->variant,
             unit_draw(&worker->draws, 4) ? "" : "Range: bytes=5-9\r\n");
    base->asked.method = request->posts ? HTTP_POST : HTTP_GET;
    base->asked.method_name = span_str(request->posts ? "POST" : "GET");
    base->asked.fields = span_str(request->fields);
    base->asked.body.kind = request->posts ? REQUEST_BODY_SUPPLIED : REQUEST_BODY_NONE;
    base->asked.body.length = request->variant ? SENT : -1;
    if (exchange_start(x))
        return;
    if (request->posts)
        send_more(x);
    if (request->cancels && exchange_cancel(x))
        crew_end(base);
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
            REQUIRE(bytes[i] == crew_pattern[(got + i) % 256]);
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
    bool posts = fetch->body.kind == REQUEST_BODY_SUPPLIED, confirms;
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
    fetch->sink->response(
        fetch->context,
        &(struct fetch_response){.status = status, .lines = span_str(lines), .waited_us = 1000});
    length = confirms ? 0 : length_of(url, variant);
    flow = scene_head(fetch, status, lines, unit_draw(draws, 2) ? (int64_t)length : -1);
    while (flow == FETCH_CONTINUE && at < length) {
        size_t n = length - at < 7000 ? (size_t)(length - at) : 7000;

        flow = fetch->sink->body(fetch->context, crew_pattern + (at + url) % 256, n);
        at += n;
    }
    scene_done(fetch, flow == FETCH_CONTINUE ? FETCH_OK : FETCH_INTERNAL, "aborted");
}

START_TEST(responses_are_whole_and_no_older_than_what_is_known)
{
    static const struct crew crew = {.requests = REQUESTS,
                                     .at_once = AT_ONCE,
                                     .request_size = sizeof(struct call),
                                     .start = start,
                                     .respond = respond};

    scene_begin(&(struct scene_options){.workers = CREW_WORKERS, .shards = 2});
    tagged = _i;
    if (tagged) {
        scene_add_rule(&scene.tag_rules, "/4 -> four");
        scene_add_rule(&scene.tag_rules, "/9 -> nine");
        scene_add_rule(&scene.write_rules, "/4 -> nine");
        scene_add_rule(&scene.write_rules, "/9 -> four");
    }
    for (unsigned i = 0; i < URLS; i++)
        snprintf(urls[i], sizeof(urls[i]), "http://origin.test/%u", i);
    memset(outcomes, 0, sizeof(outcomes));
    crew_run(&crew);
    for (unsigned k = 0; k <= OUTCOME_STALE; k++) {
        unsigned all = 0;

        for (unsigned i = 0; i < CREW_WORKERS; i++)
            all += outcomes[i][k];
        ck_assert_msg(all > 0, "%s", outcome_word((enum outcome)k));
    }
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: threads, HTTP");
    TCase *tests = tcase_create("threads");

    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, responses_are_whole_and_no_older_than_what_is_known, 0, 2);
    suite_add_tcase(suite, tests);
    return suite;
}
