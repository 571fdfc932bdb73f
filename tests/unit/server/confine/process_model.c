#include "tests/unit/server/confine/process_model.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/faults.h"

#define ALL_CAPABILITIES ((UINT64_C(1) << (CAP_LAST_CAP + 1)) - 1)

struct process_model process_model;

static bool on;
static char calls[65536];
static size_t calls_len;

void
process_model_begin(bool root)
{
    uid_t id = root ? 0 : 1000;

    process_model = (struct process_model){
        .real = id,
        .effective = id,
        .saved = id,
        .real_group = id,
        .effective_group = id,
        .saved_group = id,
        .capabilities = root ? ALL_CAPABILITIES : 0,
        .bounding = ALL_CAPABILITIES,
        .ambient = root,
        .dumpable = true,
        .landlock = 6,
    };
    calls_len = 0;
    calls[0] = '\0';
    on = true;
}

void
process_model_end(void)
{
    on = false;
}

static void __attribute__((format(printf, 1, 2))) record(const char *format, ...)
{
    size_t space = sizeof(calls) - calls_len;
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(calls + calls_len, space, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= space)
        abort();
    calls_len += (size_t)n;
}

const char *
process_model_calls(void)
{
    return calls;
}

static const char *
find_line(const char *line)
{
    size_t len = strlen(line);

    for (const char *at = calls; (at = strstr(at, line)) != NULL; at++)
        if ((at == calls || at[-1] == '\n') && at[len] == '\n')
            return at;
    return NULL;
}

bool
process_model_called(const char *line)
{
    return find_line(line) != NULL;
}

bool
process_model_in_order(const char *first, const char *second)
{
    const char *one = find_line(first), *two = find_line(second);

    return one && two && one < two;
}

/* The path that a descriptor is of. */
static const char *
path_of(int fd)
{
    static char path[PATH_MAX];
    char link[64];
    ssize_t len;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    len = readlink(link, path, sizeof(path) - 1);
    path[len < 0 ? 0 : len] = '\0';
    return path;
}

static int
refuse(int error)
{
    errno = error;
    return -1;
}

static bool
has(unsigned capability)
{
    return (process_model.capabilities >> capability & 1) != 0;
}

/* ---- user and groups ---------------------------------------------------------------------------
 */

uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void);
gid_t __real_getegid(void);
gid_t __wrap_getegid(void);
int __real_getresuid(uid_t *real, uid_t *effective, uid_t *saved);
int __wrap_getresuid(uid_t *real, uid_t *effective, uid_t *saved);
int __real_getresgid(gid_t *real, gid_t *effective, gid_t *saved);
int __wrap_getresgid(gid_t *real, gid_t *effective, gid_t *saved);
int __real_setresuid(uid_t real, uid_t effective, uid_t saved);
int __wrap_setresuid(uid_t real, uid_t effective, uid_t saved);
int __real_setresgid(gid_t real, gid_t effective, gid_t saved);
int __wrap_setresgid(gid_t real, gid_t effective, gid_t saved);
int __real_setgroups(size_t count, const gid_t *groups);
int __wrap_setgroups(size_t count, const gid_t *groups);
int __real_getgrouplist(const char *user, gid_t group, gid_t *groups, int *count);
int __wrap_getgrouplist(const char *user, gid_t group, gid_t *groups, int *count);
int __real_setfsuid(uid_t uid);
int __wrap_setfsuid(uid_t uid);
int __real_setfsgid(gid_t gid);
int __wrap_setfsgid(gid_t gid);

uid_t
__wrap_geteuid(void)
{
    return on ? process_model.effective : __real_geteuid();
}

gid_t
__wrap_getegid(void)
{
    return on ? process_model.effective_group : __real_getegid();
}

int
__wrap_getresuid(uid_t *real, uid_t *effective, uid_t *saved)
{
    if (!on)
        return __real_getresuid(real, effective, saved);
    if (faults_now("getresuid"))
        return -1;
    *real = process_model.real;
    *effective = process_model.effective;
    *saved = process_model.saved;
    return 0;
}

int
__wrap_getresgid(gid_t *real, gid_t *effective, gid_t *saved)
{
    if (!on)
        return __real_getresgid(real, effective, saved);
    if (faults_now("getresgid"))
        return -1;
    *real = process_model.real_group;
    *effective = process_model.effective_group;
    *saved = process_model.saved_group;
    return 0;
}

static bool
is_own_user(uid_t uid)
{
    return uid == (uid_t)-1 || uid == process_model.real || uid == process_model.effective ||
           uid == process_model.saved;
}

static bool
is_own_group(gid_t gid)
{
    return gid == (gid_t)-1 || gid == process_model.real_group ||
           gid == process_model.effective_group || gid == process_model.saved_group;
}

int
__wrap_setresuid(uid_t real, uid_t effective, uid_t saved)
{
    if (!on)
        return __real_setresuid(real, effective, saved);
    if (effective == 0) {
        /* an attempt, which is not to succeed */
        record("back to root\n");
        return process_model.returns_to_root ? 0 : refuse(EPERM);
    }
    if (faults_now("setresuid"))
        return -1;
    if (!has(CAP_SETUID) && !(is_own_user(real) && is_own_user(effective) && is_own_user(saved)))
        return refuse(EPERM);
    record("setresuid %d %d %d\n", (int)real, (int)effective, (int)saved);
    if (!(process_model.ids_kept & 1))
        process_model.real = real;
    if (!(process_model.ids_kept & 2))
        process_model.effective = effective;
    if (!(process_model.ids_kept & 4))
        process_model.saved = saved;
    /* capabilities(7): all are lost when no id is root's any more */
    process_model.capabilities = 0;
    process_model.ambient = false;
    return 0;
}

int
__wrap_setresgid(gid_t real, gid_t effective, gid_t saved)
{
    if (!on)
        return __real_setresgid(real, effective, saved);
    if (faults_now("setresgid"))
        return -1;
    if (!has(CAP_SETGID) && !(is_own_group(real) && is_own_group(effective) && is_own_group(saved)))
        return refuse(EPERM);
    record("setresgid %d %d %d\n", (int)real, (int)effective, (int)saved);
    if (!(process_model.ids_kept & 8))
        process_model.real_group = real;
    if (!(process_model.ids_kept & 16))
        process_model.effective_group = effective;
    if (!(process_model.ids_kept & 32))
        process_model.saved_group = saved;
    return 0;
}

int
__wrap_setgroups(size_t count, const gid_t *groups)
{
    if (!on)
        return __real_setgroups(count, groups);
    if (faults_now("setgroups"))
        return -1;
    if (!has(CAP_SETGID))
        return refuse(EPERM);
    if (count > PROCESS_MODEL_GROUPS)
        abort();
    record("setgroups");
    for (size_t i = 0; i < count; i++)
        record(" %d", (int)(process_model.groups[i] = groups[i]));
    record("\n");
    process_model.group_count = count;
    return 0;
}

/* As glibc does it: *count says how many there are when they do not fit. */
int
__wrap_getgrouplist(const char *user, gid_t group, gid_t *groups, int *count)
{
    int given = *count;

    if (!on || process_model.user_groups == 0)
        return __real_getgrouplist(user, group, groups, count);
    *count = process_model.user_groups;
    if (given < *count)
        return -1;
    for (int i = 0; i < *count; i++)
        groups[i] = i == 0 ? group : (gid_t)(1000 + i);
    return *count;
}

int
__wrap_setfsuid(uid_t uid)
{
    if (!on)
        return __real_setfsuid(uid);
    record("setfsuid %d\n", (int)uid);
    return (int)process_model.effective;
}

int
__wrap_setfsgid(gid_t gid)
{
    if (!on)
        return __real_setfsgid(gid);
    record("setfsgid %d\n", (int)gid);
    return (int)process_model.effective_group;
}

/* ---- files
 * --------------------------------------------------------------------------------------- */

int __real_fchown(int fd, uid_t uid, gid_t gid);
int __wrap_fchown(int fd, uid_t uid, gid_t gid);
int __real_fchownat(int fd, const char *path, uid_t uid, gid_t gid, int flags);
int __wrap_fchownat(int fd, const char *path, uid_t uid, gid_t gid, int flags);
char *__real_realpath(const char *path, char *resolved);
char *__wrap_realpath(const char *path, char *resolved);

static int
change_owner(int fd, uid_t uid, gid_t gid)
{
    if (process_model.chown_error)
        return refuse(process_model.chown_error);
    record("chown %s %d %d\n", path_of(fd), (int)uid, (int)gid);
    return 0;
}

int
__wrap_fchown(int fd, uid_t uid, gid_t gid)
{
    if (!on)
        return __real_fchown(fd, uid, gid);
    return faults_now("fchown") ? -1 : change_owner(fd, uid, gid);
}

int
__wrap_fchownat(int fd, const char *path, uid_t uid, gid_t gid, int flags)
{
    if (!on)
        return __real_fchownat(fd, path, uid, gid, flags);
    return faults_now("fchownat") ? -1 : change_owner(fd, uid, gid);
}

char *
__wrap_realpath(const char *path, char *resolved)
{
    if (on && faults_now("realpath"))
        return NULL;
    if (on && process_model.resolv_conf && strcmp(path, "/etc/resolv.conf") == 0)
        return strcpy(resolved, process_model.resolv_conf);
    return __real_realpath(path, resolved);
}

/* ---- capabilities and flags of the process
 * --------------------------------------------------------- */

int __real_prctl(int operation, ...);
int __wrap_prctl(int operation, ...);

static int
act(int operation, unsigned long argument)
{
    switch (operation) {
    case PR_CAPBSET_READ:
        if (argument > CAP_LAST_CAP)
            return refuse(EINVAL);
        return process_model.bounding >> argument & 1;
    case PR_CAPBSET_DROP:
        if (!has(CAP_SETPCAP))
            return refuse(EPERM);
        if (process_model.bounding == ALL_CAPABILITIES)
            record("drop bounding set\n");
        process_model.bounding &= ~(UINT64_C(1) << argument);
        return 0;
    case PR_CAP_AMBIENT:
        if (faults_now("prctl PR_CAP_AMBIENT"))
            return -1;
        record("drop ambient set\n");
        process_model.ambient = false;
        return 0;
    case PR_SET_DUMPABLE:
        if (faults_now("prctl PR_SET_DUMPABLE"))
            return -1;
        record("dumpable %lu\n", argument);
        process_model.dumpable = argument != 0;
        return 0;
    case PR_SET_NO_NEW_PRIVS:
        if (faults_now("prctl PR_SET_NO_NEW_PRIVS"))
            return -1;
        record("no new privileges\n");
        process_model.no_new_privs = true;
        return 0;
    default:
        abort();
    }
}

int
__wrap_prctl(int operation, ...)
{
    unsigned long arguments[4];
    va_list args;

    va_start(args, operation);
    for (size_t i = 0; i < 4; i++)
        arguments[i] = va_arg(args, unsigned long);
    va_end(args);
    return on ? act(operation, arguments[0])
              : __real_prctl(operation, arguments[0], arguments[1], arguments[2], arguments[3]);
}

/* ---- system calls without a function
 * ----------------------------------------------------------------- */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

static long
get_capabilities(struct __user_cap_data_struct *data)
{
    if (process_model.no_capget)
        return refuse(EPERM);
    for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        data[i].effective = data[i].permitted = (uint32_t)(process_model.capabilities >> 32 * i);
    return 0;
}

static long
set_capabilities(const struct __user_cap_data_struct *data)
{
    if (faults_now("capset"))
        return -1;
    process_model.capabilities =
        data[0].permitted | (uint64_t)data[1].permitted << 32 | data[0].effective;
    record("capabilities %llx\n", (unsigned long long)process_model.capabilities);
    return 0;
}

/* struct landlock_ruleset_attr, whole as of version 6. */
static long
create_ruleset(const uint64_t *attributes, size_t size, unsigned flags)
{
    if (flags & LANDLOCK_CREATE_RULESET_VERSION)
        return process_model.landlock ? process_model.landlock : refuse(ENOSYS);
    if (process_model.calls_filtered)
        return refuse(ENOSYS);
    if (faults_now("landlock_create_ruleset"))
        return -1;
    if (size != 3 * sizeof(*attributes))
        return refuse(EINVAL);
    record("landlock files=%llx ports=%llx scopes=%llx\n", (unsigned long long)attributes[0],
           (unsigned long long)attributes[1], (unsigned long long)attributes[2]);
    return __real_syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC, 0);
}

static long
add_rule(const struct landlock_path_beneath_attr *rule)
{
    static const struct {
        uint64_t bit;
        const char *name;
    } rights[] = {
        {LANDLOCK_ACCESS_FS_READ_FILE, "read_file"},     {LANDLOCK_ACCESS_FS_READ_DIR, "read_dir"},
        {LANDLOCK_ACCESS_FS_WRITE_FILE, "write_file"},   {LANDLOCK_ACCESS_FS_MAKE_REG, "make_reg"},
        {LANDLOCK_ACCESS_FS_REMOVE_FILE, "remove_file"}, {UINT64_C(1) << 14, "truncate"},
    };
    uint64_t others = rule->allowed_access;

    if (faults_now("landlock_add_rule"))
        return -1;
    record("allow %s", path_of(rule->parent_fd));
    for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
        if (rule->allowed_access & rights[i].bit)
            record(" %s", rights[i].name);
        others &= ~rights[i].bit;
    }
    if (others)
        record(" %llx", (unsigned long long)others);
    record("\n");
    return 0;
}

static long
restrict_files(void)
{
    if (process_model.calls_filtered)
        return refuse(ENOSYS);
    if (!process_model.no_new_privs && !has(CAP_SYS_ADMIN))
        return refuse(EPERM);
    if (faults_now("landlock_restrict_self"))
        return -1;
    record("restrict files\n");
    process_model.files_restricted = true;
    return 0;
}

/* Those of rings are not modelled: they fail where a test wants it. */
static const char *
name_of_ring_call(long number)
{
    switch (number) {
    case SYS_io_uring_setup:
        return "io_uring_setup";
    case SYS_io_uring_register:
        return "io_uring_register";
    case SYS_io_uring_enter:
        return "io_uring_enter";
    default:
        return NULL;
    }
}

/* A call has six arguments at most. */
long
__wrap_syscall(long number, ...)
{
    const char *ring_call = name_of_ring_call(number);
    void *pointers[6];
    va_list args;

    va_start(args, number);
    for (size_t i = 0; i < 6; i++)
        pointers[i] = va_arg(args, void *);
    va_end(args);
    if (ring_call && faults_now(ring_call))
        return -1;
    if (on)
        switch (number) {
        case SYS_capget:
            return get_capabilities(pointers[1]);
        case SYS_capset:
            return set_capabilities(pointers[1]);
        case SYS_landlock_create_ruleset:
            return create_ruleset(pointers[0], (size_t)(uintptr_t)pointers[1],
                                  (unsigned)(uintptr_t)pointers[2]);
        case SYS_landlock_add_rule:
            return add_rule(pointers[2]);
        case SYS_landlock_restrict_self:
            return restrict_files();
        default:
            break;
        }
    return __real_syscall(number, pointers[0], pointers[1], pointers[2], pointers[3], pointers[4],
                          pointers[5]);
}

/* ---- libseccomp, which says what failed without errno
 * -------------------------------------------------- */

scmp_filter_ctx __real_seccomp_init(uint32_t action);
scmp_filter_ctx __wrap_seccomp_init(uint32_t action);
int __real_seccomp_rule_add_array(scmp_filter_ctx filter, uint32_t action, int number,
                                  unsigned count, const struct scmp_arg_cmp *arguments);
int __wrap_seccomp_rule_add_array(scmp_filter_ctx filter, uint32_t action, int number,
                                  unsigned count, const struct scmp_arg_cmp *arguments);
int __wrap_seccomp_rule_add(scmp_filter_ctx filter, uint32_t action, int number, unsigned count,
                            ...);
int __real_seccomp_load(scmp_filter_ctx filter);
int __wrap_seccomp_load(scmp_filter_ctx filter);

scmp_filter_ctx
__wrap_seccomp_init(uint32_t action)
{
    return on && faults_now("seccomp_init") ? NULL : __real_seccomp_init(action);
}

int
__wrap_seccomp_rule_add_array(scmp_filter_ctx filter, uint32_t action, int number, unsigned count,
                              const struct scmp_arg_cmp *arguments)
{
    if (on && faults_now("seccomp_rule_add"))
        return -errno;
    return __real_seccomp_rule_add_array(filter, action, number, count, arguments);
}

/* The daemon's rules without conditions; no others come here. */
int
__wrap_seccomp_rule_add(scmp_filter_ctx filter, uint32_t action, int number, unsigned count, ...)
{
    if (count != 0)
        abort();
    return __wrap_seccomp_rule_add_array(filter, action, number, 0, NULL);
}

int
__wrap_seccomp_load(scmp_filter_ctx filter)
{
    if (!on)
        return __real_seccomp_load(filter);
    if (faults_now("seccomp_load"))
        return -errno;
    if (process_model.filter_error)
        return -process_model.filter_error;
    record("filter system calls\n");
    process_model.calls_filtered = true;
    return 0;
}
