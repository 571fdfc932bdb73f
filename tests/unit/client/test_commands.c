/*
 * What the commands that talk to a server say and return when a call fails in each of the ways that
 * ONC RPC has, early, late, or while the server goes away.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "client/commands.h"
#include "client/exit_status.h"
#include "tests/unit/cli/in_process.h"
#include "tests/unit/client/served.h"
#include "tests/unit/unit.h"

#define SERVER "--socket", "$/s"

struct row {
    const struct command *command;
    const char *words[IN_PROCESS_WORDS];
    enum served_fault fault;
    unsigned from, count;
    int status;
    const char *out, *err; /* parts of what is printed; "": nothing is, NULL: anything may be */
};

static const struct row rows[] = {
    /* ping: version 1 is asked first */
    {&command_ping, {SERVER, "-c", "2"}, SERVED_WELL, 0, 0, EX_OK, "version 2: 2 calls, min ", ""},
    {&command_ping, {SERVER}, SERVED_PROG_UNAVAIL, 0, 0, EX_UNAVAILABLE, "", "version 1: "},
    {&command_ping,
     {SERVER},
     SERVED_PROG_MISMATCH,
     1,
     0,
     EX_UNAVAILABLE,
     "version 1: ",
     "version 2: "},
    {&command_ping, {SERVER}, SERVED_HANGS_UP, 0, 0, EX_UNAVAILABLE, "", "connection broke"},
    {&command_ping,
     {SERVER, "--timeout", "20ms"},
     SERVED_SILENT,
     0,
     0,
     EX_TEMPFAIL,
     "",
     "version 1: "},
    {&command_reload, {SERVER}, SERVED_WELL, 0, 0, EX_OK, "changed: origin\n", ""},
    {&command_origin, {SERVER}, SERVED_WELL, 0, 0, EX_OK, "   0.7     8.0    90.0 backup, drained (refused; failed 6 s ago)", ""},
    {&command_origin, {SERVER, "--json", "drain", "http://m.test"}, SERVED_WELL, 0, 0, EX_OK,
     "\"max\":9,\"in_flight\":3,\"requests\":40,\"failed\":5,\"failed_us_ago\":6000000,"
     "\"p50_us\":700,", ""},
    {&command_origin, {SERVER, "drain"}, SERVED_WELL, 0, 0, EX_USAGE, "", "drain URL"},
    {&command_origin, {SERVER, "stop", "x"}, SERVED_WELL, 0, 0, EX_USAGE, "", "drain URL"},
    {&command_explain, {SERVER, "-H", "A: b", "--last", "3", "http://h/"}, SERVED_WELL, 0, 0, EX_OK,
     "request        GET http://h/\nanswer         hit\n", ""},
    {&command_explain, {SERVER, "--json", "http://h/"}, SERVED_WELL, 0, 0, EX_OK,
     "[{\"request\":\"GET http://h/\"},{\"answer\":\"hit\"}]", ""},
    {&command_explain, {SERVER, "http://h/"}, SERVED_REFUSED, 0, 0, EX_USAGE, "", "it is a test"},
    {&command_explain, {SERVER}, SERVED_WELL, 0, 0, EX_USAGE, "", "explain"},
    {&command_reload, {SERVER}, SERVED_HANGS_UP, 0, 0, EX_UNAVAILABLE, "", "connection broke"},
    /* get */
    {&command_get, {SERVER, "http://h/a"}, SERVED_WELL, 0, 0, EX_OK, "/a", ""},
    {&command_get, {SERVER, "-v", "http://h/a"}, SERVED_WELL, 0, 0, EX_OK, "/a", "HTTP 200, miss"},
    {&command_get,
     {SERVER, "-v", "http://h/moved"},
     SERVED_WELL,
     0,
     0,
     EX_OK,
     "/moved",
     "final URL http://elsewhere/"},
    {&command_get,
     {SERVER, "--fail", "http://h/404"},
     SERVED_WELL,
     0,
     0,
     EXIT_HTTP_ERROR,
     NULL,
     "HTTP status 404"},
    {&command_get,
     {SERVER, "--fail", "-s", "http://h/404"},
     SERVED_WELL,
     0,
     0,
     EXIT_HTTP_ERROR,
     NULL,
     ""},
    {&command_get, {SERVER, "http://h/fail"}, SERVED_WELL, 0, 0, EX_NOHOST, "", "it is a test"},
    {&command_get,
     {SERVER, "http://h/a"},
     SERVED_GARBAGE_ARGS,
     0,
     0,
     EX_USAGE,
     "",
     "the URL or the headers are too long"},
    {&command_get,
     {SERVER, "http://h/a"},
     SERVED_SYSTEM_ERR,
     0,
     0,
     EX_PROTOCOL,
     "",
     "http://h/a: "},
    {&command_get,
     {SERVER, "--api", "1", "http://h/a"},
     SERVED_GARBAGE_ARGS,
     0,
     0,
     EX_USAGE,
     "",
     "cannot fetch such a URL (--api 2 gives the reason)"},
    {&command_get,
     {SERVER, "--api", "1", "http://h/a"},
     SERVED_SYSTEM_ERR,
     0,
     0,
     EX_PROTOCOL,
     "",
     "could not fetch the page (--api 2 gives the reason)"},
    {&command_get,
     {SERVER, "--api", "1", "http://h/a"},
     SERVED_PROC_UNAVAIL,
     0,
     0,
     EX_UNAVAILABLE,
     "",
     "http://h/a: "},
    {&command_get,
     {SERVER, "--api", "1", "-v", "http://h/a"},
     SERVED_WELL,
     0,
     0,
     EX_OK,
     "a page",
     "http://h/a: 6 B in "},
    {&command_get,
     {SERVER, "--timeout", "20ms", "http://h/a"},
     SERVED_SILENT,
     0,
     0,
     EX_TEMPFAIL,
     "",
     "http://h/a: "},
    {&command_get,
     {SERVER, "-j", "1", "http://h/a", "http://h/b"},
     SERVED_HANGS_UP,
     1,
     0,
     EX_UNAVAILABLE,
     "/a",
     "http://h/b: the server was lost"},
    {&command_get,
     {SERVER, "--json", "-j", "1", "http://h/a", "http://h/b"},
     SERVED_HANGS_UP,
     1,
     0,
     EX_UNAVAILABLE,
     "{\"url\":\"http://h/b\",",
     "http://h/b: the server was lost"},
    {&command_get, {SERVER, "http://h/a"}, SERVED_CUT_SHORT, 0, 0, EX_PROTOCOL, "", "http://h/a: "},
    {&command_get, {SERVER, "http://h/a"}, SERVED_AUTH_ERROR, 0, 0, EX_NOPERM, "", "http://h/a: "},
    {&command_get,
     {SERVER, "-o", "$/file/page", "http://h/a"},
     SERVED_WELL,
     0,
     0,
     EX_IOERR,
     "",
     "/file/page: Not a directory"},
    {&command_get,
     {SERVER, "-o", "$/file/page", "--json", "http://h/a"},
     SERVED_HANGS_UP,
     0,
     0,
     EX_IOERR,
     "",
     "/file/page: Not a directory"},
    {&command_get,
     {SERVER, "--json", "-o", "$/file/page", "http://h/a"},
     SERVED_WELL,
     0,
     0,
     EX_IOERR,
     "",
     "/file/page: Not a directory"},
    {&command_get,
     {SERVER, "-o", "/dev/full", "http://h/a"},
     SERVED_WELL,
     0,
     0,
     EX_IOERR,
     "",
     "cannot write /dev/full: No space left on device"},
    {&command_get,
     {SERVER, "-o", "/dev/full", "--json", "http://h/a"},
     SERVED_HANGS_UP,
     0,
     0,
     EX_IOERR,
     "",
     "cannot write /dev/full: No space left on device"},
    /* stat */
    {&command_stat, {SERVER}, SERVED_WELL, 0, 0, EX_OK, "sunproxyd test at unix:", ""},
    {&command_stat, {SERVER, "--json"}, SERVED_WELL, 0, 0, EX_OK, "\"hit_ratio\":0.333333,", ""},
    {&command_stat, {SERVER, "--csv"}, SERVED_WELL, 0, 0, EX_OK, "policy,text,lru\n", ""},
    {&command_stat, {SERVER, "--csv", "--json"}, SERVED_WELL, 0, 0, EX_USAGE, "", "exclude"},
    /* metrics that this client does not know */
    {&command_stat,
     {SERVER},
     SERVED_WELL,
     0,
     0,
     EX_OK,
     "turn_bytes                          2.0 KiB",
     ""},
    {&command_stat,
     {SERVER},
     SERVED_WELL,
     0,
     0,
     EX_OK,
     "turn_microseconds                    3.0 ms",
     ""},
    {&command_stat,
     {SERVER},
     SERVED_WELL,
     0,
     0,
     EX_OK,
     "tails?                                    6",
     ""},
    {&command_stat,
     {SERVER, "--json"},
     SERVED_WELL,
     0,
     0,
     EX_OK,
     "\"requests\":9,\"hits\":3,\"misses\":4,\"requests{outcome=\\\"imagined\\\"}\":2,\"turns\":5,",
     ""},
    {&command_stat,
     {SERVER, "--json"},
     SERVED_WELL,
     0,
     0,
     EX_OK,
     "\"histograms\":{\"turn_duration_microseconds\":{\"count\":4,\"sum\":8000,"
     "\"buckets\":{\"1\":1,\"1000\":3,\"+Inf\":4}}}",
     ""},
    {&command_stat,
     {SERVER, "--csv"},
     SERVED_WELL,
     0,
     0,
     EX_OK,
     "\"requests{outcome=\"\"imagined\"\"}\",counter,2\n",
     ""},
    {&command_stat, {SERVER}, SERVED_PROC_UNAVAIL, 0, 0, EX_UNAVAILABLE, "", "sunproxy"},
    {&command_stat, {SERVER}, SERVED_CUT_SHORT, 0, 0, EX_PROTOCOL, "", "sunproxy"},
    {&command_stat,
     {SERVER, "--timeout", "20ms"},
     SERVED_SILENT,
     0,
     0,
     EX_TEMPFAIL,
     "",
     "sunproxy"},
    {&command_stat,
     {SERVER, "--watch=0.001", "--json"},
     SERVED_HANGS_UP,
     3,
     0,
     EX_UNAVAILABLE,
     "\"per_second\":{\"requests\":0.0",
     "connection broke"},
    /* set: with one capacity, the other one is asked for; the new state is asked for at the end */
    {&command_set, {SERVER, "--capacity-urls", "5"}, SERVED_WELL, 0, 0, EX_OK, "policy lru, ", ""},
    {&command_set,
     {SERVER, "--cold", "--json"},
     SERVED_WELL,
     0,
     0,
     EX_OK,
     "\"kept\":2,\"dry_run\":false}",
     ""},
    {&command_set,
     {SERVER, "-n", "--policy", "fifo"},
     SERVED_WELL,
     0,
     0,
     EX_OK,
     "policy fifo, 5 URLs, shards: 1 (dry run: nothing was changed)\n",
     ""},
    {&command_set,
     {SERVER, "-n", "--policy", "fifo"},
     SERVED_REFUSED,
     0,
     0,
     EX_NOPERM,
     "",
     "it is a test"},
    {&command_set,
     {SERVER, "-n", "--cold"},
     SERVED_PROC_UNAVAIL,
     0,
     0,
     EX_UNAVAILABLE,
     "",
     "does not serve this procedure"},
    {&command_set,
     {SERVER, "--capacity-bytes", "5M"},
     SERVED_SYSTEM_ERR,
     0,
     0,
     EX_PROTOCOL,
     "",
     "sunproxy"},
    {&command_set,
     {SERVER, "--capacity-bytes", "5M"},
     SERVED_REFUSED,
     1,
     1,
     EX_NOPERM,
     "",
     "it is a test"},
    {&command_set,
     {SERVER, "--capacity-urls", "5"},
     SERVED_HANGS_UP,
     2,
     0,
     EX_UNAVAILABLE,
     "",
     "connection broke"},
    {&command_set, {SERVER, "--shards", "2"}, SERVED_AUTH_ERROR, 0, 0, EX_NOPERM, "", "sunproxy"},
    /* purge */
    {&command_purge, {SERVER, "http://h/a", "http://h/b"}, SERVED_WELL, 0, 0, EX_OK, "6", ""},
    {&command_purge,
     {SERVER, "-n", "--all"},
     SERVED_WELL,
     0,
     0,
     EX_OK,
     "3 pages would be purged",
     ""},
    {&command_purge,
     {SERVER, "http://h/a", "http://h/b"},
     SERVED_REFUSED,
     1,
     0,
     EX_NOPERM,
     NULL,
     "it is a test"},
    {&command_purge,
     {SERVER, "--all"},
     SERVED_HANGS_UP,
     0,
     0,
     EX_UNAVAILABLE,
     "",
     "connection broke"},
    {&command_purge,
     {SERVER, "--all", "--json"},
     SERVED_SYSTEM_ERR,
     0,
     0,
     EX_PROTOCOL,
     "",
     "sunproxy"},
    /* replay: the first call asks for the policy and the capacity */
    {&command_get,
     {SERVER, "--retry", "1", "--timeout", "500ms", "-w", "|%{num_retries}", "http://h/a"},
     SERVED_SILENT,
     0,
     1,
     EX_OK,
     "a|1",
     "http://h/a: no answer came in time; retry 1 of 1 in 1 s"},
    {&command_get,
     {SERVER, "--retry", "1", "-w", "%{exitcode}", "http://h/a"},
     SERVED_HANGS_UP,
     0,
     1,
     EX_UNAVAILABLE,
     "69",
     "the server was lost"},
    {&command_replay,
     {SERVER, "--json", "$/trace"},
     SERVED_WELL,
     0,
     0,
     EX_OK,
     "\"hit\":3,",
     "1 of 8 requests failed"},
    {&command_replay, {SERVER, "$/trace"}, SERVED_SYSTEM_ERR, 0, 0, EX_PROTOCOL, "", "sunproxy"},
    {&command_replay,
     {SERVER, "$/trace"},
     SERVED_SYSTEM_ERR,
     1,
     2,
     EX_OK,
     NULL,
     "3 of 8 requests failed, the first was http://h/a: "},
    {&command_replay,
     {SERVER, "$/trace"},
     SERVED_REFUSED,
     2,
     1,
     EX_OK,
     NULL,
     "2 of 8 requests failed, the first was http://h/hit: it is a test"},
    {&command_replay,
     {SERVER, "$/trace"},
     SERVED_CUT_SHORT,
     3,
     2,
     EX_OK,
     NULL,
     "3 of 8 requests failed, the first was http://h/new: "},
    {&command_replay,
     {SERVER, "$/trace"},
     SERVED_GOES,
     3,
     0,
     EX_UNAVAILABLE,
     NULL,
     "No such file or directory"},
    {&command_replay,
     {SERVER, "$/trace"},
     SERVED_HANGS_UP,
     1,
     0,
     EX_UNAVAILABLE,
     "",
     "was lost at request 1 of 8: "},
    {&command_replay,
     {SERVER, "$/trace"},
     SERVED_PROG_UNAVAIL,
     5,
     0,
     EX_UNAVAILABLE,
     NULL,
     "was lost at request 5 of 8: "},
    {&command_replay,
     {SERVER, "$/trace"},
     SERVED_PROG_MISMATCH,
     5,
     0,
     EX_UNAVAILABLE,
     NULL,
     "was lost at request 5 of 8: "},
    {&command_replay,
     {SERVER, "$/trace"},
     SERVED_PROC_UNAVAIL,
     5,
     0,
     EX_UNAVAILABLE,
     NULL,
     "was lost at request 5 of 8: "},
    {&command_replay,
     {SERVER, "$/trace"},
     SERVED_AUTH_ERROR,
     5,
     0,
     EX_NOPERM,
     NULL,
     "was lost at request 5 of 8: "},
    {&command_replay,
     {SERVER, "--timeout", "500ms", "$/trace"},
     SERVED_SILENT,
     2,
     1,
     EX_OK,
     NULL,
     "2 of 8 requests failed, the first was http://h/hit: "},
    {&command_replay,
     {SERVER, "--policy", "fifo", "$/trace"},
     SERVED_REFUSED,
     0,
     0,
     EX_NOPERM,
     "",
     "it is a test"},
    {&command_replay,
     {SERVER, "--cold", "--repeat", "3", "$/trace"},
     SERVED_HANGS_UP,
     13,
     0,
     EX_UNAVAILABLE,
     ", incomplete\n",
     "was lost at request 2 of 8"},
    {&command_replay,
     {SERVER, "--cold", "--repeat", "2", "$/trace"},
     SERVED_REFUSED,
     11,
     1,
     EX_NOPERM,
     NULL,
     "it is a test"},
    {&command_replay,
     {SERVER, "--cold", "$/trace"},
     SERVED_REFUSED,
     11,
     1,
     EX_NOPERM,
     "requests ",
     " was not restored: it had policy lru, 100 URLs and 1.0 MiB, shards: 2"},
    {&command_replay,
     {SERVER, "--cold", "--keep", "$/trace"},
     SERVED_REFUSED,
     11,
     1,
     EX_OK,
     "requests ",
     "1 of 8"},
    {&command_replay,
     {SERVER, "--cold", "$/trace"},
     SERVED_HANGS_UP,
     0,
     1,
     EX_UNAVAILABLE,
     "",
     "the connection broke before the answer came"},
    {&command_replay,
     {SERVER, "$/trace"},
     SERVED_SYSTEM_ERR,
     1,
     8,
     EX_PROTOCOL,
     "failures                                    8\ntotal time",
     "8 of 8 requests failed, the first was http://h/a: "},
    {&command_replay,
     {SERVER, "-j", "3", "--log", "$/log", "$/trace"},
     SERVED_HANGS_UP,
     2,
     0,
     EX_UNAVAILABLE,
     NULL,
     "was lost at request "},
    {&command_replay,
     {SERVER, "--log", "/dev/full", "$/trace"},
     SERVED_WELL,
     0,
     0,
     EX_IOERR,
     NULL,
     "No space left on device"},
    {&command_replay,
     {SERVER, "--log", "/dev/full", "--log-format", "jsonl", "$/trace"},
     SERVED_WELL,
     0,
     0,
     EX_IOERR,
     NULL,
     "No space left on device"},
    {&command_replay,
     {SERVER, "--log", "$/file/log", "$/trace"},
     SERVED_WELL,
     0,
     0,
     EX_CANTCREAT,
     "",
     "/file/log: Not a directory"},
    {&command_replay,
     {SERVER, "--via", "tcp", "$/trace"},
     SERVED_WELL,
     0,
     0,
     EX_UNAVAILABLE,
     "",
     "is an AF_UNIX socket, but TCP is needed: give --port too"},
    {&command_replay,
     {"--port", "1", "--via", "unix", "$/trace"},
     SERVED_WELL,
     0,
     0,
     EX_UNAVAILABLE,
     "",
     "--port: is TCP, but an AF_UNIX socket is needed: give --socket"},
    {&command_replay,
     {SERVER, "--via", "unix", "$/trace"},
     SERVED_WELL,
     0,
     0,
     EX_OK,
     NULL,
     "1 of 8"},
};

static char folder[64];
static struct served served;

static void
write_file(const char *name, const char *text)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void
set_up(void)
{
    strcpy(folder, "/tmp/sunproxy-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    write_file("file", "");
    write_file("trace", "http://h/a\nhttp://h/hit\nhttp://h/new\nhttp://h/stale\n"
                        "http://h/victim\nhttp://h/bypass\nhttp://h/huge\nhttp://h/fail\n");
}

static void
tear_down(void)
{
    static const char *const names[] = {"file", "trace", "log"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[128];

        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    ck_assert_msg(rmdir(folder) == 0, "a file was left behind");
}

static void
check_text(const char *what, const char *text, const char *part, const char *command)
{
    if (part && *part == '\0')
        ck_assert_msg(*text == '\0', "%s prints on %s: %s", command, what, text);
    else if (part)
        ck_assert_msg(strstr(text, part) != NULL, "%s prints on %s: %s", command, what, text);
}

START_TEST(every_row)
{
    const struct row *row = &rows[_i];
    static struct in_process printed;
    int status;

    served = (struct served){
        .folder = folder, .fault = row->fault, .from = row->from, .count = row->count};
    served_start(&served);
    status = in_process_run(row->command, row->words, folder, &printed);
    served_stop(&served);
    ck_assert_msg(status == row->status, "row %d, %s: %d, %s", _i, row->command->name, status,
                  printed.err);
    check_text("standard output", printed.out, row->out, row->command->name);
    check_text("standard error", printed.err, row->err, row->command->name);
}
END_TEST

/* What SUNPROXY_SERVER says is taken at its word, unless the route of the command excludes it. */
START_TEST(by_the_environment)
{
    static const struct {
        const char *value, *via;
        int status;
        const char *err;
    } cases[] = {
        {"unix:%s/s", "unix", EX_OK, "1 of 8"},
        {"unix:%s/s", "tcp", EX_UNAVAILABLE, "SUNPROXY_SERVER: names no TCP port"},
        {"localhost:1", "unix", EX_UNAVAILABLE, "SUNPROXY_SERVER: names no AF_UNIX socket"},
        {"127.0.0.1:1", "tcp", EX_UNAVAILABLE, "127.0.0.1:1: Connection refused"},
        {"[127.0.0.1]:1", "tcp", EX_UNAVAILABLE, "127.0.0.1:1: Connection refused"},
        {"[]:1", "tcp", EX_USAGE, "unix:PATH or HOST:PORT"},
        {"no port", "tcp", EX_USAGE, "unix:PATH or HOST:PORT"},
        {"host:65536", "tcp", EX_USAGE, "unix:PATH or HOST:PORT"},
    };

    served = (struct served){.folder = folder};
    served_start(&served);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *const words[] = {"--via", cases[i].via, "$/trace", NULL};
        static struct in_process printed;
        char value[128];
        int status;

        snprintf(value, sizeof(value), cases[i].value, folder);
        ck_assert_int_eq(setenv("SUNPROXY_SERVER", value, 1), 0);
        status = in_process_run(&command_replay, words, folder, &printed);
        ck_assert_msg(status == cases[i].status, "%s: %d, %s", value, status, printed.err);
        check_text("standard error", printed.err, cases[i].err, value);
    }
    unsetenv("SUNPROXY_SERVER");
    served_stop(&served);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("commands and their server");
    TCase *tcase = tcase_create("commands and their server");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, every_row, 0, (int)(sizeof(rows) / sizeof(rows[0])));
    tcase_add_test(tcase, by_the_environment);
    suite_add_tcase(suite, tcase);
    return suite;
}
