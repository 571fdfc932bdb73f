/* Headers of the PROXY protocol, version 2. */
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
        snprintf(text, sizeof(text), "%s %u",
                 inet_ntop(AF_INET, &inet->sin_addr, name, sizeof(name)), ntohs(inet->sin_port));
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
        /* No header: a request, version 1, another version, another command. */
        {"474554", "bad", 0},
        {"50524f58592054435034", "bad", 0},
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

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("net: PROXY protocol");
    TCase *tests = tcase_create("headers");

    tcase_add_test(tests, headers);
    suite_add_tcase(suite, tests);
    return suite;
}
