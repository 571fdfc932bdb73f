/* What --check-config checks: all that a start would refuse, as far as nothing is opened for it. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "http/target.h"
#include "server/components.h"
#include "server/daemon.h"
#include "server/listen/probe.h"
#include "server/http/http_origins.h"
#include "server/logs/access_log.h"
#include "server/logs/log.h"
#include "server/logs/log_target.h"
#include "store/disk_file.h"
#include "tier/tier.h"

/* The folder of a path; owned. NULL without memory. */
static char *
folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* Could a file be made in the folder of this path? */
static int
find_fault_of_folder(const char *path)
{
    char *folder = folder_of(path);
    struct stat st;
    int error = 0;

    if (!folder)
        return ENOMEM;
    if (stat(folder, &st) != 0 || (S_ISDIR(st.st_mode) && access(folder, W_OK | X_OK) != 0))
        error = errno;
    else if (!S_ISDIR(st.st_mode))
        error = ENOTDIR;
    free(folder);
    return error;
}

/*
 * Could the file be written, or made? What another user than this may write, as after --user, is
 * not known.
 */
static int
find_fault(const char *path)
{
    char target[PATH_MAX];
    struct stat st;
    ssize_t len;

    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return EISDIR;
        return access(path, W_OK) == 0 ? 0 : errno;
    }
    if (errno != ENOENT)
        return errno;
    /* A link to a file that is to be made, such as /dev/stdout without /proc. */
    len = readlink(path, target, sizeof(target) - 1);
    if (len > 0 && *target == '/') {
        target[len] = '\0';
        return find_fault_of_folder(target);
    }
    return find_fault_of_folder(path);
}

/* `path` is the value of the option of that name, or NULL. */
static int
check_file(const struct options *options, const char *name, const char *path)
{
    int error;

    if (!path || strcmp(path, "-") == 0)
        return EX_OK;
    error = find_fault(path);
    if (error == 0)
        return EX_OK;
    log_error("%s%s: %s: %s", options_place(options, name), name, path, access_log_explain(error));
    return EX_CANTCREAT;
}

/* The shell finds what has no absolute path, and what it would expand. */
static void
check_command(const struct options *options, const char *command)
{
    char *program = strndup(command, strcspn(command, " \t"));

    if (program && *program == '/' && !strpbrk(program, "$`'\"\\*?[;&|<>(){}") &&
        access(program, X_OK) != 0)
        log_warning("%saccess-log: %s cannot be run: %s", options_place(options, "access-log"),
                    program, strerror(errno));
    free(program);
}

/* Neither a command nor a service has a file; a service need not be there yet. */
static int
check_access_log(const struct options *options)
{
    const char *text = options->access_log;
    struct log_target target;
    struct buf why;
    bool is_read;

    buf_init(&why, 1024);
    is_read = text && log_target_parse(&target, text, &why);
    buf_free(&why);
    if (is_read && target.kind == LOG_TARGET_COMMAND)
        check_command(options, target.path);
    return is_read && target.kind == LOG_TARGET_FILE ? check_file(options, "access-log", text)
                                                     : EX_OK;
}

static int
check_listening(const struct options *options)
{
    enum listen_error error;
    struct buf why;

    buf_init(&why, 65536);
    error = listen_check(options, &why);
    log_errors(buf_str(&why));
    buf_free(&why);
    return error == LISTEN_OK ? EX_OK : EX_CONFIG;
}

/* The host of "http://host:port", owned; NULL: it is an address, or there is no memory. */
static char *
name_of(struct span authority)
{
    struct http_authority host;
    struct in_addr inet;
    const char *begin = memmem(authority.ptr, authority.len, "://", 3);
    char *name = NULL;

    if (begin && begin[3] != '[' &&
        http_authority_read(span_of(begin + 3, (size_t)(authority.ptr + authority.len - begin - 3)),
                            &host))
        name = strndup(host.host.ptr, host.host.len);
    if (name && inet_pton(AF_INET, name, &inet) == 1) {
        free(name);
        name = NULL;
    }
    return name;
}

/* `of`: a URL that has the name, or an option. */
static void
look_up(struct span of, const char *name, int64_t end_us)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int error = clock_monotonic_us() < end_us ? getaddrinfo(name, NULL, &hints, &found) : 0;

    if (error)
        log_warning("%.*s: %s cannot be resolved: %s", (int)of.len, of.ptr, name,
                    gai_strerror(error));
    if (found)
        freeaddrinfo(found);
}

static void
check_name(struct span authority, int64_t end_us)
{
    char *name = name_of(authority);

    if (name)
        look_up(authority, name, end_us);
    free(name);
}

static void
check_names_of_rows(const struct option_list *rows, int64_t end_us)
{
    struct http_origins origins;
    struct buf why;

    buf_init(&why, 65536);
    if (http_origins_init(&origins, rows, &why)) {
        for (size_t i = 0; i < origins.servers.size; i++)
            if (origins.servers.slots[i])
                check_name(origins.servers.slots[i]->authority, end_us);
        http_origins_free(&origins);
    }
    buf_free(&why);
}

/* The URLs with commas between them, without paths. */
static void
check_names_of_peers(const char *urls, int64_t end_us)
{
    while (*urls) {
        size_t len = strcspn(urls, ",");

        check_name(span_of(urls, len), end_us);
        urls += len + (urls[len] == ',');
    }
}

static void
check_names_of_tier(const char *urls, int64_t end_us)
{
    struct tier_servers servers = {0};
    struct buf why;

    buf_init(&why, 4096);
    if (tier_servers_read(span_str(urls), &servers, &why)) {
        for (unsigned i = 0; i < servers.count; i++)
            if (servers.of[i].is_name)
                look_up(span_str("shared"), servers.of[i].host, end_us);
    }
    buf_free(&why);
}

void
daemon_check_names(const struct options *options)
{
    const int64_t end_us = clock_monotonic_us() + DAEMON_CHECK_NAMES_US;

    check_names_of_rows(&options->origin, end_us);
    if (options->peers)
        check_names_of_peers(options->peers, end_us);
    if (options->shared)
        check_names_of_tier(options->shared, end_us);
}

int
daemon_check_addresses(const struct options *options)
{
    struct buf why, warnings;
    bool ok;

    buf_init(&why, 65536);
    buf_init(&warnings, 65536);
    ok = probe_addresses(options, &why, &warnings);
    for (const char *line = buf_str(&warnings); *line; line += strcspn(line, "\n") + 1) {
        log_warning("%.*s", (int)strcspn(line, "\n"), line);
        if (!line[strcspn(line, "\n")])
            break;
    }
    log_errors(buf_str(&why));
    buf_free(&why);
    buf_free(&warnings);
    return ok ? EX_OK : EX_CONFIG;
}

/* A file that is there and not empty is one of SQLite's. */
static int
check_database(const struct options *options)
{
    static const char begins[] = "SQLite format 3";
    const char *path = options->request_db;
    int status = check_file(options, "request-db", path);
    char bytes[sizeof(begins)] = "";
    FILE *file = path && status == EX_OK ? fopen(path, "re") : NULL;
    size_t read = file ? fread(bytes, 1, sizeof(bytes), file) : 0;

    if (file)
        fclose(file);
    if (read == 0 || memcmp(bytes, begins, sizeof(begins)) == 0)
        return status;
    log_error("%srequest-db: %s: it is not an SQLite database",
              options_place(options, "request-db"), path);
    return EX_CANTCREAT;
}

/* A file system without files that have no name, which others have, is asked for its size: one such
 * as /proc has none. */
static int
find_fault_of_files(const char *folder)
{
    struct statvfs system;
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), error = errno;

    if (fd >= 0) {
        close(fd);
        return 0;
    }
    return error == EOPNOTSUPP && statvfs(folder, &system) == 0 && system.f_blocks ? 0 : error;
}

/* May the user that serves do this, of the bits of S_IRWXO, with a file or folder? Of its groups
 * none is known: the bits of the file's group count as its own. */
static int
find_fault_of_mode(const struct stat *st, uid_t uid, mode_t wanted)
{
    const mode_t mode = st->st_uid == uid ? st->st_mode >> 6 : st->st_mode >> 3 | st->st_mode;

    if (!S_ISDIR(st->st_mode) && !S_ISREG(st->st_mode))
        return DISK_NO_FILE;
    return uid == 0 || (mode & wanted) == wanted ? 0 : EACCES;
}

/* What a start does with a file of a store: it writes the lock, and reads journals. 0: nothing. */
static mode_t
mode_of_start(const char *name)
{
    uint64_t number;

    if (strcmp(name, DISK_LOCK) == 0)
        return S_IROTH | S_IWOTH;
    return disk_name_read(name, DISK_JOURNAL, &number) ? S_IROTH : 0;
}

/* The name of the first file that a start could not open; the folder's is "". */
static int
find_fault_in_store(const char *path, uid_t uid, char *name, size_t size)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    struct stat st;
    int error;

    if (!folder)
        return errno;
    error = fstat(dirfd(folder), &st) == 0 ? find_fault_of_mode(&st, uid, S_IRWXO) : errno;
    while (!error && (entry = readdir(folder))) {
        const mode_t wanted = mode_of_start(entry->d_name);

        if (!wanted || fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        error = find_fault_of_mode(&st, uid, wanted);
        if (error)
            snprintf(name, size, "/%s", entry->d_name);
    }
    closedir(folder);
    return error;
}

/* Of a folder on the way to a folder, as far as that is there. */
static int
find_fault_of_way(const char *path, uid_t uid)
{
    char *way = strdup(path);
    struct stat st;
    int error = way ? 0 : ENOMEM;

    for (size_t i = 1; !error && path[i - 1] && path[i]; i++) {
        if (path[i] != '/')
            continue;
        way[i] = '\0';
        if (stat(way, &st) == 0)
            error = find_fault_of_mode(&st, uid, S_IXOTH);
        way[i] = '/';
    }
    free(way);
    return error;
}

/* Could there be a store? It is made if the folder that it is in is there. */
static int
find_fault_of_store(const char *path, uid_t uid, char *name, size_t size)
{
    size_t len = strlen(path);
    char *whole, *folder;
    struct stat st;
    int error;

    if (stat(path, &st) == 0) {
        error = S_ISDIR(st.st_mode) ? find_fault_of_files(path) : ENOTDIR;
        return error ? error : find_fault_in_store(path, uid, name, size);
    }
    if (errno != ENOENT || len == 0)
        return errno;
    while (len > 1 && path[len - 1] == '/')
        len--;
    whole = strndup(path, len);
    folder = whole ? folder_of(whole) : NULL;
    error = folder ? find_fault_of_files(folder) : ENOMEM;
    free(whole);
    free(folder);
    return error;
}

/* A daemon that runs may have it, so it is not opened. */
static int
check_store(const struct options *options, const struct service_user *user)
{
    const uid_t uid = options->user ? user->uid : geteuid();
    const char *path = options->store;
    char name[NAME_MAX + 2] = "";
    int error = path ? find_fault_of_store(path, uid, name, sizeof(name)) : 0;

    if (path && !error)
        error = find_fault_of_way(path, uid);
    if (!error)
        return EX_OK;
    log_error("%sstore: %s%s: %s", options_place(options, "store"), path, name,
              disk_strerror(error));
    return EX_CANTCREAT;
}

int
daemon_check(const struct options *options)
{
    struct components parts = {.options = options, .log_file = -1, .helpers = -1};
    int status = components_make_settings(&parts), made = status;
    int checked[] = {
        check_listening(options),
        check_access_log(options),
        check_database(options),
        made == EX_OK ? check_store(options, &parts.user) : EX_OK,
    };

    for (size_t i = 0; i < sizeof(checked) / sizeof(checked[0]); i++)
        status = status == EX_OK ? checked[i] : status;
    if (made == EX_OK) {
        made = components_make_threads(&parts);
        status = status == EX_OK ? made : status;
    }
    components_free(&parts);
    return status;
}
