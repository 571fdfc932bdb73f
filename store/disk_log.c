#include "store/disk_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "store/disk_file.h"

#define KIND "segment"
#define SEGMENT_MAGIC 0x31474553u
#define FOOTER_MAGIC 0x31544f46u
#define SCAN_BYTES ((size_t)64 << 10)
#define SCAN_WASTED 4u /* times the size of a segment */

struct segment_header {
    uint32_t magic;
    uint32_t version;
    uint64_t id[2]; /* of the store */
    uint64_t number;
    uint64_t reserved[3];
    uint64_t sum; /* of what is before */
};

/* The last bytes of a segment that was ended; the list of its records is before them. */
struct segment_footer {
    uint32_t magic;
    uint32_t count;
    uint64_t records_end;
    uint64_t least; /* position of the records */
    uint64_t sum; /* of the list and of what is before */
};

_Static_assert(DISK_SEGMENT_MOST / DISK_UNIT <= DISK_OFFSETS, "offsets of the index");
_Static_assert(sizeof(struct segment_header) % DISK_UNIT == 0, "records begin at units");
_Static_assert(sizeof(struct disk_listed) == 24, "no padding on disk");

/* Records of another store, or from another segment, do not verify. */
static uint64_t
seed_of(const struct disk_identity *identity, uint64_t number)
{
    return hash64_uint(identity->id[0] ^ hash64_uint(identity->id[1] ^ number));
}

uint64_t
disk_log_segment_bytes(uint64_t max_bytes)
{
    const uint64_t bytes = max_bytes / 64 / DISK_UNIT * DISK_UNIT;

    if (bytes < DISK_SEGMENT_LEAST)
        return DISK_SEGMENT_LEAST;
    return bytes < DISK_SEGMENT_MOST ? bytes : DISK_SEGMENT_MOST;
}

bool
disk_log_init(struct disk_log *log, int folder, const struct disk_identity *identity,
              uint64_t max_bytes)
{
    *log = (struct disk_log){
        .folder = folder,
        .identity = *identity,
        .max_bytes = max_bytes,
        .segment_bytes = disk_log_segment_bytes(max_bytes),
        .most_segments = DISK_SEGMENTS,
    };
    TAILQ_INIT(&log->segments);
    log->by_id = calloc(DISK_SEGMENTS + 1, sizeof(*log->by_id));
    log->buffer = malloc(DISK_LOG_BUFFER);
    if (log->by_id && log->buffer)
        return true;
    disk_log_free(log);
    return false;
}

/* ---- segments -------------------------------------------------------------------------------- */

struct disk_segment *
disk_log_hold(struct disk_log *log, uint16_t id)
{
    struct disk_segment *segment = atomic_load_explicit(&log->by_id[id], memory_order_relaxed);

    atomic_fetch_add_explicit(&segment->holds, 1, memory_order_relaxed);
    return segment;
}

void
disk_segment_release(struct disk_segment *segment)
{
    _Atomic(struct disk_segment *) *released = &segment->log->released;

    if (atomic_fetch_sub_explicit(&segment->holds, 1, memory_order_acq_rel) != 1)
        return;
    segment->next_released = atomic_load_explicit(released, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(released, &segment->next_released, segment,
                                                  memory_order_release, memory_order_relaxed))
        ;
}

void
disk_log_close_released(struct disk_log *log)
{
    struct disk_segment *segment, *next;

    if (!atomic_load_explicit(&log->released, memory_order_relaxed))
        return;
    next = atomic_exchange_explicit(&log->released, NULL, memory_order_acquire);
    while ((segment = next)) {
        next = segment->next_released;
        log->unclosed -= segment->removed;
        close(segment->fd);
        if (segment->direct >= 0)
            close(segment->direct);
        free(segment);
    }
}

bool
disk_log_has_unclosed(const struct disk_log *log)
{
    return log->unclosed != 0;
}

static void
forget(struct disk_log *log, struct disk_segment *segment)
{
    TAILQ_REMOVE(&log->segments, segment, link);
    log->segment_count--;
    atomic_store_explicit(&log->by_id[segment->id], NULL, memory_order_relaxed);
    atomic_fetch_sub(&log->bytes, segment->size);
    segment->removed = true;
    log->unclosed++;
    disk_segment_release(segment);
    disk_log_close_released(log);
}

void
disk_log_free(struct disk_log *log)
{
    struct disk_segment *segment;

    while (log->by_id && (segment = TAILQ_FIRST(&log->segments)))
        forget(log, segment);
    disk_log_close_released(log);
    free(log->by_id);
    free(log->listed);
    free(log->buffer);
    *log = (struct disk_log){0};
}

/* The number of a free place; 0: there is none. */
static uint16_t
free_id(struct disk_log *log)
{
    for (unsigned tried = 0; tried < DISK_SEGMENTS; tried++) {
        log->last_id = log->last_id == DISK_SEGMENTS ? 1 : (uint16_t)(log->last_id + 1);
        if (!log->by_id[log->last_id])
            return log->last_id;
    }
    return 0;
}

/* Without a time of access, which a read would write; that is the owner's to leave out. */
static int
open_untimed(const struct disk_log *log, const char *name, int flags)
{
    int fd = disk_open(log->folder, name, flags | O_NOATIME);

    return fd < 0 && errno == EPERM ? disk_open(log->folder, name, flags) : fd;
}

/* Opens a file as a segment, which is in no list. */
static struct disk_segment *
open_segment(struct disk_log *log, uint64_t number, int flags)
{
    struct disk_segment *segment = calloc(1, sizeof(*segment));
    char name[DISK_NAME];

    if (!segment)
        return NULL;
    disk_name_write(name, KIND, number);
    errno = EMFILE;
    segment->id = free_id(log);
    segment->fd = segment->id ? open_untimed(log, name, flags) : -1;
    if (segment->fd < 0) {
        free(segment);
        return NULL;
    }
    segment->direct =
        log->direct ? open_untimed(log, name, O_RDONLY | O_DIRECT) : -1;
    segment->log = log;
    atomic_init(&segment->holds, 1);
    segment->number = number;
    segment->seed = seed_of(&log->identity, number);
    segment->least = UINT64_MAX;
    return segment;
}

static void
list_segment(struct disk_log *log, struct disk_segment *segment)
{
    struct disk_segment *next = TAILQ_FIRST(&log->segments);

    while (next && next->number < segment->number)
        next = TAILQ_NEXT(next, link);
    if (next)
        TAILQ_INSERT_BEFORE(next, segment, link);
    else
        TAILQ_INSERT_TAIL(&log->segments, segment, link);
    log->segment_count++;
    atomic_store_explicit(&log->by_id[segment->id], segment, memory_order_relaxed);
    atomic_fetch_add(&log->bytes, segment->size);
}

static void
make_header(const struct disk_log *log, uint64_t number, struct segment_header *header)
{
    *header = (struct segment_header){
        .magic = SEGMENT_MAGIC,
        .version = DISK_VERSION,
        .id = {log->identity.id[0], log->identity.id[1]},
        .number = number,
    };
    header->sum = disk_sum(0, header, offsetof(struct segment_header, sum));
}

/* 0, EINVAL if it is no segment of this store and number, ENODATA if it is empty, or another
 * errno. */
static int
check_header(struct disk_segment *segment)
{
    struct segment_header header, expected;
    struct stat st;
    ssize_t n;

    if (fstat(segment->fd, &st) != 0)
        return errno;
    n = disk_read(segment->fd, &header, sizeof(header), 0);
    if (n < 0)
        return errno;
    make_header(segment->log, segment->number, &expected);
    segment->size = (uint64_t)st.st_size;
    if (st.st_size == 0)
        return ENODATA;
    return n == (ssize_t)sizeof(header) && memcmp(&header, &expected, sizeof(header)) == 0
               ? 0
               : EINVAL;
}

struct disk_segment *
disk_log_adopt(struct disk_log *log, uint64_t number)
{
    struct disk_segment *segment =
        open_segment(log, number, log->only_reads ? O_RDONLY : O_RDWR);
    int error;

    if (!segment)
        return NULL;
    error = check_header(segment);
    if (error) {
        disk_segment_release(segment);
        disk_log_close_released(log);
        errno = error;
        return NULL;
    }
    list_segment(log, segment);
    return segment;
}

/* Where the records of an ended segment end, as far as its last bytes say; or the end of the
 * file. 0 with errno. */
static uint64_t
records_end(const struct disk_segment *segment)
{
    struct segment_footer footer;
    ssize_t n;

    if (segment->size < sizeof(struct segment_header) + sizeof(footer))
        return segment->size;
    n = disk_read(segment->fd, &footer, sizeof(footer), segment->size - sizeof(footer));
    if (n < 0)
        return 0;
    if (n == (ssize_t)sizeof(footer) && footer.magic == FOOTER_MAGIC &&
        footer.records_end ==
            segment->size - sizeof(footer) - footer.count * sizeof(struct disk_listed))
        return footer.records_end;
    return segment->size;
}

static uint64_t
footer_sum(const struct segment_footer *footer, const struct disk_listed *listed, uint64_t seed)
{
    return disk_sum(disk_sum(seed, footer, offsetof(struct segment_footer, sum)), listed,
                    footer->count * sizeof(*listed));
}

struct disk_listed *
disk_segment_footer(struct disk_segment *segment, size_t *count)
{
    struct segment_footer footer;
    struct disk_listed *listed;
    size_t len;

    if (segment->size < sizeof(struct segment_header) + sizeof(footer) ||
        disk_read(segment->fd, &footer, sizeof(footer), segment->size - sizeof(footer)) !=
            (ssize_t)sizeof(footer) ||
        footer.magic != FOOTER_MAGIC)
        return NULL;
    len = footer.count * sizeof(*listed);
    if (footer.records_end > segment->size - sizeof(footer) ||
        segment->size - sizeof(footer) - footer.records_end != len)
        return NULL;
    listed = malloc(len ? len : 1);
    if (!listed)
        return NULL;
    if (disk_read(segment->fd, listed, len, footer.records_end) != (ssize_t)len ||
        footer.sum != footer_sum(&footer, listed, segment->seed)) {
        free(listed);
        return NULL;
    }
    *count = footer.count;
    segment->least = footer.least;
    return listed;
}

/* A walk over the bytes of a segment, of which a piece is in memory. */
struct scan {
    struct disk_segment *segment;
    const struct disk_scan_stop *stop;
    char *bytes; /* SCAN_BYTES */
    uint64_t begin, len; /* of the piece */
    uint64_t end;        /* of the records */
    uint64_t wasted;     /* bytes that may be read of what is no head */
    bool damaged, stopped;
    int failed; /* errno of a read */
};

/* Reads the head of a record at this offset, with memory of its own if it is long. */
static bool
read_head(struct scan *scan, uint64_t offset, size_t head_len, const char *bytes, size_t len,
          struct disk_record *record)
{
    const struct disk_segment *segment = scan->segment;
    char *more = NULL;
    bool valid;

    if (head_len > len) {
        ssize_t n;

        more = malloc(head_len);
        n = more ? disk_read(segment->fd, more, head_len, offset) : -1;
        scan->failed = n < 0 ? errno : scan->failed;
        len = n < 0 ? 0 : (size_t)n;
        bytes = more;
    }
    valid = disk_head_read(bytes, len, segment->seed, record);
    free(more);
    return valid;
}

/*
 * Is there a record at this offset? Bodies have bytes that an origin has chosen, so what is read of
 * what looks like a head is bounded. A record that is longer than the file is the last one, and
 * behind it is nothing but its body.
 */
static bool
read_listed(struct scan *scan, uint64_t offset, const char *bytes, size_t len,
            struct disk_listed *listed)
{
    struct disk_segment *segment = scan->segment;
    struct disk_record record;
    struct disk_head head;

    if (len < sizeof(head))
        return false;
    memcpy(&head, bytes, sizeof(head));
    if (!disk_head_is_likely(&head) || head.head_len > segment->size - offset)
        return false;
    if (!read_head(scan, offset, head.head_len, bytes, len, &record)) {
        scan->wasted -= head.head_len < scan->wasted ? head.head_len : scan->wasted;
        if (scan->wasted == 0)
            scan->end = offset;
        return false;
    }
    if (disk_record_len(&record.head) > segment->size - offset) {
        scan->end = offset;
        return false;
    }
    if (segment->least > head.position)
        segment->least = head.position;
    *listed = (struct disk_listed){
        .url_hash = record.head.url_hash,
        .variant_hash = record.head.variant_hash,
        .offset = (uint32_t)(offset / DISK_UNIT),
        .length = (uint32_t)(disk_record_len(&record.head) / DISK_UNIT),
    };
    return true;
}

/* Has the piece a head at this offset, or the last bytes of the file? */
static bool
fetch(struct scan *scan, uint64_t at)
{
    ssize_t n;

    if (at >= scan->begin && at < scan->begin + scan->len &&
        (scan->begin + scan->len - at >= sizeof(struct disk_head) ||
         scan->begin + scan->len >= scan->end))
        return true;
    scan->stopped = scan->stop && scan->stop->is_to_stop(scan->stop->context);
    n = scan->stopped ? 0 : disk_read(scan->segment->fd, scan->bytes, SCAN_BYTES, at);
    scan->failed = n < 0 ? errno : scan->failed;
    scan->begin = at;
    scan->len = n > 0 ? (uint64_t)n : 0;
    return n > 0;
}

/* The next record at or behind *at; false at the end. */
static bool
scan_on(struct scan *scan, uint64_t *at, struct disk_listed *listed)
{
    for (; *at < scan->end && fetch(scan, *at); *at += DISK_UNIT) {
        const uint64_t i = *at - scan->begin;

        if (read_listed(scan, *at, scan->bytes + i, (size_t)(scan->len - i), listed))
            return true;
        scan->damaged = true;
    }
    return false;
}

struct disk_listed *
disk_segment_scan_all(struct disk_segment *segment, const struct disk_scan_stop *stop,
                      size_t *count, uint64_t *end, enum disk_scanned *how)
{
    struct scan scan = {.segment = segment,
                        .stop = stop,
                        .bytes = malloc(SCAN_BYTES),
                        .wasted = SCAN_WASTED * segment->size};
    uint64_t at = sizeof(struct segment_header);
    struct disk_listed *all = NULL, listed;
    size_t size = 0;

    *count = 0;
    *end = 0;
    errno = 0;
    scan.end = records_end(segment);
    scan.failed = scan.bytes ? scan.end ? 0 : errno : ENOMEM;
    while (!scan.failed && scan_on(&scan, &at, &listed)) {
        if (*count == size) {
            struct disk_listed *grown;

            size = size ? 2 * size : 256;
            grown = realloc(all, size * sizeof(*all));
            if (!grown) {
                scan.failed = ENOMEM;
                break;
            }
            all = grown;
        }
        all[(*count)++] = listed;
        *end = at += (uint64_t)listed.length * DISK_UNIT;
    }
    *how = scan.failed ? DISK_SCAN_FAILED : scan.damaged ? DISK_SCAN_DAMAGED : DISK_SCANNED;
    if (scan.failed)
        segment->least = 0;
    free(scan.bytes);
    if (scan.stopped) {
        free(all);
        all = NULL;
        *count = 0;
        *end = 0;
    }
    errno = scan.failed;
    return all;
}

size_t
disk_segment_count(const struct disk_log *log, uint64_t number)
{
    struct segment_footer footer = {.count = 0};
    const uint64_t size = disk_size(log->folder, KIND, number);
    char name[DISK_NAME];
    int fd;

    if (size < sizeof(footer))
        return 0;
    disk_name_write(name, KIND, number);
    fd = disk_open(log->folder, name, O_RDONLY);
    if (fd < 0 ||
        disk_read(fd, &footer, sizeof(footer), size - sizeof(footer)) != (ssize_t)sizeof(footer) ||
        footer.magic != FOOTER_MAGIC || footer.count > size / sizeof(struct disk_listed))
        footer.count = 0;
    if (fd >= 0)
        close(fd);
    return footer.count;
}

/* False: the file is there still. */
static bool
unlink_file(struct disk_log *log, uint64_t number)
{
    const bool removed = disk_unlink(log->folder, KIND, number) || errno == ENOENT;

    log->left = log->left || !removed;
    log->names_unsynced = log->names_unsynced || removed;
    return removed;
}

void
disk_log_unlink(struct disk_log *log, uint64_t number)
{
    if (!unlink_file(log, number))
        disk_log_leave(log, number);
}

void
disk_log_leave(struct disk_log *log, uint64_t number)
{
    const uint64_t size = disk_size(log->folder, KIND, number);

    log->left = true;
    log->left_bytes += size;
    atomic_fetch_add(&log->bytes, size);
}

struct left {
    struct disk_log *log;
    bool some, removed; /* files that are there still, and a file that is not */
};

static void
remove_left(void *context, uint64_t number)
{
    struct left *left = context;
    struct disk_log *log = left->log;
    const struct disk_segment *segment;
    uint64_t size;

    TAILQ_FOREACH(segment, &log->segments, link)
    {
        if (segment->number == number)
            return;
    }
    size = disk_size(log->folder, KIND, number);
    if (size > log->left_bytes)
        size = log->left_bytes;
    if (unlink_file(log, number)) {
        left->removed = true;
        log->left_bytes -= size;
        atomic_fetch_sub(&log->bytes, size);
    } else {
        left->some = true;
    }
}

bool
disk_log_remove_left(struct disk_log *log)
{
    struct left left = {log, false, false};

    if (log->left && disk_list(log->folder, KIND, remove_left, &left) == 0)
        log->left = left.some;
    return left.removed;
}

int
disk_log_sync_names(struct disk_log *log)
{
    while (log->names_unsynced) {
        if (fsync(log->folder) == 0)
            log->names_unsynced = false;
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}

void
disk_log_remove(struct disk_log *log, struct disk_segment *segment)
{
    if (segment == log->head)
        disk_log_abandon(log);
    (void)unlink_file(log, segment->number);
    forget(log, segment);
}

uint64_t
disk_log_least(const struct disk_log *log)
{
    const struct disk_segment *segment;
    uint64_t least = log->left || log->names_unsynced ? 0 : UINT64_MAX;

    TAILQ_FOREACH(segment, &log->segments, link)
    {
        if (segment->least < least)
            least = segment->least;
    }
    return least;
}

/* ---- appending ------------------------------------------------------------------------------- */

static uint64_t
footer_bytes(size_t count)
{
    return count * sizeof(struct disk_listed) + sizeof(struct segment_footer);
}

uint64_t
disk_log_largest(const struct disk_log *log)
{
    return log->segment_bytes - sizeof(struct segment_header) - footer_bytes(1);
}

bool
disk_log_has_space(const struct disk_log *log, uint64_t length)
{
    return log->head &&
           log->head->size + length + footer_bytes(log->listed_count + 1) <= log->segment_bytes;
}

static int
append(struct disk_log *log, const void *bytes, size_t len)
{
    const char *at = bytes;
    int error = 0;

    while (len && !error) {
        size_t part = DISK_LOG_BUFFER - log->buffered;

        if (part > len)
            part = len;
        memcpy(log->buffer + log->buffered, at, part);
        log->buffered += part;
        log->head->size += part;
        atomic_fetch_add(&log->bytes, part);
        at += part;
        len -= part;
        if (log->buffered == DISK_LOG_BUFFER)
            error = disk_log_flush(log);
    }
    return error;
}

int
disk_log_begin(struct disk_log *log, uint64_t number)
{
    struct segment_header header;
    struct disk_segment *segment;
    int error = log->head ? disk_log_end(log) : 0;

    if (error)
        return error;
    segment = open_segment(log, number, O_RDWR | O_CREAT | O_EXCL);
    if (!segment)
        return errno ? errno : EMFILE;
    list_segment(log, segment);
    log->names_unsynced = true; /* its own */
    error = disk_log_sync_names(log);
    if (error)
        return error;
    log->head = segment;
    log->buffered = 0;
    log->listed_count = 0;
    make_header(log, number, &header);
    return append(log, &header, sizeof(header));
}

void
disk_log_list(struct disk_log *log, const struct disk_key *key, uint64_t position,
              uint64_t length, struct disk_place *place)
{
    const uint64_t units = length / DISK_UNIT;

    *place = (struct disk_place){
        .segment = log->head->id,
        .offset = (uint32_t)(log->head->size / DISK_UNIT),
        .length = length < UINT32_MAX ? (uint32_t)length : UINT32_MAX,
    };
    if (log->head->least > position)
        log->head->least = position;
    if (log->listed_count == log->listed_size) {
        size_t size = log->listed_size ? 2 * log->listed_size : 1024;
        struct disk_listed *grown = realloc(log->listed, size * sizeof(*grown));

        if (!grown)
            return; /* it is not found after a restart */
        log->listed = grown;
        log->listed_size = size;
    }
    log->listed[log->listed_count++] = (struct disk_listed){
        .url_hash = key->url,
        .variant_hash = key->variant,
        .offset = place->offset,
        .length = units < UINT32_MAX ? (uint32_t)units : UINT32_MAX,
    };
}

bool
disk_log_resume(struct disk_log *log, struct disk_segment *segment, struct disk_listed *listed,
                size_t count)
{
    const uint64_t footer = footer_bytes(count);

    if (log->head || segment->size > log->segment_bytes / 4 * 3 || segment->size < footer ||
        ftruncate(segment->fd, (off_t)(segment->size - footer)) != 0)
        return false;
    segment->size -= footer;
    atomic_fetch_sub(&log->bytes, footer);
    log->head = segment;
    free(log->listed);
    log->listed = listed;
    log->listed_count = log->listed_size = count;
    return true;
}

int
disk_log_append(struct disk_log *log, const void *bytes, size_t len)
{
    return append(log, bytes, len);
}

int
disk_log_flush(struct disk_log *log)
{
    int error;

    if (!log->head || !log->buffered)
        return 0;
    error = disk_write(log->head->fd, log->buffer, log->buffered, log->head->size - log->buffered);
    if (error)
        return error;
    atomic_fetch_add(&log->written, log->buffered);
    log->unsynced += log->buffered;
    log->buffered = 0;
    return 0;
}

int
disk_log_sync(struct disk_log *log)
{
    if (!log->head || !log->unsynced)
        return 0;
    while (fdatasync(log->head->fd) != 0)
        if (errno != EINTR)
            return errno;
    log->unsynced = 0;
    return 0;
}

static struct segment_footer
make_footer(const struct disk_segment *segment, const struct disk_listed *listed, size_t count,
            uint64_t records_end)
{
    struct segment_footer footer = {
        .magic = FOOTER_MAGIC,
        .count = (uint32_t)count,
        .records_end = records_end,
        .least = segment->least,
    };

    footer.sum = footer_sum(&footer, listed, segment->seed);
    return footer;
}

int
disk_log_seal(struct disk_log *log, struct disk_segment *segment, const struct disk_listed *listed,
              size_t count, uint64_t records_end)
{
    const struct segment_footer footer = make_footer(segment, listed, count, records_end);
    const uint64_t size = records_end + footer_bytes(count);
    int error = disk_write(segment->fd, listed, count * sizeof(*listed), records_end);

    if (!error)
        error = disk_write(segment->fd, &footer, sizeof(footer), size - sizeof(footer));
    if (!error && ftruncate(segment->fd, (off_t)size) != 0)
        error = errno;
    if (error)
        return error;
    atomic_fetch_add(&log->bytes, size - segment->size);
    segment->size = size;
    return 0;
}

int
disk_log_end(struct disk_log *log)
{
    struct segment_footer footer;
    int error;

    if (!log->head)
        return 0;
    footer = make_footer(log->head, log->listed, log->listed_count, log->head->size);
    error = append(log, log->listed, log->listed_count * sizeof(*log->listed));
    if (!error)
        error = append(log, &footer, sizeof(footer));
    if (!error)
        error = disk_log_flush(log);
    if (!error)
        error = disk_log_sync(log);
    disk_log_abandon(log);
    return error;
}

void
disk_log_abandon(struct disk_log *log)
{
    if (log->head && log->buffered) {
        log->head->size -= log->buffered;
        atomic_fetch_sub(&log->bytes, log->buffered);
    }
    log->head = NULL;
    log->buffered = 0;
    log->unsynced = 0;
    log->listed_count = 0;
}
