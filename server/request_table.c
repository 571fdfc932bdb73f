#include "server/request_table.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/request_schema.h"
#include "base/sqlite.h"

#define LONGEST_TEXT ((size_t)4 << 20)
#define BUSY_MS 1000                /* that a lock of another process is waited for */
#define MOST_REMOVED INT64_C(65536) /* rows in one transaction */
#define SLACK_PARTS 16u             /* of the bound: what is free in the file for a batch */
#define LOG_BYTES "16777216"        /* of the write-ahead log, once it was written back */
#define LOG_FRAMES 1000             /* after which it is written back */
#define LOG_PARTS 16                /* of the bound: what the log may have in any case */
#define LEAST_LOG ((int64_t)1 << 20)

/* A file beside the database, under the name that the database had when it was opened. */
struct beside {
    char *path;
    dev_t device;
    ino_t inode; /* 0: unknown */
};

struct request_table {
    sqlite3 *handle;
    sqlite3_stmt *insert;
    char *path;
    int file; /* O_PATH: closing it gives up no lock of SQLite; -1: none */
    struct beside log, index;
    uint64_t max_bytes;
    int64_t page_bytes, file_bytes; /* when the bound was kept last; 0: unknown */
    int log_frames;                 /* after the last transaction */
    bool log_is_full;               /* and cannot be emptied */
    struct buf client, method, url, origin;
};

/* ---- opening --------------------------------------------------------------------------------- */

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

/* Makes the file if there is none, so that its mode is ours, and reads how it begins. */
static bool
check_file(const char *path, struct buf *why)
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

static int
run(sqlite3 *handle, const char *sql)
{
    return sqlite3_exec(handle, sql, NULL, NULL, NULL);
}

/* Only a file that is empty or has this schema is written to. */
static int
check_schema(sqlite3 *handle, bool *is_new, struct buf *why)
{
    int64_t application = 0, version = 0, objects = 0;
    int rc = sqlite_read_number(handle, "PRAGMA application_id", &application);

    if (rc == SQLITE_OK)
        rc = sqlite_read_number(handle, "PRAGMA user_version", &version);
    if (rc == SQLITE_OK)
        rc = sqlite_read_number(handle, "SELECT count(*) FROM sqlite_master", &objects);
    if (rc != SQLITE_OK)
        return rc;
    *is_new = application == 0 && version == 0 && objects == 0;
    if (*is_new)
        return SQLITE_OK;
    if (application != REQUEST_SCHEMA_APPLICATION)
        buf_append_str(why, "it is an SQLite database of something else");
    else if (version > REQUEST_SCHEMA_VERSION)
        buf_printf(why, "its schema is %lld, of a later release; this one writes %d",
                   (long long)version, REQUEST_SCHEMA_VERSION);
    else if (version != REQUEST_SCHEMA_VERSION)
        buf_printf(why, "its schema is %lld; this release writes %d", (long long)version,
                   REQUEST_SCHEMA_VERSION);
    return buf_span(why).len ? SQLITE_ERROR : SQLITE_OK;
}

/* In that order: each setting is one of an empty file. */
static int
use_log(sqlite3 *handle, bool is_new, struct buf *why)
{
    sqlite3_stmt *statement;
    bool is_wal;
    int rc = is_new ? run(handle, "PRAGMA auto_vacuum = INCREMENTAL") : SQLITE_OK;

    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(handle, "PRAGMA journal_mode = WAL", -1, &statement, NULL);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(statement);
    is_wal =
        rc == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(statement, 0), "wal") == 0;
    sqlite3_finalize(statement);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? SQLITE_ERROR : rc;
    if (!is_wal)
        buf_append_str(why, "its file system cannot hold a write-ahead log of SQLite");
    return is_wal ? SQLITE_OK : SQLITE_ERROR;
}

/* The checkpoint writes the number of the application to the file's header, where readers look. */
static int
make_schema(sqlite3 *handle)
{
    char numbers[160];
    int rc = run(handle, "BEGIN IMMEDIATE; " REQUEST_SCHEMA_SQL);

    sqlite3_snprintf(sizeof(numbers), numbers,
                     "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT; "
                     "PRAGMA wal_checkpoint",
                     REQUEST_SCHEMA_APPLICATION, REQUEST_SCHEMA_VERSION);
    return rc == SQLITE_OK ? run(handle, numbers) : rc;
}

static int
configure(sqlite3 *handle)
{
    int rc = sqlite3_extended_result_codes(handle, 1);

    if (rc == SQLITE_OK)
        rc = sqlite_distrust_schema(handle);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(handle, BUSY_MS);
    /* NORMAL: a crash of the system may lose the last transactions, but damages nothing. */
    if (rc == SQLITE_OK)
        rc = run(handle, "PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY;"
                         "PRAGMA mmap_size = 0; PRAGMA journal_size_limit = " LOG_BYTES);
    return rc;
}

/* Names of columns that are not there show here. */
static int
prepare(struct request_table *table)
{
    return sqlite3_prepare_v3(
        table->handle,
        "INSERT INTO requests (time_us, duration_us, fetch_us, protocol, client, method, url, "
        "origin, outcome, status, bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        -1, SQLITE_PREPARE_PERSISTENT, &table->insert, NULL);
}

/* In the place of SQLite's own hook, which does the same and does not say the length. */
static int
note_commit(void *argument, sqlite3 *handle, const char *schema, int frames)
{
    struct request_table *table = argument;

    table->log_frames = frames;
    if (frames >= LOG_FRAMES)
        sqlite3_wal_checkpoint_v2(handle, schema, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return SQLITE_OK;
}

static bool
note_beside(struct beside *beside, const char *path, const char *end)
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

/* The first statement made log and index. */
static int
note_files(struct request_table *table, const char *path)
{
    table->path = sqlite3_mprintf("%s", path);
    if (!table->path || !note_beside(&table->log, path, "-wal") ||
        !note_beside(&table->index, path, "-shm"))
        return SQLITE_NOMEM;
    table->file = open(path, O_PATH | O_CLOEXEC);
    return table->file >= 0 ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int
set_up(struct request_table *table, struct buf *why)
{
    bool is_new = false;
    int64_t rows;
    int rc = configure(table->handle);

    sqlite3_wal_hook(table->handle, note_commit, table);

    if (rc == SQLITE_OK)
        rc = check_schema(table->handle, &is_new, why);
    if (rc == SQLITE_OK)
        rc = use_log(table->handle, is_new, why);
    if (rc == SQLITE_OK && is_new)
        rc = make_schema(table->handle);
    if (rc == SQLITE_OK)
        rc = prepare(table);
    return rc == SQLITE_OK
               ? sqlite_read_number(table->handle, "SELECT count(*) FROM sqlite_master", &rows)
               : rc;
}

static void
free_table(struct request_table *table)
{
    sqlite3_finalize(table->insert);
    sqlite3_close(table->handle);
    if (table->file >= 0)
        close(table->file);
    sqlite3_free(table->path);
    sqlite3_free(table->log.path);
    sqlite3_free(table->index.path);
    buf_free(&table->client);
    buf_free(&table->method);
    buf_free(&table->url);
    buf_free(&table->origin);
    free(table);
}

struct request_table *
request_table_open(const char *path, uint64_t max_bytes, struct buf *why)
{
    struct request_table *table;
    int rc;

    if (!check_file(path, why))
        return NULL;
    table = calloc(1, sizeof(*table));
    if (!table) {
        buf_append_str(why, strerror(ENOMEM));
        return NULL;
    }
    table->file = -1;
    table->max_bytes = max_bytes < INT64_MAX ? max_bytes : 0;
    buf_init(&table->client, 128);
    buf_init(&table->method, LONGEST_TEXT);
    buf_init(&table->url, LONGEST_TEXT);
    buf_init(&table->origin, LONGEST_TEXT);
    rc = sqlite3_open_v2(path, &table->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK)
        rc = set_up(table, why);
    if (rc == SQLITE_OK)
        rc = note_files(table, path);
    if (rc == SQLITE_OK)
        return table;
    if (buf_span(why).len == 0)
        buf_append_str(why, request_table_explain(table, rc));
    free_table(table);
    return NULL;
}

/* ---- moving and closing ---------------------------------------------------------------------- */

enum request_table_place
request_table_place(const struct request_table *table)
{
    struct stat file, named;

    if (fstat(table->file, &file) != 0)
        return REQUEST_TABLE_NAMED;
    if (stat(table->path, &named) == 0 && named.st_dev == file.st_dev &&
        named.st_ino == file.st_ino)
        return REQUEST_TABLE_NAMED;
    return file.st_nlink ? REQUEST_TABLE_MOVED : REQUEST_TABLE_REMOVED;
}

int
request_table_settle(struct request_table *table)
{
    int frames, moved;
    int rc =
        sqlite3_wal_checkpoint_v2(table->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, &frames, &moved);

    return rc == SQLITE_OK && moved < frames ? SQLITE_BUSY : rc;
}

static void
remove_beside(const struct beside *beside)
{
    struct stat st;

    if (beside->inode && stat(beside->path, &st) == 0 && st.st_dev == beside->device &&
        st.st_ino == beside->inode)
        unlink(beside->path);
}

bool
request_table_close(struct request_table *table)
{
    enum request_table_place place;
    bool settled;

    if (!table)
        return true;
    settled = request_table_settle(table) == SQLITE_OK;
    place = request_table_place(table);
    /* SQLite removes both only if the file still has its name. */
    if (place == REQUEST_TABLE_REMOVED || (place == REQUEST_TABLE_MOVED && settled)) {
        remove_beside(&table->log);
        remove_beside(&table->index);
    }
    free_table(table);
    return settled || place != REQUEST_TABLE_MOVED;
}

/* ---- failures -------------------------------------------------------------------------------- */

bool
request_table_blames_row(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_CONSTRAINT:
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
        return true;
    default:
        return false;
    }
}

bool
request_table_may_recover(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_INTERRUPT:
        return true;
    default:
        return false;
    }
}

const char *
request_table_explain(const struct request_table *table, int rc)
{
    if (rc == SQLITE_BUSY && table->log_is_full)
        return "its write-ahead log has reached the bound, and another process reads from it";
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return "another process has locked it";
    case SQLITE_FULL:
        return "the disk is full";
    case SQLITE_NOTADB:
        return "it is not an SQLite database";
    case SQLITE_NOMEM:
        return strerror(ENOMEM);
    default:
        return table->handle && sqlite3_extended_errcode(table->handle) == rc
                   ? sqlite3_errmsg(table->handle)
                   : sqlite3_errstr(rc);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int
bind_text(sqlite3_stmt *statement, int column, struct buf *text)
{
    if (buf_failed(text))
        return SQLITE_TOOBIG;
    if (text->len == 0)
        return sqlite3_bind_null(statement, column);
    return sqlite3_bind_text(statement, column, text->data, (int)text->len, SQLITE_STATIC);
}

static int
bind_word(sqlite3_stmt *statement, int column, const char *word)
{
    return sqlite3_bind_text(statement, column, word, -1, SQLITE_STATIC);
}

static void
make_texts(struct request_table *table, const struct request_row *row)
{
    buf_reset(&table->client);
    buf_reset(&table->method);
    buf_reset(&table->url);
    buf_reset(&table->origin);
    access_client_append(&table->client, &row->client);
    access_text_escape(&table->method, row->method);
    access_text_escape(&table->url, row->url);
    access_text_origin(&table->origin, buf_span(&table->url));
    if (row->url.len == 0)
        buf_append_char(&table->url, '-');
}

static int
bind_row(struct request_table *table, const struct request_row *row)
{
    enum {
        TIME = 1,
        DURATION,
        FETCH,
        PROTOCOL,
        CLIENT,
        METHOD,
        URL,
        ORIGIN,
        OUTCOME,
        STATUS,
        BYTES
    };
    sqlite3_stmt *to = table->insert;
    int rc = sqlite3_bind_int64(to, TIME, row->time_us);

    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(to, DURATION, row->duration_us);
    if (rc == SQLITE_OK)
        rc = row->fetch_us < 0 ? sqlite3_bind_null(to, FETCH)
                               : sqlite3_bind_int64(to, FETCH, row->fetch_us);
    if (rc == SQLITE_OK)
        rc = bind_word(to, PROTOCOL, row->protocol);
    if (rc == SQLITE_OK)
        rc = bind_text(to, CLIENT, &table->client);
    if (rc == SQLITE_OK)
        rc = bind_text(to, METHOD, &table->method);
    if (rc == SQLITE_OK)
        rc = bind_text(to, URL, &table->url);
    if (rc == SQLITE_OK)
        rc = bind_text(to, ORIGIN, &table->origin);
    if (rc == SQLITE_OK)
        rc = bind_word(to, OUTCOME, row->outcome);
    if (rc == SQLITE_OK)
        rc = row->status ? sqlite3_bind_int64(to, STATUS, row->status)
                         : sqlite3_bind_null(to, STATUS);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(to, BYTES, (sqlite3_int64)row->bytes);
    return rc;
}

int
request_table_insert(struct request_table *table, const struct request_row *row)
{
    int rc;

    make_texts(table, row);
    rc = bind_row(table, row);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(table->insert);
    sqlite3_reset(table->insert);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* ---- transactions and the bound -------------------------------------------------------------- */

/* The log may have what the bound leaves beside the file, but some in any case. */
static bool
is_log_over(const struct request_table *table)
{
    enum { HEAD = 32, FRAME_HEAD = 24 };
    int64_t bound = (int64_t)table->max_bytes, allowed = bound - table->file_bytes;

    if (allowed < bound / LOG_PARTS)
        allowed = bound / LOG_PARTS;
    if (allowed < LEAST_LOG)
        allowed = LEAST_LOG;
    return bound && HEAD + table->log_frames * (FRAME_HEAD + table->page_bytes) > allowed;
}

/* A process that reads from the log prevents this. */
static int
empty_log(struct request_table *table)
{
    int rc = sqlite3_wal_checkpoint_v2(table->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);

    table->log_is_full = rc == SQLITE_BUSY;
    if (rc == SQLITE_OK)
        table->log_frames = 0;
    return rc;
}

int
request_table_begin(struct request_table *table)
{
    int rc = is_log_over(table) ? empty_log(table) : SQLITE_OK;

    if (rc != SQLITE_OK)
        return rc;
    table->log_is_full = false;
    return run(table->handle, "BEGIN IMMEDIATE");
}

void
request_table_rollback(struct request_table *table)
{
    /* After some failures SQLite has done that. */
    if (!sqlite3_get_autocommit(table->handle))
        run(table->handle, "ROLLBACK");
}

struct sizes {
    int64_t page_bytes, pages, free_pages;
};

static int
read_sizes(struct request_table *table, struct sizes *sizes)
{
    int rc = sqlite_read_number(table->handle, "PRAGMA page_size", &sizes->page_bytes);

    if (rc == SQLITE_OK)
        rc = sqlite_read_number(table->handle, "PRAGMA page_count", &sizes->pages);
    if (rc == SQLITE_OK)
        rc = sqlite_read_number(table->handle, "PRAGMA freelist_count", &sizes->free_pages);
    return rc;
}

/* Removes the oldest rows: at least those that take `excess` of the `used` bytes on average. */
static int
remove_oldest(struct request_table *table, int64_t excess, int64_t used, uint64_t *removed)
{
    int64_t first = 0, last = 0, rows, wanted;
    char sql[80];
    int rc = sqlite_read_number(table->handle, "SELECT min(id) FROM requests", &first);

    if (rc == SQLITE_OK)
        rc = sqlite_read_number(table->handle, "SELECT max(id) FROM requests", &last);
    if (rc != SQLITE_OK)
        return rc;
    rows = last - first + 1;
    wanted = (int64_t)((double)rows * (double)excess / (double)used) + 1;
    if (wanted > MOST_REMOVED)
        wanted = MOST_REMOVED;
    /* The newest one stays, so that numbers go on rising. */
    if (wanted > rows - 1)
        wanted = rows - 1;
    if (wanted <= 0)
        return SQLITE_OK;
    sqlite3_snprintf(sizeof(sql), sql, "DELETE FROM requests WHERE id < %lld",
                     (long long)(first + wanted));
    rc = run(table->handle, sql);
    if (rc == SQLITE_OK)
        *removed = (uint64_t)sqlite3_changes(table->handle);
    return rc;
}

/* Pages of removed rows are used again; a file that was larger is cut off. */
static int
keep_bound(struct request_table *table, uint64_t *removed)
{
    int64_t bound = (int64_t)table->max_bytes, used;
    struct sizes sizes = {.pages = 0};
    char sql[80];
    int rc = read_sizes(table, &sizes);

    if (rc != SQLITE_OK)
        return rc;
    table->page_bytes = sizes.page_bytes;
    table->file_bytes = sizes.pages * sizes.page_bytes;
    used = (sizes.pages - sizes.free_pages) * sizes.page_bytes;
    if (used > bound - bound / SLACK_PARTS) {
        rc = remove_oldest(table, used - (bound - bound / SLACK_PARTS), used, removed);
        if (rc == SQLITE_OK)
            rc = read_sizes(table, &sizes);
    }
    if (rc != SQLITE_OK || sizes.free_pages == 0 || sizes.pages * sizes.page_bytes <= bound)
        return rc;
    sqlite3_snprintf(sizeof(sql), sql, "PRAGMA incremental_vacuum(%lld)",
                     (long long)((sizes.pages * sizes.page_bytes - bound) / sizes.page_bytes + 1));
    return run(table->handle, sql);
}

int
request_table_commit(struct request_table *table, uint64_t *removed)
{
    int rc = SQLITE_OK;

    *removed = 0;
    if (table->max_bytes)
        rc = keep_bound(table, removed);
    return rc == SQLITE_OK ? run(table->handle, "COMMIT") : rc;
}
