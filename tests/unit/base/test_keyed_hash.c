/* SipHash-1-3, against CPython's hash() of bytes under the key of PYTHONHASHSEED=0, which is zero. */
#include "base/keyed_hash.h"

#include "tests/unit/unit.h"

START_TEST(values_of_cpython)
{
    static const struct {
        size_t len;
        uint64_t hash;
    } rows[] = {{15, 0xf30eb725bb91c9ea}, {63, 0x385d3e39e5f37359}};
    const struct hash_key key = {{0, 0}};
    char bytes[63];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)i;
    for (size_t i = 0; i < 2; i++)
        ck_assert_uint_eq(keyed_hash(&key, span_of(bytes, rows[i].len)), rows[i].hash);
    ck_assert_uint_eq(keyed_hash(&key, span_str("a")), 0x407448d2b89b1813);
    ck_assert_uint_eq(keyed_hash(&key, span_str("abcdefg")), 0x6db12aae9070f506);
    ck_assert_uint_eq(keyed_hash(&key, span_str("abcdefgh")), 0x3f7b849c0b8e35ea);
}
END_TEST

START_TEST(keys_differ)
{
    struct hash_key a, b;

    ck_assert(hash_key_init(&a) && hash_key_init(&b));
    ck_assert_uint_ne(keyed_hash(&a, span_str("a")), keyed_hash(&b, span_str("a")));
    ck_assert_uint_eq(keyed_hash(&a, span_str("a")), keyed_hash(&a, span_str("a")));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base: keyed hashes");
    TCase *tcase = tcase_create("all");

    tcase_add_test(tcase, values_of_cpython);
    tcase_add_test(tcase, keys_differ);
    suite_add_tcase(suite, tcase);
    return suite;
}
