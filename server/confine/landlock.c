#include "server/confine/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * What headers older than the kernel lack. The numbers are the kernel's (include/uapi/linux/
 * landlock.h); the last of the system calls is the same on all architectures.
 */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#define FILES_1 ((UINT64_C(1) << 13) - 1)  /* version 1: execute to make links */
#define FILES_REFER (UINT64_C(1) << 13)    /* 2 */
#define FILES_TRUNCATE (UINT64_C(1) << 14) /* 3 */
#define PORTS_BIND UINT64_C(1)             /* 4 */
#define FILES_DEVICES (UINT64_C(1) << 15)  /* 5: ioctl() */
#define SCOPE_ABSTRACT UINT64_C(1)         /* 6 */
#define SCOPE_SIGNALS UINT64_C(2)          /* 6 */

/* struct landlock_ruleset_attr as of version 6. An older kernel takes it if what it lacks is 0. */
struct ruleset {
    uint64_t files;
    uint64_t ports;
    uint64_t scopes;
};

static int
kernel_version(void)
{
    long version =
        syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_CREATE_RULESET_VERSION);

    return version < 0 ? 0 : (int)version;
}

int
landlock_begin(struct landlock *landlock, bool abstract_sockets)
{
    struct ruleset ruleset = {.files = FILES_1};
    long fd;

    *landlock = (struct landlock){.version = kernel_version(), .rules = -1};
    if (landlock->version == 0)
        return 0;
    if (landlock->version >= 2)
        ruleset.files |= FILES_REFER;
    if (landlock->version >= 3)
        ruleset.files |= FILES_TRUNCATE;
    if (landlock->version >= 4)
        ruleset.ports |= PORTS_BIND;
    if (landlock->version >= 5)
        ruleset.files |= FILES_DEVICES;
    if (landlock->version >= 6)
        ruleset.scopes |= SCOPE_SIGNALS | (abstract_sockets ? 0 : SCOPE_ABSTRACT);
    fd = syscall(SYS_landlock_create_ruleset, &ruleset, sizeof(ruleset), 0);
    if (fd < 0)
        return errno;
    landlock->rules = (int)fd;
    return 0;
}

static uint64_t
access_of(const struct landlock *landlock, unsigned uses, bool folder)
{
    uint64_t access = 0;

    if (uses & LANDLOCK_READ)
        access |= LANDLOCK_ACCESS_FS_READ_FILE | (folder ? LANDLOCK_ACCESS_FS_READ_DIR : 0);
    if (uses & LANDLOCK_WRITE)
        access |= LANDLOCK_ACCESS_FS_WRITE_FILE;
    if ((uses & LANDLOCK_TRUNCATE) && landlock->version >= 3)
        access |= FILES_TRUNCATE;
    if (folder && (uses & LANDLOCK_CREATE))
        access |= LANDLOCK_ACCESS_FS_MAKE_REG;
    if (folder && (uses & LANDLOCK_REMOVE))
        access |= LANDLOCK_ACCESS_FS_REMOVE_FILE;
    return access;
}

int
landlock_allow(struct landlock *landlock, const char *path, unsigned uses)
{
    struct landlock_path_beneath_attr rule = {0};
    struct stat st;
    int error = 0;

    if (landlock->rules < 0)
        return 0;
    rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
    if (rule.parent_fd < 0)
        return errno == ENOENT || errno == EACCES || errno == ENOTDIR ? 0 : errno;
    if (fstat(rule.parent_fd, &st) == 0)
        rule.allowed_access = access_of(landlock, uses, S_ISDIR(st.st_mode));
    /* EBADFD: a pipe or a socket without a name, which no rule is needed for. */
    if (rule.allowed_access &&
        syscall(SYS_landlock_add_rule, landlock->rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) !=
            0 &&
        errno != EBADFD)
        error = errno;
    close(rule.parent_fd);
    return error;
}

int
landlock_end(struct landlock *landlock, bool enforce)
{
    int error = 0;

    if (landlock->rules < 0)
        return 0;
    if (enforce && syscall(SYS_landlock_restrict_self, landlock->rules, 0) != 0)
        error = errno;
    close(landlock->rules);
    landlock->rules = -1;
    return error;
}
