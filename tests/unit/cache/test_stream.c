/*
 * Bodies that are read on other threads while they arrive: at different paces, from readers that
 * join at different times, inline and in segments.
 */
#include <pthread.h>
#include <semaphore.h>

#include "tests/unit/cache/pages.h"

enum { READERS = 4, BODY = 700000 };

static struct cache *cache;

struct reader {
    struct object_waiter waiter; /* first */
    pthread_t thread;
    sem_t wake;
    unsigned join_at; /* pieces after which it looks up */
    size_t pace;      /* bytes that it reads at once */
    uint64_t read;
    unsigned taken;
    bool wrong;
};

static void
wake(struct object_waiter *waiter)
{
    sem_post(&((struct reader *)(void *)waiter)->wake);
}

static char
letter(uint64_t at)
{
    return (char)('a' + (at / 1000 + at) % 26);
}

/* Reads what is there, `pace` bytes of a run at most. */
static void
read_along(struct reader *reader, const struct object *object, struct object_place *place)
{
    struct span run;

    while (run = object_read(object, place), run.len) {
        if (run.len > reader->pace) {
            run.len = reader->pace;
            place->offset = reader->read + run.len;
        }
        for (size_t i = 0; i < run.len; i += 61)
            reader->wrong |= run.ptr[i] != letter(reader->read + i);
        reader->wrong |= run.ptr[run.len - 1] != letter(reader->read + run.len - 1);
        reader->read += run.len;
    }
}

static void *
read_all(void *context)
{
    struct reader *reader = context;
    struct object_place place = {0};
    unsigned events;

    do {
        while (sem_wait(&reader->wake) != 0)
            continue;
        events = object_waiter_take(&reader->waiter);
        reader->taken |= events;
        reader->wrong |= events & (WAITER_FAILED | WAITER_RETRY);
        if (!(events & WAITER_END) && reader->pace < 1000)
            continue; /* a slow one reads only at the end */
        read_along(reader, reader->waiter.object, &place);
    } while (!(events & WAITER_END));
    reader->wrong |= object_state(reader->waiter.object) != OBJECT_READY;
    reader->wrong |= object_has_zero_byte(reader->waiter.object);
    object_waiter_clear(&reader->waiter);
    return NULL;
}

static void
start(struct reader *reader, const struct cache_key *key)
{
    struct cache_request request = {.waiter = &reader->waiter,
                                    .fill_size = sizeof(struct cache_fill)};
    struct cache_found found;

    reader->waiter.notify = wake;
    ck_assert_int_eq(sem_init(&reader->wake, 0, 0), 0);
    ck_assert_int_eq(cache_lookup(cache, key, &request, 0, &found), CACHE_BUSY);
    ck_assert_int_eq(pthread_create(&reader->thread, NULL, read_all, reader), 0);
}

static void
stream(int64_t length, size_t body, size_t piece)
{
    struct reader readers[READERS] = {
        {.join_at = 0, .pace = 1 << 20, .waiter.streams = true},
        {.join_at = 1, .pace = 3000, .waiter.streams = true},
        {.join_at = 5, .pace = 100, .waiter.streams = true},
        {.join_at = 3, .pace = 1 << 20, .waiter.streams = false},
    };
    struct cache_key key = cache_key_of(span_str("a"));
    struct requester leader = {0};
    struct object *stored;
    char *bytes = malloc(body);

    for (size_t i = 0; i < body; i++)
        bytes[i] = letter(i);
    ck_assert_int_eq(request_lookup(&leader, cache, "a", 0, true), CACHE_MISS);
    for (size_t at = 0, count = 0; at < body; count++) {
        size_t len = piece < body - at ? piece : body - at;

        for (unsigned r = 0; r < READERS; r++) {
            if (readers[r].join_at == count)
                start(&readers[r], &key);
        }
        if (count == 0)
            fill_head(leader.found.fill, length, NULL);
        ck_assert_int_eq(cache_fill_append(leader.found.fill, bytes + at, len), 0);
        at += len;
    }
    ck_assert_int_eq(cache_fill_finish(leader.found.fill, true, 1, 1, INT64_MAX), CACHE_STORED);
    cache_fill_free(leader.found.fill);
    for (unsigned r = 0; r < READERS; r++) {
        ck_assert_int_eq(pthread_join(readers[r].thread, NULL), 0);
        ck_assert(!readers[r].wrong);
        ck_assert_uint_eq(readers[r].read, body);
        ck_assert_int_eq((readers[r].taken & WAITER_HEAD) != 0, readers[r].waiter.streams);
        sem_destroy(&readers[r].wake);
    }
    request_take(&leader);
    request_end(&leader);
    stored = pages_get(cache, key.url, 0);
    ck_assert_int_eq(stored->segmented, body > 256 << 10 && length < 0);
    ck_assert_uint_eq(object_length(stored), body);
    ck_assert_uint_eq(stored->references, 2); /* of the cache, and this one */
    object_release(&stored);
    free(bytes);
}

START_TEST(readers_get_the_body_while_it_arrives)
{
    static const struct {
        int64_t length;
        size_t body, piece;
    } bodies[] = {
        {-1, 50000, 700},    {-1, BODY, 9000},   {-1, BODY, 30000},
        {50000, 50000, 700}, {BODY, BODY, 9000},
    };

    for (size_t b = 0; b < sizeof(bodies) / sizeof(bodies[0]); b++) {
        cache = pages_cache("lru", 10, 0, 1);
        for (unsigned i = 0; i < 8; i++) {
            stream(bodies[b].length, bodies[b].body, bodies[b].piece);
            cache_purge_all(cache);
        }
        ck_assert(cache_is_valid(cache));
        cache_destroy(cache);
    }
}
END_TEST

/*
 * A reader that has seen every event sleeps until the next one, so that a lost one would stop this:
 * the filler waits until the reader has read each piece.
 */
static _Atomic uint64_t read_so_far;

static void *
report_reading(void *context)
{
    struct reader *reader = context;
    struct object_place place = {0};
    unsigned events;

    do {
        while (sem_wait(&reader->wake) != 0)
            continue;
        events = object_waiter_take(&reader->waiter);
        read_along(reader, reader->waiter.object, &place);
        atomic_store(&read_so_far, reader->read);
    } while (!(events & WAITER_END));
    object_waiter_clear(&reader->waiter);
    return NULL;
}

START_TEST(no_wake_up_is_lost)
{
    enum { PIECES = 3000 };
    struct cache_key key = cache_key_of(span_str("a"));
    struct requester leader = {0};
    struct cache_request request = {.fill_size = sizeof(struct cache_fill)};
    struct reader reader = {.pace = 1 << 20, .waiter = {.notify = wake, .streams = true}};
    struct cache_found found;

    cache = pages_cache("lru", 10, 0, 1);
    atomic_store(&read_so_far, 0);
    request_lookup(&leader, cache, "a", 0, false);
    fill_head(leader.found.fill, -1, NULL);
    request.waiter = &reader.waiter;
    ck_assert_int_eq(sem_init(&reader.wake, 0, 0), 0);
    ck_assert_int_eq(cache_lookup(cache, &key, &request, 0, &found), CACHE_BUSY);
    ck_assert_int_eq(pthread_create(&reader.thread, NULL, report_reading, &reader), 0);
    for (uint64_t i = 0; i < PIECES; i++) {
        char byte = letter(i);

        ck_assert_int_eq(cache_fill_append(leader.found.fill, &byte, 1), 0);
        while (atomic_load(&read_so_far) <= i)
            sched_yield();
    }
    cache_fill_finish(leader.found.fill, true, 1, 1, INT64_MAX);
    cache_fill_free(leader.found.fill);
    ck_assert_int_eq(pthread_join(reader.thread, NULL), 0);
    ck_assert(!reader.wrong);
    ck_assert_uint_eq(reader.read, PIECES);
    request_take(&leader);
    request_end(&leader);
    sem_destroy(&reader.wake);
    cache_destroy(cache);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/stream");
    TCase *tc = tcase_create("stream");

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, readers_get_the_body_while_it_arrives);
    tcase_add_test(tc, no_wake_up_is_lost);
    suite_add_tcase(suite, tc);
    return suite;
}
