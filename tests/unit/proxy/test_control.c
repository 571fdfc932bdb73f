/* Purges and changes of the configuration, while objects are in each state. */
#define UNIT_STARTS_NO_THREAD

#include "proxy/control.h"

#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define OTHER "http://other.test/page"

static const struct scene_options defaults;

/* ---- purges ---------------------------------------------------------------------------------- */

static uint64_t
purge(enum control_purge kind)
{
    static const char *const what[] = {[CONTROL_PURGE_URL] = URL,
                                       [CONTROL_PURGE_PREFIX] = "http://origin.test/",
                                       [CONTROL_PURGE_ALL] = ""};

    return control_purge(&scene.proxy, kind, span_str(what[kind]));
}

#define KINDS 3

START_TEST(a_purge_removes_what_is_complete)
{
    enum control_purge kind = (enum control_purge)_i;

    scene_begin(&(struct scene_options){.shards = 4});
    scene_store(URL, "", 5);
    scene_store(OTHER, "", 5);
    ck_assert_uint_eq(purge(kind), kind == CONTROL_PURGE_ALL ? 2 : 1);
    ck_assert_uint_eq(purge(kind), 0);
    ck_assert(!scene_has(URL));
    ck_assert_int_eq(scene_has(OTHER), kind != CONTROL_PURGE_ALL);
    ck_assert_uint_eq(scene_stats().evictions, 0);
    scene_end();
}
END_TEST

/* All is CONTROL_PURGE_ALL's, and not that of a prefix that was lost. */
START_TEST(an_empty_prefix_is_that_of_nothing)
{
    struct span none = span_of(NULL, 0);

    scene_begin(&defaults);
    scene_store(URL, "", 5);
    ck_assert_uint_eq(control_count(&scene.proxy, CONTROL_PURGE_PREFIX, none), 0);
    ck_assert_uint_eq(control_expire(&scene.proxy, CONTROL_PURGE_PREFIX, none), 0);
    ck_assert_uint_eq(control_purge(&scene.proxy, CONTROL_PURGE_PREFIX, none), 0);
    ck_assert(scene_has(URL));
    scene_end();
}
END_TEST

/* Before the head, after it, and in the body: those that wait get it, a later request gets another.
 */
START_TEST(a_purge_during_a_fetch_lets_it_end_for_those_that_wait)
{
    enum control_purge kind = (enum control_purge)(_i % KINDS);
    unsigned when = (unsigned)_i / KINDS;
    struct visit before = {.streams = true}, stream = {.streams = true}, after = {0};
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    visit_url(&before, URL, 1);
    visit_url(&stream, URL, 2);
    fetch = scene_fetch(URL);
    for (unsigned step = 0; step < 4; step++) {
        if (step == when) {
            ck_assert_uint_eq(purge(kind), 0);
            visit_url(&after, URL, 3);
            ck_assert_uint_eq(scene_fetches(), 2);
        }
        if (step == 0)
            scene_response(fetch, "", false);
        else if (step == 1)
            scene_head(fetch, 200, "", 8);
        else
            scene_body(fetch, 4);
        scene_run();
    }
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    expect_body(&before, OUTCOME_MISS, 8);
    expect_body(&stream, OUTCOME_COALESCED, 8);
    ck_assert(!before.stored && !stream.stored);
    ck_assert_uint_eq(scene_stats().pages, 0);
    expect_waiting(&after);
    scene_respond(URL, "", 9);
    expect_body(&after, OUTCOME_MISS, 9);
    ck_assert(after.stored);
    scene_end();
}
END_TEST

START_TEST(a_purge_removes_a_mark_and_what_passes_by_it_is_not_stored)
{
    struct visit first = {0}, second = {0};

    scene_begin(&defaults);
    visit_url(&first, URL, 1);
    scene_respond(URL, "Set-Cookie: a=b\r\n", 5);
    visit_url(&first, URL, 1);
    ck_assert_uint_eq(scene_stats().passed, 1);
    purge((enum control_purge)_i);
    ck_assert_uint_eq(scene_stats().passed, 0);
    visit_url(&second, URL, 2);
    ck_assert_uint_eq(scene_fetches(), 2);
    scene_respond(URL, "", 5);
    expect_body(&first, OUTCOME_MISS, 5);
    ck_assert(!first.stored);
    scene_respond(URL, "", 6);
    expect_body(&second, OUTCOME_MISS, 6);
    ck_assert(second.stored);
    scene_end();
}
END_TEST

START_TEST(a_purge_of_an_expired_page_concerns_its_successor)
{
    struct visit v = {0};

    scene_begin(&defaults);
    scene_store(URL, "Cache-Control: max-age=1\r\n", 5);
    scene.now_us += 2 * SECOND;
    visit_url(&v, URL, 1);
    ck_assert_uint_eq(purge((enum control_purge)_i), 1);
    scene_respond(URL, "", 5);
    expect_body(&v, OUTCOME_MISS, 5);
    ck_assert(!v.stored);
    ck_assert(!scene_has(URL));
    scene_end();
}
END_TEST

START_TEST(a_purge_leaves_failures_and_bypasses_alone)
{
    struct visit fails = {0}, bypass = {.url = URL, .no_store = true};

    scene_begin(&defaults);
    visit_url(&fails, URL, 1);
    ck_assert(!visit(&bypass));
    purge((enum control_purge)_i);
    scene_done(scene_fetch(URL), FETCH_DENIED, "denied");
    scene_respond(URL, "", 5);
    expect_failure(&fails, FAILURE_DENIED, "denied");
    expect_body(&bypass, OUTCOME_BYPASS, 5);
    scene_end();
}
END_TEST

/* ---- configuration --------------------------------------------------------------------------- */

static char why[CONTROL_SENTENCE];
static struct cache_config config;

static enum control_status
configure(const struct control_change *change)
{
    why[0] = '\0';
    return control_configure(&scene.proxy, change, &config, why, sizeof(why));
}

START_TEST(a_change_during_a_fetch_keeps_it)
{
    static const struct control_change changes[] = {
        {.policy = "lfu"},
        {.set_capacity = true, .capacity_pages = 50},
        {.shards = 8},
        {.policy = "arc", .set_capacity = true, .capacity_bytes = 10 * MIB, .shards = 2},
    };
    struct visit before = {0}, after = {0}, expired = {0};
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    scene_store(OTHER, "Cache-Control: max-age=1\r\n", 5);
    scene.now_us += 2 * SECOND;
    visit_url(&before, URL, 1);
    visit_url(&expired, OTHER, 1);
    fetch = scene_fetch(URL);
    scene_response(fetch, "", false);
    scene_head(fetch, 200, "", -1);
    scene_body(fetch, 4);
    ck_assert_int_eq(configure(&changes[_i]), CONTROL_OK);
    visit_url(&after, URL, 2);
    ck_assert_uint_eq(scene_fetches(), 2);
    scene_body(fetch, 4);
    scene_done(fetch, FETCH_OK, "");
    scene_respond(OTHER, "", 7);
    expect_body(&before, OUTCOME_MISS, 8);
    expect_body(&after, OUTCOME_COALESCED, 8);
    expect_body(&expired, OUTCOME_MISS, 7);
    ck_assert(before.stored && after.stored && expired.stored);
    ck_assert(scene_has(URL));
    ck_assert(scene_has(OTHER));
    scene_end();
}
END_TEST

START_TEST(a_cold_start_forgets_pages_fetches_and_counts)
{
    struct visit v = {0};

    scene_begin(&defaults);
    scene_store(OTHER, "", 5);
    visit_url(&v, URL, 1);
    ck_assert_int_eq(configure(&(struct control_change){.cold = true}), CONTROL_OK);
    ck_assert_uint_eq(scene_stats().pages + scene_stats().insertions, 0);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"miss\"}"), 0);
    scene_respond(URL, "", 5);
    expect_body(&v, OUTCOME_MISS, 5);
    ck_assert(!v.stored);
    ck_assert(!scene_has(OTHER));
    ck_assert_uint_eq(scene_metric("requests{outcome=\"miss\"}"), 1);
    scene_end();
}
END_TEST

START_TEST(a_policy_ends_and_begins_during_a_fetch)
{
    struct visit v = {0};

    scene_begin(&defaults);
    scene_store(OTHER, "", 5);
    visit_url(&v, URL, 1);
    ck_assert_int_eq(configure(&(struct control_change){.policy = "none"}), CONTROL_OK);
    ck_assert_uint_eq(scene_stats().pages, 0);
    scene_respond(URL, "", 5);
    expect_body(&v, OUTCOME_MISS, 5);
    ck_assert(!v.stored);
    visit_url(&v, URL, 1);
    ck_assert_int_eq(configure(&(struct control_change){.policy = "fifo"}), CONTROL_OK);
    scene_respond(URL, "", 5);
    expect_body(&v, OUTCOME_MISS, 5);
    ck_assert(v.stored);
    scene_end();
}
END_TEST

START_TEST(a_refused_change_changes_nothing)
{
    static const struct {
        struct control_change change;
        const char *why;
    } rows[] = {
        {{.policy = "no-such"}, "no-such"},
        {{.policy = "opt"}, "needs to know every request to come"},
        {{.policy = "lfu", .set_capacity = true}, "must be more than 0"},
        {{.policy = "lfu", .shards = CACHE_MAX_SHARDS + 1}, "at most 64 shards"},
        {{.policy = "lfu", .set_capacity = true, .capacity_pages = 3, .shards = 4, .cold = true},
         "smaller than the number of shards"},
    };
    struct cache_config before, after;

    scene_begin(&defaults);
    scene_store(URL, "", 5);
    cache_get_config(scene.cache, &before);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ck_assert_int_eq(configure(&rows[i].change), CONTROL_BAD_VALUE);
        ck_assert_msg(strstr(why, rows[i].why) != NULL, "%s", why);
        cache_get_config(scene.cache, &after);
        ck_assert_ptr_eq(after.policy.ops, before.policy.ops);
        ck_assert_uint_eq(after.capacity_pages, before.capacity_pages);
        ck_assert_uint_eq(after.shards, before.shards);
    }
    ck_assert(scene_has(URL));
    scene_end();
}
END_TEST

START_TEST(an_automatic_number_of_shards_follows_the_capacity)
{
    char text[CONTROL_CACHE_TEXT];

    scene_begin(&defaults);
    scene.proxy.config.workers = 8;
    scene.proxy.config.shards_automatic = true;
    ck_assert_int_eq(
        configure(&(struct control_change){.set_capacity = true, .capacity_pages = 4 * 4096}),
        CONTROL_OK);
    ck_assert_uint_eq(config.shards, 4);
    ck_assert_str_eq(control_describe_cache(&config, text, sizeof(text)),
                     "policy lru, 16384 URLs, 4 shards");
    ck_assert_int_eq(configure(&(struct control_change){.shards = 2}), CONTROL_OK);
    /* Chosen by hand, it stays. */
    ck_assert_int_eq(
        configure(&(struct control_change){.set_capacity = true, .capacity_pages = 1 << 20}),
        CONTROL_OK);
    ck_assert_uint_eq(config.shards, 2);
    scene_end();
}
END_TEST

START_TEST(suitable_shards_are_neither_many_nor_small)
{
    static const struct {
        unsigned workers;
        uint64_t pages, bytes;
        unsigned shards;
    } rows[] = {
        {8, 0, (uint64_t)8 << 30, 8},
        {8, 0, 64 * MIB, 1},
        {8, 0, 127 * MIB, 1},
        {8, 0, 128 * MIB, 2},
        {8, 8192, 0, 2},
        {8, 1, 1, 1},
        {100, 0, (uint64_t)99 << 40, 64},
        {8, 8192, 64 * MIB, 1},
        {1, 1 << 30, 0, 1},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_uint_eq(control_suitable_shards(rows[i].workers, rows[i].pages, rows[i].bytes),
                          rows[i].shards);
}
END_TEST

START_TEST(a_configuration_is_described_in_words)
{
    char text[CONTROL_CACHE_TEXT];
    struct cache_config described = {.shards = 1, .capacity_pages = 7, .capacity_bytes = MIB};

    ck_assert_str_eq(control_describe_cache(&described, text, sizeof(text)),
                     "none, every request goes to its origin");
    ck_assert(control_parse_policy("slru", &described.policy, why, sizeof(why)));
    control_describe_cache(&described, text, sizeof(text));
    ck_assert_msg(strncmp(text, "policy slru", 11) == 0, "%s", text);
    ck_assert_msg(strstr(text, ", 7 URLs, 1") != NULL, "%s", text);
    ck_assert_msg(strstr(text, ", 1 shard") != NULL, "%s", text);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: control");
    TCase *cases = tcase_create("all");

    tcase_add_loop_test(cases, a_purge_removes_what_is_complete, 0, KINDS);
    tcase_add_test(cases, an_empty_prefix_is_that_of_nothing);
    tcase_add_loop_test(cases, a_purge_during_a_fetch_lets_it_end_for_those_that_wait, 0,
                        4 * KINDS);
    tcase_add_loop_test(cases, a_purge_removes_a_mark_and_what_passes_by_it_is_not_stored, 0,
                        KINDS);
    tcase_add_loop_test(cases, a_purge_of_an_expired_page_concerns_its_successor, 0, KINDS);
    tcase_add_loop_test(cases, a_purge_leaves_failures_and_bypasses_alone, 0, KINDS);
    tcase_add_loop_test(cases, a_change_during_a_fetch_keeps_it, 0, 4);
    tcase_add_test(cases, a_cold_start_forgets_pages_fetches_and_counts);
    tcase_add_test(cases, a_policy_ends_and_begins_during_a_fetch);
    tcase_add_test(cases, a_refused_change_changes_nothing);
    tcase_add_test(cases, an_automatic_number_of_shards_follows_the_capacity);
    tcase_add_test(cases, suitable_shards_are_neither_many_nor_small);
    tcase_add_test(cases, a_configuration_is_described_in_words);
    suite_add_tcase(suite, cases);
    return suite;
}
