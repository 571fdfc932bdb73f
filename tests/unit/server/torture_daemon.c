/*
 * The daemon's options, its parts and what it starts with, with each of their allocations failing
 * in turn: what was asked for is there, or the failure is reported and nothing is lost.
 * (Allocations of other threads do not fail.)
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "server/logs/access_log.h"
#include "server/daemon.h"
#include "server/logs/log.h"
#include "server/rpc/registration.h"
#include "tests/unit/server/logs/logged.h"
#include "tests/unit/torture.h"
#include "tests/unit/unit.h"

static const char *const arguments[] = {"sunproxyd",
                                        "--workers=1",
                                        "--resolver-threads=1",
                                        "--shards=2",
                                        "--socket=none",
                                        "--listen=127.0.0.1",
                                        "--listen=127.0.0.2",
                                        "--admin-uid=4000",
                                        "--policy=gdsf",
                                        "--allow-port=8080",
                                        "--allow-net=10.0.0.0/8",
                                        "--allow-net=fd00::/8",
                                        "--sandbox=off",
                                        "--user-agent=tester",
                                        "--port=0",
                                        "--no-rpcbind",
                                        "--log-level=info"};

static void
set_up(void)
{
    logged_begin();
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_PLAIN);
}

static void
tear_down(void)
{
    logged_end();
}

static int
parse(struct options *options, struct buf *why)
{
    if (!options_init(options))
        return EX_OSERR;
    return options_parse(options, (int)(sizeof(arguments) / sizeof(arguments[0])),
                         (char **)(uintptr_t)arguments, why);
}

static void
read_options(void *context)
{
    struct options options;
    struct buf why;
    int status;

    (void)context;
    buf_init(&why, 1024);
    status = parse(&options, &why);
    ck_assert(status == EX_OK || torture_failed());
    torture_fail_at(0);
    if (status == EX_OK) {
        ck_assert_uint_eq(options.listen.count, 2);
        ck_assert_str_eq(options.user_agent, "tester");
    }
    options_free(&options);
    buf_free(&why);
}

START_TEST(options_are_read_or_refused)
{
    ck_assert_uint_ge(torture_walk(read_options, NULL), 15);
}
END_TEST

static void
check(void *context)
{
    const struct options *options = context;
    int status;

    logged_clear();
    status = daemon_check(options);
    torture_fail_at(0);
    if (status == EX_OK)
        ck_assert_str_eq(logged_text(), "");
    else
        ck_assert_msg(torture_failed() && logged_times("error: ") == 1, "%d: %s", status,
                      logged_text());
}

START_TEST(parts_are_made_or_the_failure_reported)
{
    struct options options;
    struct buf why;

    buf_init(&why, 1024);
    ck_assert_msg(parse(&options, &why) == EX_OK, "%s", buf_str(&why));
    ck_assert_uint_ge(torture_walk(check, &options), 20);
    options_free(&options);
    buf_free(&why);
}
END_TEST

/* The descriptor is the log's, also when there is none. */
static void
start_log(void *context)
{
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct access_log *log = access_log_start(fd, context);

    ck_assert(log || (torture_failed() && errno == ENOMEM));
    torture_fail_at(0);
    access_log_close(log);
    ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
}

START_TEST(access_logs)
{
    ck_assert_uint_ge(torture_walk(start_log, "/dev/null"), 2);
    ck_assert_uint_ge(torture_walk(start_log, "journal:"), 4);
}
END_TEST

START_TEST(registrations)
{
    const struct listening listening = LISTENING_NONE;

    torture_fail_at(1);
    ck_assert_ptr_null(registration_start(&listening));
    ck_assert(torture_failed());
    torture_fail_at(0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("daemon under torture");
    TCase *tcase = tcase_create("daemon under torture");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, options_are_read_or_refused);
    tcase_add_test(tcase, parts_are_made_or_the_failure_reported);
    tcase_add_test(tcase, access_logs);
    tcase_add_test(tcase, registrations);
    suite_add_tcase(suite, tcase);
    return suite;
}
