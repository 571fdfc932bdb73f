/* Networks in CIDR notation, and which addresses are in them. */
#define UNIT_STARTS_NO_THREAD

#include "base/networks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "tests/unit/unit.h"

static struct networks networks;
static char why[256];

static bool
has(const char *text)
{
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    struct sockaddr_in in = {.sin_family = AF_INET};

    if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
        return networks_have_address(&networks, (struct sockaddr *)&in);
    ck_assert_int_eq(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
    return networks_have_address(&networks, (struct sockaddr *)&in6);
}

START_TEST(addresses_are_in_networks)
{
    struct sockaddr other = {.sa_family = AF_UNIX};

    ck_assert(!has("127.0.0.1"));
    ck_assert(networks_add(&networks, "127.0.0.0/8", why, sizeof(why)));
    ck_assert(networks_add(&networks, "10.1.128.0/17", why, sizeof(why)));
    ck_assert(networks_add(&networks, "192.0.2.7", why, sizeof(why)));
    ck_assert(networks_add(&networks, "2001:db8::/33", why, sizeof(why)));
    ck_assert(has("127.1.2.3") && has("10.1.128.0") && has("10.1.255.255") && has("192.0.2.7"));
    ck_assert(!has("128.0.0.1") && !has("10.1.127.255") && !has("10.2.128.0") && !has("192.0.2.6"));
    ck_assert(has("2001:db8:7fff::1") && !has("2001:db8:8000::") && !has("::1"));
    /* An IPv4 client of a socket of both families. */
    ck_assert(has("::ffff:127.0.0.1") && !has("::ffff:128.0.0.1"));
    ck_assert(!networks_have_address(&networks, &other));
    networks_free(&networks);
    ck_assert(networks_add(&networks, "0.0.0.0/0", why, sizeof(why)));
    ck_assert(has("8.8.8.8") && !has("::1"));
    networks_free(&networks);
}
END_TEST

START_TEST(what_is_no_network)
{
    static const char *const texts[] = {"",           "x",          "1.2.3",       "1.2.3.4/",
                                        "1.2.3.4/33", "1.2.3.4/-1", "::/129",      "10.0.0.1/8",
                                        "fd00::1/8",  "1.2.3.4/8x", "1.2.3.4/0032"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        ck_assert_msg(!networks_add(&networks, texts[i], why, sizeof(why)), "%s", texts[i]);
        ck_assert_ptr_nonnull(strstr(why, texts[i]));
    }
    ck_assert_uint_eq(networks.count, 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base: networks");
    TCase *tcase = tcase_create("all");

    tcase_add_test(tcase, addresses_are_in_networks);
    tcase_add_test(tcase, what_is_no_network);
    suite_add_tcase(suite, tcase);
    return suite;
}
