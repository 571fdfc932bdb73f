/*
 * The daemon whole, in this process: it starts, serves and stops with each call of the operating
 * system failing in turn. It serves, or it ends with a status of sysexits.h and a sentence in the
 * log; either way nothing stays behind. (Calls of its threads do not fail.)
 */
#include "server/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "server/logs/log.h"
#include "tests/unit/faults.h"
#include "tests/unit/server/logs/logged.h"
#include "tests/unit/server/rpc/rpcbind_model.h"
#include "tests/unit/unit.h"

/*
 * Options of AddressSanitizer, which calls this. Each daemon starts processes by fork(), which copies
 * the tables of all pages: with 256 MB of freed memory, the default, that takes half of the time.
 */
const char *__asan_default_options(void);
const char *
__asan_default_options(void)
{
    return "quarantine_size_mb=16";
}

static char folder[64], socket_option[128], log_option[128];
static struct options options;

/* Options that every test has, and those given up to NULL. */
static void
parse(const char *const *more)
{
    const char *argv[24] = {"sunproxyd",   socket_option,          log_option,
                            "--workers=1", "--resolver-threads=1", "--listen=127.0.0.1",
                            "--port=0",    "--sandbox=off",        "--stop-timeout=0s"};
    int argc = 9, status;
    struct buf why;

    while (*more)
        argv[argc++] = *more++;
    buf_init(&why, 1024);
    options_free(&options);
    ck_assert(options_init(&options));
    status = options_parse(&options, argc, (char **)(uintptr_t)argv, &why);
    ck_assert_msg(status == EX_OK, "%s", buf_str(&why));
    buf_free(&why);
    logged_clear();
}

static void
set_up(void)
{
    strcpy(folder, "/tmp/sunproxy-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(socket_option, sizeof(socket_option), "--socket=%s/socket", folder);
    snprintf(log_option, sizeof(log_option), "--access-log=%s/log", folder);
    logged_begin();
    faults_spare("write"); /* what wakes a thread does not fail in the field */
    log_setup(LOG_LEVEL_INFO, LOG_FORMAT_PLAIN);
    ck_assert(options_init(&options));
}

/* The daemon left the signals blocked; none may stay for what comes after. */
static void
tear_down(void)
{
    const struct timespec none = {0};
    sigset_t signals;
    char path[96];

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    while (sigtimedwait(&signals, NULL, &none) > 0)
        continue;
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    faults_spare(NULL);
    logged_end();
    options_free(&options);
    snprintf(path, sizeof(path), "%s/log", folder);
    unlink(path);
    snprintf(path, sizeof(path), "%s/socket.lock", folder);
    unlink(path);
    ck_assert_msg(rmdir(folder) == 0, "the socket was left behind");
}

/* Runs it, with a signal waiting that stops it as soon as it serves. */
static int
run(int signal)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    raise(signal);
    return daemon_run(&options);
}

#define OPTIONS(...) parse((const char *const[]){__VA_ARGS__, NULL})

/* ---- its life -------------------------------------------------------------------------------- */

START_TEST(it_serves_until_a_signal)
{
    OPTIONS("--no-rpcbind");
    ck_assert_int_eq(run(SIGTERM), EX_OK);
    ck_assert_uint_eq(logged_times("listening on TCP port "), 1);
    ck_assert_uint_eq(logged_times("(127.0.0.1)"), 1);
    ck_assert_uint_eq(logged_times("listening on socket /tmp/"), 1);
    ck_assert_uint_eq(logged_times("serves with 1 workers"), 1);
    ck_assert_uint_eq(logged_times("stopping on SIGTERM"), 1);
    ck_assert_uint_eq(logged_times("sunproxyd: stopped"), 1);
    ck_assert_int_eq(run(SIGINT), EX_OK);
    ck_assert_uint_eq(logged_times("stopping on SIGINT"), 1);
}
END_TEST

/* The signal for the log is the lower one, and so comes first. */
START_TEST(a_reload_does_not_end_it)
{
    OPTIONS("--no-rpcbind");
    ck_assert_int_eq(run(SIGTERM), EX_OK);
    logged_clear();
    raise(SIGHUP);
    ck_assert_int_eq(run(SIGTERM), EX_OK);
    ck_assert_uint_eq(logged_times("stopping on SIGTERM"), 1);
    strcpy(log_option, "--log-level=info"); /* without an access log */
    OPTIONS("--no-rpcbind");
    raise(SIGHUP);
    ck_assert_int_eq(run(SIGTERM), EX_OK);
    ck_assert_uint_eq(logged_times("stopping on SIGTERM"), 1);
}
END_TEST

START_TEST(it_registers_and_goes)
{
    rpcbind_model_begin();
    OPTIONS("--log-level=info");
    ck_assert_int_eq(run(SIGTERM), EX_OK);
    ck_assert_uint_eq(logged_times("registered with rpcbind"), 1);
    ck_assert_uint_eq(rpcbind_model_count(), 0);
    rpcbind_model_end();
}
END_TEST

/* ---- what it refuses ------------------------------------------------------------------------- */

struct refusal {
    const char *option;
    int status;
    const char *words;
    bool of_check; /* by --check-config as well */
};

static const struct refusal refusals[] = {
    {"--admin-uid=no-such-user", EX_CONFIG,
     "--admin-uid: \"no-such-user\" is not a number or a user", true},
    {"--allow-net=10.0.0.0/99", EX_CONFIG, "--allow-net: ", true},
    {"--user=no-such-user", EX_CONFIG, "--user: \"no-such-user\"", true},
    {"--cacert=/proc/no/such", EX_CONFIG, "--cacert: cannot read /proc/no/such: ", true},
    {"--users=/proc/no/such", EX_CONFIG, "--users: cannot read /proc/no/such: ", true},
    {"--listen=127.0.0.1.1", EX_CONFIG, "127.0.0.1.1", true},
    {"--listen=192.0.2.1", EX_CONFIG, "192.0.2.1", false},
    {"--access-log=/proc/no/such", EX_CANTCREAT, "/proc/no/such: ", true},
    {"--socket=/proc/no/such/socket", EX_OSERR, "/proc/no/such", false},
};

START_TEST(refused)
{
    const struct refusal *row = &refusals[_i];
    unsigned descriptors;
    int status;

    OPTIONS("--no-rpcbind", row->option);
    descriptors = unit_open_descriptors();
    status = run(SIGTERM);
    ck_assert_msg(status == row->status, "%s: %d\n%s", row->option, status, logged_text());
    ck_assert_msg(logged_times(row->words) >= 1, "%s: %s", row->option, logged_text());
    ck_assert_uint_eq(logged_times("serves with"), 0);
    ck_assert_uint_eq(unit_open_descriptors(), descriptors);
    logged_clear();
    status = daemon_check(&options);
    ck_assert_msg(status == (row->of_check ? row->status : EX_OK), "%s: %d\n%s", row->option,
                  status, logged_text());
}
END_TEST

START_TEST(sound_options_pass_the_check)
{
    unsigned descriptors;

    OPTIONS("--no-rpcbind", "--admin-uid=4000", "--admin-uid=daemon", "--allow-net=10.0.0.0/8");
    descriptors = unit_open_descriptors();
    ck_assert_msg(daemon_check(&options) == EX_OK, "%s", logged_text());
    ck_assert_str_eq(logged_text(), "");
    ck_assert_uint_eq(unit_open_descriptors(), descriptors);
}
END_TEST

/* ---- what fails ------------------------------------------------------------------------------ */

static void
run_with_failure(void *context)
{
    unsigned descriptors = *(const unsigned *)context;
    const char *failed;
    int status;

    logged_clear();
    status = run(SIGTERM);
    failed = faults_failed();
    faults_fail_at(0, 0);
    if (status == EX_OK)
        ck_assert_msg(logged_times("sunproxyd: stopped") == 1, "%s\n%s", failed ? failed : "none",
                      logged_text());
    else
        ck_assert_msg(failed && status >= EX__BASE && status <= EX__MAX && logged_times("error: "),
                      "%s: %d\n%s", failed ? failed : "none", status, logged_text());
    ck_assert_msg(unit_open_descriptors() == descriptors, "%s", failed ? failed : "none");
}

START_TEST(each_failure_is_answered)
{
    unsigned descriptors;

    OPTIONS("--no-rpcbind");
    descriptors = unit_open_descriptors();
    ck_assert_uint_ge(faults_walk(run_with_failure, &descriptors, EMFILE), 30);
}
END_TEST

START_TEST(each_failure_with_helpers_is_answered)
{
    unsigned descriptors;

    OPTIONS("--no-rpcbind", "--auth-helper=exec cat");
    descriptors = unit_open_descriptors();
    ck_assert_uint_ge(faults_walk(run_with_failure, &descriptors, EMFILE), 30);
}
END_TEST

/* Registration is worth a warning when it cannot begin, and the daemon serves. */
START_TEST(it_serves_without_registration)
{
    bool seen = false;

    rpcbind_model_begin();
    OPTIONS("--log-level=info");
    for (unsigned n = 1;; n++) {
        const char *failed;

        logged_clear();
        faults_fail_at(n, EAGAIN);
        run(SIGTERM);
        failed = faults_failed();
        faults_fail_at(0, 0);
        if (!failed)
            break;
        if (strcmp(failed, "pthread_create") != 0)
            continue;
        if (logged_times("not registered with rpcbind: ")) {
            ck_assert_uint_eq(logged_times("sunproxyd: stopped"), 1);
            seen = true;
        }
    }
    rpcbind_model_end();
    ck_assert(seen);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("daemon faults");
    TCase *tcase = tcase_create("daemon faults");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, it_serves_until_a_signal);
    tcase_add_test(tcase, a_reload_does_not_end_it);
    tcase_add_test(tcase, it_registers_and_goes);
    tcase_add_loop_test(tcase, refused, 0, (int)(sizeof(refusals) / sizeof(refusals[0])));
    tcase_add_test(tcase, sound_options_pass_the_check);
    tcase_add_test(tcase, each_failure_is_answered);
    tcase_add_test(tcase, each_failure_with_helpers_is_answered);
    tcase_add_test(tcase, it_serves_without_registration);
    suite_add_tcase(suite, tcase);
    return suite;
}
