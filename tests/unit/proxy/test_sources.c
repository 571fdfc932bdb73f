/* Two sources behind the cache: which is asked, what they are told, and what waits for them. */
#include <stdlib.h>
#include <string.h>

#include "proxy/control.h"
#include "proxy/purging.h"
#include "store/record_fill.h"
#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define FRESH "Cache-Control: max-age=100\r\n"

/* A source that is scripted. */
struct script {
    struct source source; /* first */
    enum source_filling filling;
    bool later; /* it is not synced */
    struct source_waiter *waiter;
    unsigned asked, begun, dropped, offered, outdated, released, marks;
    bool soft;
};

static struct script scripts[2];

static enum source_filling
fill(struct source *source, struct cache_fill *fill, const struct source_request *request)
{
    struct script *s = (struct script *)source;

    s->asked++;
    if (s->filling == SOURCE_HAS_NOT)
        return SOURCE_HAS_NOT;
    if (s->filling == SOURCE_FILLS)
        request->later(request->context);
    record_fill_send_back(fill);
    cache_fill_free(fill);
    return s->filling;
}

static uint64_t
begin_offer(struct source *source, int64_t begun_us)
{
    (void)begun_us;
    return ++((struct script *)source)->begun;
}

static void
drop_offer(struct source *source)
{
    ((struct script *)source)->dropped++;
}

static bool
offer(struct source *source, struct object *object, struct span names, uint64_t position)
{
    struct script *s = (struct script *)source;

    (void)names;
    ck_assert(span_equal(object_url(object), span_str(URL)));
    ck_assert_uint_eq(position, s->begun);
    s->offered++;
    return true;
}

static bool
admits(struct source *source, uint64_t key)
{
    (void)source;
    (void)key;
    return false;
}

static bool
replaces(struct source *source, struct span url, struct span variant)
{
    (void)source;
    (void)url;
    (void)variant;
    return false;
}

static void
outdate(struct source *source, struct span url, struct span variant, bool all)
{
    (void)url;
    (void)variant;
    (void)all;
    ((struct script *)source)->outdated++;
}

static void
release(struct source *source, struct span url, struct span variant)
{
    (void)url;
    (void)variant;
    ((struct script *)source)->released++;
}

static struct source_marked
mark(struct source *source, const struct source_purge *purge, const struct source_marked *before)
{
    struct script *s = (struct script *)source;

    ck_assert(!before || before->marked);
    s->marks++;
    s->soft = purge->soft;
    return (struct source_marked){.marked = true, .number = s->marks};
}

static bool
is_synced(struct source *source, struct source_waiter *waiter)
{
    struct script *s = (struct script *)source;

    s->waiter = s->later ? waiter : NULL;
    return !s->later;
}

static bool
forget_waiter(struct source *source, struct source_waiter *waiter)
{
    struct script *s = (struct script *)source;
    const bool waits = s->waiter == waiter;

    if (waits)
        s->waiter = NULL;
    return waits;
}

static void
begin(void)
{
    static const struct source_ops disk = {
        .fill = fill,
        .begin_offer = begin_offer,
        .drop_offer = drop_offer,
        .offer = offer,
        .admits = admits,
        .replaces = replaces,
        .outdate = outdate,
        .mark = mark,
        .is_synced = is_synced,
        .forget_waiter = forget_waiter,
    };
    static const struct source_ops tier = {
        .fill = fill,
        .begin_offer = begin_offer,
        .drop_offer = drop_offer,
        .offer = offer,
        .outdate = outdate,
        .release = release,
        .mark = mark,
        .is_synced = is_synced,
        .forget_waiter = forget_waiter,
    };

    memset(scripts, 0, sizeof(scripts));
    scripts[0].source.ops = &disk;
    scripts[1].source.ops = &tier;
    scene_begin(&(struct scene_options){0});
    scene.proxy.config.sources[0] = &scripts[0].source;
    scene.proxy.config.sources[1] = &scripts[1].source;
}

START_TEST(each_is_asked_in_its_order_before_the_origin)
{
    begin();
    expect_http_miss(URL, "", FRESH, 300);
    ck_assert_uint_eq(scripts[0].asked, 1);
    ck_assert_uint_eq(scripts[1].asked, 1);
    /* One that admits pages at their second request gets them then, and the other at once. */
    ck_assert_uint_eq(scripts[0].offered, 0);
    ck_assert_uint_eq(scripts[1].offered, 1);
    ck_assert_uint_eq(scripts[1].released, 1);
    expect_http_hit(URL, "", 300);
    expect_http_hit(URL, "", 300);
    ck_assert_uint_eq(scripts[0].offered, 1);
    ck_assert_uint_eq(scripts[1].offered, 1);
    ck_assert_uint_eq(scripts[1].begun, 1);
    scene_end();
}
END_TEST

START_TEST(one_that_fills_is_the_last_that_is_asked)
{
    begin();
    scripts[0].filling = SOURCE_FILLED;
    /* It has nothing after all, twice at most. */
    expect_http_miss(URL, "", FRESH, 300);
    ck_assert_uint_eq(scripts[0].asked, 2);
    ck_assert_uint_eq(scripts[1].asked, 0);
    scene_end();
}
END_TEST

START_TEST(what_is_not_stored_outdates_what_they_have)
{
    struct visit v;

    begin();
    ck_assert(!visit_http(&v, URL, ""));
    scene_answer(URL, 200, "Cache-Control: no-store\r\n", 300);
    expect_body(&v, OUTCOME_MISS, 300);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(scripts[i].offered, 0);
        ck_assert_uint_eq(scripts[i].outdated, 1);
        ck_assert_uint_eq(scripts[i].begun, scripts[i].dropped);
    }
    scene_end();
}
END_TEST

START_TEST(purges_mark_all_but_the_one_that_has_told)
{
    struct source_ops shared;

    begin();
    (void)control_purge(&scene.proxy, CONTROL_PURGE_URL, span_str(URL));
    (void)control_expire(&scene.proxy, CONTROL_PURGE_TAG, span_str("red"));
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(scripts[i].marks, 4);
        ck_assert(scripts[i].soft);
    }
    (void)purging_apply(&scene.proxy, &(struct purging){.by = CACHE_BY_URL,
                                                        .name = span_str(URL),
                                                        .told_by = &scripts[1].source});
    ck_assert_uint_eq(scripts[0].marks, 6);
    ck_assert_uint_eq(scripts[1].marks, 4);
    /* A change of terms is no purge to others. */
    shared = *scripts[1].source.ops;
    shared.is_shared = true;
    scripts[1].source.ops = &shared;
    (void)purging_apply(&scene.proxy, &(struct purging){.by = CACHE_BY_PREFIX, .local = true});
    ck_assert_uint_eq(scripts[0].marks, 8);
    ck_assert_uint_eq(scripts[1].marks, 4);
    scene_end();
}
END_TEST

static unsigned notified;

static void
note(struct purging_wait *wait)
{
    (void)wait;
    notified++;
}

static void
sync_source(struct script *s)
{
    struct source_waiter *waiter = s->waiter;

    s->waiter = NULL;
    waiter->notify(waiter);
}

START_TEST(a_wait_ends_with_the_last_of_them)
{
    struct purging_wait wait = {.notify = note, .marks = purging_all_marks()};

    begin();
    notified = 0;
    ck_assert(purging_is_noted(&scene.proxy, &wait));
    scripts[_i].later = true;
    ck_assert(!purging_is_noted(&scene.proxy, &wait));
    ck_assert_uint_eq(notified, 0);
    sync_source(&scripts[_i]);
    ck_assert_uint_eq(notified, 1);

    scripts[0].later = scripts[1].later = true;
    ck_assert(!purging_is_noted(&scene.proxy, &wait));
    sync_source(&scripts[_i]);
    ck_assert_uint_eq(notified, 1);
    sync_source(&scripts[!_i]);
    ck_assert_uint_eq(notified, 2);
    /* It has been notified. */
    ck_assert(!purging_forget(&scene.proxy, &wait));
    scene_end();
}
END_TEST

START_TEST(a_wait_is_forgotten)
{
    struct purging_wait wait = {.notify = note, .marks = purging_all_marks()};

    begin();
    notified = 0;
    scripts[0].later = scripts[1].later = true;
    ck_assert(!purging_is_noted(&scene.proxy, &wait));
    ck_assert(purging_forget(&scene.proxy, &wait));
    ck_assert_ptr_null(scripts[0].waiter);
    ck_assert_ptr_null(scripts[1].waiter);

    ck_assert(!purging_is_noted(&scene.proxy, &wait));
    sync_source(&scripts[_i]);
    ck_assert(purging_forget(&scene.proxy, &wait));
    ck_assert_uint_eq(notified, 0);
    scene_end();
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("sources");
    TCase *tests = tcase_create("sources");

    tcase_add_test(tests, each_is_asked_in_its_order_before_the_origin);
    tcase_add_test(tests, one_that_fills_is_the_last_that_is_asked);
    tcase_add_test(tests, what_is_not_stored_outdates_what_they_have);
    tcase_add_test(tests, purges_mark_all_but_the_one_that_has_told);
    tcase_add_loop_test(tests, a_wait_ends_with_the_last_of_them, 0, 2);
    tcase_add_loop_test(tests, a_wait_is_forgotten, 0, 2);
    suite_add_tcase(suite, tests);
    return suite;
}
