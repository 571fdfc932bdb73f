/* HAR: what is read, and what is malformed. */
#include "tests/unit/trace/loading.h"

static const char har[] =
    "\xef\xbb\xbf{ \"log\" : {\"version\":\"1.2\",\"entries\":["
    "{\"startedDateTime\":\"1970-01-01T00:00:01.5Z\",\"request\":{\"method\":\"GET\","
    "\"url\":\"http://a.test/\\u00e9\"},\"response\":{\"status\":200,\"content\":{\"size\":12}}},"
    "{\"request\":{\"url\":\"http://b.test/\"},\"response\":{\"status\":0,\"bodySize\":7,"
    "\"content\":{\"size\":-1}}},"
    "{\"request\":{\"url\":\"data:x,y\"}},{\"request\":{}},{},7,"
    "{\"request\":{\"url\":\"http://a.test/\"},\"response\":{\"status\":302,"
    "\"content\":{\"size\":1e300}}}]}}";

START_TEST(har_entries)
{
    struct trace *t = loading_text(har, loading_all());

    ck_assert_str_eq(t->format, "har");
    ck_assert_str_eq(
        loading_picture(t),
        "http://a.test/\xc3\xa9@1.5=12/200 http://b.test/@1.5=7/1 http://a.test/@1.5/302");
    ck_assert_uint_eq(t->counts.skipped_bad, 3);
    ck_assert_uint_eq(t->counts.first_bad_line, 4);
    ck_assert_str_eq(t->unit, "entry");
    ck_assert_uint_eq(t->counts.skipped_scheme, 1);
    trace_free(t);
}
END_TEST

#define LONG_NUMBER "0.1234567890123456789012345678901234567890123456789012345678901234567890"

/* A number that is too long is not known. Of members of one name the first counts; of another kind
 * than it should be, one is not there. */
START_TEST(har_members)
{
    static const struct {
        const char *entry, *picture;
    } entries[] = {
        {"{\"request\":{\"url\":\"http://a.test/\",\"url\":\"http://b.test/\"}}", "http://a.test/"},
        {"{\"request\":{\"url\":7,\"url\":\"http://b.test/\",\"method\":[\"PUT\"]}}",
         "http://b.test/"},
        {"{\"startedDateTime\":\"now\",\"request\":{\"url\":\"http://a.test/\"}}",
         "http://a.test/"},
        {"{\"startedDateTime\":7,\"request\":{\"url\":\"http://a.test/\"}}", "http://a.test/"},
        {"{\"request\":{\"url\":\"http://a.test/\"},\"response\":{\"status\":200,\"status\":404,"
         "\"content\":{\"size\":\"1\",\"size\":7,\"size\":8}}}",
         "http://a.test/=7/200"},
        {"{\"request\":{\"url\":\"http://a.test/\"},\"response\":{\"status\":null,"
         "\"content\":[1],\"bodySize\":5,\"bodySize\":6}}",
         "http://a.test/=5"},
        {"{\"request\":{\"url\":\"http://a.test/\"},\"response\":{\"status\":1000,"
         "\"content\":{\"text\":\"x\"}}}",
         "http://a.test//1"},
        {"{\"request\":{\"url\":\"http://a.test/\"},\"response\":7}", "http://a.test/"},
        {"{\"time\":" LONG_NUMBER ",\"request\":{\"url\":\"http://a.test/\"},\"response\":{"
         "\"status\":200,\"content\":{\"size\":" LONG_NUMBER "},\"bodySize\":5}}",
         "http://a.test/=5/200"},
    };

    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        char text[512];
        struct trace *t;

        snprintf(text, sizeof(text),
                 "\t\r\n{\"log\":{\"pages\":[{}],\"entries\":{},\"entries\":[%s],"
                 "\"entries\":[{}]},\"log\":{\"entries\":[{}]},\"more\":{}}",
                 entries[i].entry);
        t = loading_text(text, loading_all());
        ck_assert_str_eq(t->format, "har");
        ck_assert_str_eq(loading_picture(t), entries[i].picture);
        ck_assert_uint_eq(t->counts.skipped_bad, 0);
        trace_free(t);
    }
}
END_TEST

START_TEST(har_with_a_url_that_is_too_long)
{
    static char text[TRACE_URL_MAX + 1000];
    struct trace *t;
    int len = snprintf(text, sizeof(text), "{\"log\":{\"entries\":[{\"request\":{\"url\":\"");

    memset(text + len, 'x', TRACE_URL_MAX + 1);
    strcpy(text + len + TRACE_URL_MAX + 1, "\"}},{\"request\":{\"url\":\"http://a.test/\"}}]}}");
    t = loading_text(text, loading_all());
    ck_assert_str_eq(loading_picture(t), "http://a.test/");
    ck_assert_uint_eq(t->counts.skipped_bad, 1);
    trace_free(t);
}
END_TEST

START_TEST(har_that_is_none)
{
    struct trace_options options = loading_all();

    for (size_t len = 17; len < sizeof(har) - 1; len += 7) {
        scratch_write("cut", har, len);
        options.format = "har";
        ck_assert_int_eq(loading_refused(scratch_path("cut"), options), TRACE_NOT_A_TRACE);
        ck_assert_ptr_nonnull(strstr(loading_why, "not JSON, or cut short"));
    }
    scratch_write("log", "{\"log\":{\"entries\":{}}}", 22);
    ck_assert_int_eq(loading_refused(scratch_path("log"), loading_all()), TRACE_NOT_A_TRACE);
    ck_assert_ptr_nonnull(strstr(loading_why, "no array log.entries"));
    scratch_write("none", "{\"log\":{\"entries\":[]}}", 22);
    ck_assert_int_eq(loading_refused(scratch_path("none"), loading_all()), TRACE_EMPTY);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("formats: HAR");
    TCase *tcase = tcase_create("formats");

    tcase_add_checked_fixture(tcase, scratch_make, scratch_remove);
    tcase_add_test(tcase, har_entries);
    tcase_add_test(tcase, har_members);
    tcase_add_test(tcase, har_with_a_url_that_is_too_long);
    tcase_add_test(tcase, har_that_is_none);
    suite_add_tcase(suite, tcase);
    return suite;
}
