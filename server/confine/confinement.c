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
#include "server/logs/log_command.h"
#include "server/logs/log_target.h"
#include "server/rpc/registration.h"
#include "server/confine/sandbox.h"
#include "server/users/helper_keeper.h"

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

/* Of the process that runs a command. */
static bool
become(const void *context)
{
    const struct service_user *user = context;
    struct buf why;
    bool ok;

    buf_init(&why, 1024);
    ok = !user || privileges_become(user, &why);
    if (!ok)
        log_error("a command cannot be run: %s", buf_str(&why));
    buf_free(&why);
    return ok;
}

int
confinement_start_helpers(const struct options *options, const struct service_user *user,
                          pid_t *keeper)
{
    return helper_keeper_start(options->auth_helper, become, options->user ? user : NULL, keeper);
}

static bool
find_target(const struct options *options, struct log_target *target)
{
    struct buf why;
    bool ok;

    buf_init(&why, 1024);
    ok = log_target_parse(target, options->access_log, &why);
    buf_free(&why);
    return ok;
}

int
confinement_open_log(const struct options *options, const struct service_user *user, pid_t *keeper)
{
    struct log_target target;

    *keeper = 0;
    if (!find_target(options, &target)) {
        errno = EINVAL; /* the option has been checked */
        return -1;
    }
    switch (target.kind) {
    case LOG_TARGET_FILE:
        break;
    case LOG_TARGET_COMMAND:
        return log_command_start(target.path, become, options->user ? user : NULL, keeper);
    default:
        return log_target_connect(&target);
    }
    return options->user && strcmp(target.path, "-") != 0 ? privileges_open_log(user, target.path)
                                                          : access_log_open_file(target.path);
}

/* The file that is opened again; NULL: there is none. */
static const char *
log_file(const struct options *options)
{
    struct log_target target;

    return options->access_log && strcmp(options->access_log, "-") != 0 &&
                   find_target(options, &target) && target.kind == LOG_TARGET_FILE
               ? options->access_log
               : NULL;
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
    /* What a running daemon has passed is the user's, or what it says to be a lock is another file.
     */
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

bool
confinement_open_sockets(const struct options *options, struct taken_sockets *taken,
                         struct listening *listening, struct buf *why)
{
    struct service_user user = {0};
    bool given = true;

    if (listen_open(listening, options, taken, why) != LISTEN_OK)
        return false;
    if (options->user && geteuid() == 0)
        given = privileges_find_user(options->user, &user, why) &&
                give_listening(listening, user.uid, user.gid, why);
    privileges_free_user(&user);
    if (!given)
        listen_close(listening);
    return given;
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
    struct sandbox_files files = {
        .access_log = log_file(options),
        .request_db = options->request_db,
        .store = options->store,
        .rings = options->store_reads != STORE_READS_THREADS,
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

/* The folder of the store, of the user that serves, if it is not there. */
static bool
make_store_folder(const struct options *options, const struct service_user *user, struct buf *why)
{
    if (!options->store)
        return true;
    if (mkdir(options->store, 0700) == 0) {
        if (geteuid() != 0 || !options->user ||
            chown(options->store, user->uid, user->gid) == 0)
            return true;
    } else if (errno == EEXIST) {
        return true;
    }
    buf_printf(why, "%sstore: %s: %s", options_place(options, "store"), options->store,
               strerror(errno));
    return false;
}

int
confinement_enter(const struct options *options, const struct listening *listening,
                  const struct service_user *user)
{
    struct buf why;
    bool has_folder, ok;

    buf_init(&why, 1024);
    has_folder = make_store_folder(options, user, &why);
    ok = has_folder && (!options->user || change_user(options, listening, user, &why));
    if (ok && geteuid() == 0)
        log_warning("serving as root; --user NAME changes to a user with fewer privileges");
    if (ok && options->sandbox == SANDBOX_ON)
        ok = enter_sandbox(options, listening, &why);
    if (!ok)
        log_error("%s", buf_str(&why));
    buf_free(&why);
    if (ok)
        return EX_OK;
    return has_folder ? EX_OSERR : EX_CANTCREAT;
}
