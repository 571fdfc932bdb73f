/* One hop by itself: the check of the socket's address, repetitions, and the work in a turn. */
#include <stdio.h>
#include <zlib.h>
#include <zstd.h>

#include "base/memory_account.h"
#include "fetch/transfer.h"

#include "tests/unit/fetch/scripted.h"
#include "tests/unit/unit.h"

/* One hop, and what has come of it. */
struct hop {
    struct transfer transfer;
    struct consumer consumer;
    struct transfer_place place;
    struct route route;
    struct settings settings;
    struct target target;
    struct request request; /* a plain GET */
    struct resolved *resolved;
    CURLM *multi;
    _Atomic uint64_t received;
    uint64_t turn;
    struct connections connections;
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
    struct hop *hop = context;

    hop->status = head->status;
    return FETCH_CONTINUE;
}

static enum fetch_flow
take_body(void *context, const void *bytes, size_t len)
{
    struct hop *hop = context;

    for (size_t i = 0; i < len; i++)
        hop->body_wrong = hop->body_wrong || ((const char *)bytes)[i] != 0;
    hop->body_len += len;
    return FETCH_CONTINUE;
}

static void
take_change(struct consumer *consumer, enum transfer_change change)
{
    struct hop *hop = consumer->context;

    if (change != TRANSFER_RESTS)
        return;
    ck_assert(!hop->paused);
    hop->paused = true;
    hop->pauses++;
}

/* Begins a hop to a name that stands for `address`, whatever the policy thought of it earlier. */
static void
hop_start(struct hop *hop, const char *address, uint16_t port,
          const struct address_policy *addresses, bool by_operator, const char *connect_host)
{
    struct fetch_config config;
    char why[256];

    *hop = (struct hop){.resolved = resolved_create(1), .multi = curl_multi_init()};
    hop->route = (struct route){.host = connect_host, .port = port, .by_operator = by_operator};
    hop->consumer = (struct consumer){
        .request = &hop->request,
        .sink = {.head = take_head, .body = take_body},
        .context = hop,
    };
    hop->place = (struct transfer_place){
        .settings = &hop->settings,
        .multi = hop->multi,
        .received = &hop->received,
        .turn = &hop->turn,
        .connections = &hop->connections,
        .changed = take_change,
    };
    connections_init(&hop->connections, 1, 1);
    fetch_config_default(&config);
    config.addresses = addresses;
    ck_assert(settings_init(&hop->settings, &config, why, sizeof(why)));
    snprintf(hop->url, sizeof(hop->url), "http://pinned.test:%u/", port);
    ck_assert_int_eq(target_parse(&hop->target, span_str(hop->url), why, sizeof(why)), FETCH_OK);
    ck_assert(address_parse(address, port, &hop->resolved->list[0]));
    ck_assert(transfer_start(&hop->transfer, &hop->place, &hop->consumer,
                             &(struct transfer_hop){.target = &hop->target,
                                                    .route = &hop->route,
                                                    .addresses = hop->resolved,
                                                    .fields.credentials = true,
                                                    .final_url = span_str(hop->url)}));
}

/* Until libcurl is done or the hop has paused. NULL for the latter. */
static CURLMsg *
hop_run(struct hop *hop)
{
    CURLMsg *message = NULL;
    int running, left;

    do {
        curl_multi_perform(hop->multi, &running);
        message = curl_multi_info_read(hop->multi, &left);
        if (!message && !hop->paused)
            curl_multi_poll(hop->multi, NULL, 0, 1000, NULL);
    } while (!message && !hop->paused);
    return message;
}

static enum fetch_error
hop_end(struct hop *hop, CURLcode code)
{
    enum fetch_error error = transfer_evaluate(&hop->transfer, code);

    if (error)
        ck_assert_str_ne(hop->transfer.sentence, "");
    else
        ck_assert_uint_eq(hop->status, 200);
    transfer_clear(&hop->transfer);
    transfer_clear(&hop->transfer);
    curl_multi_cleanup(hop->multi);
    connections_free(&hop->connections);
    target_free(&hop->target);
    settings_free(&hop->settings);
    resolved_release(&hop->resolved);
    return error;
}

static enum fetch_error
transfer_to(const char *address, uint16_t port, const struct address_policy *addresses,
            bool by_operator, const char *connect_host)
{
    struct hop hop;
    CURLMsg *message;

    hop_start(&hop, address, port, addresses, by_operator, connect_host);
    message = hop_run(&hop);
    ck_assert_uint_eq(hop.pauses, 0);
    return hop_end(&hop, message->data.result);
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
    struct hop hop;

    hop_start(&hop, "127.0.0.1", 9, closed, false, "pinned.test");
    hop.request.method_name = span_str(methods[_i]);
    hop.request.method = http_method_of(hop.request.method_name);
    if (_i)
        hop.request.body = (struct request_body){.kind = REQUEST_BODY_SUPPLIED, .length = 4};
    upload_init(&hop.transfer.upload, &hop.request.body, supply_two, NULL);
    ck_assert_int_eq(upload_read(&hop.transfer.upload, piece, sizeof(piece), &len),
                     _i ? UPLOAD_PIECE : UPLOAD_ENDED);
    hop.transfer.asked_us = 1;
    hop.transfer.stage = TRANSFER_ASKED;
    ck_assert_int_eq(transfer_on_request(&hop.transfer, none, none, 0, 0), CURL_PREREQFUNC_ABORT);
    /* The other one is turned away for its connection only, which no one has opened. */
    ck_assert_int_eq(hop.transfer.error, _i ? FETCH_ORIGIN_BROKE : FETCH_OK);
    ck_assert_int_eq(hop.transfer.stage == TRANSFER_UNCLEAN, !_i);
    ck_assert_uint_eq(hop.transfer.upload.taken, _i ? 2 : 0);
    hop_end(&hop, CURLE_ABORTED_BY_CALLBACK);
    address_policy_destroy(closed);
}
END_TEST

/* 10,000,000 zero bytes, in gzip, as one piece of the wire or in chunks of a byte. */
static struct buf
make_zeros(bool chunked)
{
    static char zeros[10000000];
    static unsigned char coded[20000];
    z_stream zlib = {.next_in = (Bytef *)zeros, .avail_in = sizeof(zeros), .next_out = coded};
    struct buf answer;

    ck_assert_int_eq(deflateInit2(&zlib, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    zlib.avail_out = sizeof(coded);
    ck_assert_int_eq(deflate(&zlib, Z_FINISH), Z_STREAM_END);
    deflateEnd(&zlib);
    buf_init(&answer, 1 << 20);
    buf_append_str(&answer, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n");
    if (chunked) {
        buf_append_str(&answer, "Transfer-Encoding: chunked\r\n\r\n");
        for (size_t i = 0; i < zlib.total_out; i++)
            buf_printf(&answer, "1\r\n%c\r\n", coded[i]);
        buf_append_str(&answer, "0\r\n\r\n");
    } else {
        buf_printf(&answer, "Content-Length: %lu\r\n\r\n", zlib.total_out);
        buf_append(&answer, coded, zlib.total_out);
    }
    ck_assert(!buf_failed(&answer));
    return answer;
}

/* A body that decodes to much is decoded over several turns, and none of it is lost. */
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
    struct hop hop;
    char why[128];

    ck_assert(address_policy_allow(open, "127.0.0.0/8", why, sizeof(why)));
    hop_start(&hop, "127.0.0.1", origin->port, open, false, "pinned.test");
    while (!(message = hop_run(&hop))) {
        most = hop.body_len - before > most ? hop.body_len - before : most;
        before = hop.body_len;
        hop.turn++;
        hop.paused = false;
        ck_assert_int_eq(transfer_next_turn(&hop.transfer), CURLE_OK);
    }
    ck_assert_uint_ge(hop.pauses, 8);
    ck_assert_uint_le(most, 1100000);
    ck_assert_uint_eq(hop.body_len, 10000000);
    ck_assert(!hop.body_wrong);
    ck_assert_int_eq(hop_end(&hop, message->data.result), FETCH_OK);
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
    struct hop hop;
    char why[128];

    ck_assert(address_policy_allow(open, "127.0.0.0/8", why, sizeof(why)));
    hop_start(&hop, "127.0.0.1", origin->port, open, false, "pinned.test");
    ck_assert_ptr_null(hop_run(&hop));
    ck_assert_uint_eq(hop.pauses, 1);
    transfer_fail(&hop.transfer, FETCH_TIMED_OUT, "given up");
    ck_assert_int_eq(hop_end(&hop, CURLE_OK), FETCH_TIMED_OUT);
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

/* 10,000,000 zero bytes in zstd, whose decoder keeps up to 8 MiB of them. */
static struct buf
make_zstd(void)
{
    static char zeros[10000000];
    static char coded[20000];
    size_t len = ZSTD_compress(coded, sizeof(coded), zeros, sizeof(zeros), 3);
    struct buf answer;

    ck_assert(!ZSTD_isError(len));
    buf_init(&answer, 1 << 20);
    buf_printf(&answer, "HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\nContent-Length: %zu\r\n\r\n",
               len);
    buf_append(&answer, coded, len);
    ck_assert(!buf_failed(&answer));
    return answer;
}

/* What a decoder keeps is charged as it grows, and given back whatever comes of the body. */
START_TEST(a_decoders_window_is_charged)
{
    static const struct {
        uint64_t limit;
        enum fetch_error error;
        size_t most;
    } rows[] = {{64 << 20, FETCH_OK, 8 << 20}, {4 << 20, FETCH_OVERLOADED, 2 << 20}};
    struct buf answer = make_zstd();
    const struct line script[] = {
        {.path = "/", .bytes = answer.data, .len = answer.len},
        {.path = NULL},
    };
    struct origin *origin = origin_start(script);
    struct address_policy *open = address_policy_create();
    struct memory_account account;
    CURLMsg *message = NULL;
    CURLcode code = CURLE_OK;
    struct hop hop;
    char why[128];

    memory_account_init(&account, rows[_i].limit, NULL);
    ck_assert(address_policy_allow(open, "127.0.0.0/8", why, sizeof(why)));
    hop_start(&hop, "127.0.0.1", origin->port, open, false, "pinned.test");
    hop.settings.config.memory = &account;
    while (code == CURLE_OK && !(message = hop_run(&hop))) {
        hop.turn++;
        hop.paused = false;
        code = transfer_next_turn(&hop.transfer);
    }
    ck_assert_uint_eq(memory_used(&account, MEMORY_FETCHES), rows[_i].most);
    ck_assert_int_eq(hop_end(&hop, message ? message->data.result : code), rows[_i].error);
    ck_assert_uint_eq(memory_used(&account, MEMORY_FETCHES), 0);
    address_policy_destroy(open);
    origin_stop(origin);
    buf_free(&answer);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/transfer");
    TCase *tc = tcase_create("transfer");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, the_socket_address_is_checked);
    tcase_add_loop_test(tc, a_write_is_not_begun_twice, 0, 3);
    tcase_add_test(tc, libcurl_resolves_nothing);
    tcase_add_test(tc, given_up_during_a_pause);
    tcase_add_loop_test(tc, work_in_a_turn_is_bounded, 0, 2);
    tcase_add_loop_test(tc, a_decoders_window_is_charged, 0, 2);
    suite_add_tcase(suite, tc);
    return suite;
}
