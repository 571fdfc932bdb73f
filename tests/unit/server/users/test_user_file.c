/* The file of users. */
#define UNIT_STARTS_NO_THREAD

#include "server/users/user_file.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/server/users/made_hash.h"
#include "tests/unit/unit.h"

#define HASH "$2b$05$A753hO9ArnQDrjjLF1BReeZiPD9Qoi0y3qoCJo2B87wOnmnKbnd7y"
#define OTHER "$2b$05$A753hO9ArnQDrjjLF1BReeZiPD9Qoi0y3qoCJo2B87wOnmnKbnd7z"

static struct buf why;

static struct user_file *
read_text(const char *text)
{
    buf_reset(&why);
    return user_file_read(span_str(text), "users", &why);
}

static void
set_up(void)
{
    buf_init(&why, 1 << 20);
}

static void
tear_down(void)
{
    buf_free(&why);
}

START_TEST(users_are_found)
{
    struct user_file *file = read_text("# the office\n\nzoe:" HASH "\r\n\xc3\xa4nne:" OTHER
                                       "\nan na:" HASH "\n#zoe:x\nanna:" OTHER);

    ck_assert_msg(file, "%s", buf_str(&why));
    ck_assert_uint_eq(user_file_count(file), 4);
    ck_assert_str_eq(user_file_find(file, span_str("zoe")), HASH);
    ck_assert_str_eq(user_file_find(file, span_str("anna")), OTHER);
    ck_assert_str_eq(user_file_find(file, span_str("an na")), HASH);
    ck_assert_str_eq(user_file_find(file, span_str("\xc3\xa4nne")), OTHER);
    ck_assert_ptr_null(user_file_find(file, span_str("")));
    ck_assert_ptr_null(user_file_find(file, span_str("ann")));
    ck_assert_ptr_null(user_file_find(file, span_str("annaa")));
    ck_assert_ptr_null(user_file_find(file, span_str("Zoe")));
    ck_assert_ptr_eq(user_file_pick(file, span_str("x")), user_file_pick(file, span_str("x")));
    user_file_free(file);
    user_file_free(NULL);
}
END_TEST

START_TEST(each_error_has_its_line)
{
    static const struct {
        const char *text, *said;
    } rows[] = {
        {"", "users:1: the file has no user"},
        {"# none\n\n", "users:2: the file has no user"},
        {"a:" HASH "\nb\n", "users:2: a line is NAME:HASH, and this one has no colon"},
        {"a:" HASH "\nb:" HASH "\na:" OTHER "\n", "users:3: line 1 has a user of the same name"},
        {"a:" HASH "\na:" HASH "\n", "users:2: line 1 has a user of the same name"},
        {"\n:" HASH "\n", "users:2: the name is missing"},
        {"a\tb:" HASH "\n", "users:1: the name is not UTF-8 without control characters"},
        {"\xe4nne:" HASH "\n", "users:1: the name is not UTF-8 without control characters"},
        {"a:$2b$05$A753hO9ArnQ", "users:1: the hash is cut, or more follows it"},
        {"a:" HASH ":1:2\n", "users:1: the hash is cut, or more follows it"},
        {"a:secret\n",
         "users:1: this is no hash of a method that is known; sunproxy passwd makes one"},
        {"a:\nb:" HASH "\nc\n",
         "users:1: this is no hash of a method that is known; sunproxy passwd makes one\n"
         "users:3: a line is NAME:HASH, and this one has no colon"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ck_assert_ptr_null(read_text(rows[i].text));
        ck_assert_str_eq(buf_str(&why), rows[i].said);
    }
    buf_reset(&why);
    ck_assert_ptr_null(user_file_read(span_of("a:" HASH "\0\n", sizeof(HASH) + 3), "users", &why));
    ck_assert_str_eq(buf_str(&why), "users:1: a zero byte");
}
END_TEST

START_TEST(names_have_a_bound)
{
    char text[512];

    snprintf(text, sizeof(text), "%0255d:" HASH "\n", 7);
    user_file_free(read_text(text));
    ck_assert_str_eq(buf_str(&why), "");
    snprintf(text, sizeof(text), "%0256d:" HASH "\n", 7);
    ck_assert_ptr_null(read_text(text));
    ck_assert_str_eq(buf_str(&why), "users:1: the name is too long");
}
END_TEST

START_TEST(many_errors_are_cut_short)
{
    char text[400] = "";

    for (unsigned i = 0; i < 100; i++)
        strcat(text, "a\n");
    ck_assert_ptr_null(read_text(text));
    ck_assert_ptr_nonnull(strstr(buf_str(&why), "users:20: "));
    ck_assert_ptr_null(strstr(buf_str(&why), "users:21: "));
    ck_assert_ptr_nonnull(strstr(buf_str(&why), "\nand further errors"));
}
END_TEST

START_TEST(a_file_has_a_bound)
{
    char *text = calloc(1, USER_FILE_MAX + 1);

    memset(text, '\n', USER_FILE_MAX + 1);
    ck_assert_ptr_null(user_file_read(span_of(text, USER_FILE_MAX + 1), "users", &why));
    ck_assert_ptr_nonnull(strstr(buf_str(&why), "larger than 8388608 bytes"));
    buf_reset(&why);
    memcpy(text, "a:" HASH, sizeof(HASH) + 1);
    user_file_free(user_file_read(span_of(text, USER_FILE_MAX), "users", &why));
    ck_assert_str_eq(buf_str(&why), "");
    free(text);
}
END_TEST

START_TEST(many_users_are_found)
{
    enum { USERS = 100000 };
    struct buf text;
    struct user_file *file;
    char name[16];

    buf_init(&text, USER_FILE_MAX);
    for (unsigned i = 0; i < USERS; i++)
        buf_printf(&text, "u%u:%s\n", (i * 7919u) % USERS, i % 2 ? HASH : OTHER);
    file = user_file_read(buf_span(&text), "users", &why);
    ck_assert_msg(file, "%s", buf_str(&why));
    for (unsigned i = 0; i < USERS; i++) {
        snprintf(name, sizeof(name), "u%u", (i * 7919u) % USERS);
        ck_assert_str_eq(user_file_find(file, span_str(name)), i % 2 ? HASH : OTHER);
    }
    user_file_free(file);
    buf_free(&text);
}
END_TEST

START_TEST(files_are_compared_by_user)
{
    struct user_file *a = read_text("a:" HASH "\nb:" HASH "\nc:" HASH "\n");
    struct user_file *b = read_text("a:" HASH "\nb:" OTHER "\nd:" HASH "\n");

    ck_assert(user_file_has_same(a, b, span_str("a")));
    ck_assert(!user_file_has_same(a, b, span_str("b")));
    ck_assert(!user_file_has_same(a, b, span_str("c")));
    ck_assert(!user_file_has_same(a, b, span_str("d")));
    ck_assert(!user_file_has_same(a, b, span_str("e")));
    ck_assert(!user_file_has_same(a, NULL, span_str("a")));
    ck_assert(!user_file_has_same(NULL, NULL, span_str("a")));
    user_file_free(a);
    user_file_free(b);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("user file");
    TCase *tcase = tcase_create("file");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, users_are_found);
    tcase_add_test(tcase, each_error_has_its_line);
    tcase_add_test(tcase, names_have_a_bound);
    tcase_add_test(tcase, many_errors_are_cut_short);
    tcase_add_test(tcase, a_file_has_a_bound);
    tcase_add_test(tcase, many_users_are_found);
    tcase_add_test(tcase, files_are_compared_by_user);
    suite_add_tcase(suite, tcase);
    return suite;
}
