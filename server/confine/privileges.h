/*
 * The user and the capabilities of the process. Root can start the daemon, which opens ports and
 * files and then drops its privileges before it serves.
 *
 * One thread, before any other starts: capabilities belong to a thread, and later threads inherit
 * them.
 */
#ifndef SUNPROXY_SERVER_CONFINE_PRIVILEGES_H
#define SUNPROXY_SERVER_CONFINE_PRIVILEGES_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

/* The user of --user, with all its groups; the groups are owned. */
struct service_user {
    uid_t uid;
    gid_t gid;
    gid_t *groups;
    int group_count;
};

/*
 * Finds NAME[:GROUP], each a name or a number. Without GROUP it is the user's own. Root is refused.
 * False with a sentence in `why`.
 */
bool privileges_find_user(const char *text, struct service_user *user, struct buf *why);
void privileges_free_user(struct service_user *user);

/*
 * Opens the access log as that user, which reopens it on SIGHUP. If the user may not, root opens
 * the file, without following a link, and gives a file of root's to the user. Afterwards the
 * process has the user's supplementary groups. -1 with errno set on failure.
 */
int privileges_open_log(const struct service_user *user, const char *path);

/*
 * Changes permanently to that user: groups, real, effective and saved group and user ids, without
 * capabilities. Clears the kernel's dumpable flag, so that other processes of that user can neither
 * trace this one nor read its memory. Does nothing if the process has that user already.
 * False with a sentence in `why`, in which case the process must not serve.
 */
bool privileges_become(const struct service_user *user, struct buf *why);

/*
 * Drops all capabilities, the bounding and the ambient set included, and prevents execve() from
 * granting new ones. User and groups stay. False with a sentence in `why`.
 */
bool privileges_give_up(struct buf *why);

#endif
