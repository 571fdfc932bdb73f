#include "server/confine/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/units.h"
#include "server/logs/sink.h"

#define NAME_SIZE 256 /* of a user or a group */
#define MOST_GROUPS 65536

/* ---- the user of --user ---------------------------------------------------------------------- */

static bool
find_group(const char *text, gid_t *gid, struct buf *why)
{
    const struct group *group;
    uint64_t number;

    if (units_parse_uint(text, 0, UINT32_MAX - 1, &number)) {
        *gid = (gid_t)number;
        return true;
    }
    group = getgrnam(text);
    if (group)
        *gid = group->gr_gid;
    else
        buf_printf(why, "\"%s\" is not a group of this machine", text);
    return group != NULL;
}

/* All groups of a user of that name. */
static bool
find_groups(const char *name, struct service_user *user, struct buf *why)
{
    int count = 64;

    for (;;) {
        gid_t *groups = reallocarray(user->groups, (size_t)count, sizeof(*groups));
        int size = count;

        if (!groups) {
            buf_append_str(why, "out of memory");
            return false;
        }
        user->groups = groups;
        if (getgrouplist(name, user->gid, groups, &count) >= 0) {
            user->group_count = count;
            return true;
        }
        count = count > size ? count : 2 * size;
        if (count > MOST_GROUPS) {
            buf_printf(why, "%s is in more than %d groups", name, MOST_GROUPS);
            return false;
        }
    }
}

static const struct passwd *
find_passwd(const char *text)
{
    uint64_t number;

    if (units_parse_uint(text, 0, UINT32_MAX - 1, &number))
        return getpwuid((uid_t)number);
    return getpwnam(text);
}

/* The passwd entry is static memory: its fields are copied before the next lookup. */
static bool
find_parts(char *name, const char *group, struct service_user *user, struct buf *why)
{
    const struct passwd *found = find_passwd(name);
    uint64_t number;

    if (found) {
        user->uid = found->pw_uid;
        user->gid = found->pw_gid;
        if (strlen(found->pw_name) < NAME_SIZE)
            strcpy(name, found->pw_name);
    } else if (group && units_parse_uint(name, 0, UINT32_MAX - 1, &number)) {
        user->uid = (uid_t)number;
    } else {
        buf_printf(why, "\"%s\" is not a user of this machine", name);
        return false;
    }
    if (group && !find_group(group, &user->gid, why))
        return false;
    if (user->uid == 0) {
        buf_append_str(why, "root cannot be the user to change to");
        return false;
    }
    return !found || find_groups(name, user, why);
}

bool
privileges_find_user(const char *text, struct service_user *user, struct buf *why)
{
    const char *colon = strchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : strlen(text);
    char name[NAME_SIZE];

    *user = (struct service_user){0};
    if (len == 0 || len >= sizeof(name)) {
        buf_printf(why, "\"%s\" is not NAME or NAME:GROUP", text);
        return false;
    }
    memcpy(name, text, len);
    name[len] = '\0';
    if (find_parts(name, colon ? colon + 1 : NULL, user, why))
        return true;
    privileges_free_user(user);
    return false;
}

void
privileges_free_user(struct service_user *user)
{
    free(user->groups);
    *user = (struct service_user){0};
}

/* ---- the access log -------------------------------------------------------------------------- */

static int
open_log_as_root(const struct service_user *user, const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0640);
    struct stat st;

    /* A file with a second name may be one that is not a log. */
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == 0 &&
        st.st_nlink == 1 && fchown(fd, user->uid, user->gid) != 0) {
        int error = errno;

        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int
privileges_open_log(const struct service_user *user, const char *path)
{
    bool change = geteuid() == 0;
    int fd, error;

    /* Root's other groups are dropped: a link at `path` may lead to a file of theirs. */
    if (change && setgroups((size_t)user->group_count, user->groups) != 0)
        return -1;
    if (change) {
        setfsgid(user->gid);
        setfsuid(user->uid);
    }
    fd = sink_open(path);
    error = errno;
    if (change) {
        setfsuid(0);
        setfsgid(getegid());
    }
    errno = error;
    return change && fd < 0 && errno == EACCES ? open_log_as_root(user, path) : fd;
}

/* ---- dropping privileges --------------------------------------------------------------------- */

static bool
fail(struct buf *why, const char *what)
{
    buf_printf(why, "%s: %s", what, strerror(errno));
    return false;
}

/* Drops the bounding set. Only a thread with CAP_SETPCAP may; without it, this is not needed. */
static void
drop_bounding_set(void)
{
    for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

static bool
drop_capabilities(struct buf *why)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    struct __user_cap_data_struct held[_LINUX_CAPABILITY_U32S_3] = {0};

    drop_bounding_set();
    /* A service manager that granted none may also have forbidden the calls below. */
    if (syscall(SYS_capget, &header, held) == 0 && memcmp(held, none, sizeof(none)) == 0)
        return true;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL)
        return fail(why, "ambient capabilities cannot be dropped");
    if (syscall(SYS_capset, &header, none) != 0)
        return fail(why, "capabilities cannot be dropped");
    return true;
}

/* True if every id is that of the user and the process cannot become root again. */
static bool
is_for_good(const struct service_user *user)
{
    uid_t real, effective, saved;
    gid_t real_group, effective_group, saved_group;

    return getresuid(&real, &effective, &saved) == 0 && real == user->uid &&
           effective == user->uid && saved == user->uid &&
           getresgid(&real_group, &effective_group, &saved_group) == 0 && real_group == user->gid &&
           effective_group == user->gid && saved_group == user->gid &&
           setresuid((uid_t)-1, 0, (uid_t)-1) != 0 && setresuid(0, 0, 0) != 0;
}

bool
privileges_become(const struct service_user *user, struct buf *why)
{
    if (geteuid() == user->uid && getegid() == user->gid)
        return true;
    if (geteuid() != 0) {
        buf_append_str(why, "only root can change to another user");
        return false;
    }
    drop_bounding_set();
    if (setgroups((size_t)user->group_count, user->groups) != 0)
        return fail(why, "groups cannot be set");
    if (setresgid(user->gid, user->gid, user->gid) != 0)
        return fail(why, "the group cannot be changed");
    if (setresuid(user->uid, user->uid, user->uid) != 0)
        return fail(why, "the user cannot be changed");
    if (!drop_capabilities(why))
        return false;
    if (!is_for_good(user)) {
        buf_append_str(why, "the change of user is not permanent");
        return false;
    }
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return fail(why, "memory cannot be protected");
    return true;
}

bool
privileges_give_up(struct buf *why)
{
    if (!drop_capabilities(why))
        return false;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return fail(why, "new privileges cannot be disabled");
    return true;
}
