/*
 * XXH3 by the vectors of this processor: it is that of the library.
 */
#define UNIT_STARTS_NO_THREAD

#include "base/xxh3.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tests/unit/unit.h"

START_TEST(the_sum_is_that_of_the_library)
{
    static unsigned char bytes[70000];
    uint64_t draws = 5;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)unit_draw(&draws, 256);
    for (size_t len = 0; len <= sizeof(bytes) - 7; len += len < 2100 ? 1 : 977) {
        const uint64_t seed = len % 3 ? (uint64_t)unit_draw(&draws, UINT32_MAX) << 32 | len : 0;

        ck_assert_uint_eq(xxh3_sum(seed, bytes + len % 7, len),
                          XXH3_64bits_withSeed(bytes + len % 7, len, seed));
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("xxh3");
    TCase *tcase = tcase_create("xxh3");

    tcase_add_test(tcase, the_sum_is_that_of_the_library);
    suite_add_tcase(suite, tcase);
    return suite;
}
