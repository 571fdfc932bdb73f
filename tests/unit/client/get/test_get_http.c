/*
 * What `sunproxy get --http` prints and returns for each kind of response.
 */
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "client/commands.h"
#include "client/exit_status.h"
#include "tests/unit/cli/in_process.h"
#include "tests/unit/client/served_http.h"
#include "tests/unit/unit.h"

#define HTTP "--http", "unix:$/h"

static const struct row {
    const char *words[IN_PROCESS_WORDS];
    int status;
    const char *out; /* the whole */
    const char *err; /* a part; "": nothing is printed */
} rows[] = {
    {{HTTP, "http://h/a"}, EX_OK, "/a", ""},
    {{HTTP, "http://h/a", "http://h/b", "http://h/c"}, EX_OK, "/a/b/c", ""},
    {{HTTP, "-v", "http://h/a"}, EX_OK, "/a", "> GET http://h/a HTTP/1.1\n> Host: h\n"},
    {{HTTP, "-v", "http://h/a"},
     EX_OK,
     "/a",
     "\n< Cache-Status: c; hit\n<\n* http://h/a: HTTP 200, hit, 2 B in "},
    {{HTTP, "-v", "-s", "http://h/a"}, EX_OK, "/a", ""},
    {{HTTP, "-v", "http://h/interim"}, EX_OK, "ok", "< HTTP/1.1 103 Early Hints\n"},
    {{HTTP, "-i", "http://h/404"},
     EX_OK,
     "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno",
     ""},
    {{HTTP, "-i", "http://h/interim"}, EX_OK, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", ""},
    {{HTTP, "-f", "http://h/404"}, EXIT_HTTP_ERROR, "", "answered with HTTP status 404"},
    {{HTTP, "-I", "-w", "%{size_download}", "http://h/a"},
     EX_OK,
     "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nAge: 3\r\nContent-Type: text/x\r\n"
     "Cache-Status: c; hit\r\n\r\n0",
     ""},
    {{HTTP, "-w", "|%{source} %{age} %{content_type} %{size_header} %{http_code}", "http://h/a"},
     EX_OK,
     "/a|hit 3 text/x 90 200",
     ""},
    {{HTTP, "-w", "|%{source} %{age} %{cache_status} %{time_server}", "http://h/404"},
     EX_OK,
     "no| 0  0.000000",
     ""},
    {{HTTP, "-d", "x=1", "-d", "y", "-w", "|%{method} %{size_upload}", "http://h/p"},
     EX_OK,
     "x=1&y|POST 5",
     ""},
    {{HTTP, "http://h/chunked"}, EX_OK, "abcde", ""},
    {{HTTP, "-i", "http://h/chunked"},
     EX_OK,
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nabcde",
     ""},
    {{HTTP, "http://h/close"}, EX_OK, "to the end", ""},
    {{HTTP, "http://h/cut"}, EX_PROTOCOL, "half", "was cut short after 4 of 10 bytes"},
    {{HTTP, "http://h/cut-chunk"}, EX_PROTOCOL, "hal", "was cut short after 3 bytes"},
    {{HTTP, "http://h/bad-chunk"}, EX_PROTOCOL, "", "breaks the protocol"},
    {{HTTP, "http://h/garbage"}, EX_PROTOCOL, "", "breaks the protocol"},
    {{HTTP, "http://h/endless"}, EX_PROTOCOL, "", "the response's head is too large"},
    {{HTTP, "http://h/nothing"}, EX_UNAVAILABLE, "", "the server was lost: unix:"},
    {{HTTP, "http://h/cut", "http://h/b"}, EX_PROTOCOL, "half/b", "4 of 10 bytes"},
    {{HTTP, "http://h/moved"}, EX_OK, "moved", ""},
    {{HTTP, "-L", "-w", "|%{url_effective} %{num_redirects}", "http://h/moved"},
     EX_OK,
     "/b|http://h/b 1",
     ""},
    {{HTTP, "-L", "-v", "-d", "x", "http://h/moved"}, EX_OK, "/b", "> GET http://h/b HTTP/1.1\n"},
    {{HTTP, "-L", "-v", "-d", "x", "http://h/away"}, EX_OK, "x", "> POST http://k/b HTTP/1.1\n"},
    {{HTTP, "-L", "http://h/astray"}, EX_PROTOCOL, "", "only http and https URLs"},
    {{HTTP, "--only-if-cached", "http://h/504"}, EXIT_NOT_CACHED, "", "--only-if-cached forbids"},
    {{HTTP, "--only-if-cached", "http://h/stored504"}, EX_OK, "no", ""},
    {{HTTP, "http://h/504"}, EX_OK, "no", ""},
    {{HTTP, "ftp://h/a"}, EX_USAGE, "", "only http and https URLs can be fetched"},
    {{"--http", "unix:$/none", "http://h/a", "http://h/b"},
     EX_UNAVAILABLE,
     "",
     "cannot connect to the server: No such file or directory: unix:"},
    {{HTTP, "-o", "/dev/full", "http://h/a"}, EX_IOERR, "", "cannot write /dev/full: No space"},
};

static char folder[64];
static struct served_http served = {.folder = folder};

static void
set_up(void)
{
    strcpy(folder, "/tmp/sunproxy-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    served_http_start(&served);
}

static void
tear_down(void)
{
    served_http_stop(&served);
    ck_assert_int_eq(rmdir(folder), 0);
}

START_TEST(each_kind_of_response)
{
    static struct in_process printed;
    const struct row *row = &rows[_i];
    int status = in_process_run(&command_get, row->words, folder, &printed);

    ck_assert_msg(status == row->status, "row %d: %d: %s", _i, status, printed.err);
    ck_assert_str_eq(printed.out, row->out);
    if (*row->err)
        ck_assert_msg(strstr(printed.err, row->err) != NULL, "row %d: %s", _i, printed.err);
    else
        ck_assert_str_eq(printed.err, "");
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("get over HTTP");
    TCase *tcase = tcase_create("get over HTTP");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, each_kind_of_response, 0, (int)(sizeof(rows) / sizeof(rows[0])));
    suite_add_tcase(suite, tcase);
    return suite;
}
