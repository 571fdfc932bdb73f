/* Which addresses may be connected to: every row of the registries, at both of its edges. */
#define UNIT_STARTS_NO_THREAD

#include "fetch/address.h"

#include <arpa/inet.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fetch/url.h"
#include "tests/unit/unit.h"

static bool
permits(const struct address_policy *policy, const char *text)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};

    if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
        return address_policy_permits(policy, (struct sockaddr *)&in);
    ck_assert_msg(inet_pton(AF_INET6, text, &in6.sin6_addr) == 1, "%s", text);
    return address_policy_permits(policy, (struct sockaddr *)&in6);
}

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Just before the block, its first, its last, just behind it; NULL where a neighbour is refused
 * too. */
static const struct {
    const char *before, *first, *last, *behind;
} blocks[] = {
    {NULL, "0.0.0.0", "0.255.255.255", "1.0.0.0"},
    {"9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"},
    {"100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"},
    {"126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"},
    {"169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"},
    {"172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"},
    {"191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"},
    {"192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"},
    {"192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"},
    {"192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"},
    {"198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"},
    {"198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"},
    {"203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"},
    {"223.255.255.255", "224.0.0.0", "239.255.255.255", NULL},
    {NULL, "240.0.0.0", "255.255.255.255", NULL},
    {NULL, "::", "::1", NULL},
    {"64:ff9b:0:ffff::", "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "64:ff9b:2::"},
    {"ff:ffff:ffff:ffff::", "100::", "100::ffff:ffff:ffff:ffff", "100:0:0:1::"},
    {"2000:ffff:ffff::", "2001::", "2001:1ff:ffff::", "2001:200::"},
    {"2001:db7:ffff::", "2001:db8::", "2001:db8:ffff:ffff::1", "2001:db9::"},
    {"3ffe:ffff::", "3fff::", "3fff:fff:ffff::", "3fff:1000::"},
    {"5eff:ffff::", "5f00::", "5f00:ffff:ffff::", "5f01::"},
    {"fbff:ffff::", "fc00::", "fdff:ffff::", "fe00::"},
    {"fe7f:ffff::", "fe80::", "febf:ffff::", NULL},
    {NULL, "fec0::", "feff:ffff::", NULL},
    {NULL, "ff00::", "ffff:ffff::", NULL},
};

START_TEST(registries)
{
    struct address_policy *policy = address_policy_create();

    for (size_t i = 0; i < LENGTH(blocks); i++) {
        ck_assert_msg(!permits(policy, blocks[i].first), "%s", blocks[i].first);
        ck_assert_msg(!permits(policy, blocks[i].last), "%s", blocks[i].last);
        if (blocks[i].before)
            ck_assert_msg(permits(policy, blocks[i].before), "%s", blocks[i].before);
        if (blocks[i].behind)
            ck_assert_msg(permits(policy, blocks[i].behind), "%s", blocks[i].behind);
    }
    ck_assert(permits(policy, "8.8.8.8"));
    ck_assert(permits(policy, "2606:4700::1111"));
    address_policy_destroy(policy);
}
END_TEST

START_TEST(addresses_inside_addresses)
{
    static const struct {
        const char *text;
        bool permitted;
    } cases[] = {
        {"::ffff:127.0.0.1", false},
        {"::ffff:10.1.2.3", false},
        {"::ffff:8.8.8.8", true},
        {"::127.0.0.1", false},
        {"::169.254.169.254", false},
        {"::8.8.8.8", true},
        {"::ffff:0:127.0.0.1", false},
        {"::ffff:0:8.8.8.8", true},
        {"64:ff9b::127.0.0.1", false},
        {"64:ff9b::192.168.1.1", false},
        {"64:ff9b::8.8.8.8", true},
        {"2002:7f00:1::", false},
        {"2002:a00:1::1", false},
        {"2002:808:808::1", true},
        {"2001:0:808:808::f7f7:f7f7", false},
    };
    struct address_policy *policy = address_policy_create();

    for (size_t i = 0; i < LENGTH(cases); i++)
        ck_assert_msg(permits(policy, cases[i].text) == cases[i].permitted, "%s", cases[i].text);
    address_policy_destroy(policy);
}
END_TEST

START_TEST(what_an_operator_allows)
{
    struct address_policy *policy = address_policy_create();
    char why[256];

    ck_assert(address_policy_allow(policy, "127.0.0.0/8", why, sizeof(why)));
    ck_assert(address_policy_allow(policy, "10.1.2.3", why, sizeof(why)));
    ck_assert(address_policy_allow(policy, "fd00::/9", why, sizeof(why)));
    ck_assert(address_policy_allow(policy, "::1", why, sizeof(why)));
    ck_assert(permits(policy, "127.1.2.3"));
    ck_assert(permits(policy, "::ffff:127.0.0.1"));
    ck_assert(permits(policy, "10.1.2.3"));
    ck_assert(!permits(policy, "10.1.2.4"));
    ck_assert(permits(policy, "fd7f::1"));
    ck_assert(!permits(policy, "fd80::1"));
    ck_assert(permits(policy, "::1"));
    ck_assert(!permits(policy, "::"));
    address_policy_destroy(policy);
}
END_TEST

/* Teredo lies within a refused block; allowed, it is checked by its server and its client. */
START_TEST(an_allowed_block_opens_no_back_door)
{
    struct address_policy *policy = address_policy_create();
    char why[256];

    ck_assert(address_policy_allow(policy, "::/0", why, sizeof(why)));
    ck_assert(permits(policy, "fe80::1"));
    ck_assert(permits(policy, "::1"));
    ck_assert(permits(policy, "2001:0:808:808::f7f7:f7f7"));
    ck_assert(!permits(policy, "2001:0:7f00:1::f7f7:f7f7"));
    ck_assert(!permits(policy, "2001:0:808:808::80ff:fffe"));
    ck_assert(!permits(policy, "::ffff:127.0.0.1"));
    ck_assert(!permits(policy, "2002:7f00:1::"));
    ck_assert(!permits(policy, "127.0.0.1"));
    ck_assert(address_policy_allow(policy, "0.0.0.0/0", why, sizeof(why)));
    ck_assert(permits(policy, "127.0.0.1"));
    ck_assert(permits(policy, "255.255.255.255"));
    ck_assert(permits(policy, "2002:7f00:1::"));
    address_policy_destroy(policy);
}
END_TEST

START_TEST(what_is_no_block)
{
    static const char *const cases[] = {
        "",
        "/8",
        "localhost",
        "10.0.0.0/",
        "10.0.0.0/33",
        "10.0.0.1/8",
        "10.0.0.0/-1",
        "10.0.0.0/ 8",
        "10.0.0.0/8x",
        "10.0.0/8",
        "fd00::/129",
        "fd00::1/64",
        "fd00::/0x10",
        "[fd00::]/8",
        "010.0.0.0/8",
        "10.0.0.0/0008",
        "fe80::%lo/10",
        "1.2.3.4/8/8",
        "1111:2222:3333:4444:5555:6666:7777:8888:9",
        "0.0.0.1/0",
    };
    struct address_policy *policy = address_policy_create();

    for (size_t i = 0; i < LENGTH(cases); i++) {
        char why[256] = "";

        ck_assert_msg(!address_policy_allow(policy, cases[i], why, sizeof(why)), "%s", cases[i]);
        ck_assert_msg(why[0] != '\0', "%s", cases[i]);
    }
    ck_assert(!permits(policy, "10.0.0.1"));
    address_policy_destroy(policy);
}
END_TEST

START_TEST(other_families)
{
    struct address_policy *policy = address_policy_create();
    struct sockaddr_storage other = {.ss_family = AF_UNIX};

    ck_assert(!address_policy_permits(policy, (struct sockaddr *)&other));
    other.ss_family = AF_UNSPEC;
    ck_assert(!address_policy_permits(policy, (struct sockaddr *)&other));
    address_policy_destroy(policy);
    address_policy_destroy(NULL);
}
END_TEST

/* ---- the host's own addresses ------------------------------------------------------------ */

/* Runs a program and waits: did it succeed? */
static bool
run(const char *command)
{
    return system(command) == 0;
}

static bool
has_reason(const struct address_policy *policy, const char *text, const char *reason)
{
    union address address;
    char why[256] = "";

    ck_assert(address_parse(text, 80, &address));
    if (address_policy_check(policy, &address.any, why, sizeof(why)))
        return *reason == '\0';
    ck_assert_msg(strcmp(why, reason) == 0, "%s: %s", text, why);
    return true;
}

/* Waits until the kernel has an IPv6 address: it enters one after `ip` has ended. */
static bool
has_arrived(const char *text)
{
    char command[256];

    snprintf(
        command, sizeof(command),
        "for i in $(seq 1000); do ip -6 route get %s 2>/dev/null | grep -q '^local' && exit 0; "
        "sleep 0.01; done; exit 1",
        text);
    return run(command);
}

/*
 * In a network of its own, whose loopback device has public addresses, also one added while the
 * policy is in use and one taken away.
 */
static int
check_own_addresses(void)
{
    struct address_policy *policy = address_policy_create();
    char why[256];

    if (!run("ip link set lo up && ip addr add 8.8.8.8/32 dev lo && "
             "ip -6 addr add 2606:4700::1/128 dev lo nodad"))
        return 77;
    ck_assert(has_arrived("2606:4700::1"));
    ck_assert(has_reason(policy, "8.8.8.8", ""));
    ck_assert(address_policy_refuse_own(policy, why, sizeof(why)));
    ck_assert(has_reason(policy, "8.8.8.8",
                         "an address of this host (allow it with --allow-net 8.8.8.8)"));
    ck_assert(has_reason(policy, "2606:4700::1",
                         "an address of this host (allow it with --allow-net 2606:4700::1)"));
    /* What carries it is no way round. */
    ck_assert(has_reason(policy, "::ffff:8.8.8.8",
                         "an address of this host (allow it with --allow-net 8.8.8.8)"));
    ck_assert(has_reason(policy, "64:ff9b::808:808",
                         "an address of this host (allow it with --allow-net 8.8.8.8)"));
    ck_assert(has_reason(policy, "127.0.0.1",
                         "not a public address (allow it with --allow-net 127.0.0.0/8)"));
    ck_assert(has_reason(policy, "9.9.9.9", ""));
    ck_assert(has_reason(policy, "2606:4700::2", ""));
    /* As they come and go. */
    ck_assert(run("ip addr add 9.9.9.9/32 dev lo && ip -6 addr add 2606:4700::2/128 dev lo nodad"));
    ck_assert(has_arrived("2606:4700::2"));
    ck_assert(has_reason(policy, "9.9.9.9",
                         "an address of this host (allow it with --allow-net 9.9.9.9)"));
    ck_assert(has_reason(policy, "2606:4700::2",
                         "an address of this host (allow it with --allow-net 2606:4700::2)"));
    ck_assert(run("ip addr del 8.8.8.8/32 dev lo"));
    ck_assert(has_reason(policy, "8.8.8.8", ""));
    /* A range that is routed to the host is not on any interface. */
    ck_assert(run("ip route add local 1.2.3.0/24 dev lo"));
    ck_assert(has_reason(policy, "1.2.3.4",
                         "an address of this host (allow it with --allow-net 1.2.3.4)"));
    ck_assert(address_policy_allow(policy, "9.9.9.9", why, sizeof(why)));
    ck_assert(address_policy_allow(policy, "2606:4700::/32", why, sizeof(why)));
    ck_assert(has_reason(policy, "9.9.9.9", ""));
    ck_assert(has_reason(policy, "2606:4700::2", ""));
    address_policy_destroy(policy);
    return 0;
}

START_TEST(own_addresses)
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        _exit(unshare(CLONE_NEWNET) == 0 ? check_own_addresses() : 77);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        printf("SKIP: own addresses: no network of its own, or no ip\n");
    else
        ck_assert_int_eq(status, 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/address");
    TCase *tc = tcase_create("address");

    tcase_add_test(tc, registries);
    tcase_add_test(tc, addresses_inside_addresses);
    tcase_add_test(tc, what_an_operator_allows);
    tcase_add_test(tc, an_allowed_block_opens_no_back_door);
    tcase_add_test(tc, what_is_no_block);
    tcase_add_test(tc, other_families);
    tcase_add_test(tc, own_addresses);
    suite_add_tcase(suite, tc);
    return suite;
}
