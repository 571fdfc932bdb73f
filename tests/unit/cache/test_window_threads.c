/*
 * Bodies with a window that readers on other threads read while they arrive: at different paces,
 * one of which may leave or lag. A run that is freed too early shows under the sanitizers and in
 * the bytes, a lost resume or notification in a test that does not end.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include "tests/unit/cache/pages.h"

enum { READERS = 4, PIECE = 10000, BODY = 6000000 };

static struct cache *cache;
static struct memory_account account;
static sem_t resumed;

struct reader {
    struct object_waiter waiter; /* first */
    pthread_t thread;
    sem_t wake;
    size_t pace;      /* bytes that it takes at once */
    uint64_t stop_at; /* it leaves there; 0: it does not */
    unsigned yields;  /* after each of those */
    uint64_t read;
    unsigned taken;
    bool left, wrong;
};

static void
wake(struct object_waiter *waiter)
{
    sem_post(&((struct reader *)(void *)waiter)->wake);
}

static void
resume(struct cache_fill *fill)
{
    (void)fill;
    sem_post(&resumed);
}

static void
wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        continue;
}

static char
letter(uint64_t at)
{
    return (char)('a' + (at / 1000 + at) % 26);
}

/* Reads what there is; true when it leaves. */
static bool
read_along(struct reader *reader, struct object_place *place)
{
    const struct object *object = reader->waiter.object;
    struct span run;

    while (run = object_read(object, place), run.len) {
        if (run.len > reader->pace) {
            run.len = reader->pace;
            place->offset = reader->read + run.len;
        }
        for (unsigned i = 0; i < reader->yields; i++)
            sched_yield();
        for (size_t i = 0; i < run.len; i += 61)
            reader->wrong |= run.ptr[i] != letter(reader->read + i);
        reader->wrong |= run.ptr[run.len - 1] != letter(reader->read + run.len - 1);
        reader->read += run.len;
        cache_waiter_taken(&reader->waiter, reader->read);
        if (reader->stop_at && reader->read >= reader->stop_at)
            return true;
    }
    return false;
}

static void *
read_all(void *context)
{
    struct reader *reader = context;
    struct object_place place = {0};
    unsigned events;

    do {
        wait_for(&reader->wake);
        events = object_waiter_take(&reader->waiter);
        reader->taken |= events;
        if (read_along(reader, &place) && cache_leave(&reader->waiter)) {
            reader->left = true;
            break;
        }
    } while (!(events & WAITER_LAST));
    object_waiter_clear(&reader->waiter);
    return NULL;
}

/* The fetcher's part, which pauses when the cache says so; the window opens at `unstore_at`. */
static void
send_body(struct cache_fill *fill, uint64_t unstore_at)
{
    static const struct cache_window window = {
        .size = 200000, .lag = 1000000, .lags = {21, "too slow"}, .resume = resume};
    static char bytes[PIECE];
    uint64_t most = 0;

    for (uint64_t at = 0; at < BODY; at += PIECE) {
        uint64_t used;
        int answer;

        if (at == unstore_at)
            ck_assert_int_eq(cache_fill_unstore(fill, &window), 0);
        for (size_t i = 0; i < PIECE; i++)
            bytes[i] = letter(at + i);
        answer = cache_fill_append(fill, bytes, PIECE);
        used = memory_used(&account, MEMORY_PAGES);
        if (at >= unstore_at && used > most)
            most = used;
        if (answer == CACHE_FILL_PAUSE)
            wait_for(&resumed);
        else
            ck_assert_int_eq(answer, 0);
    }
    /* Two windows and the lag, a piece, and two segments. What was whole before is read first. */
    ck_assert_uint_le(most, unstore_at + 400000 + 1000000 + PIECE + 524288);
}

static void
stream(struct reader *readers, uint64_t unstore_at)
{
    struct cache_request request = {.fill_size = sizeof(struct cache_fill)};
    struct cache_key key = cache_key_of(span_str("a"));
    struct cache_fill *fill = NULL;
    struct cache_found found;

    ck_assert_int_eq(sem_init(&resumed, 0, 0), 0);
    for (unsigned r = 0; r < READERS; r++) {
        request.waiter = &readers[r].waiter;
        readers[r].waiter.notify = wake;
        readers[r].waiter.streams = true;
        ck_assert_int_eq(sem_init(&readers[r].wake, 0, 0), 0);
        ck_assert_int_eq(cache_lookup(cache, &key, &request, 0, &found),
                         fill ? CACHE_BUSY : CACHE_MISS);
        fill = fill ? fill : found.fill;
    }
    for (unsigned r = 0; r < READERS; r++)
        ck_assert_int_eq(pthread_create(&readers[r].thread, NULL, read_all, &readers[r]), 0);
    fill_head(fill, -1, &account);
    send_body(fill, unstore_at);
    ck_assert_int_eq(cache_fill_finish(fill, true, 1, 1, INT64_MAX), CACHE_NOT_STORED);
    cache_fill_free(fill);
    for (unsigned r = 0; r < READERS; r++) {
        struct reader *reader = &readers[r];
        bool failed;

        ck_assert_int_eq(pthread_join(reader->thread, NULL), 0);
        failed = reader->taken & WAITER_FAILED;
        ck_assert(!reader->wrong);
        ck_assert_int_eq(reader->left + ((reader->taken & WAITER_END) != 0) + failed, 1);
        if (reader->taken & WAITER_END)
            ck_assert_uint_eq(reader->read, BODY);
        sem_destroy(&reader->wake);
    }
    ck_assert_uint_eq(memory_used(&account, MEMORY_PAGES), 0);
    sem_destroy(&resumed);
}

START_TEST(readers_on_threads_read_a_body_with_a_window)
{
    cache = pages_cache("lru", 10, 0, 1);
    memory_account_init(&account, UINT64_MAX / 4, NULL);
    for (unsigned round = 0; round < 8; round++) {
        struct reader readers[READERS] = {
            {.pace = 1 << 20},
            {.pace = 3000 + 500 * round},
            {.pace = 100000, .stop_at = 700000 * round},
            {.pace = 50000, .yields = 20 * round},
        };

        stream(readers, round % 3 * 500000);
    }
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/window: threads");
    TCase *tc = tcase_create("threads");

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, readers_on_threads_read_a_body_with_a_window);
    suite_add_tcase(suite, tc);
    return suite;
}
