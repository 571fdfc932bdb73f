/* What a write invalidates by tags: those that origins give, and those of each origin. */
#define UNIT_STARTS_NO_THREAD

#include <stdio.h>

#include "proxy/invalidation.h"
#include "tests/unit/proxy/writes.h"

START_TEST(a_write_invalidates_the_tags_of_the_object_of_its_url)
{
    for (unsigned early = 0; early < 2; early++) {
        struct visit v;

        scene_begin(&(struct scene_options){0});
        scene.proxy_rules.invalidates_early = early;
        store_http(HOST "/a", FRESH "Surrogate-Key: x y\r\n");
        store_http(HOST "/b", FRESH "Surrogate-Key: y z\r\n");
        store_http(HOST "/c", FRESH "Surrogate-Key: z\r\n");
        begin_write(&v, HOST "/a", false);
        ck_assert(has_http(HOST "/a") == !early && has_http(HOST "/b") == !early &&
                  has_http(HOST "/c"));
        /* The tags are known still when the object is not there any more. */
        if (early)
            store_beside(HOST "/b", FRESH "Surrogate-Key: y z\r\n");
        scene_answer(HOST "/a", 204, "", 0);
        ck_assert(!has_http(HOST "/a") && !has_http(HOST "/b") && has_http(HOST "/c"));
        scene_end();
    }
}
END_TEST

START_TEST(an_error_leaves_tags_that_no_rule_gives)
{
    scene_begin(&(struct scene_options){0});
    store_http(HOST "/a", FRESH "Surrogate-Key: x\r\n");
    store_http(HOST "/b", FRESH "Surrogate-Key: x\r\n");
    write_to(HOST "/a", false, 500, "");
    ck_assert(has_http(HOST "/a") && has_http(HOST "/b"));
    scene_end();
}
END_TEST

/* Objects of RPC, however their clients have spelt the URL. */
START_TEST(tags_of_an_origin_are_invalidated_in_each_spelling)
{
    static const char *const spellings[] = {"http://Origin.test/users/1",
                                            "http://origin.test:80/users/1",
                                            "HTTP://origin.test/users/1"};

    writes_scene();
    scene_store("http://origin.test:8080/users/1", "", 10);
    for (unsigned i = 0; i < 3; i++) {
        struct visit v = {.url = spellings[i]};

        ck_assert(!visit(&v));
        scene_respond(HOST "/users/1", "", 10);
        ck_assert(scene_has(HOST "/users/1"));
        write_to(HOST "/users/9", false, 200, "");
        ck_assert(!scene_has(HOST "/users/1"));
    }
    ck_assert(scene_has("http://origin.test:8080/users/1"));
    scene_end();
}
END_TEST

START_TEST(tags_of_other_origins_are_invalidated_by_their_owner_only)
{
    for (unsigned owned = 0; owned < 2; owned++) {
        writes_scene();
        store_http(HOST "/users/1", FRESH);
        store_http(OTHER "/users/1", FRESH);
        store_http("http://origin.test.other/users/1", FRESH);
        write_to(HOST "/users/9", owned != 0, 200, "");
        ck_assert(!has_http(HOST "/users/1"));
        ck_assert(has_http(OTHER "/users/1") == !owned);
        ck_assert(has_http("http://origin.test.other/users/1") == !owned);
        scene_end();
    }
}
END_TEST

/* The write is refused, and nothing but what it concerns is removed. */
START_TEST(without_memory_for_the_tags_of_what_is_removed_a_write_is_refused)
{
    static char lines[6200];
    unsigned refused = 0, forwarded = 0;
    char fields[20];

    for (size_t left = 0; left < 65536; left += 2000) {
        struct visit v = {.url = HOST "/a", .http = true, .streams = true, .method = "PUT"};
        struct visit get;
        bool early;

        scene_begin(&(struct scene_options){.memory = 8 * 65536});
        scene.proxy_rules.invalidates_early = true;
        for (unsigned i = 0; i < 3; i++) {
            strcpy(lines, FRESH "Vary: X-A\r\nSurrogate-Key: ");
            memset(lines + strlen(lines), 'x' + (int)i, 6000);
            strcat(lines, "\r\n");
            snprintf(fields, sizeof(fields), "X-A: %u\r\n", i);
            ck_assert(!visit_http(&get, HOST "/a", fields));
            scene_answer(HOST "/a", 200, lines, 20);
            ck_assert(get.stored);
            memset(lines, 0, sizeof(lines));
        }
        store_http(HOST "/b", FRESH);
        store_http(OTHER "/a", FRESH);
        ck_assert(memory_charge(&scene.account, MEMORY_REQUESTS, 65536 - left));
        if (visit(&v))
            expect_failure(&v, FAILURE_OVERLOADED, "try again");
        else
            scene_answer(HOST "/a", 204, "", 0);
        memory_uncharge(&scene.account, MEMORY_REQUESTS, 65536 - left);
        ck_assert(visit_http(&get, HOST "/a", "X-A: 1\r\nCache-Control: only-if-cached\r\n"));
        early = get.fails != 0;
        ck_assert(early || v.fails);
        refused += early && v.fails;
        forwarded += !v.fails;
        ck_assert(has_http(HOST "/b") && has_http(OTHER "/a"));
        scene_end();
    }
    ck_assert_uint_gt(refused, 0);
    ck_assert_uint_gt(forwarded, 0);
}
END_TEST

/* A request that is kept, as those of fetches are. */
static const struct request *
keep(unsigned flags, const char *url)
{
    const struct request asked = {.flags = flags};
    const struct request *kept = request_keep(&asked, span_str(url), SCENE_CLIENT, &scene.account);

    ck_assert_ptr_nonnull(kept);
    return kept;
}

/* The memory of requests is used up: nothing else is removed, and nothing less. */
START_TEST(a_response_to_a_write_needs_no_memory_of_requests)
{
    for (unsigned early = 0; early < 2; early++) {
        const struct request *request;
        struct invalidation write;
        size_t taken = 0;

        scene_begin(&(struct scene_options){.memory = 8 * 65536});
        if (early)
            scene_add_rule(&scene.write_rules, "/a -> y");
        store_http(HOST "/a", FRESH "Surrogate-Key: x y\r\n");
        store_http(HOST "/b", FRESH "Surrogate-Key: x\r\n");
        store_http(HOST "/c", FRESH "Surrogate-Key: y\r\n");
        store_http(HOST "/d", FRESH "Surrogate-Key: z\r\n");
        request = keep(0, HOST "/a");
        invalidation_init(&write, &scene.proxy, request, span_str(HOST "/a"));
        ck_assert(invalidation_before(&write));
        while (memory_charge(&scene.account, MEMORY_REQUESTS, 16))
            taken += 16;
        invalidation_after(&write, 0, 204, span_str(""));
        memory_uncharge(&scene.account, MEMORY_REQUESTS, taken);
        invalidation_free(&write);
        request_release(&request);
        ck_assert(!has_http(HOST "/a") && !has_http(HOST "/b") && !has_http(HOST "/c") &&
                  has_http(HOST "/d"));
        scene_end();
    }
}
END_TEST

/* A second attempt may find nothing to purge, while what the first has purged is to be noted yet. */
START_TEST(a_second_attempt_of_a_write_forgets_no_mark_of_the_first)
{
    const struct request *request;
    struct invalidation write;

    scene_begin(&(struct scene_options){0});
    request = keep(0, HOST "/a");
    request_note_mark(request, 0, 7);
    request_note_mark(request, 1, 9);
    invalidation_init(&write, &scene.proxy, request, span_str(HOST "/a"));
    invalidation_unanswered(&write);
    ck_assert_uint_eq(request_mark(request, 0), 7);
    ck_assert_uint_eq(request_mark(request, 1), 9);
    request_note_mark(request, 0, 8);
    ck_assert_uint_eq(request_mark(request, 0), 8);
    invalidation_free(&write);
    request_release(&request);
    scene_end();
}
END_TEST

/* The variants of a URL may have more tags together than one object can. */
START_TEST(a_write_invalidates_all_tags_of_all_variants)
{
    enum { VARIANTS = 60, TAGS = 64 };
    static char lines[1200], url[100], fields[40];

    for (unsigned early = 0; early < 2; early++) {
        struct visit v;

        scene_begin(&(struct scene_options){0});
        scene.proxy_rules.invalidates_early = early;
        for (unsigned i = 0; i < VARIANTS; i++) {
            strcpy(lines, FRESH "Vary: X-A\r\nSurrogate-Key:");
            for (unsigned t = 0; t < TAGS; t++)
                snprintf(lines + strlen(lines), sizeof(lines) - strlen(lines), " tag%u-%u", i, t);
            strcat(lines, "\r\n");
            snprintf(fields, sizeof(fields), "X-A: %u\r\n", i);
            ck_assert(!visit_http(&v, HOST "/a", fields));
            scene_answer(HOST "/a", 200, lines, 20);
            ck_assert(v.stored);
        }
        for (unsigned i = 0; i < VARIANTS; i += 20) {
            snprintf(lines, sizeof(lines), FRESH "Surrogate-Key: tag%u-63\r\n", i);
            snprintf(url, sizeof(url), OTHER "/%u", i);
            store_http(url, lines);
        }
        store_http(HOST "/b", FRESH "Surrogate-Key: tag60-0\r\n");
        begin_write(&v, HOST "/a", true);
        scene_answer(HOST "/a", 204, "", 0);
        for (unsigned i = 0; i < VARIANTS; i += 20) {
            snprintf(url, sizeof(url), OTHER "/%u", i);
            ck_assert(!has_http(url));
        }
        ck_assert(!has_http(HOST "/a") && has_http(HOST "/b"));
        scene_end();
    }
}
END_TEST

/* No object has a tag of that length. */
START_TEST(a_write_to_a_long_path_invalidates_no_more_than_others)
{
    static char url[100000];

    /* Escaped, the second is longer than any URL. */
    for (unsigned i = 0; i < 2; i++) {
        const struct request *request;
        struct invalidation write;

        scene_begin(&(struct scene_options){0});
        scene_add_rule(&scene.tag_rules, "/* -> $1 all");
        store_http(HOST "/x", FRESH);
        scene_add_rule(&scene.write_rules, "/* -> never");
        store_http("http://host.test", FRESH "Surrogate-Key: other\r\n");
        strcpy(url, HOST "/");
        memset(url + strlen(url), ',', i ? 60000 : 3000);
        url[strlen(HOST "/") + (i ? 60000 : 3000)] = '\0';
        request = keep(REQUEST_OWNED, url);
        invalidation_init(&write, &scene.proxy, request, span_str(url));
        ck_assert(invalidation_before(&write));
        ck_assert(!has_http(HOST "/x") && has_http("http://host.test"));
        invalidation_after(&write, 0, 404, span_str(""));
        invalidation_free(&write);
        request_release(&request);
        ck_assert(has_http("http://host.test"));
        scene_end();
    }
}
END_TEST

START_TEST(a_write_invalidates_the_tags_of_the_objects_of_its_references)
{
    scene_begin(&(struct scene_options){0});
    store_http(HOST "/a", FRESH "Surrogate-Key: x\r\n");
    store_http(HOST "/b", FRESH "Surrogate-Key: x\r\n");
    store_http(HOST "/c", FRESH "Surrogate-Key: y\r\n");
    write_to(HOST "/new", false, 201, "Location: /a\r\n");
    ck_assert(!has_http(HOST "/a") && !has_http(HOST "/b") && has_http(HOST "/c"));
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: tags that writes invalidate");
    TCase *tests = tcase_create("writes");

    tcase_add_test(tests, a_write_invalidates_the_tags_of_the_object_of_its_url);
    tcase_add_test(tests, an_error_leaves_tags_that_no_rule_gives);
    tcase_add_test(tests, tags_of_an_origin_are_invalidated_in_each_spelling);
    tcase_add_test(tests, tags_of_other_origins_are_invalidated_by_their_owner_only);
    tcase_add_test(tests, without_memory_for_the_tags_of_what_is_removed_a_write_is_refused);
    tcase_add_test(tests, a_response_to_a_write_needs_no_memory_of_requests);
    tcase_add_test(tests, a_second_attempt_of_a_write_forgets_no_mark_of_the_first);
    tcase_add_test(tests, a_write_invalidates_all_tags_of_all_variants);
    tcase_add_test(tests, a_write_to_a_long_path_invalidates_no_more_than_others);
    tcase_add_test(tests, a_write_invalidates_the_tags_of_the_objects_of_its_references);
    suite_add_tcase(suite, tests);
    return suite;
}
