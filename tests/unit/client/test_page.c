/* Pages that are read piece by piece from a server that the test plays call by call. */
#define UNIT_STARTS_NO_THREAD

#include "client/page.h"

#include <poll.h>

#include "tests/unit/rpc/scripted_peer.h"

#define SECOND ((int64_t)1000000)

enum { LENGTH = 1000 };

static struct peer peer;
static struct rpc_client *client;
static struct page page;
static unsigned notices;
static char body[LENGTH], other[LENGTH];
static char got[LENGTH + 1];
static size_t got_len;
static bool takes; /* each piece at once */

static void
take(void)
{
    ck_assert_int_eq(page.state, PAGE_PIECE);
    ck_assert_uint_eq(page.offset, got_len);
    ck_assert_uint_le(got_len + page.piece.len, LENGTH);
    memcpy(got + got_len, page.piece.ptr, page.piece.len);
    got_len += page.piece.len;
    page_next(&page);
}

static void
note(struct page *of)
{
    ck_assert_ptr_eq(of, &page);
    notices++;
    if (takes && page.state == PAGE_PIECE)
        take();
}

static void
set_up(void)
{
    for (size_t i = 0; i < LENGTH; i++)
        body[i] = (char)(i * 7 + i / 100);
    memcpy(other, body, LENGTH);
    other[150] ^= 1;
    peer_listen(&peer);
    client =
        rpc_client_connect((struct sockaddr *)&peer.address, sizeof(peer.address), SECOND, 1 << 20);
    ck_assert_ptr_nonnull(client);
    peer_accept(&peer);
    page = (struct page){
        .client = client,
        .url = span_str("http://h/page"),
        .timeout_us = 60 * SECOND,
        .notify = note,
    };
    notices = 0;
    got_len = 0;
    takes = true;
}

static void
tear_down(void)
{
    rpc_client_close(client);
    page_free(&page);
    peer_free(&peer);
}

/* ---- the server ------------------------------------------------------------------------------ */

/* The next call, which is for this procedure, with its arguments decoded. */
static uint32_t
take_call(uint32_t procedure, xdrproc_t decode, void *args)
{
    struct peer_call call;
    uint32_t xid;
    XDR xdr;

    ck_assert(rpc_client_run(client, 0));
    xid = peer_take_call(&peer, &call);
    ck_assert_uint_eq(call.words[5], procedure);
    xdrmem_create(&xdr, (char *)call.args, (u_int)call.args_len, XDR_DECODE);
    ck_assert(decode(&xdr, args, 0));
    return xid;
}

static void
reply(uint32_t xid, xdrproc_t encode, void *result)
{
    static uint32_t record[2000];
    const uint32_t head[] = {htonl(xid), htonl(REPLY), 0, 0, 0, 0};
    XDR xdr;

    memcpy(record, head, sizeof(head));
    xdrmem_create(&xdr, (char *)record + sizeof(head), sizeof(record) - sizeof(head), XDR_ENCODE);
    ck_assert(encode(&xdr, result, 0));
    peer_send_record(&peer, record, sizeof(head) + XDR_GETPOS(&xdr), SIZE_MAX);
    ck_assert(rpc_client_run(client, 10 * SECOND));
}

/* Answers PROXY_GET with the first `len` bytes of a body; `number` names the object. */
static void
answer_get(const char *bytes, size_t len, char number, unsigned status)
{
    proxy_fetch_args args = {.flags = 0};
    proxy_rest rest = {.length = LENGTH};
    proxy_fetch_result result = {.status = PROXY_OK};
    proxy_page *answer = &result.proxy_fetch_result_u.page;
    uint32_t xid = take_call(PROXY_GET, (xdrproc_t)xdr_proxy_fetch_args, &args);

    ck_assert_uint_eq(args.url.proxy_url_len, strlen("http://h/page"));
    xdr_free((xdrproc_t)xdr_proxy_fetch_args, &args);
    rest.object[0] = number;
    answer->http_status = status;
    answer->source = PROXY_MISS;
    answer->rest = len < LENGTH ? &rest : NULL;
    answer->body.body_val = (char *)(uintptr_t)bytes;
    answer->body.body_len = (u_int)len;
    reply(xid, (xdrproc_t)xdr_proxy_fetch_result, &result);
}

/* Answers PROXY_READ of the object at the offset with `len` bytes. */
static void
answer_read(const char *bytes, size_t offset, size_t len, char number)
{
    proxy_read_args args;
    proxy_ending ending = {.stored = TRUE, .evicted = 3};
    proxy_read_result result = {.status = PROXY_OK};
    proxy_piece *piece = &result.proxy_read_result_u.piece;
    uint32_t xid = take_call(PROXY_READ, (xdrproc_t)xdr_proxy_read_args, &args);

    ck_assert_int_eq(args.object[0], number);
    ck_assert_uint_eq(args.offset, offset);
    ck_assert_uint_eq(args.count, PROXY_MAX_PIECE);
    piece->length = LENGTH;
    piece->ending = offset + len == LENGTH ? &ending : NULL;
    piece->bytes.bytes_val = (char *)(uintptr_t)bytes + offset;
    piece->bytes.bytes_len = (u_int)len;
    reply(xid, (xdrproc_t)xdr_proxy_read_result, &result);
}

static void
refuse_read(proxy_status status)
{
    static char sentence[] = "it is a test";
    proxy_read_args args;
    proxy_read_result result = {.status = status};
    uint32_t xid = take_call(PROXY_READ, (xdrproc_t)xdr_proxy_read_args, &args);

    result.proxy_read_result_u.sentence = sentence;
    reply(xid, (xdrproc_t)xdr_proxy_read_result, &result);
}

/* The object is released; the answer has no effect. */
static void
expect_release(char number)
{
    proxy_object object;
    proxy_status status = PROXY_OK;
    uint32_t xid = take_call(PROXY_RELEASE, (xdrproc_t)xdr_proxy_object, object);

    ck_assert_int_eq(object[0], number);
    reply(xid, (xdrproc_t)xdr_proxy_status, &status);
}

static void
begin(void)
{
    ck_assert_int_eq(page_begin(&page), RPC_CLIENT_OK);
    ck_assert_int_eq(page.state, PAGE_WAITS);
}

static void
expect_whole(void)
{
    ck_assert_int_eq(page.state, PAGE_IDLE);
    ck_assert(page.last);
    ck_assert_uint_eq(got_len, LENGTH);
    ck_assert(memcmp(got, body, LENGTH) == 0);
}

static void
expect_failure(proxy_status status, const char *part)
{
    ck_assert_int_eq(page.state, PAGE_FAILED);
    ck_assert_int_eq(page.rpc, RPC_CLIENT_OK);
    ck_assert_int_eq(page.result.status, status);
    ck_assert_msg(strstr(page.result.proxy_fetch_result_u.sentence, part), "%s",
                  page.result.proxy_fetch_result_u.sentence);
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(a_short_page_takes_one_call)
{
    begin();
    answer_get(body, LENGTH, 0, 200);
    expect_whole();
    ck_assert_int_eq(page_length(&page), LENGTH);
    ck_assert_uint_eq(notices, 1);
    ck_assert_uint_eq(rpc_client_pending(client), 0);
}
END_TEST

START_TEST(a_long_page_comes_in_pieces)
{
    begin();
    answer_get(body, 100, 1, 200);
    ck_assert_int_eq(page_length(&page), LENGTH);
    answer_read(body, 100, 333, 1);
    answer_read(body, 433, 0, 1); /* nothing has come for a while */
    ck_assert_uint_eq(notices, 2);
    answer_read(body, 433, LENGTH - 433, 1);
    expect_release(1);
    expect_whole();
    ck_assert(page.result.proxy_fetch_result_u.page.ending.stored);
    ck_assert_uint_eq(page.result.proxy_fetch_result_u.page.ending.evicted, 3);
}
END_TEST

/* The owner takes its time: nothing is asked for meanwhile. */
START_TEST(the_next_piece_is_asked_for_when_one_is_taken)
{
    takes = false;
    begin();
    answer_get(body, 100, 1, 200);
    ck_assert_uint_eq(rpc_client_pending(client), 0);
    take();
    answer_read(body, 100, LENGTH - 100, 1);
    ck_assert_uint_eq(rpc_client_pending(client), 0);
    take();
    expect_release(1);
    expect_whole();
}
END_TEST

START_TEST(an_object_that_is_gone_is_fetched_again)
{
    begin();
    answer_get(body, 100, 1, 200);
    answer_read(body, 100, 133, 1);
    refuse_read(PROXY_NO_OBJECT);
    /* Of the next object some bytes are known: within one piece, at its end, and beyond. */
    answer_get(body, 50, 2, 200);
    answer_read(body, 50, 183 - 11 * (unsigned)_i, 2);
    if (_i)
        answer_read(body, 233 - 11 * (unsigned)_i, 100, 2);
    answer_read(body, _i ? 333 - 11 * (unsigned)_i : 233, 500, 2);
    answer_read(body, _i ? 833 - 11 * (unsigned)_i : 733, _i ? 167 + 11 * (unsigned)_i : 267, 2);
    expect_release(2);
    expect_whole();
}
END_TEST

START_TEST(a_page_that_has_changed_fails)
{
    begin();
    answer_get(body, 100, 1, 200);
    answer_read(body, 100, 133, 1);
    refuse_read(PROXY_NO_OBJECT);
    if (_i == 0) { /* a byte that has been taken */
        answer_get(other, 100, 2, 200);
        answer_read(other, 100, 200, 2);
    } else if (_i == 1) { /* its end */
        static proxy_fetch_args args;
        proxy_fetch_result result = {.status = PROXY_OK};
        uint32_t xid = take_call(PROXY_GET, (xdrproc_t)xdr_proxy_fetch_args, &args);

        xdr_free((xdrproc_t)xdr_proxy_fetch_args, &args);
        result.proxy_fetch_result_u.page.http_status = 200;
        result.proxy_fetch_result_u.page.body.body_val = body;
        result.proxy_fetch_result_u.page.body.body_len = 120;
        reply(xid, (xdrproc_t)xdr_proxy_fetch_result, &result);
    } else { /* its status */
        answer_get(body, 100, 2, 404);
    }
    expect_failure(PROXY_ORIGIN_BROKE, "changed");
    ck_assert_uint_eq(got_len, 233);
    if (_i != 1)
        expect_release(2);
}
END_TEST

/* Answers PROXY_READ of no bytes, which keeps the object. */
static void
answer_keep(size_t offset, proxy_status status)
{
    proxy_read_args args;
    proxy_read_result result = {.status = status};
    uint32_t xid = take_call(PROXY_READ, (xdrproc_t)xdr_proxy_read_args, &args);

    ck_assert_uint_eq(args.offset, offset);
    ck_assert_uint_eq(args.count, 0);
    if (status == PROXY_OK)
        result.proxy_read_result_u.piece.length = LENGTH;
    else
        result.proxy_read_result_u.sentence = "gone";
    reply(xid, (xdrproc_t)xdr_proxy_read_result, &result);
}

START_TEST(an_object_is_kept_while_a_piece_is_not_taken)
{
    takes = false;
    page_keep(&page);
    ck_assert_int_eq(page_begin(&page), RPC_CLIENT_OK);
    page_keep(&page); /* nothing is held yet */
    answer_get(body, 100, 'a', 200);
    for (unsigned i = 0; i < 3; i++) {
        page_keep(&page);
        page_keep(&page); /* one call at a time */
        ck_assert_uint_eq(rpc_client_pending(client), 1);
        /* What it is told, the next call for bytes will be told, too. */
        answer_keep(100, i == 1 ? PROXY_NO_OBJECT : PROXY_OK);
        ck_assert_uint_eq(rpc_client_pending(client), 0);
        ck_assert_int_eq(page.state, PAGE_PIECE);
    }
    ck_assert_uint_eq(notices, 1);
    page_keep(&page);
    take();
    answer_keep(100, PROXY_OK);
    answer_read(body, 100, LENGTH - 100, 'a');
    page_keep(&page);
    ck_assert(page.last);
    take();
    page_free(&page); /* and the call goes on without it */
    answer_keep(LENGTH, PROXY_OK);
    ck_assert_mem_eq(got, body, LENGTH);
}
END_TEST

/* Answers without a byte do not make the time begin anew. */
START_TEST(the_time_without_a_byte_is_bounded)
{
    unsigned answers = 0;

    page.timeout_us = SECOND / 5;
    ck_assert_int_eq(page_begin(&page), RPC_CLIENT_OK);
    answer_get(body, 100, 'a', 200);
    while (answers < 1000) {
        poll(NULL, 0, 20);
        ck_assert(rpc_client_run(client, 0)); /* sends the call, unless its time is over */
        if (page.state != PAGE_WAITS)
            break;
        answer_read(body, 100, 0, 'a');
        answers++;
    }
    ck_assert_int_eq(page.state, PAGE_FAILED);
    ck_assert_int_eq(page.rpc, RPC_CLIENT_TIMED_OUT);
    ck_assert_uint_gt(answers, 1);
    ck_assert_uint_eq(got_len, 100);
}
END_TEST

START_TEST(an_object_that_never_stays_is_given_up)
{
    begin();
    for (char i = 0; page.state != PAGE_FAILED; i++) {
        ck_assert_int_lt(i, 20);
        answer_get(body, 100, i, 200);
        refuse_read(PROXY_NO_OBJECT);
    }
    expect_failure(PROXY_OVERLOADED, "does not keep");
}
END_TEST

START_TEST(a_failure_behind_a_piece)
{
    begin();
    answer_get(body, 100, 1, 200);
    refuse_read(PROXY_ORIGIN_BROKE);
    expect_failure(PROXY_ORIGIN_BROKE, "it is a test");
    ck_assert_uint_eq(got_len, 100);
    /* It is begun once more, and goes on. */
    begin();
    answer_get(body, 300, 2, 200);
    answer_read(body, 300, LENGTH - 300, 2);
    expect_release(2);
    expect_whole();
}
END_TEST

/* More than a piece may have. */
START_TEST(a_piece_over_its_bound_is_no_answer)
{
    const uint32_t head[] = {0, 0, LENGTH, 0, PROXY_MAX_PIECE + 1}; /* OK, length, no ending */
    uint32_t words[32] = {0, REPLY};
    proxy_read_args args;
    size_t count = sizeof(words) / sizeof(words[0]);

    begin();
    answer_get(body, 100, 1, 200);
    words[0] = take_call(PROXY_READ, (xdrproc_t)xdr_proxy_read_args, &args);
    memcpy(words + 6, head, sizeof(head));
    peer_send_words(&peer, words, count, SIZE_MAX);
    rpc_client_run(client, 10 * SECOND);
    ck_assert_int_eq(page.state, PAGE_FAILED);
    ck_assert_int_eq(page.rpc, RPC_CLIENT_BAD_REPLY);
    ck_assert_uint_eq(got_len, 100);
}
END_TEST

START_TEST(a_connection_that_is_lost)
{
    begin();
    if (_i) {
        answer_get(body, 100, 1, 200);
        ck_assert_int_eq(page.state, PAGE_WAITS);
    }
    peer_hang_up(&peer);
    ck_assert(!rpc_client_run(client, 10 * SECOND));
    ck_assert_int_eq(page.state, PAGE_FAILED);
    ck_assert_int_eq(page.rpc, RPC_CLIENT_LOST);
    ck_assert_int_eq(page_begin(&page), RPC_CLIENT_LOST);
    ck_assert_int_eq(page.state, PAGE_FAILED);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("client: pages");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_short_page_takes_one_call);
    tcase_add_test(tests, a_long_page_comes_in_pieces);
    tcase_add_test(tests, the_next_piece_is_asked_for_when_one_is_taken);
    tcase_add_loop_test(tests, an_object_that_is_gone_is_fetched_again, 0, 3);
    tcase_add_loop_test(tests, a_page_that_has_changed_fails, 0, 3);
    tcase_add_test(tests, an_object_that_never_stays_is_given_up);
    tcase_add_test(tests, an_object_is_kept_while_a_piece_is_not_taken);
    tcase_add_test(tests, the_time_without_a_byte_is_bounded);
    tcase_add_test(tests, a_failure_behind_a_piece);
    tcase_add_test(tests, a_piece_over_its_bound_is_no_answer);
    tcase_add_loop_test(tests, a_connection_that_is_lost, 0, 2);
    suite_add_tcase(suite, tests);
    return suite;
}
