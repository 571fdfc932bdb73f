/* Administration over RPC, and which callers see the victims of a fetch. */
#include <signal.h>
#include <string.h>

#include "tests/unit/net/stream.h"
#include "tests/unit/server/front_server.h"

enum { XID = 7 };

/* ---- victims --------------------------------------------------------------------------------- */

static const struct {
    enum show_victims show;
    bool admin, asked, shown;
} victims[] = {
    {VICTIMS_NONE, true, true, false},   {VICTIMS_ADMIN, true, true, true},
    {VICTIMS_ADMIN, true, false, false}, {VICTIMS_ADMIN, false, true, false},
    {VICTIMS_ALL, false, true, true},    {VICTIMS_ALL, false, false, false},
};

START_TEST(victims_are_shown_or_not)
{
    static const char evicted[] = "http://host/0";
    const struct scene_options options = {.capacity_pages = 1};
    proxy_fetch_result result;
    const proxy_page *page = &result.proxy_fetch_result_u.page;
    int fd;

    front_server_start(&options, victims[_i].show);
    front_store(evicted, MAX_AGE, BODY_INLINE, "0", 1);
    fd = victims[_i].admin ? front_connect() : front_connect_tcp();
    send_get(fd, XID, "http://host/1", victims[_i].asked ? PROXY_FLAG_WANT_VICTIMS : 0);
    origin_responds("http://host/1", MAX_AGE, BODY_INLINE, "1", 1);
    receive_page(fd, XID, PROXY_OK, &result);
    ck_assert_uint_eq(page->ending.evicted, 1);
    ck_assert_uint_eq(page->ending.victims.victims_len, victims[_i].shown);
    if (victims[_i].shown) {
        const proxy_url *url = &page->ending.victims.victims_val[0];

        ck_assert_uint_eq(url->proxy_url_len, strlen(evicted));
        ck_assert(memcmp(url->proxy_url_val, evicted, strlen(evicted)) == 0);
    }
    free_page(&result);
    close(fd);
    front_server_stop();
}
END_TEST

/* ---- administration -------------------------------------------------------------------------- */

/* Three pages in a cache of 10. */
static void
set_up(void)
{
    front_server_start(&(struct scene_options){.capacity_pages = 10}, VICTIMS_NONE);
    front_store("http://a/1", MAX_AGE, BODY_INLINE, "1", 1);
    front_store("http://a/2", MAX_AGE, BODY_INLINE, "2", 1);
    front_store("http://b/1", MAX_AGE, BODY_INLINE, "3", 1);
}

static void
tear_down(void)
{
    front_server_stop();
}

static int
connect_as(bool admin)
{
    return admin ? front_connect() : front_connect_tcp();
}

static const struct {
    const char *url;
    unsigned kind;
    unsigned purged;
} purges[] = {
    {"http://a/1", PROXY_PURGE_URL, 1},
    {"http://c/", PROXY_PURGE_URL, 0},
    {"http://a/", PROXY_PURGE_PREFIX, 2},
    {"", PROXY_PURGE_ALL, 3},
};

static void
purge(bool admin, uint32_t procedure, size_t row, proxy_status status, uint64_t purged)
{
    proxy_purge_args args = {
        .kind = (proxy_purge_kind)purges[row].kind,
        .url = {(u_int)strlen(purges[row].url), (char *)(uintptr_t)purges[row].url},
    };
    proxy_purge_result result = {.status = PROXY_INTERNAL};
    int fd = connect_as(admin);

    send_call(fd, XID, procedure, (xdrproc_t)xdr_proxy_purge_args, &args);
    receive_result(fd, XID, (xdrproc_t)xdr_proxy_purge_result, &result);
    ck_assert_int_eq(result.status, status);
    if (status == PROXY_OK)
        ck_assert_uint_eq(result.proxy_purge_result_u.purged, purged);
    else
        ck_assert_ptr_nonnull(strstr(result.proxy_purge_result_u.sentence, "AF_UNIX socket"));
    xdr_free((xdrproc_t)xdr_proxy_purge_result, &result);
    close(fd);
}

START_TEST(a_purge_and_its_preview)
{
    size_t row = (size_t)_i;

    purge(true, PROXY_PURGE_PREVIEW, row, PROXY_OK, purges[row].purged);
    ck_assert_uint_eq(scene_stats().pages, 3);
    purge(true, PROXY_PURGE, row, PROXY_OK, purges[row].purged);
    ck_assert_uint_eq(scene_stats().pages, 3 - purges[row].purged);
    purge(true, PROXY_PURGE_PREVIEW, row, PROXY_OK, 0);
}
END_TEST

/* None of the pages has a tag. */
START_TEST(a_tag_is_a_word_and_has_no_preview)
{
    static const struct {
        const char *tag;
        uint32_t procedure;
        proxy_status status;
    } rows[] = {
        {"red", PROXY_PURGE, PROXY_OK},
        {"", PROXY_PURGE, PROXY_BAD_VALUE},
        {"red blue", PROXY_PURGE, PROXY_BAD_VALUE},
        {"red,blue", PROXY_PURGE, PROXY_BAD_VALUE},
        {"red", PROXY_PURGE_PREVIEW, PROXY_BAD_VALUE},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        proxy_purge_args args = {
            .kind = PROXY_PURGE_TAG,
            .url = {(u_int)strlen(rows[i].tag), (char *)(uintptr_t)rows[i].tag},
        };
        proxy_purge_result result = {.status = PROXY_INTERNAL};
        int fd = connect_as(true);

        send_call(fd, XID, rows[i].procedure, (xdrproc_t)xdr_proxy_purge_args, &args);
        receive_result(fd, XID, (xdrproc_t)xdr_proxy_purge_result, &result);
        ck_assert_int_eq(result.status, rows[i].status);
        if (result.status == PROXY_OK)
            ck_assert_uint_eq(result.proxy_purge_result_u.purged, 0);
        xdr_free((xdrproc_t)xdr_proxy_purge_result, &result);
        close(fd);
    }
    ck_assert_uint_eq(scene_stats().pages, 3);
}
END_TEST

START_TEST(another_caller_purges_nothing)
{
    purge(false, PROXY_PURGE_PREVIEW, (size_t)_i, PROXY_DENIED, 0);
    purge(false, PROXY_PURGE, (size_t)_i, PROXY_DENIED, 0);
    ck_assert_uint_eq(scene_stats().pages, 3);
}
END_TEST

static char lfu[] = "lfu", none[] = "", unknown[] = "astrology";

static const struct {
    proxy_set_args args;
    proxy_status status;
    uint64_t kept;
    const char *policy; /* what a preview states */
    uint64_t pages;
    unsigned shards;
} sets[] = {
    {{.policy = none}, PROXY_OK, 3, "lru", 10, 1},
    {{.policy = lfu}, PROXY_OK, 3, "lfu", 10, 1},
    {{.policy = none, .set_capacity = TRUE, .capacity_urls = 2}, PROXY_OK, 2, "lru", 2, 1},
    {{.policy = none, .cold = TRUE}, PROXY_OK, 0, "lru", 10, 1},
    {{.policy = none, .shards = 2}, PROXY_OK, 3, "lru", 10, 2},
    {{.policy = unknown}, PROXY_BAD_VALUE, 0, NULL, 0, 0},
    {{.policy = none, .set_capacity = TRUE}, PROXY_BAD_VALUE, 0, NULL, 0, 0},
};

static void
preview(bool admin, size_t row, proxy_status status)
{
    proxy_set_args args = sets[row].args;
    proxy_set_preview_result result = {.status = PROXY_INTERNAL};
    const proxy_set_state *state = &result.proxy_set_preview_result_u.state;
    int fd = connect_as(admin);

    send_call(fd, XID, PROXY_SET_PREVIEW, (xdrproc_t)xdr_proxy_set_args, &args);
    receive_result(fd, XID, (xdrproc_t)xdr_proxy_set_preview_result, &result);
    ck_assert_int_eq(result.status, status);
    if (status == PROXY_OK) {
        ck_assert_str_eq(state->policy, sets[row].policy);
        ck_assert_uint_eq(state->capacity_urls, sets[row].pages);
        ck_assert_uint_eq(state->shards, sets[row].shards);
    } else {
        ck_assert_uint_ne(strlen(result.proxy_set_preview_result_u.sentence), 0);
    }
    xdr_free((xdrproc_t)xdr_proxy_set_preview_result, &result);
    close(fd);
}

static void
set(bool admin, size_t row, proxy_status status)
{
    proxy_set_args args = sets[row].args;
    proxy_set_result result = {.status = PROXY_INTERNAL};
    int fd = connect_as(admin);

    send_call(fd, XID, PROXY_SET, (xdrproc_t)xdr_proxy_set_args, &args);
    receive_result(fd, XID, (xdrproc_t)xdr_proxy_set_result, &result);
    ck_assert_int_eq(result.status, status);
    if (status == PROXY_OK)
        ck_assert_uint_eq(result.proxy_set_result_u.kept, sets[row].kept);
    else
        ck_assert_uint_ne(strlen(result.proxy_set_result_u.sentence), 0);
    xdr_free((xdrproc_t)xdr_proxy_set_result, &result);
    close(fd);
}

/* The cache has three pages and is as it was at its start. */
static void
expect_unchanged(void)
{
    struct cache_config config;
    char text[POLICY_MAX_TEXT];

    cache_get_config(scene.cache, &config);
    ck_assert_str_eq(policy_format(&config.policy, text, sizeof(text)), "lru");
    ck_assert_uint_eq(config.capacity_pages, 10);
    ck_assert_uint_eq(config.shards, 1);
    ck_assert_uint_eq(scene_stats().pages, 3);
}

START_TEST(a_change_and_its_preview)
{
    size_t row = (size_t)_i;
    struct cache_config config;
    char text[POLICY_MAX_TEXT];

    preview(true, row, sets[row].status);
    expect_unchanged();
    set(true, row, sets[row].status);
    if (sets[row].status != PROXY_OK) {
        expect_unchanged();
        return;
    }
    cache_get_config(scene.cache, &config);
    ck_assert_str_eq(policy_format(&config.policy, text, sizeof(text)), sets[row].policy);
    ck_assert_uint_eq(config.capacity_pages, sets[row].pages);
    ck_assert_uint_eq(config.shards, sets[row].shards);
    ck_assert_uint_eq(scene_stats().pages, sets[row].kept);
}
END_TEST

START_TEST(another_caller_changes_nothing)
{
    preview(false, (size_t)_i, PROXY_DENIED);
    set(false, (size_t)_i, PROXY_DENIED);
    expect_unchanged();
}
END_TEST

/* ---- reloads --------------------------------------------------------------------------------- */

static void
expect_reload(int fd, proxy_status status, const char *text)
{
    proxy_reload_result result = {.status = PROXY_INTERNAL};

    receive_result(fd, XID, (xdrproc_t)xdr_proxy_reload_result, &result);
    ck_assert_int_eq(result.status, status);
    ck_assert_ptr_nonnull(strstr(result.text, text));
    xdr_free((xdrproc_t)xdr_proxy_reload_result, &result);
    close(fd);
}

static int
ask_for_reload(bool admin)
{
    int fd = connect_as(admin);

    send_call(fd, XID, PROXY_RELOAD, (xdrproc_t)(void (*)(void))xdr_void, NULL);
    return fd;
}

/* Waits for SIGHUP, as the daemon's main thread does, until this number of calls has come. */
static void
take_calls(struct reload_calls *calls, unsigned count)
{
    const struct reload_call *call;
    unsigned found;
    sigset_t hangup;
    int signal;

    sigemptyset(&hangup);
    sigaddset(&hangup, SIGHUP);
    TAILQ_INIT(calls);
    do {
        struct reload_calls more;

        ck_assert_int_eq(sigwait(&hangup, &signal), 0);
        reload_desk_take(&front_service.desk, &more);
        TAILQ_CONCAT(calls, &more, link);
        found = 0;
        TAILQ_FOREACH(call, calls, link)
        found++;
    } while (found < count);
}

START_TEST(a_reload_is_answered_when_it_is_done)
{
    static char lines[2 * PROXY_MAX_LINES];
    struct reload_calls calls;
    sigset_t hangup;
    int fds[3];

    sigemptyset(&hangup);
    sigaddset(&hangup, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &hangup, NULL);
    expect_reload(ask_for_reload(true), PROXY_BAD_VALUE, "starting or stopping");
    reload_desk_open(&front_service.desk);
    expect_reload(ask_for_reload(false), PROXY_DENIED, "only root");
    for (unsigned i = 0; i < 3; i++)
        fds[i] = ask_for_reload(true);
    take_calls(&calls, 3);
    close(fds[2]); /* its client does not wait */
    reload_desk_answer(&calls, true, "changed: max-age");
    expect_reload(fds[0], PROXY_OK, "changed: max-age");
    expect_reload(fds[1], PROXY_OK, "changed: max-age");
    /* A text of any length. */
    memset(lines, 'x', sizeof(lines) - 1);
    fds[0] = ask_for_reload(true);
    take_calls(&calls, 1);
    reload_desk_answer(&calls, false, lines);
    expect_reload(fds[0], PROXY_BAD_VALUE, "xxx");
    fds[0] = ask_for_reload(true);
    take_calls(&calls, 1);
    TAILQ_CONCAT(&front_service.desk.calls, &calls, link);
    reload_desk_close(&front_service.desk, "the daemon is stopping");
    expect_reload(fds[0], PROXY_BAD_VALUE, "is stopping");
    expect_reload(ask_for_reload(true), PROXY_BAD_VALUE, "starting or stopping");
}
END_TEST

/* ---- origins --------------------------------------------------------------------------------- */

static char row_text[] = "h.test/a/=http://m1.test,http://m2.test|weight=3|backup";

static void
set_up_rows(void)
{
    static char *items[] = {row_text, NULL};

    front_options.origin = (struct option_list){.items = items, .count = 1};
    front_server_start(&(struct scene_options){.capacity_pages = 10}, VICTIMS_NONE);
}

static void
ask_origin(bool admin, int action, const char *member, proxy_origin_result *result)
{
    proxy_origin_args args = {.action = (proxy_origin_action)action,
                              .member = (char *)(uintptr_t)member};
    int fd = connect_as(admin);

    memset(result, 0, sizeof(*result));
    send_call(fd, XID, PROXY_ORIGIN, (xdrproc_t)xdr_proxy_origin_args, &args);
    receive_result(fd, XID, (xdrproc_t)xdr_proxy_origin_result, result);
    close(fd);
}

static void
free_origin(proxy_origin_result *result)
{
    xdr_free((xdrproc_t)xdr_proxy_origin_result, result);
}

START_TEST(members_are_listed_and_drained)
{
    proxy_origin_result result;
    const proxy_member *members;

    ask_origin(true, PROXY_ORIGIN_LIST, "", &result);
    ck_assert_int_eq(result.status, PROXY_OK);
    ck_assert_uint_eq(result.proxy_origin_result_u.members.members_len, 2);
    members = result.proxy_origin_result_u.members.members_val;
    ck_assert_str_eq(members[0].row, "h.test/a/");
    ck_assert_str_eq(members[0].url, "http://m1.test");
    ck_assert(members[0].weight == 1 && !members[0].backup);
    ck_assert(members[1].weight == 3 && members[1].backup);
    ck_assert_str_eq(members[1].state, "");
    free_origin(&result);

    ask_origin(true, PROXY_ORIGIN_DRAIN, "http://m2.test", &result);
    ck_assert_uint_eq(result.proxy_origin_result_u.members.members_len, 1);
    ck_assert_str_eq(result.proxy_origin_result_u.members.members_val->state, "drained");
    free_origin(&result);
    ask_origin(true, PROXY_ORIGIN_ENABLE, "http://m2.test", &result);
    ck_assert_str_eq(result.proxy_origin_result_u.members.members_val->state, "");
    free_origin(&result);

    ask_origin(true, PROXY_ORIGIN_DRAIN, "http://m3.test", &result);
    ck_assert_int_eq(result.status, PROXY_BAD_VALUE);
    free_origin(&result);
    ask_origin(false, PROXY_ORIGIN_DRAIN, "http://m2.test", &result);
    ck_assert_int_eq(result.status, PROXY_DENIED);
    free_origin(&result);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/admin");
    TCase *tests = tcase_create("victims");

    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, victims_are_shown_or_not, 0, sizeof(victims) / sizeof(victims[0]));
    suite_add_tcase(suite, tests);
    tests = tcase_create("administration");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_tag_is_a_word_and_has_no_preview);
    tcase_add_loop_test(tests, a_purge_and_its_preview, 0, sizeof(purges) / sizeof(purges[0]));
    tcase_add_loop_test(tests, another_caller_purges_nothing, 0,
                        sizeof(purges) / sizeof(purges[0]));
    tcase_add_loop_test(tests, a_change_and_its_preview, 0, sizeof(sets) / sizeof(sets[0]));
    tcase_add_loop_test(tests, another_caller_changes_nothing, 0, sizeof(sets) / sizeof(sets[0]));
    tcase_add_test(tests, a_reload_is_answered_when_it_is_done);
    suite_add_tcase(suite, tests);
    tests = tcase_create("origins");
    tcase_add_checked_fixture(tests, set_up_rows, tear_down);
    tcase_add_test(tests, members_are_listed_and_drained);
    suite_add_tcase(suite, tests);
    return suite;
}
