/* Credentials of the scheme Basic. */
#include "http/basic_credentials.h"

#include <stdio.h>

#include "base/base64.h"
#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* "NAME|PASSWORD", or "-". */
static const char *
read(const char *value)
{
    static char text[HTTP_BASIC_BYTES + 2];
    char bytes[HTTP_BASIC_BYTES];
    struct http_basic basic;

    if (!http_basic_read(span_str(value), bytes, &basic))
        return "-";
    snprintf(text, sizeof(text), "%.*s|%.*s", (int)basic.name.len, basic.name.ptr,
             (int)basic.password.len, basic.password.ptr);
    return text;
}

START_TEST(values)
{
    static const struct {
        const char *value, *result;
    } rows[] = {
        /* RFC 7617 sections 2 and 2.1. */
        {"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin|open sesame"},
        {"Basic dGVzdDoxMjPCow==", "test|123\xc2\xa3"},
        {"bAsIc   YTpi", "a|b"},
        {"Basic YTo=", "a|"},
        {"Basic YTpiOmM=", "a|b:c"},
        {"Basic", "-"},
        {"Basic ", "-"},
        {"Basic\tYTpi", "-"},
        {"BasicYTpi", "-"},
        {"Bearer YTpi", "-"},
        {"Basic YTpi,", "-"},
        {"Basic YTpi YTpi", "-"},
        {"Basic YTpi=", "-"},
        {"Basic YTo", "-"},
        {"Basic YTo==", "-"},
        {"Basic Y===", "-"},
        {"Basic YTp=", "-"}, /* bits behind the last byte */
        {"Basic YT-_", "-"},
        {"Basic Og==", "-"},     /* ":" */
        {"Basic OmE=", "-"},     /* ":a" */
        {"Basic YWI=", "-"},     /* "ab" */
        {"Basic YTpiAA==", "-"}, /* "a:b\0" */
        {"Basic YQA6Yg==", "-"}, /* "a\0:b" */
        {"Basic YTpiCg==", "-"}, /* "a:b\n" */
        {"Basic YX86Yg==", "-"}, /* DEL */
        {"Basic YcKFOmI=", "-"}, /* NEL */
        {"Basic YTqj", "-"},     /* ISO 8859-1 */
    };

    for (size_t i = 0; i < LENGTH(rows); i++)
        ck_assert_msg(strcmp(read(rows[i].value), rows[i].result) == 0, "%s: %s", rows[i].value,
                      read(rows[i].value));
}
END_TEST

/* As long as it may be, and one byte more. */
START_TEST(lengths)
{
    for (size_t more = 0; more < 2; more++) {
        struct buf value;
        struct buf text;

        buf_init(&text, 4096);
        buf_init(&value, 4096);
        buf_append_str(&text, "a:");
        while (text.len < HTTP_BASIC_BYTES + more)
            buf_append_char(&text, 'x');
        buf_append_str(&value, "Basic ");
        base64_encode(&value, buf_span(&text));
        buf_append_char(&value, '\0');
        ck_assert_int_eq(strcmp(read(value.data), "-") == 0, more != 0);
        buf_free(&text);
        buf_free(&value);
    }
}
END_TEST

START_TEST(fields)
{
    static const struct {
        const char *lines;
        enum http_credentials_found found;
        const char *value;
    } rows[] = {
        {"", HTTP_CREDENTIALS_NONE, ""},
        {"Authorization: a\r\n", HTTP_CREDENTIALS_NONE, ""},
        {"A: b\r\nproxy-authorization:  Basic YTpi \r\nC: d\r\n", HTTP_CREDENTIALS_ONE,
         "Basic YTpi"},
        {"Proxy-Authorization:\r\n", HTTP_CREDENTIALS_ONE, ""},
        {"Proxy-Authorization: a\r\nProxy-Authorization: a\r\n", HTTP_CREDENTIALS_SEVERAL, NULL},
        {"Proxy-Authorization:\r\nPROXY-AUTHORIZATION: a\r\n", HTTP_CREDENTIALS_SEVERAL, NULL},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct span value = span_str("");

        ck_assert_int_eq(http_credentials_find(span_str(rows[i].lines),
                                               span_str("Proxy-Authorization"), &value),
                         rows[i].found);
        if (rows[i].value)
            ck_assert(span_equal(value, span_str(rows[i].value)));
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http: credentials of Basic");
    TCase *tcase = tcase_create("all");

    tcase_add_test(tcase, values);
    tcase_add_test(tcase, lengths);
    tcase_add_test(tcase, fields);
    suite_add_tcase(suite, tcase);
    return suite;
}
