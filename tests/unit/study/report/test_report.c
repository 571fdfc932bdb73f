#define UNIT_STARTS_NO_THREAD

#include "study/report/report.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "tests/unit/unit.h"

enum { SCRIPTS = 8 }; /* on a page: the data, two libraries, five files of ours */

#define D3 "window.d3 = '{{title}}';"
#define PLOT "window.Plot = 2 < 3;"

/* A page with this title and data, to be freed. */
static char *
page_of(const char *title, const char *data)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    struct report_library library;
    struct report_page page = {span_str(title), span_str(data), &library};

    buf_init(&library.d3, 100);
    buf_init(&library.plot, 100);
    ck_assert(buf_append_str(&library.d3, D3) && buf_append_str(&library.plot, PLOT));
    ck_assert_ptr_nonnull(to);
    ck_assert(report_page_write(to, &page));
    report_library_free(&library);
    ck_assert_int_eq(fclose(to), 0);
    return text;
}

static size_t
count(const char *text, const char *what)
{
    size_t found = 0;

    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        found++;
    return found;
}

START_TEST(the_page_is_whole)
{
    char *page = page_of("A title", "{\"a\":1}");

    ck_assert_ptr_eq(strstr(page, "<!DOCTYPE html>"), page);
    ck_assert_ptr_nonnull(strstr(page, "<title>A title</title>"));
    ck_assert_ptr_nonnull(strstr(page, "id=\"data\">{\"a\":1}</script>"));
    ck_assert_uint_eq(count(page, "<script"), SCRIPTS);
    ck_assert_uint_eq(count(page, "</script>"), SCRIPTS);
    ck_assert_uint_eq(count(page, "<!--"), 0);
    ck_assert_uint_eq(count(page, "{{title}}"), count(D3, "{{title}}"));
    ck_assert_uint_eq(count(page, "{{data}}") + count(page, "{{plot}}") + count(page, "{{d3}}") +
                          count(page, ".css}}") + count(page, ".js}}"),
                      0);
    ck_assert_ptr_nonnull(strstr(page, "prefers-color-scheme"));
    ck_assert_ptr_nonnull(strstr(page, D3));
    ck_assert_ptr_nonnull(strstr(page, PLOT));
    ck_assert_str_eq(page + strlen(page) - strlen("</html>\n"), "</html>\n");
    free(page);
}
END_TEST

START_TEST(no_data_ends_or_begins_a_script)
{
    char *page = page_of("<i>&", "{\"u\":\"</script><!--<script>\",\"m\":\"{{plot}}\"}");

    ck_assert_ptr_nonnull(strstr(page, "<title>&lt;i&gt;&amp;</title>"));
    ck_assert_ptr_nonnull(
        strstr(page, "{\"u\":\"\\u003c/script>\\u003c!--\\u003cscript>\",\"m\":\"{{plot}}\"}"));
    ck_assert_uint_eq(count(page, "</script>"), SCRIPTS);
    free(page);
}
END_TEST

/* ---- the libraries ----------------------------------------------------------------------------
 */

static void
write_file(const char *folder, const char *name, const char *content)
{
    char path[200];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(content, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void
remove_file(const char *folder, const char *name)
{
    char path[200];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    ck_assert_int_eq(unlink(path), 0);
}

START_TEST(libraries_are_of_the_folder_that_is_named)
{
    char one[] = "/tmp/sunproxy-plot.XXXXXX", two[] = "/tmp/sunproxy-plot.XXXXXX";
    struct report_library library;

    ck_assert_ptr_nonnull(mkdtemp(one));
    ck_assert_ptr_nonnull(mkdtemp(two));
    write_file(one, "d3.min.js", D3);
    ck_assert_int_eq(report_library_read(one, &library), EX_UNAVAILABLE); /* one of two */
    write_file(one, "plot.umd.min.js", PLOT);
    ck_assert_int_eq(report_library_read(one, &library), EX_OK);
    ck_assert_str_eq(buf_str(&library.d3), D3);
    ck_assert_str_eq(buf_str(&library.plot), PLOT);
    report_library_free(&library);
    setenv("SUNPROXY_PLOT_DIR", two, 1);
    ck_assert_int_eq(report_library_read(NULL, &library), EX_UNAVAILABLE);
    ck_assert_int_eq(report_library_read(one, &library), EX_OK); /* the argument counts more */
    report_library_free(&library);
    setenv("SUNPROXY_PLOT_DIR", one, 1);
    ck_assert_int_eq(report_library_read(NULL, &library), EX_OK);
    report_library_free(&library);
    unsetenv("SUNPROXY_PLOT_DIR");
    remove_file(one, "d3.min.js");
    remove_file(one, "plot.umd.min.js");
    ck_assert_int_eq(rmdir(one) | rmdir(two), 0);
}
END_TEST

START_TEST(tables_name_their_columns)
{
    struct buf out;
    struct json j;

    buf_init(&out, 4096);
    json_init(&j, &out);
    json_open_object(&j, NULL);
    report_table_open(&j, "t", "a", "b", NULL);
    json_open_array(&j, NULL);
    json_uint(&j, NULL, 1);
    json_null(&j, NULL);
    json_close_array(&j);
    report_table_close(&j);
    json_close_object(&j);
    ck_assert_str_eq(buf_str(&out), "{\"t\":{\"columns\":[\"a\",\"b\"],\"rows\":[[1,null]]}}");
    buf_free(&out);
}
END_TEST

/* ---- replays --------------------------------------------------------------------------------- */

/* Reads a file of this content; the exit status. */
static int
read_live(const char *content, struct report_live *live)
{
    char path[] = "/tmp/sunproxy-live.XXXXXX";
    int fd = mkstemp(path), status;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    close(fd);
    status = report_live_read(path, live);
    unlink(path);
    return status;
}

START_TEST(a_replay_is_read)
{
    struct report_live live;

    ck_assert_int_eq(read_live("{\"trace\":\"x/History\",\"requests\":997,\"policy\":\"lru-k:k=3\","
                               "\"capacity_urls\":7,\"capacity_bytes\":0,\"runs\":[],\"mean\":"
                               "{\"mean_us\":1234.5,\"hit_ratio\":0.25,\"byte_hit_ratio\":0.5}}",
                               &live),
                     EX_OK);
    ck_assert_str_eq(live.trace, "x/History");
    ck_assert_str_eq(live.policy, "lru-k:k=3");
    ck_assert_uint_eq(live.requests, 997);
    ck_assert_uint_eq(live.urls, 7);
    ck_assert_uint_eq(live.bytes, 0);
    ck_assert_double_eq(live.mean_us, 1234.5);
    ck_assert_double_eq(live.hit_ratio, 0.25);
    ck_assert_double_eq(live.byte_hit_ratio, 0.5);
    report_live_free(&live);
}
END_TEST

START_TEST(what_is_no_replay_is_refused)
{
    static const char *const contents[] = {
        "",
        "{",
        "[]",
        "17",
        "{\"policy\":\"lru\"}",
        "{\"mean\":{\"mean_us\":5}}",
        "{\"policy\":7,\"mean\":{\"mean_us\":5}}",
        "{\"policy\":\"lru\",\"mean\":{\"mean_us\":\"5\"}}",
        "{\"policy\":\"lru\",\"mean\":[5]}",
    };
    struct report_live live;

    for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++)
        ck_assert_msg(read_live(contents[i], &live) == EX_DATAERR, "%s", contents[i]);
    ck_assert_int_eq(report_live_read("/tmp/there/is/no/such", &live), EX_NOINPUT);
}
END_TEST

START_TEST(numbers_that_cannot_be_are_left_out)
{
    struct report_live live;

    ck_assert_int_eq(read_live("{\"policy\":\"lru\",\"requests\":-4,\"capacity_urls\":1e300,"
                               "\"mean\":{\"mean_us\":-1}}",
                               &live),
                     EX_OK);
    ck_assert_uint_eq(live.requests, 0);
    ck_assert_uint_eq(live.urls, 0);
    ck_assert_double_eq(live.mean_us, 0);
    ck_assert_double_lt(live.byte_hit_ratio, 0);
    ck_assert_str_eq(live.trace, "");
    report_live_free(&live);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("report");
    TCase *page = tcase_create("page"), *live = tcase_create("live");

    tcase_add_test(page, the_page_is_whole);
    tcase_add_test(page, no_data_ends_or_begins_a_script);
    tcase_add_test(page, libraries_are_of_the_folder_that_is_named);
    tcase_add_test(page, tables_name_their_columns);
    suite_add_tcase(suite, page);
    tcase_add_test(live, a_replay_is_read);
    tcase_add_test(live, what_is_no_replay_is_refused);
    tcase_add_test(live, numbers_that_cannot_be_are_left_out);
    suite_add_tcase(suite, live);
    return suite;
}
