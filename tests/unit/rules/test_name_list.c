/* Lists of hosts and users, and what is wrong with a file of them. */
#include "rules/name_list.h"

#include <stdio.h>

#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

START_TEST(hosts)
{
    static const char text[] = "# games\n\nExample.COM # a comment\r\n.play.test\n*.fun.test\n"
                               "=alone.test\n=both.test\nboth.test\nlast.test.\n";
    static const struct {
        const char *host;
        bool has;
    } rows[] = {
        {"example.com", true},
        {"www.example.com", true},
        {"a.b.example.com", true},
        {"myexample.com", false},
        {"com", false},
        {"play.test", true},
        {"x.play.test", true},
        {"fun.test", true},
        {"x.fun.test", true},
        {"alone.test", true},
        {"x.alone.test", false},
        {"x.both.test", true},
        {"last.test", true},
        {"", false},
        {"test", false},
        {"games", false},
    };
    struct name_list list;
    struct buf why;

    buf_init(&why, 1024);
    ck_assert_msg(name_list_init(&list, NAME_LIST_HOSTS, span_str(text), "f", &why), "%s", buf_str(&why));
    ck_assert_uint_eq(list.count, 6);
    for (size_t i = 0; i < LENGTH(rows); i++)
        ck_assert_msg(name_list_has_host(&list, span_str(rows[i].host)) == rows[i].has, "%s",
                      rows[i].host);
    name_list_free(&list);
    buf_free(&why);
}
END_TEST

START_TEST(refused)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"a.test\nb.test", "f:2: the last line has no end"},
        {"", "f:0: the list has no name"},
        {"# a\n", "f:1: the list has no name"},
        {"a.test\nb test\n", "f:2: is not the name"},
        {"a..test\n", "f:1: is not the name"},
        {"*a.test\n", "f:1: is not the name"},
        {"*\n", "f:1: is not the name"},
        {"=\n", "f:1: is not the name"},
        {"http://a.test/\n", "f:1: is not the name"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct name_list list;
        struct buf why;

        buf_init(&why, 1024);
        ck_assert_msg(!name_list_init(&list, NAME_LIST_HOSTS, span_str(rows[i].text), "f", &why), "%s",
                      rows[i].text);
        ck_assert_msg(strstr(buf_str(&why), rows[i].why), "%s", buf_str(&why));
        buf_free(&why);
    }
}
END_TEST

START_TEST(users)
{
    static const char text[] = "# staff\nalice\n  Bob Smith \r\n\xc3\xa4rger\na#b\nalice\n";
    static const char *const bad[] = {"a:b\n", "a\x01\n", "a"};
    struct name_list list;
    struct buf why;

    buf_init(&why, 4096);
    ck_assert(name_list_init(&list, NAME_LIST_USERS, span_str(text), "f", &why));
    ck_assert_uint_eq(list.count, 4);
    ck_assert(name_list_has(&list, span_str("alice")));
    ck_assert(name_list_has(&list, span_str("Bob Smith")));
    ck_assert(name_list_has(&list, span_str("\xc3\xa4rger")));
    ck_assert(name_list_has(&list, span_str("a#b")));
    ck_assert(!name_list_has(&list, span_str("Alice")));
    ck_assert(!name_list_has(&list, span_str("staff")));
    ck_assert(!name_list_has(&list, span_str("x.alice")));
    name_list_free(&list);
    for (size_t i = 0; i < LENGTH(bad); i++)
        ck_assert(!name_list_init(&list, NAME_LIST_USERS, span_str(bad[i]), "f", &why));
    ck_assert_ptr_nonnull(strstr(buf_str(&why), "f:1: is not the name of a user"));
    buf_free(&why);
}
END_TEST

START_TEST(many)
{
    enum { NAMES = 100000 };
    struct name_list list;
    struct buf text;
    char name[64];

    buf_init(&text, (size_t)1 << 24);
    for (unsigned i = 0; i < NAMES; i++)
        buf_printf(&text, "host%u.example%u.test\n", i, i % 1000);
    ck_assert(name_list_init(&list, NAME_LIST_HOSTS, buf_span(&text), "f", &text));
    ck_assert_uint_eq(list.count, NAMES);
    for (unsigned i = 0; i < NAMES; i++) {
        snprintf(name, sizeof(name), "w.host%u.example%u.test", i, i % 1000);
        ck_assert(name_list_has_host(&list, span_str(name)));
        snprintf(name, sizeof(name), "w.host%u.example%u.test", i, (i + 1) % 1000);
        ck_assert(!name_list_has_host(&list, span_str(name)));
    }
    name_list_free(&list);
    buf_free(&text);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("rules/name_list");
    TCase *tests = tcase_create("name_list");

    tcase_add_test(tests, hosts);
    tcase_add_test(tests, refused);
    tcase_add_test(tests, users);
    tcase_add_test(tests, many);
    suite_add_tcase(suite, tests);
    return suite;
}
