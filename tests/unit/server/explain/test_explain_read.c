/* What is on disk alone, as it is read for an explanation. */
#include "server/explain/explain_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/container_of.h"
#include "server/explain/explain.h"
#include "store/disk_store.h"
#include "store/store.h"
#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define FRESH "ETag: \"a\"\r\nCache-Control: max-age=100\r\n"

static char folder[64];
static struct store *store;
static struct net_worker *worker;
static unsigned ended;

static void
settle(void *context)
{
    (void)context;
}

static void
take(struct net_task *task)
{
    explain_read_take(container_of(task, struct explain_read, task));
    ended++;
}

/* `later`: by that many threads of the store, and not at once. */
static void
begin_with(bool later, unsigned readers)
{
    struct buf why;

    snprintf(folder, sizeof(folder), "/tmp/explain-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    scene_begin(&(struct scene_options){0});
    buf_init(&why, 1000);
    store = store_open(
        &(struct store_config){
            .folder = folder,
            .max_bytes = STORE_LEAST,
            .write_all = true,
            .reads_later = later,
            .readers = readers,
            .late_us = 600 * SECOND,
            .sync_us = 1000,
            .cache = scene.cache,
            .account = &scene.account,
            .failure = FAILURE_INTERNAL,
            .clock = {.monotonic_us = scene.proxy.config.clock.monotonic_us,
                      .wall_us = scene.proxy.config.clock.wall_us},
        },
        &why);
    ck_assert_msg(store != NULL, "%s", buf_str(&why));
    buf_free(&why);
    scene.proxy.config.sources[0] = store_source(store);
    store_settle(store);
    worker = net_worker_create(0, settle, NULL);
    ck_assert_ptr_nonnull(worker);
    ended = 0;
}

static void
begin(bool later)
{
    begin_with(later, 1);
}

static void
end(void)
{
    char command[128];

    store_close(store);
    net_worker_destroy(worker);
    scene_end();
    snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* The memory has nothing, and the store all that was written to it. */
static void
forget(void)
{
    store_settle(store);
    cache_purge_all(scene.cache);
}

/* Explains a GET with these fields, once what is on disk has been read. */
static void
explain(struct explanation *e, struct explain_read *read, const char *fields, bool later)
{
    const struct request request = {
        .url = span_str(URL),
        .fields = span_str(fields),
        .flags = REQUEST_STREAMS,
        .arrived_us = scene.now_us,
    };
    struct exchange x = {.proxy = &scene.proxy, .request = &request};

    *read = (struct explain_read){.worker = worker, .task.run = take};
    explain_exchange(&x, NULL, e);
    ck_assert_int_eq(e->would, EXPLAINED_ASKS_STORE);
    explain_read_begin(read, &x, buf_span(&e->variant));
    explanation_free(e);
    if (later)
        ck_assert_int_eq(read->stage, EXPLAIN_READ_ASKED);
    while (read->stage == EXPLAIN_READ_ASKED) {
        (void)net_worker_run_tasks(worker);
        unit_pause();
    }
    ck_assert_int_eq(read->stage, EXPLAIN_READ_DONE);
    ck_assert_uint_eq(ended, later);
    ended = 0;
    explain_exchange(&x, read->object, e);
}

static void
finish(struct explanation *e, struct explain_read *read)
{
    explanation_free(e);
    explain_read_end(read);
}

/* No time passes, which the store would take for that of its disk. */
START_TEST(nothing_in_memory_changes)
{
    struct explain_read read;
    struct explanation e;

    begin(_i);
    expect_http_miss(URL, "", FRESH "Age: 30\r\n", 3000);
    forget();
    for (unsigned again = 0; again < 2; again++) {
        explain(&e, &read, "", _i);
        ck_assert_int_eq(e.would, EXPLAINED_ASKS_STORE);
        ck_assert(e.on_disk);
        ck_assert_uint_eq(object_length(e.object), 3000);
        /* A record has its times in milliseconds. */
        ck_assert_int_eq((object_age(e.object, scene.now_us) + SECOND / 2) / SECOND, 30);
        ck_assert_int_eq(object_lifetime(e.object), 100 * SECOND);
        finish(&e, &read);
        ck_assert_uint_eq(scene_stats().pages, 0);
    }
    end();
}
END_TEST

START_TEST(what_has_expired_is_validated)
{
    struct explain_read read;
    struct explanation e;

    begin(_i);
    expect_http_miss(URL, "", FRESH "Age: 200\r\n", 3000);
    forget();
    explain(&e, &read, "", _i);
    ck_assert_int_eq(e.would, EXPLAINED_VALIDATES);
    ck_assert_int_eq(e.reason, HTTP_REASON_EXPIRED);
    finish(&e, &read);
    end();
}
END_TEST

/* Nor is it known by what it varies. */
START_TEST(another_variant_is_not_told)
{
    struct explain_read read;
    struct explanation e;

    begin(_i);
    expect_http_miss(URL, "X-A: b\r\n", FRESH "Vary: X-A\r\n", 300);
    forget();
    explain(&e, &read, "X-A: b\r\n", _i);
    ck_assert_ptr_nonnull(e.object);
    finish(&e, &read);
    explain(&e, &read, "X-A: c\r\n", _i);
    ck_assert_ptr_null(e.object);
    ck_assert_int_eq(e.would, EXPLAINED_ASKS_STORE);
    finish(&e, &read);
    ck_assert_uint_eq(scene_stats().varied, 0);
    end();
}
END_TEST

/* It stays on disk for options that allow it again. */
START_TEST(what_options_forbid_is_not_told_and_stays)
{
    static const char cookie[] = FRESH "Set-Cookie: a=b\r\n";
    struct explain_read read;
    struct explanation e;

    begin(_i);
    scene.rules.set_cookie = true;
    expect_http_miss(URL, "", cookie, 300);
    forget();
    scene.rules.set_cookie = false;
    explain(&e, &read, "", _i);
    ck_assert_ptr_null(e.object);
    finish(&e, &read);
    scene.rules.set_cookie = true;
    explain(&e, &read, "", _i);
    ck_assert_ptr_nonnull(e.object);
    finish(&e, &read);
    end();
}
END_TEST

/* Nothing is read meanwhile. The last one's call is answered at once, and gone when the task of any
 * other could run. */
START_TEST(one_too_many_is_answered_at_once)
{
    enum { WAITING = 256 };
    static struct explain_read reads[WAITING + 1];
    struct request request = {
        .url = span_str(URL), .fields = span_str(""), .flags = REQUEST_STREAMS};
    struct exchange x = {.proxy = &scene.proxy, .request = &request};
    struct explanation e;

    begin_with(true, 0);
    request.arrived_us = scene.now_us;
    expect_http_miss(URL, "", FRESH, 3000);
    forget();
    explain_exchange(&x, NULL, &e);
    for (unsigned i = 0; i <= WAITING; i++) {
        reads[i] = (struct explain_read){.worker = worker, .task.run = take};
        explain_read_begin(&reads[i], &x, buf_span(&e.variant));
        ck_assert_int_eq(reads[i].stage, i < WAITING ? EXPLAIN_READ_ASKED : EXPLAIN_READ_DONE);
    }
    ck_assert_ptr_null(reads[WAITING].object);
    ck_assert(!net_worker_run_tasks(worker));
    ck_assert_uint_eq(ended, 0);
    explanation_free(&e);
    store->readers_stop = true;
    (void)store_reader_run(store); /* reads what waits, and ends */
    (void)net_worker_run_tasks(worker);
    ck_assert_uint_eq(ended, WAITING);
    for (unsigned i = 0; i < WAITING; i++) {
        ck_assert_ptr_nonnull(reads[i].object);
        explain_read_end(&reads[i]);
    }
    end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("explain: read");
    TCase *cases = tcase_create("all");

    tcase_add_loop_test(cases, nothing_in_memory_changes, 0, 2);
    tcase_add_loop_test(cases, what_has_expired_is_validated, 0, 2);
    tcase_add_loop_test(cases, another_variant_is_not_told, 0, 2);
    tcase_add_loop_test(cases, what_options_forbid_is_not_told_and_stays, 0, 2);
    tcase_add_test(cases, one_too_many_is_answered_at_once);
    suite_add_tcase(suite, cases);
    return suite;
}
