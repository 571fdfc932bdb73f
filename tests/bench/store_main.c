/*
 * A store by itself: what it takes to write and to read objects, to open it again after an end and
 * after a kill, and the memory of its index.
 *
 *   store FOLDER [OBJECTS [BYTES]]
 *
 * The folder is made, and has the files afterwards. One line for each figure.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cache/fill.h"
#include "policies/policy.h"
#include "store/store_fill.h"

static struct cache *cache;
static struct store *store;

static double
cpu_us(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return 1e6 * (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void
open_store(const char *folder)
{
    struct policy_spec policy;
    enum cache_error error;
    struct buf why;
    char text[200];

    buf_init(&why, 1000);
    policy_parse("lru", &policy, text, sizeof(text));
    cache = cache_create(
        &(struct cache_config){.policy = policy, .capacity_pages = 16, .shards = 1}, &error);
    store = store_open(&(struct store_config){.folder = folder,
                                              .max_bytes = (uint64_t)200 << 30,
                                              .readers = 4,
                                              .sync_us = 1000000,
                                              .cache = cache},
                       &why);
    if (!store) {
        fprintf(stderr, "%s: %s\n", folder, buf_str(&why));
        exit(EXIT_FAILURE);
    }
}

static void
close_store(void)
{
    store_close(store);
    cache_destroy(cache);
}

static struct span
url_of(char *text, size_t size, unsigned long number)
{
    return span_of(text, (size_t)snprintf(text, size, "http://origin.test/page-%lu", number));
}

static struct object *
make_object(unsigned long number, size_t len)
{
    static char body[1 << 20];
    char url[64];
    struct object *object = object_make(&(struct object_parts){
        .url = url_of(url, sizeof(url), number),
        .fields = span_str("Content-Type: text/html\r\nCache-Control: max-age=100000\r\n"),
        .status = 200,
        .inline_size = (uint32_t)len});

    if (!object)
        exit(EXIT_FAILURE);
    object_append(object, body, len, 0);
    object_complete(object, 1, clock_monotonic_us(), object_lifetime_of(INT64_MAX));
    return object;
}

static void
put_all(unsigned long count, size_t len)
{
    const double before = cpu_us();
    const int64_t begun_us = clock_monotonic_us();
    struct store_stats stats;

    for (unsigned long i = 0; i < count; i++) {
        struct object *object = make_object(i, len);

        while (!store_offer(store, object, span_of(NULL, 0), store_begin_offer(store)))
            usleep(1000);
        object_release(&object);
    }
    store_settle(store);
    store_get_stats(store, &stats);
    printf("put                 %8.2f us of CPU, %.1f s in all\n",
           (cpu_us() - before) / (double)count, (double)(clock_monotonic_us() - begun_us) / 1e6);
    printf("written / payload   %8.4f\n", (double)stats.written_bytes / ((double)len * (double)count));
    printf("index               %8.2f bytes an object\n",
           (double)stats.index_bytes / (double)stats.objects);
}

static void
later(void *context)
{
    (void)context;
}

static _Atomic unsigned notified;

static void
note(struct object_waiter *waiter)
{
    (void)waiter;
    atomic_fetch_add(&notified, 1);
}

/* Reads one; false if it is not there. */
static bool
get(unsigned long number)
{
    struct object_waiter waiter = {.notify = note};
    struct cache_found found;
    char url[64];
    const struct cache_key key = cache_key_of(url_of(url, sizeof(url), number));
    const unsigned before = notified;
    bool there;

    cache_lookup(cache, &key,
                 &(struct cache_request){.waiter = &waiter, .fill_size = store_fill_size()},
                 clock_monotonic_us(), &found);
    if (found.object) {
        object_release(&found.object);
        return true;
    }
    if (store_fill_start(store, found.fill,
                         &(struct source_request){.most = UINT64_MAX, .later = later}) ==
        SOURCE_HAS_NOT) {
        cache_fill_fail(found.fill, 1, "", NULL, NULL);
        cache_fill_free(found.fill);
        object_waiter_take(&waiter);
        object_waiter_clear(&waiter);
        return false;
    }
    while (notified == before)
        usleep(20);
    there = object_waiter_take(&waiter) & WAITER_END;
    object_waiter_clear(&waiter);
    return there;
}

static void
get_all(const char *name, unsigned long count, unsigned long gets)
{
    const double before = cpu_us();
    unsigned long there = 0, at = 12345;

    for (unsigned long i = 0; i < gets; i++) {
        at = at * 6364136223846793005u + 1442695040888963407u;
        there += get((at >> 33) % count);
    }
    printf("%s           %8.2f us of CPU, %lu of %lu there\n", name,
           (cpu_us() - before) / (double)gets, there, gets);
}

/* Until the last object that was written is found, and until all are known. */
static void
open_again(const char *folder, const char *name, unsigned long count)
{
    const int64_t begun_us = clock_monotonic_us();
    int64_t first_us;
    struct store_stats stats;

    open_store(folder);
    while (!get(count - 1))
        usleep(100);
    first_us = clock_monotonic_us() - begun_us;
    store_settle(store);
    store_get_stats(store, &stats);
    printf("open after %s    first hit after %.1f ms, all %lu after %.1f ms\n", name,
           (double)first_us / 1e3, (unsigned long)stats.objects,
           (double)(clock_monotonic_us() - begun_us) / 1e3);
}

int
main(int argc, char **argv)
{
    const unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000000;
    const size_t len = argc > 3 ? strtoul(argv[3], NULL, 10) : 1024;
    pid_t child;

    if (argc < 2 || !count || len > 1 << 20) {
        fprintf(stderr, "usage: store FOLDER [OBJECTS [BYTES]]\n");
        return EXIT_FAILURE;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    mkdir(argv[1], 0700);
    child = fork();
    if (child == 0) {
        open_store(argv[1]);
        put_all(count, len);
        _exit(EXIT_SUCCESS); /* as a kill */
    }
    waitpid(child, NULL, 0);
    open_again(argv[1], "kill", count);
    close_store();
    open_again(argv[1], "end ", count);
    get_all("get, warm", count, 100000);
    close_store();
    return EXIT_SUCCESS;
}
