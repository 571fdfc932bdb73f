/*
 * What a client has put into a field in which a trusted proxy states it changes nothing of what the
 * proxy states behind it, on the same line or on another; and whatever is read points into the
 * fields.
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "http/forwarded.h"
#include "tests/fuzz/fuzz.h"

static void
check(struct span value, const char *name, const char *between, const char *stated,
      enum http_way_field field)
{
    static const struct networks none;
    struct in_addr wanted = {htonl(0xcb007107)};
    struct http_way way;
    struct buf fields;

    buf_init(&fields, 1 << 20);
    buf_printf(&fields, "%s: ", name);
    for (size_t i = 0; i < value.len; i++)
        buf_append_char(&fields, memchr("\r\n", value.ptr[i], 3) ? ' ' : value.ptr[i]);
    buf_printf(&fields, between, name);
    buf_printf(&fields, "%s\r\n", stated);
    if (!buf_failed(&fields) && http_forwarded_read(buf_span(&fields), field, &none, &way)) {
        FUZZ_CHECK(way.address.ss_family == AF_INET);
        FUZZ_CHECK(memcmp(&((struct sockaddr_in *)&way.address)->sin_addr, &wanted, 4) == 0);
        if (field == HTTP_WAY_FORWARDED) {
            FUZZ_CHECK(way.scheme == HTTP_SCHEME_HTTPS);
            FUZZ_CHECK(span_equal(way.host.host, span_str("a")));
        }
    }
    buf_free(&fields);
}

static void
check_within(struct span fields, enum http_way_field field)
{
    static const struct networks none;
    struct http_way way;

    if (!http_forwarded_read(fields, field, &none, &way) || way.host.host.len == 0)
        return;
    FUZZ_CHECK(way.host.host.ptr >= fields.ptr);
    FUZZ_CHECK(way.host.host.ptr + way.host.host.len <= fields.ptr + fields.len);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char x[] = "X-Forwarded-For", standard[] = "Forwarded";
    static const char address[] = "203.0.113.7";
    static const char element[] = "for=203.0.113.7;proto=https;host=\"a\"";
    struct span input = span_of(data, size);

    check(input, x, ", ", address, HTTP_WAY_X);
    check(input, x, "\r\n%s: ", address, HTTP_WAY_X);
    check(input, standard, ", ", element, HTTP_WAY_FORWARDED);
    check(input, standard, "\r\n%s: ", element, HTTP_WAY_FORWARDED);
    check_within(input, HTTP_WAY_X);
    check_within(input, HTTP_WAY_FORWARDED);
    return 0;
}
