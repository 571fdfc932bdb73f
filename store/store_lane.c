#include "store/store_lane.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "store/disk_fill.h"
#include "store/disk_ring.h"
#include "store/record_fill.h"
#include "store/store_fill.h"

#define ALIGNMENT ((uint64_t)4096) /* of reads past the kernel's memory */
/* Longer records are always read past the kernel's memory, and into memory that the object takes:
 * copying 1 MiB out of the kernel's takes more CPU than reading it. */
#define SHORT ((size_t)72 << 10)
#define LONG (DISK_FILL_FIRST + 2 * ALIGNMENT)
#define END_MS 10 /* between two looks at reads that are to end */
#define MOST_KEPT 16u
#define CACHED_IN_SUCCESSION 16u /* after which the next one is taken for cached, too */
#define MOST_BYTES ((size_t)16 << 20)  /* of a lane's reads */
#define MOST_OF_ALL ((size_t)64 << 20) /* of those of all lanes, or two long ones for each */
#define KEPT_FREE ((ptrdiff_t)16 << 20) /* of the arena, for long reads */

struct store_lane {
    struct disk_ring *ring;            /* not owned; NULL: none */
    TAILQ_HEAD(fills_active, store_fill) active; /* that the ring reads, the oldest first */
    size_t bytes, most_bytes;          /* of memory for reads */
    unsigned kept_count;
    char *kept[MOST_KEPT]; /* memory of short reads, for later ones */
    char *at_once;                     /* for what is read at once */
    int64_t turned_us;                 /* the last turn's end */
    bool was_away;                     /* before that */
    bool slow;                         /* its first read takes long (disk_fill_note_slow()) */
    unsigned cached; /* reads in succession that the kernel had in memory, up to the last one */
};

struct store_lane *
disk_lane_of(const struct store *store, unsigned number)
{
    return &store->lanes[number];
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Memory for the `size` bytes of the fill. False: there is none, or it is beyond the bound. */
static bool
take_memory(struct store_lane *lane, struct store_fill *fill)
{
    const size_t size = fill->size <= SHORT ? SHORT : fill->size;
    void *bytes;

    if (size == SHORT && lane->kept_count) {
        fill->bytes = lane->kept[--lane->kept_count];
        return true;
    }
    if (lane->bytes + size > lane->most_bytes)
        return false;
    if (size > SHORT) {
        fill->memory = segment_make(size, ALIGNMENT, &fill->bytes);
        if (!fill->memory)
            return false;
    } else {
        if (posix_memalign(&bytes, ALIGNMENT, size) != 0)
            return false;
        fill->bytes = bytes;
    }
    lane->bytes += size;
    return true;
}

/* What take_memory() has taken for a fill of this size. The segment of a long one stays the
 * fill's. */
static void
return_memory(struct store_lane *lane, size_t size, char *bytes)
{
    if (size > SHORT) {
        lane->bytes -= size;
    } else if (lane->kept_count < MOST_KEPT) {
        lane->kept[lane->kept_count++] = bytes;
    } else {
        lane->bytes -= SHORT;
        free(bytes);
    }
}

/* The bound on the memory for reads of a lane, one of `lanes`. */
static size_t
most_bytes(unsigned lanes)
{
    const size_t share = MOST_OF_ALL / lanes;

    if (share > MOST_BYTES)
        return MOST_BYTES;
    return share > 2 * LONG ? share : 2 * LONG;
}

/* ---- reading at once ------------------------------------------------------------------------- */

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

/* Of cachestat(2), which the C library does not declare. */
struct cached_range {
    uint64_t offset, len;
};

struct cached_pages {
    uint64_t there, dirty, writeback, evicted, recently_evicted;
};

enum cached { CACHED, NOT_CACHED, NOT_KNOWN };

/*
 * Has the kernel this in memory? An attempt to read it at once would tell, but begins to read it if
 * not, as Linux does since 5.9: it would then be read twice. The last record of a file counts as
 * not there where the index takes it for longer than the file.
 */
static enum cached
is_cached(int fd, uint64_t offset, size_t len)
{
    struct cached_range range = {offset / ALIGNMENT * ALIGNMENT, 0};
    struct cached_pages pages;

    range.len = (offset + len + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT - range.offset;
    if (syscall(SYS_cachestat, fd, &range, &pages, 0) != 0)
        return NOT_KNOWN;
    return pages.there * ALIGNMENT >= range.len ? CACHED : NOT_CACHED;
}

bool
disk_lane_read_at_once(struct store_lane *lane, struct store_fill *fill)
{
    const uint64_t offset = (uint64_t)fill->place.offset * DISK_UNIT;
    struct iovec piece = {lane->at_once, fill->place.length};
    enum cached cached = NOT_KNOWN;
    ssize_t n;

    fill->direct = fill->segment->direct >= 0 && lane->ring;
    if (fill->place.length > SHORT || fill->store->config.reads_later)
        return false;
    if (fill->direct && lane->cached < CACHED_IN_SUCCESSION)
        cached = is_cached(fill->segment->fd, offset, fill->place.length);
    if (cached == NOT_CACHED) {
        lane->cached = 0;
        return false;
    }
    n = preadv2(fill->segment->fd, &piece, 1, (off_t)offset, RWF_NOWAIT);
    if (n < 0 || !disk_fill_is_whole(lane->at_once, (size_t)n)) {
        /* It is being read into that memory. */
        fill->direct = false;
        lane->cached = 0;
        return false;
    }
    lane->cached++;
    store_add(fill->store, STORE_READ_AT_ONCE, 1);
    memory_set_relief(false);
    disk_fill_use(fill, lane->at_once, (size_t)n);
    memory_set_relief(true);
    return true;
}

/* ---- the ring -------------------------------------------------------------------------------- */

bool
disk_lane_read(struct store_lane *lane, struct store_fill *fill)
{
    uint64_t begin = (uint64_t)fill->place.offset * DISK_UNIT;
    uint64_t end = begin + fill->place.length;
    const struct disk_segment *segment = fill->segment;

    if (!lane->ring || fill->place.length > DISK_FILL_FIRST)
        return false;
    if (fill->direct) {
        begin = begin / ALIGNMENT * ALIGNMENT;
        end = (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    fill->size = (size_t)(end - begin);
    if (!take_memory(lane, fill))
        return false;
    if (!disk_ring_read(lane->ring, fill->direct ? segment->direct : segment->fd, fill->bytes,
                        fill->size, begin, fill)) {
        return_memory(lane, fill->size, fill->bytes);
        return false;
    }
    fill->started_us = 0; /* not yet */
    fill->stage = FILL_READS;
    TAILQ_INSERT_TAIL(&lane->active, fill, active);
    return true;
}

/*
 * What is not there as a whole is read by a thread: a record that is damaged, or longer than the
 * index says; and what cannot be read past the kernel's memory.
 */
static void
end_read(struct store_fill *fill, const char *bytes, ssize_t n)
{
    struct store *store = fill->store;

    if (store_stage(store) == STORE_LEFT) {
        disk_fill_send_back(fill);
    } else if (n < 0 && !fill->direct) {
        disk_fill_tell(fill, STORE_READ_ERRORS, "cannot be read");
        disk_fill_note_read(store, true);
        disk_fill_send_back(fill);
    } else if (n >= 0 && disk_fill_is_whole(bytes, (size_t)n)) {
        store_add(store, STORE_READ_BY_RING, 1);
        disk_fill_note_read(store, false);
        disk_fill_use(fill, bytes, (size_t)n);
    } else if (!disk_fill_enqueue(fill)) {
        disk_fill_send_back(fill);
    }
}

/* What the ring has read of it, or minus an errno. */
static void
take_read(struct store_lane *lane, struct store_fill *fill, ssize_t n)
{
    const size_t before =
        fill->direct ? (size_t)((uint64_t)fill->place.offset * DISK_UNIT % ALIGNMENT) : 0;
    const size_t size = fill->size;
    char *bytes = fill->bytes;

    if (fill->stage == FILL_IS_LATE) {
        disk_fill_free(fill);
    } else {
        TAILQ_REMOVE(&lane->active, fill, active);
        end_read(fill, bytes + before, n < 0 ? n : (size_t)n > before ? n - (ssize_t)before : 0);
    }
    return_memory(lane, size, bytes);
}

static void
end_reads(struct store_lane *lane)
{
    void *context;
    ssize_t n;

    memory_set_relief(false);
    while (disk_ring_take(lane->ring, &context, &n))
        take_read(lane, context, n);
    memory_set_relief(true);
}

/* Begins what was asked for, and what it takes counts from now on. What cannot be begun is for a
 * thread to read. */
static void
begin_reads(struct store *store, struct store_lane *lane)
{
    struct store_fill *fill;
    void *context;
    int64_t now_us;

    if (disk_ring_begin(lane->ring) != 0) {
        memory_set_relief(false);
        while (disk_ring_take_back(lane->ring, &context))
            take_read(lane, context, 0);
        memory_set_relief(true);
    }
    now_us = store_now_us(store);
    TAILQ_FOREACH_REVERSE(fill, &lane->active, fills_active, active)
    {
        if (fill->started_us)
            break;
        fill->started_us = now_us;
    }
}

/*
 * Their memory is the ring's until they end. A thread that was away for so long may not have been
 * told yet of what has ended, so it gives up nothing in that turn.
 */
static void
give_up_late(struct store *store, struct store_lane *lane)
{
    const int64_t now_us = store_now_us(store);
    struct store_fill *fill;

    lane->was_away = !lane->was_away && now_us - lane->turned_us >= store->config.late_us / 2;
    lane->turned_us = now_us;
    while ((fill = TAILQ_FIRST(&lane->active)) && !lane->was_away &&
           disk_fill_is_late(store, fill->started_us, now_us)) {
        TAILQ_REMOVE(&lane->active, fill, active);
        fill->stage = FILL_IS_LATE;
        disk_fill_note_late(store);
        record_fill_send_back(&fill->base);
    }
    if (!fill || !lane->was_away)
        disk_fill_note_slow(store, fill ? fill->started_us : INT64_MAX, now_us, &lane->slow);
}

int
store_lane_fd(const struct store *store, unsigned number)
{
    return store->lanes[number].ring ? disk_ring_fd(store->lanes[number].ring) : -1;
}

bool
store_lane_turn(struct store *store, unsigned number)
{
    struct store_lane *lane = &store->lanes[number];

    if (!lane->ring || !disk_ring_under_way(lane->ring))
        return false;
    begin_reads(store, lane);
    end_reads(lane);
    give_up_late(store, lane);
    return disk_ring_under_way(lane->ring) > 0;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

bool
disk_lanes_make(struct store *store)
{
    const unsigned count = store->config.lanes ? store->config.lanes : 1;

    store->config.lanes = count;
    store->lanes = calloc(count, sizeof(*store->lanes));
    if (!store->lanes)
        return false;
    arena_keep(KEPT_FREE);
    for (unsigned i = 0; i < count; i++) {
        struct store_lane *lane = &store->lanes[i];

        TAILQ_INIT(&lane->active);
        lane->ring = store->config.rings ? store->config.rings[i] : NULL;
        lane->most_bytes = most_bytes(count);
        lane->at_once = malloc(SHORT);
        if (!lane->at_once)
            return false;
    }
    return true;
}

/* A read that could not be begun is tried again after END_MS. */
static bool
end_lane(struct store *store, struct store_lane *lane, int64_t until_us)
{
    while (lane->ring && disk_ring_under_way(lane->ring)) {
        struct pollfd fd = {.fd = disk_ring_fd(lane->ring), .events = POLLIN};

        begin_reads(store, lane);
        end_reads(lane);
        if (!disk_ring_under_way(lane->ring))
            break;
        if (clock_monotonic_us() >= until_us)
            return false;
        (void)poll(&fd, 1, END_MS);
    }
    return true;
}

bool
disk_lanes_end(struct store *store, int64_t until_us)
{
    bool ended = true;

    for (unsigned i = 0; store->lanes && i < store->config.lanes; i++)
        ended = end_lane(store, &store->lanes[i], until_us) && ended;
    return ended;
}

static void
free_lane(struct store_lane *lane)
{
    while (lane->kept_count)
        free(lane->kept[--lane->kept_count]);
    free(lane->at_once);
}

void
disk_lanes_free(struct store *store)
{
    (void)disk_lanes_end(store, STORE_FOREVER);
    for (unsigned i = 0; store->lanes && i < store->config.lanes; i++)
        free_lane(&store->lanes[i]);
    if (store->lanes)
        arena_keep(-KEPT_FREE);
    free(store->lanes);
    store->lanes = NULL;
}
