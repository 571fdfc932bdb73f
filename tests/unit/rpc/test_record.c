/* Record marking (RFC 5531, section 11), fed in every way, and replies gathered in pieces. */
#define UNIT_STARTS_NO_THREAD

#include "rpc/gather.h"
#include "rpc/record.h"
#include "tests/unit/rpc/peer.h"

static const struct rpc_limits limits = {.max_record = 5000, .max_empty_fragments = 5};

static void
put_fragment(struct buf *b, const char *bytes, uint32_t len, bool last)
{
    put_word(b, (last ? 0x80000000u : 0) | len);
    if (len)
        ck_assert(buf_append(b, bytes, len));
}

/* Feeds the stream in steps of `step` bytes; appends every whole record, and a '|', to *all. */
static enum rpc_record_status
feed(struct span stream, size_t step, struct buf *all)
{
    struct rpc_record r = {0};
    enum rpc_record_status status = RPC_RECORD_MORE;

    while (stream.len && status != RPC_RECORD_BAD) {
        size_t take = stream.len < step ? stream.len : step;
        /* On the heap and to the byte, so that a look past the end shows. */
        char *piece = malloc(take);
        struct span input = span_of(piece, take), record;

        ck_assert_ptr_nonnull(piece);
        memcpy(piece, stream.ptr, take);
        stream.ptr += take;
        stream.len -= take;
        while (input.len) {
            status = rpc_record_feed(&r, &limits, &input, &record);
            if (status != RPC_RECORD_COMPLETE)
                break;
            ck_assert(record.len == 0 || buf_append(all, record.ptr, record.len));
            ck_assert(buf_append_char(all, '|'));
            rpc_record_reset(&r);
        }
        free(piece);
    }
    rpc_record_reset(&r);
    return status;
}

START_TEST(records_come_in_any_steps)
{
    static char large[4998];
    struct buf stream, expected;

    memset(large, 'x', sizeof(large));
    buf_init(&stream, 1u << 20);
    buf_init(&expected, 1u << 20);
    put_fragment(&stream, "whole", 5, true);
    put_fragment(&stream, "", 0, true);
    put_fragment(&stream, "in ", 3, false);
    put_fragment(&stream, "", 0, false);
    put_fragment(&stream, "three", 5, true);
    put_fragment(&stream, large, sizeof(large), false);
    put_fragment(&stream, "", 0, false);
    put_fragment(&stream, "", 0, false);
    put_fragment(&stream, "yz", 2, false);
    put_fragment(&stream, "", 0, true);
    put_fragment(&stream, "end", 3, true);
    ck_assert(buf_append_str(&expected, "whole||in three|"));
    ck_assert(buf_append(&expected, large, sizeof(large)));
    ck_assert(buf_append_str(&expected, "yz|end|"));
    for (size_t step = 1; step <= stream.len; step += step < 64 ? 1 : 37) {
        struct buf all;

        buf_init(&all, 1u << 20);
        ck_assert_int_eq(feed(buf_span(&stream), step, &all), RPC_RECORD_COMPLETE);
        ck_assert(span_equal(buf_span(&all), buf_span(&expected)));
        buf_free(&all);
    }
    buf_free(&stream);
    buf_free(&expected);
}
END_TEST

START_TEST(bounds_hold_in_any_steps)
{
    static const uint32_t bad[][6] = {
        {0x80000000u | 5001}, {5001}, {0xffffffffu}, {0x7fffffffu}, {0, 0, 0, 0, 0, 0},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct buf stream;

        buf_init(&stream, 1u << 20);
        for (size_t j = 0; j < 6; j++)
            put_word(&stream, bad[i][j]);
        for (size_t step = 1; step <= stream.len; step++) {
            struct buf all;

            buf_init(&all, 1024);
            ck_assert_int_eq(feed(buf_span(&stream), step, &all), RPC_RECORD_BAD);
            ck_assert_uint_eq(all.len, 0);
        }
        buf_free(&stream);
    }
}
END_TEST

/* RFC 5531 section 11 sets no bound on the number of fragments: their bytes are bounded. */
START_TEST(fragments_with_bytes_are_not_counted)
{
    static char bytes[5000];
    struct buf stream, all;

    memset(bytes, 'x', sizeof(bytes));
    buf_init(&stream, 1u << 20);
    for (size_t i = 0; i < sizeof(bytes); i++)
        put_fragment(&stream, bytes + i, 1, i + 1 == sizeof(bytes));
    for (size_t step = 1; step < 12; step++) {
        buf_init(&all, 1u << 20);
        ck_assert_int_eq(feed(buf_span(&stream), step, &all), RPC_RECORD_COMPLETE);
        ck_assert_uint_eq(all.len, sizeof(bytes) + 1);
        ck_assert(memcmp(all.data, bytes, sizeof(bytes)) == 0);
        buf_free(&all);
    }
    buf_free(&stream);
}
END_TEST

/* Memory follows the bytes that have come, whatever a header announces. */
START_TEST(an_announcement_takes_no_memory)
{
    struct rpc_record r = {0};
    struct rpc_limits wide = {.max_record = 0x7fffffff, .max_empty_fragments = 5};
    static const char bytes[] = {0x7f, 0, 0, 0, 1, 2, 3};
    struct span input = span_of(bytes, sizeof(bytes)), record;

    ck_assert_int_eq(rpc_record_feed(&r, &wide, &input, &record), RPC_RECORD_MORE);
    ck_assert_uint_eq(r.len, 3);
    ck_assert_uint_lt(r.capacity, 1024);
    for (size_t i = 0; i < 1000; i++) {
        input = span_of(bytes + 4, 3);
        ck_assert_int_eq(rpc_record_feed(&r, &wide, &input, &record), RPC_RECORD_MORE);
        ck_assert_uint_le(r.capacity, r.len < 256 ? 512 : 2 * r.len);
    }
    rpc_record_reset(&r);
}
END_TEST

/* ---- gathering ------------------------------------------------------------------------------- */

static void
encode(XDR *xdr, uint32_t seed)
{
    static char bytes[70000];

    memset(bytes, 'b', sizeof(bytes));
    for (uint32_t i = 0; i < 60; i++) {
        uint32_t value = seed = seed * 1103515245 + 12345;
        u_int len = (value >> 8) % (i % 8 ? 700 : 70000);
        u_quad_t quad = value * (u_quad_t)0x100000001u;
        char *at = bytes;
        int32_t *inlined;

        u_int where, zero = 0;

        ck_assert(xdr_u_quad_t(xdr, &quad));
        ck_assert(xdr_bytes(xdr, &at, &len, sizeof(bytes)));
        /* A word that is written again. */
        where = XDR_GETPOS(xdr);
        ck_assert(xdr_u_int(xdr, &zero) && XDR_SETPOS(xdr, where));
        ck_assert(xdr_u_int(xdr, &value));
        inlined = (int32_t *)XDR_INLINE(xdr, 8);
        if (inlined) {
            IXDR_PUT_U_INT32(inlined, value);
            IXDR_PUT_U_INT32(inlined, len);
        } else {
            ck_assert(xdr_u_int(xdr, &value));
            ck_assert(xdr_u_int(xdr, &len));
        }
    }
}

/* Whatever is copied and whatever is not, the bytes are those of libtirpc's own stream. */
START_TEST(pieces_are_what_one_buffer_would_hold)
{
    enum { PLAIN_BYTES = 4 << 20 };
    char *plain = malloc(PLAIN_BYTES);
    static struct rpc_reply reply;

    rpc_reply_init(&reply, NULL);
    for (uint32_t seed = 0; seed < 200; seed++) {
        struct rpc_gather gather;
        struct buf all;
        XDR xdr;
        u_int len;

        xdrmem_create(&xdr, plain, PLAIN_BYTES, XDR_ENCODE);
        encode(&xdr, seed);
        len = XDR_GETPOS(&xdr);
        rpc_gather_begin(&gather, &reply, seed % 2);
        encode(&gather.xdr, seed);
        ck_assert_uint_eq(XDR_GETPOS(&gather.xdr), len);
        ck_assert(!XDR_SETPOS(&gather.xdr, 0));
        ck_assert(rpc_gather_end(&gather));
        buf_init(&all, PLAIN_BYTES);
        for (unsigned i = 0; i < reply.output.count; i++)
            ck_assert(
                buf_append(&all, reply.output.pieces[i].iov_base, reply.output.pieces[i].iov_len));
        ck_assert_uint_eq(all.len, len + 4);
        ck_assert_uint_eq(reply.output.len, len + 4);
        ck_assert_uint_eq(get_word(&all, 0), 0x80000000u | len);
        ck_assert(memcmp(all.data + 4, plain, len) == 0);
        buf_free(&all);
        rpc_reply_free(&reply);
    }
    free(plain);
}
END_TEST

START_TEST(a_held_body_costs_three_pieces)
{
    static char bytes[5001];
    static struct rpc_reply reply;
    struct rpc_gather gather;
    char *at = bytes;
    u_int len = sizeof(bytes);

    rpc_reply_init(&reply, NULL);
    rpc_gather_begin(&gather, &reply, true);
    ck_assert(xdr_bytes(&gather.xdr, &at, &len, len));
    ck_assert(!XDR_SETPOS(&gather.xdr, 0)); /* what was sent from its place is not taken back */
    ck_assert(!XDR_SETPOS(&gather.xdr, XDR_GETPOS(&gather.xdr) + 4));
    ck_assert(rpc_gather_end(&gather));
    ck_assert_uint_eq(reply.output.count, 3);
    ck_assert_ptr_eq(reply.output.pieces[1].iov_base, bytes);
    ck_assert_uint_eq(reply.output.pieces[2].iov_len, 3);
    ck_assert_ptr_null(reply.chunks);
    rpc_reply_free(&reply);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("rpc record");
    TCase *tcase = tcase_create("record");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, records_come_in_any_steps);
    tcase_add_test(tcase, bounds_hold_in_any_steps);
    tcase_add_test(tcase, fragments_with_bytes_are_not_counted);
    tcase_add_test(tcase, an_announcement_takes_no_memory);
    tcase_add_test(tcase, pieces_are_what_one_buffer_would_hold);
    tcase_add_test(tcase, a_held_body_costs_three_pieces);
    suite_add_tcase(suite, tcase);
    return suite;
}
