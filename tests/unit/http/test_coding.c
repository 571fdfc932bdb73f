/* Content codings undone: each coding, in pieces of any size, damaged, cut, and endless. */
#include "http/coding.h"

#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define TEXT_LEN 50000u

static char text[TEXT_LEN];

/* Compressible, and not all the same. */
static void
set_up(void)
{
    for (size_t i = 0; i < TEXT_LEN; i++)
        text[i] = (char)('a' + (i / 7 + i * i / 1000) % 26);
}

struct coded {
    enum coding coding;
    unsigned char bytes[2 * CODING_IDLE_MAX];
    size_t len;
};

static void
deflate_text(struct coded *coded, enum coding coding, int window_bits, size_t len)
{
    z_stream zlib = {0};

    coded->coding = coding;
    ck_assert_int_eq(deflateInit2(&zlib, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    zlib.next_in = (Bytef *)text;
    zlib.avail_in = (unsigned)len;
    zlib.next_out = coded->bytes;
    zlib.avail_out = sizeof(coded->bytes);
    ck_assert_int_eq(deflate(&zlib, Z_FINISH), Z_STREAM_END);
    coded->len = zlib.total_out;
    deflateEnd(&zlib);
}

static void
zstd_text(struct coded *coded, size_t len)
{
    coded->coding = CODING_ZSTD;
    coded->len = ZSTD_compress(coded->bytes, sizeof(coded->bytes), text, len, 3);
    ck_assert(!ZSTD_isError(coded->len));
}

/* `brotli -c` of "hello brotli\n". */
static const unsigned char brotli_hello[] = {0x0f, 0x06, 0x80, 'h', 'e', 'l', 'l',  'o', ' ',
                                             'b',  'r',  'o',  't', 'l', 'i', '\n', 0x03};

/*
 * Decodes in pieces of `in` bytes into buffers of `out` bytes. How many bytes were made, or -1 if
 * it is broken; *whole: the input may end there.
 */
static long
decode(enum coding coding, const void *bytes, size_t len, size_t in, size_t out, const char *wanted,
       bool *whole)
{
    struct decoder *decoder = decoder_create(coding);
    const char *reason = NULL;
    long total = 0;
    char *buffer = malloc(out);

    ck_assert_ptr_nonnull(decoder);
    for (size_t at = 0; at < len && total >= 0; at += in) {
        struct span input = span_of((const char *)bytes + at, len - at < in ? len - at : in);
        enum coding_step step;

        do {
            size_t made;

            step = decoder_step(decoder, &input, buffer, out, &made, &reason);
            ck_assert_uint_le(made, out);
            if (wanted && total >= 0 && step != CODING_BROKEN)
                ck_assert(memcmp(buffer, wanted + (size_t)total % TEXT_LEN, made) == 0);
            total += (long)made;
        } while (step == CODING_MADE);
        if (step == CODING_BROKEN) {
            ck_assert_ptr_nonnull(reason);
            total = -1;
        } else {
            ck_assert_uint_eq(input.len, 0);
        }
    }
    *whole = decoder_may_end(decoder);
    decoder_destroy(decoder);
    free(buffer);
    return total;
}

static void
expect_text(const struct coded *coded, size_t len)
{
    static const size_t ins[] = {1, 2, 5, 1000, TEXT_LEN};
    static const size_t outs[] = {1, 10, 16384, TEXT_LEN};
    bool whole;

    for (size_t i = 0; i < LENGTH(ins); i++)
        for (size_t j = 0; j < LENGTH(outs); j++) {
            ck_assert_int_eq(
                decode(coded->coding, coded->bytes, coded->len, ins[i], outs[j], text, &whole),
                (long)len);
            ck_assert(whole);
        }
    /* Cut, it does not pass for whole. */
    for (size_t cut = 1; cut < coded->len; cut += coded->len / 20 + 1) {
        ck_assert_int_ge(decode(coded->coding, coded->bytes, cut, 1000, 16384, text, &whole), 0);
        ck_assert_msg(!whole, "coding %d cut at %zu", (int)coded->coding, cut);
    }
}

START_TEST(each_coding)
{
    static const size_t lens[] = {0, 1, 6, TEXT_LEN};
    static struct coded coded;

    for (size_t i = 0; i < LENGTH(lens); i++) {
        deflate_text(&coded, CODING_GZIP, 15 + 16, lens[i]);
        expect_text(&coded, lens[i]);
        deflate_text(&coded, CODING_DEFLATE, 15, lens[i]);
        expect_text(&coded, lens[i]);
        deflate_text(&coded, CODING_DEFLATE, -15, lens[i]);
        expect_text(&coded, lens[i]);
        zstd_text(&coded, lens[i]);
        expect_text(&coded, lens[i]);
    }
}
END_TEST

START_TEST(brotli)
{
    bool whole;

    memcpy(text, "hello brotli\n", 13);
    for (size_t in = 1; in <= sizeof(brotli_hello); in++) {
        ck_assert_int_eq(
            decode(CODING_BROTLI, brotli_hello, sizeof(brotli_hello), in, 4, text, &whole), 13);
        ck_assert(whole);
    }
    ck_assert_int_ge(decode(CODING_BROTLI, brotli_hello, 8, 3, 4, text, &whole), 0);
    ck_assert(!whole);
    ck_assert_int_eq(decode(CODING_BROTLI, "\xff\xff\xff\xff", 4, 4, 4, NULL, &whole), -1);
}
END_TEST

/* All that the input yields is made before more of it is asked for. */
START_TEST(brotli_that_is_cut)
{
    bool whole;
    long made = decode(CODING_BROTLI, brotli_hello, 12, 12, 64, NULL, &whole);

    ck_assert_int_gt(made, 1);
    ck_assert(!whole);
    for (size_t out = 1; out < 16; out++)
        ck_assert_int_eq(decode(CODING_BROTLI, brotli_hello, 12, 12, out, NULL, &whole), made);
}
END_TEST

START_TEST(several_members)
{
    static struct coded one, twice;
    bool whole;

    for (unsigned i = 0; i < 2; i++) {
        if (i == 0)
            deflate_text(&one, CODING_GZIP, 15 + 16, TEXT_LEN);
        else
            zstd_text(&one, TEXT_LEN);
        ck_assert_uint_le(2 * one.len, sizeof(twice.bytes));
        memcpy(twice.bytes, one.bytes, one.len);
        memcpy(twice.bytes + one.len, one.bytes, one.len);
        ck_assert_int_eq(decode(one.coding, twice.bytes, 2 * one.len, 999, 4096, text, &whole),
                         2 * (long)TEXT_LEN);
        ck_assert(whole);
        ck_assert_int_ge(decode(one.coding, twice.bytes, one.len + 10, 999, 4096, text, &whole), 0);
        ck_assert(!whole);
    }
}
END_TEST

START_TEST(what_follows_the_end)
{
    static struct coded coded;
    bool whole;

    deflate_text(&coded, CODING_GZIP, 15 + 16, 100);
    memset(coded.bytes + coded.len, 0, 1000);
    ck_assert_int_eq(decode(CODING_GZIP, coded.bytes, coded.len + 1000, 64, 64, text, &whole), 100);
    ck_assert(whole);
    memset(coded.bytes + coded.len, 0, CODING_IDLE_MAX + 100);
    ck_assert_int_eq(
        decode(CODING_GZIP, coded.bytes, coded.len + CODING_IDLE_MAX + 100, 64, 64, text, &whole),
        -1);
}
END_TEST

/* What begins a member is none behind other bytes, wherever the pieces are cut. */
START_TEST(a_member_behind_other_bytes)
{
    static const struct {
        enum coding coding;
        const char *behind;
    } rows[] = {{CODING_GZIP, "other\x1f\x8b"}, {CODING_ZSTD, "other\x28\xb5"}};
    static struct coded coded;
    bool whole;

    for (size_t i = 0; i < LENGTH(rows); i++) {
        if (rows[i].coding == CODING_GZIP)
            deflate_text(&coded, CODING_GZIP, 15 + 16, 1000);
        else
            zstd_text(&coded, 1000);
        memcpy(coded.bytes + coded.len, rows[i].behind, 7);
        coded.len += 7;
        for (size_t in = 1; in <= 16; in++) {
            ck_assert_int_eq(decode(coded.coding, coded.bytes, coded.len, in, 16384, text, &whole),
                             1000);
            ck_assert(whole);
        }
    }
}
END_TEST

START_TEST(damaged)
{
    static struct coded coded;
    bool whole;

    ck_assert_int_eq(decode(CODING_GZIP, "abc", 3, 3, 64, NULL, &whole), -1);
    ck_assert_int_eq(decode(CODING_DEFLATE, "\xff\xff\xff", 3, 1, 64, NULL, &whole), -1);
    ck_assert_int_eq(decode(CODING_ZSTD, "abcdefgh", 8, 3, 64, NULL, &whole), -1);
    deflate_text(&coded, CODING_GZIP, 15 + 16, TEXT_LEN);
    coded.bytes[coded.len - 6] ^= 1; /* the check sum */
    ck_assert_int_eq(decode(CODING_GZIP, coded.bytes, coded.len, 1000, 1000, NULL, &whole), -1);
}
END_TEST

/* A window larger than 8 MiB is refused before it is allocated: RFC 9659. */
START_TEST(large_windows)
{
    static const char frame[] = "\x28\xb5\x2f\xfd\x00\x98\x01\x00\x00";
    static const char modest[] = "\x28\xb5\x2f\xfd\x00\x68\x01\x00\x00";
    bool whole;

    ck_assert_int_eq(decode(CODING_ZSTD, frame, sizeof(frame) - 1, 100, 64, NULL, &whole), -1);
    ck_assert_int_eq(decode(CODING_ZSTD, modest, sizeof(modest) - 1, 100, 64, NULL, &whole), 0);
}
END_TEST

/* What makes nothing: names, comments and empty members of gzip, empty blocks, skippable frames. */
START_TEST(endless_nothing)
{
    static const struct {
        enum coding coding;
        const char *start;
        size_t start_len;
        const char *piece;
        size_t piece_len;
    } cases[] = {
        {CODING_GZIP, "\x1f\x8b\x08\x08\0\0\0\0\x02\x03", 10, "name", 4},
        {CODING_GZIP, "\x1f\x8b\x08\x10\0\0\0\0\x02\x03", 10, "comment", 7},
        {CODING_GZIP, "\x1f\x8b\x08\0\0\0\0\0\x02\x03", 10, "\0\0\0\xff\xff", 5},
        {CODING_GZIP, "", 0, "\x1f\x8b\x08\0\0\0\0\0\x02\x03\x03\0\0\0\0\0\0\0\0\0", 20},
        {CODING_DEFLATE, "", 0, "\0\0\0\xff\xff", 5},
        {CODING_ZSTD, "", 0, "\x50\x2a\x4d\x18\x04\0\0\0abcd", 12},
    };
    static char bytes[3 * CODING_IDLE_MAX];
    bool whole;

    for (size_t i = 0; i < LENGTH(cases); i++) {
        size_t len = cases[i].start_len;

        memcpy(bytes, cases[i].start, len);
        for (; len + cases[i].piece_len <= sizeof(bytes); len += cases[i].piece_len)
            memcpy(bytes + len, cases[i].piece, cases[i].piece_len);
        ck_assert_msg(decode(cases[i].coding, bytes, len, 1000, 64, NULL, &whole) == -1, "case %zu",
                      i);
        ck_assert_msg(decode(cases[i].coding, bytes, CODING_IDLE_MAX, 1000, 64, NULL, &whole) == 0,
                      "case %zu", i);
    }
}
END_TEST

START_TEST(names)
{
    ck_assert_int_eq(coding_parse(span_str("")), CODING_IDENTITY);
    ck_assert_int_eq(coding_parse(span_str("identity")), CODING_IDENTITY);
    ck_assert_int_eq(coding_parse(span_str("GZip")), CODING_GZIP);
    ck_assert_int_eq(coding_parse(span_str("x-gzip")), CODING_GZIP);
    ck_assert_int_eq(coding_parse(span_str("br")), CODING_BROTLI);
    ck_assert_int_eq(coding_parse(span_str("brr")), CODING_UNKNOWN);
    ck_assert_int_eq(coding_parse(span_str("zstd")), CODING_ZSTD);
    decoder_destroy(NULL);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/coding");
    TCase *tc = tcase_create("coding");

    tcase_add_unchecked_fixture(tc, set_up, NULL);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, each_coding);
    tcase_add_test(tc, several_members);
    tcase_add_test(tc, what_follows_the_end);
    tcase_add_test(tc, a_member_behind_other_bytes);
    tcase_add_test(tc, damaged);
    tcase_add_test(tc, large_windows);
    tcase_add_test(tc, endless_nothing);
    tcase_add_test(tc, names);
    tcase_add_test(tc, brotli);
    tcase_add_test(tc, brotli_that_is_cut);
    suite_add_tcase(suite, tc);
    return suite;
}
