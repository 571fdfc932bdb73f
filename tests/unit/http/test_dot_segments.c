/* Paths of requests with segments "." and "..", in the spellings that origins know. */
#include "http/dot_segments.h"
#include "tests/unit/unit.h"

START_TEST(paths_are_cleaned)
{
    static const struct {
        const char *path, *clean;
    } rows[] = {
        {"/a/../b", "/b"},
        {"/a/%2e%2E/b?x=/../y", "/b?x=/../y"},
        {"/a/b/..", "/a/"},
        {"/../../a", "/a"},
        {"/a/./../b/.", "/b/"},
        {"/..", "/"},
        {"/./a", "/./a"},
        {"/a..b/...", "/a..b/..."},
        {"/a?..", "/a?.."},
        {"?/../a", "?/../a"},
        {"*", "*"},
        {"", ""},
    };
    char out[64];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct span clean = http_path_clean(span_str(rows[i].path), out);

        ck_assert_msg(span_equal(clean, span_str(rows[i].clean)), "%s: %.*s", rows[i].path,
                      (int)clean.len, clean.ptr);
    }
}
END_TEST

/* The result may take the place of the path. */
START_TEST(paths_are_cleaned_in_place)
{
    char path[] = "/one/two/../three";
    struct span clean = http_path_clean(span_str(path), path);

    ck_assert(span_equal(clean, span_str("/one/three")));
    ck_assert_ptr_eq(clean.ptr, path);
}
END_TEST

START_TEST(segments_that_lead_up)
{
    static const struct {
        const char *path;
        bool leads_up;
    } rows[] = {
        {"/a/..", true},
        {"/a/..;x=1/b", true},
        {"/a/..%3Bx/b", true},
        {"/a%2F../b", true},
        {"/a\\..\\b", true},
        {"/a%5c%2e./b", true},
        {"/a/...", false},
        {"/a/..b", false},
        {"/a?x=/../y", false},
        {"/a/%2e/b", false},
        {"/", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_msg(http_path_leads_up(span_str(rows[i].path)) == rows[i].leads_up, "%s",
                      rows[i].path);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create(UNIT_NAME);
    TCase *tcase = tcase_create("dot segments");

    tcase_add_test(tcase, paths_are_cleaned);
    tcase_add_test(tcase, paths_are_cleaned_in_place);
    tcase_add_test(tcase, segments_that_lead_up);
    suite_add_tcase(suite, tcase);
    return suite;
}
