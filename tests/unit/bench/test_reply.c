#include "tests/bench/reply.h"
#include "proxy.h"
#include "tests/unit/unit.h"

#include <stdlib.h>

#define XID 0x01020304u

static const struct reply_expected rpc2 = {.protocol = CALL_RPC2, .body_len = 5};

/* What varies between the replies of these tests; the rest is a hit as it should be. */
struct made {
    uint32_t accept_stat;
    uint32_t status;
    uint32_t source;
    uint32_t body_len;
    uint32_t has_rest;
    uint32_t cut; /* bytes missing at the end of the record, whose mark says so */
};

static void
add_word(struct buf *b, uint32_t word)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        buf_append_char(b, (char)(word >> shift));
}

static void
add_counted(struct buf *b, const char *text, uint32_t len)
{
    add_word(b, len);
    buf_append(b, text, len);
    for (; len % 4 != 0; len++)
        buf_append_char(b, 0);
}

/* A reply to PROXY_GET as RFC 5531 and proxy.x lay it out. */
static void
make_reply(struct buf *b, const struct made *made)
{
    struct buf record;

    buf_init(&record, 4096);
    add_word(&record, XID);
    add_word(&record, REPLY);
    add_word(&record, MSG_ACCEPTED);
    add_word(&record, AUTH_NONE);
    add_word(&record, 0);
    add_word(&record, made->accept_stat);
    if (made->accept_stat == SUCCESS) {
        add_word(&record, made->status);
        if (made->status != PROXY_OK) {
            add_counted(&record, "no such host", 12);
        } else {
            add_word(&record, 200);
            add_word(&record, made->source);
            add_word(&record, 7);
            for (int i = 0; i < 2; i++)
                add_word(&record, 0);
            add_word(&record, 1);
            for (int i = 0; i < 2; i++)
                add_word(&record, 0);
            add_word(&record, 0);
            add_word(&record, 0);
            add_counted(&record, "http://h/00000001", 17);
            add_counted(&record, "Server: s\r\n", 11);
            add_word(&record, made->has_rest);
            add_counted(&record, "hello, world", made->body_len);
        }
    }
    ck_assert(!buf_failed(&record));
    add_word(b, 0x80000000u | (uint32_t)(record.len - made->cut));
    buf_append(b, record.data, record.len - made->cut);
    buf_free(&record);
}

/* Reads `bytes` in pieces of `piece` bytes, which must make exactly one reply. */
static struct reply
read_one(const struct reply_expected *expected, struct span bytes, size_t piece)
{
    struct reply_reader reader = {0};
    struct reply reply = {0};
    unsigned replies = 0;

    for (size_t at = 0; at < bytes.len; at += piece) {
        struct span part = span_of(bytes.ptr + at, bytes.len - at < piece ? bytes.len - at : piece);

        while (reply_read(&reader, expected, &part, &reply))
            replies++;
    }
    ck_assert_uint_eq(replies, 1);
    return reply;
}

/* The reply, of a body of 5 bytes, in pieces of each size. */
static void
expect_flaw(const char *bytes, enum call_protocol protocol, enum reply_flaw flaw)
{
    struct reply_expected expected = {.protocol = protocol, .body_len = 5};
    struct span text = span_str(bytes);

    for (size_t piece = 1; piece <= text.len; piece++) {
        struct reply reply = read_one(&expected, text, piece);

        ck_assert_msg(reply.flaw == flaw, "%s", bytes);
        ck_assert_uint_eq(reply.wire_len, text.len);
    }
}

static enum reply_flaw
flaw_of(const struct made *made, const struct reply_expected *expected)
{
    struct reply whole;
    struct reply pieces;
    struct buf b;

    buf_init(&b, 4096);
    make_reply(&b, made);
    whole = read_one(expected, buf_span(&b), b.len);
    pieces = read_one(expected, buf_span(&b), 1);
    ck_assert_int_eq(whole.flaw, pieces.flaw);
    ck_assert_uint_eq(whole.wire_len, b.len);
    ck_assert_uint_eq(pieces.wire_len, b.len);
    buf_free(&b);
    return whole.flaw;
}

START_TEST(a_hit_is_good_in_pieces_of_any_size)
{
    struct made made = {.body_len = 5};
    struct buf b;

    buf_init(&b, 4096);
    make_reply(&b, &made);
    for (size_t piece = 1; piece <= b.len; piece++) {
        struct reply reply = read_one(&rpc2, buf_span(&b), piece);

        ck_assert_int_eq(reply.flaw, REPLY_GOOD);
        ck_assert_uint_eq(reply.xid, XID);
        ck_assert_uint_eq(reply.headers_len, 11);
        ck_assert_uint_eq(reply.wire_len, b.len);
    }
    buf_free(&b);
}
END_TEST

START_TEST(whatever_is_no_hit_is_reported)
{
    struct reply_expected any = rpc2;

    any.any_source = true;
    ck_assert_int_eq(flaw_of(&(struct made){.accept_stat = SYSTEM_ERR}, &rpc2), REPLY_DENIED);
    ck_assert_int_eq(flaw_of(&(struct made){.status = PROXY_RESOLVE_FAILED}, &rpc2), REPLY_FAILED);
    ck_assert_int_eq(flaw_of(&(struct made){.source = PROXY_MISS, .body_len = 5}, &rpc2),
                     REPLY_NOT_A_HIT);
    ck_assert_int_eq(flaw_of(&(struct made){.source = PROXY_MISS, .body_len = 5}, &any),
                     REPLY_GOOD);
    ck_assert_int_eq(flaw_of(&(struct made){.body_len = 6}, &rpc2), REPLY_WRONG_LENGTH);
}
END_TEST

START_TEST(a_record_cut_anywhere_is_flawed)
{
    struct buf b;
    uint32_t len;

    buf_init(&b, 4096);
    make_reply(&b, &(struct made){.body_len = 5});
    len = (uint32_t)b.len - 4;
    buf_free(&b);
    for (uint32_t cut = 1; cut < len; cut++)
        ck_assert_int_eq(flaw_of(&(struct made){.body_len = 5, .cut = cut}, &rpc2),
                         REPLY_WRONG_LENGTH);
}
END_TEST

START_TEST(a_body_can_be_skipped_unseen)
{
    struct reply_reader reader = {0};
    struct reply reply;
    struct buf b;
    struct span head;

    buf_init(&b, 4096);
    make_reply(&b, &(struct made){.body_len = 5});
    head = span_of(b.data, b.len - 8); /* all but the body and its padding */
    ck_assert(!reply_read(&reader, &rpc2, &head, &reply));
    ck_assert_uint_eq(reply_skippable(&reader), 8);
    reply_skip(&reader, 3);
    ck_assert(!reply_read(&reader, &rpc2, &head, &reply));
    reply_skip(&reader, 5);
    ck_assert(reply_read(&reader, &rpc2, &head, &reply));
    ck_assert_int_eq(reply.flaw, REPLY_GOOD);
    ck_assert_uint_eq(reply.wire_len, b.len);
    buf_free(&b);
}
END_TEST

START_TEST(replies_follow_each_other)
{
    struct reply_reader reader = {0};
    struct reply reply;
    struct buf b;
    struct span bytes;

    buf_init(&b, 4096);
    make_reply(&b, &(struct made){.body_len = 5});
    make_reply(&b, &(struct made){.status = PROXY_TIMED_OUT});
    make_reply(&b, &(struct made){.body_len = 5});
    bytes = buf_span(&b);
    ck_assert(reply_read(&reader, &rpc2, &bytes, &reply));
    ck_assert_int_eq(reply.flaw, REPLY_GOOD);
    ck_assert(reply_read(&reader, &rpc2, &bytes, &reply));
    ck_assert_int_eq(reply.flaw, REPLY_FAILED);
    ck_assert(reply_read(&reader, &rpc2, &bytes, &reply));
    ck_assert_int_eq(reply.flaw, REPLY_GOOD);
    ck_assert(!reply_read(&reader, &rpc2, &bytes, &reply));
    buf_free(&b);
}
END_TEST

START_TEST(version_1_has_only_a_body)
{
    struct reply_expected v1 = {.protocol = CALL_RPC1, .body_len = 6};
    struct buf b;

    buf_init(&b, 4096);
    add_word(&b, 0x80000000u | 36);
    for (size_t i = 0; i < 6; i++)
        add_word(&b, i == 1 ? REPLY : 0);
    add_counted(&b, "<html>", 6);
    ck_assert_int_eq(read_one(&v1, buf_span(&b), 3).flaw, REPLY_GOOD);
    v1.body_len = 7;
    ck_assert_int_eq(read_one(&v1, buf_span(&b), 3).flaw, REPLY_WRONG_LENGTH);
    buf_free(&b);
}
END_TEST

START_TEST(the_floor_is_checked_by_its_length)
{
    struct reply_expected bare = {.protocol = CALL_BARE, .body_len = 12};
    static const char good[] = "\x80\0\0\x08xxxxxxxx";
    static const char no_mark[] = "HTTP";

    ck_assert_int_eq(read_one(&bare, span_of(good, 12), 5).flaw, REPLY_GOOD);
    bare.body_len = 13;
    ck_assert_int_eq(read_one(&bare, span_of(good, 12), 5).flaw, REPLY_WRONG_LENGTH);
    ck_assert_int_eq(read_one(&bare, span_of(no_mark, 4), 4).flaw, REPLY_NOT_A_REPLY);
}
END_TEST

START_TEST(answers_of_memcached)
{
    static const struct {
        const char *text;
        enum call_protocol protocol;
        enum reply_flaw flaw;
    } cases[] = {
        {"VALUE k/00000001 0 5\r\nE\r\nxy\r\nEND\r\n", CALL_MEMCACHED, REPLY_GOOD},
        {"VALUE k/00000001 0 4\r\nwxyz\r\nEND\r\n", CALL_MEMCACHED, REPLY_WRONG_LENGTH},
        {"END\r\n", CALL_MEMCACHED, REPLY_FAILED},
        {"SERVER_ERROR out of memory\r\n", CALL_MEMCACHED, REPLY_FAILED},
        {"STORED\r\n", CALL_MEMCACHED_SET, REPLY_GOOD},
        {"ERROR\r\n", CALL_MEMCACHED_SET, REPLY_FAILED},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_flaw(cases[i].text, cases[i].protocol, cases[i].flaw);
}
END_TEST

START_TEST(responses_over_http)
{
    static const struct {
        const char *text;
        enum reply_flaw flaw;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nAge: 1\r\nContent-Length: 5\r\nContent-Type: a\r\n\r\n\r\nxy\n",
         REPLY_GOOD},
        {"HTTP/1.1 200 OK\r\ncontent-length:5\r\n\r\nabcde", REPLY_GOOD},
        {"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nabcde", REPLY_GOOD},
        {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd", REPLY_WRONG_LENGTH},
        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", REPLY_WRONG_LENGTH},
        {"HTTP/1.1 503 Busy\r\nContent-Length: 5\r\n\r\nabcde", REPLY_FAILED},
        {"HTTP/1.1 200 OK\r\nContent-Type: a\r\n\r\n", REPLY_NOT_A_REPLY},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_flaw(cases[i].text, CALL_HTTP, cases[i].flaw);
}
END_TEST

START_TEST(a_call_is_what_proxy_x_decodes)
{
    struct call_template call;
    struct rpc_msg message = {0};
    proxy_fetch_args args = {0};
    char credential[MAX_AUTH_BYTES];
    char verifier[MAX_AUTH_BYTES];
    XDR xdr;

    ck_assert(call_begin(&call, CALL_RPC2, span_str("http://h/"), span_str("?q"), 0));
    call_set(&call, XID, 1234567);
    ck_assert_uint_eq(call.key_len, 19);
    ck_assert_int_eq(call.bytes.data[0] & 0xff, 0x80);
    ck_assert_uint_eq((unsigned char)call.bytes.data[3], call.bytes.len - 4);
    message.rm_call.cb_cred.oa_base = credential;
    message.rm_call.cb_verf.oa_base = verifier;
    xdrmem_create(&xdr, call.bytes.data + 4, (u_int)call.bytes.len - 4, XDR_DECODE);
    ck_assert(xdr_callmsg(&xdr, &message));
    ck_assert_uint_eq(message.rm_xid, XID);
    ck_assert_uint_eq(message.rm_call.cb_prog, PROXY_FETCHPROG);
    ck_assert_uint_eq(message.rm_call.cb_vers, PROXY_VERS2);
    ck_assert_uint_eq(message.rm_call.cb_proc, PROXY_GET);
    ck_assert(xdr_proxy_fetch_args(&xdr, &args));
    ck_assert_uint_eq(xdr_getpos(&xdr), call.bytes.len - 4);
    ck_assert(span_equal(span_of(args.url.proxy_url_val, args.url.proxy_url_len),
                         span_str("http://h/01234567?q")));
    ck_assert_uint_eq(args.flags, 0);
    xdr_free((xdrproc_t)xdr_proxy_fetch_args, (char *)&args);
    xdr_destroy(&xdr);
    call_free(&call);
}
END_TEST

START_TEST(memcached_calls_and_keys_that_are_too_long)
{
    static char prefix[9000];
    struct call_template call;

    ck_assert(call_begin(&call, CALL_MEMCACHED, span_str("k/"), span_str(""), 0));
    call_set(&call, 1, 99999999);
    ck_assert_str_eq(buf_str(&call.bytes), "get k/99999999\r\n");
    call_free(&call);
    ck_assert(call_begin(&call, CALL_MEMCACHED_SET, span_str("k/"), span_str(""), 3));
    call_set(&call, 1, 42);
    ck_assert_str_eq(buf_str(&call.bytes), "set k/00000042 0 0 3\r\nabc\r\n");
    call_free(&call);
    ck_assert(call_begin(&call, CALL_HTTP, span_str("/k/"), span_str("?q"), 0));
    call_set(&call, 1, 42);
    ck_assert_str_eq(buf_str(&call.bytes),
                     "GET /k/00000042?q HTTP/1.1\r\nHost: bench.test\r\n\r\n");
    ck_assert(call_add_field(&call, span_str("A: b")));
    ck_assert_str_eq(buf_str(&call.bytes),
                     "GET /k/00000042?q HTTP/1.1\r\nHost: bench.test\r\nA: b\r\n\r\n");
    call_free(&call);
    memset(prefix, 'k', sizeof(prefix));
    ck_assert(!call_begin(&call, CALL_MEMCACHED, span_of(prefix, 243), span_str(""), 0));
    ck_assert(!call_begin(&call, CALL_RPC2, span_of(prefix, sizeof(prefix)), span_str(""), 0));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("bench");
    TCase *reply = tcase_create("reply");
    TCase *call = tcase_create("call");

    tcase_add_test(reply, a_hit_is_good_in_pieces_of_any_size);
    tcase_add_test(reply, whatever_is_no_hit_is_reported);
    tcase_add_test(reply, a_record_cut_anywhere_is_flawed);
    tcase_add_test(reply, a_body_can_be_skipped_unseen);
    tcase_add_test(reply, replies_follow_each_other);
    tcase_add_test(reply, version_1_has_only_a_body);
    tcase_add_test(reply, the_floor_is_checked_by_its_length);
    tcase_add_test(reply, answers_of_memcached);
    tcase_add_test(reply, responses_over_http);
    suite_add_tcase(suite, reply);
    tcase_add_test(call, a_call_is_what_proxy_x_decodes);
    tcase_add_test(call, memcached_calls_and_keys_that_are_too_long);
    suite_add_tcase(suite, call);
    return suite;
}
