/*
 * Bodies of any size for fronts that stream: which are kept whole, which have a window, when their
 * fetch pauses, and when it ends because no request waits.
 */
#define UNIT_STARTS_NO_THREAD

#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define KIB ((size_t)1024)
#define PIECE (64 * KIB)
#ifdef __SANITIZE_THREAD__
#define LARGE (40 * MIB) /* checking each byte twice as large takes half a minute of CPU time */
#else
#define LARGE (100 * MIB)
#endif

/* What a body with a window takes: a piece and two segments beside the window. */
#define MOST (ORIGIN_FILL_WINDOW + PIECE + 512 * KIB)

static struct scene_fetch *
begin(struct visit *visit, unsigned status, const char *lines, int64_t length)
{
    struct scene_fetch *fetch;

    visit_url(visit, URL, 1);
    fetch = scene_fetch(NULL);
    fetch->sink->begin(fetch->context);
    scene_response_of(fetch, status, lines);
    ck_assert_int_eq(scene_head(fetch, status, lines, length), FETCH_CONTINUE);
    scene_run();
    return fetch;
}

/*
 * Sends pieces, which are read at once but by visits that pace, until `length` is sent or the fetch
 * stays paused; returns the length so far.
 */
static size_t
send_to(struct scene_fetch *fetch, size_t from, size_t length)
{
    bool paused = false;

    while (from < length && !paused) {
        size_t len = length - from < PIECE ? length - from : PIECE;
        unsigned resumes = fetch->resumes;
        enum fetch_flow flow = scene_body(fetch, len);

        ck_assert_int_ne(flow, FETCH_ABORT);
        scene_run();
        paused = flow == FETCH_PAUSE && fetch->resumes == resumes;
        from += len;
    }
    return from;
}

static size_t
used(void)
{
    return (size_t)memory_used(&scene.account, MEMORY_PAGES);
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static const struct response {
    const char *lines;
    unsigned status;
    bool has_length, bypass;
    uint64_t max_page;
} unstored[] = {
    {"Cache-Control: no-store\r\n", 200, true, false, 0},
    {"Cache-Control: no-store\r\n", 200, false, false, 0},
    {"", 404, true, false, 0},
    {"", 200, true, true, 0},
    {"", 200, false, true, 0},
    {"", 200, true, false, LARGE - 1}, /* too large, as its head says */
    {"", 200, true, false, 1000},
};

START_TEST(a_body_that_is_not_stored_takes_a_window_of_memory_at_any_size)
{
    const struct response *response = &unstored[_i];
    struct visit v = {.streams = true, .paces = true, .no_store = response->bypass};
    size_t sent = 0, most = 0, pauses = 0;
    struct scene_fetch *fetch;

    scene_begin(&(struct scene_options){.max_page = response->max_page});
    v.url = URL;
    ck_assert(!visit(&v));
    fetch = scene_fetch(URL);
    ck_assert_uint_eq(fetch->flags, REQUEST_STREAMS);
    scene_response_of(fetch, response->status, response->lines);
    scene_head(fetch, response->status, response->lines,
               response->has_length ? (int64_t)LARGE : -1);
    while (sent < LARGE) {
        size_t before = sent;

        sent = send_to(fetch, sent, LARGE);
        most = used() > most ? used() : most;
        ck_assert_uint_gt(sent, before);
        if (sent == LARGE)
            break;
        pauses++;
        ck_assert_uint_gt(sent, v.got + ORIGIN_FILL_WINDOW);
        ck_assert_uint_eq(fetch->resumes, pauses - 1);
        visit_read_to(&v, sent - ORIGIN_FILL_WINDOW / 2);
        ck_assert_uint_eq(fetch->resumes, pauses);
    }
    ck_assert_uint_gt(pauses, LARGE / MIB * 9 / 10);
    ck_assert_uint_le(most, MOST + object_size(v.exchange.object) % KIB);
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    ck_assert(!v.ended);
    visit_read_to(&v, LARGE);
    expect_body(&v, response->bypass ? OUTCOME_BYPASS : OUTCOME_MISS, LARGE);
    ck_assert(!v.stored);
    ck_assert_uint_eq(scene_stats().pages, 0);
    scene_end();
}
END_TEST

START_TEST(a_body_of_unknown_length_gets_a_window_when_it_is_too_large_to_be_stored)
{
    struct visit v = {.streams = true, .paces = true}, later = {.streams = true};
    const size_t max_page = 8 * MIB;
    struct scene_fetch *fetch;
    size_t sent;

    scene_begin(&(struct scene_options){.max_page = max_page});
    fetch = begin(&v, 200, "", -1);
    /* It may be stored: its reader slows nothing down, and all of it is kept. */
    ck_assert_uint_eq(send_to(fetch, 0, max_page), max_page);
    visit_read_to(&v, max_page - PIECE);
    ck_assert_uint_ge(used(), max_page);
    sent = send_to(fetch, max_page, max_page + 1);
    ck_assert_uint_eq(sent, max_page + 1);
    ck_assert_uint_le(used(), MOST);
    sent = send_to(fetch, sent, LARGE);
    ck_assert_uint_lt(sent, max_page + ORIGIN_FILL_WINDOW + PIECE);
    /* No later request joins it. */
    visit_url(&later, URL, 2);
    ck_assert_uint_eq(scene_fetches(), 2);
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    visit_read_to(&v, sent);
    expect_body(&v, OUTCOME_MISS, sent);
    ck_assert(!v.stored);
    scene_respond(URL, "", 10);
    expect_body(&later, OUTCOME_MISS, 10);
    ck_assert(later.stored);
    scene_end();
}
END_TEST

START_TEST(a_body_that_is_stored_is_kept_whole_and_no_reader_slows_it_down)
{
    struct visit slow = {.streams = true, .paces = true}, quick = {.streams = true};
    struct scene_fetch *fetch;

    scene_begin(&(struct scene_options){.max_page = LARGE});
    fetch = begin(&slow, 200, "", _i ? (int64_t)LARGE : -1);
    visit_url(&quick, URL, 2);
    ck_assert_uint_eq(send_to(fetch, 0, LARGE), LARGE);
    ck_assert_uint_eq(quick.got, LARGE);
    ck_assert_uint_ge(used(), LARGE);
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    expect_body(&quick, OUTCOME_COALESCED, LARGE);
    ck_assert(quick.stored);
    visit_read_to(&slow, LARGE);
    expect_body(&slow, OUTCOME_MISS, LARGE);
    slow = (struct visit){.url = URL, .streams = true};
    ck_assert(visit(&slow));
    expect_body(&slow, OUTCOME_HIT, LARGE);
    scene_end();
}
END_TEST

/* By default: an eighth of the capacity, and without one what other fronts take. */
START_TEST(the_largest_stored_body_follows_the_capacity)
{
    static const char fresh[] = "Cache-Control: max-age=10\r\n";
    static const struct {
        uint64_t capacity_bytes, max_page, largest;
        bool http;
    } cases[] = {
        {32 * MIB, 0, 4 * MIB, false},
        {32 * MIB, 0, 4 * MIB, true},
        {0, 0, MIB, false},
        {0, 0, MIB, true},
        {32 * MIB, 5 * MIB, 5 * MIB, false},
        /* In a small cache RPC stores what version 1 can carry. */
        {4 * MIB, 0, MIB, false},
        {4 * MIB, 0, MIB / 2, true},
    };

    for (unsigned over = 0; over < 2; over++) {
        struct visit v = {.url = URL, .streams = true, .http = cases[_i].http};
        struct scene_fetch *fetch;
        size_t len = cases[_i].largest + over;

        scene_begin(&(struct scene_options){.capacity_bytes = cases[_i].capacity_bytes,
                                            .max_page = cases[_i].max_page});
        ck_assert(!visit(&v));
        fetch = scene_fetch(URL);
        scene_response(fetch, fresh, false);
        ck_assert_int_eq(scene_head(fetch, 200, fresh, (int64_t)len), FETCH_CONTINUE);
        scene_run();
        send_to(fetch, 0, len);
        scene_done(fetch, FETCH_OK, "");
        scene_run();
        expect_body(&v, OUTCOME_MISS, len);
        ck_assert_int_eq(v.stored, !over);
        scene_end();
    }
}
END_TEST

/* ---- several requests ------------------------------------------------------------------------ */

START_TEST(a_reader_far_behind_another_fails_and_slows_nothing_down)
{
    struct visit quick = {.streams = true}, slow = {.streams = true, .paces = true};
    struct scene_fetch *fetch;
    size_t sent = 0, most = 0;

    scene_begin(&(struct scene_options){.max_page = MIB});
    visit_url(&quick, URL, 1);
    visit_url(&slow, URL, 2);
    fetch = scene_fetch(URL);
    scene_response(fetch, "", false);
    scene_head(fetch, 200, "", (int64_t)LARGE);
    scene_run();
    visit_read_to(&slow, 10 * KIB);
    while (sent < LARGE) {
        size_t before = sent;

        sent = send_to(fetch, sent, sent + PIECE);
        ck_assert_uint_eq(sent, before + PIECE);
        ck_assert_uint_eq(quick.got, sent);
        ck_assert_int_eq(slow.ended, sent - 10 * KIB > ORIGIN_FILL_LAG);
        most = used() > most ? used() : most;
    }
    ck_assert_uint_eq(fetch->resumes, 0);
    ck_assert_uint_le(most, ORIGIN_FILL_LAG + MOST);
    ck_assert_int_eq(slow.why, FAILURE_OVERLOADED);
    ck_assert_uint_eq(slow.fails, 1);
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    expect_body(&quick, OUTCOME_MISS, LARGE);
    scene_end();
}
END_TEST

/* With one that needs the whole body, it is kept whole as far as such a front takes it. */
START_TEST(a_request_that_does_not_stream_gets_the_body_or_a_failure)
{
    const size_t sizes[] = {3 * MIB, 4 * MIB + 1};
    bool has_length = _i & 1, too_large = _i & 2;
    size_t size = sizes[too_large], sent;
    struct visit streams = {.streams = true}, whole = {0};
    struct scene_fetch *fetch;

    scene_begin(&(struct scene_options){.max_body = 4 * MIB, .max_page = 2 * MIB});
    visit_url(&streams, URL, 1);
    visit_url(&whole, URL, 2);
    fetch = scene_fetch(URL);
    scene_response(fetch, "", false);
    scene_head(fetch, 200, "", has_length ? (int64_t)size : -1);
    sent = send_to(fetch, 0, size);
    ck_assert_uint_eq(sent, size);
    if (too_large)
        expect_failure(&whole, FAILURE_TOO_LARGE, "larger than the proxy takes");
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    expect_body(&streams, OUTCOME_MISS, size);
    ck_assert(!streams.stored);
    if (!too_large)
        expect_body(&whole, OUTCOME_COALESCED, size);
    scene_end();
}
END_TEST

START_TEST(a_front_that_does_not_stream_has_its_bound_for_stored_bodies_too)
{
    struct visit streams = {.streams = true}, joined = {0}, later = {.url = URL};
    struct scene_fetch *fetch;

    scene_begin(&(struct scene_options){.max_body = 4 * MIB, .max_page = 10 * MIB});
    fetch = begin(&streams, 200, "", (int64_t)(5 * MIB));
    visit_url(&joined, URL, 2);
    send_to(fetch, 0, 5 * MIB);
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    expect_body(&streams, OUTCOME_MISS, 5 * MIB);
    ck_assert(streams.stored);
    expect_failure(&joined, FAILURE_TOO_LARGE, "larger than the proxy takes");
    ck_assert(visit(&later));
    expect_failure(&later, FAILURE_TOO_LARGE, "larger than the proxy takes");
    scene_end();
}
END_TEST

START_TEST(a_fetch_for_a_front_that_does_not_stream_is_bounded_and_never_pauses)
{
    struct visit v = {0};
    struct scene_fetch *fetch;
    size_t sent;

    scene_begin(&(struct scene_options){.max_body = 4 * MIB, .max_page = _i ? 1000 : 0});
    visit_url(&v, URL, 1);
    fetch = scene_fetch(URL);
    ck_assert_uint_eq(fetch->flags, 0);
    scene_response(fetch, _i ? "Cache-Control: no-store\r\n" : "", false);
    scene_head(fetch, 200, "", -1);
    sent = send_to(fetch, 0, 4 * MIB);
    ck_assert_uint_eq(sent, 4 * MIB);
    ck_assert_int_eq(scene_body(fetch, 1), FETCH_ABORT);
    scene_run();
    expect_failure(&v, FAILURE_TOO_LARGE, "larger");
    scene_done(fetch, FETCH_INTERNAL, "");
    scene_end();
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

START_TEST(an_object_for_which_memory_runs_out_is_passed_on_and_not_stored)
{
    struct visit v = {.streams = true};
    struct scene_fetch *fetch;

    /* Of the account three quarters are for bodies. */
    scene_begin(&(struct scene_options){.memory = 16 * MIB, .max_page = 2 * LARGE});
    fetch = begin(&v, 200, "", _i ? (int64_t)LARGE : -1);
    for (size_t sent = 0; sent < LARGE; sent += PIECE)
        ck_assert_uint_eq(send_to(fetch, sent, sent + PIECE), sent + PIECE);
    ck_assert_uint_le(used(), MOST);
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    expect_body(&v, OUTCOME_MISS, LARGE);
    ck_assert(!v.stored);
    scene_end();
}
END_TEST

START_TEST(a_reader_too_slow_for_the_memory_that_is_left_fails)
{
    struct visit v = {.streams = true, .paces = true};
    struct scene_fetch *fetch;
    size_t sent = 0;

    scene_begin(&(struct scene_options){.memory = 16 * MIB, .max_page = 2 * LARGE});
    fetch = begin(&v, 200, "", -1);
    while (scene_body(fetch, PIECE) == FETCH_CONTINUE)
        ck_assert_uint_lt(sent += PIECE, 12 * MIB);
    scene_run();
    ck_assert(v.ended);
    ck_assert_int_eq(v.why, FAILURE_OVERLOADED);
    scene_done(fetch, FETCH_INTERNAL, "");
    scene_end();
}
END_TEST

/* ---- requests that are cancelled ------------------------------------------------------------- */

static const struct ending {
    const char *lines;
    int64_t length;
    size_t received;
    bool before_head, goes_on;
} endings[] = {
    {"", 5, 0, true, true}, /* nothing is known before the head: it decides then */
    {"", (1 << 20) - 1, 0, false, true},
    {"", (1 << 20) + 1000, 1000, false, false}, /* a whole MiB is missing */
    {"", (1 << 20) + 1000, 1001, false, true},
    {"", 8 << 20, 6 << 20, false, false},
    {"", 8 << 20, (6 << 20) + 1, false, true},
    {"", 8 << 20, 1 << 20, false, false},
    {"", -1, 1000, false, true},
    {"", -1, 1 << 20, false, false},
    {"", 40 << 20, 39 << 20, false, false}, /* larger than what is stored */
    {"Cache-Control: no-store\r\n", 1000, 10, false, false},
    {"Cache-Control: no-store\r\n", -1, 0, false, false},
    {"Cache-Control: no-store\r\n", 8 << 20, 7 << 20, false, false},
};

START_TEST(the_fetch_ends_with_its_last_request_unless_little_is_missing)
{
    const struct ending *ending = &endings[_i];
    struct visit one = {.streams = true}, two = {.streams = true}, later = {.streams = true};
    struct scene_fetch *fetch;

    scene_begin(&(struct scene_options){.max_page = 30 * MIB, .max_body = 30 * MIB});
    visit_url(&one, URL, 1);
    visit_url(&two, URL, 2);
    fetch = scene_fetch(URL);
    if (!ending->before_head) {
        scene_response(fetch, ending->lines, false);
        scene_run();
        scene_head(fetch, 200, ending->lines, ending->length);
        send_to(fetch, 0, ending->received);
        scene_run();
    }
    if (scene_fetches() == 2) {
        /* An unshared response: the other request has a fetch of its own. */
        scene_done(TAILQ_NEXT(fetch, link), FETCH_CONNECT_FAILED, "no");
        scene_run();
        expect_failure(&two, FAILURE_CONNECT, "no");
    } else {
        ck_assert(visit_cancel(&two));
        ck_assert(!fetch->cancelled);
    }
    ck_assert(visit_cancel(&one));
    ck_assert_int_eq(fetch->cancelled, !ending->goes_on);
    visit_url(&later, URL, 3);
    if (ending->goes_on) {
        ck_assert_uint_eq(scene_fetches(), 1);
        if (ending->before_head) {
            scene_response(fetch, "", false);
            scene_head(fetch, 200, "", ending->length);
        }
        send_to(fetch, 0, ending->length < 0 ? 10 : (size_t)ending->length - ending->received);
        scene_done(fetch, FETCH_OK, "");
        scene_run();
        ck_assert(later.stored);
        ck_assert_str_eq(outcome_word(later.outcome), outcome_word(OUTCOME_COALESCED));
    } else {
        struct scene_fetch *own = TAILQ_NEXT(fetch, link);

        ck_assert_ptr_nonnull(own);
        scene_done(fetch, FETCH_CANCELLED, "cancelled");
        ck_assert_int_eq(scene.fetched.failure, FAILURE_CANCELLED);
        ck_assert(!later.ended);
        scene_done(own, FETCH_CONNECT_FAILED, "no");
        scene_run();
        expect_failure(&later, FAILURE_CONNECT, "no");
    }
    scene_end();
}
END_TEST

/* What the head or the body tells afterwards. */
START_TEST(a_fetch_without_requests_ends_when_it_turns_out_to_be_large)
{
    struct visit v = {0}, later = {0};
    struct scene_fetch *fetch;

    scene_begin(&(struct scene_options){.max_body = 30 * MIB});
    visit_url(&v, URL, 1);
    fetch = scene_fetch(URL);
    ck_assert(visit_cancel(&v));
    ck_assert(!fetch->cancelled);
    scene_response(fetch, "", false);
    if (_i == 0) {
        ck_assert_int_eq(scene_head(fetch, 200, "", 2 << 20), FETCH_ABORT);
    } else {
        ck_assert_int_eq(scene_head(fetch, 200, "", -1), FETCH_CONTINUE);
        for (unsigned i = 0; i < 16; i++)
            ck_assert_int_eq(scene_body(fetch, PIECE), FETCH_CONTINUE);
        ck_assert_int_eq(scene_body(fetch, PIECE), FETCH_ABORT);
    }
    visit_url(&later, URL, 2);
    ck_assert_uint_eq(scene_fetches(), 2);
    scene_done(fetch, FETCH_INTERNAL, "");
    ck_assert_int_eq(scene.fetched.failure, FAILURE_CANCELLED);
    scene_respond(URL, "", 5);
    expect_body(&later, OUTCOME_MISS, 5);
    scene_end();
}
END_TEST

START_TEST(a_fetch_without_requests_ends_after_a_minute)
{
    struct visit v = {0}, later = {0};
    struct scene_fetch *fetch;

    scene_begin(&(struct scene_options){0});
    visit_url(&v, URL, 1);
    fetch = scene_fetch(URL);
    scene_response(fetch, "", false);
    scene_head(fetch, 200, "", 1000);
    ck_assert(visit_cancel(&v));
    ck_assert_int_eq(scene_body(fetch, 1), FETCH_CONTINUE);
    scene.now_us += 40 * SECOND;
    ck_assert_int_eq(scene_body(fetch, 1), FETCH_CONTINUE);
    /* A request that joins begins the time anew. */
    visit_url(&later, URL, 2);
    ck_assert_int_eq(scene_body(fetch, 1), FETCH_CONTINUE);
    ck_assert(visit_cancel(&later));
    scene.now_us += 30 * SECOND;
    ck_assert_int_eq(scene_body(fetch, 1), FETCH_CONTINUE);
    scene.now_us += 60 * SECOND;
    ck_assert_int_eq(scene_body(fetch, 1), FETCH_CONTINUE);
    scene.now_us += 1;
    ck_assert_int_eq(scene_body(fetch, 1), FETCH_ABORT);
    scene_done(fetch, FETCH_INTERNAL, "");
    scene_end();
}
END_TEST

/* Ending it would leave open whether the origin has acted on the request. */
START_TEST(a_request_that_changes_the_origin_is_fetched_up_to_its_head)
{
    struct visit v = {.url = URL, .streams = true, .http = true, .method = "DELETE"};
    struct scene_fetch *fetch;

    scene_begin(&(struct scene_options){0});
    ck_assert(!visit(&v));
    fetch = scene_fetch(URL);
    ck_assert(visit_cancel(&v));
    ck_assert(!fetch->cancelled);
    scene_response(fetch, "", false);
    ck_assert_int_eq(scene_head(fetch, 200, "", 10), FETCH_ABORT);
    scene_done(fetch, FETCH_INTERNAL, "");
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: bodies of any size");
    TCase *cases = tcase_create("all");

    tcase_set_timeout(cases, 300);
    tcase_add_loop_test(cases, a_body_that_is_not_stored_takes_a_window_of_memory_at_any_size, 0,
                        sizeof(unstored) / sizeof(unstored[0]));
    tcase_add_test(cases, a_body_of_unknown_length_gets_a_window_when_it_is_too_large_to_be_stored);
    tcase_add_loop_test(cases, a_body_that_is_stored_is_kept_whole_and_no_reader_slows_it_down, 0,
                        2);
    tcase_add_loop_test(cases, the_largest_stored_body_follows_the_capacity, 0, 7);
    tcase_add_test(cases, a_reader_far_behind_another_fails_and_slows_nothing_down);
    tcase_add_loop_test(cases, a_request_that_does_not_stream_gets_the_body_or_a_failure, 0, 4);
    tcase_add_test(cases, a_front_that_does_not_stream_has_its_bound_for_stored_bodies_too);
    tcase_add_loop_test(cases, a_fetch_for_a_front_that_does_not_stream_is_bounded_and_never_pauses,
                        0, 2);
    tcase_add_loop_test(cases, an_object_for_which_memory_runs_out_is_passed_on_and_not_stored, 0,
                        2);
    tcase_add_test(cases, a_reader_too_slow_for_the_memory_that_is_left_fails);
    tcase_add_loop_test(cases, the_fetch_ends_with_its_last_request_unless_little_is_missing, 0,
                        sizeof(endings) / sizeof(endings[0]));
    tcase_add_loop_test(cases, a_fetch_without_requests_ends_when_it_turns_out_to_be_large, 0, 2);
    tcase_add_test(cases, a_fetch_without_requests_ends_after_a_minute);
    tcase_add_test(cases, a_request_that_changes_the_origin_is_fetched_up_to_its_head);
    suite_add_tcase(suite, cases);
    return suite;
}
