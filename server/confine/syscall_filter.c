#include "server/confine/syscall_filter.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/instrumented.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* An argument of type int or unsigned: the kernel does not look at its upper half. */
#define INT_IS(index, value) SCMP_CMP(index, SCMP_CMP_MASKED_EQ, 0xffffffffu, (uint32_t)(value))
#define BITS_ARE(index, mask, value) SCMP_CMP(index, SCMP_CMP_MASKED_EQ, mask, value)

#define SOCKET_TYPE_MASK 0xfu
#define NAME_MEMORY 0x53564d41u /* PR_SET_VMA, which newer allocators call */

/* Whatever the arguments. Names that an architecture does not have are passed over. */
static const char *const allowed[] = {
    /* descriptors */
    "read", "readv", "pread64", "preadv", "preadv2", "write", "writev", "pwrite64", "pwritev",
    "pwritev2", "close", "close_range", "lseek", "_llseek", "dup", "dup2", "dup3", "fcntl",
    "fcntl64", "pipe", "pipe2", "poll", "ppoll", "ppoll_time64", "select", "_newselect", "pselect6",
    "pselect6_time64", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait",
    "epoll_pwait2", "eventfd", "eventfd2", "timerfd_create", "timerfd_settime", "timerfd_settime64",
    "timerfd_gettime", "timerfd_gettime64",
    /* files: which ones is a matter of Landlock */
    "open", "openat", "stat", "stat64", "fstat", "fstat64", "lstat", "lstat64", "newfstatat",
    "fstatat64", "statx", "statfs", "statfs64", "fstatfs", "fstatfs64", "access", "faccessat",
    "faccessat2", "readlink", "readlinkat", "getdents", "getdents64", "getcwd", "unlink",
    "unlinkat",
    /* sockets; not listen(): those that are listened on are open already */
    "socketpair", "connect", "bind", "accept", "accept4", "getsockname", "getpeername",
    "getsockopt", "setsockopt", "send", "sendto", "sendmsg", "sendmmsg", "recv", "recvfrom",
    "recvmsg", "recvmmsg", "recvmmsg_time64", "shutdown",
    /* memory */
    "brk", "munmap", "mremap", "madvise",
    /* threads */
    "futex", "futex_time64", "futex_waitv", "set_robust_list", "get_robust_list", "rseq",
    "set_tid_address", "membarrier", "sched_yield", "sched_getaffinity", "sched_getscheduler",
    "sched_setscheduler", "sched_getparam", "sched_get_priority_max", "sched_get_priority_min",
    "getcpu", "gettid", "exit", "exit_group", "arch_prctl", "wait4", "waitpid",
    /* signals, to itself only */
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigreturn", "rt_sigtimedwait",
    "rt_sigtimedwait_time64", "rt_sigpending", "sigaltstack", "restart_syscall", "signalfd4",
    /* time */
    "clock_gettime", "clock_gettime64", "clock_getres", "clock_getres_time64", "clock_nanosleep",
    "clock_nanosleep_time64", "nanosleep", "gettimeofday", "time", "times",
    /* what it is */
    "getpid", "getppid", "getuid", "getuid32", "geteuid", "geteuid32", "getgid", "getgid32",
    "getegid", "getegid32", "getresuid", "getresuid32", "getresgid", "getresgid32", "getgroups",
    "getgroups32", "uname", "sysinfo", "getrusage", "getrlimit", "ugetrlimit", "getpriority",
    "getrandom"};

/*
 * EPERM instead of ENOSYS, so that a log or a trace says that the filter refused it. clone3() is
 * not here: its flags are in memory, where a filter cannot look, and the C library takes clone()
 * instead when there is no clone3().
 */
static const char *const forbidden[] = {
    /* other programs and processes */
    "execve", "execveat", "fork", "vfork", "kill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo",
    "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "ptrace", "process_vm_readv",
    "process_vm_writev", "process_madvise", "kcmp", "setpriority", "sched_setattr",
    /* other users and namespaces */
    "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setgroups", "setfsuid",
    "setfsgid", "capset", "unshare", "setns", "chroot", "pivot_root", "mount", "umount", "umount2",
    "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "open_tree", "mount_setattr",
    /* the file system */
    "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat", "rename",
    "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "mkdir", "mkdirat", "rmdir",
    "mknod", "mknodat", "truncate", "ftruncate", "setxattr", "lsetxattr", "fsetxattr",
    "name_to_handle_at", "open_by_handle_at", "memfd_create", "memfd_secret",
    /* the kernel */
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register", "io_setup", "io_submit", "add_key", "request_key", "keyctl", "init_module",
    "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff",
    "acct", "quotactl", "syslog", "iopl", "ioperm", "modify_ldt", "uselib", "personality",
    "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname",
    "vhangup", "listen"};

#if INSTRUMENTED
/* The leak checker stops all threads from a process of its own; reports look at memory and files.
 */
static const char *const for_sanitizers[] = {
    "clone",    "ptrace",  "process_vm_readv", "prctl",       "mmap",   "mmap2",
    "mprotect", "mincore", "msync", "setrlimit", "personality", "tgkill", "ioctl"};
#endif

/* A name that the library is too old for has its number here, which is that of all architectures. */
static int
number_of(const char *name)
{
    const int number = seccomp_syscall_resolve_name(name);

    return number == __NR_SCMP_ERROR && strcmp(name, "cachestat") == 0 ? 451 : number;
}

static int
allow_all(scmp_filter_ctx filter, const char *const *names, size_t count)
{
    int error = 0;

    for (size_t i = 0; error == 0 && i < count; i++) {
        int number = number_of(names[i]);

        if (number != __NR_SCMP_ERROR)
            error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
    }
    return error;
}

static size_t
count(const char *const *names)
{
    size_t n = 0;

    while (names[n])
        n++;
    return n;
}

static bool
is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

static int
forbid_all(scmp_filter_ctx filter, const char *const *more)
{
    int error = 0;

    for (size_t i = 0; error == 0 && i < COUNT(forbidden); i++) {
        int number = seccomp_syscall_resolve_name(forbidden[i]);

        if (number == __NR_SCMP_ERROR || is_one_of(forbidden[i], more))
            continue;
        error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
        if (INSTRUMENTED && error == -EEXIST) /* one that sanitizers need */
            error = 0;
    }
    return error;
}

/* Allowed with certain arguments only. */
struct conditional {
    const char *name;
    unsigned conditions;
    struct scmp_arg_cmp when[2];
};

static int
allow_conditionally(scmp_filter_ctx filter)
{
    const uint32_t writable = PROT_WRITE, executable = PROT_EXEC;
    const struct conditional rows[] = {
        /* threads, but no processes */
        {"clone", 1, {BITS_ARE(0, CLONE_THREAD, CLONE_THREAD)}},
        /* memory that is written or executed, but not both: look-up modules are loaded late */
        {"mmap", 1, {BITS_ARE(2, writable, 0)}},
        {"mmap", 1, {BITS_ARE(2, executable, 0)}},
        {"mmap2", 1, {BITS_ARE(2, writable, 0)}},
        {"mmap2", 1, {BITS_ARE(2, executable, 0)}},
        {"mprotect", 1, {BITS_ARE(2, writable, 0)}},
        {"mprotect", 1, {BITS_ARE(2, executable, 0)}},
        /* streams and datagrams; of netlink, the addresses and routes that getaddrinfo() reads */
        {"socket", 1, {INT_IS(0, AF_UNIX)}},
        {"socket", 2, {INT_IS(0, AF_INET), BITS_ARE(1, SOCKET_TYPE_MASK, SOCK_STREAM)}},
        {"socket", 2, {INT_IS(0, AF_INET), BITS_ARE(1, SOCKET_TYPE_MASK, SOCK_DGRAM)}},
        {"socket", 2, {INT_IS(0, AF_INET6), BITS_ARE(1, SOCKET_TYPE_MASK, SOCK_STREAM)}},
        {"socket", 2, {INT_IS(0, AF_INET6), BITS_ARE(1, SOCKET_TYPE_MASK, SOCK_DGRAM)}},
        {"socket", 2, {INT_IS(0, AF_NETLINK), INT_IS(2, NETLINK_ROUTE)}},
        {"ioctl", 1, {INT_IS(1, FIONREAD)}},
        {"ioctl", 1, {INT_IS(1, FIONBIO)}},
        {"ioctl", 1, {INT_IS(1, TCGETS)}},   /* isatty() */
        {"ioctl", 1, {INT_IS(1, SIOCOUTQ)}}, /* what a closing connection's peer has yet to take */
        {"ioctl", 1, {INT_IS(1, SIOCGIFNAME)}},
        {"ioctl", 1, {INT_IS(1, SIOCGIFINDEX)}},
        {"prctl", 1, {INT_IS(0, PR_SET_NAME)}},
        {"prctl", 1, {INT_IS(0, PR_GET_NAME)}},
        {"prctl", 1, {INT_IS(0, NAME_MEMORY)}},
        /* limits are read */
        {"prlimit64", 2, {INT_IS(0, 0), BITS_ARE(2, UINT64_MAX, 0)}},
        /* abort() and pthread_kill() */
        {"tgkill", 1, {INT_IS(0, getpid())}},
    };
    int error = 0;

    for (size_t i = 0; error == 0 && i < COUNT(rows); i++) {
        int number = seccomp_syscall_resolve_name(rows[i].name);

        if (number == __NR_SCMP_ERROR)
            continue;
        error = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, rows[i].conditions,
                                       rows[i].when);
        if (INSTRUMENTED && error == -EEXIST) /* allowed for sanitizers, whatever the arguments */
            error = 0;
    }
    return error;
}

int
syscall_filter_load(const char *const *more)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    int error;

    if (!filter)
        return ENOMEM;
    /* Looked up as in a tree, where the kernel does not know the answer beforehand. */
    seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    error = allow_all(filter, allowed, COUNT(allowed));
    if (error == 0)
        error = allow_all(filter, more, count(more));
#if INSTRUMENTED
    if (error == 0)
        error = allow_all(filter, for_sanitizers, COUNT(for_sanitizers));
#endif
    if (error == 0)
        error = allow_conditionally(filter);
    if (error == 0)
        error = forbid_all(filter, more);
    if (error == 0)
        error = seccomp_load(filter);
    seccomp_release(filter);
    return -error;
}
