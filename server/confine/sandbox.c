#include "server/confine/sandbox.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/instrumented.h"
#include "server/confine/landlock.h"
#include "server/confine/syscall_filter.h"

/* ---- files ----------------------------------------------------------------------------------- */

/*
 * What the C library, OpenSSL and libtirpc read while names are looked up and connections made:
 * configuration, modules that are loaded when they are needed, character sets, the certificates and
 * the look-up daemons' caches.
 */
static const char *const read_by_libraries[] = {"/etc",
                                                "/usr",
                                                "/lib",
                                                "/lib32",
                                                "/lib64",
                                                "/nix/store",
                                                "/gnu/store",
                                                "/var/lib/sss/mc",
                                                "/var/lib/ca-certificates",
                                                "/proc/self",
                                                "/proc/sys",
                                                "/sys/devices/system/cpu",
                                                "/dev/urandom",
                                                "/dev/random"};

/* Appends the folder of a path to `folder`; "." for none. */
static bool
folder_of(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t len = !slash ? 1 : slash == path ? 1 : (size_t)(slash - path);

    if (len >= PATH_MAX)
        return false;
    memcpy(folder, slash ? path : ".", len);
    folder[len] = '\0';
    return true;
}

static int
allow_in_folder_of(struct landlock *landlock, const char *path, unsigned uses)
{
    char folder[PATH_MAX];

    return folder_of(path, folder) ? landlock_allow(landlock, folder, uses) : ENAMETOOLONG;
}

/* resolv.conf is often a link to a file that another daemon replaces, so its folder is meant. */
static int
allow_resolv_conf(struct landlock *landlock)
{
    char path[PATH_MAX], folder[PATH_MAX];
    bool narrow;

    if (!realpath("/etc/resolv.conf", path) || !folder_of(path, folder))
        return 0;
    narrow = strcmp(folder, "/") != 0 && strcmp(folder, "/run") != 0;
    return landlock_allow(landlock, narrow ? folder : path, LANDLOCK_READ);
}

/*
 * A log file is made anew in its folder after a rotation, and cut where a disk is full; a FIFO may stand there as well, and is
 * opened for reading too. Of a device, or of standard output by another name, there is only one.
 */
static int
allow_access_log(struct landlock *landlock, const char *given)
{
    char path[PATH_MAX];
    struct stat st;
    int error;

    if (!realpath(given, path) || stat(path, &st) != 0)
        return landlock_allow(landlock, given, LANDLOCK_WRITE);
    if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
        return landlock_allow(landlock, path, LANDLOCK_WRITE);
    error =
        allow_in_folder_of(landlock, path, LANDLOCK_WRITE | LANDLOCK_CREATE | LANDLOCK_TRUNCATE);
    if (error == 0 && S_ISFIFO(st.st_mode))
        error = landlock_allow(landlock, path, LANDLOCK_READ);
    return error;
}

/* Of files that the daemon makes for itself. */
static const unsigned made_and_removed =
    LANDLOCK_READ | LANDLOCK_WRITE | LANDLOCK_CREATE | LANDLOCK_REMOVE | LANDLOCK_TRUNCATE;

/* The file, which may have to be made, and beside it SQLite's log and its index. */
static int
allow_request_db(struct landlock *landlock, const char *given)
{
    char path[PATH_MAX];

    return allow_in_folder_of(landlock, realpath(given, path) ? path : given, made_and_removed);
}

#if INSTRUMENTED
/* Sanitizers write their reports where their options say, and read the program to explain them. */
static int
allow_sanitizers(struct landlock *landlock)
{
    static const char *const variables[] = {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"};
    int error = landlock_allow(landlock, "/proc/self/exe", LANDLOCK_READ);

    for (size_t i = 0; error == 0 && i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *value = getenv(variables[i]);
        char path[PATH_MAX];
        size_t len;

        value = value ? strstr(value, "log_path=") : NULL;
        if (!value)
            continue;
        value += strlen("log_path=");
        len = strcspn(value, ":");
        if (len >= sizeof(path))
            continue;
        memcpy(path, value, len);
        path[len] = '\0';
        error = allow_in_folder_of(landlock, path, LANDLOCK_WRITE | LANDLOCK_CREATE);
    }
    return error;
}
#endif

static int
allow_files(struct landlock *landlock, const struct sandbox_files *files)
{
    int error = 0;

    for (size_t i = 0; error == 0 && i < sizeof(read_by_libraries) / sizeof(read_by_libraries[0]);
         i++)
        error = landlock_allow(landlock, read_by_libraries[i], LANDLOCK_READ);
    if (error == 0)
        error = landlock_allow(landlock, "/dev/null", LANDLOCK_READ | LANDLOCK_WRITE);
    if (error == 0)
        error = allow_resolv_conf(landlock);
    if (error == 0 && files->cacert)
        error = landlock_allow(landlock, files->cacert, LANDLOCK_READ);
    for (const char *const *socket = files->sockets; error == 0 && *socket; socket++)
        error = allow_in_folder_of(landlock, *socket, LANDLOCK_REMOVE);
    if (error == 0 && files->access_log)
        error = allow_access_log(landlock, files->access_log);
    if (error == 0 && files->request_db)
        error = allow_request_db(landlock, files->request_db);
    if (error == 0 && files->store)
        error = landlock_allow(landlock, files->store, made_and_removed);
#if INSTRUMENTED
    if (error == 0)
        error = allow_sanitizers(landlock);
#endif
    return error;
}

/* The service manager's socket may be an abstract one, which is notified of the end. */
static bool
needs_abstract_sockets(void)
{
    const char *notify = getenv("NOTIFY_SOCKET");

    return notify && notify[0] == '@';
}

static bool
restrict_files(const struct sandbox_files *files, struct buf *measures, struct buf *why)
{
    struct landlock landlock;
    int error = landlock_begin(&landlock, needs_abstract_sockets()), failed;

    if (error == 0)
        error = allow_files(&landlock, files);
    failed = landlock_end(&landlock, error == 0);
    if (error == 0)
        error = failed;
    if (error) {
        buf_printf(why, "files cannot be restricted with Landlock: %s", strerror(error));
        return false;
    }
    if (landlock.version)
        buf_printf(measures, "files are restricted (Landlock %d)", landlock.version);
    else
        buf_append_str(measures, "files are not restricted, this kernel has no Landlock in force");
    return true;
}

/* ---- both ------------------------------------------------------------------------------------ */

/* What SQLite calls to write a database, and logs on a disk that is full. */
static const char *const for_databases[] = {"fsync", "fdatasync", "ftruncate", NULL};
static const char *const for_stores[] = {"fsync", "fdatasync", "ftruncate", "flock", NULL};
/* Rings that were made before take reads alone (store/disk_ring.h); no other can be made. */
static const char *const for_rings[] = {"fsync",     "fdatasync",      "ftruncate", "flock",
                                        "cachestat", "io_uring_enter", NULL};
static const char *const for_logs[] = {"ftruncate", NULL};
static const char *const for_none[] = {NULL};

/* Is standard error a file? */
static bool
has_log_file(void)
{
    struct stat st;

    return fstat(STDERR_FILENO, &st) == 0 && S_ISREG(st.st_mode);
}

static const char *const *
calls_for(const struct sandbox_files *files)
{
    if (files->store)
        return files->rings ? for_rings : for_stores;
    if (files->request_db)
        return for_databases;
    return files->access_log || has_log_file() ? for_logs : for_none;
}

bool
sandbox_enter(const struct sandbox_files *files, struct buf *measures, struct buf *why)
{
    int error;

    /* In this order: the filter has no place for the calls that restrict files. */
    if (!restrict_files(files, measures, why))
        return false;
    error = syscall_filter_load(calls_for(files));
    if (error == EINVAL || error == ENOSYS) {
        buf_append_str(measures,
                       ", system calls are not filtered, this kernel has no seccomp filters");
        return true;
    }
    if (error) {
        buf_printf(why, "system calls cannot be filtered: %s", strerror(error));
        return false;
    }
    buf_append_str(measures, ", system calls are filtered");
    return true;
}
