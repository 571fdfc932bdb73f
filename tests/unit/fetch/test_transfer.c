/* A transfer by itself: the check of the socket's address, repetitions, and the work in a turn. */
#include <stdio.h>

#include "fetch/transfer.h"

#include "tests/unit/fetch/scripted.h"
#include "tests/unit/unit.h"

#define BODY 10000000u

/* A transfer, and what has come of it. */
struct trial {
    struct transfer transfer;
    struct consumer consumer;
    struct transfer_place place;
    struct route route;
    struct target target;
    struct request request; /* a plain GET */
    struct resolved *resolved;
    char url[64];
    unsigned status;
    size_t body_len;
    bool body_wrong; /* it is not all zeros */
    unsigned pauses;
    bool paused;
};

static enum fetch_flow
take_head(void *context, const struct fetch_head *head)
{
    struct trial *trial = context;

    trial->status = head->status;
    return FETCH_CONTINUE;
}

static enum fetch_flow
take_body(void *context, const void *bytes, size_t len)
{
    struct trial *trial = context;

    for (size_t i = 0; i < len; i++)
        trial->body_wrong = trial->body_wrong || ((const char *)bytes)[i] != 0;
    trial->body_len += len;
    return FETCH_CONTINUE;
}

static void
take_change(struct consumer *consumer, enum transfer_change change)
{
    struct trial *trial = consumer->context;

    if (change != TRANSFER_RESTS)
        return;
    ck_assert(!trial->paused);
    trial->paused = true;
    trial->pauses++;
}

static void
trial_transfer(struct trial *trial)
{
    ck_assert(transfer_start(&trial->transfer, &trial->place, &trial->consumer,
                             &(struct transfer_order){.settings = trial->place.settings,
                                                      .target = &trial->target,
                                                      .route = &trial->route,
                                                      .addresses = trial->resolved}));
}

/* Begins one to a name that stands for `address`, whatever the policy thought of it earlier. */
static void
trial_start(struct trial *trial, const char *address, uint16_t port,
            const struct address_policy *addresses, bool by_operator, const char *connect_host)
{
    struct fetch_config config;
    char why[256];

    *trial = (struct trial){.resolved = resolved_create(1)};
    trial->route = (struct route){.host = connect_host, .port = port, .by_operator = by_operator};
    trial->consumer = (struct consumer){
        .request = &trial->request,
        .sink = {.head = take_head, .body = take_body},
        .context = trial,
    };
    trial->place.multi = curl_multi_init();
    trial->place.changed = take_change;
    connections_init(&trial->place.connections, 1, 1);
    ck_assert(poller_init(&trial->place.poller, trial->place.multi, &trial->place.connections));
    fetch_config_default(&config);
    config.addresses = addresses;
    trial->place.settings = fetch_settings_create(&config, why, sizeof(why));
    ck_assert_ptr_nonnull(trial->place.settings);
    snprintf(trial->url, sizeof(trial->url), "http://pinned.test:%u/", port);
    ck_assert_int_eq(target_parse(&trial->target, span_str(trial->url), why, sizeof(why)),
                     FETCH_OK);
    ck_assert(address_parse(address, port, &trial->resolved->list[0]));
    trial_transfer(trial);
}

/* Until libcurl is done or the transfer has paused. NULL for the latter. */
static CURLMsg *
trial_run(struct trial *trial)
{
    CURLMsg *message = NULL;
    int running, left;

    do {
        curl_multi_perform(trial->place.multi, &running);
        message = curl_multi_info_read(trial->place.multi, &left);
        if (!message && !trial->paused)
            curl_multi_poll(trial->place.multi, NULL, 0, 1000, NULL);
    } while (!message && !trial->paused);
    return message;
}

static enum fetch_error
trial_end(struct trial *trial, CURLcode code)
{
    enum fetch_error error = transfer_evaluate(&trial->transfer, code);

    if (error)
        ck_assert_str_ne(trial->transfer.sentence, "");
    else
        ck_assert_uint_eq(trial->status, 200);
    transfer_clear(&trial->transfer);
    transfer_clear(&trial->transfer);
    /* The handle is kept for other transfers if all went well. */
    ck_assert_uint_eq(trial->place.handles.count, error ? 0 : 1);
    handles_free(&trial->place.handles);
    curl_multi_cleanup(trial->place.multi);
    connections_free(&trial->place.connections);
    poller_free(&trial->place.poller);
    target_free(&trial->target);
    fetch_settings_release(&trial->place.settings);
    resolved_release(&trial->resolved);
    return error;
}

static enum fetch_error
transfer_to(const char *address, uint16_t port, const struct address_policy *addresses,
            bool by_operator, const char *connect_host)
{
    struct trial trial;
    CURLMsg *message;

    trial_start(&trial, address, port, addresses, by_operator, connect_host);
    message = trial_run(&trial);
    ck_assert_uint_eq(trial.pauses, 0);
    return trial_end(&trial, message->data.result);
}

START_TEST(the_socket_address_is_checked)
{
    static const struct line script[] = {
        {.path = "/", .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
        {.path = NULL},
    };
    struct origin *origin = origin_start(script);
    struct address_policy *closed = address_policy_create();
    struct address_policy *open = address_policy_create();
    char why[128];

    ck_assert(address_policy_allow(open, "127.0.0.0/8", why, sizeof(why)));
    ck_assert_int_eq(transfer_to("127.0.0.1", origin->port, open, false, "pinned.test"), FETCH_OK);
    ck_assert_uint_eq(origin->connections, 1);
    ck_assert_int_eq(transfer_to("127.0.0.1", origin->port, closed, false, "pinned.test"),
                     FETCH_DENIED);
    ck_assert_int_eq(transfer_to("::ffff:127.0.0.1", origin->port, closed, false, "pinned.test"),
                     FETCH_DENIED);
    ck_assert_uint_eq(origin->connections, 1);
    /* What the operator configured needs no permission. */
    ck_assert_int_eq(transfer_to("127.0.0.1", origin->port, closed, true, "pinned.test"), FETCH_OK);
    address_policy_destroy(open);
    address_policy_destroy(closed);
    origin_stop(origin);
}
END_TEST

/* As without memory in the kernel: the fetch does not wait for its time limit. */
START_TEST(a_socket_that_cannot_be_watched)
{
    struct address_policy *open = address_policy_create();
    struct trial trial;
    char why[128];

    ck_assert(address_policy_allow(open, "127.0.0.0/8", why, sizeof(why)));
    trial_start(&trial, "127.0.0.1", 1, open, false, "pinned.test");
    poller_free(&trial.place.poller);
    ck_assert_int_eq(trial_end(&trial, trial_run(&trial)->data.result), FETCH_INTERNAL);
    address_policy_destroy(open);
}
END_TEST

START_TEST(a_handle_serves_another_transfer)
{
    static const struct line script[] = {
        {.path = "/", .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
        {.path = NULL},
    };
    struct origin *origin = origin_start(script);
    struct address_policy *open = address_policy_create();
    struct trial trial;
    CURL *handle;
    char why[128];

    ck_assert(address_policy_allow(open, "127.0.0.0/8", why, sizeof(why)));
    trial_start(&trial, "127.0.0.1", origin->port, open, false, "pinned.test");
    handle = trial.transfer.easy;
    for (unsigned i = 0; i < 3; i++) {
        CURLMsg *message = trial_run(&trial);

        ck_assert_int_eq(transfer_evaluate(&trial.transfer, message->data.result), FETCH_OK);
        transfer_clear(&trial.transfer);
        ck_assert_uint_eq(trial.place.handles.count, 1);
        trial.status = 0;
        trial_transfer(&trial);
        ck_assert_ptr_eq(trial.transfer.easy, handle);
        ck_assert_uint_eq(trial.place.handles.count, 0);
    }
    ck_assert_int_eq(trial_end(&trial, trial_run(&trial)->data.result), FETCH_OK);
    /* One with another method has a handle of its own, which is not kept. */
    trial_start(&trial, "127.0.0.1", origin->port, open, false, "pinned.test");
    trial.request.method = HTTP_OPTIONS;
    ck_assert(!transfer_is_plain(&trial.transfer));
    ck_assert_int_eq(trial_end(&trial, CURLE_COULDNT_CONNECT), FETCH_CONNECT_FAILED);
    address_policy_destroy(open);
    origin_stop(origin);
}
END_TEST

static enum fetch_supply
supply_two(void *context, void *buffer, size_t size, size_t *len)
{
    (void)context;
    ck_assert_uint_ge(size, 2);
    memcpy(buffer, "bo", 2);
    *len = 2;
    return FETCH_SUPPLIED;
}

/* Whatever libcurl makes of a connection that was closed: a write begins once. */
START_TEST(a_write_is_not_begun_twice)
{
    static const char *const methods[] = {"OPTIONS", "POST", "PUT"};
    struct address_policy *closed = address_policy_create();
    char none[] = "", piece[2];
    size_t len;
    struct trial trial;

    trial_start(&trial, "127.0.0.1", 9, closed, false, "pinned.test");
    trial.request.method_name = span_str(methods[_i]);
    trial.request.method = http_method_of(trial.request.method_name);
    if (_i)
        trial.request.body = (struct request_body){.kind = REQUEST_BODY_SUPPLIED, .length = 4};
    upload_init(&trial.transfer.upload, &trial.request.body, supply_two, NULL);
    ck_assert_int_eq(upload_read(&trial.transfer.upload, piece, sizeof(piece), &len),
                     _i ? UPLOAD_PIECE : UPLOAD_ENDED);
    trial.transfer.asked = 1;
    trial.transfer.stage = TRANSFER_ASKED;
    ck_assert_int_eq(transfer_on_request(&trial.transfer, none, none, 0, 0), CURL_PREREQFUNC_ABORT);
    /* The other one is turned away for its connection only, which no one has opened. */
    ck_assert_int_eq(trial.transfer.error, _i ? FETCH_ORIGIN_BROKE : FETCH_OK);
    ck_assert_int_eq(trial.transfer.stage == TRANSFER_UNCLEAN, !_i);
    ck_assert_uint_eq(trial.transfer.upload.taken, _i ? 2 : 0);
    trial_end(&trial, CURLE_ABORTED_BY_CALLBACK);
    address_policy_destroy(closed);
}
END_TEST

/* BODY zero bytes, as one piece or in chunks. */
static struct buf
make_zeros(bool chunked)
{
    static const char zeros[1000];
    struct buf answer;

    buf_init(&answer, 2 * BODY);
    buf_append_str(&answer, "HTTP/1.1 200 OK\r\n");
    if (chunked)
        buf_append_str(&answer, "Transfer-Encoding: chunked\r\n\r\n");
    else
        buf_printf(&answer, "Content-Length: %u\r\n\r\n", BODY);
    for (unsigned i = 0; i < BODY / sizeof(zeros); i++) {
        buf_append_str(&answer, chunked ? "3e8\r\n" : "");
        buf_append(&answer, zeros, sizeof(zeros));
        buf_append_str(&answer, chunked ? "\r\n" : "");
    }
    buf_append_str(&answer, chunked ? "0\r\n\r\n" : "");
    ck_assert(!buf_failed(&answer));
    return answer;
}

/* A large body is passed on over several turns, and none of it is lost. */
START_TEST(work_in_a_turn_is_bounded)
{
    struct buf answer = make_zeros(_i == 1);
    const struct line script[] = {
        {.path = "/", .bytes = answer.data, .len = answer.len},
        {.path = NULL},
    };
    struct origin *origin = origin_start(script);
    struct address_policy *open = address_policy_create();
    size_t most = 0, before = 0;
    CURLMsg *message;
    struct trial trial;
    char why[128];

    ck_assert(address_policy_allow(open, "127.0.0.0/8", why, sizeof(why)));
    trial_start(&trial, "127.0.0.1", origin->port, open, false, "pinned.test");
    while (!(message = trial_run(&trial))) {
        most = trial.body_len - before > most ? trial.body_len - before : most;
        before = trial.body_len;
        trial.place.turn_us++;
        trial.paused = false;
        ck_assert_int_eq(transfer_next_turn(&trial.transfer), CURLE_OK);
    }
    ck_assert_uint_ge(trial.pauses, 8);
    ck_assert_uint_le(most, (1 << 20) + 65536);
    ck_assert_uint_eq(trial.body_len, BODY);
    ck_assert(!trial.body_wrong);
    ck_assert_int_eq(trial_end(&trial, message->data.result), FETCH_OK);
    address_policy_destroy(open);
    origin_stop(origin);
    buf_free(&answer);
}
END_TEST

START_TEST(given_up_during_a_pause)
{
    struct buf answer = make_zeros(false);
    const struct line script[] = {
        {.path = "/", .bytes = answer.data, .len = answer.len},
        {.path = NULL},
    };
    struct origin *origin = origin_start(script);
    struct address_policy *open = address_policy_create();
    struct trial trial;
    char why[128];

    ck_assert(address_policy_allow(open, "127.0.0.0/8", why, sizeof(why)));
    trial_start(&trial, "127.0.0.1", origin->port, open, false, "pinned.test");
    ck_assert_ptr_null(trial_run(&trial));
    ck_assert_uint_eq(trial.pauses, 1);
    transfer_fail(&trial.transfer, FETCH_TIMED_OUT, "given up");
    ck_assert_int_eq(trial_end(&trial, CURLE_OK), FETCH_TIMED_OUT);
    address_policy_destroy(open);
    origin_stop(origin);
    buf_free(&answer);
}
END_TEST

/* A name that is not pinned is never resolved by libcurl itself, where it would stall others. */
START_TEST(libcurl_resolves_nothing)
{
    struct address_policy *open = address_policy_create();
    char why[128];

    ck_assert(address_policy_allow(open, "127.0.0.0/8", why, sizeof(why)));
    ck_assert_int_eq(transfer_to("127.0.0.1", 1, open, false, "another.test"),
                     FETCH_RESOLVE_FAILED);
    address_policy_destroy(open);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/transfer");
    TCase *tc = tcase_create("transfer");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, the_socket_address_is_checked);
    tcase_add_test(tc, a_socket_that_cannot_be_watched);
    tcase_add_test(tc, a_handle_serves_another_transfer);
    tcase_add_loop_test(tc, a_write_is_not_begun_twice, 0, 3);
    tcase_add_test(tc, libcurl_resolves_nothing);
    tcase_add_test(tc, given_up_during_a_pause);
    tcase_add_loop_test(tc, work_in_a_turn_is_bounded, 0, 2);
    suite_add_tcase(suite, tc);
    return suite;
}
