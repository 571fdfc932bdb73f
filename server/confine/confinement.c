#include "server/confine/confinement.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "server/logs/access_log.h"
#include "server/logs/log.h"
#include "server/rpc/registration.h"
#include "server/confine/sandbox.h"

int
confinement_find_user(const struct options *options, struct service_user *user)
{
    struct buf why;
    bool ok;

    if (!options->user)
        return EX_OK;
    buf_init(&why, 1024);
    ok = privileges_find_user(options->user, user, &why);
    if (!ok)
        log_error("%suser: %s", options_place(options, "user"), buf_str(&why));
    buf_free(&why);
    return ok ? EX_OK : EX_CONFIG;
}

int
confinement_open_log(const struct options *options, const struct service_user *user)
{
    const char *path = options->access_log;

    return options->user && strcmp(path, "-") != 0 ? privileges_open_log(user, path)
                                                   : access_log_open_file(path);
}

/* ---- the socket ------------------------------------------------------------------------------ */

/* The name may be another file by now, in a folder that is not root's: only a socket is changed. */
static bool
give_socket(const char *path, uid_t uid, gid_t gid)
{
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), error;
    struct stat st;
    bool done;

    if (fd < 0)
        return false;
    done = fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) &&
           fchownat(fd, "", uid, gid, AT_EMPTY_PATH) == 0;
    error = errno;
    close(fd);
    errno = error;
    return done;
}

/* Of the default path; its folder is root's, made by this daemon, or already the user's. */
static bool
give_folder(const char *path, uid_t uid, gid_t gid)
{
    char folder[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    int fd, error;
    bool done;

    snprintf(folder, sizeof(folder), "%s", path);
    *strrchr(folder, '/') = '\0';
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    done = fchown(fd, uid, gid) == 0;
    error = errno;
    close(fd);
    errno = error;
    return done;
}

/* So that the user can remove the socket, and take the lock at another start. */
static bool
give_local(const struct local_socket *local, uid_t uid, gid_t gid, struct buf *why)
{
    /* What a running daemon has passed is the user's, or what it says to be a lock is another file. */
    if (!local->bound || local->lent ||
        ((local->lock < 0 || fchown(local->lock, uid, gid) == 0) &&
         give_socket(local->path, uid, gid) &&
         (!local->default_path || give_folder(local->path, uid, gid))))
        return true;
    buf_printf(why, "socket %s cannot be given to its user: %s", local->path, strerror(errno));
    return false;
}

static bool
give_listening(const struct listening *listening, uid_t uid, gid_t gid, struct buf *why)
{
    for (unsigned role = 0; role < LISTEN_ROLES; role++)
        for (unsigned i = 0; i < listening->sets[role].count; i++)
            if (!give_local(&listening->sets[role].sockets[i], uid, gid, why))
                return false;
    return true;
}

/* ---- user and sandbox ------------------------------------------------------------------------ */

static bool
change_user(const struct options *options, const struct listening *listening,
            const struct service_user *user, struct buf *why)
{
    size_t before;

    if (geteuid() == 0) {
        if (!options->no_rpcbind)
            registration_make_way(user->uid);
        if (!give_listening(listening, user->uid, user->gid, why))
            return false;
    }
    before = why->len;
    buf_printf(why, "%suser: ", options_place(options, "user"));
    if (!privileges_become(user, why))
        return false;
    buf_truncate(why, before);
    return true;
}

static bool
enter_sandbox(const struct options *options, const struct listening *listening, struct buf *why)
{
    const char *log = options->access_log;
    struct sandbox_files files = {
        .access_log = log && strcmp(log, "-") != 0 ? log : NULL,
        .request_db = options->request_db,
        .cacert = options->cacert,
    };
    struct buf measures;
    size_t count = 0;
    bool ok;

    for (unsigned role = 0; role < LISTEN_ROLES; role++)
        for (unsigned i = 0; i < listening->sets[role].count; i++)
            if (listening->sets[role].sockets[i].bound)
                files.sockets[count++] = listening->sets[role].sockets[i].path;
    buf_init(&measures, 1024);
    ok = privileges_give_up(why) && sandbox_enter(&files, &measures, why);
    if (ok)
        log_info("sandbox: capabilities and new privileges are dropped, %s", buf_str(&measures));
    buf_free(&measures);
    return ok;
}

int
confinement_enter(const struct options *options, const struct listening *listening,
                  const struct service_user *user)
{
    struct buf why;
    bool ok;

    buf_init(&why, 1024);
    ok = !options->user || change_user(options, listening, user, &why);
    if (ok && geteuid() == 0)
        log_warning("serving as root; --user NAME changes to a user with fewer privileges");
    if (ok && options->sandbox == SANDBOX_ON)
        ok = enter_sandbox(options, listening, &why);
    if (!ok)
        log_error("%s", buf_str(&why));
    buf_free(&why);
    return ok ? EX_OK : EX_OSERR;
}
