/* A test file that says that it starts no thread ends where it starts one (tests/unit/unit.c). */
#define UNIT_STARTS_NO_THREAD

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static void *
do_nothing(void *argument)
{
    return argument;
}

static void
start_thread(void)
{
    const struct rlimit no_core = {0};
    pthread_t thread;

    setrlimit(RLIMIT_CORE, &no_core);
    if (pthread_create(&thread, NULL, do_nothing, NULL) == 0)
        pthread_join(thread, NULL);
}

START_TEST(a_thread_that_is_started_aborts)
{
    char text[256] = "";
    int ends[2], status;
    pid_t child;

    ck_assert_int_eq(pipe(ends), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        start_thread();
        _exit(0);
    }
    close(ends[1]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), SIGABRT);
    ck_assert_int_gt(read(ends[0], text, sizeof(text) - 1), 0);
    ck_assert_ptr_nonnull(strstr(text, "UNIT_STARTS_NO_THREAD"));
    close(ends[0]);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("unit: no thread");
    TCase *tests = tcase_create("no thread");

    tcase_add_test(tests, a_thread_that_is_started_aborts);
    suite_add_tcase(suite, tests);
    return suite;
}
