/* Rules that derive tags from paths: their syntax, and what they match. */
#define UNIT_STARTS_NO_THREAD

#include <stdio.h>

#include "cache/object.h"
#include "rules/tag_rules.h"
#include "tests/unit/unit.h"

START_TEST(tags_of_paths)
{
    static const struct {
        const char *rule, *url, *tags;
    } rows[] = {
        {"/* -> $1", "http://a/users/17", "users"},
        {"/* -> $1", "http://a/users", "users"},
        {"/* -> $1", "http://a/users?x=/paths", "users"},
        {"/* -> $1", "http://a/users#x", "users"},
        {"/* -> $1", "http://a/", ""},
        {"/* -> $1", "http://a", ""},
        {"/* -> $1", "http://a?/users", ""},
        {"/* -> $1", "users/17", ""},
        {"/* -> $1", "", ""},
        {"/*->/$1", "http://a/users/17", "/users"},
        {"/*/* -> $2-of-$1 $2$2", "http://a/users/17/x", "17-of-users 1717"},
        {"/*/* -> $1", "http://a/users", ""},
        {"/ -> all", "http://a/", "all"},
        {"/ -> all", "http://a/users/17", "all"},
        {"/users -> u v u", "http://a/users/17", "u v"},
        {"/users -> u", "http://a/users2", ""},
        {"/users -> u", "http://a/Users", ""},
        {"/users -> u", "http://a/x/users", ""},
        {"/users/ -> u", "http://a/users", "u"},
        {" \t/users/*/posts\t -> \t posts-$1 ", "http://a/users/17/posts/4", "posts-17"},
        {"/users/*/posts -> posts-$1", "http://a/users/17/likes", ""},
        /* Equal paths have equal tags: RFC 3986 section 6.2.2. */
        {"/users/* -> $1", "http://a/%75s%65rs/%31%37", "17"},
        {"/%75sers/* -> $1", "http://a/users/17", "17"},
        {"/users/* -> $1", "http://a//users//17", "17"},
        {"/users/* -> $1", "http://a/x/../users/./17/y", "17"},
        {"/users/* -> $1", "http://a/x/%2e%2E/users/17", "17"},
        {"/users/* -> $1", "http://a/../../users/17", "17"},
        {"/users/* -> $1", "http://a/users/..", ""},
        {"/x/*/../*/. -> $1", "http://a/x/y/z", "y"},
        {"/ -> all", "http://a", "all"},
        {"/* -> $1", "http://a/..;/users", "..;"},
        {"/* -> $1", "http://a/a%2fb", "a%2Fb"},
        {"/* -> $1", "http://a/a%2", "a%2"},
        {"/* -> $1", "http://a/%zz%", "%zz%"},
        /* A tag is a word, also where a URL is none. */
        {"/* -> $1", "http://a/a,b", "a%2Cb"},
        {"/* -> $1", "http://a/a b\xc3", "a%20b%C3"},
        {"/* -> $1", "http://a/$1*", "$1*"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tag_rules rules = {0};
        struct buf why, tags;

        buf_init(&why, 1024);
        buf_init(&tags, OBJECT_MAX_TAG_BYTES);
        ck_assert_msg(tag_rules_add(&rules, rows[i].rule, &why), "%s", buf_str(&why));
        ck_assert(tag_rules_apply(&rules, span_str(rows[i].url), &tags));
        ck_assert_msg(span_equal(buf_span(&tags), span_str(rows[i].tags)), "row %zu: \"%s\"", i,
                      buf_str(&tags));
        buf_free(&why);
        buf_free(&tags);
        tag_rules_free(&rules);
    }
}
END_TEST

static bool
collect(void *context, struct span tag)
{
    struct buf *tags = context;

    return (!tags->len || buf_append_char(tags, ' ')) && buf_append(tags, tag.ptr, tag.len);
}

/* A write may concern more than the objects of its URL have as tags. */
START_TEST(tags_of_writes)
{
    static const struct {
        const char *url, *tags;
    } rows[] = {
        {"http://a/users/7", "users 7-of-users"},
        {"http://a/users", "users"},
        {"http://a/", ""},
        {"http://a/users%2F7", "users%2F7 users 7-of-users"},
        {"http://a/users%2f7?x", "users%2F7 users 7-of-users"},
        {"http://a/users;v=1/7", "users;v=1 users 7-of-users;v=1 7-of-users"},
        {"http://a/users/7;a;b", "users users 7;a;b-of-users 7-of-users"},
        {"http://a/x;y%2Fusers%2F7", "x;y%2Fusers%2F7 x users-of-x"},
        {"http://a/x/..;/users/7", "x users ..;-of-x 7-of-users"},
        {"http://a/;x", ";x"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tag_rules rules = {0};
        struct buf why, tags;

        buf_init(&why, 1024);
        buf_init(&tags, 1024);
        ck_assert(tag_rules_add(&rules, "/* -> $1", &why));
        ck_assert(tag_rules_add(&rules, "/*/* -> $2-of-$1", &why));
        ck_assert(tag_rules_visit(&rules, span_str(rows[i].url), collect, &tags));
        ck_assert_msg(span_equal(buf_span(&tags), span_str(rows[i].tags)), "row %zu: \"%s\"", i,
                      buf_str(&tags));
        buf_free(&why);
        buf_free(&tags);
        tag_rules_free(&rules);
    }
}
END_TEST

START_TEST(rules_add_up)
{
    static const char *const texts[] = {"/* -> $1", "/users/* -> user-$1", "/users -> users all",
                                        "/paths -> never"};
    struct tag_rules rules = {0};
    struct buf why, tags;

    buf_init(&why, 1024);
    buf_init(&tags, OBJECT_MAX_TAG_BYTES);
    buf_append_str(&tags, "own");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        ck_assert(tag_rules_add(&rules, texts[i], &why));
    ck_assert(tag_rules_apply(&rules, span_str("http://a/users/17"), &tags));
    ck_assert_str_eq(buf_str(&tags), "own users user-17 all");
    buf_free(&tags);
    tag_rules_free(&rules);
}
END_TEST

START_TEST(rules_that_are_refused)
{
    static const struct {
        const char *rule, *why;
    } rows[] = {
        {"", "PATTERN -> TAG"},
        {"/users = users", "PATTERN -> TAG"},
        {"-> users", "does not begin with \"/\""},
        {"users -> users", "does not begin with \"/\""},
        {"http://a/users -> users", "does not begin with \"/\""},
        {"/users?x -> users", "without \"?\""},
        {"/users#x -> users", "without \"?\""},
        {"/us ers -> users", "visible"},
        {"/\xc3\xbc -> users", "visible"},
        {"/user* -> users", "whole segment"},
        {"/** -> users", "whole segment"},
        {"/*/*/*/*/*/*/*/*/*/* -> users", "more than 9"},
        {"/users ->", "no tag"},
        {"/users -> ", "no tag"},
        {"/users -> a,b", "without commas"},
        {"/users -> \xc3\xbc", "visible"},
        {"/users -> $1", "number of a \"*\""},
        {"/* -> $2", "number of a \"*\""},
        {"/* -> $0", "number of a \"*\""},
        {"/* -> $", "number of a \"*\""},
        /* A dot segment removes what is before it. */
        {"/*/.. -> $1", "number of a \"*\""},
        {"/x/*/%2e%2E -> t-$1", "number of a \"*\""},
        {"/*/*/.. -> $2", "number of a \"*\""},
        {"/* -> $x", "number of a \"*\""},
    };
    struct tag_rules rules = {0};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buf why;

        buf_init(&why, 1024);
        ck_assert_msg(!tag_rules_add(&rules, rows[i].rule, &why), "%s", rows[i].rule);
        ck_assert_msg(strstr(buf_str(&why), rows[i].why), "%s", buf_str(&why));
        ck_assert_uint_eq(rules.count, 0);
        buf_free(&why);
    }
    tag_rules_free(&rules);
}
END_TEST

START_TEST(tags_are_bounded)
{
    static char url[OBJECT_MAX_TAG_BYTES + 100];
    struct tag_rules rules = {0};
    char text[400] = "/ ->";
    struct buf why, tags;

    buf_init(&why, 1024);
    buf_init(&tags, OBJECT_MAX_TAG_BYTES);
    for (unsigned i = 0; i <= OBJECT_MAX_TAGS; i++) {
        if (i == OBJECT_MAX_TAGS) {
            ck_assert(tag_rules_add(&rules, text, &why));
            ck_assert(tag_rules_apply(&rules, span_str("http://a/"), &tags));
        }
        snprintf(text + strlen(text), sizeof(text) - strlen(text), " %u", i);
    }
    ck_assert(!tag_rules_add(&rules, text, &why));
    ck_assert(tag_rules_add(&rules, "/ -> another", &why));
    buf_reset(&tags);
    ck_assert(!tag_rules_apply(&rules, span_str("http://a/"), &tags));
    tag_rules_free(&rules);

    ck_assert(tag_rules_add(&rules, "/* -> $1", &why));
    memcpy(url, "http://a/", 9);
    memset(url + 9, 'x', OBJECT_MAX_TAG_BYTES + 1);
    buf_reset(&tags);
    ck_assert(!tag_rules_apply(&rules, span_of(url, 9 + OBJECT_MAX_TAG_BYTES + 1), &tags));
    buf_reset(&tags);
    ck_assert(tag_rules_apply(&rules, span_of(url, 9 + OBJECT_MAX_TAG_BYTES), &tags));
    ck_assert_uint_eq(tags.len, OBJECT_MAX_TAG_BYTES);
    tag_rules_free(&rules);
    buf_free(&tags);
    buf_free(&why);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: rules for tags");
    TCase *tests = tcase_create("rules");

    tcase_add_test(tests, tags_of_paths);
    tcase_add_test(tests, tags_of_writes);
    tcase_add_test(tests, rules_add_up);
    tcase_add_test(tests, rules_that_are_refused);
    tcase_add_test(tests, tags_are_bounded);
    suite_add_tcase(suite, tests);
    return suite;
}
