#include "trace/formats/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define PAGES_AT_ONCE 1000
#define BUSY_MS 5000
#define ATTEMPTS 7 /* 1.3 s of pauses in all: a browser writes for less */
#define FIRST_PAUSE_US 20000
/* Time stamps of files move in steps of some milliseconds: what changed less than this ago may
 * change again without a new time stamp. */
#define SETTLED_US 20000

#define COPY_BYTES (64u * 1024u)
#define SUPER_MAGIC_BYTES 8u

/* The database and what SQLite keeps beside it; the first must be there. */
static const char *const suffixes[] = {"", "-wal", "-journal"};
#define FILES (sizeof(suffixes) / sizeof(suffixes[0]))

/* How a file stood: all zero if it was not there. */
struct standing {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
};

enum step {
    STEP_OK,
    STEP_AGAIN,  /* it changed under our hands */
    STEP_FAILED, /* the sentence is written */
};

static enum step
fail(const char *path, const char *what, char *why, size_t why_size)
{
    snprintf(why, why_size, "%s: %s: %s", path, what, strerror(errno));
    return STEP_FAILED;
}

static void
pause_us(int64_t us)
{
    struct timespec ts = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

    while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
        continue;
}

static bool
join(char out[PATH_MAX], const char *a, const char *b)
{
    int n = snprintf(out, PATH_MAX, "%s%s", a, b);

    if (n >= 0 && n < PATH_MAX)
        return true;
    errno = ENAMETOOLONG;
    return false;
}

static bool
look(const char *path, struct standing *standing)
{
    struct stat st;

    memset(standing, 0, sizeof(*standing));
    if (stat(path, &st) != 0)
        return errno == ENOENT;
    standing->device = st.st_dev;
    standing->inode = st.st_ino;
    standing->size = st.st_size;
    standing->changed = st.st_mtim;
    return true;
}

static bool
look_at_all(const char *original, struct standing standings[FILES])
{
    for (size_t i = 0; i < FILES; i++) {
        char path[PATH_MAX];

        if (!join(path, original, suffixes[i]) || !look(path, &standings[i]))
            return false;
    }
    return true;
}

static bool
same_standing(const struct standing *a, const struct standing *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* Was the file left alone for long enough that a change shows in its time stamp? */
static bool
is_settled(const struct standing *s)
{
    int64_t changed_us = (int64_t)s->changed.tv_sec * 1000000 + s->changed.tv_nsec / 1000;
    int64_t age_us = clock_wall_us() - changed_us;

    /* A time stamp from the future says nothing. */
    return age_us < 0 || age_us >= SETTLED_US;
}

static bool
write_all(int fd, const char *bytes, size_t len)
{
    while (len != 0) {
        ssize_t n = write(fd, bytes, len);

        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        }
    }
    return true;
}

static bool
copy_bytes(int from, int to, char *block)
{
    for (;;) {
        ssize_t n = read(from, block, COPY_BYTES);

        if (n == 0)
            return true;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || !write_all(to, block, (size_t)n))
            return false;
    }
}

/*
 * A journal that ends in its magic names a super-journal, the mark of a transaction over several
 * databases. SQLite would look for that file by name, and may delete it, when it rolls the copy
 * back: we touch nothing but the copy.
 */
static bool
names_super_journal(int fd)
{
    static const unsigned char magic[SUPER_MAGIC_BYTES] = {0xd9, 0xd5, 0x05, 0xf9,
                                                           0x20, 0xa1, 0x63, 0xd7};
    unsigned char end[SUPER_MAGIC_BYTES];
    off_t size = lseek(fd, 0, SEEK_END);
    bool names = size > (off_t)sizeof(end) &&
                 pread(fd, end, sizeof(end), size - (off_t)sizeof(end)) == (ssize_t)sizeof(end) &&
                 memcmp(end, magic, sizeof(end)) == 0;

    lseek(fd, 0, SEEK_SET);
    return names;
}

static enum step
copy_file(const char *from_path, const char *to_path, char *block, char *why, size_t why_size)
{
    int from = open(from_path, O_RDONLY | O_CLOEXEC);
    enum step step = STEP_OK;
    int to;

    if (from < 0) {
        if (errno == ENOENT)
            return STEP_AGAIN;
        return fail(from_path, "cannot open", why, why_size);
    }
    if (names_super_journal(from)) {
        snprintf(why, why_size,
                 "%s: a transaction over several databases was broken off; open it "
                 "with its own program first",
                 from_path);
        close(from);
        return STEP_FAILED;
    }
    to = open(to_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (to < 0)
        step = fail(to_path, "cannot write a private copy of the trace", why, why_size);
    else if (!copy_bytes(from, to, block))
        step = fail(from_path, "cannot make a private copy of the trace", why, why_size);
    if (to >= 0 && close(to) != 0 && step == STEP_OK)
        step = fail(to_path, "cannot write a private copy of the trace", why, why_size);
    close(from);
    return step;
}

static void
remove_files(const struct snapshot *s)
{
    /* The index of a log is SQLite's own addition, in case it made one. */
    static const char *const names[] = {"", "-wal", "-journal", "-shm"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[PATH_MAX];

        if (join(path, s->path, names[i]))
            unlink(path);
    }
}

/* One attempt at copying all files as they stand now. */
static enum step
copy_all(const struct snapshot *s, const char *original, char *block, char *why, size_t why_size)
{
    struct standing before[FILES];
    struct standing after[FILES];

    if (!look_at_all(original, before))
        return fail(original, "cannot open", why, why_size);
    if (before[0].inode == 0) {
        errno = ENOENT;
        return fail(original, "cannot open", why, why_size);
    }
    for (size_t i = 0; i < FILES; i++) {
        char from[PATH_MAX];
        char to[PATH_MAX];
        enum step step;

        if (!is_settled(&before[i]))
            return STEP_AGAIN;
        if (i != 0 && before[i].size == 0)
            continue;
        if (!join(from, original, suffixes[i]) || !join(to, s->path, suffixes[i]))
            return fail(original, "cannot copy", why, why_size);
        step = copy_file(from, to, block, why, why_size);
        if (step != STEP_OK)
            return step;
    }
    if (!look_at_all(original, after))
        return fail(original, "cannot open", why, why_size);
    for (size_t i = 0; i < FILES; i++) {
        if (!same_standing(&before[i], &after[i]))
            return STEP_AGAIN;
    }
    return STEP_OK;
}

static bool
make_folder(struct snapshot *s)
{
    const char *parent = getenv("TMPDIR");

    if (!join(s->folder, parent && parent[0] ? parent : "/tmp", "/sunproxy-XXXXXX") ||
        !mkdtemp(s->folder)) {
        s->folder[0] = '\0';
        return false;
    }
    if (join(s->path, s->folder, "/History"))
        return true;
    rmdir(s->folder);
    s->folder[0] = '\0';
    return false;
}

enum trace_error
snapshot_take(struct snapshot *s, const char *path, char *why, size_t why_size)
{
    char resolved[PATH_MAX];
    int64_t pause = FIRST_PAUSE_US;
    enum step step = STEP_AGAIN;
    char *block = malloc(COPY_BYTES);

    s->folder[0] = '\0';
    if (!block)
        return TRACE_NO_MEMORY;
    /* The log lies beside the database, not beside a link to it. */
    if (!realpath(path, resolved))
        step = fail(path, "cannot open", why, why_size);
    else if (!make_folder(s))
        step = fail(path, "cannot make a folder for a private copy", why, why_size);
    for (int i = 0; i < ATTEMPTS && step == STEP_AGAIN; i++) {
        if (i != 0) {
            remove_files(s);
            pause_us(pause);
            pause *= 2;
        }
        step = copy_all(s, resolved, block, why, why_size);
    }
    if (step == STEP_AGAIN)
        snprintf(why, why_size, "%s: another process writes to it all the time; try again", path);
    free(block);
    if (step == STEP_OK)
        return TRACE_OK;
    snapshot_remove(s);
    return TRACE_CANNOT_OPEN;
}

/* ---- with SQLite -------------------------------------------------------------------------------
 */

/* The number of pages that the files claim to hold has to be one that they can hold. */
static int
check_pages(sqlite3 *from, const char *path)
{
    static const char *const questions[] = {"PRAGMA page_count", "PRAGMA page_size"};
    struct standing files[FILES];
    uint64_t numbers[2] = {0, 0}, bytes = 0;
    int rc = SQLITE_OK;

    for (size_t i = 0; rc == SQLITE_OK && i < 2; i++) {
        sqlite3_stmt *statement;

        rc = sqlite3_prepare_v2(from, questions[i], -1, &statement, NULL);
        if (rc != SQLITE_OK)
            return rc;
        rc = sqlite3_step(statement) == SQLITE_ROW ? SQLITE_OK : SQLITE_CORRUPT;
        numbers[i] = (uint64_t)sqlite3_column_int64(statement, 0);
        sqlite3_finalize(statement);
    }
    if (rc == SQLITE_OK && !look_at_all(path, files))
        rc = SQLITE_CANTOPEN;
    for (size_t i = 0; rc == SQLITE_OK && i < FILES; i++)
        bytes += (uint64_t)files[i].size;
    return rc == SQLITE_OK && numbers[0] > bytes / numbers[1] + 1 ? SQLITE_CORRUPT : rc;
}

static int
copy_pages(sqlite3 *from, sqlite3 *to, struct input *in)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    int rc = SQLITE_OK, finished;

    if (!backup)
        return sqlite3_errcode(to);
    while (rc == SQLITE_OK)
        rc = input_should_stop(in) ? SQLITE_INTERRUPT : sqlite3_backup_step(backup, PAGES_AT_ONCE);
    finished = sqlite3_backup_finish(backup);
    return rc == SQLITE_DONE ? finished : rc;
}

/* A transaction pins what is read: what is written meanwhile is not seen. */
static int
back_up(sqlite3 *from, sqlite3 *to, const char *path, struct input *in)
{
    int rc = sqlite3_busy_timeout(from, BUSY_MS);

    if (rc == SQLITE_OK)
        rc = sqlite3_exec(from, "BEGIN; SELECT count(*) FROM sqlite_master", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = check_pages(from, path);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(to, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", NULL, NULL,
                          NULL);
    return rc == SQLITE_OK ? copy_pages(from, to, in) : rc;
}

enum trace_error
snapshot_back_up(struct snapshot *s, const char *path, struct input *in, char *why, size_t why_size)
{
    sqlite3 *from = NULL, *to = NULL;
    int rc;

    if (!make_folder(s)) {
        fail(path, "cannot make a folder for a private copy", why, why_size);
        return TRACE_CANNOT_OPEN;
    }
    rc = sqlite3_open_v2(path, &from, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_open_v2(
            s->path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK)
        rc = back_up(from, to, path, in);
    if (rc != SQLITE_OK && rc != SQLITE_INTERRUPT)
        snprintf(why, why_size, "%s: cannot make a private copy of the trace: %s", path,
                 sqlite3_errstr(rc));
    sqlite3_close(to);
    sqlite3_close(from);
    if (rc == SQLITE_OK)
        return TRACE_OK;
    snapshot_remove(s);
    return rc == SQLITE_INTERRUPT ? TRACE_STOPPED
           : rc == SQLITE_NOMEM   ? TRACE_NO_MEMORY
                                  : TRACE_CANNOT_OPEN;
}

enum trace_error
snapshot_save(struct snapshot *s, struct input *in, uint64_t most, char *why, size_t why_size)
{
    bool good = true;
    uint64_t len = 0;
    struct span bytes;
    enum trace_error error;
    int to;

    s->folder[0] = '\0';
    if (!make_folder(s)) {
        fail(input_name(in), "cannot make a folder for a private copy", why, why_size);
        return TRACE_CANNOT_OPEN;
    }
    to = open(s->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    while (to >= 0 && good && len <= most && (bytes = input_peek(in, 1)).len != 0) {
        len += bytes.len;
        good = len > most || write_all(to, bytes.ptr, bytes.len);
        input_take(in, bytes.len);
    }
    if (to < 0 || !good || close(to) != 0) {
        fail(s->path, "cannot write a private copy of the trace", why, why_size);
        if (to >= 0 && !good)
            close(to);
        error = TRACE_CANNOT_OPEN;
    } else if (len > most) {
        snprintf(why, why_size,
                 "%s: more than %" PRIu64 " MiB; name an unpacked file instead, which may have any "
                 "size",
                 input_name(in), most >> 20U);
        error = TRACE_NOT_A_TRACE;
    } else {
        error = input_finish(in, true, why, why_size);
    }
    if (error != TRACE_OK)
        snapshot_remove(s);
    return error;
}

void
snapshot_remove(struct snapshot *s)
{
    if (s->folder[0] == '\0')
        return;
    remove_files(s);
    rmdir(s->folder);
    s->folder[0] = '\0';
}
