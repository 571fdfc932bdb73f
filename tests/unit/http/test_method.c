/* Methods by number. */
#include "http/method.h"

#include "tests/unit/unit.h"

START_TEST(names_are_numbers)
{
    static const struct {
        const char *name;
        enum http_method method;
        bool safe;
    } rows[] = {
        {"", HTTP_GET, true},
        {"GET", HTTP_GET, true},
        {"HEAD", HTTP_HEAD, true},
        {"POST", HTTP_POST, false},
        {"PUT", HTTP_PUT, false},
        {"DELETE", HTTP_DELETE, false},
        {"CONNECT", HTTP_CONNECT, false},
        {"OPTIONS", HTTP_OPTIONS, true},
        {"TRACE", HTTP_TRACE, true},
        {"PATCH", HTTP_PATCH, false},
        {"PURGE", HTTP_PURGE, false},
        /* case-sensitive, and whole */
        {"get", HTTP_OTHER, false},
        {"GE", HTTP_OTHER, false},
        {"GETS", HTTP_OTHER, false},
        {"OPTION", HTTP_OTHER, false},
        {"OPTIONSX", HTTP_OTHER, false},
        {"PROPFIND", HTTP_OTHER, false},
        {"PROPPATCH", HTTP_OTHER, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum http_method method = http_method_of(span_str(rows[i].name));

        ck_assert_msg(method == rows[i].method, "%s: %d", rows[i].name, (int)method);
        ck_assert_msg(http_method_is_safe(method) == rows[i].safe, "%s", rows[i].name);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/method");
    TCase *tcase = tcase_create("all");

    tcase_add_test(tcase, names_are_numbers);
    suite_add_tcase(suite, tcase);
    return suite;
}
