/* Lines of the protocol of Squid's basic authenticators. */
#define UNIT_STARTS_NO_THREAD

#include "server/users/helper_line.h"

#include <stdio.h>

#include "tests/unit/unit.h"

static void
is_written(const char *expected, unsigned channel, const char *name, const char *password)
{
    char line[HELPER_QUESTION_MAX + 1];

    line[helper_line_write(line, channel, name, password)] = '\0';
    ck_assert_str_eq(line, expected);
}

START_TEST(questions)
{
    char name[HTTP_BASIC_NAME_MAX + 1], password[HTTP_BASIC_PASSWORD_MAX + 1],
        line[HELPER_QUESTION_MAX];

    is_written("anna secret\n", HELPER_NO_CHANNEL, "anna", "secret");
    is_written("0 anna secret\n", 0, "anna", "secret");
    is_written("63 an%20na a%25b%3Ac%0A%C3%BC\n", 63, "an na", "a%b:c\n\xc3\xbc");
    is_written("a-._~Z09 %2B%2F\n", HELPER_NO_CHANNEL, "a-._~Z09", "+/");
    memset(name, ' ', HTTP_BASIC_NAME_MAX);
    memset(password, ' ', HTTP_BASIC_PASSWORD_MAX);
    name[HTTP_BASIC_NAME_MAX] = password[HTTP_BASIC_PASSWORD_MAX] = '\0';
    ck_assert_uint_le(helper_line_write(line, 4294967294u, name, password), sizeof(line));
}
END_TEST

START_TEST(answers)
{
    static const struct {
        const char *line;
        bool has_channel;
        enum helper_reply reply;
        unsigned channel;
        const char *message;
    } rows[] = {
        {"OK", false, HELPER_REPLY_OK, 0, ""},
        {"OK\r", false, HELPER_REPLY_OK, 0, ""},
        {"OK user=\"anna\" ttl=3", false, HELPER_REPLY_OK, 0, "user=\"anna\" ttl=3"},
        {"ERR", false, HELPER_REPLY_ERR, 0, ""},
        {"ERR Wrong password", false, HELPER_REPLY_ERR, 0, "Wrong password"},
        {"BH Success", false, HELPER_REPLY_BH, 0, "Success"},
        {"ERR message=\"Wrong password\"", false, HELPER_REPLY_ERR, 0, "Wrong password"},
        {"BH message=\"no directory", false, HELPER_REPLY_BH, 0, "no directory"},
        {"BH log=x message=none y=z", false, HELPER_REPLY_BH, 0, "none"},
        {"BH message=", false, HELPER_REPLY_BH, 0, ""},
        {"BH notmessage=x", false, HELPER_REPLY_BH, 0, "notmessage=x"},
        {"7 OK", true, HELPER_REPLY_OK, 7, ""},
        {"12 ERR message=x", true, HELPER_REPLY_ERR, 12, "x"},
        {"", false, HELPER_REPLY_NONSENSE, 0, ""},
        {" ", false, HELPER_REPLY_NONSENSE, 0, ""},
        {"ok", false, HELPER_REPLY_NONSENSE, 0, ""},
        {"OKAY", false, HELPER_REPLY_NONSENSE, 0, ""},
        {" OK", false, HELPER_REPLY_NONSENSE, 0, ""},
        {"7 OK", false, HELPER_REPLY_NONSENSE, 0, ""},
        {"OK", true, HELPER_REPLY_NONSENSE, 0, ""},
        {"-1 OK", true, HELPER_REPLY_NONSENSE, 0, ""},
        {"x OK", true, HELPER_REPLY_NONSENSE, 0, ""},
        {"99999999999999999999 OK", true, HELPER_REPLY_NONSENSE, 0, ""},
        {"7", true, HELPER_REPLY_NONSENSE, 7, ""},
        {"TT x", false, HELPER_REPLY_NONSENSE, 0, ""},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct span message;
        unsigned channel;

        ck_assert_msg(helper_line_read(span_str(rows[i].line), rows[i].has_channel, &channel,
                                       &message) == rows[i].reply,
                      "%s", rows[i].line);
        if (rows[i].reply == HELPER_REPLY_NONSENSE)
            continue;
        ck_assert_uint_eq(channel, rows[i].channel);
        ck_assert_msg(span_equal(message, span_str(rows[i].message)), "%s", rows[i].line);
    }
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("helper lines");
    TCase *tcase = tcase_create("lines");

    tcase_add_test(tcase, questions);
    tcase_add_test(tcase, answers);
    suite_add_tcase(suite, tcase);
    return suite;
}
