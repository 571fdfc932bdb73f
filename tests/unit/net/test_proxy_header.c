/* Headers of the PROXY protocol. */
#define UNIT_STARTS_NO_THREAD

#include "net/proxy_header.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

#include "tests/unit/unit.h"

#define SIGNATURE "0d0a0d0a000d0a515549540a"
#define FOR_INET "21 11 000c cb007107 0a000001 d431 01bb"
#define FOR_INET6 \
    "21 21 0024 20010db8000000000000000000000001 20010db8000000000000000000000002 d431 01bb"

/* The bytes of a text of hexadecimal digits and spaces. */
static struct span
bytes_of(const char *text)
{
    static char bytes[200];
    size_t len = 0;

    while (*text) {
        unsigned value;

        if (*text == ' ') {
            text++;
            continue;
        }
        ck_assert_int_eq(sscanf(text, "%2x", &value), 1);
        bytes[len++] = (char)value;
        text += 2;
    }
    return span_of(bytes, len);
}

/* "address port", "local", or what it is otherwise. */
static const char *
describe(enum proxy_header_result result, const struct proxy_header *header)
{
    static char text[100];
    char name[INET6_ADDRSTRLEN];
    const struct sockaddr_in *inet = (const struct sockaddr_in *)&header->address;
    const struct sockaddr_in6 *inet6 = (const struct sockaddr_in6 *)&header->address;

    if (result != PROXY_HEADER_COMPLETE)
        return result == PROXY_HEADER_BAD ? "bad" : "partial";
    if (header->local)
        return "local";
    if (header->address.ss_family == AF_INET)
        snprintf(text, sizeof(text), "%s %u%s",
                 inet_ntop(AF_INET, &inet->sin_addr, name, sizeof(name)), ntohs(inet->sin_port),
                 header->tls ? " tls" : "");
    else
        snprintf(text, sizeof(text), "%s %u",
                 inet_ntop(AF_INET6, &inet6->sin6_addr, name, sizeof(name)),
                 ntohs(inet6->sin6_port));
    return text;
}

START_TEST(headers)
{
    static const struct {
        const char *bytes, *result;
        size_t rest; /* bytes behind it */
    } rows[] = {
        {SIGNATURE FOR_INET, "203.0.113.7 54321", 0},
        {SIGNATURE FOR_INET "474554", "203.0.113.7 54321", 3},
        {SIGNATURE FOR_INET6, "2001:db8::1 54321", 0},
        {SIGNATURE "21 11 000f cb007107 0a000001 d431 01bb 04 0000", "203.0.113.7 54321", 0},
        {SIGNATURE "21 11 0015 cb007107 0a000001 d431 01bb ee 0003 010203 04 0000",
         "203.0.113.7 54321", 0},
        {SIGNATURE "20 00 0000", "local", 0},
        {SIGNATURE "20 00 0000 47", "local", 1},
        {SIGNATURE "20 11 000c cb007107 0a000001 d431 01bb", "local", 0},
        {SIGNATURE "20 00 0003 ffffff", "local", 0},
        {"", "partial", 0},
        {"0d", "partial", 0},
        {SIGNATURE, "partial", 0},
        {SIGNATURE "21", "partial", 0},
        {SIGNATURE "21 11 000c", "partial", 0},
        {SIGNATURE "21 11 000c cb007107 0a000001 d431 01", "partial", 0},
        {SIGNATURE "21 11 0ff0", "partial", 0},
        /* PP2_TYPE_SSL: over TLS, with a TLV of its own, and without TLS. */
        {SIGNATURE "21 11 0014 cb007107 0a000001 d431 01bb 20 0005 0100000000",
         "203.0.113.7 54321 tls", 0},
        {SIGNATURE "21 11 001c cb007107 0a000001 d431 01bb 20 000d 07ffffffff 21 0005 544c537631",
         "203.0.113.7 54321 tls", 0},
        {SIGNATURE "21 11 0014 cb007107 0a000001 d431 01bb 20 0005 0600000000",
         "203.0.113.7 54321", 0},
        {SIGNATURE "21 11 0013 cb007107 0a000001 d431 01bb 20 0004 01000000", "bad", 0},
        {SIGNATURE "21 11 0015 cb007107 0a000001 d431 01bb 20 0006 010000000021", "bad", 0},
        /* No header: a request, another version, another command. */
        {"474554", "bad", 0},
        {"0d0a0d0a000d0a515549540b", "bad", 0},
        {"0d0a0d0a000d0a5155495420", "bad", 0},
        {"0d0a0d0a0d", "bad", 0},
        {SIGNATURE "11", "bad", 0},
        {SIGNATURE "31", "bad", 0},
        {SIGNATURE "22", "bad", 0},
        {SIGNATURE "2f", "bad", 0},
        {SIGNATURE "00", "bad", 0},
        /* No client that can be told: unknown, AF_UNIX, datagrams, families that there are not. */
        {SIGNATURE "21 00 0000", "bad", 0},
        {SIGNATURE "21 01 000c cb007107 0a000001 d431 01bb", "bad", 0},
        {SIGNATURE "21 10 000c cb007107 0a000001 d431 01bb", "bad", 0},
        {SIGNATURE "21 12 000c cb007107 0a000001 d431 01bb", "bad", 0},
        {SIGNATURE "21 31 0000", "bad", 0},
        {SIGNATURE "21 41 000c cb007107 0a000001 d431 01bb", "bad", 0},
        {SIGNATURE "21 13 000c cb007107 0a000001 d431 01bb", "bad", 0},
        /* Lengths that do not fit. */
        {SIGNATURE "21 11 0000", "bad", 0},
        {SIGNATURE "21 11 000b cb007107 0a000001 d431 01", "bad", 0},
        {SIGNATURE "21 21 000c cb007107 0a000001 d431 01bb", "bad", 0},
        {SIGNATURE "21 11 000d cb007107 0a000001 d431 01bb 04", "bad", 0},
        {SIGNATURE "21 11 000e cb007107 0a000001 d431 01bb 0400", "bad", 0},
        {SIGNATURE "21 11 000f cb007107 0a000001 d431 01bb 04 0001", "bad", 0},
        {SIGNATURE "21 11 0010 cb007107 0a000001 d431 01bb 04 0000 04", "bad", 0},
        {SIGNATURE "21 11 0ff1", "bad", 0},
        {SIGNATURE "21 11 ffff", "bad", 0},
        {SIGNATURE "20 00 ffff", "bad", 0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct span bytes = bytes_of(rows[i].bytes);
        struct proxy_header header;
        enum proxy_header_result result = proxy_header_read(bytes, &header);

        ck_assert_msg(strcmp(describe(result, &header), rows[i].result) == 0, "%s: %s",
                      rows[i].bytes, describe(result, &header));
        if (result != PROXY_HEADER_COMPLETE)
            continue;
        ck_assert_uint_eq(header.len, bytes.len - rows[i].rest);
        /* Not before its last byte. */
        for (size_t len = 0; len < header.len; len++)
            ck_assert_int_eq(proxy_header_read(span_of(bytes.ptr, len), &header),
                             PROXY_HEADER_PARTIAL);
    }
}
END_TEST

START_TEST(lines_of_version_1)
{
    static const struct {
        const char *bytes, *result;
    } rows[] = {
        {"PROXY TCP4 203.0.113.7 10.0.0.1 54321 443\r\n", "203.0.113.7 54321"},
        {"PROXY TCP4 203.0.113.7 10.0.0.1 0 65535\r\n", "203.0.113.7 0"},
        {"PROXY TCP6 2001:db8::1 2001:db8::2 54321 443\r\n", "2001:db8::1 54321"},
        {"PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535"},
        {"PROXY UNKNOWN\r\n", "local"},
        {"PROXY UNKNOWN ffff::1 what it is 1\r\n", "local"},
        {"PROXY UNKNOWNS\r\n", "bad"},
        {"PROXY \r\n", "bad"},
        {"PROXY TCP\r\n", "bad"},
        {"PROXY tcp4 203.0.113.7 10.0.0.1 54321 443\r\n", "bad"},
        {"proxy TCP4 203.0.113.7 10.0.0.1 54321 443\r\n", "bad"},
        {"PROXY  TCP4 203.0.113.7 10.0.0.1 54321 443\r\n", "bad"},
        {"PROXY TCP4 203.0.113.7  10.0.0.1 54321 443\r\n", "bad"},
        {"PROXY TCP4 203.0.113.7 10.0.0.1 54321 443 \r\n", "bad"},
        {"PROXY TCP4 203.0.113.7 10.0.0.1 54321 443 1\r\n", "bad"},
        {"PROXY TCP4 203.0.113.7 10.0.0.1 54321\r\n", "bad"},
        {"PROXY TCP4 203.0.113.7 10.0.0.1 54321 \r\n", "bad"},
        {"PROXY TCP4 203.0.113.7 10.0.0.1 054321 443\r\n", "bad"},
        {"PROXY TCP4 203.0.113.7 10.0.0.1 01 443\r\n", "bad"},
        {"PROXY TCP4 203.0.113.7 10.0.0.1 65536 443\r\n", "bad"},
        {"PROXY TCP4 203.0.113.7 10.0.0.1 +1 443\r\n", "bad"},
        {"PROXY TCP4 203.0.113.007 10.0.0.1 1 443\r\n", "bad"},
        {"PROXY TCP4 203.0.113.7 10.0.0 1 443\r\n", "bad"},
        {"PROXY TCP4 2001:db8::1 2001:db8::2 1 443\r\n", "bad"},
        {"PROXY TCP6 203.0.113.7 10.0.0.1 1 443\r\n", "bad"},
        {"PROXY TCP6 2001:db8::1%lo 2001:db8::2 1 443\r\n", "bad"},
        {"PROXY TCP4 203.0.113.7 10.0.0.1 54321 443\n", "bad"},
        {"PROXY TCP4\t203.0.113.7 10.0.0.1 54321 443\r\n", "bad"},
        {"PROXY TCP4 203.0.113.7 10.0.0.1 54321 443", "partial"},
        {"PROXY", "partial"},
    };
    static const char zero[] = "PROXY TCP4\0 203.0.113.7 10.0.0.1 54321 443\r\n";
    struct proxy_header header;
    char line[110];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct span bytes = span_str(rows[i].bytes);
        enum proxy_header_result result = proxy_header_read(bytes, &header);

        ck_assert_msg(strcmp(describe(result, &header), rows[i].result) == 0, "%s: %s",
                      rows[i].bytes, describe(result, &header));
        ck_assert(!header.tls);
        if (result != PROXY_HEADER_COMPLETE)
            continue;
        ck_assert_uint_eq(header.len, bytes.len);
        for (size_t len = 0; len < bytes.len; len++)
            ck_assert_int_eq(proxy_header_read(span_of(bytes.ptr, len), &header),
                             PROXY_HEADER_PARTIAL);
    }
    ck_assert_int_eq(proxy_header_read(span_of(zero, sizeof(zero) - 1), &header), PROXY_HEADER_BAD);
    /* 107 bytes at most, with the end of the line. */
    snprintf(line, sizeof(line), "PROXY UNKNOWN %-91s\r\n", "x");
    ck_assert_uint_eq(strlen(line), 107);
    ck_assert_int_eq(proxy_header_read(span_str(line), &header), PROXY_HEADER_COMPLETE);
    snprintf(line, sizeof(line), "PROXY UNKNOWN %-92s\r\n", "x");
    ck_assert_int_eq(proxy_header_read(span_of(line, 106), &header), PROXY_HEADER_PARTIAL);
    ck_assert_int_eq(proxy_header_read(span_of(line, 107), &header), PROXY_HEADER_BAD);
    ck_assert_int_eq(proxy_header_read(span_str(line), &header), PROXY_HEADER_BAD);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("net: PROXY protocol");
    TCase *tests = tcase_create("headers");

    tcase_add_test(tests, headers);
    tcase_add_test(tests, lines_of_version_1);
    suite_add_tcase(suite, tests);
    return suite;
}
