/*
 * The order of an answer's parts, alone and in a transfer: whatever order libcurl calls back in, no
 * consumer gets a body before the head, two heads, or an end without a head.
 */
#define UNIT_STARTS_NO_THREAD

#include <stdio.h>

#include "fetch/transfer.h"

#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#define PARTS (ANSWER_TRAILER_LINE + 1)
#define STATES (ANSWER_BROKEN + 1)

START_TEST(each_transition)
{
    static const struct {
        enum answer_state from;
        enum answer_part part;
        enum answer_state to;
    } rows[] = {
        {ANSWER_AWAITED, ANSWER_STATUS_LINE, ANSWER_HEAD},
        {ANSWER_HEAD, ANSWER_FIELD_LINE, ANSWER_HEAD},
        {ANSWER_HEAD, ANSWER_END_OF_INTERIM, ANSWER_AWAITED},
        {ANSWER_HEAD, ANSWER_END_OF_HEAD, ANSWER_BODY},
        {ANSWER_HEAD, ANSWER_END_OF_BODILESS, ANSWER_NO_BODY},
        {ANSWER_BODY, ANSWER_BYTES, ANSWER_BODY},
        {ANSWER_BODY, ANSWER_TRAILER_LINE, ANSWER_TRAILERS},
        {ANSWER_NO_BODY, ANSWER_TRAILER_LINE, ANSWER_NO_BODY},
        {ANSWER_TRAILERS, ANSWER_TRAILER_LINE, ANSWER_TRAILERS},
    };
    enum answer_state to[STATES][PARTS];

    for (int state = 0; state < STATES; state++)
        for (int part = 0; part < PARTS; part++)
            to[state][part] = ANSWER_BROKEN;
    for (size_t i = 0; i < LENGTH(rows); i++)
        to[rows[i].from][rows[i].part] = rows[i].to;
    for (int state = 0; state < STATES; state++)
        for (int part = 0; part < PARTS; part++) {
            enum answer_state now = (enum answer_state)state;
            bool taken = answer_advance(&now, (enum answer_part)part);

            ck_assert_msg(now == to[state][part], "%d, %d: %d", state, part, (int)now);
            ck_assert_int_eq(taken, now != ANSWER_BROKEN);
        }
}
END_TEST

START_TEST(which_states_have_the_head)
{
    for (int state = 0; state < STATES; state++)
        ck_assert_int_eq(answer_has_head((enum answer_state)state), state == ANSWER_BODY ||
                                                                        state == ANSWER_NO_BODY ||
                                                                        state == ANSWER_TRAILERS);
}
END_TEST

/* ---- a transfer ------------------------------------------------------------------------------ */

/* What its consumer got. */
struct taken {
    unsigned interims, heads;
    size_t bytes;
    bool too_early; /* a part came before the head, or an interim head after it */
};

static void
take_response(void *context, const struct fetch_response *response)
{
    (void)context;
    (void)response;
}

static void
take_interim(void *context, unsigned status, struct span lines)
{
    struct taken *taken = context;

    (void)status;
    (void)lines;
    taken->interims++;
    taken->too_early = taken->too_early || taken->heads;
}

static enum fetch_flow
take_head(void *context, const struct fetch_head *head)
{
    struct taken *taken = context;

    (void)head;
    taken->heads++;
    return FETCH_CONTINUE;
}

static enum fetch_flow
take_body(void *context, const void *bytes, size_t len)
{
    struct taken *taken = context;

    (void)bytes;
    taken->bytes += len;
    taken->too_early = taken->too_early || !taken->heads;
    return FETCH_CONTINUE;
}

static void
take_change(struct consumer *consumer, enum transfer_change change)
{
    (void)consumer;
    (void)change;
}

/* What libcurl may call back with. */
static const struct call {
    bool body;
    const char *bytes;
} calls[] = {
    {false, "HTTP/1.1 200 OK\r\n"},
    {false, "HTTP/1.1 103 Early\r\n"},
    {false, "HTTP/1.1 204 No\r\n"},
    {false, "A: b\r\n"},
    {false, "\r\n"},
    {false, "\r\r\n"},
    {true, "hello"},
};

/* One call; false if libcurl is told to end the transfer. */
static bool
make_call(struct transfer *t, const struct call *call)
{
    char bytes[32];
    size_t len = strlen(call->bytes);

    memcpy(bytes, call->bytes, len + 1);
    return (call->body ? transfer_on_body(bytes, 1, len, t)
                       : transfer_on_header(bytes, 1, len, t)) == len;
}

#define CALLS 5

static void
make_calls(unsigned number, const struct transfer *begun, struct taken *taken)
{
    struct transfer t = *begun;
    unsigned rest = number;
    bool goes_on = true;

    *taken = (struct taken){0};
    buf_init(&t.lines, t.settings->config.max_headers);
    for (unsigned i = 0; i < CALLS; i++, rest /= LENGTH(calls)) {
        bool before = goes_on;

        /* A call after one that libcurl was told to end at changes nothing. */
        goes_on = make_call(&t, &calls[rest % LENGTH(calls)]);
        ck_assert_msg(before || !goes_on, "%u", number);
    }
    ck_assert_msg(taken->heads <= 1 && !taken->too_early, "%u", number);
    ck_assert_msg(goes_on || t.error, "%u", number);
    ck_assert_msg(taken->heads == 1 || t.stage != TRANSFER_COMPLETE, "%u", number);
    ck_assert_msg(transfer_evaluate(&t, CURLE_OK) != FETCH_OK || taken->heads == 1, "%u", number);
    ck_assert_msg(t.error == FETCH_OK || t.error == FETCH_ORIGIN_BROKE, "%u: %s", number,
                  t.sentence);
    http_response_head_free(&t.head);
    buf_free(&t.lines);
}

/* Each sequence of calls, with and without a request's body that has not been sent. */
START_TEST(any_order_of_calls)
{
    struct request request = {0};
    struct target target = {.host = (char[]){"example.test"}};
    static struct settings settings = {.config = {.max_headers = 4096, .max_body = 4096}};
    static struct transfer_place place = {
        .settings = &settings,
        .turn_us = 1,
        .changed = take_change,
    };
    unsigned sequences = 1, fine = 0;
    struct taken taken;
    struct consumer consumer = {
        .request = &request,
        .sink = {.response = take_response,
                 .interim = take_interim,
                 .head = take_head,
                 .body = take_body},
        .context = &taken,
    };
    struct transfer t = {
        .easy = curl_easy_init(),
        .place = &place,
        .settings = &settings,
        .consumer = &consumer,
        .target = &target,
        .request = &request,
        .stage = TRANSFER_ASKED,
        .upload = {.stage = _i == 0 ? UPLOAD_COMPLETE : UPLOAD_FLOWS},
    };

    ck_assert_ptr_nonnull(t.easy);
    for (unsigned i = 0; i < CALLS; i++)
        sequences *= (unsigned)LENGTH(calls);
    for (unsigned number = 0; number < sequences; number++) {
        make_calls(number, &t, &taken);
        fine += taken.heads;
    }
    ck_assert_uint_gt(fine, 0);
    ck_assert_uint_lt(fine, sequences);
    curl_easy_cleanup(t.easy);
}
END_TEST

/* libcurl hands over a paused piece again, whole: a shorter one is refused. */
START_TEST(a_paused_piece_that_shrinks)
{
    struct request request = {.flags = REQUEST_STREAMS};
    struct target target = {.host = (char[]){"example.test"}};
    static struct settings settings = {.config = {.max_headers = 4096, .max_body = 4096}};
    static struct transfer_place place = {
        .settings = &settings,
    };
    struct transfer t = {
        .place = &place,
        .settings = &settings,
        .target = &target,
        .request = &request,
        .answer = ANSWER_BODY,
        .used = 5,
    };
    char bytes[] = "hell";

    ck_assert_uint_eq(transfer_on_body(bytes, 1, 4, &t), 0);
    ck_assert_int_eq(t.error, FETCH_INTERNAL);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch: the order of an answer");
    TCase *tc = tcase_create("order");

    tcase_add_test(tc, each_transition);
    tcase_add_test(tc, which_states_have_the_head);
    tcase_add_loop_test(tc, any_order_of_calls, 0, 2);
    tcase_add_test(tc, a_paused_piece_that_shrinks);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(suite, tc);
    return suite;
}
