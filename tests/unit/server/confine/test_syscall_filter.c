#include "server/confine/syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/instrumented.h"
#include "tests/unit/unit.h"

#define NO_FILTER 250 /* exit status */
#define NO_SUCH_CALL 100000

/* 0, or the errno of a call that failed. */
typedef int attempt(void);

static int
error_of(long result)
{
    return result < 0 ? errno : 0;
}

/* The result in a process of its own, under the filter or not; -1 if that ended by a signal. */
static int
try(attempt *call, bool filtered)
{
    int status;
    pid_t child = fork();

    if (child < 0)
        return -1;
    if (child == 0) {
        if (filtered &&
            (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall_filter_load((const char *const[]){NULL}) != 0))
            _exit(NO_FILTER);
        _exit(call());
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- forbidden ------------------------------------------------------------------------------- */

static int
execute(void)
{
    char path[] = "/bin/true", *argv[] = {path, NULL}, *envp[] = {NULL};

    execve(path, argv, envp);
    return errno;
}

static int
trace(void)
{
    return error_of(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int
begin_process(void)
{
    pid_t child = fork();

    if (child == 0)
        _exit(0);
    return error_of(child);
}

static int
signal_another(void)
{
    return error_of(kill(getppid(), 0));
}

static int
signal_a_thread_of_another(void)
{
    return error_of(syscall(SYS_tgkill, getppid(), getppid(), 0));
}

static int
change_mode(void)
{
    return error_of(chmod("/nonexistent/file", 0777));
}

static int
begin_to_listen(void)
{
    return error_of(listen(socket(AF_INET, SOCK_STREAM, 0), 1));
}

static int
make_a_file_in_memory(void)
{
    return error_of(syscall(SYS_memfd_create, "name", 0u));
}

static int
enter_a_namespace(void)
{
    return error_of(setns(-1, 0));
}

static int
mount_nothing(void)
{
    return error_of(syscall(SYS_umount2, "/nonexistent", 0));
}

static int
load_a_program(void)
{
    return error_of(syscall(SYS_bpf, 0, NULL, 0));
}

static int
make_a_ring(void)
{
    return error_of(syscall(SYS_io_uring_setup, 0, NULL));
}

static int
handle_faults(void)
{
    return error_of(syscall(SYS_userfaultfd, -1));
}

static int
ask_for_a_key(void)
{
    return error_of(syscall(SYS_keyctl, -1, 0, 0, 0, 0));
}

static int
open_a_raw_socket(void)
{
    return error_of(socket(AF_INET, SOCK_RAW, 1));
}

static int
open_a_packet_socket(void)
{
    return error_of(socket(AF_PACKET, SOCK_DGRAM, 0));
}

static int
open_a_netlink_socket_of_another_kind(void)
{
    return error_of(socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT));
}

static int
type_into_the_terminal(void)
{
    return error_of(syscall(SYS_ioctl, -1, 0x5412 /* TIOCSTI */, NULL));
}

static int
clear_a_protection(void)
{
    return error_of(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
}

static int
raise_a_limit(void)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    return error_of(syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, NULL));
}

static int
map_code_that_can_be_written(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0) == MAP_FAILED
               ? errno
               : 0;
}

static int
make_memory_code(void)
{
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return error_of(mprotect(memory, 4096, PROT_READ | PROT_WRITE | PROT_EXEC));
}

static int
call_what_does_not_exist(void)
{
    return error_of(syscall(NO_SUCH_CALL));
}

static const struct {
    const char *what;
    attempt *attempt;
    int error;
    bool works; /* without the filter, for any user */
    bool sanitizers_need_it;
} forbidden[] = {
    {"execve", execute, EPERM, true, false},
    {"ptrace", trace, EPERM, true, true},
    {"fork", begin_process, ENOSYS, true, true},
    {"kill", signal_another, EPERM, true, false},
    {"tgkill", signal_a_thread_of_another, ENOSYS, true, true},
    {"chmod", change_mode, EPERM, false, false},
    {"listen", begin_to_listen, EPERM, true, false},
    {"memfd_create", make_a_file_in_memory, EPERM, true, false},
    {"setns", enter_a_namespace, EPERM, false, false},
    {"umount2", mount_nothing, EPERM, false, false},
    {"bpf", load_a_program, EPERM, false, false},
    {"io_uring_setup", make_a_ring, EPERM, false, false},
    {"userfaultfd", handle_faults, EPERM, false, false},
    {"keyctl", ask_for_a_key, EPERM, false, false},
    {"raw socket", open_a_raw_socket, ENOSYS, false, false},
    {"packet socket", open_a_packet_socket, ENOSYS, false, false},
    {"netlink", open_a_netlink_socket_of_another_kind, ENOSYS, true, false},
    {"ioctl", type_into_the_terminal, ENOSYS, false, true},
    {"prctl", clear_a_protection, ENOSYS, true, true},
    {"prlimit64", raise_a_limit, ENOSYS, true, false},
    {"mmap", map_code_that_can_be_written, ENOSYS, true, true},
    {"mprotect", make_memory_code, ENOSYS, true, true},
    {"no such call", call_what_does_not_exist, ENOSYS, false, false},
};

START_TEST(calls_that_serving_does_not_take_fail)
{
    if (INSTRUMENTED && forbidden[_i].sanitizers_need_it)
        return;
    if (forbidden[_i].works)
        ck_assert_msg(try(forbidden[_i].attempt, false) == 0, "%s fails anyway",
                      forbidden[_i].what);
    ck_assert_msg(try(forbidden[_i].attempt, true) == forbidden[_i].error, "%s: %d",
                  forbidden[_i].what, try(forbidden[_i].attempt, true));
}
END_TEST

/* ---- allowed --------------------------------------------------------------------------------- */

static void *
nothing(void *argument)
{
    return argument;
}

static int
begin_a_thread(void)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, nothing, NULL);

    return error ? error : pthread_join(thread, NULL);
}

static int
look_names_up(void)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "::1", "nobody.invalid"};

    for (size_t i = 0; i < 4; i++) {
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *found;
        int error = getaddrinfo(names[i], "80", &hints, &found);

        if (error == 0)
            freeaddrinfo(found);
        else if (error == EAI_SYSTEM)
            return errno;
    }
    return 0;
}

static int
list_interfaces(void)
{
    struct ifaddrs *list;

    if (getifaddrs(&list) != 0)
        return errno;
    freeifaddrs(list);
    return 0;
}

static int
read_a_file(void)
{
    FILE *file = fopen("/etc/passwd", "re");
    char line[256];

    if (!file)
        return errno;
    if (!fgets(line, sizeof(line), file))
        return EIO;
    return fclose(file) == 0 ? 0 : errno;
}

static int
moderate(void)
{
    return error_of(sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}));
}

static int
abort_itself(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGABRT);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (raise(SIGABRT) != 0)
        return errno;
    return sigwaitinfo(&set, NULL) == SIGABRT ? 0 : errno;
}

static int
allocate(void)
{
    void *small = malloc(1000), *large = malloc((size_t)64 << 20);
    int error = small && large ? 0 : ENOMEM;

    free(small);
    free(large);
    return error;
}

static const struct {
    const char *what;
    attempt *attempt;
} allowed[] = {
    {"a thread", begin_a_thread}, {"names", look_names_up},  {"interfaces", list_interfaces},
    {"a file", read_a_file},      {"SCHED_BATCH", moderate}, {"a signal to itself", abort_itself},
    {"memory", allocate},
};

START_TEST(calls_that_serving_takes_work)
{
    int error = try(allowed[_i].attempt, true);

    ck_assert_msg(error == 0, "%s: %d", allowed[_i].what, error);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/syscall_filter");
    TCase *tc = tcase_create("syscall_filter");

    if (try(begin_a_thread, true) == NO_FILTER)
        unit_skip("this kernel has no seccomp filters");
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, calls_that_serving_does_not_take_fail, 0,
                        (int)(sizeof(forbidden) / sizeof(forbidden[0])));
    tcase_add_loop_test(tc, calls_that_serving_takes_work, 0,
                        (int)(sizeof(allowed) / sizeof(allowed[0])));
    suite_add_tcase(suite, tc);
    return suite;
}
