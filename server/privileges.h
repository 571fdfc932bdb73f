/*
 * What the process may do by its user and capabilities. Root starts the daemon to have ports and
 * folders of its own, and gives the rest away before it serves.
 *
 * One thread, before any other starts: capabilities belong to a thread, and later threads inherit
 * them.
 */
#ifndef SUNPROXY_SERVER_PRIVILEGES_H
#define SUNPROXY_SERVER_PRIVILEGES_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

/* A user to serve as, with all groups; the groups are owned. */
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
 * Opens the access log for that user, as it will open it again on SIGHUP. Where it may not, root
 * opens the file, without following a link, and makes one that is root's the user's. The process's
 * supplementary groups are the user's from then on. -1 with errno set on failure.
 */
int privileges_open_log(const struct service_user *user, const char *path);

/*
 * Becomes that user for good: groups, group and user ids, real, effective and saved, and no
 * capability is left. The kernel's dumpable flag is cleared, so that other processes of that user
 * can neither trace this one nor read its memory. If this is that user already, nothing is done.
 * False with a sentence in `why`, in which case the process must not serve.
 */
bool privileges_become(const struct service_user *user, struct buf *why);

/*
 * Gives up all capabilities, the bounding and the ambient set included, and lets no execve() give
 * new ones. User and groups stay. False with a sentence in `why`.
 */
bool privileges_give_up(struct buf *why);

#endif
