#include "store/disk_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_MAGIC 0x314a5553u
#define MARK_MAGIC 0x314b524du
#define END_MAGIC 0x31444e45u
#define JOURNAL_STEP ((uint64_t)16 << 10) /* the file gets longer by at least that */
#define MARKS_AT_ONCE 256u
#define MOST_NUMBER (UINT64_MAX / 2) /* of a file */

struct journal_header {
    uint32_t magic;
    uint32_t version;
    struct disk_identity identity;
    uint64_t boot; /* the run of the machine that the times of the marks belong to */
    uint64_t sum;  /* of what is before */
};

/* A mark, with its text behind it, which is filled up with zeros to a multiple of 8. */
struct journal_mark {
    uint32_t magic;
    uint32_t kind; /* and 16 for a soft one; 0: the marks that the file began with are complete */
    uint64_t hash;
    uint64_t position;
    int64_t us;      /* the monotonic clock */
    int64_t wall_us; /* the wall clock at that time */
    uint64_t synced;  /* bytes of the file that were on disk when it was written */
    uint64_t text_len;
    uint64_t sum; /* of what is before, of the text, of its offset, and of which copy it is */
};

#define MARK_SOFT 16u

_Static_assert(2 * sizeof(struct journal_mark) == JOURNAL_MARK_BYTES, "it is written twice");

/* The end of the file, twice. */
struct journal_end {
    uint32_t magic;
    uint32_t zero;
    uint64_t offset; /* its own */
    uint64_t sum;    /* of what is before */
};

#define END_BYTES (2 * sizeof(struct journal_end))

/* ---- appending ------------------------------------------------------------------------------- */

/* `begin`: the offset of the first copy, a multiple of 8. A copy elsewhere does not verify. */
static uint64_t
sum_of(const struct journal_mark *mark, const char *text, size_t padded, uint64_t begin,
       bool second)
{
    const uint64_t place = begin + second;

    return disk_sum(disk_sum(place, mark, offsetof(struct journal_mark, sum)), text, padded);
}

static size_t
padded_len(uint64_t len)
{
    return (size_t)(len + 7) / 8 * 8;
}

static void
count_bytes(const struct disk_journal *journal, uint64_t more)
{
    if (journal->bytes)
        atomic_fetch_add(journal->bytes, more);
}

/* Has the file end later than this many more bytes of marks, not synced. */
static int
lengthen(struct disk_journal *journal, uint64_t more)
{
    const uint64_t end =
        (journal->size + more + END_BYTES + JOURNAL_STEP - 1) / JOURNAL_STEP * JOURNAL_STEP;
    struct journal_end ends[2] = {{.magic = END_MAGIC}, {.magic = END_MAGIC}};
    int error;

    for (unsigned i = 0; i < 2; i++) {
        ends[i].offset = end - END_BYTES + i * sizeof(ends[i]);
        ends[i].sum = disk_sum(0, &ends[i], offsetof(struct journal_end, sum));
    }
    error = disk_write(journal->fd, ends, sizeof(ends), end - END_BYTES);
    if (error)
        return error;
    count_bytes(journal, end - journal->end);
    journal->end = end;
    return 0;
}

static bool
has_space(const struct disk_journal *journal, uint64_t more)
{
    return journal->size + more + END_BYTES <= journal->end;
}

/* Bytes that begin a mark with this text; the text follows. Both are written twice. */
static size_t
mark_len(struct span text)
{
    return 2 * (sizeof(struct journal_mark) + padded_len(text.len));
}

/* To `out`, which has that many bytes, all 0, and is written at this offset. */
static void
put(char *out, struct journal_mark mark, struct span text, uint64_t offset)
{
    const size_t padded = padded_len(text.len);

    mark.magic = MARK_MAGIC;
    mark.text_len = text.len;
    for (unsigned i = 0; i < 2; i++, out += sizeof(mark) + padded) {
        span_put(out + sizeof(mark), text);
        mark.sum = sum_of(&mark, out + sizeof(mark), padded, offset, i == 1);
        memcpy(out, &mark, sizeof(mark));
    }
}

static struct span
text_of(const struct disk_mark *mark)
{
    return mark->kind == MARK_PREFIX ? mark->prefix : span_of(NULL, 0);
}

static struct journal_mark
parts_of(const struct disk_journal *journal, const struct disk_mark *mark)
{
    return (struct journal_mark){
        .kind = (uint32_t)mark->kind | (mark->soft ? MARK_SOFT : 0),
        .hash = mark->hash,
        .position = mark->position,
        .us = mark->us,
        .wall_us = journal->now.wall_us - (journal->now.monotonic_us - mark->us),
    };
}

static int
append(struct disk_journal *journal, struct journal_mark mark, struct span text)
{
    const size_t len = mark_len(text);
    char *bytes = calloc(1, len);
    int error;

    if (!bytes)
        return ENOMEM;
    mark.synced = journal->synced;
    put(bytes, mark, text, journal->size);
    error = disk_write(journal->fd, bytes, len, journal->size);
    if (!error)
        journal->size += len;
    free(bytes);
    return error;
}

int
disk_journal_append(struct disk_journal *journal, const struct disk_mark *mark)
{
    const struct span text = text_of(mark);
    int error = 0;

    /* The last end stays until there is another one. */
    if (!has_space(journal, mark_len(text))) {
        error = lengthen(journal, mark_len(text));
        if (!error)
            error = disk_journal_sync(journal);
    }
    return error ? error : append(journal, parts_of(journal, mark), text);
}

/* Removes the next file, which could not be written as a whole: a start would read that one. 0 or
 * an errno. */
static int
remove_later(struct disk_journal *journal)
{
    if (!journal->has_later)
        return 0;
    if ((!disk_unlink(journal->folder, DISK_JOURNAL, journal->number + 1) && errno != ENOENT) ||
        fsync(journal->folder) != 0)
        return errno;
    journal->has_later = false;
    return 0;
}

int
disk_journal_sync(struct disk_journal *journal)
{
    int error = remove_later(journal);

    if (error)
        return error;
    while (fdatasync(journal->fd) != 0)
        if (errno != EINTR)
            return errno;
    journal->synced = journal->size;
    return 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int
open_file(const struct disk_journal *journal, uint64_t number, int flags)
{
    char name[DISK_NAME];

    disk_name_write(name, DISK_JOURNAL, number);
    return disk_open(journal->folder, name, flags);
}

static void
remove_other(void *context, uint64_t number)
{
    const struct disk_journal *journal = context;

    if (number != journal->number)
        (void)disk_unlink(journal->folder, DISK_JOURNAL, number);
}

/* Writes the marks that a walk has come to. They are no journal yet, so none is synced by
 * itself. */
static int
write_marks(struct disk_journal *journal, const struct disk_mark *marks, size_t count)
{
    size_t len = 0;
    char *bytes, *at;
    int error;

    for (size_t i = 0; i < count; i++)
        len += mark_len(text_of(&marks[i]));
    bytes = at = calloc(1, len);
    if (!bytes)
        return ENOMEM;
    for (size_t i = 0; i < count; i++) {
        put(at, parts_of(journal, &marks[i]), text_of(&marks[i]),
            journal->size + (uint64_t)(at - bytes));
        at += mark_len(text_of(&marks[i]));
    }
    error = has_space(journal, len) ? 0 : lengthen(journal, len);
    if (!error)
        error = disk_write(journal->fd, bytes, len, journal->size);
    if (!error)
        journal->size += len;
    free(bytes);
    return error;
}

static int
write_all_marks(struct disk_journal *journal, struct disk_marks *marks)
{
    struct disk_mark some[MARKS_AT_ONCE];
    struct marks_walk walk;
    int error = 0;
    size_t count;

    disk_marks_begin_walk(marks, &walk);
    while (!error && (count = disk_marks_walk(&walk, some, MARKS_AT_ONCE)))
        error = write_marks(journal, some, count);
    if (!error && walk.failed)
        error = ENOMEM;
    disk_marks_end_walk(&walk);
    return error;
}

/*
 * The mark that they are complete is written when all others are on disk, and the removal of the
 * segments that forgotten marks concerned.
 */
static int
write_all(struct disk_journal *journal, struct disk_marks *marks,
          const struct disk_identity *identity)
{
    struct journal_header header = {.magic = HEADER_MAGIC,
                                    .version = DISK_VERSION,
                                    .identity = *identity,
                                    .boot = journal->now.boot};
    int error;

    header.sum = disk_sum(0, &header, offsetof(struct journal_header, sum));
    error = disk_write(journal->fd, &header, sizeof(header), 0);
    journal->size = sizeof(header);
    if (!error)
        error = write_all_marks(journal, marks);
    if (!error && !has_space(journal, mark_len(span_of(NULL, 0))))
        error = lengthen(journal, mark_len(span_of(NULL, 0)));
    if (!error)
        error = disk_journal_sync(journal);
    if (!error && fsync(journal->folder) != 0)
        error = errno;
    if (!error)
        error = append(journal, (struct journal_mark){.kind = 0}, span_of(NULL, 0));
    if (!error)
        error = disk_journal_sync(journal);
    return error;
}

int
disk_journal_renew(struct disk_journal *journal, struct disk_marks *marks,
                   const struct disk_identity *identity)
{
    struct disk_journal next = *journal;
    int error;

    next.number++;
    next.size = next.synced = next.end = 0;
    next.has_later = false;
    disk_name_write(journal->bad, DISK_JOURNAL, next.number);
    next.fd = open_file(&next, next.number, O_RDWR | O_CREAT | O_TRUNC);
    if (next.fd < 0)
        return errno;
    error = write_all(&next, marks, identity);
    if (error) {
        close(next.fd);
        count_bytes(journal, -next.end);
        journal->has_later = true;
        (void)remove_later(journal);
        return error;
    }
    if (journal->fd >= 0)
        close(journal->fd);
    next.renew_size = next.end * 2 + next.slack;
    (void)disk_list(next.folder, DISK_JOURNAL, remove_other, &next);
    count_bytes(journal, -journal->end);
    *journal = next;
    return 0;
}

bool
disk_journal_spoil(struct disk_journal *journal)
{
    static const struct journal_header none;

    return remove_later(journal) == 0 &&
           disk_write(journal->fd, &none, sizeof(none), 0) == 0 &&
           disk_journal_sync(journal) == 0;
}

void
disk_journal_close(struct disk_journal *journal)
{
    if (journal->fd >= 0)
        close(journal->fd);
    journal->fd = -1;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A copy of a mark at an offset; false if it is damaged, not all there, or from another place. The
 * mark begins at *begin, and a copy has *len bytes. */
static bool
read_mark(const char *bytes, size_t size, size_t at, struct journal_mark *mark, size_t *begin,
          size_t *len)
{
    const char *text;
    size_t padded;

    if (size - at < sizeof(*mark))
        return false;
    text = bytes + at + sizeof(*mark);
    memcpy(mark, bytes + at, sizeof(*mark));
    if (mark->magic != MARK_MAGIC || mark->text_len > OBJECT_MAX_META)
        return false;
    padded = padded_len(mark->text_len);
    *len = sizeof(*mark) + padded;
    if (*len > size - at)
        return false;
    *begin = at;
    if (mark->sum == sum_of(mark, text, padded, at, false))
        return true;
    if (at < *len)
        return false;
    *begin = at - *len;
    return mark->sum == sum_of(mark, text, padded, *begin, true);
}

/* One of the two copies of the mark at *at; false if there is none. *at is then behind both. */
static bool
read_either(const char *bytes, size_t size, size_t *at, struct journal_mark *mark,
            const char **text)
{
    const size_t first = *at;
    size_t begin, len;

    /* The other copy is as long as this one, whose length may be damaged. */
    for (size_t copy = first; copy < size; copy += copy == first ? sizeof(*mark) : 8) {
        if (!read_mark(bytes, size, copy, mark, &begin, &len) || begin != first)
            continue;
        *text = bytes + copy + sizeof(*mark);
        *at = first + 2 * len;
        return true;
    }
    return false;
}

/* Up to where was the file synced, as far as any mark says? */
static uint64_t
synced_of(const char *bytes, size_t size)
{
    struct journal_mark mark;
    uint64_t synced = 0;
    size_t begin, len;

    for (size_t at = sizeof(struct journal_header); at < size; at += len) {
        if (!read_mark(bytes, size, at, &mark, &begin, &len))
            len = 8;
        else if (mark.synced > synced)
            synced = mark.synced;
    }
    return synced;
}

/* Is the end of the file behind the marks? Otherwise it was cut short. */
static bool
has_end_behind(const char *bytes, size_t size, size_t at)
{
    struct journal_end end;

    for (; at < size && size - at >= sizeof(end); at += 8) {
        memcpy(&end, bytes + at, sizeof(end));
        if (end.magic == END_MAGIC && end.offset == at &&
            end.sum == disk_sum(0, &end, offsetof(struct journal_end, sum)))
            return true;
    }
    return false;
}

/* When it was purged, by the monotonic clock as it is now; not later than now. */
static int64_t
us_of(const struct disk_journal *journal, const struct journal_header *header,
      const struct journal_mark *mark)
{
    const struct disk_now *now = &journal->now;
    const int64_t us =
        header->boot == now->boot ? mark->us : now->monotonic_us - (now->wall_us - mark->wall_us);

    return us < now->monotonic_us ? us : now->monotonic_us;
}

/* The marks that a file has; false if it is damaged or was not begun completely. */
static bool
read_marks(const struct disk_journal *journal, const char *bytes, size_t size,
           struct disk_marks *marks)
{
    const uint64_t synced = synced_of(bytes, size);
    size_t at = sizeof(struct journal_header);
    struct journal_header header;
    bool complete = false;

    memcpy(&header, bytes, sizeof(header));
    for (;;) {
        struct journal_mark mark;
        const char *text;
        uint64_t all;

        if (at >= size || !read_either(bytes, size, &at, &mark, &text))
            return complete && at >= synced && has_end_behind(bytes, size, at);
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
                           .us = us_of(journal, &header, &mark),
                       },
                       &all);
    }
}

/* All of an open file; *bytes is NULL for one that is too long. 0 or an errno. */
static int
read_all(int fd, char **bytes, size_t *size)
{
    struct stat st;
    ssize_t n;

    if (fstat(fd, &st) != 0)
        return errno;
    if ((uint64_t)st.st_size >= JOURNAL_MAX)
        return 0;
    *bytes = malloc((size_t)st.st_size + 1);
    if (!*bytes)
        return ENOMEM;
    n = disk_read(fd, *bytes, (size_t)st.st_size, 0);
    if (n < 0)
        return errno;
    *size = (size_t)n;
    return 0;
}

static int
read_file(struct disk_journal *journal, uint64_t number, char **bytes, size_t *size)
{
    int fd, error;

    disk_name_write(journal->bad, DISK_JOURNAL, number);
    fd = open_file(journal, number, O_RDONLY);
    if (fd < 0)
        return errno;
    error = read_all(fd, bytes, size);
    close(fd);
    return error;
}

/* Was it begun completely, whatever has become of it? Then marks may have been added to it. */
static bool
was_begun(const char *bytes, size_t size)
{
    struct journal_mark mark;
    size_t begin, len;

    for (size_t at = sizeof(struct journal_header); at < size; at += 8)
        if (read_mark(bytes, size, at, &mark, &begin, &len) && mark.kind == 0)
            return true;
    return false;
}

/* *begun: it may have marks that no earlier file has; *valid: they have been added. 0 or an
 * errno. */
static int
read_journal(struct disk_journal *journal, uint64_t number, struct disk_marks *marks,
             struct disk_identity *identity, bool *begun, bool *is_valid)
{
    struct journal_header header;
    char *bytes = NULL;
    size_t size = 0;
    const int error = read_file(journal, number, &bytes, &size);
    bool valid = !error && bytes && size >= sizeof(header);

    *begun = !bytes || was_begun(bytes, size);
    if (valid) {
        memcpy(&header, bytes, sizeof(header));
        valid = header.magic == HEADER_MAGIC && header.version == DISK_VERSION &&
                header.sum == disk_sum(0, &header, offsetof(struct journal_header, sum)) &&
                read_marks(journal, bytes, size, marks);
    }
    if (valid)
        *identity = header.identity;
    free(bytes);
    *is_valid = valid;
    return error;
}

struct numbers {
    uint64_t most[2]; /* the two highest, 0: none */
    bool beyond;      /* a file has one that none is given: it is not known which is the latest */
};

static void
note_number(void *context, uint64_t number)
{
    struct numbers *numbers = context;

    if (number > MOST_NUMBER) {
        numbers->beyond = true;
    } else if (number > numbers->most[0]) {
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
static int
read_latest(struct disk_journal *journal, const struct numbers *numbers, struct disk_marks *marks,
            struct disk_identity *identity, enum journal_found *found)
{
    bool begun = numbers->beyond, valid = false;
    int error = 0;

    *found = numbers->most[0] || numbers->beyond ? JOURNAL_LOST : JOURNAL_NEW;
    for (unsigned i = 0; i < 2 && numbers->most[i] && !begun && !error && !valid; i++) {
        error = read_journal(journal, numbers->most[i], marks, identity, &begun, &valid);
        if (valid)
            *found = JOURNAL_READ;
        else
            disk_marks_clear(marks);
    }
    return error;
}

int
disk_journal_read(struct disk_journal *journal, struct disk_marks *marks,
                  struct disk_identity *identity, enum journal_found *found)
{
    struct numbers numbers = {0};
    int error = disk_list(journal->folder, DISK_JOURNAL, note_number, &numbers);

    *found = JOURNAL_NEW;
    journal->bad[0] = '\0';
    journal->number = numbers.most[0];
    return error ? error : read_latest(journal, &numbers, marks, identity, found);
}

int
disk_journal_open(struct disk_journal *journal, uint64_t terms, struct disk_marks *marks,
                  struct disk_identity *identity, enum journal_found *found)
{
    int error = disk_journal_read(journal, marks, identity, found);

    if (error)
        return error;
    if (*found == JOURNAL_READ && identity->terms != terms) {
        *found = JOURNAL_OTHER;
        disk_marks_clear(marks); /* their positions are those of another store */
    }
    journal->bad[0] = '\0';
    if (*found != JOURNAL_READ)
        error = make_identity(identity);
    if (error)
        return error;
    identity->terms = terms;
    identity->generation++;
    return disk_journal_renew(journal, marks, identity);
}
