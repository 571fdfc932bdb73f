/*
 * objects: fills a cache with small objects and purges them, and prints a line of JSON: the
 * resident memory of each object, the CPU time of a hit, and for each kind of purge the longest
 * time for which a lock was held.
 *
 * The functions for mutexes stand before those of the C library, as in tests/unit/unit.c, and
 * measure while a purge runs. A hold is CPU time of the thread, so that other work on the machine
 * does not count. It contains a reading of that clock, which is a system call.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/units.h"
#include "cache/fill.h"
#include "cache/slots.h"
#include "tests/bench/program.h"
#include "tests/unit/cache/purge.h"

#define SITE "http://a.test/items/"
#define FIELDS "Content-Type: application/json\r\n"
#define GROUPS 10u /* tags; each object has one of them, where they have tags */
#define LOOKUPS 1000000u
#define NOW_US ((int64_t)1000000)
#define HOUR_US ((int64_t)3600 * 1000000)

static const char help[] = "usage: objects [option...]\n"
                           "\n"
                           "  --objects N     1 to 50000000 (1000000)\n"
                           "  --bytes N       of each body, 0 to 65536 (100)\n"
                           "  --shards N      1 to 64 (16)\n"
                           "  --policy NAME   (lru)\n"
                           "  --no-purges     memory and hits only; the objects have no tags\n";

struct config {
    uint64_t objects;
    uint64_t bytes;
    uint64_t shards;
    const struct policy_ops *policy;
    bool no_purges;
};

/* ---- locks ----------------------------------------------------------------------------------- */

typedef int mutex_call(pthread_mutex_t *mutex);

static mutex_call *next_lock, *next_trylock, *next_unlock;

/* Of the locks of shards, or of the others, which are taken inside of these or alone. */
struct holds {
    unsigned depth; /* locks held */
    int64_t since_ns;
    int64_t longest_ns;
    uint64_t count;
};

/* Written by the one thread of the program. */
static struct {
    const struct cache *cache; /* NULL: nothing is measured */
    struct holds shards;
    struct holds others;
} watch;

static int64_t
thread_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void
find_next(mutex_call **call, const char *name)
{
    if (!*call)
        *(void **)call = dlsym(RTLD_NEXT, name);
}

static struct holds *
holds_of(const pthread_mutex_t *mutex)
{
    const uintptr_t at = (uintptr_t)mutex, slots = (uintptr_t)watch.cache->slots;

    return at - slots < sizeof(watch.cache->slots) ? &watch.shards : &watch.others;
}

/* The time of nested locks is that of the outermost one: it is held for longest. */
static void
begin_hold(const pthread_mutex_t *mutex)
{
    struct holds *holds = watch.cache ? holds_of(mutex) : NULL;

    if (holds && holds->depth++ == 0)
        holds->since_ns = thread_ns();
}

static void
end_hold(const pthread_mutex_t *mutex)
{
    struct holds *holds = watch.cache ? holds_of(mutex) : NULL;
    int64_t held_ns;

    if (!holds || --holds->depth > 0)
        return;
    held_ns = thread_ns() - holds->since_ns;
    holds->count++;
    if (held_ns > holds->longest_ns)
        holds->longest_ns = held_ns;
}

int
pthread_mutex_lock(pthread_mutex_t *mutex)
{
    int error;

    find_next(&next_lock, "pthread_mutex_lock");
    error = next_lock(mutex);
    if (error == 0)
        begin_hold(mutex);
    return error;
}

int
pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    int error;

    find_next(&next_trylock, "pthread_mutex_trylock");
    error = next_trylock(mutex);
    if (error == 0)
        begin_hold(mutex);
    return error;
}

int
pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    find_next(&next_unlock, "pthread_mutex_unlock");
    end_hold(mutex);
    return next_unlock(mutex);
}

/* ---- objects --------------------------------------------------------------------------------- */

struct bench {
    const struct config *config;
    struct cache *cache;
    char *body;
    char url[64];
    char tag[16];
    bool failed;
    struct json json;
};

static struct span
url_of(struct bench *bench, uint64_t number)
{
    int len = snprintf(bench->url, sizeof(bench->url), SITE "%08llu", (unsigned long long)number);

    return span_of(bench->url, (size_t)len);
}

static struct span
tag_of(struct bench *bench, uint64_t number)
{
    int len = snprintf(bench->tag, sizeof(bench->tag), "group%llu",
                       (unsigned long long)(number % GROUPS));

    return span_of(bench->tag, (size_t)len);
}

static void
ignore(struct object_waiter *waiter)
{
    (void)waiter;
}

/* Looks an object up; true if it is a hit. A miss, or one that has expired, is filled. */
static bool
request(struct bench *bench, uint64_t number)
{
    const struct config *config = bench->config;
    const struct cache_key key = cache_key_of(url_of(bench, number));
    struct object_waiter waiter = {.notify = ignore};
    struct object_head head = {.status = 200,
                               .fields = span_str(FIELDS),
                               .length = (int64_t)config->bytes,
                               .max_length = config->bytes};
    struct cache_found found;
    enum cache_answer answer = cache_lookup(
        bench->cache, &key,
        &(struct cache_request){.waiter = &waiter, .fill_size = sizeof(struct cache_fill)}, NOW_US,
        &found);

    object_release(&found.object);
    if (answer == CACHE_HIT)
        return true;
    if (answer != CACHE_MISS && answer != CACHE_STALE) {
        bench->failed = true;
        return false;
    }
    if (!config->no_purges)
        head.tags = tag_of(bench, number);
    if (cache_fill_head(found.fill, &head) == 0 &&
        cache_fill_append(found.fill, bench->body, config->bytes) == 0) {
        cache_fill_finish(found.fill, true, 1, NOW_US, HOUR_US);
    } else {
        cache_fill_fail(found.fill, 1, "no memory", NULL, NULL);
        bench->failed = true;
    }
    cache_fill_free(found.fill);
    object_waiter_clear(&waiter);
    return false;
}

static uint64_t
fill(struct bench *bench)
{
    for (uint64_t i = 0; i < bench->config->objects && !bench->failed; i++)
        request(bench, i);
    return bench->config->objects;
}

/* CPU nanoseconds of a hit, with what the loop needs to make its URL. */
static double
measure_hits(struct bench *bench)
{
    uint64_t random = HASH64_STEP;
    int64_t begun_ns = thread_ns();

    for (unsigned i = 0; i < LOOKUPS; i++) {
        random = hash64_uint(random);
        if (!request(bench, random % bench->config->objects))
            bench->failed = true;
    }
    return (double)(thread_ns() - begun_ns) / LOOKUPS;
}

static uint64_t
resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long long all = 0, resident = 0;

    if (file && fscanf(file, "%llu %llu", &all, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- purges ---------------------------------------------------------------------------------- */

static uint64_t
purge_urls(struct bench *bench)
{
    uint64_t purged = 0;

    for (uint64_t i = 0; i < bench->config->objects; i += 1000)
        purged += purge_by(bench->cache, CACHE_BY_URL, url_of(bench, i));
    return purged;
}

static uint64_t
purge_tag(struct bench *bench)
{
    return purge_by(bench->cache, CACHE_BY_TAG, tag_of(bench, 1));
}

static uint64_t
purge_prefix(struct bench *bench)
{
    return purge_by(bench->cache, CACHE_BY_PREFIX, span_str(SITE));
}

static uint64_t
purge_nothing(struct bench *bench)
{
    return purge_by(bench->cache, CACHE_BY_PREFIX, span_str("http://b.test/"));
}

static uint64_t
purge_all(struct bench *bench)
{
    return cache_purge_all(bench->cache);
}

static uint64_t
expire_tag(struct bench *bench)
{
    return expire_by(bench->cache, CACHE_BY_TAG, tag_of(bench, 1), NOW_US);
}

static uint64_t
expire_prefix(struct bench *bench)
{
    return expire_by(bench->cache, CACHE_BY_PREFIX, span_str(SITE), NOW_US);
}

static const struct kind {
    const char *name;
    uint64_t (*run)(struct bench *bench); /* returns the number of objects */
    bool refills;                         /* the cache is filled afterwards */
} kinds[] = {
    {"url", purge_urls, true},       {"tag", purge_tag, true},
    {"prefix", purge_prefix, true},  {"prefix, none", purge_nothing, true},
    {"soft, tag", expire_tag, true}, {"soft, prefix", expire_prefix, true},
    {"all", purge_all, false},       {"filling", fill, true},
};

static void
watch_holds(const struct cache *cache)
{
    watch.shards = watch.others = (struct holds){0};
    watch.cache = cache;
}

static void
print_holds(struct bench *bench)
{
    json_uint(&bench->json, "holds", watch.shards.count);
    json_double(&bench->json, "longest_us", (double)watch.shards.longest_ns / 1e3, 1);
    json_double(&bench->json, "longest_other_us", (double)watch.others.longest_ns / 1e3, 1);
}

static void
measure_purge(struct bench *bench, const struct kind *kind)
{
    int64_t begun_ns = thread_ns();
    uint64_t objects;

    watch_holds(bench->cache);
    objects = kind->run(bench);
    watch.cache = NULL;
    json_open_object(&bench->json, NULL);
    json_cstring(&bench->json, "purge", kind->name);
    json_uint(&bench->json, "objects", objects);
    json_double(&bench->json, "cpu_ms", (double)(thread_ns() - begun_ns) / 1e6, 3);
    print_holds(bench);
    json_close_object(&bench->json);
    if (kind->refills)
        fill(bench);
}

/* ---- the program ----------------------------------------------------------------------------- */

static void
measure(struct bench *bench)
{
    const uint64_t objects = bench->config->objects, before = resident_bytes();
    int64_t begun_ns = thread_ns();
    uint64_t grown;
    double fill_ns;

    fill(bench);
    fill_ns = (double)(thread_ns() - begun_ns) / (double)objects;
    grown = resident_bytes() - before;
    json_uint(&bench->json, "objects", objects);
    json_uint(&bench->json, "own_bytes",
              url_of(bench, 0).len + strlen(FIELDS) + bench->config->bytes);
    json_double(&bench->json, "resident_bytes", (double)grown / (double)objects, 1);
    json_double(&bench->json, "fill_cpu_ns", fill_ns, 0);
    json_double(&bench->json, "hit_cpu_ns", measure_hits(bench), 0);
    json_open_array(&bench->json, "purges");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !bench->config->no_purges; i++)
        measure_purge(bench, &kinds[i]);
    json_close_array(&bench->json);
}

static bool
set_option(void *context, int which, const char *text)
{
    struct config *config = context;

    switch (which) {
    case 'o':
        return units_parse_uint(text, 1, 50000000, &config->objects);
    case 'b':
        return units_parse_uint(text, 0, 65536, &config->bytes);
    case 's':
        return units_parse_uint(text, 1, CACHE_MAX_SHARDS, &config->shards);
    case 'p':
        config->policy = policy_find(text);
        return config->policy != NULL;
    case 'n':
        config->no_purges = true;
        return true;
    default:
        return false;
    }
}

int
main(int argc, char **argv)
{
    static const struct option table[] = {{"objects", required_argument, NULL, 'o'},
                                          {"bytes", required_argument, NULL, 'b'},
                                          {"shards", required_argument, NULL, 's'},
                                          {"policy", required_argument, NULL, 'p'},
                                          {"no-purges", no_argument, NULL, 'n'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    struct config config = {
        .objects = 1000000, .bytes = 100, .shards = 16, .policy = policy_find("lru")};
    struct bench bench = {.config = &config};
    enum cache_error error;
    int status = program_parse(argc, argv, table, help, set_option, &config);
    struct buf out;

    if (status != PROGRAM_GOES_ON)
        return status;
    bench.body = calloc(1, config.bytes + 1);
    bench.cache = cache_create(&(struct cache_config){.policy = policy_spec_of(config.policy),
                                                      .capacity_pages = 2 * config.objects + 1024,
                                                      .shards = (unsigned)config.shards},
                               &error);
    if (!bench.body || !bench.cache) {
        fputs("objects: no memory\n", stderr);
        return EX_OSERR;
    }
    buf_init(&out, 16384);
    json_init(&bench.json, &out);
    json_open_object(&bench.json, NULL);
    measure(&bench);
    json_close_object(&bench.json);
    cache_destroy(bench.cache);
    free(bench.body);
    if (bench.failed)
        fputs("objects: a request failed, or was no hit where it had to be one\n", stderr);
    return program_print(&out) && !bench.failed ? EXIT_SUCCESS : EX_SOFTWARE;
}
