/* The lines of a file of users, as sunproxy passwd changes them. */
#define UNIT_STARTS_NO_THREAD

#include "client/user_lines.h"

#include "tests/unit/unit.h"

START_TEST(lines_are_changed)
{
    static const struct {
        const char *text, *name, *hash, *result;
        bool had_user;
    } rows[] = {
        {"", "anna", "$1", "anna:$1\n", false},
        {"", "anna", NULL, "", false},
        {"# office\n\nbert:$2", "anna", "$1", "# office\n\nbert:$2\nanna:$1\n", false},
        {"bert:$2\nanna:$3\ncleo:$4\n", "anna", "$1", "bert:$2\nanna:$1\ncleo:$4\n", true},
        {"bert:$2\nanna:$3\ncleo:$4\n", "anna", NULL, "bert:$2\ncleo:$4\n", true},
        {"anna:$3", "anna", NULL, "", true},
        {"anna:$3\nbert:$2\nanna:$4\n", "anna", "$1", "anna:$1\nbert:$2\n", true},
        {"annabel:$3\n#anna:$4\nann:$5\n anna:$6\nAnna:$7\nanna\n", "anna", NULL,
         "annabel:$3\n#anna:$4\nann:$5\n anna:$6\nAnna:$7\nanna\n", false},
        {"bert:$2\r\nanna:$3\r\n", "anna", "$1", "bert:$2\r\nanna:$1\n", true},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buf result;
        bool had_user;

        buf_init(&result, 1024);
        ck_assert(user_lines_change(span_str(rows[i].text), span_str(rows[i].name), rows[i].hash,
                                    &result, &had_user));
        ck_assert_str_eq(buf_str(&result), rows[i].result);
        ck_assert_int_eq(had_user, rows[i].had_user);
        buf_free(&result);
    }
}
END_TEST

START_TEST(a_result_that_is_too_long)
{
    struct buf result;
    bool had_user;

    buf_init(&result, 15);
    ck_assert(
        !user_lines_change(span_str("bert:$2\n"), span_str("anna"), "$1", &result, &had_user));
    buf_free(&result);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("user lines");
    TCase *tcase = tcase_create("lines");

    tcase_add_test(tcase, lines_are_changed);
    tcase_add_test(tcase, a_result_that_is_too_long);
    suite_add_tcase(suite, tcase);
    return suite;
}
