/*
 * The 64-bit hashes: fixed values, since the daemon and the simulator must agree for ever, and how
 * well they mix; and the digest of bytes in pieces.
 */
#define UNIT_STARTS_NO_THREAD

#include "base/digest.h"
#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

START_TEST(values_never_change)
{
    ck_assert_uint_eq(hash64_uint(0), 0xe220a8397b1dcdafU); /* SplitMix64's first, seeded with 0 */
    ck_assert_uint_eq(hash64_bytes(span_str("")), 0x2d06800538d394c2U); /* XXH3's, as specified */
    ck_assert_uint_eq(hash64_bytes(span_str("http://a.test/")), 0x6a9430545c3317eeU);
}
END_TEST

START_TEST(splitmix_is_splitmix)
{
    /* The first outputs for seed 1234567, as published with other implementations. */
    static const uint64_t known[] = {6457827717110365317u, 3203168211198807973u,
                                     9817491932198370423u, 4593380528125082431u,
                                     16408922859458223821u};
    uint64_t state = 1234567;

    for (size_t i = 0; i < 5; i++)
        ck_assert_uint_eq(splitmix64_next(&state), known[i]);
}
END_TEST

START_TEST(length_and_place_count)
{
    static const char zeros[32] = {0};

    for (size_t len = 0; len < sizeof(zeros); len++)
        ck_assert_uint_ne(hash64_bytes(span_of(zeros, len)), hash64_bytes(span_of(zeros, len + 1)));
    ck_assert_uint_ne(hash64_bytes(span_str("abcdefghABCDEFGH")),
                      hash64_bytes(span_str("ABCDEFGHabcdefgh")));
    /* Bytes beyond the span are not looked at, wherever it begins. */
    for (size_t i = 0; i < 8; i++) {
        char text[32];

        memset(text, 'x', sizeof(text));
        memcpy(text + i, "http://a.test/", 14);
        ck_assert_uint_eq(hash64_bytes(span_of(text + i, 14)),
                          hash64_bytes(span_str("http://a.test/")));
    }
}
END_TEST

/* Each bit that goes in turns over about half of those that come out. */
START_TEST(bits_spread)
{
    enum { LEN = 24, BITS = LEN * 8, ROUNDS = 64 };
    unsigned turned[BITS] = {0};

    srandom(1);
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char text[LEN];
        uint64_t before;

        for (size_t i = 0; i < LEN; i++)
            text[i] = (unsigned char)random();
        before = hash64_bytes(span_of(text, LEN));
        for (size_t bit = 0; bit < BITS; bit++) {
            text[bit / 8] ^= (unsigned char)(1U << (bit % 8));
            turned[bit] +=
                (unsigned)__builtin_popcountll(before ^ hash64_bytes(span_of(text, LEN)));
            text[bit / 8] ^= (unsigned char)(1U << (bit % 8));
        }
    }
    for (size_t bit = 0; bit < BITS; bit++) {
        ck_assert_uint_ge(turned[bit], ROUNDS * 28);
        ck_assert_uint_le(turned[bit], ROUNDS * 36);
    }
}
END_TEST

static int
ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

START_TEST(urls_that_differ_little_do_not_collide)
{
    enum { COUNT = 100000 };
    uint64_t *hashes = malloc(COUNT * sizeof(*hashes));

    ck_assert_ptr_nonnull(hashes);
    for (int i = 0; i < COUNT; i++) {
        char url[64];
        int len = snprintf(url, sizeof(url), "http://host%d.test/%d", i % 10, i);

        hashes[i] = hash64_bytes(span_of(url, (size_t)len));
    }
    qsort(hashes, COUNT, sizeof(*hashes), ascending);
    for (int i = 1; i < COUNT; i++)
        ck_assert_uint_ne(hashes[i - 1], hashes[i]);
    free(hashes);
}
END_TEST

/* Of a text that is cut at each place. */
START_TEST(pieces_do_not_change_a_digest)
{
    char text[100];
    struct digest whole = {0}, empty = {0};

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)(i * 7);
    digest_add(&whole, span_of(text, sizeof(text)));
    ck_assert(!digest_equal(&whole, &empty));
    for (size_t cut = 0; cut <= sizeof(text); cut++) {
        struct digest pieces = {0};

        digest_add(&pieces, span_of(text, cut));
        digest_add(&pieces, span_of(text + cut, sizeof(text) - cut));
        ck_assert(digest_equal(&pieces, &whole));
        digest_add(&pieces, span_of(text, 1));
        ck_assert(!digest_equal(&pieces, &whole));
    }
    text[50] ^= 1;
    digest_add(&empty, span_of(text, sizeof(text)));
    ck_assert(!digest_equal(&whole, &empty));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("hash");
    TCase *tcase = tcase_create("hash");

    tcase_add_test(tcase, values_never_change);
    tcase_add_test(tcase, splitmix_is_splitmix);
    tcase_add_test(tcase, length_and_place_count);
    tcase_add_test(tcase, bits_spread);
    tcase_add_test(tcase, urls_that_differ_little_do_not_collide);
    tcase_add_test(tcase, pieces_do_not_change_a_digest);
    suite_add_tcase(suite, tcase);
    return suite;
}
