#define UNIT_STARTS_NO_THREAD

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/base64.h"
#include "client/exit_status.h"
#include "client/get/get.h"
#include "client/rpcbind.h"
#include "client/url_list.h"
#include "tests/unit/unit.h"

/* ---- lists of URLs --------------------------------------------------------------------------- */

static int
read_list(struct url_list *list, const char *text, size_t len)
{
    FILE *from = fmemopen((void *)(uintptr_t)text, len, "r");
    int error;

    ck_assert_ptr_nonnull(from);
    error = url_list_read(list, from);
    fclose(from);
    return error;
}

START_TEST(lists_are_lines)
{
    static const char text[] =
        "http://a/\n\n# no\n  https://b/?x y \r\nexample.com/c\n\t\nhttp://d";
    struct url_list list = {.urls = NULL};

    ck_assert_int_eq(read_list(&list, text, sizeof(text) - 1), 0);
    ck_assert_uint_eq(list.count, 4);
    ck_assert_str_eq(list.urls[0], "http://a/");
    ck_assert_str_eq(list.urls[1], "https://b/?x y");
    ck_assert_str_eq(list.urls[2], "http://example.com/c");
    ck_assert_str_eq(list.urls[3], "http://d");
    url_list_free(&list);
    ck_assert_uint_eq(list.count, 0);
}
END_TEST

START_TEST(a_line_is_bounded)
{
    struct url_list list = {.urls = NULL};
    FILE *endless = fopen("/dev/zero", "re");
    char *text = malloc(URL_LIST_MOST_LINE + 2);

    ck_assert(text && endless);
    memset(text, 'a', URL_LIST_MOST_LINE + 1);
    text[URL_LIST_MOST_LINE] = '\n';
    ck_assert_int_eq(read_list(&list, text, URL_LIST_MOST_LINE + 1), 0);
    ck_assert_uint_eq(list.count, 1);
    text[URL_LIST_MOST_LINE] = 'a';
    ck_assert_int_eq(read_list(&list, text, URL_LIST_MOST_LINE + 1), EMSGSIZE);
    ck_assert_uint_eq(list.count, 1);
    ck_assert_int_eq(url_list_read(&list, endless), EMSGSIZE);
    url_list_free(&list);
    fclose(endless);
    free(text);
}
END_TEST

START_TEST(lists_may_be_empty_and_long)
{
    struct url_list list = {.urls = NULL};
    char *text = malloc(200000);

    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(read_list(&list, "\n", 1), 0);
    ck_assert_uint_eq(list.count, 0);
    memset(text, 'a', 200000);
    for (size_t i = 99; i < 200000; i += 100)
        text[i] = '\n';
    ck_assert_int_eq(read_list(&list, text, 200000), 0);
    ck_assert_uint_eq(list.count, 2000);
    ck_assert_uint_eq(strlen(list.urls[1999]), strlen("http://") + 99);
    url_list_free(&list);
    free(text);
}
END_TEST

START_TEST(a_zero_byte_is_no_url)
{
    struct url_list list = {.urls = NULL};

    ck_assert_int_eq(read_list(&list, "http://a/\nhttp://b\0c/\n", 22), EINVAL);
    ck_assert_uint_eq(list.count, 1);
    url_list_free(&list);
}
END_TEST

/* ---- base64 ---------------------------------------------------------------------------------- */

START_TEST(base64_is_that_of_the_rfc)
{
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    struct buf out;

    buf_init(&out, 100000);
    for (size_t i = 0; i < 7; i++) {
        buf_reset(&out);
        base64_encode(&out, span_str(pairs[i][0]));
        ck_assert_str_eq(i ? buf_str(&out) : "", pairs[i][1]);
    }
    buf_reset(&out);
    base64_encode(&out, span_of("\xff\xfe\x00\x3f", 4));
    ck_assert_str_eq(buf_str(&out), "//4APw==");
    buf_free(&out);
}
END_TEST

START_TEST(base64_goes_on_across_its_pieces)
{
    char bytes[10000];
    struct buf out;

    memset(bytes, 0, sizeof(bytes));
    buf_init(&out, 100000);
    base64_encode(&out, span_of(bytes, sizeof(bytes)));
    ck_assert_uint_eq(out.len, 13336);
    ck_assert_uint_eq(strspn(buf_str(&out), "A"), 13334);
    ck_assert_str_eq(buf_str(&out) + 13334, "==");
    buf_free(&out);
}
END_TEST

/* ---- exit statuses --------------------------------------------------------------------------- */

START_TEST(each_answer_has_its_exit_status)
{
    static const int proxy[] = {EX_OK,       EX_USAGE,    EX_USAGE,    EX_NOPERM,   EX_NOHOST,
                                EX_PROTOCOL, EX_PROTOCOL, EX_TEMPFAIL, EX_PROTOCOL, EX_PROTOCOL,
                                EX_PROTOCOL, EX_TEMPFAIL, EX_TEMPFAIL, EX_SOFTWARE, EX_USAGE};

    for (int i = 0; i <= PROXY_BAD_VALUE; i++)
        ck_assert_msg(exit_of_proxy((proxy_status)i) == proxy[i], "status %d", i);
    ck_assert_int_eq(exit_of_proxy(999), EX_PROTOCOL);
    ck_assert_int_eq(exit_of_rpc(RPC_CLIENT_OK), EX_OK);
    ck_assert_int_eq(exit_of_rpc(RPC_CLIENT_LOST), EX_UNAVAILABLE);
    ck_assert_int_eq(exit_of_rpc(RPC_CLIENT_TIMED_OUT), EX_TEMPFAIL);
    ck_assert_int_eq(exit_of_rpc(RPC_CLIENT_GARBAGE_ARGS), EX_USAGE);
    ck_assert_int_eq(exit_of_rpc(RPC_CLIENT_SYSTEM_ERR), EX_PROTOCOL);
    ck_assert_int_eq(exit_of_rpc(RPC_CLIENT_BAD_REPLY), EX_PROTOCOL);
}
END_TEST

START_TEST(every_status_has_a_name)
{
    for (int i = 0; i <= PROXY_BAD_VALUE; i++)
        ck_assert_str_ne(proxy_status_name((proxy_status)i), "unknown");
    ck_assert_str_eq(proxy_status_name(999), "unknown");
    for (int i = 0; i <= PROXY_STALE; i++)
        ck_assert_str_ne(proxy_source_name((proxy_source)i), "unknown");
    ck_assert_str_eq(proxy_source_name(PROXY_STALE), "stale");
    ck_assert_str_eq(proxy_source_name(6), "unknown");
    for (int i = 0; i <= RPC_CLIENT_BAD_REPLY; i++)
        ck_assert_ptr_nonnull(rpc_status_name((enum rpc_client_status)i));
}
END_TEST

/* ---- files ----------------------------------------------------------------------------------- */

START_TEST(file_names_are_tame)
{
    char name[GET_FILE_NAME_SIZE], url[3000];

    ck_assert_str_eq(get_file_name(1, "http://example.com/a/b.html", name, sizeof(name)),
                     "0001-example.com_a_b.html");
    ck_assert_str_eq(get_file_name(12345, "https://a/?x=../../y&z", name, sizeof(name)),
                     "12345-a__x_.._.._y_z");
    ck_assert_str_eq(get_file_name(2, "http://a/", name, sizeof(name)), "0002-a");
    memset(url, 'u', sizeof(url) - 1);
    url[sizeof(url) - 1] = '\0';
    ck_assert_uint_eq(strlen(get_file_name(3, url, name, sizeof(name))), sizeof(name) - 1);
}
END_TEST

/* ---- rpcbind's addresses --------------------------------------------------------------------- */

START_TEST(universal_addresses_are_read)
{
    ck_assert_uint_eq(rpcbind_port("127.0.0.1.4.210"), 4 * 256 + 210);
    ck_assert_uint_eq(rpcbind_port("::.0.111"), 111);
    ck_assert_uint_eq(rpcbind_port("1.2"), 0);
    ck_assert_uint_eq(rpcbind_port("127.0.0.1.256.1"), 0);
    ck_assert_uint_eq(rpcbind_port("127.0.0.1.4.210x"), 0);
    ck_assert_uint_eq(rpcbind_port("/run/a.sock"), 0);
    ck_assert_uint_eq(rpcbind_port(""), 0);
    ck_assert_uint_eq(rpcbind_port("."), 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("parts of get");
    TCase *tcase = tcase_create("parts of get");

    tcase_add_test(tcase, lists_are_lines);
    tcase_add_test(tcase, lists_may_be_empty_and_long);
    tcase_add_test(tcase, a_line_is_bounded);
    tcase_add_test(tcase, a_zero_byte_is_no_url);
    tcase_add_test(tcase, base64_is_that_of_the_rfc);
    tcase_add_test(tcase, base64_goes_on_across_its_pieces);
    tcase_add_test(tcase, each_answer_has_its_exit_status);
    tcase_add_test(tcase, every_status_has_a_name);
    tcase_add_test(tcase, file_names_are_tame);
    tcase_add_test(tcase, universal_addresses_are_read);
    suite_add_tcase(suite, tcase);
    return suite;
}
