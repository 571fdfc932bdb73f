/*
 * Keys of clients: which peers are one client.
 */
#define UNIT_STARTS_NO_THREAD

#include "base/client_key.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "tests/unit/unit.h"

static struct client_key
inet(const char *text)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = 1234};

    ck_assert_int_eq(inet_pton(AF_INET, text, &address.sin_addr), 1);
    return client_key_of_prefix((struct sockaddr *)&address, CLIENT_KEY_INET_BITS,
                                CLIENT_KEY_INET6_BITS);
}

static struct client_key
inet6(const char *text)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = 1234};

    ck_assert_int_eq(inet_pton(AF_INET6, text, &address.sin6_addr), 1);
    return client_key_of_prefix((struct sockaddr *)&address, CLIENT_KEY_INET_BITS,
                                CLIENT_KEY_INET6_BITS);
}

static bool
same(struct client_key a, struct client_key b)
{
    ck_assert_int_eq(client_key_compare(&a, &b) == 0, client_key_compare(&b, &a) == 0);
    ck_assert_int_eq(client_key_compare(&a, &b) < 0, client_key_compare(&b, &a) > 0);
    return client_key_compare(&a, &b) == 0;
}

START_TEST(an_address_is_a_client)
{
    ck_assert(same(inet("192.0.2.7"), inet("192.0.2.7")));
    ck_assert(!same(inet("192.0.2.7"), inet("192.0.2.8")));
    ck_assert(same(inet("192.0.2.7"), inet6("::ffff:192.0.2.7")));
    /* One host has a whole /64, and a neighbour the next one. */
    ck_assert(same(inet6("2001:db8:1:2::1"), inet6("2001:db8:1:2:ffff::")));
    ck_assert(!same(inet6("2001:db8:1:2::1"), inet6("2001:db8:1:3::1")));
    ck_assert(!same(inet6("::"), inet("0.0.0.0")));
}
END_TEST

START_TEST(a_uid_is_a_client)
{
    ck_assert(same(client_key_of_uid(0), client_key_of_uid(0)));
    ck_assert(!same(client_key_of_uid(0), client_key_of_uid(1000)));
    ck_assert(!same(client_key_of_uid(0x01020304), inet("1.2.3.4")));
}
END_TEST

START_TEST(prefixes_are_cut_to_the_bit)
{
    struct sockaddr_in address = {.sin_family = AF_INET};

    for (unsigned bits = 0; bits <= 32; bits++) {
        uint32_t kept = bits ? 0xffffffffU << (32 - bits) : 0;
        struct client_key key;
        struct in_addr cut;

        address.sin_addr.s_addr = 0xffffffffU;
        key = client_key_of_prefix((struct sockaddr *)&address, bits, 64);
        memcpy(&cut, key.bytes, sizeof(cut));
        ck_assert_uint_eq(ntohl(cut.s_addr), kept);
    }
}
END_TEST

START_TEST(another_family_is_no_client)
{
    struct sockaddr other = {.sa_family = AF_UNIX};

    ck_assert_uint_eq(
        client_key_of_prefix(&other, CLIENT_KEY_INET_BITS, CLIENT_KEY_INET6_BITS).kind,
        CLIENT_UNKNOWN);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("client_key");
    TCase *tcase = tcase_create("client_key");

    tcase_add_test(tcase, an_address_is_a_client);
    tcase_add_test(tcase, a_uid_is_a_client);
    tcase_add_test(tcase, prefixes_are_cut_to_the_bit);
    tcase_add_test(tcase, another_family_is_no_client);
    suite_add_tcase(suite, tcase);
    return suite;
}
