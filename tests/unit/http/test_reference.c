/* References resolved against the URL of a request: RFC 3986 section 5.4, same origin only. */
#include "http/reference.h"
#include "tests/unit/unit.h"

static void
expect(const char *base, const char *reference, const char *url)
{
    struct buf out;

    buf_init(&out, 1000);
    if (http_resolve_same_origin(span_str(base), span_str(reference), &out))
        ck_assert_msg(url && strcmp(buf_str(&out), url) == 0, "%s: %s", reference, buf_str(&out));
    else
        ck_assert_msg(url == NULL && out.len == 0, "%s", reference);
    buf_free(&out);
}

START_TEST(origins_in_any_spelling)
{
    static const struct {
        const char *url;
        bool same;
    } rows[] = {
        {"http://a/x", true},
        {"HTTP://A:80?x", true},
        {"http://a:/", true},
        {"http://a", true},
        {"http://a./", true},
        {"http://a#x", true},
        {"https://a/", false},
        {"http://a:8080", false},
        {"http://a.b/", false},
        {"http://ab/", false},
        {"//a/x", false},
        {"/x", false},
        {"a", false},
        {"", false},
        {"http://u@a/", false},
        {"ftp://a/", false},
        {"http:a", false},
        {"http://a:80x/", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_msg(http_have_same_origin(span_str("http://a/"), span_str(rows[i].url)) ==
                          rows[i].same,
                      "%s", rows[i].url);
    ck_assert(http_have_same_origin(span_str("https://a:443"), span_str("https://A/")));
    ck_assert(http_have_same_origin(span_str("http://[::1]/"), span_str("http://[0:0::1]:80/")));
    ck_assert(!http_have_same_origin(span_str("http://[::1]/"), span_str("http://[::2]/")));
}
END_TEST

START_TEST(references_are_resolved_as_the_rfc_does)
{
    static const struct {
        const char *reference, *url;
    } rows[] = {
        {"g", "http://a/b/c/g"},
        {"./g", "http://a/b/c/g"},
        {"g/", "http://a/b/c/g/"},
        {"/g", "http://a/g"},
        {"?y", "http://a/b/c/d;p?y"},
        {"g?y", "http://a/b/c/g?y"},
        {"#s", "http://a/b/c/d;p?q"},
        {"g#s", "http://a/b/c/g"},
        {"g?y#s", "http://a/b/c/g?y"},
        {";x", "http://a/b/c/;x"},
        {"g;x=1/../y", "http://a/b/c/y"},
        {"", "http://a/b/c/d;p?q"},
        {".", "http://a/b/c/"},
        {"./", "http://a/b/c/"},
        {"..", "http://a/b/"},
        {"../g", "http://a/b/g"},
        {"../..", "http://a/"},
        {"../../g", "http://a/g"},
        {"../../../../g", "http://a/g"},
        {"/./g", "http://a/g"},
        {"/../g", "http://a/g"},
        {"g.", "http://a/b/c/g."},
        {"..g", "http://a/b/c/..g"},
        {"./g/.", "http://a/b/c/g/"},
        {"g/../h", "http://a/b/c/h"},
        {"g?y/../x", "http://a/b/c/g?y/../x"},
        {"//a", "http://a/"},
        {"//A:80/x", "http://a/x"},
        {"http://a/x?y", "http://a/x?y"},
        {"HTTP://A/x", "http://a/x"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect("http://a/b/c/d;p?q", rows[i].reference, rows[i].url);
    expect("http://a", "g", "http://a/g");
    expect("https://a:8443/x", "https://a:8443/y", "https://a:8443/y");
    expect("https://a/x", "https://a:443/y", "https://a/y");
}
END_TEST

START_TEST(other_origins_and_what_is_no_reference_are_refused)
{
    static const char *const references[] = {
        "http://b/x", "//b/x", "https://a/x",      "http://a:81/x", "http:g",
        "mailto:x",   "g:h",   "http://u@a/x",     "http:///x",     "//a:x/",
        "//",         "http:", "javascript:alert", "http://a b/",
    };

    for (size_t i = 0; i < sizeof(references) / sizeof(references[0]); i++)
        expect("http://a/b/c/d;p?q", references[i], NULL);
    expect("ftp://a/b", "c", NULL);
    expect("/b", "c", NULL);
    expect("", "", NULL);
}
END_TEST

START_TEST(a_buffer_that_is_full_fails)
{
    struct buf out;

    buf_init(&out, 8);
    ck_assert(!http_resolve_same_origin(span_str("http://a/b"), span_str("cd"), &out));
    ck_assert_uint_eq(out.len, 0);
    buf_free(&out);
}
END_TEST

START_TEST(references_below_a_url)
{
    static const struct {
        const char *base, *reference, *rest; /* NULL: it is not below */
    } rows[] = {
        {"http://a", "http://a/x", "/x"},
        {"http://a", "http://a", ""},
        {"http://a", "http://a/", "/"},
        {"http://a", "http://a?q#f", "?q#f"},
        {"http://a", "http://a#f", "#f"},
        {"http://a", "HTTP://A:80/x?q#f", "/x?q#f"},
        {"http://a:80", "http://a/x", "/x"},
        {"http://a:81", "http://a:81/x", "/x"},
        {"http://a", "http://a:/x", "/x"},
        {"http://a", "//a/x", "/x"},
        {"https://a", "https://a:443/x", "/x"},
        {"http://a/v2", "http://a/v2", ""},
        {"http://a/v2", "http://a/v2/x", "/x"},
        {"http://a/v2", "http://a/v2?q", "?q"},
        {"http://a/v2", "http://a/v2x", NULL},
        {"http://a/v2", "http://a/V2/x", NULL},
        {"http://a/v2", "http://a/", NULL},
        {"http://a/v2", "http://a", NULL},
        {"http://a/v2", "http://a/v2/../x", NULL},
        {"http://a/v2", "http://a/v2/./x", NULL},
        {"http://a/v2", "http://a/v2/x/..", NULL},
        {"http://a/v2", "http://a/v2/..x/...?/../#/..", "/..x/...?/../#/.."},
        {"http://a", "http://b/x", NULL},
        {"http://a", "http://a.b/x", NULL},
        {"http://a", "http://a:81/x", NULL},
        {"http://a:81", "http://a/x", NULL},
        {"http://a", "https://a/x", NULL},
        {"http://a", "http://u@a/x", NULL},
        {"http://a", "/x", NULL},
        {"http://a", "x", NULL},
        {"http://a", "", NULL},
        {"http://a", "http:/x", NULL},
        {"http://a", "ftp://a/x", NULL},
        {"http://a", "http://[::1/x", NULL},
        {"http://[::1]:8000", "http://[::1]:8000/x", "/x"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct span rest;
        bool below =
            http_reference_is_below(span_str(rows[i].base), span_str(rows[i].reference), &rest);

        ck_assert_msg(below == (rows[i].rest != NULL), "%s", rows[i].reference);
        if (below)
            ck_assert_msg(span_equal(rest, span_str(rows[i].rest)), "%s", rows[i].reference);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http: references");
    TCase *cases = tcase_create("all");

    tcase_add_test(cases, origins_in_any_spelling);
    tcase_add_test(cases, references_are_resolved_as_the_rfc_does);
    tcase_add_test(cases, references_below_a_url);
    tcase_add_test(cases, other_origins_and_what_is_no_reference_are_refused);
    tcase_add_test(cases, a_buffer_that_is_full_fails);
    suite_add_tcase(suite, cases);
    return suite;
}
