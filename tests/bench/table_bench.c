#include "tests/bench/table_bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/djb.h"
#include "base/thread.h"
#include "cache/table.h"
#include "policies/policy.h"

#define LINE 64u
#define MISALIGNMENT 40u /* the fields that a lookup reads are at 0 to 37 of an entry */
#define BATCH 64         /* operations between two looks at the clock's flag */
#define URL_DIGITS 8

/* The URL of an entry has its number at two places, so that URLs differ early and late. */
static const char url_template[] =
    "http://www00000000.example.org/archive/2026/00000000/index.html";
enum { URL_LEN = sizeof(url_template) - 1, FIRST_DIGITS = 10, SECOND_DIGITS = 44 };

/* A table and its lock, on cache lines of their own, as those of the cache. */
struct part {
    _Alignas(LINE) union {
        pthread_mutex_t mutex;
        pthread_rwlock_t rwlock;
    } lock;
    struct table table;
};

struct worker {
    _Alignas(LINE) struct table_bench *bench;
    pthread_t thread;
    uint64_t random;
    uint64_t operations;
    uint64_t missing;
};

struct table_bench {
    struct table_bench_config config;
    struct part *parts;     /* owned */
    struct entry **entries; /* owned; in the order of their numbers */
    uint32_t *hashes;       /* owned; likewise: of their URLs */
    void **blocks;          /* owned: the allocations of entries and objects, two for each */
    struct worker *workers; /* owned */
    pthread_mutex_t gate;   /* held while threads are started */
    atomic_bool stop;
};

/* ---- making ---------------------------------------------------------------------------------- */

/* Memory for `size` bytes that begin at `offset` of a line, or where malloc() has them. */
static void *
place(struct table_bench *bench, size_t *block, size_t size, int offset)
{
    size_t whole = (size + (offset > 0 ? (size_t)offset : 0) + LINE - 1) / LINE * LINE;
    char *memory = offset < 0 ? malloc(size) : aligned_alloc(LINE, whole);

    bench->blocks[(*block)++] = memory;
    return memory ? memory + (offset > 0 ? offset : 0) : NULL;
}

static void
write_url(char url[URL_LEN], uint64_t number)
{
    for (int i = URL_DIGITS; i-- > 0; number /= 10) {
        url[FIRST_DIGITS + i] = (char)('0' + number % 10);
        url[SECOND_DIGITS + i] = (char)('0' + number % 10);
    }
}

/* An object as the cache makes it, at its place. */
static struct object *
make_object(struct table_bench *bench, size_t *block, uint64_t number)
{
    char url[sizeof(url_template)];
    struct object_parts parts = {0};
    struct object *made, *placed;

    memcpy(url, url_template, sizeof(url));
    write_url(url, number);
    parts.url = span_of(url, URL_LEN);
    made = object_make(&parts);
    if (!made)
        return NULL;
    object_complete(made, 0, 0, OBJECT_UNLIMITED);
    placed =
        place(bench, block, object_size(made), bench->config.layout == TABLE_ALL_ALIGNED ? 0 : -1);
    if (placed)
        memcpy(placed, made, object_size(made));
    object_release(&made);
    return placed;
}

static struct entry *
make_entry(struct table_bench *bench, size_t *block, uint64_t number)
{
    static const int offsets[] = {[TABLE_AS_IS] = -1,
                                  [TABLE_ALIGNED] = 0,
                                  [TABLE_MISALIGNED] = MISALIGNMENT,
                                  [TABLE_ALL_ALIGNED] = 0};
    size_t size = sizeof(struct entry) + policy_find("lru")->node_size;
    struct object *object = make_object(bench, block, number);
    struct entry *entry = object ? place(bench, block, size, offsets[bench->config.layout]) : NULL;

    if (!entry)
        return NULL;
    memset(entry, 0, size);
    entry->object = object;
    entry->hash = djb_hash(object_url(object));
    return entry;
}

static struct part *
part_of(const struct table_bench *bench, uint32_t hash)
{
    return &bench->parts[(uint64_t)(hash * 0x9e3779b1u) * bench->config.parts >> 32];
}

static bool
make_parts(struct table_bench *bench)
{
    bench->parts = aligned_alloc(LINE, bench->config.parts * sizeof(*bench->parts));
    if (!bench->parts)
        return false;
    memset(bench->parts, 0, bench->config.parts * sizeof(*bench->parts));
    for (unsigned i = 0; i < bench->config.parts; i++) {
        struct part *part = &bench->parts[i];
        int error = bench->config.lock == TABLE_MUTEX
                        ? pthread_mutex_init(&part->lock.mutex, NULL)
                        : pthread_rwlock_init(&part->lock.rwlock, NULL);

        if (error || !table_init(&part->table))
            return false;
    }
    return true;
}

static bool
make_entries(struct table_bench *bench)
{
    size_t block = 0;

    bench->entries = calloc(bench->config.entries, sizeof(struct entry *));
    bench->hashes = calloc(bench->config.entries, sizeof(uint32_t));
    bench->blocks = calloc(2 * bench->config.entries, sizeof(void *));
    if (!bench->entries || !bench->hashes || !bench->blocks)
        return false;
    for (uint64_t i = 0; i < bench->config.entries; i++) {
        bench->entries[i] = make_entry(bench, &block, i);
        if (!bench->entries[i])
            return false;
        bench->hashes[i] = bench->entries[i]->hash;
        table_insert(&part_of(bench, bench->hashes[i])->table, bench->entries[i]);
    }
    return true;
}

struct table_bench *
table_bench_create(const struct table_bench_config *config)
{
    struct table_bench *bench = calloc(1, sizeof(*bench));

    if (!bench)
        return NULL;
    bench->config = *config;
    pthread_mutex_init(&bench->gate, NULL);
    bench->workers = aligned_alloc(LINE, config->threads * sizeof(struct worker));
    if (!bench->workers || !make_parts(bench) || !make_entries(bench)) {
        table_bench_destroy(bench);
        return NULL;
    }
    return bench;
}

void
table_bench_destroy(struct table_bench *bench)
{
    if (!bench)
        return;
    for (unsigned i = 0; bench->parts && i < bench->config.parts; i++)
        table_free(&bench->parts[i].table);
    for (uint64_t i = 0; bench->blocks && i < 2 * bench->config.entries; i++)
        free(bench->blocks[i]);
    free(bench->parts);
    free(bench->entries);
    free(bench->hashes);
    free(bench->blocks);
    free(bench->workers);
    pthread_mutex_destroy(&bench->gate);
    free(bench);
}

/* ---- measuring ------------------------------------------------------------------------------- */

static void
lock_part(const struct table_bench *bench, struct part *part, bool writes)
{
    if (bench->config.lock == TABLE_MUTEX)
        pthread_mutex_lock(&part->lock.mutex);
    else if (writes)
        pthread_rwlock_wrlock(&part->lock.rwlock);
    else
        pthread_rwlock_rdlock(&part->lock.rwlock);
}

static void
unlock_part(const struct table_bench *bench, struct part *part)
{
    if (bench->config.lock == TABLE_MUTEX)
        pthread_mutex_unlock(&part->lock.mutex);
    else
        pthread_rwlock_unlock(&part->lock.rwlock);
}

/* xorshift (G. Marsaglia, 2003) */
static uint64_t
draw(struct worker *worker)
{
    worker->random ^= worker->random << 13;
    worker->random ^= worker->random >> 7;
    worker->random ^= worker->random << 17;
    return worker->random >> 16;
}

/* An entry is not read before the table reads it: its URL is written anew, its hash is at hand. */
static void
operate(struct table_bench *bench, struct worker *worker, char url[URL_LEN])
{
    uint64_t number = draw(worker) % bench->config.entries;
    bool updates = draw(worker) % 100 >= bench->config.lookups;
    uint32_t hash = bench->hashes[number];
    struct part *part = part_of(bench, hash);
    struct entry *entry;

    write_url(url, number);
    lock_part(bench, part, updates);
    entry = table_find(&part->table, hash, span_of(url, URL_LEN), span_of(NULL, 0));
    if (!entry) {
        worker->missing++;
    } else if (updates) {
        table_remove(&part->table, entry);
        table_insert(&part->table, entry);
    }
    unlock_part(bench, part);
    worker->operations++;
}

static void *
work(void *context)
{
    struct worker *worker = context;
    struct table_bench *bench = worker->bench;
    char url[sizeof(url_template)];

    memcpy(url, url_template, sizeof(url));
    pthread_mutex_lock(&bench->gate);
    pthread_mutex_unlock(&bench->gate);
    do {
        for (int i = 0; i < BATCH; i++)
            operate(bench, worker, url);
    } while (!atomic_load_explicit(&bench->stop, memory_order_relaxed));
    return NULL;
}

static int64_t
cpu_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void
pass_time(int64_t us)
{
    struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

    nanosleep(&time, NULL);
}

static unsigned
start_workers(struct table_bench *bench)
{
    unsigned started = 0;

    for (; started < bench->config.threads; started++) {
        struct worker *worker = &bench->workers[started];

        *worker = (struct worker){.bench = bench, .random = 0x9e3779b97f4a7c15u * (started + 1)};
        if (thread_start(&worker->thread, work, worker) != 0)
            break;
    }
    return started;
}

bool
table_bench_run(struct table_bench *bench, struct table_bench_result *result)
{
    unsigned started;
    bool all;

    *result = (struct table_bench_result){0};
    pthread_mutex_lock(&bench->gate);
    started = start_workers(bench);
    all = started == bench->config.threads;
    atomic_store(&bench->stop, !all);
    result->elapsed_us = -clock_monotonic_us();
    result->cpu_us = -cpu_us();
    pthread_mutex_unlock(&bench->gate);
    if (all)
        pass_time(bench->config.duration_us);
    atomic_store(&bench->stop, true);
    result->elapsed_us += clock_monotonic_us();
    for (unsigned i = 0; i < started; i++) {
        pthread_join(bench->workers[i].thread, NULL);
        result->operations += bench->workers[i].operations;
        result->missing += bench->workers[i].missing;
    }
    result->cpu_us += cpu_us();
    return all;
}

/* ---- for tests ------------------------------------------------------------------------------- */

uint64_t
table_bench_count_at(const struct table_bench *bench, unsigned offset)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < bench->config.entries; i++)
        count += (uintptr_t)bench->entries[i] % LINE == offset;
    return count;
}

bool
table_bench_is_valid(const struct table_bench *bench)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < bench->config.parts; i++)
        count += bench->parts[i].table.entry_count;
    for (uint64_t i = 0; i < bench->config.entries; i++) {
        const struct entry *entry = bench->entries[i];

        if (table_find(&part_of(bench, entry->hash)->table, entry->hash,
                       object_url(entry->object), span_of(NULL, 0)) != entry)
            return false;
    }
    return count == bench->config.entries;
}
