#include "store/store_visit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/disk_file.h"
#include "store/disk_log.h"

#define JOURNAL_TRIES 3u

struct visit {
    int folder, lock;
    const struct store_wanted *wanted;
    struct disk_now now;
    uint64_t latest; /* the number of the newest segment: it is written if the store is in use */
    void (*visit)(void *context, const struct store_entry *entry);
    void *context;
    struct store_totals *totals;
    struct disk_marks marks;
    struct disk_identity identity;
    struct disk_log log;
    struct disk_index index; /* of what is later */
    uint64_t *numbers;
    size_t count, size;
    bool failed;
};

/* ---- files ----------------------------------------------------------------------------------- */

static bool
open_folder(struct visit *v, const char *folder, struct buf *why)
{
    v->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (v->folder >= 0)
        v->lock = disk_open(v->folder, DISK_LOCK, O_RDONLY);
    if (v->lock >= 0)
        return true;
    if (v->folder >= 0 && errno == ENOENT)
        buf_append_str(why, "it is no store");
    else
        disk_tell(why, v->folder, v->folder >= 0 ? DISK_LOCK : "", errno);
    return false;
}

static void
note_segment(void *context, uint64_t number)
{
    struct visit *v = context;

    if (v->count == v->size) {
        size_t size = v->size ? 2 * v->size : 256;
        uint64_t *grown = realloc(v->numbers, size * sizeof(*grown));

        v->failed = v->failed || !grown;
        if (!grown)
            return;
        v->numbers = grown;
        v->size = size;
    }
    v->numbers[v->count++] = number;
}

static int
compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Has a process the store? One that starts meanwhile is to get it, so it is kept no longer. */
static bool
is_in_use(const struct visit *v)
{
    if (flock(v->lock, LOCK_SH | LOCK_NB) != 0)
        return true;
    (void)flock(v->lock, LOCK_UN);
    return false;
}

/* A daemon may replace the journal while it is read. */
static bool
read_journal(struct visit *v, struct buf *why)
{
    struct disk_journal journal = {.folder = v->folder, .now = v->now, .fd = -1};
    enum journal_found found = JOURNAL_NEW;
    int error = 0;

    for (unsigned i = 0; (!error || error == ENOENT) && found != JOURNAL_READ && i < JOURNAL_TRIES;
         i++) {
        disk_marks_clear(&v->marks);
        error = disk_journal_read(&journal, &v->marks, &v->identity, &found);
        if (!v->totals->in_use)
            break;
    }
    v->totals->journal_lost = found != JOURNAL_READ;
    if (error)
        disk_tell(why, v->folder, journal.bad, error);
    return !error;
}

static bool
begin(struct visit *v, const char *folder, struct buf *why)
{
    int error;

    disk_marks_init(&v->marks);
    disk_index_init(&v->index);
    if (!open_folder(v, folder, why))
        return false;
    v->totals->in_use = is_in_use(v);
    v->now = (struct disk_now){disk_boot(), clock_monotonic_us(), clock_wall_us()};
    if (!read_journal(v, why))
        return false;
    error = disk_list(v->folder, "segment", note_segment, v);
    if (!error && (v->failed || !disk_log_init(&v->log, v->folder, &v->identity, 1)))
        error = ENOMEM;
    v->log.only_reads = true;
    if (error)
        buf_append_str(why, strerror(error));
    else if (v->count)
        qsort(v->numbers, v->count, sizeof(*v->numbers), compare);
    v->latest = v->count ? v->numbers[v->count - 1] : 0;
    return !error;
}

static void
end(struct visit *v)
{
    disk_log_free(&v->log);
    disk_index_free(&v->index);
    disk_marks_free(&v->marks);
    free(v->numbers);
    if (v->lock >= 0)
        close(v->lock);
    if (v->folder >= 0)
        close(v->folder);
}

/* ---- records --------------------------------------------------------------------------------- */

static bool
body_is_whole(const struct disk_segment *segment, const struct disk_record *record,
              const char *bytes, size_t len)
{
    uint64_t left = record->head.body_len;

    if (left > len || record->head.head_len > len - left)
        return false;
    for (size_t part = 0; left; part++) {
        const size_t size = left < DISK_PART ? (size_t)left : DISK_PART;

        if (!disk_part_verify(record, segment->seed, part,
                              bytes + record->head.head_len + part * DISK_PART, size))
            return false;
        left -= size;
    }
    return true;
}

/* What may be a record that is being written, in a store that is in use. */
static bool
is_being_written(const struct visit *v, const struct disk_segment *segment)
{
    return v->totals->in_use && segment->number >= v->latest;
}

static void
tell_damage(struct visit *v, const struct disk_segment *segment, uint64_t offset)
{
    if (is_being_written(v, segment))
        return;
    v->totals->damaged++;
    v->visit(v->context, &(struct store_entry){.segment = segment->number, .offset = offset});
}

static void
tell_unread(struct visit *v, uint64_t segment, uint64_t offset, int error)
{
    v->totals->unread++;
    v->visit(v->context,
             &(struct store_entry){.segment = segment, .offset = offset, .error = error});
}

static void
judge(struct visit *v, struct store_entry *entry)
{
    const struct disk_head *head = &entry->record->head;
    int64_t expired_us = 0, born_us;
    const enum mark_verdict verdict = disk_marks_find(&v->marks, entry->record, &expired_us);

    entry->expired = verdict == MARKED_EXPIRED;
    entry->current = verdict != MARKED_PURGED && !entry->damaged && !v->totals->journal_lost;
    disk_record_times(head, &v->now, entry->expired ? expired_us : INT64_MAX, &born_us,
                      &entry->lifetime_us);
    entry->age_us = v->now.monotonic_us - born_us;
}

static void
tell(struct visit *v, const struct disk_segment *segment, const struct disk_listed *listed,
     const char *bytes, size_t len)
{
    const struct disk_key key = {listed->url_hash, listed->variant_hash};
    const struct disk_place place = {
        .segment = segment->id, .offset = listed->offset, .length = 1};
    struct store_entry entry = {.segment = segment->number,
                                .offset = (uint64_t)listed->offset * DISK_UNIT};
    struct disk_record record;

    if (!disk_head_read(bytes, len, segment->seed, &record)) {
        tell_damage(v, segment, entry.offset);
        return;
    }
    if (v->wanted->url.len && !span_equal(v->wanted->url, record.url))
        return;
    entry.record = &record;
    entry.damaged = v->wanted->bodies && !body_is_whole(segment, &record, bytes, len);
    if (entry.damaged && is_being_written(v, segment))
        return;
    if (v->wanted->bodies && !entry.damaged)
        entry.body = span_of(bytes + record.head.head_len, (size_t)record.head.body_len);
    judge(v, &entry);
    entry.current = disk_index_put(&v->index, &key, &place, true) && entry.current;
    v->totals->records++;
    v->totals->objects += entry.current;
    v->totals->damaged += entry.damaged;
    v->visit(v->context, &entry);
}

static void
read_one(struct visit *v, const struct disk_segment *segment, const struct disk_listed *listed)
{
    const uint64_t at = (uint64_t)listed->offset * DISK_UNIT;
    size_t len = (size_t)listed->length * DISK_UNIT;
    char *bytes;
    ssize_t n;

    if (v->wanted->url.len &&
        listed->url_hash != disk_key_of(v->identity.secret, v->wanted->url, span_of("", 0)).url)
        return;
    if (!v->wanted->bodies && len > DISK_HEAD_MAX)
        len = DISK_HEAD_MAX;
    bytes = malloc(len);
    n = bytes ? disk_read(segment->fd, bytes, len, at) : -1;
    if (n >= 0)
        tell(v, segment, listed, bytes, (size_t)n);
    else
        tell_unread(v, segment->number, at, errno);
    free(bytes);
}

static struct disk_listed *
list_records(struct visit *v, struct disk_segment *segment, size_t *count)
{
    struct disk_listed *listed =
        v->wanted->scans ? NULL : disk_segment_footer(segment, count);
    uint64_t end_of_records;
    enum disk_scanned how = DISK_SCANNED;

    if (listed)
        return listed;
    listed = disk_segment_scan_all(segment, NULL, count, &end_of_records, &how);
    if (how == DISK_SCAN_FAILED)
        tell_unread(v, segment->number, end_of_records, errno);
    else if (how == DISK_SCAN_DAMAGED)
        tell_damage(v, segment, end_of_records);
    return listed;
}

static void
visit_segment(struct visit *v, uint64_t number)
{
    struct disk_segment *segment = disk_log_adopt(&v->log, number);
    struct disk_listed *listed;
    size_t count = 0;

    if (!segment && v->totals->in_use && (errno == ENOENT || number >= v->latest))
        return;
    if (!segment && errno == ENODATA && number == v->latest)
        return;
    if (!segment && errno != EINVAL && errno != ENODATA) {
        tell_unread(v, number, 0, errno);
        return;
    }
    if (!segment) {
        v->totals->damaged++;
        v->visit(v->context, &(struct store_entry){.segment = number});
        return;
    }
    v->totals->segments++;
    v->totals->bytes += segment->size;
    listed = list_records(v, segment, &count);
    while (count-- > 0)
        read_one(v, segment, &listed[count]);
    free(listed);
}

bool
store_visit(const char *folder, const struct store_wanted *wanted,
            void (*visit)(void *context, const struct store_entry *entry), void *context,
            struct store_totals *totals, struct buf *why)
{
    struct visit *v = calloc(1, sizeof(*v));
    bool done;

    *totals = (struct store_totals){0};
    if (!v) {
        buf_append_str(why, strerror(ENOMEM));
        return false;
    }
    v->folder = v->lock = -1;
    v->wanted = wanted;
    v->visit = visit;
    v->context = context;
    v->totals = totals;
    done = begin(v, folder, why);
    while (done && v->count)
        visit_segment(v, v->numbers[--v->count]);
    if (done && !totals->in_use)
        totals->in_use = is_in_use(v);
    end(v);
    free(v);
    return done;
}

/* ---- trimming -------------------------------------------------------------------------------- */

static uint64_t
bytes_of(const struct visit *v)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < v->count; i++)
        bytes += disk_size(v->folder, "segment", v->numbers[i]);
    return bytes;
}

bool
store_trim(const char *folder, uint64_t bytes, uint64_t *removed, struct buf *why)
{
    struct store_totals totals = {0};
    struct visit v = {.folder = -1, .lock = -1, .totals = &totals};
    bool done = open_folder(&v, folder, why);
    uint64_t left;

    *removed = 0;
    if (done && flock(v.lock, LOCK_EX | LOCK_NB) != 0) {
        buf_append_str(why, "a daemon uses it, which keeps its size (--store-size)");
        done = false;
    }
    if (done && disk_list(v.folder, "segment", note_segment, &v) != 0) {
        buf_append_str(why, "its files cannot be listed");
        done = false;
    }
    if (done && v.count)
        qsort(v.numbers, v.count, sizeof(*v.numbers), compare);
    left = done ? bytes_of(&v) : 0;
    for (size_t i = 0; done && i < v.count && left > bytes; i++) {
        left -= disk_size(v.folder, "segment", v.numbers[i]);
        done = disk_unlink(v.folder, "segment", v.numbers[i]);
        if (done)
            ++*removed;
        else
            buf_append_str(why, strerror(errno));
    }
    free(v.numbers);
    if (v.lock >= 0)
        close(v.lock);
    if (v.folder >= 0)
        close(v.folder);
    return done;
}
