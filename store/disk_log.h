/*
 * The log of a store: segments, files of records (disk_record.h) one behind the other. Records are
 * appended to the newest segment. One that is full gets a footer, which says what it has, and
 * another one is begun. The oldest are removed, so that all files together stay within a bound.
 *
 * The functions are for one thread, the writer's, but for the holding of segments.
 */
#ifndef SUNPROXY_STORE_DISK_LOG_H
#define SUNPROXY_STORE_DISK_LOG_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "store/disk_index.h"
#include "store/disk_journal.h"

#define DISK_SEGMENT_LEAST ((uint64_t)256 << 10)
#define DISK_SEGMENT_MOST ((uint64_t)256 << 20)
#define DISK_LOG_BUFFER ((size_t)1 << 20)

/* A record in a footer. */
struct disk_listed {
    uint64_t url_hash;
    uint32_t variant_hash;
    uint32_t offset; /* in units */
    uint32_t length; /* in units */
    uint32_t flags;  /* 0 */
};

struct disk_segment {
    TAILQ_ENTRY(disk_segment) link;
    uint16_t id;
    int fd;
    int direct; /* the same file, to be read past the kernel's memory; -1: it cannot be */
    struct disk_log *log;
    struct disk_segment *next_released;
    bool removed;           /* from the log */
    _Atomic unsigned holds; /* the log's, and those of readers */
    uint64_t number;        /* of the file: ascending */
    uint64_t seed;          /* of its checksums */
    uint64_t size;          /* bytes of the file */
    uint64_t least;         /* the earliest position of its records */
};

TAILQ_HEAD(disk_segments, disk_segment);

struct disk_log {
    int folder; /* not owned */
    bool direct; /* segments are opened for reads past the kernel's memory, too */
    bool only_reads; /* segments of before are not to be written */
    struct disk_identity identity;
    uint64_t max_bytes;     /* of all files */
    uint64_t segment_bytes; /* of one */
    _Atomic uint64_t bytes; /* of all, buffered ones included */
    _Atomic uint64_t written; /* since the start */
    bool left;              /* there are files that are no segments of the log: they could not be
                               opened, or not be removed */
    uint64_t left_bytes;    /* of those, as far as they count */
    bool names_unsynced;    /* files were removed since the folder was synced */
    struct disk_segments segments; /* the oldest first; the last one is appended to if `listed` is
                                      open */
    unsigned segment_count, most_segments; /* the latter is at most DISK_SEGMENTS */
    _Atomic(struct disk_segment *) *by_id; /* DISK_SEGMENTS + 1 */
    uint16_t last_id;
    _Atomic(struct disk_segment *) released; /* held by no one, to be closed */
    unsigned unclosed; /* removed segments that are held, or to be closed */

    struct disk_segment *head; /* NULL: none is open */
    struct disk_listed *listed; /* its footer, growing */
    size_t listed_count, listed_size;
    char *buffer; /* of its bytes behind those that are written */
    size_t buffered;
    uint64_t unsynced; /* bytes written to it since it was synced */
};

/* Bytes of a segment in a log of this size. */
uint64_t disk_log_segment_bytes(uint64_t max_bytes);

/* An empty log. False without memory. */
bool disk_log_init(struct disk_log *log, int folder, const struct disk_identity *identity,
                   uint64_t max_bytes);

/* Closes all files; nothing is written. */
void disk_log_free(struct disk_log *log);

/* ---- segments -------------------------------------------------------------------------------- */

/* Holds a segment that the index leads to, under the lock of that. Releasing it closes nothing,
 * since the close of a removed file takes as long as its disk does. [any thread] */
struct disk_segment *disk_log_hold(struct disk_log *log, uint16_t id);
void disk_segment_release(struct disk_segment *segment);

/* Closes the removed segments that have been released. */
void disk_log_close_released(struct disk_log *log);

/* Is a removed segment open still? */
bool disk_log_has_unclosed(const struct disk_log *log);

/*
 * Opens the segment of this number that a process before has written, and adds it before those that
 * there are with higher numbers. NULL if it is none of this store's, with errno EINVAL, or is
 * empty, as a process leaves it that is killed when it begins one, with ENODATA, or cannot be
 * opened or read, with another errno.
 */
struct disk_segment *disk_log_adopt(struct disk_log *log, uint64_t number);

/* The footer of a segment, allocated; NULL if it has no undamaged one. Sets the segment's earliest
 * position. */
struct disk_listed *disk_segment_footer(struct disk_segment *segment, size_t *count);

struct disk_scan_stop {
    bool (*is_to_stop)(void *context);
    void *context;
};

enum disk_scanned {
    DISK_SCANNED,
    DISK_SCAN_DAMAGED, /* bytes that are no record were passed over */
    DISK_SCAN_FAILED   /* not all could be read, with errno: there may be more records */
};

/*
 * All records by their heads, allocated, in the order of the file, or NULL without any; *end is
 * where the last one ends. The segment's earliest position follows, which is 0 after a failure.
 * `stop`, which may be NULL, is asked between two reads: NULL then as well.
 *
 * It takes time in proportion to the segment's size, whatever is in it: beyond that many bytes that
 * are no head, though they look like one, the rest is dropped.
 */
struct disk_listed *disk_segment_scan_all(struct disk_segment *segment,
                                          const struct disk_scan_stop *stop, size_t *count,
                                          uint64_t *end, enum disk_scanned *how);

/* How many records the file of this number has, as far as its last bytes say. */
size_t disk_segment_count(const struct disk_log *log, uint64_t number);

/* Gives a segment whose writer has not ended it a footer with these records. 0 or an errno. */
int disk_log_seal(struct disk_log *log, struct disk_segment *segment,
                  const struct disk_listed *listed, size_t count, uint64_t records_end);

/*
 * Goes on with the newest segment, which was ended with these records: its footer is cut off, and
 * the list, which is allocated, is the log's. False if it is nearly full, or that fails.
 */
bool disk_log_resume(struct disk_log *log, struct disk_segment *segment,
                     struct disk_listed *listed, size_t count);

/* Removes the file, and the segment from the log. Nothing in the index leads there. */
void disk_log_remove(struct disk_log *log, struct disk_segment *segment);

/* Removes a file of this number, which is no segment of the log. One that cannot be removed counts
 * for the size and for disk_log_least(), since a later start may find it. */
void disk_log_unlink(struct disk_log *log, uint64_t number);

/* Leaves such a file: it counts for both until it is removed. */
void disk_log_leave(struct disk_log *log, uint64_t number);

/* Removes the files that were left, as far as that can be. False: none was removed. */
bool disk_log_remove_left(struct disk_log *log);

/* Waits until the removal of files is on disk: until then they may be there again after a power
 * failure. 0 or an errno. */
int disk_log_sync_names(struct disk_log *log);

/* ---- appending ------------------------------------------------------------------------------- */

/* The largest record that a segment takes. */
uint64_t disk_log_largest(const struct disk_log *log);

/* Has the open segment space for a record of this length? */
bool disk_log_has_space(const struct disk_log *log, uint64_t length);

/* Begins a segment, whose number is `number`; the one before is closed. 0 or an errno. */
int disk_log_begin(struct disk_log *log, uint64_t number);

/* Where the next record begins, which has this position, and is listed in the footer; its bytes
 * follow. */
void disk_log_list(struct disk_log *log, const struct disk_key *key, uint64_t position,
                   uint64_t length, struct disk_place *place);

/* The earliest position of all records, those of removed files included until their removal is on
 * disk; 0: not known. */
uint64_t disk_log_least(const struct disk_log *log);

/* Appends bytes, as much as was listed. 0 or an errno, after which the segment is abandoned. */
int disk_log_append(struct disk_log *log, const void *bytes, size_t len);

/* Writes what is buffered. */
int disk_log_flush(struct disk_log *log);

/* Waits until what was written is on disk. */
int disk_log_sync(struct disk_log *log);

/* Writes the footer of the open segment, and closes it for appending. */
int disk_log_end(struct disk_log *log);

/* Gives up the open segment, after an error: what it has is as it is. */
void disk_log_abandon(struct disk_log *log);

#endif
