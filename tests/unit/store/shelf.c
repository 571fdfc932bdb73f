#include "tests/unit/store/shelf.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "store/disk_journal.h"
#include "store/disk_ring.h"
#include "store/store_lane.h"
#include "tests/unit/cache/purge.h"

struct shelf shelf;

/* ---- files ----------------------------------------------------------------------------------- */

static void
each_file(void (*visit)(const char *path, void *context), void *context)
{
    DIR *dir = opendir(shelf.folder);
    struct dirent *entry;

    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir))) {
        char path[400];

        snprintf(path, sizeof(path), "%s/%s", shelf.folder, entry->d_name);
        if (entry->d_name[0] != '.')
            visit(path, context);
    }
    closedir(dir);
}

struct search {
    char kind[64], path[400];
    unsigned count;
};

static void
search(const char *path, void *context)
{
    struct search *s = context;

    if (!strstr(path, s->kind))
        return;
    s->count++;
    if (strcmp(path, s->path) > 0)
        snprintf(s->path, sizeof(s->path), "%s", path);
}

static struct search found;

const char *
shelf_file(const char *kind)
{
    found = (struct search){.count = 0};
    snprintf(found.kind, sizeof(found.kind), "/%s-", kind);
    each_file(search, &found);
    ck_assert_uint_gt(found.count, 0);
    return found.path;
}

unsigned
shelf_files(const char *kind)
{
    found = (struct search){.count = 0};
    snprintf(found.kind, sizeof(found.kind), "/%s-", kind);
    each_file(search, &found);
    return found.count;
}

uint64_t
shelf_size(const char *path)
{
    struct stat st;

    ck_assert_int_eq(stat(path, &st), 0);
    return (uint64_t)st.st_size;
}

void
shelf_flip(const char *path, uint64_t offset)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    char byte;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pread(fd, &byte, 1, (off_t)offset), 1);
    byte = (char)(byte ^ 4);
    ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)offset), 1);
    close(fd);
}

void
shelf_cut(const char *path, uint64_t size)
{
    ck_assert_int_eq(truncate(path, (off_t)size), 0);
}

void
shelf_clear(const char *path, uint64_t offset, size_t len)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    const char zero = 0;

    ck_assert_int_ge(fd, 0);
    for (size_t i = 0; i < len; i++)
        ck_assert_int_eq(pwrite(fd, &zero, 1, (off_t)(offset + i)), 1);
    close(fd);
}

static void
add_size(const char *path, void *context)
{
    struct stat st;

    if (stat(path, &st) == 0) /* it may be gone by now */
        *(uint64_t *)context += (uint64_t)st.st_size;
}

uint64_t
shelf_bytes(void)
{
    uint64_t bytes = 0;

    each_file(add_size, &bytes);
    return bytes;
}

uint64_t
shelf_marks_end(const char *path)
{
    const size_t size = (size_t)shelf_size(path), one = JOURNAL_MARK_BYTES / 2;
    char *bytes = malloc(size);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint64_t end = 0;

    ck_assert_ptr_nonnull(bytes);
    ck_assert_int_eq(pread(fd, bytes, size, 0), (ssize_t)size);
    close(fd);
    for (size_t at = 0; at + one <= size; at += 8)
        if (memcmp(bytes + at, "MRK1", 4) == 0)
            end = at + one;
    free(bytes);
    ck_assert_uint_gt(end, 0);
    return end;
}

static void
remove_file(const char *path, void *context)
{
    (void)context;
    unlink(path);
}

/* ---- the store ------------------------------------------------------------------------------- */

static int64_t
monotonic_us(void *context)
{
    (void)context;
    return atomic_fetch_add(&shelf.now_us, shelf.tick_us);
}

static int64_t
wall_us(void *context)
{
    (void)context;
    return shelf.wall_us;
}

static pthread_mutex_t saying = PTHREAD_MUTEX_INITIALIZER; /* any thread of the store does */

static void
say(void *context, enum store_severity severity, const char *sentence)
{
    (void)context;
    (void)severity;
    pthread_mutex_lock(&saying);
    snprintf(shelf.said, sizeof(shelf.said), "%s", sentence);
    pthread_mutex_unlock(&saying);
}

void
shelf_begin(void)
{
    const char *base = getenv("TMPDIR");

    shelf = (struct shelf){.now_us = 1000 * SHELF_SECOND,
                           .wall_us = 1780000000 * SHELF_SECOND,
                           .retry_us = 1000};
    snprintf(shelf.folder, sizeof(shelf.folder), "%s/shelf-XXXXXX", base ? base : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(shelf.folder));
}

void
shelf_end(void)
{
    if (shelf.store)
        shelf_close();
    disk_ring_free(shelf.ring);
    each_file(remove_file, NULL);
    ck_assert_int_eq(rmdir(shelf.folder), 0);
}

struct store_config
shelf_config(void)
{
    static struct disk_ring *rings[SHELF_LANES];

    rings[0] = shelf.ring;
    return (struct store_config){
        .folder = shelf.folder,
        .max_bytes = shelf.max_bytes ? shelf.max_bytes : STORE_LEAST,
        .write_all = shelf.write_all,
        .terms = shelf.terms,
        .waits_us = shelf.waits_us,
        .opens_us = shelf.opens_us,
        .reads_later = shelf.reads_later,
        .retry_us = shelf.retry_us,
        .readers = 2,
        .lanes = shelf.lanes ? shelf.lanes : 1,
        .rings = shelf.ring ? rings : NULL,
        .sync_us = 1000,
        .cache = shelf.cache,
        .failure = SHELF_FAILURE,
        .clock = {monotonic_us, wall_us, NULL, shelf.boot},
        .log = say,
    };
}

bool
shelf_take_ring(void)
{
    shelf.ring = disk_ring_make(16);
    return shelf.ring != NULL;
}

void
shelf_make_cache(void)
{
    struct policy_spec policy;
    enum cache_error error;
    char why[200];

    ck_assert(policy_parse("lru", &policy, why, sizeof(why)));
    shelf.cache = cache_create(
        &(struct cache_config){.policy = policy, .capacity_pages = 100000, .shards = 1}, &error);
    ck_assert_ptr_nonnull(shelf.cache);
}

bool
shelf_open(void)
{
    struct store_config config;
    struct buf text;

    shelf_make_cache();
    config = shelf_config();
    buf_init(&text, 1000);
    shelf.store = store_open(&config, &text);
    if (!shelf.store) {
        snprintf(shelf.said, sizeof(shelf.said), "%s", buf_str(&text));
        cache_destroy(shelf.cache);
        shelf.cache = NULL;
    } else if (!shelf.waits_us && !shelf.opens_us) {
        store_settle(shelf.store);
    }
    buf_free(&text);
    return shelf.store != NULL;
}

void
shelf_close(void)
{
    store_close(shelf.store);
    cache_destroy(shelf.cache);
    shelf.store = NULL;
    shelf.cache = NULL;
}

void
shelf_keep_files(void)
{
    char command[300];

    snprintf(command, sizeof(command), "cp -a %s %s.killed", shelf.folder, shelf.folder);
    ck_assert_int_eq(system(command), 0);
}

void
shelf_take_kept_files(void)
{
    char command[300];

    snprintf(command, sizeof(command), "rm -r %s && mv %s.killed %s", shelf.folder, shelf.folder,
             shelf.folder);
    ck_assert_int_eq(system(command), 0);
}

void
shelf_kill(void)
{
    shelf_keep_files();
    shelf_close();
    shelf_take_kept_files();
}

static _Atomic bool synced;

static void
note_sync(struct source_waiter *waiter)
{
    (void)waiter;
    synced = true;
}

void
shelf_ask_sync(struct source_waiter *waiter)
{
    waiter->notify = note_sync;
    waiter->number = SOURCE_ALL_MARKS;
    synced = false; /* before the call, since the waiter may be told before the call returns */
    if (store_is_synced(shelf.store, waiter))
        synced = true;
}

bool
shelf_is_synced(void)
{
    return synced;
}

void
shelf_await_sync(void)
{
    struct source_waiter waiter = {.notify = NULL};

    shelf_ask_sync(&waiter);
    while (!synced)
        unit_pause();
}

uint64_t
shelf_count(enum store_count which)
{
    struct store_stats stats;

    store_get_stats(shelf.store, &stats);
    return stats.counts[which];
}

uint64_t
shelf_objects(void)
{
    struct store_stats stats;

    store_get_stats(shelf.store, &stats);
    return stats.objects;
}

/* ---- objects --------------------------------------------------------------------------------- */

/* The bytes of a URL's body from one on: eight follow from a number, so that this is quick. */
static void
write_bytes(char *bytes, size_t len, const char *url, uint64_t at)
{
    const uint64_t hash = hash64_bytes(span_str(url));

    for (size_t i = 0, n; i < len; i += n, at += n) {
        const uint64_t word = (hash + at / 8) * UINT64_C(0x9e3779b97f4a7c15);
        const size_t from = at % 8;

        n = len - i < 8 - from ? len - i : 8 - from;
        memcpy(bytes + i, (const char *)&word + from, n);
    }
}

static void
expect_bytes(struct span run, const char *url, uint64_t at)
{
    char piece[1000];

    for (size_t i = 0, n; i < run.len; i += n) {
        n = run.len - i < sizeof(piece) ? run.len - i : sizeof(piece);
        write_bytes(piece, n, url, at + i);
        ck_assert_mem_eq(run.ptr + i, piece, n);
    }
}

struct object *
shelf_object(const char *url, const char *variant, const char *tags, size_t len,
             int64_t lifetime_us)
{
    const struct object_parts parts = {
        .url = span_str(url),
        .variant = span_str(variant),
        .fields = span_str("Content-Type: text/plain\r\n"),
        .tags = span_str(tags),
        .status = 200,
        .notes = 256,
        .segmented = len > 100000,
        .inline_size = (uint32_t)(len > 100000 ? 0 : len),
    };
    struct object *object = object_make(&parts);
    char piece[1000];

    ck_assert_ptr_nonnull(object);
    for (size_t at = 0, n; at < len; at += n) {
        n = len - at < sizeof(piece) ? len - at : sizeof(piece);
        write_bytes(piece, n, url, at);
        ck_assert_int_eq(object_append(object, piece, n, UINT64_MAX), 0);
    }
    object_complete(object, 1234, shelf.now_us, object_lifetime_of(lifetime_us));
    return object;
}

void
shelf_put_more(const char *url, const char *variant, const char *names, const char *tags,
               size_t len, int64_t lifetime_us)
{
    struct object *object = shelf_object(url, variant, tags, len, lifetime_us);

    ck_assert(store_offer(shelf.store, object, span_str(names), store_begin_offer(shelf.store)));
    object_release(&object);
    store_settle(shelf.store);
}

void
shelf_put(const char *url, size_t len)
{
    shelf_put_more(url, "", "", "", len, 100 * SHELF_SECOND);
}

void
shelf_offer(const char *url, size_t len)
{
    struct object *object = shelf_object(url, "", "", len, 100 * SHELF_SECOND);

    ck_assert(store_offer(shelf.store, object, span_of(NULL, 0), store_begin_offer(shelf.store)));
    object_release(&object);
}

static void
later(void *context)
{
    (void)context;
    if (shelf.later)
        shelf.later();
}

static enum http_reason
review(const struct source_review *by, struct source_head *head)
{
    (void)by;
    (void)head;
    return shelf.refusal;
}

static bool
begin(struct requester *r, const char *url, const char *variant, const char *fields)
{
    const struct source_request request = {.fields = span_str(fields),
                                           .most = UINT64_MAX,
                                           .later = later,
                                           .review = {.review = review}};

    request_lookup_variant(r, shelf.cache, url, variant, shelf.now_us,
                           (struct cache_request){.fill_size = store_fill_size()});
    ck_assert_int_eq(r->answer, CACHE_MISS);
    if (store_fill_start(shelf.store, r->found.fill, &request) != SOURCE_HAS_NOT)
        return true;
    fill_fail(r->found.fill);
    request_take(r);
    request_end(r);
    return false;
}

static unsigned
wait_for_end(struct requester *r)
{
    for (;;) {
        if (shelf.store)
            (void)store_lane_turn(shelf.store, 0);
        request_take(r);
        if (r->taken & WAITER_LAST)
            break;
        unit_pause();
    }
    return r->taken & WAITER_LAST;
}

bool
shelf_begin_get(struct requester *r, const char *url)
{
    return begin(r, url, "", "");
}

unsigned
shelf_end_get(struct requester *r)
{
    const unsigned events = wait_for_end(r);

    request_end(r);
    return events;
}

struct shelf_found
shelf_get(const char *url, const char *variant, const char *fields)
{
    struct requester r = {.answer = CACHE_HIT};
    struct shelf_found result = {.begun = begin(&r, url, variant, fields)};

    if (!result.begun)
        return result;
    result.events = wait_for_end(&r);
    if (result.events == WAITER_END)
        result.object = object_retain(r.waiter.object);
    if (result.events == WAITER_FAILED)
        snprintf(result.failure, sizeof(result.failure), "%u: %.*s", r.waiter.failure->status,
                 (int)object_failure(r.waiter.failure).len, object_failure(r.waiter.failure).ptr);
    request_end(&r);
    return result;
}

bool
shelf_is_sick(void)
{
    struct store_stats stats;

    store_get_stats(shelf.store, &stats);
    return stats.sick;
}

void
shelf_check(const struct object *object, const char *url, size_t len)
{
    struct object_place place = {0};
    struct span run;
    uint64_t at = 0;

    ck_assert_uint_eq(object_length(object), len);
    while (run = object_read(object, &place), run.len) {
        expect_bytes(run, url, at);
        at += run.len;
    }
    ck_assert_uint_eq(at, len);
}

bool
shelf_has(const char *url, size_t len)
{
    struct shelf_found got;
    bool was_sick;

    for (;;) {
        was_sick = shelf_is_sick();
        got = shelf_get(url, "", "");
        if (got.object || shelf.fails || !(was_sick || shelf_is_sick()))
            break;
        unit_pause();
    }
    if (!got.object) {
        ck_assert(!got.begun || got.events == WAITER_RETRY);
        return false;
    }
    shelf_check(got.object, url, len);
    object_release(&got.object);
    purge_by(shelf.cache, CACHE_BY_URL, span_str(url));
    return true;
}
