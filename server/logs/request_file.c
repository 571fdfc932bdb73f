#include "server/logs/request_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * An empty database has no log: one of its name belonged to a file that was moved away. Another
 * process may still have the index of that one open.
 */
static bool
remove_leftovers(const char *path, struct buf *why)
{
    static const char *const ends[] = {"-wal", "-shm"};
    bool ok = true;

    for (size_t i = 0; ok && i < sizeof(ends) / sizeof(ends[0]); i++) {
        char *name = sqlite3_mprintf("%s%s", path, ends[i]);

        ok = name && (unlink(name) == 0 || errno == ENOENT);
        if (!ok)
            buf_append_str(why, strerror(name ? errno : ENOMEM));
        sqlite3_free(name);
    }
    return ok;
}

bool
request_file_prepare(const char *path, struct buf *why)
{
    static const char magic[] = "SQLite format 3"; /* with its zero byte: 16 bytes */
    int fd = open(path, O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0640);
    char head[sizeof(magic)];
    struct stat st;
    ssize_t n;

    if (fd < 0 || fstat(fd, &st) != 0) {
        buf_append_str(why, strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    n = S_ISREG(st.st_mode) ? pread(fd, head, sizeof(head), 0) : 0;
    close(fd);
    if (!S_ISREG(st.st_mode))
        buf_append_str(why, "it is not a regular file");
    else if (n < 0)
        buf_append_str(why, strerror(errno));
    else if (n != 0 && (n != sizeof(magic) || memcmp(head, magic, sizeof(magic)) != 0))
        buf_append_str(why, "it is not an SQLite database");
    else
        return n != 0 || remove_leftovers(path, why);
    return false;
}

static bool
note_beside(struct request_beside *beside, const char *path, const char *end)
{
    char *name = sqlite3_mprintf("%s%s", path, end);
    struct stat st;

    beside->path = name;
    if (name && stat(name, &st) == 0) {
        beside->device = st.st_dev;
        beside->inode = st.st_ino;
    }
    return name != NULL;
}

int
request_file_note(struct request_file *file, const char *path)
{
    file->path = sqlite3_mprintf("%s", path);
    if (!file->path || !note_beside(&file->log, path, "-wal") ||
        !note_beside(&file->index, path, "-shm"))
        return SQLITE_NOMEM;
    file->fd = open(path, O_PATH | O_CLOEXEC);
    return file->fd >= 0 ? SQLITE_OK : SQLITE_CANTOPEN;
}

enum request_place
request_file_place(const struct request_file *file)
{
    struct stat open_file, named;

    if (fstat(file->fd, &open_file) != 0)
        return REQUEST_NAMED;
    if (stat(file->path, &named) == 0 && named.st_dev == open_file.st_dev &&
        named.st_ino == open_file.st_ino)
        return REQUEST_NAMED;
    return open_file.st_nlink ? REQUEST_MOVED : REQUEST_REMOVED;
}

static void
remove_beside(const struct request_beside *beside)
{
    struct stat st;

    if (beside->inode && stat(beside->path, &st) == 0 && st.st_dev == beside->device &&
        st.st_ino == beside->inode)
        unlink(beside->path);
}

void
request_file_remove_log(const struct request_file *file)
{
    remove_beside(&file->log);
    remove_beside(&file->index);
}

void
request_file_free(struct request_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    sqlite3_free(file->path);
    sqlite3_free(file->log.path);
    sqlite3_free(file->index.path);
}
