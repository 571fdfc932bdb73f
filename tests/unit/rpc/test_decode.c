#define UNIT_STARTS_NO_THREAD

#include "rpc/decode.h"
#include "tests/unit/unit.h"

#include <stdlib.h>

static const char wire[] = "\0\0\0\5hello\0\0\0"
                           "\xff\xff\xff\xfe"
                           "\0\0\0\1\0\0\0\2"
                           "\0\0\0\0";

START_TEST(runs_and_numbers_are_read_in_turn)
{
    u_quad_t wide = 0;
    char *text = NULL;
    u_int len = 0;
    int number = 0;
    XDR xdr;

    rpc_decode_begin(&xdr, span_of(wire, sizeof(wire) - 1));
    ck_assert(xdr_bytes(&xdr, &text, &len, 100));
    ck_assert(span_equal(span_of(text, len), span_str("hello")));
    ck_assert_uint_eq(xdr_getpos(&xdr), 12);
    ck_assert(xdr_int(&xdr, &number));
    ck_assert_int_eq(number, -2);
    ck_assert(xdr_u_quad_t(&xdr, &wide));
    ck_assert_uint_eq(wide, 0x100000002);
    free(text);
    text = NULL;
    ck_assert(xdr_bytes(&xdr, &text, &len, 100));
    ck_assert_uint_eq(len, 0);
    ck_assert_uint_eq(xdr_getpos(&xdr), sizeof(wire) - 1);
    ck_assert(!xdr_int(&xdr, &number));
    free(text);
}
END_TEST

START_TEST(cut_anywhere_it_fails)
{
    for (size_t size = 0; size < 12; size++) {
        char *text = NULL;
        u_int len = 0;
        XDR xdr;

        rpc_decode_begin(&xdr, span_of(wire, size));
        ck_assert(!xdr_bytes(&xdr, &text, &len, 100));
        free(text);
    }
}
END_TEST

START_TEST(positions_can_be_set_within_the_bytes)
{
    int number = 0;
    XDR xdr;

    rpc_decode_begin(&xdr, span_of(wire, sizeof(wire) - 1));
    ck_assert(xdr_setpos(&xdr, 12));
    ck_assert(xdr_int(&xdr, &number));
    ck_assert_int_eq(number, -2);
    ck_assert(xdr_setpos(&xdr, 0));
    ck_assert(xdr_int(&xdr, &number));
    ck_assert_int_eq(number, 5);
    ck_assert(!xdr_setpos(&xdr, sizeof(wire)));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("rpc_decode");
    TCase *tc = tcase_create("decode");

    tcase_add_test(tc, runs_and_numbers_are_read_in_turn);
    tcase_add_test(tc, cut_anywhere_it_fails);
    tcase_add_test(tc, positions_can_be_set_within_the_bytes);
    suite_add_tcase(suite, tc);
    return suite;
}
