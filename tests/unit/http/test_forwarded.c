/* What trusted proxies state about the way of a request. */
#include "http/forwarded.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct networks trusted;

static void
set_up(void)
{
    static const char *const nets[] = {"10.0.0.0/8", "fd00::/8"};
    char why[256];

    for (size_t i = 0; i < LENGTH(nets); i++)
        ck_assert(networks_add(&trusted, nets[i], why, sizeof(why)));
}

static void
tear_down(void)
{
    networks_free(&trusted);
}

/* "address scheme host:port", with "-" for what is not stated; or "malformed". */
static const char *
read(const char *fields, enum http_way_field field)
{
    static const char *const schemes[] = {"-", "http", "https"};
    static char text[200];
    char name[INET6_ADDRSTRLEN] = "-";
    struct http_way forwarded;
    const struct sockaddr_storage *address = &forwarded.address;
    char port[8] = "";

    if (!http_forwarded_read(span_str(fields), field, &trusted, &forwarded))
        return "malformed";
    if (address->ss_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, name, sizeof(name));
    else if (address->ss_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)address)->sin6_addr, name, sizeof(name));
    if (forwarded.host.port)
        snprintf(port, sizeof(port), ":%u", forwarded.host.port);
    snprintf(text, sizeof(text), "%s %s %.*s%s", name, schemes[forwarded.scheme],
             forwarded.host.host.len ? (int)forwarded.host.host.len : 1,
             forwarded.host.host.len ? forwarded.host.host.ptr : "-", port);
    return text;
}

struct row {
    const char *fields, *result;
};

static void
check(const struct row *rows, size_t count, enum http_way_field field)
{
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(strcmp(read(rows[i].fields, field), rows[i].result) == 0, "\"%s\": %s",
                      rows[i].fields, read(rows[i].fields, field));
}

#define F "X-Forwarded-For: "
#define P "X-Forwarded-Proto: "
#define H "X-Forwarded-Host: "

START_TEST(x_forwarded)
{
    static const struct row rows[] = {
        {"", "- - -"},
        {"Accept: */*\r\nForwarded: for=1.2.3.4;proto=https\r\nX-Real-IP: 1.2.3.4\r\n", "- - -"},
        {F "203.0.113.7\r\n", "203.0.113.7 - -"},
        {F "203.0.113.7:4711\r\n", "203.0.113.7 - -"},
        {F "2001:db8::1\r\n", "2001:db8::1 - -"},
        {F "[2001:db8::1]\r\n", "2001:db8::1 - -"},
        {F "[2001:db8::1]:443\r\n", "2001:db8::1 - -"},
        /* The last address that is not trusted, whatever stands in front of it. */
        {F "6.6.6.6, 203.0.113.7\r\n", "203.0.113.7 - -"},
        {F "6.6.6.6, 203.0.113.7, 10.0.0.2, fd00::1\r\n", "203.0.113.7 - -"},
        {F "6.6.6.6\r\n" F "203.0.113.7\r\nA: b\r\n" F "10.0.0.2\r\n", "203.0.113.7 - -"},
        {F "what, is, \"this\", 203.0.113.7\r\n", "203.0.113.7 - -"},
        {F "203.0.113.7,,\r\n", "203.0.113.7 - -"},
        {F "::ffff:10.0.0.1, ::ffff:10.0.0.2\r\n", "::ffff:10.0.0.1 - -"},
        {F "10.0.0.1, 10.0.0.2\r\n", "10.0.0.1 - -"},
        /* A proxy that hides its client is the client. */
        {F "unknown\r\n", "- - -"},
        {F "203.0.113.7, unknown\r\n", "- - -"},
        {F "203.0.113.7, unix:\r\n", "- - -"},
        {F "_hidden, 10.0.0.2\r\n", "10.0.0.2 - -"},
        {F "\"203.0.113.7\"\r\n", "malformed"},
        {F "203.0.113.7, 10.0.0.256\r\n", "malformed"},
        {F "203.0.113.7, 10.0.0\r\n", "malformed"},
        {F "010.0.0.1\r\n", "malformed"},
        {F "203.0.113.7:\r\n", "malformed"},
        {F "203.0.113.7 10.0.0.1\r\n", "malformed"},
        {F "[203.0.113.7]\r\n", "malformed"},
        {F "[2001:db8::1\r\n", "malformed"},
        {F "[2001:db8::1]443\r\n", "malformed"},
        {F "fe80::1%eth0\r\n", "malformed"},
        {F "client.example\r\n", "malformed"},
        {F "_\r\n", "malformed"},
        /* Scheme and host belong to it, also without it. */
        {P "https\r\n", "- https -"},
        {F "203.0.113.7\r\n" P "https\r\n" H "a.example\r\n", "203.0.113.7 https a.example"},
        {F "203.0.113.7\r\n" P "HTTP\r\n" H "a.example:81\r\n", "203.0.113.7 http a.example:81"},
        {P "wss\r\n" H "[2001:db8::2]:8443\r\n", "- https [2001:db8::2]:8443"},
        {P "ws\r\n", "- http -"},
        /* Those of the proxy that has stated the client. */
        {F "203.0.113.7\r\n" P "https, http\r\n", "203.0.113.7 http -"},
        {F "203.0.113.7, 10.0.0.2\r\n" P "https, http\r\n" H "a, b\r\n", "203.0.113.7 https a"},
        {F "203.0.113.7, 10.0.0.2\r\n" P "https\r\n" H "c, a, b\r\n", "203.0.113.7 https a"},
        {F "203.0.113.7, 10.0.0.2, 10.0.0.3\r\n" P "https, http\r\n", "203.0.113.7 https -"},
        {P "gopher\r\n", "malformed"},
        {P "https;x\r\n", "malformed"},
        {H "a b\r\n", "malformed"},
        {H "a@b\r\n", "malformed"},
        {H "a:0\r\n", "malformed"},
    };

    check(rows, LENGTH(rows), HTTP_WAY_X);
}
END_TEST

#define FW "Forwarded: "

START_TEST(forwarded)
{
    static const struct row rows[] = {
        {"", "- - -"},
        {F "203.0.113.7\r\n" P "https\r\n", "- - -"},
        {FW "for=203.0.113.7\r\n", "203.0.113.7 - -"},
        {FW "For=\"[2001:db8::1]:4711\"\r\n", "2001:db8::1 - -"},
        {FW "for=[2001:db8::1]\r\n", "2001:db8::1 - -"},
        {FW "for=\"203.0.113.7:_x\";proto=https;by=10.0.0.1\r\n", "203.0.113.7 https -"},
        {FW "by=_a; proto=http ; host=\"a.example:81\" ;for=203.0.113.7;\r\n",
         "203.0.113.7 http a.example:81"},
        {FW "for=6.6.6.6;proto=http, for=203.0.113.7;proto=https;host=a\r\n",
         "203.0.113.7 https a"},
        {FW "for=203.0.113.7;proto=https;host=a, for=10.0.0.2;proto=http;host=b\r\n",
         "203.0.113.7 https a"},
        {FW "for=203.0.113.7\r\n" FW "for=10.0.0.2;proto=https;host=b\r\n", "203.0.113.7 https b"},
        {FW "proto=https\r\n", "- https -"},
        {FW "for=unknown;proto=https\r\n", "- https -"},
        {FW "for=203.0.113.7, for=_hidden\r\n", "- - -"},
        {FW "for=203.0.113.7;x=\"a;b, c\"\r\n", "203.0.113.7 - -"},
        {FW "=, for=203.0.113.7\r\n", "203.0.113.7 - -"},
        {FW "203.0.113.7\r\n", "malformed"},
        {FW "for=203.0.113.7;for=203.0.113.8\r\n", "malformed"},
        {FW "for=203.0.113.7;proto=https;proto=http\r\n", "malformed"},
        {FW "for=\r\n", "malformed"},
        {FW "for =203.0.113.7\r\n", "malformed"},
        {FW "for=203.0.113.7 proto=https\r\n", "malformed"},
        {FW "for=\"203.0.113\\.7\"\r\n", "malformed"},
        {FW "for=\"203.0.113.7\r\n", "malformed"},
        {FW "for=\"203.0.113.7\"x\r\n", "malformed"},
        {FW "for=203.0.113.7;proto=ftp\r\n", "malformed"},
        {FW "for=203.0.113.7;host=\"a b\"\r\n", "malformed"},
        {FW ";\r\n", "malformed"},
        /* A string that a client leaves open takes nothing of what is appended to it. */
        {FW "for=6.6.6.6;x=\", for=203.0.113.7;host=\"a\"\r\n", "malformed"},
        {FW "for=6.6.6.6;x=\", for=203.0.113.7\r\n", "malformed"},
        {FW "for=\", for=\"[2001:db8::1]\"\r\n", "malformed"},
    };

    check(rows, LENGTH(rows), HTTP_WAY_FORWARDED);
}
END_TEST

START_TEST(nothing_is_believed_by_default)
{
    ck_assert_str_eq(read(F "x\r\n" P "https\r\n" FW "for=1.2.3.4\r\n", HTTP_WAY_NONE),
                     "- - -");
}
END_TEST

START_TEST(members_are_bounded)
{
    struct buf fields;

    buf_init(&fields, 1 << 16);
    buf_append_str(&fields, F "203.0.113.7");
    for (unsigned i = 1; i < HTTP_WAY_HOPS_MAX; i++)
        buf_append_str(&fields, ", 10.0.0.1");
    buf_append_str(&fields, "\r\n");
    ck_assert_str_eq(read(buf_str(&fields), HTTP_WAY_X), "203.0.113.7 - -");
    buf_append_str(&fields, F "10.0.0.1\r\n");
    ck_assert_str_eq(read(buf_str(&fields), HTTP_WAY_X), "malformed");
    buf_free(&fields);
}
END_TEST

START_TEST(nodes_are_written)
{
    static const struct row rows[] = {
        {"203.0.113.7", "203.0.113.7"},
        {"2001:db8::1", "\"[2001:db8::1]\""},
        {"unix", "unknown"},
    };
    struct buf out;

    buf_init(&out, 100);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        buf_reset(&out);
        http_forwarded_append_node(&out, span_str(rows[i].fields));
        ck_assert_str_eq(buf_str(&out), rows[i].result);
    }
    buf_free(&out);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http: forwarded");
    TCase *tests = tcase_create("all");

    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, x_forwarded);
    tcase_add_test(tests, forwarded);
    tcase_add_test(tests, nothing_is_believed_by_default);
    tcase_add_test(tests, members_are_bounded);
    tcase_add_test(tests, nodes_are_written);
    suite_add_tcase(suite, tests);
    return suite;
}
