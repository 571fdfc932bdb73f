/* Spellings of a URL that RFC 3986 section 6.2 makes equal: objects, fetches, and purges. */
#define UNIT_STARTS_NO_THREAD

#include "proxy/control.h"
#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"

static const struct scene_options defaults;
static const char *const spellings[] = {
    "HTTP://origin.test/page",     "http://ORIGIN.Test/page",      "http://origin.test:80/page",
    "http://origin.test:/page",    "http://origin.test:0080/page", "http://origin.test/page#part",
    "hTTp://Origin.test:80/page#", "http://origin.test./page",     "http:///origin.test/page",
    "http:/origin.test/page",      "http://%6frigin.test/page",
};
static const char *const others[] = {
    "https://origin.test/page", "http://origin.test:8080/page", "http://origin.test/PAGE",
    "http://origin.test/page?", "http://origin.test/%70age",    "http://origin.test/./page",
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* A request that is answered at once: the outcome. */
static bool
is_hit(const char *url)
{
    struct visit v = {.url = url};

    if (!visit(&v)) {
        scene_respond(NULL, "", 5);
        return false;
    }
    expect_body(&v, OUTCOME_HIT, 5);
    return true;
}

START_TEST(spellings_of_a_url_are_one_object)
{
    scene_begin(&defaults);
    /* The first one is fetched under the spelling that the HTTP front makes. */
    ck_assert(!visit(&(struct visit){.url = spellings[0]}));
    ck_assert_ptr_nonnull(scene_find(URL));
    scene_respond(URL, "", 5);
    for (size_t i = 0; i < LENGTH(spellings); i++)
        ck_assert_msg(is_hit(spellings[i]), "%s", spellings[i]);
    ck_assert(is_hit(URL));
    for (size_t i = 0; i < LENGTH(others); i++)
        ck_assert_msg(!is_hit(others[i]), "%s", others[i]);
    ck_assert_uint_eq(scene_stats().pages, 1 + LENGTH(others));
    scene_end();
}
END_TEST

START_TEST(requests_in_several_spellings_share_a_fetch)
{
    struct visit v[LENGTH(spellings)];

    scene_begin(&defaults);
    for (size_t i = 0; i < LENGTH(spellings); i++) {
        v[i] = (struct visit){.url = spellings[i]};
        ck_assert(!visit(&v[i]));
    }
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_respond(URL, "", 5);
    for (size_t i = 0; i < LENGTH(spellings); i++)
        expect_body(&v[i], i ? OUTCOME_COALESCED : OUTCOME_MISS, 5);
    scene_end();
}
END_TEST

START_TEST(purges_find_what_they_name_in_any_spelling)
{
    static const char *const prefixes[] = {"HTTP://Origin.te",       "HTTP://Origin.test",
                                           "HTTP://Origin.test:80/", "http://ORIGIN.test:/pa",
                                           "http://origin.test./",   "http://%6frigin.test/"};

    scene_begin(&defaults);
    for (size_t i = 0; i < LENGTH(spellings); i++) {
        struct span url = span_str(spellings[i]);

        ck_assert(!is_hit(URL));
        ck_assert_uint_eq(control_count(&scene.proxy, CONTROL_PURGE_URL, url), 1);
        ck_assert_uint_eq(control_expire(&scene.proxy, CONTROL_PURGE_URL, url), 1);
        ck_assert_uint_eq(control_purge(&scene.proxy, CONTROL_PURGE_URL, url), 1);
    }
    for (size_t i = 0; i < LENGTH(prefixes); i++) {
        struct span prefix = span_str(prefixes[i]);

        ck_assert(!is_hit(URL));
        ck_assert_uint_eq(control_count(&scene.proxy, CONTROL_PURGE_PREFIX, prefix), 1);
        ck_assert_uint_eq(control_expire(&scene.proxy, CONTROL_PURGE_PREFIX, prefix), 1);
        ck_assert_uint_eq(control_purge(&scene.proxy, CONTROL_PURGE_PREFIX, prefix), 1);
    }
    scene_end();
}
END_TEST

/* A simulator compares URLs byte by byte, and a replay has to hit where it does. */
START_TEST(without_freshness_urls_are_compared_as_they_were_sent)
{
    scene_begin(&(struct scene_options){.freshness_off = true});
    ck_assert(!is_hit(URL));
    for (size_t i = 0; i < LENGTH(spellings); i++) {
        ck_assert_msg(!is_hit(spellings[i]), "%s", spellings[i]);
        ck_assert_msg(is_hit(spellings[i]), "%s", spellings[i]);
    }
    ck_assert_uint_eq(control_purge(&scene.proxy, CONTROL_PURGE_URL, span_str(spellings[0])), 1);
    ck_assert_uint_eq(control_purge(&scene.proxy, CONTROL_PURGE_PREFIX, span_str("hTTp:")), 1);
    ck_assert(is_hit(URL));
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: spellings of URLs");
    TCase *cases = tcase_create("all");

    tcase_add_test(cases, spellings_of_a_url_are_one_object);
    tcase_add_test(cases, requests_in_several_spellings_share_a_fetch);
    tcase_add_test(cases, purges_find_what_they_name_in_any_spelling);
    tcase_add_test(cases, without_freshness_urls_are_compared_as_they_were_sent);
    suite_add_tcase(suite, cases);
    return suite;
}
