#include "tests/unit/proxy/scene.h"

#include <errno.h>

#include "tests/unit/cache/validity.h"
#include "tests/unit/net/stream.h"

struct scene scene;

/* ---- clock ----------------------------------------------------------------------------------- */

static int64_t
monotonic_us(void *context)
{
    (void)context;
    return scene.now_us;
}

/* Some day in 2026. */
static int64_t
wall_us(void *context)
{
    return 1780000000 * SECOND + monotonic_us(context);
}

/* ---- origin ---------------------------------------------------------------------------------- */

/* No memory of the heap, where tests let allocations fail. */
static struct scene_fetch pool[SCENE_FETCHES];

/* A copy as a C string. */
static void
keep(char *to, size_t size, struct span text)
{
    REQUIRE(text.len < size);
    memset(to, 0, size);
    if (text.len)
        memcpy(to, text.ptr, text.len);
}

/* As the fetcher's: what an attempt of the fetch is sent, and where. */
static void
begin_attempt(struct scene_fetch *fetch)
{
    const struct request *request = fetch->request;
    struct attempt_text text;

    if (fetch->given->member)
        fetch->given->member(fetch->given_context, fetch->attempt.choice.member);
    keep(fetch->url, sizeof(fetch->url), attempt_url(&fetch->attempt, request, &text));
    keep(fetch->host, sizeof(fetch->host), attempt_host(request, &text));
    keep(fetch->fields, sizeof(fetch->fields),
         fetch->given->fields ? fetch->given->fields(fetch->given_context) : request->fields);
    fetch->had_turn = fetch->supplied = false;
}

static void
on_begin(void *context)
{
    struct scene_fetch *fetch = context;

    fetch->had_turn = true;
    fetch->given->begin(fetch->given_context);
}

static void
on_response(void *context, const struct fetch_response *response)
{
    struct scene_fetch *fetch = context;
    struct fetch_response passed = *response, timed = *response;

    timed.waited_us = 1000;
    passed.passed_over =
        !attempt_counts(&fetch->attempt, fetch->request, &timed, scene.now_us);
    if (fetch->given->response)
        fetch->given->response(fetch->given_context, &passed);
}

static void
on_interim(void *context, unsigned status, struct span lines)
{
    struct scene_fetch *fetch = context;

    if (fetch->given->interim)
        fetch->given->interim(fetch->given_context, status, lines);
}

static enum fetch_flow
on_head(void *context, const struct fetch_head *head)
{
    struct scene_fetch *fetch = context;
    enum fetch_flow flow;

    if (fetch->attempt.stage == ATTEMPT_PASSED_OVER)
        return FETCH_ABORT;
    flow = fetch->given->head(fetch->given_context, head);
    if (flow != FETCH_REPEAT)
        return flow;
    fetch->attempt.stage = ATTEMPT_REPEATS;
    return FETCH_CONTINUE;
}

static enum fetch_flow
on_body(void *context, const void *bytes, size_t len)
{
    struct scene_fetch *fetch = context;

    if (fetch->attempt.stage == ATTEMPT_REPEATS)
        return FETCH_CONTINUE;
    return fetch->given->body(fetch->given_context, bytes, len);
}

static enum fetch_supply
on_supply(void *context, void *buffer, size_t size, size_t *len)
{
    struct scene_fetch *fetch = context;
    enum fetch_supply supply = fetch->given->supply(fetch->given_context, buffer, size, len);

    fetch->supplied = fetch->supplied || supply == FETCH_SUPPLIED;
    return supply;
}

static void
on_connected(void *context, int fd)
{
    struct scene_fetch *fetch = context;

    fetch->given->connected(fetch->given_context, fd);
}

static const struct fetch_sink attempts = {
    .begin = on_begin,
    .response = on_response,
    .interim = on_interim,
    .head = on_head,
    .body = on_body,
    .supply = on_supply,
    .connected = on_connected,
};

static bool
submit(struct fetcher *context, const struct request *request, const struct fetch_sink *sink,
       void *sink_context, uint64_t *id)
{
    const unsigned of_fetch =
        ~(unsigned)(REQUEST_OWNED | REQUEST_PAGE_ONLY | REQUEST_OWN_FIELDS);
    struct scene_fetch *fetch = pool;
    bool begun;

    REQUIRE((void *)context == &scene);
    pthread_mutex_lock(&scene.lock);
    if (scene.refuses) {
        pthread_mutex_unlock(&scene.lock);
        errno = scene.refuses;
        return false;
    }
    while (fetch->id)
        fetch++;
    REQUIRE(fetch < pool + SCENE_FETCHES - 1);
    fetch->request = request_retain(request);
    fetch->client = request->client;
    fetch->sink = &attempts;
    fetch->context = fetch;
    fetch->given = sink;
    fetch->given_context = sink_context;
    fetch->cancelled = false;
    fetch->resumes = 0;
    fetch->flags = (request->flags & of_fetch) | (request->route ? REQUEST_CONFIGURED : 0u);
    fetch->body = request->body;
    keep(fetch->method, sizeof(fetch->method), request->method_name);
    fetch->attempt = (struct attempt){0};
    begun = attempt_begin(&fetch->attempt, request, scene.now_us);
    fetch->id = ++scene.submitted;
    if (id)
        *id = fetch->id;
    if (begun)
        begin_attempt(fetch);
    else
        snprintf(fetch->url, sizeof(fetch->url), "down");
    TAILQ_INSERT_TAIL(&scene.fetches, fetch, link);
    pthread_mutex_unlock(&scene.lock);
    return true;
}

static void
resume(struct fetcher *context, uint64_t id)
{
    struct scene_fetch *fetch;

    REQUIRE((void *)context == &scene);
    pthread_mutex_lock(&scene.lock);
    TAILQ_FOREACH(fetch, &scene.fetches, link)
    {
        if (fetch->id == id)
            fetch->resumes++;
    }
    pthread_mutex_unlock(&scene.lock);
}

static void
cancel(struct fetcher *context, uint64_t id)
{
    struct scene_fetch *fetch;

    REQUIRE((void *)context == &scene);
    pthread_mutex_lock(&scene.lock);
    TAILQ_FOREACH(fetch, &scene.fetches, link)
    {
        if (fetch->id == id)
            fetch->cancelled = true;
    }
    pthread_mutex_unlock(&scene.lock);
}

static const struct origin_ops origin = {.submit = submit, .resume = resume, .cancel = cancel};

struct scene_fetch *
scene_find(const char *url)
{
    struct scene_fetch *fetch;

    pthread_mutex_lock(&scene.lock);
    TAILQ_FOREACH(fetch, &scene.fetches, link)
    {
        if (!url || strcmp(fetch->url, url) == 0)
            break;
    }
    pthread_mutex_unlock(&scene.lock);
    return fetch;
}

struct scene_fetch *
scene_fetch(const char *url)
{
    struct scene_fetch *fetch = scene_find(url);

    ck_assert_msg(fetch != NULL, "nothing is fetched for %s", url ? url : "any URL");
    return fetch;
}

size_t
scene_fetches(void)
{
    struct scene_fetch *fetch;
    size_t count = 0;

    pthread_mutex_lock(&scene.lock);
    TAILQ_FOREACH(fetch, &scene.fetches, link)
    count++;
    pthread_mutex_unlock(&scene.lock);
    return count;
}

unsigned
scene_resumes(const struct scene_fetch *fetch)
{
    unsigned resumes;

    pthread_mutex_lock(&scene.lock);
    resumes = fetch->resumes;
    pthread_mutex_unlock(&scene.lock);
    return resumes;
}

bool
scene_is_cancelled(const struct scene_fetch *fetch)
{
    bool cancelled;

    pthread_mutex_lock(&scene.lock);
    cancelled = fetch->cancelled;
    pthread_mutex_unlock(&scene.lock);
    return cancelled;
}

void
scene_response_of(struct scene_fetch *fetch, unsigned status, const char *lines)
{
    fetch->sink->response(
        fetch->context,
        &(struct fetch_response){.status = status, .lines = span_str(lines), .waited_us = 1000});
}

void
scene_response(struct scene_fetch *fetch, const char *lines, bool has_user)
{
    fetch->sink->response(fetch->context, &(struct fetch_response){.status = 200,
                                                                   .lines = span_str(lines),
                                                                   .has_user = has_user,
                                                                   .waited_us = 1000});
}

enum fetch_flow
scene_head(struct scene_fetch *fetch, unsigned status, const char *lines, int64_t length)
{
    return fetch->sink->head(fetch->context, &(struct fetch_head){.status = status,
                                                                  .headers = span_str(lines),
                                                                  .content_length = length});
}

/* The body repeats after that many bytes, which are comparable with memcmp() from any of them. */
#define PERIOD ((size_t)251 * 256)
static char pattern[2 * PERIOD];
static pthread_once_t pattern_once = PTHREAD_ONCE_INIT;

char
scene_byte(uint64_t position)
{
    return (char)(position * 7 + position / 251);
}

static void
make_pattern(void)
{
    for (size_t i = 0; i < sizeof(pattern); i++)
        pattern[i] = scene_byte(i);
}

/* What the body has there, of which `len` bytes follow one another in memory. */
static const char *
pattern_at(uint64_t position, size_t most, size_t *len)
{
    pthread_once(&pattern_once, make_pattern);
    *len = most < PERIOD ? most : PERIOD;
    return pattern + position % PERIOD;
}

void
scene_bytes(char *bytes, uint64_t position, size_t len)
{
    size_t n;

    for (size_t at = 0; at < len; at += n) {
        const char *from = pattern_at(position + at, len - at, &n);

        memcpy(bytes + at, from, n);
    }
}

bool
scene_has_bytes(const char *bytes, uint64_t position, size_t len)
{
    size_t n;

    for (size_t at = 0; at < len; at += n) {
        const char *expected = pattern_at(position + at, len - at, &n);

        if (memcmp(bytes + at, expected, n) != 0)
            return false;
    }
    return true;
}

enum fetch_flow
scene_body(struct scene_fetch *fetch, size_t len)
{
    static char bytes[2 * MIB];
    const struct cache_fill *fill = fetch->given_context;
    uint64_t from = object_length(fill->object);

    ck_assert_uint_le(len, sizeof(bytes));
    scene_bytes(bytes, from, len);
    return fetch->sink->body(fetch->context, bytes, len);
}

void
scene_answer(const char *url, unsigned status, const char *lines, size_t len)
{
    struct scene_fetch *fetch = scene_fetch(url);
    enum fetch_flow flow;

    fetch->sink->begin(fetch->context);
    scene_response_of(fetch, status, lines);
    flow = scene_head(fetch, status, lines, (int64_t)len);
    if (len && flow == FETCH_CONTINUE)
        flow = scene_body(fetch, len);
    scene_done(fetch, flow == FETCH_CONTINUE ? FETCH_OK : FETCH_INTERNAL, "");
    scene_run();
}

enum fetch_supply
scene_supply(struct scene_fetch *fetch, void *buffer, size_t size, size_t *len)
{
    ck_assert_int_eq(fetch->body.kind, REQUEST_BODY_SUPPLIED);
    return fetch->sink->supply(fetch->context, buffer, size, len);
}

/* Another attempt begins after one that has ended so. */
static void
go_on(struct scene_fetch *fetch, enum attempt_stage last, const struct attempt_end *end)
{
    enum fetch_error error = last == ATTEMPT_PASSED_OVER ? FETCH_ORIGIN_BROKE : end->error;

    if (last != ATTEMPT_REPEATS)
        fetch->given->again(fetch->given_context, error, end->sentence, 2000);
    begin_attempt(fetch);
    pthread_mutex_lock(&scene.lock);
    scene.submitted++;
    TAILQ_INSERT_TAIL(&scene.fetches, fetch, link);
    pthread_mutex_unlock(&scene.lock);
}

void
scene_done(struct scene_fetch *fetch, enum fetch_error error, const char *sentence)
{
    const struct attempt_end end = {
        .error = error,
        .sentence = sentence,
        .had_turn = fetch->had_turn,
        .supplied = fetch->supplied,
    };
    enum attempt_stage stage = fetch->attempt.stage;

    pthread_mutex_lock(&scene.lock);
    TAILQ_REMOVE(&scene.fetches, fetch, link);
    pthread_mutex_unlock(&scene.lock);
    if (attempt_goes_on(&fetch->attempt, fetch->request, &end, scene.now_us)) {
        go_on(fetch, stage, &end);
        return;
    }
    fetch->given->done(fetch->given_context, error, sentence, 2000);
    request_release(&fetch->request);
    pthread_mutex_lock(&scene.lock);
    fetch->id = 0;
    pthread_mutex_unlock(&scene.lock);
}

void
scene_respond(const char *url, const char *lines, size_t len)
{
    struct scene_fetch *fetch = scene_fetch(url);

    fetch->sink->begin(fetch->context);
    scene_response(fetch, lines, false);
    ck_assert_int_eq(scene_head(fetch, 200, lines, (int64_t)len), FETCH_CONTINUE);
    ck_assert_int_eq(scene_body(fetch, len), FETCH_CONTINUE);
    scene_done(fetch, FETCH_OK, "");
    scene_run();
}

/* ---- the cache ------------------------------------------------------------------------------- */

void
expect_http_miss(const char *url, const char *fields, const char *lines, size_t len)
{
    struct visit v;

    ck_assert(!visit_http(&v, url, fields));
    scene_answer(url, 200, lines, len);
    expect_body(&v, OUTCOME_MISS, len);
    ck_assert(v.stored);
}

void
expect_http_hit(const char *url, const char *fields, size_t len)
{
    struct visit v;

    ck_assert(visit_http(&v, url, fields));
    expect_body(&v, OUTCOME_HIT, len);
    ck_assert(v.stored);
}

void
scene_store(const char *url, const char *lines, size_t len)
{
    struct visit v = {0};

    visit_url(&v, url, 1);
    scene_respond(url, lines, len);
    expect_body(&v, OUTCOME_MISS, len);
    ck_assert(v.stored);
}

bool
scene_has(const char *url)
{
    struct visit v = {.url = url};

    if (visit(&v)) {
        ck_assert_int_eq(v.fails, 0);
        return true;
    }
    /* Not a failure of the origin, after which it would get a page that has expired. */
    scene_done(scene_fetch(url), FETCH_DENIED, "no");
    scene_run();
    expect_failure(&v, FAILURE_DENIED, "no");
    return false;
}

/* ---- the scene ------------------------------------------------------------------------------- */

static bool
relieve(void *context, enum memory_kind kind, size_t bytes)
{
    (void)context;
    return (kind == MEMORY_PAGES || kind == MEMORY_FETCHES) && proxy_shed(&scene.proxy, bytes) > 0;
}

static bool
reclaim(void *context, size_t bytes)
{
    uint64_t pages;

    (void)context;
    return cache_reclaim(scene.cache, bytes, &pages) > 0;
}

static void
fetched(void *context, const struct proxy_fetched *report)
{
    (void)context;
    scene.fetched = *report;
    snprintf(scene.fetched_sentence, sizeof(scene.fetched_sentence), "%s", report->sentence);
}

void
scene_begin(const struct scene_options *options)
{
    const struct memory_hooks hooks = {.relieve = relieve, .reclaim = reclaim};
    struct cache_config config = {
        .capacity_pages = options->capacity_pages ? options->capacity_pages : 100,
        .capacity_bytes = options->capacity_bytes,
        .shards = options->shards ? options->shards : 1,
    };
    unsigned workers = options->workers ? options->workers : 1;
    uint64_t max_body = options->max_body ? options->max_body : MIB;
    enum cache_error error;
    char why[256];

    scene = (struct scene){.now_us = 1000 * SECOND};
    http_storing_rules_init(&scene.rules);
    scene.proxy_rules = (struct proxy_rules){
        .storing = &scene.rules,
        .tag_rules = &scene.tag_rules,
        .write_rules = &scene.write_rules,
        .max_age_us = options->max_age_us,
        .max_page = options->max_page,
        .range_fill = options->range_fill ? options->range_fill : 64 * MIB,
        .max_waiters = options->max_waiters ? options->max_waiters : 1000,
    };
    pthread_mutex_init(&scene.lock, NULL);
    memset(pool, 0, sizeof(pool));
    TAILQ_INIT(&scene.fetches);
    TAILQ_INIT(&scene.woken);
    memory_account_init(&scene.account, options->memory ? options->memory : UINT64_MAX / 4, &hooks);
    ck_assert(
        policy_parse(options->policy ? options->policy : "lru", &config.policy, why, sizeof(why)));
    scene.cache = cache_create(&config, &error);
    ck_assert_ptr_nonnull(scene.cache);
    scene.metrics = metrics_create(workers);
    ck_assert_ptr_nonnull(scene.metrics);
    ck_assert(proxy_init(
        &scene.proxy, &(struct proxy_config){
                          .cache = scene.cache,
                          .account = &scene.account,
                          .metrics = scene.metrics,
                          .origin = {.ops = &origin, .context = (struct fetcher *)(void *)&scene},
                          .clock = {.monotonic_us = monotonic_us, .wall_us = wall_us},
                          .rules = &scene.proxy_rules,
                          .follows_http = !options->freshness_off,
                          .max_body = max_body,
                          .workers = workers,
                          .fetched = fetched,
                      }));
}

void
scene_end(void)
{
    ck_assert_uint_eq(scene_fetches(), 0);
    ck_assert(TAILQ_EMPTY(&scene.woken));
    ck_assert_uint_eq(scene.visits, 0);
    ck_assert(cache_is_valid(scene.cache));
    ck_assert_uint_eq(scene_stats().busy, 0);
    ck_assert_uint_eq(client_share_total(&scene.proxy.waiting), 0);
    ck_assert_uint_eq(memory_used(&scene.account, MEMORY_REQUESTS), 0);
    ck_assert_uint_eq(memory_used(&scene.account, MEMORY_PAGES), 0);
    ck_assert(TAILQ_EMPTY(&scene.proxy.shedding.bodies));
    ck_assert(LIST_EMPTY(&scene.proxy.shedding.clients));
    proxy_destroy(&scene.proxy);
    ck_assert(unit_clients_are_idle());
    cache_destroy(scene.cache);
    metrics_destroy(scene.metrics);
    pthread_mutex_destroy(&scene.lock);
    tag_rules_free(&scene.tag_rules);
    tag_rules_free(&scene.write_rules);
}

void
scene_add_rule(struct tag_rules *rules, const char *text)
{
    struct buf why;

    buf_init(&why, 1024);
    ck_assert_msg(tag_rules_add(rules, text, &why), "%s", buf_str(&why));
    buf_free(&why);
}

static struct visit *
take_woken(void)
{
    struct visit *visit;

    pthread_mutex_lock(&scene.lock);
    visit = TAILQ_FIRST(&scene.woken);
    if (visit) {
        TAILQ_REMOVE(&scene.woken, visit, link);
        visit->listed = false;
    }
    pthread_mutex_unlock(&scene.lock);
    return visit;
}

void
scene_run(void)
{
    struct visit *visit;

    while ((visit = take_woken())) {
        exchange_run(&visit->exchange);
    }
}

uint64_t
scene_metric(const char *name)
{
    const struct metric_sample *samples;
    size_t count = metrics_samples(scene.metrics, &samples);
    static uint64_t values[1000];
    uint64_t value = 0;
    bool found = false;

    ck_assert_uint_le(count, sizeof(values) / sizeof(values[0]));
    metrics_read(scene.metrics, values);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(samples[i].name, name) == 0) {
            value = values[i];
            found = true;
        }
    }
    ck_assert_msg(found, "no metric %s", name);
    return value;
}

void
scene_expect_metric(const char *name, uint64_t value)
{
    uint64_t is = scene_metric(name);

    ck_assert_msg(is == value, "%s: %llu", name, (unsigned long long)is);
}

struct cache_stats
scene_stats(void)
{
    struct cache_stats stats;

    cache_get_stats(scene.cache, &stats);
    return stats;
}
