/*
 * Starting the fetcher and the resolver, and whole fetches, with each call of the system and of
 * libcurl failing in turn: all runs, or nothing does, with a sentence; no thread and no descriptor
 * is lost.
 */
#include <errno.h>
#include <stdio.h>

#include "fetch/address.h"
#include "tests/unit/faults.h"
#include "tests/unit/fetch/armed.h"
#include "tests/unit/fetch/fixture.h"

static void
create(void *context)
{
    unsigned *descriptors = context;
    char why[512] = "";
    struct fetcher *fetcher = fetcher_create(&config, why, sizeof(why));
    const char *failed = faults_failed();

    faults_fail_at(0, 0);
    ck_assert_msg(failed || fetcher, "%s", why);
    if (!fetcher)
        ck_assert_msg(why[0], "%s", failed);
    fetcher_destroy(fetcher);
    ck_assert_msg(unit_open_descriptors() == *descriptors, "%s", failed ? failed : "none");
}

START_TEST(creating)
{
    unsigned descriptors;

    fetcher_destroy(start_fetcher(&config)); /* what libraries open once stays open */
    descriptors = unit_open_descriptors();
    ck_assert_uint_ge(faults_walk(create, &descriptors, EMFILE), 4);
}
END_TEST

/* ---- whole fetches ----------------------------------------------------------------------- */

static void
fail_at(unsigned n)
{
    faults_fail_at(n, EMFILE);
}

static bool
has_failed(void)
{
    return faults_failed() != NULL;
}

static const struct armed_calls calls = {.fail_at = fail_at, .failed = has_failed};

static const struct line script[] = {
    {"/", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage", 0, CLOSE, 0},
    {NULL, NULL, 0, KEEP, 0}};

/* By a name that the operator has redirected. */
START_TEST(fetching)
{
    static const struct name_row names[] = {{"name.test", "127.0.0.1"}, {NULL, NULL}};
    static const char url[] = "http://name.test/";
    static char rule[64];
    static const char *const rules[] = {rule, NULL};
    struct origin *origin;
    struct fetcher *fetcher;
    unsigned descriptors;

    fetcher_destroy(start_fetcher(&config));
    descriptors = unit_open_descriptors();
    origin = origin_start(script);
    snprintf(rule, sizeof(rule), "name.test:80:name.test:%u", origin->port);
    names_use(&config, names);
    config.dns_ttl_us = 0;
    config.connect_to = rules;
    fetcher = start_fetcher(&config);
    expect_page(fetcher, "page", "%s", url);
    /* The options of the transfer, for the most part. */
    ck_assert_uint_ge(armed_walk(fetcher, &calls, &GET(OUTCOME_CLIENT, url, "A: b\r\n"), "page"),
                      40);
    expect_page(fetcher, "page", "%s", url);
    fetcher_destroy(fetcher);
    origin_stop(origin);
    ck_assert_uint_eq(unit_open_descriptors(), descriptors);
}
END_TEST

/* The consumer pauses the response at each piece, and the transfer cannot go on. */
START_TEST(going_on_after_a_pause)
{
    static char answer[100000] = "HTTP/1.0 200 OK\r\n\r\n", url[64];
    struct line lines[] = {{"/", answer, 0, CLOSE, 0}, {NULL, NULL, 0, KEEP, 0}};
    /* Not a GET, whose handle may be one that was used before: the calls are the same each time. */
    struct request request = {.client = OUTCOME_CLIENT,
                              .method = HTTP_OPTIONS,
                              .method_name = span_str("OPTIONS"),
                              .flags = REQUEST_STREAMS};
    size_t head = strlen(answer);
    struct origin *origin;
    struct fetcher *fetcher;
    struct outcome o;
    unsigned unable = 0;

    memset(answer + head, 'z', sizeof(answer) - 1 - head);
    origin = origin_start(lines);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", origin->port);
    request.url = span_str(url);
    fetcher = start_fetcher(&config);
    for (unsigned n = 1;; n++) {
        bool failed = armed_fetch(fetcher, &calls, n, &request, &o);

        unable += o.error == FETCH_INTERNAL && o.heads == 1;
        if (!failed)
            break;
        outcome_free(&o);
    }
    ck_assert_msg(o.error == FETCH_OK && strcmp(o.body, answer + head) == 0, "%s", o.sentence);
    outcome_free(&o);
    ck_assert_uint_ge(unable, 2);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

/* ---- the host's own addresses ------------------------------------------------------------ */

/* Without an answer of the kernel an address passes for one of the host's own: refused. */
static void
check_own(void *context)
{
    static const unsigned char foreign[] = {192, 0, 2, 1}, loopback[] = {127, 0, 0, 1};
    static const unsigned char loopback6[16] = {[15] = 1};
    unsigned *descriptors = context;
    struct own_addresses *own = own_addresses_open();
    const char *opening = faults_failed();
    bool here, failed;

    ck_assert((own == NULL) == (opening != NULL));
    if (own) {
        here = own_addresses_have(own, AF_INET, foreign);
        failed = faults_failed() != NULL;
        faults_fail_at(0, 0);
        ck_assert_msg(here == failed, "%s", failed ? faults_failed() : "none");
        /* The answer that was not read is passed over. */
        ck_assert(own_addresses_have(own, AF_INET, loopback));
        ck_assert(own_addresses_have(own, AF_INET6, loopback6));
        ck_assert(!own_addresses_have(own, AF_INET, foreign));
    }
    own_addresses_close(own);
    ck_assert_uint_eq(unit_open_descriptors(), *descriptors);
}

START_TEST(own_addresses)
{
    unsigned descriptors = unit_open_descriptors();

    ck_assert_uint_ge(faults_walk(check_own, &descriptors, EIO), 5);
}
END_TEST

/* ---- files ------------------------------------------------------------------------------- */

START_TEST(authorities_that_cannot_be_read)
{
    char why[512] = "";

    config.cacert = "/";
    ck_assert_ptr_null(fetcher_create(&config, why, sizeof(why)));
    ck_assert_str_eq(why, "cannot read /: Is a directory");
}
END_TEST

Suite *
unit_suite(void)
{
    TCase *tcase;
    Suite *suite = fixture_suite("fetch faults", &tcase);

    tcase_add_test(tcase, creating);
    tcase_add_test(tcase, fetching);
    tcase_add_test(tcase, going_on_after_a_pause);
    tcase_add_test(tcase, own_addresses);
    tcase_add_test(tcase, authorities_that_cannot_be_read);
    return suite;
}
