/*
 * Peers that mean harm or know no better. Each test ends with a look whether the server still
 * serves everybody else.
 */
#include "tests/unit/rpc/small_server.h"

/* ---- records --------------------------------------------------------------------------------- */

START_TEST(half_a_record_stalls_no_other_client)
{
    int fd = peer_connect(&tiny);
    struct buf b;

    buf_init(&b, 1024);
    put_word(&b, 0x80000000u | 40);
    put_call(&b, 1, TINY_NULL);
    ck_assert(peer_write(fd, b.data, 20));
    AWAIT(tiny_stats(&tiny).net.bytes_in == 20);
    expect_serving(&tiny);
    ck_assert(peer_write(fd, b.data + 20, b.len - 20));
    EXPECT_ACCEPTED(fd, 1, SUCCESS);
    buf_free(&b);
    close(fd);
}
END_TEST

/* A null call, every byte in a write of its own. */
START_TEST(a_record_byte_by_byte)
{
    int fd = peer_connect(&tiny);
    struct buf b;

    buf_init(&b, 1024);
    put_word(&b, 0x80000000u | 40);
    put_call(&b, 1, TINY_NULL);
    for (size_t i = 0; i < b.len; i++) {
        ck_assert(peer_write(fd, b.data + i, 1));
        AWAIT(tiny_stats(&tiny).net.bytes_in == i + 1);
    }
    EXPECT_ACCEPTED(fd, 1, SUCCESS);
    buf_free(&b);
    expect_alive(fd);
    close(fd);
}
END_TEST

/* An echo call of `len` argument bytes, in fragments of one byte. */
static bool
send_in_crumbs(int fd, uint32_t xid, uint32_t procedure, size_t len)
{
    struct buf message, stream;
    bool sent;

    buf_init(&message, 1024);
    buf_init(&stream, 1u << 20);
    put_call(&message, xid, procedure);
    for (size_t i = 0; i < len; i++)
        ck_assert(buf_append_char(&message, 0));
    for (size_t i = 0; i < message.len; i++) {
        put_word(&stream, (i + 1 == message.len ? 0x80000000u : 0) | 1);
        ck_assert(buf_append(&stream, message.data + i, 1));
    }
    sent = peer_write(fd, stream.data, stream.len);
    buf_free(&message);
    buf_free(&stream);
    return sent;
}

START_TEST(fragments_of_one_byte)
{
    int fd = peer_connect(&tiny);

    /* As many as there are bytes: 40, 72 and 1,000. */
    ck_assert(send_in_crumbs(fd, 1, TINY_NULL, 0));
    EXPECT_ACCEPTED(fd, 1, SUCCESS);
    ck_assert(send_in_crumbs(fd, 2, TINY_ECHO, 32));
    EXPECT_ACCEPTED(fd, 2, SUCCESS, 0);
    ck_assert(send_in_crumbs(fd, 3, TINY_ECHO, 960));
    EXPECT_ACCEPTED(fd, 3, SUCCESS, 0);
    expect_alive(fd);
    close(fd);
}
END_TEST

START_TEST(empty_fragments)
{
    enum { MANY = 100000 };
    static uint32_t marks[MANY];
    int fd = peer_connect(&tiny);
    struct buf b;
    uint64_t bad;

    buf_init(&b, 1024);
    for (int i = 0; i < 64; i++)
        put_word(&b, 0);
    put_word(&b, 0x80000000u | 40);
    put_call(&b, 1, TINY_NULL);
    ck_assert(peer_write(fd, b.data, b.len));
    EXPECT_ACCEPTED(fd, 1, SUCCESS);
    buf_free(&b);
    bad = tiny_stats(&tiny).calls_bad;
    (void)peer_write(fd, marks, sizeof(marks));
    ck_assert(peer_is_cut(fd));
    ck_assert_uint_eq(tiny_stats(&tiny).calls_bad, bad + 1);
    close(fd);
}
END_TEST

START_TEST(a_fragment_of_two_gibibytes)
{
    static const uint32_t marks[] = {0xffffffffu, 0x7fffffffu, 0x80001001u, 0x1001};

    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        uint32_t mark = htonl(marks[i]);
        int fd = peer_connect(&tiny);

        ck_assert(peer_write(fd, &mark, sizeof(mark)));
        ck_assert(peer_is_cut(fd));
        close(fd);
    }
}
END_TEST

/* Fragments, each within the bound, that are over it together. */
START_TEST(a_record_over_the_bound)
{
    static char zeros[4000];
    int fd = peer_connect(&tiny);
    struct buf b;

    buf_init(&b, 1u << 20);
    put_word(&b, 4000);
    ck_assert(buf_append(&b, zeros, sizeof(zeros)));
    put_word(&b, 0x80000000u | 97);
    (void)peer_write(fd, b.data, b.len);
    buf_free(&b);
    ck_assert(peer_is_cut(fd));
    close(fd);
}
END_TEST

START_TEST(what_is_no_call)
{
    static const struct {
        uint32_t words[8];
        unsigned count;
    } records[] = {
        {{0}, 0},                         /* nothing */
        {{7}, 1},                         /* cut off before, */
        {{7, CALL}, 2},                   /* at */
        {{7, CALL, 2, 0x20000777, 1}, 5}, /* and after the version */
        {{7, REPLY, MSG_ACCEPTED, 0, 0, SUCCESS}, 6},
        {{7, 2, 2, 0x20000777, 1, 0}, 6},
    };

    for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
        int fd = peer_connect(&tiny);
        struct buf b;

        buf_init(&b, 1024);
        for (unsigned j = 0; j < records[i].count; j++)
            put_word(&b, records[i].words[j]);
        (void)peer_send(fd, &b);
        ck_assert(peer_is_cut(fd));
        close(fd);
        ck_assert_uint_eq(tiny_stats(&tiny).calls_bad, i + 1);
        ck_assert_uint_eq(tiny_stats(&tiny).calls, 0);
    }
}
END_TEST

START_TEST(a_caller_that_speaks_http)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int fd = peer_connect(&tiny);

    (void)peer_write(fd, request, sizeof(request) - 1);
    ck_assert(peer_is_cut(fd));
    close(fd);
}
END_TEST

/* What was asked before the stream went bad is still answered. */
START_TEST(good_calls_before_a_bad_record)
{
    int fd = peer_connect(&tiny), other = peer_connect(&tiny);
    struct buf b, stream;

    buf_init(&stream, 1u << 20);
    for (uint32_t i = 0; i < 3; i++) {
        buf_init(&b, 1024);
        put_call(&b, i, i == 1 ? TINY_DEFER : TINY_BODY);
        put_word(&b, 1000);
        put_word(&stream, 0x80000000u | (uint32_t)b.len);
        ck_assert(buf_append(&stream, b.data, b.len));
        buf_free(&b);
    }
    put_word(&stream, 0xffffffffu);
    ck_assert(peer_write(fd, stream.data, stream.len));
    buf_free(&stream);
    expect_body(&tiny, fd, 0, 1000);
    expect_body(&tiny, fd, 2, 1000);
    ck_assert(peer_call(other, 9, TINY_ANSWER, 0));
    expect_body(&tiny, fd, 1, 1000);
    ck_assert(peer_is_cut(fd));
    close(fd);
    close(other);
}
END_TEST

/* ---- calls ----------------------------------------------------------------------------------- */

START_TEST(unknown_versions_programs_and_procedures)
{
    int fd = peer_connect(&tiny);
    struct buf b;

    buf_init(&b, 1024);
    put_word(&b, 1);
    put_word(&b, CALL);
    put_word(&b, 3);
    ck_assert(peer_send(fd, &b));
    EXPECT_WORDS(fd, 1, REPLY, MSG_DENIED, RPC_MISMATCH, 2, 2);
    put_call_to(&b, 2, TINY_PROGRAM + 1, 1, 0);
    ck_assert(peer_send(fd, &b));
    EXPECT_ACCEPTED(fd, 2, PROG_UNAVAIL);
    put_call_to(&b, 3, TINY_PROGRAM, 2, 0);
    ck_assert(peer_send(fd, &b));
    EXPECT_ACCEPTED(fd, 3, PROG_MISMATCH, 1, 3);
    put_call_to(&b, 4, TINY_PROGRAM, 3, 77777);
    ck_assert(peer_send(fd, &b));
    EXPECT_ACCEPTED(fd, 4, PROC_UNAVAIL);
    ck_assert_uint_eq(tiny_stats(&tiny).calls, 4);
    ck_assert_uint_eq(tiny_stats(&tiny).calls_bad, 4);
    expect_alive(fd);
    close(fd);
}
END_TEST

/* A call of TINY_UID with this credential and an empty verifier. */
static void
send_with_credential(int fd, uint32_t xid, uint32_t flavour, uint32_t announced, struct buf *body)
{
    struct buf b;
    const uint32_t words[] = {xid, CALL, 2, TINY_PROGRAM, 1, TINY_UID, flavour, announced};

    buf_init(&b, 1u << 20);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        put_word(&b, words[i]);
    ck_assert(buf_append(&b, body->data, body->len));
    put_word(&b, 0);
    put_word(&b, 0);
    ck_assert(peer_send(fd, &b));
    buf_free(body);
}

static void
put_auth_sys(struct buf *b, const char *machine, uint32_t name_len, uint32_t uid, uint32_t gids,
             uint32_t gids_sent)
{
    buf_init(b, 1u << 16);
    put_word(b, 12345);
    put_word(b, name_len);
    ck_assert(buf_append_str(b, machine));
    while (b->len % 4)
        ck_assert(buf_append_char(b, 0));
    put_word(b, uid);
    put_word(b, 100);
    put_word(b, gids);
    for (uint32_t i = 0; i < gids_sent; i++)
        put_word(b, i);
}

#define EXPECT_AUTH_ERROR(fd, xid, why) EXPECT_WORDS(fd, xid, REPLY, MSG_DENIED, AUTH_ERROR, why)

START_TEST(credentials_of_auth_sys)
{
    int fd = peer_connect(&tiny);
    struct buf b;
    char long_name[257];

    memset(long_name, 'n', 256);
    long_name[256] = '\0';

    put_auth_sys(&b, "here", 4, 1001, 16, 16);
    send_with_credential(fd, 1, AUTH_SYS, (uint32_t)b.len, &b);
    EXPECT_ACCEPTED(fd, 1, SUCCESS, 1001);
    put_auth_sys(&b, "", 0, 1002, 0, 0);
    send_with_credential(fd, 2, AUTH_SYS, (uint32_t)b.len, &b);
    EXPECT_ACCEPTED(fd, 2, SUCCESS, 1002);
    /* More groups than may be, */
    put_auth_sys(&b, "here", 4, 1001, 17, 17);
    send_with_credential(fd, 3, AUTH_SYS, (uint32_t)b.len, &b);
    EXPECT_AUTH_ERROR(fd, 3, AUTH_BADCRED);
    /* fewer than announced, */
    put_auth_sys(&b, "here", 4, 1001, 3, 2);
    send_with_credential(fd, 4, AUTH_SYS, (uint32_t)b.len, &b);
    EXPECT_AUTH_ERROR(fd, 4, AUTH_BADCRED);
    /* more than announced, */
    put_auth_sys(&b, "here", 4, 1001, 2, 3);
    send_with_credential(fd, 5, AUTH_SYS, (uint32_t)b.len, &b);
    EXPECT_AUTH_ERROR(fd, 5, AUTH_BADCRED);
    /* a name longer than the credential, and one of 4 GiB, */
    put_auth_sys(&b, "here", 200, 1001, 0, 0);
    send_with_credential(fd, 6, AUTH_SYS, (uint32_t)b.len, &b);
    EXPECT_AUTH_ERROR(fd, 6, AUTH_BADCRED);
    put_auth_sys(&b, "here", 0xfffffffdu, 1001, 0, 0);
    send_with_credential(fd, 7, AUTH_SYS, (uint32_t)b.len, &b);
    EXPECT_AUTH_ERROR(fd, 7, AUTH_BADCRED);
    /* a count of groups that overflows, */
    put_auth_sys(&b, "here", 4, 1001, 0x40000000u, 0);
    send_with_credential(fd, 8, AUTH_SYS, (uint32_t)b.len, &b);
    EXPECT_AUTH_ERROR(fd, 8, AUTH_BADCRED);
    /* a name longer than names may be, all of it there, */
    put_auth_sys(&b, long_name, 256, 1001, 0, 0);
    send_with_credential(fd, 11, AUTH_SYS, (uint32_t)b.len, &b);
    EXPECT_AUTH_ERROR(fd, 11, AUTH_BADCRED);
    put_auth_sys(&b, long_name + 1, 255, 1003, 0, 0);
    send_with_credential(fd, 12, AUTH_SYS, (uint32_t)b.len, &b);
    EXPECT_ACCEPTED(fd, 12, SUCCESS, 1003);
    /* nothing at all, and a length that is no multiple of four. */
    buf_init(&b, 16);
    send_with_credential(fd, 9, AUTH_SYS, 0, &b);
    EXPECT_AUTH_ERROR(fd, 9, AUTH_BADCRED);
    put_auth_sys(&b, "here", 4, 1001, 1, 1);
    send_with_credential(fd, 10, AUTH_SYS, (uint32_t)b.len - 1, &b);
    EXPECT_AUTH_ERROR(fd, 10, AUTH_BADCRED);
    expect_alive(fd);
    close(fd);
}
END_TEST

START_TEST(other_flavours_and_too_long_credentials)
{
    static const uint32_t flavours[] = {2, 3, 6, 7, 300001, 0xffffffffu};
    static char zeros[1024];
    int fd = peer_connect(&tiny);
    struct buf b;

    for (uint32_t i = 0; i < sizeof(flavours) / sizeof(flavours[0]); i++) {
        buf_init(&b, 16);
        put_word(&b, 0);
        send_with_credential(fd, i, flavours[i], 4, &b);
        EXPECT_AUTH_ERROR(fd, i, AUTH_REJECTEDCRED);
    }
    /* 400 bytes are legal, if of no use; 404 are not. */
    buf_init(&b, 1024);
    ck_assert(buf_append(&b, zeros, 400));
    send_with_credential(fd, 10, AUTH_NONE, 400, &b);
    EXPECT_ACCEPTED(fd, 10, SUCCESS, 0);
    ck_assert(buf_append(&b, zeros, 404));
    send_with_credential(fd, 11, AUTH_NONE, 404, &b);
    EXPECT_AUTH_ERROR(fd, 11, AUTH_BADCRED);
    /* Longer than the record. */
    ck_assert(buf_append(&b, zeros, 8));
    send_with_credential(fd, 12, AUTH_NONE, 300, &b);
    EXPECT_AUTH_ERROR(fd, 12, AUTH_BADCRED);
    send_with_credential(fd, 13, AUTH_NONE, 0xffffffffu, &b);
    EXPECT_AUTH_ERROR(fd, 13, AUTH_BADCRED);
    /* No verifier: the eight bytes after the credential are taken for one that is cut off. */
    put_word(&b, 0);
    put_word(&b, 401);
    send_with_credential(fd, 14, AUTH_NONE, 0, &b);
    EXPECT_AUTH_ERROR(fd, 14, AUTH_BADVERF);
    expect_alive(fd);
    close(fd);
}
END_TEST

START_TEST(arguments_cut_short_and_too_long)
{
    static char zeros[2048];
    int fd = peer_connect(&tiny);
    struct buf b;

    buf_init(&b, 8192);
    put_call(&b, 1, TINY_BODY);
    ck_assert(peer_send(fd, &b));
    EXPECT_ACCEPTED(fd, 1, GARBAGE_ARGS);
    put_call(&b, 2, TINY_ECHO);
    put_word(&b, 100);
    ck_assert(buf_append(&b, zeros, 96));
    ck_assert(peer_send(fd, &b));
    EXPECT_ACCEPTED(fd, 2, GARBAGE_ARGS);
    put_call(&b, 3, TINY_ECHO);
    put_word(&b, 0xffffffffu);
    ck_assert(peer_send(fd, &b));
    EXPECT_ACCEPTED(fd, 3, GARBAGE_ARGS);
    ck_assert(peer_call(fd, 4, TINY_BODY, 0xfffffffcu));
    EXPECT_ACCEPTED(fd, 4, GARBAGE_ARGS);
    /* What stands behind the arguments is ignored, as with libtirpc. */
    put_call(&b, 5, TINY_BODY);
    put_word(&b, 3);
    ck_assert(buf_append(&b, zeros, sizeof(zeros)));
    ck_assert(peer_send(fd, &b));
    expect_body(&tiny, fd, 5, 3);
    expect_alive(fd);
    close(fd);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("rpc hostile");
    TCase *tcase = tcase_create("peers");

    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, small_start, small_stop);
    tcase_add_test(tcase, half_a_record_stalls_no_other_client);
    tcase_add_test(tcase, a_record_byte_by_byte);
    tcase_add_test(tcase, fragments_of_one_byte);
    tcase_add_test(tcase, empty_fragments);
    tcase_add_test(tcase, a_fragment_of_two_gibibytes);
    tcase_add_test(tcase, a_record_over_the_bound);
    tcase_add_test(tcase, what_is_no_call);
    tcase_add_test(tcase, a_caller_that_speaks_http);
    tcase_add_test(tcase, good_calls_before_a_bad_record);
    tcase_add_test(tcase, unknown_versions_programs_and_procedures);
    tcase_add_test(tcase, credentials_of_auth_sys);
    tcase_add_test(tcase, other_flavours_and_too_long_credentials);
    tcase_add_test(tcase, arguments_cut_short_and_too_long);
    suite_add_tcase(suite, tcase);
    return suite;
}
