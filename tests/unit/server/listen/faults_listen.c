/*
 * Opening sockets and the access log with each call of the system failing in turn: all is open, or
 * nothing is, with a sentence; no descriptor and no file is lost.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/logs/access_log.h"
#include "server/listen/holder.h"
#include "server/listen/listen.h"
#include "server/listen/take_over.h"
#include "tests/unit/faults.h"
#include "tests/unit/unit.h"

static char folder[64], path[128], lock[160], log_path[128];
static struct options options;

static void
set_up(void)
{
    strcpy(folder, "/tmp/sunproxy-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/socket", folder);
    snprintf(lock, sizeof(lock), "%s.lock", path);
    snprintf(log_path, sizeof(log_path), "%s/log", folder);
    ck_assert(options_init(&options));
    options.socket = strdup(path);
}

static void
tear_down(void)
{
    options_free(&options);
    unlink(lock);
    unlink(log_path);
    ck_assert_msg(rmdir(folder) == 0, "the socket was left behind");
}

static void
open_all(void *context)
{
    unsigned *descriptors = context;
    struct listening listening;
    enum listen_error error;
    const char *failed;
    struct buf why;

    buf_init(&why, 1024);
    error = listen_open(&listening, &options, NULL, &why);
    failed = faults_failed();
    faults_fail_at(0, 0);
    ck_assert_msg(failed || error == LISTEN_OK, "%s", buf_str(&why));
    if (error == LISTEN_OK)
        listen_close(&listening);
    else
        ck_assert_msg(why.len != 0, "%s", failed);
    ck_assert_msg(unit_open_descriptors() == *descriptors, "%s", failed ? failed : "none");
    ck_assert_msg(access(path, F_OK) != 0, "%s", failed ? failed : "none");
    buf_free(&why);
}

START_TEST(sockets)
{
    unsigned descriptors = unit_open_descriptors();

    ck_assert_uint_ge(faults_walk(open_all, &descriptors, EACCES), 10);
    ck_assert_uint_ge(faults_walk(open_all, &descriptors, EADDRINUSE), 10);
    ck_assert_uint_ge(faults_walk(open_all, &descriptors, EAFNOSUPPORT), 10);
}
END_TEST

/* A process takes the sockets of `context` over, or fails: they stay the daemon's until it is told.
 */
static void
take_over(void *context)
{
    static struct taken_sockets offer, taken;
    const struct listening *daemon = context;
    static unsigned descriptors; /* open when nothing has failed yet */
    struct listening own = LISTENING_NONE;
    struct buf why;
    bool done;
    int ends[2];

    buf_init(&why, 1024);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    listen_offer(daemon, &offer);
    taken.count = 0;
    done = take_over_offer(ends[0], &offer);
    shutdown(ends[0], SHUT_WR);
    done = done && take_over_receive(ends[1], &taken, &why) &&
           listen_open(&own, &options, &taken, &why) == LISTEN_OK;
    ck_assert_msg(done || faults_failed(), "%s", buf_str(&why));
    faults_fail_at(0, 0);
    listen_close(&own);
    taken_sockets_close(&taken);
    close(ends[0]);
    close(ends[1]);
    if (!descriptors)
        descriptors = unit_open_descriptors();
    ck_assert_uint_eq(unit_open_descriptors(), descriptors);
    ck_assert_msg(access(path, F_OK) == 0, "%s", faults_failed() ? faults_failed() : "none");
    buf_free(&why);
}

START_TEST(sockets_change_hands_or_stay)
{
    struct listening listening;
    struct buf why;

    buf_init(&why, 1024);
    ck_assert_int_eq(listen_open(&listening, &options, NULL, &why), LISTEN_OK);
    ck_assert_uint_ge(faults_walk(take_over, &listening, EACCES), 10);
    listen_close(&listening);
    buf_free(&why);
}
END_TEST

/* What the sentence on a taken port and a held lock makes of what /proc has. */
static void
describe_holders(void *context)
{
    const struct listening *listening = context;
    struct buf port, lock_holder, wanted;
    bool found, found_lock;

    buf_init(&port, 1024);
    buf_init(&lock_holder, 1024);
    buf_init(&wanted, 64);
    buf_printf(&wanted, "process %ld", (long)getpid());
    found = holder_of_port(listening->port, &port);
    found_lock = holder_of_lock(listening->sets[LISTEN_LOCAL].sockets[0].lock, &lock_holder);
    ck_assert((found && found_lock) || faults_failed());
    ck_assert(found == (strncmp(buf_str(&port), buf_str(&wanted), wanted.len) == 0));
    ck_assert(found_lock == (strncmp(buf_str(&lock_holder), buf_str(&wanted), wanted.len) == 0));
    buf_free(&port);
    buf_free(&lock_holder);
    buf_free(&wanted);
}

START_TEST(holders)
{
    struct listening listening;
    struct buf text;

    buf_init(&text, 1024);
    ck_assert_int_eq(listen_open(&listening, &options, NULL, &text), LISTEN_OK);
    ck_assert_uint_ge(faults_walk(describe_holders, &listening, EMFILE), 5);
    listen_close(&listening);
    ck_assert(!holder_of_port(1, &text));
    ck_assert_uint_eq(text.len, 0);
    holder_describe_user(0, &text);
    ck_assert_str_eq(buf_str(&text), "user root");
    buf_reset(&text);
    holder_describe_user(3999999999u, &text);
    ck_assert_str_eq(buf_str(&text), "user 3999999999");
    buf_free(&text);
}
END_TEST

static void
open_log(void *context)
{
    unsigned *descriptors = context;
    int fd = access_log_open_file(log_path);
    struct access_log *log = fd < 0 ? NULL : access_log_start(fd, log_path);
    const char *failed = faults_failed();

    faults_fail_at(0, 0);
    ck_assert_msg(failed || log, "%s", strerror(errno));
    access_log_close(log);
    ck_assert_msg(unit_open_descriptors() == *descriptors, "%s", failed ? failed : "none");
}

START_TEST(access_logs)
{
    unsigned descriptors = unit_open_descriptors();

    ck_assert_uint_ge(faults_walk(open_log, &descriptors, EAGAIN), 3);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("listen faults");
    TCase *tcase = tcase_create("listen faults");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, sockets);
    tcase_add_test(tcase, sockets_change_hands_or_stay);
    tcase_add_test(tcase, holders);
    tcase_add_test(tcase, access_logs);
    suite_add_tcase(suite, tcase);
    return suite;
}
