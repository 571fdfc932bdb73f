#include "store/disk_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/disk_file.h"

#define KIND "journal"
#define HEADER_MAGIC 0x314a5553u
#define MARK_MAGIC 0x314b524du
#define JOURNAL_MAX ((uint64_t)1 << 30)
#define JOURNAL_RENEW ((uint64_t)16 << 20)

struct journal_header {
    uint32_t magic;
    uint32_t version;
    struct disk_identity identity;
    uint64_t sum; /* of what is before */
};

/* A mark, with its text behind it, which is filled up with zeros to a multiple of 8. */
struct journal_mark {
    uint32_t magic;
    uint32_t kind; /* and 16 for a soft one; 0: the marks that the file began with are complete */
    uint64_t hash;
    uint64_t position;
    int64_t wall_us;
    uint64_t text_len;
    uint64_t sum; /* of what is before, and of the text */
};

#define MARK_SOFT 16u

/* ---- appending ------------------------------------------------------------------------------- */

static uint64_t
sum_of(const struct journal_mark *mark, const char *text, size_t padded)
{
    return disk_sum(disk_sum(0, mark, offsetof(struct journal_mark, sum)), text, padded);
}

static size_t
padded_len(uint64_t len)
{
    return (size_t)(len + 7) / 8 * 8;
}

/* Twice. */
static int
append(struct disk_journal *journal, struct journal_mark mark, struct span text)
{
    const size_t padded = padded_len(text.len), one = sizeof(mark) + padded;
    char *bytes = calloc(2, one);
    int error;

    if (!bytes)
        return ENOMEM;
    mark.magic = MARK_MAGIC;
    mark.text_len = text.len;
    span_put(bytes + sizeof(mark), text);
    mark.sum = sum_of(&mark, bytes + sizeof(mark), padded);
    memcpy(bytes, &mark, sizeof(mark));
    memcpy(bytes + one, bytes, one);
    error = disk_write(journal->fd, bytes, 2 * one, journal->size);
    if (!error)
        journal->size += 2 * one;
    free(bytes);
    return error;
}

int
disk_journal_append(struct disk_journal *journal, const struct disk_mark *mark)
{
    return append(journal,
                  (struct journal_mark){
                      .kind = (uint32_t)mark->kind | (mark->soft ? MARK_SOFT : 0),
                      .hash = mark->hash,
                      .position = mark->position,
                      .wall_us = mark->wall_us,
                  },
                  mark->kind == MARK_PREFIX ? mark->prefix : span_of(NULL, 0));
}

int
disk_journal_sync(struct disk_journal *journal)
{
    while (fdatasync(journal->fd) != 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int
open_file(const struct disk_journal *journal, uint64_t number, int flags)
{
    char name[DISK_NAME];

    disk_name_write(name, KIND, number);
    return openat(journal->folder, name, flags | O_CLOEXEC, 0600);
}

struct older {
    const struct disk_journal *journal;
    uint64_t than;
};

static void
remove_older(void *context, uint64_t number)
{
    const struct older *older = context;
    char name[DISK_NAME];

    if (number >= older->than)
        return;
    disk_name_write(name, KIND, number);
    unlinkat(older->journal->folder, name, 0);
}

struct writing {
    struct disk_journal *journal;
    int error;
};

static void
write_mark(void *context, const struct disk_mark *mark)
{
    struct writing *writing = context;

    if (!writing->error)
        writing->error = disk_journal_append(writing->journal, mark);
}

static int
write_all(struct disk_journal *journal, struct disk_marks *marks,
          const struct disk_identity *identity)
{
    struct journal_header header = {
        .magic = HEADER_MAGIC, .version = DISK_VERSION, .identity = *identity};
    struct writing writing = {.journal = journal};

    header.sum = disk_sum(0, &header, offsetof(struct journal_header, sum));
    writing.error = disk_write(journal->fd, &header, sizeof(header), 0);
    journal->size = sizeof(header);
    if (!writing.error)
        disk_marks_visit(marks, write_mark, &writing);
    if (!writing.error)
        writing.error = append(journal, (struct journal_mark){0}, span_of(NULL, 0));
    if (!writing.error)
        writing.error = disk_journal_sync(journal);
    if (!writing.error && fsync(journal->folder) != 0)
        writing.error = errno;
    return writing.error;
}

int
disk_journal_renew(struct disk_journal *journal, struct disk_marks *marks,
                   const struct disk_identity *identity)
{
    struct disk_journal next = {.folder = journal->folder, .number = journal->number + 1};
    int error;

    next.fd = open_file(&next, next.number, O_RDWR | O_CREAT | O_TRUNC);
    if (next.fd < 0)
        return errno;
    error = write_all(&next, marks, identity);
    if (error) {
        char name[DISK_NAME];

        close(next.fd);
        disk_name_write(name, KIND, next.number);
        unlinkat(journal->folder, name, 0);
        return error;
    }
    if (journal->fd >= 0)
        close(journal->fd);
    next.renew_size = next.size * 2 + JOURNAL_RENEW;
    *journal = next;
    (void)disk_list(journal->folder, KIND, remove_older, &(struct older){journal, journal->number});
    return 0;
}

void
disk_journal_spoil(struct disk_journal *journal)
{
    static const struct journal_header none;

    if (disk_write(journal->fd, &none, sizeof(none), 0) == 0)
        (void)disk_journal_sync(journal);
}

void
disk_journal_close(struct disk_journal *journal)
{
    if (journal->fd >= 0)
        close(journal->fd);
    journal->fd = -1;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The mark at an offset; false if it is damaged or not all there. Its length is in *len. */
static bool
read_mark(const char *bytes, size_t size, size_t at, struct journal_mark *mark, size_t *len)
{
    if (size - at < sizeof(*mark))
        return false;
    memcpy(mark, bytes + at, sizeof(*mark));
    if (mark->magic != MARK_MAGIC || mark->text_len > OBJECT_MAX_META)
        return false;
    *len = sizeof(*mark) + padded_len(mark->text_len);
    return *len <= size - at &&
           mark->sum == sum_of(mark, bytes + at + sizeof(*mark), *len - sizeof(*mark));
}

/* One of the two copies; false if there is none. *at is then behind both. */
static bool
read_either(const char *bytes, size_t size, size_t *at, struct journal_mark *mark,
            const char **text)
{
    size_t len, first = *at;

    if (!read_mark(bytes, size, first, mark, &len)) {
        /* The other copy is as long as this one, whose length may be damaged. */
        for (first += sizeof(*mark); first < size; first += 8)
            if (read_mark(bytes, size, first, mark, &len) && first - *at == len)
                break;
        if (first >= size)
            return false;
        *at = first + len;
    } else {
        *at = first + 2 * len;
    }
    *text = bytes + first + sizeof(*mark);
    return true;
}

/* Does a mark begin anywhere behind? Then what cannot be read is no end. */
static bool
has_mark_behind(const char *bytes, size_t size, size_t at)
{
    struct journal_mark mark;
    size_t len;

    for (; at < size; at += 8)
        if (read_mark(bytes, size, at, &mark, &len))
            return true;
    return false;
}

/* The marks that a file has; false if it is damaged or was not begun completely. */
static bool
read_marks(const char *bytes, size_t size, struct disk_marks *marks)
{
    size_t at = sizeof(struct journal_header);
    bool complete = false;

    while (at < size) {
        struct journal_mark mark;
        const char *text;
        uint64_t all;

        if (!read_either(bytes, size, &at, &mark, &text))
            return complete && !has_mark_behind(bytes, size, at);
        if (mark.kind == 0) {
            complete = true;
            continue;
        }
        disk_marks_add(marks,
                       &(struct disk_mark){
                           .kind = (enum mark_kind)(mark.kind & ~MARK_SOFT),
                           .soft = mark.kind & MARK_SOFT,
                           .hash = mark.hash,
                           .prefix = span_of(text, (size_t)mark.text_len),
                           .position = mark.position,
                           .wall_us = mark.wall_us,
                       },
                       &all);
    }
    return complete;
}

/* All of a file, or NULL. */
static char *
read_file(const struct disk_journal *journal, uint64_t number, size_t *size)
{
    int fd = open_file(journal, number, O_RDONLY);
    char *bytes = NULL;
    struct stat st;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && (uint64_t)st.st_size < JOURNAL_MAX)
        bytes = malloc((size_t)st.st_size + 1);
    if (bytes) {
        ssize_t n = disk_read(fd, bytes, (size_t)st.st_size, 0);

        *size = n < 0 ? 0 : (size_t)n;
    }
    close(fd);
    return bytes;
}

/* Was it begun completely, whatever has become of it? Then marks may have been added to it. */
static bool
was_begun(const char *bytes, size_t size)
{
    struct journal_mark mark;
    size_t len;

    for (size_t at = sizeof(struct journal_header); at < size; at += 8)
        if (read_mark(bytes, size, at, &mark, &len) && mark.kind == 0)
            return true;
    return false;
}

/* *begun: it may have marks that no earlier file has. */
static bool
read_journal(const struct disk_journal *journal, uint64_t number, struct disk_marks *marks,
             struct disk_identity *identity, bool *begun)
{
    struct journal_header header;
    size_t size = 0;
    char *bytes = read_file(journal, number, &size);
    bool valid = bytes && size >= sizeof(header);

    *begun = !bytes || was_begun(bytes, size);
    if (valid) {
        memcpy(&header, bytes, sizeof(header));
        valid = header.magic == HEADER_MAGIC && header.version == DISK_VERSION &&
                header.sum == disk_sum(0, &header, offsetof(struct journal_header, sum)) &&
                read_marks(bytes, size, marks);
    }
    if (valid)
        *identity = header.identity;
    free(bytes);
    return valid;
}

struct numbers {
    uint64_t most[2]; /* the two highest, 0: none */
};

static void
note_number(void *context, uint64_t number)
{
    struct numbers *numbers = context;

    if (number > numbers->most[0]) {
        numbers->most[1] = numbers->most[0];
        numbers->most[0] = number;
    } else if (number > numbers->most[1]) {
        numbers->most[1] = number;
    }
}

static int
make_identity(struct disk_identity *identity)
{
    if (getrandom(identity, sizeof(*identity), 0) != (ssize_t)sizeof(*identity))
        return errno;
    identity->generation = 0;
    return 0;
}

/* One that the process was still beginning when it ended leaves the earlier one in force. */
static enum journal_found
read_latest(struct disk_journal *journal, const struct numbers *numbers, struct disk_marks *marks,
            struct disk_identity *identity)
{
    bool begun = false;

    for (unsigned i = 0; i < 2 && numbers->most[i] && !begun; i++) {
        if (read_journal(journal, numbers->most[i], marks, identity, &begun))
            return JOURNAL_READ;
        disk_marks_clear(marks);
    }
    return numbers->most[0] ? JOURNAL_LOST : JOURNAL_NEW;
}

int
disk_journal_read(int folder, struct disk_marks *marks, struct disk_identity *identity,
                  enum journal_found *found)
{
    struct disk_journal journal = {.folder = folder, .fd = -1};
    struct numbers numbers = {0};
    int error = disk_list(folder, KIND, note_number, &numbers);

    *found = JOURNAL_NEW;
    if (!error)
        *found = read_latest(&journal, &numbers, marks, identity);
    return error;
}

int
disk_journal_open(struct disk_journal *journal, int folder, uint64_t terms,
                  struct disk_marks *marks, struct disk_identity *identity,
                  enum journal_found *found)
{
    struct numbers numbers = {0};
    int error;

    *journal = (struct disk_journal){.folder = folder, .fd = -1};
    error = disk_list(folder, KIND, note_number, &numbers);
    if (error)
        return error;
    *found = read_latest(journal, &numbers, marks, identity);
    if (*found == JOURNAL_READ && identity->terms != terms) {
        *found = JOURNAL_OTHER;
        disk_marks_clear(marks); /* their positions are those of another store */
    }
    if (*found != JOURNAL_READ)
        error = make_identity(identity);
    if (error)
        return error;
    identity->terms = terms;
    journal->number = numbers.most[0];
    identity->generation++;
    return disk_journal_renew(journal, marks, identity);
}
