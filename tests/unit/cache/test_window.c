/*
 * Bodies that are not stored and of which only a window is kept: what is freed and charged, when a
 * fetch pauses, which readers fail, and which requests still join.
 */
#define UNIT_STARTS_NO_THREAD

#include <errno.h>

#include "tests/unit/cache/pages.h"

#define KIB ((uint64_t)1024)
#define SIZE (256 * KIB)
#define LAG (512 * KIB)
#define PIECE ((size_t)(16 * KIB))

/* A piece, and two segments: the one in which the last byte was read, and the one that is begun. */
#define SLACK (PIECE + 512 * KIB)

static struct cache *cache;
static struct memory_account account;
static unsigned resumed, abandoned;

static void
resume(struct cache_fill *fill)
{
    ck_assert(!fill->paused);
    resumed++;
}

static const struct cache_window window = {
    .size = SIZE,
    .lag = LAG,
    .lags = {21, "too slow"},
    .whole = {22, "too large"},
    .resume = resume,
};

static const struct cache_window of_streams = {
    .size = SIZE, .lag = LAG, .lags = {21, "too slow"}, .resume = resume};

static void
set_up(void)
{
    cache = pages_cache("lru", 10, 0, 1);
    memory_account_init(&account, UINT64_MAX / 4, NULL);
    resumed = abandoned = 0;
}

static void
tear_down(void)
{
    ck_assert_uint_eq(memory_used(&account, MEMORY_PAGES), 0);
    pages_end(cache);
}

/* A reader: a request that streams, and what it has read. */
struct reader {
    struct requester request; /* first */
    struct object_place place;
    uint64_t taken; /* as it reported */
};

static void
join(struct reader *reader, enum cache_answer answer)
{
    *reader = (struct reader){0};
    ck_assert_int_eq(request_lookup(&reader->request, cache, "a", 0, true), answer);
}

/* A miss whose body, of unknown length, has a window from its beginning on. */
static struct cache_fill *
join_windowed(struct reader *reader)
{
    struct cache_fill *fill;

    join(reader, CACHE_MISS);
    fill = reader->request.found.fill;
    fill_head(fill, -1, &account);
    ck_assert_int_eq(cache_fill_unstore(fill, &window), 0);
    return fill;
}

/* Both readers end; their last events have been sent. */
static void
end_both(struct reader *a, struct reader *b)
{
    request_take(&a->request);
    request_take(&b->request);
    request_end(&a->request);
    request_end(&b->request);
}

/* The letters of a body from an offset on, a piece. */
static const char *
letters_at(uint64_t offset)
{
    static char letters[26 + PIECE];

    if (letters[0] == '\0') /* they have not been made yet */
        for (size_t i = 0; i < sizeof(letters); i++)
            letters[i] = (char)('a' + i % 26);
    return letters + offset % 26;
}

/* Reads up to this offset at most, and checks the letters. */
static void
read_to(struct reader *reader, uint64_t offset)
{
    uint64_t at = reader->place.offset, wrong = 0;
    struct span run;

    request_take(&reader->request);
    while (at < offset && (run = object_read(reader->request.waiter.object, &reader->place)).len) {
        if (run.len > offset - at)
            run.len = (size_t)(offset - at);
        for (size_t i = 0; i < run.len; i += PIECE)
            wrong += memcmp(run.ptr + i, letters_at(at + i),
                            run.len - i < PIECE ? run.len - i : PIECE) != 0;
        at += run.len;
        reader->place.offset = at;
    }
    ck_assert_uint_eq(at, offset);
    ck_assert_uint_eq(wrong, 0);
}

static void
take_to(struct reader *reader, uint64_t offset)
{
    read_to(reader, offset);
    reader->taken = offset;
    cache_waiter_taken(&reader->request.waiter, offset);
}

/* Appends one piece of letters: true if the fetch is to pause. */
static bool
append(struct cache_fill *fill)
{
    int answer = cache_fill_append(fill, letters_at(object_length(fill->object)), PIECE);

    ck_assert(answer == 0 || answer == CACHE_FILL_PAUSE);
    return answer == CACHE_FILL_PAUSE;
}

/* Appends until the fetch is to pause; returns the length then. */
static uint64_t
append_to_pause(struct cache_fill *fill)
{
    for (unsigned i = 0; !append(fill); i++)
        ck_assert_uint_lt(i, 10000);
    return object_length(fill->object);
}

static void
finish(struct cache_fill *fill)
{
    ck_assert_int_eq(cache_fill_finish(fill, true, 1, 1, INT64_MAX), CACHE_NOT_STORED);
    cache_fill_free(fill);
}

/* ---- one reader ------------------------------------------------------------------------------ */

START_TEST(the_only_reader_slows_the_fetch_down_and_bounds_the_memory)
{
    struct cache_fill *fill;
    struct reader reader;
    uint64_t most = 0;

    join(&reader, CACHE_MISS);
    fill = reader.request.found.fill;
    fill_head(fill, _i ? 64 << 20 : -1, &account);
    ck_assert_int_eq(cache_fill_unstore(fill, &window), 0);
    while (object_length(fill->object) < 64 << 20) {
        bool paused = append(fill);
        uint64_t length = object_length(fill->object), used = memory_used(&account, MEMORY_PAGES);

        ck_assert_int_eq(paused, length - reader.taken > SIZE);
        ck_assert_uint_le(object_size(fill->object), used);
        most = used > most ? used : most;
        if (!paused)
            continue;
        resumed = 0;
        take_to(&reader, length - SIZE / 2 - 1);
        ck_assert_uint_eq(resumed, 0);
        take_to(&reader, length - SIZE / 2);
        ck_assert_uint_eq(resumed, 1);
        take_to(&reader, length);
        ck_assert_uint_eq(resumed, 1); /* once for each pause */
    }
    ck_assert_uint_le(most, SIZE + SLACK);
    finish(fill);
    ck_assert_uint_eq(request_take(&reader.request) & WAITER_LAST, WAITER_END);
    ck_assert_int_eq(object_state(reader.request.waiter.object), OBJECT_READY);
    take_to(&reader, 64 << 20);
    ck_assert(!pages_hit(cache, "a"));
    request_end(&reader.request);
}
END_TEST

START_TEST(what_has_not_been_read_at_the_end_can_be_read_after_it)
{
    struct cache_fill *fill;
    struct reader reader;
    uint64_t length;

    fill = join_windowed(&reader);
    length = append_to_pause(fill);
    take_to(&reader, length / 3);
    finish(fill);
    /* Reports after the last event change nothing. */
    cache_waiter_taken(&reader.request.waiter, length);
    read_to(&reader, length);
    ck_assert_uint_eq(resumed, 0);
    request_end(&reader.request);
}
END_TEST

START_TEST(a_body_may_become_windowed_when_readers_have_read_some_of_it)
{
    struct reader first, second;
    struct cache_fill *fill;
    uint64_t used;

    join(&first, CACHE_MISS);
    join(&second, CACHE_BUSY);
    fill = first.request.found.fill;
    fill_head(fill, -1, &account);
    for (unsigned i = 0; i < 256; i++)
        ck_assert(!append(fill));
    used = memory_used(&account, MEMORY_PAGES);
    ck_assert_uint_ge(used, 4096 * KIB);
    take_to(&first, 4096 * KIB);
    take_to(&second, 4000 * KIB);
    ck_assert_uint_eq(memory_used(&account, MEMORY_PAGES), used);
    ck_assert_int_eq(cache_fill_unstore(fill, &of_streams), 0);
    ck_assert_uint_le(memory_used(&account, MEMORY_PAGES), 96 * KIB + SLACK);
    ck_assert(!append(fill));
    take_to(&second, 4112 * KIB);
    take_to(&first, 4112 * KIB);
    finish(fill);
    end_both(&first, &second);
}
END_TEST

/* One that would be copied into one allocation if it were stored. */
START_TEST(a_short_body_with_a_window_stays_as_it_is)
{
    struct cache_fill *fill;
    struct reader reader;

    fill = join_windowed(&reader);
    for (unsigned i = 0; i < 6; i++) {
        append(fill);
        take_to(&reader, object_length(fill->object));
    }
    finish(fill);
    ck_assert(request_take(&reader.request) & WAITER_END);
    request_end(&reader.request);
}
END_TEST

/* ---- several readers ------------------------------------------------------------------------- */

START_TEST(a_reader_that_lags_fails_and_slows_no_other_down)
{
    struct reader quick, slow;
    struct cache_fill *fill;
    uint64_t most = 0;

    join(&quick, CACHE_MISS);
    join(&slow, CACHE_BUSY);
    fill = quick.request.found.fill;
    fill_head(fill, -1, &account);
    ck_assert_int_eq(cache_fill_unstore(fill, &window), 0);
    for (unsigned i = 0; i < 500; i++) {
        uint64_t length, used;

        ck_assert(!append(fill));
        length = object_length(fill->object);
        take_to(&quick, length);
        used = memory_used(&account, MEMORY_PAGES);
        most = used > most ? used : most;
        if (length < LAG + SIZE)
            ck_assert_int_eq(slow.request.waiter.lags, length > LAG);
        if (length == LAG + PIECE) {
            /* What it may be reading is kept until it has gone. */
            ck_assert(request_take(&slow.request) & WAITER_FAILED);
            ck_assert_uint_eq(slow.request.waiter.failure->status, 21);
            ck_assert(
                span_equal(object_failure(slow.request.waiter.failure), span_str("too slow")));
            ck_assert(!cache_leave(&slow.request.waiter));
        }
        if (length == LAG + SIZE) {
            ck_assert_uint_eq(object_length(slow.request.waiter.object), length);
            read_to(&slow, length);
            request_end(&slow.request);
        }
    }
    ck_assert_uint_le(most, SIZE + LAG + SLACK);
    ck_assert_uint_eq(fill->waiter_count, 1);
    finish(fill);
    ck_assert(request_take(&quick.request) & WAITER_END);
    request_end(&quick.request);
}
END_TEST

START_TEST(a_reader_that_has_failed_and_stays_pauses_the_fetch_in_the_end)
{
    struct reader quick, slow;
    struct cache_fill *fill;
    uint64_t length;

    join(&quick, CACHE_MISS);
    join(&slow, CACHE_BUSY);
    fill = quick.request.found.fill;
    fill_head(fill, -1, &account);
    ck_assert_int_eq(cache_fill_unstore(fill, &window), 0);
    do
        take_to(&quick, object_length(fill->object));
    while (!append(fill));
    length = object_length(fill->object);
    ck_assert(slow.request.waiter.lags);
    ck_assert_uint_eq(length, LAG + 2 * SIZE + PIECE);
    take_to(&quick, length);
    ck_assert_uint_eq(resumed, 0);
    request_take(&slow.request);
    request_end(&slow.request);
    ck_assert_uint_eq(resumed, 1);
    ck_assert_uint_le(memory_used(&account, MEMORY_PAGES), SLACK);
    ck_assert(!append(fill));
    fill_fail(fill);
    ck_assert(request_take(&quick.request) & WAITER_FAILED);
    ck_assert_uint_eq(quick.request.waiter.failure->status, 7);
    request_end(&quick.request);
}
END_TEST

/* The end of the fill does not notify a reader again that has failed. */
START_TEST(a_reader_that_has_failed_gets_no_second_last_event)
{
    struct reader quick, slow;
    struct cache_fill *fill;

    join(&slow, CACHE_MISS);
    join(&quick, CACHE_BUSY);
    fill = slow.request.found.fill;
    fill_head(fill, -1, &account);
    ck_assert_int_eq(cache_fill_unstore(fill, &window), 0);
    while (!slow.request.waiter.lags) {
        append(fill);
        take_to(&quick, object_length(fill->object));
    }
    ck_assert(request_take(&slow.request) & WAITER_FAILED);
    if (_i == 0)
        finish(fill);
    else
        fill_fail(fill);
    ck_assert_uint_eq(atomic_load(&slow.request.notified), 0);
    ck_assert(request_take(&quick.request) & (_i == 0 ? WAITER_END : WAITER_FAILED));
    read_to(&slow, 100 * KIB);
    request_end(&slow.request);
    request_end(&quick.request);
}
END_TEST

START_TEST(the_slowest_frees_and_the_farthest_resumes_when_others_leave)
{
    struct reader ahead, behind;
    struct cache_fill *fill;
    uint64_t length, used;

    join(&ahead, CACHE_MISS);
    join(&behind, CACHE_BUSY);
    fill = ahead.request.found.fill;
    fill_head(fill, -1, &account);
    ck_assert_int_eq(cache_fill_unstore(fill, &window), 0);
    length = append_to_pause(fill);
    take_to(&ahead, length);
    ck_assert_uint_eq(resumed, 1);
    append(fill);
    used = memory_used(&account, MEMORY_PAGES);
    ck_assert_uint_ge(used, length);
    if (_i == 0) {
        /* The one behind leaves: what only it needed is freed. */
        ck_assert(cache_leave(&behind.request.waiter));
        request_take(&behind.request);
        ck_assert_uint_lt(memory_used(&account, MEMORY_PAGES), used);
    } else {
        /* The one ahead leaves: the other one is the farthest then, and the fetch pauses for it. */
        ck_assert(cache_leave(&ahead.request.waiter));
        request_take(&ahead.request);
        ck_assert(append(fill));
        take_to(&behind, length);
        ck_assert_uint_eq(resumed, 2);
    }
    fill_fail(fill);
    end_both(&ahead, &behind);
}
END_TEST

START_TEST(a_pause_ends_when_its_last_reader_leaves)
{
    struct cache_fill *fill;
    struct reader reader;

    fill = join_windowed(&reader);
    append_to_pause(fill);
    ck_assert(cache_leave(&reader.request.waiter));
    ck_assert_uint_eq(resumed, 1);
    /* And what comes still is not kept. */
    for (unsigned i = 0; i < 500; i++)
        ck_assert(!append(fill));
    ck_assert_uint_le(memory_used(&account, MEMORY_PAGES), SLACK);
    finish(fill);
    request_take(&reader.request);
    request_end(&reader.request);
}
END_TEST

/* ---- waiters that need the whole body -------------------------------------------------------- */

START_TEST(a_waiter_that_does_not_stream_keeps_the_body_whole_or_fails)
{
    struct requester whole = {0};
    struct cache_fill *fill;
    struct reader reader;

    join(&reader, CACHE_MISS);
    ck_assert_int_eq(request_lookup(&whole, cache, "a", 0, false), CACHE_BUSY);
    fill = reader.request.found.fill;
    fill_head(fill, -1, &account);
    append(fill);
    ck_assert_int_eq(cache_fill_unstore(fill, &of_streams), EBUSY);
    ck_assert(!object_is_windowed(fill->object));
    ck_assert_uint_eq(request_take(&whole), 0);
    ck_assert_uint_eq(pages_stats(cache).busy, 1);
    ck_assert_int_eq(cache_fill_unstore(fill, &window), 0);
    ck_assert_uint_eq(request_take(&whole), WAITER_FAILED);
    ck_assert_uint_eq(whole.waiter.failure->status, 22);
    request_end(&whole);
    take_to(&reader, PIECE);
    finish(fill);
    ck_assert(request_take(&reader.request) & WAITER_END);
    request_end(&reader.request);
}
END_TEST

/* ---- the table ------------------------------------------------------------------------------- */

START_TEST(no_later_request_joins_and_an_expired_page_is_gone)
{
    struct cache_fill *fill;
    struct reader reader, later;

    if (_i)
        ck_assert_int_eq(pages_store_until(cache, "a", 5, 10), CACHE_STORED);
    reader = (struct reader){0};
    ck_assert_int_eq(request_lookup(&reader.request, cache, "a", 100, true),
                     _i ? CACHE_STALE : CACHE_MISS);
    object_release(&reader.request.found.object);
    fill = reader.request.found.fill;
    fill_head(fill, -1, &account);
    ck_assert_int_eq(cache_fill_unstore(fill, &window), 0);
    ck_assert_uint_eq(pages_stats(cache).pages, 0);
    ck_assert_uint_eq(pages_stats(cache).busy, 0);
    join(&later, CACHE_MISS);
    ck_assert_int_eq(fill_page(later.request.found.fill, 7), CACHE_STORED);
    request_take(&later.request);
    request_end(&later.request);
    append(fill);
    finish(fill);
    ck_assert(pages_hit(cache, "a"));
    request_take(&reader.request);
    request_end(&reader.request);
}
END_TEST

START_TEST(a_bypass_or_a_purged_fill_may_be_windowed)
{
    struct cache_fill *fill;
    struct reader reader = {.request.waiter.streams = true};

    if (_i == 0) {
        request_lookup_with(&reader.request, cache, "a", 0, (struct cache_request){.pass = true});
    } else {
        join(&reader, CACHE_MISS);
        cache_purge_all(cache);
    }
    fill = reader.request.found.fill;
    fill_head(fill, -1, &account);
    ck_assert_int_eq(cache_fill_unstore(fill, &window), 0);
    take_to(&reader, append_to_pause(fill));
    ck_assert_uint_eq(resumed, 1);
    finish(fill);
    request_take(&reader.request);
    request_end(&reader.request);
}
END_TEST

/* ---- fills that no request waits for --------------------------------------------------------- */

static bool gives_up;

static bool
unwanted(struct cache_fill *fill)
{
    ck_assert(cache_fill_is_unwanted(fill));
    abandoned++;
    return gives_up;
}

START_TEST(the_owner_is_asked_when_the_last_waiter_leaves)
{
    struct requester one = {0}, two = {0}, later = {0};
    struct cache_fill *fill;

    gives_up = _i;
    ck_assert_int_eq(request_lookup(&one, cache, "a", 0, false), CACHE_MISS);
    fill = one.found.fill;
    fill->unwanted = unwanted;
    ck_assert_int_eq(request_lookup(&two, cache, "a", 0, true), CACHE_BUSY);
    ck_assert(cache_leave(&one.waiter));
    ck_assert_uint_eq(abandoned, 0);
    ck_assert(cache_leave(&two.waiter));
    ck_assert_uint_eq(abandoned, 1);
    if (gives_up) {
        ck_assert_int_eq(request_lookup(&later, cache, "a", 0, false), CACHE_MISS);
        fill_fail(later.found.fill);
        fill_fail(fill);
    } else {
        ck_assert_int_eq(request_lookup(&later, cache, "a", 0, false), CACHE_BUSY);
        ck_assert_int_eq(fill_page(fill, 5), CACHE_STORED);
        ck_assert_uint_eq(abandoned, 1);
    }
    request_take(&one);
    request_take(&two);
    request_take(&later);
    request_end(&one);
    request_end(&two);
    request_end(&later);
}
END_TEST

START_TEST(a_fill_is_abandoned_only_while_no_request_waits)
{
    struct requester one = {0}, later = {0};
    struct cache_fill *fill;

    ck_assert_int_eq(request_lookup(&one, cache, "a", 0, false), CACHE_MISS);
    fill = one.found.fill;
    ck_assert(!cache_fill_is_unwanted(fill));
    ck_assert(!cache_fill_abandon(fill));
    ck_assert(cache_leave(&one.waiter));
    ck_assert(cache_fill_is_unwanted(fill));
    ck_assert(cache_fill_abandon(fill));
    ck_assert_int_eq(request_lookup(&later, cache, "a", 0, false), CACHE_MISS);
    fill_fail(fill);
    fill_fail(later.found.fill);
    request_take(&later);
    request_end(&one);
    request_end(&later);
}
END_TEST

START_TEST(readers_that_lag_do_not_keep_a_fill_wanted)
{
    struct reader quick, slow;
    struct cache_fill *fill;

    gives_up = true;
    join(&quick, CACHE_MISS);
    join(&slow, CACHE_BUSY);
    fill = quick.request.found.fill;
    fill->unwanted = unwanted;
    fill_head(fill, -1, &account);
    ck_assert_int_eq(cache_fill_unstore(fill, &window), 0);
    while (!slow.request.waiter.lags) {
        append(fill);
        take_to(&quick, object_length(fill->object));
    }
    ck_assert(cache_leave(&quick.request.waiter));
    ck_assert_uint_eq(abandoned, 1);
    fill_fail(fill);
    end_both(&quick, &slow);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/window");
    TCase *tc = tcase_create("window");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, the_only_reader_slows_the_fetch_down_and_bounds_the_memory, 0, 2);
    tcase_add_test(tc, what_has_not_been_read_at_the_end_can_be_read_after_it);
    tcase_add_test(tc, a_short_body_with_a_window_stays_as_it_is);
    tcase_add_test(tc, a_body_may_become_windowed_when_readers_have_read_some_of_it);
    tcase_add_test(tc, a_reader_that_lags_fails_and_slows_no_other_down);
    tcase_add_test(tc, a_reader_that_has_failed_and_stays_pauses_the_fetch_in_the_end);
    tcase_add_loop_test(tc, a_reader_that_has_failed_gets_no_second_last_event, 0, 2);
    tcase_add_loop_test(tc, the_slowest_frees_and_the_farthest_resumes_when_others_leave, 0, 2);
    tcase_add_test(tc, a_pause_ends_when_its_last_reader_leaves);
    tcase_add_test(tc, a_waiter_that_does_not_stream_keeps_the_body_whole_or_fails);
    tcase_add_loop_test(tc, no_later_request_joins_and_an_expired_page_is_gone, 0, 2);
    tcase_add_loop_test(tc, a_bypass_or_a_purged_fill_may_be_windowed, 0, 2);
    tcase_add_loop_test(tc, the_owner_is_asked_when_the_last_waiter_leaves, 0, 2);
    tcase_add_test(tc, a_fill_is_abandoned_only_while_no_request_waits);
    tcase_add_test(tc, readers_that_lag_do_not_keep_a_fill_wanted);
    suite_add_tcase(suite, tc);
    return suite;
}
