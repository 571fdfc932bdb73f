/* Both halves of a take-over, in one process: what is sent first waits in the connection. */
#define UNIT_STARTS_NO_THREAD

#include "server/listen/take_over.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/passing.h"
#include "server/listen/listen.h"
#include "tests/unit/unit.h"

static char folder[64], path[128], web[128];
static struct options options;
static struct listening daemon_sockets, own;
static struct taken_sockets offer, taken;
static struct buf why;
static int ends[2]; /* the daemon's, the new process's */

static void
parse(int argc, const char *const *argv)
{
    options_free(&options);
    ck_assert(options_init(&options));
    ck_assert_int_eq(options_parse(&options, argc, (char **)(uintptr_t)argv, &why), 0);
}

static void
set_up(void)
{
    snprintf(folder, sizeof(folder), "/tmp/sunproxy-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "--socket=%s/socket", folder);
    snprintf(web, sizeof(web), "--http=unix:%s/web", folder);
    buf_init(&why, 4096);
    ck_assert(options_init(&options));
    parse(5, (const char *const[]){"sunproxyd", path, web, "--http=127.0.0.1:0",
                                   "--metrics=localhost:0"});
    ck_assert_msg(listen_open(&daemon_sockets, &options, NULL, &why) == LISTEN_OK, "%s",
                  buf_str(&why));
    listen_offer(&daemon_sockets, &offer);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    own = LISTENING_NONE;
    taken.count = 0;
}

static void
tear_down(void)
{
    char command[256];

    listen_close(&own);
    listen_close(&daemon_sockets);
    taken_sockets_close(&taken);
    close(ends[0]);
    close(ends[1]);
    options_free(&options);
    buf_free(&why);
    snprintf(command, sizeof(command), "%s/socket.lock", folder);
    unlink(command);
    snprintf(command, sizeof(command), "%s/web.lock", folder);
    unlink(command);
    ck_assert_msg(rmdir(folder) == 0, "a socket was left behind");
}

static bool
is_there(const char *name)
{
    char whole[256];

    snprintf(whole, sizeof(whole), "%s/%s", folder, name);
    return access(whole, F_OK) == 0;
}

static void
receive(void)
{
    ck_assert(take_over_offer(ends[0], &offer));
    ck_assert_msg(take_over_receive(ends[1], &taken, &why), "%s", buf_str(&why));
    ck_assert_uint_eq(taken.count, offer.count);
}

START_TEST(all_sockets_change_hands)
{
    pid_t pid = 0;
    bool same = false;

    receive();
    ck_assert_msg(listen_open(&own, &options, &taken, &why) == LISTEN_OK, "%s", buf_str(&why));
    ck_assert_uint_eq(own.port, daemon_sockets.port);
    for (unsigned i = 0; i < taken.count; i++)
        ck_assert(taken.items[i].used);
    /* Another process than this one would wait in take_over_finish(). */
    take_over_yield(ends[0]);
    ck_assert_int_eq(take_over_look(ends[0], &offer, &pid), TAKE_OVER_WAITS);
    ck_assert(take_over_finish(ends[1], &taken));
    ck_assert_int_eq(take_over_look(ends[0], &offer, &pid), TAKE_OVER_READY);
    ck_assert_int_eq(pid, getpid());
    listen_give(&daemon_sockets, &offer);
    listen_own(&own);
    listen_close(&daemon_sockets);
    same = is_there("socket") && is_there("web") && is_there("socket.take-over");
    ck_assert_msg(same, "the names are the new process's");
    listen_close(&own);
    ck_assert(!is_there("socket") && !is_there("web") && !is_there("socket.take-over"));
}
END_TEST

START_TEST(a_new_process_that_ends_leaves_them)
{
    pid_t pid;

    receive();
    ck_assert_int_eq(listen_open(&own, &options, &taken, &why), LISTEN_OK);
    listen_close(&own);
    ck_assert(is_there("socket") && is_there("web") && is_there("socket.take-over"));
    close(ends[1]);
    ck_assert_int_eq(take_over_look(ends[0], &offer, &pid), TAKE_OVER_GONE);
    ends[1] = dup(ends[0]);
    /* The lock is still held. */
    ck_assert_int_eq(listen_open(&own, &options, NULL, &why), LISTEN_IN_USE);
}
END_TEST

START_TEST(what_is_not_used_stays_with_the_old_one)
{
    pid_t pid;

    receive();
    parse(3, (const char *const[]){"sunproxyd", path, "--metrics=127.0.0.1:0"});
    ck_assert_int_eq(listen_open(&own, &options, &taken, &why), LISTEN_OK);
    ck_assert_uint_eq(own.sets[LISTEN_HTTP].count, 0);
    ck_assert_uint_eq(own.sets[LISTEN_METRICS].count, 1);
    take_over_yield(ends[0]);
    ck_assert(take_over_finish(ends[1], &taken));
    ck_assert_int_eq(take_over_look(ends[0], &offer, &pid), TAKE_OVER_READY);
    listen_give(&daemon_sockets, &offer);
    listen_own(&own);
    listen_close(&daemon_sockets);
    ck_assert(is_there("socket"));
    ck_assert_msg(!is_there("web"), "the old one removes it");
}
END_TEST

START_TEST(a_refusal_ends_the_new_process)
{
    receive();
    take_over_refuse(ends[0]);
    ck_assert(!take_over_finish(ends[1], &taken));
    take_over_refuse(ends[0]);
    ck_assert(!take_over_receive(ends[1], &taken, &why));
    ck_assert_ptr_nonnull(strstr(buf_str(&why), "another process takes over already"));
}
END_TEST

START_TEST(a_daemon_that_has_ended_does_not_hinder)
{
    receive();
    close(ends[0]);
    ck_assert(take_over_finish(ends[1], &taken));
    ck_assert(!take_over_receive(ends[1], &taken, &why));
    ends[0] = dup(ends[1]);
}
END_TEST

/* The daemon is in a sandbox, and this process may be root's: it believes no word of it. */
START_TEST(what_is_no_listening_socket_is_refused)
{
    struct taken_sockets wrong = {.count = 1};
    pid_t pid;

    wrong.items[0].socket = LOCAL_SOCKET_NONE;
    wrong.items[0].socket.fd = ends[0];
    ck_assert(take_over_offer(ends[0], &wrong));
    ck_assert(!take_over_receive(ends[1], &taken, &why));
    ck_assert_uint_eq(taken.count, 0);
    ck_assert(passing_send(ends[1], "junk", 4, NULL, 0));
    ck_assert_int_eq(take_over_look(ends[0], &offer, &pid), TAKE_OVER_GONE);
}
END_TEST

START_TEST(the_connection_is_inherited_or_found_by_a_path)
{
    char local[160], number[16];
    int fd;

    snprintf(local, sizeof(local), "%s/socket", folder);
    fd = take_over_connect(local, 0, &why);
    ck_assert_msg(fd >= 0, "%s", buf_str(&why));
    close(fd);
    fd = take_over_accept(daemon_sockets.sets[LISTEN_TAKE_OVER].sockets[0].fd);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_eq(take_over_accept(daemon_sockets.sets[LISTEN_TAKE_OVER].sockets[0].fd), -1);
    snprintf(local, sizeof(local), "%s/none", folder);
    ck_assert_int_eq(take_over_connect(local, 0, &why), -1);
    ck_assert_int_eq(take_over_connect(NULL, 0, &why), -1);
    ck_assert_uint_eq(why.len, 0);
    snprintf(number, sizeof(number), "%d", ends[1]);
    setenv(TAKE_OVER_VARIABLE, number, 1);
    ck_assert_int_eq(take_over_connect(NULL, 0, &why), ends[1]);
    ck_assert_ptr_null(getenv(TAKE_OVER_VARIABLE));
    setenv(TAKE_OVER_VARIABLE, "junk", 1);
    ck_assert_int_eq(take_over_connect(local, 0, &why), -1);
    ck_assert_ptr_nonnull(strstr(buf_str(&why), "is not a descriptor"));
    unsetenv(TAKE_OVER_VARIABLE);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("take-over");
    TCase *tcase = tcase_create("take-over");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, all_sockets_change_hands);
    tcase_add_test(tcase, a_new_process_that_ends_leaves_them);
    tcase_add_test(tcase, what_is_not_used_stays_with_the_old_one);
    tcase_add_test(tcase, a_refusal_ends_the_new_process);
    tcase_add_test(tcase, a_daemon_that_has_ended_does_not_hinder);
    tcase_add_test(tcase, what_is_no_listening_socket_is_refused);
    tcase_add_test(tcase, the_connection_is_inherited_or_found_by_a_path);
    suite_add_tcase(suite, tcase);
    return suite;
}
