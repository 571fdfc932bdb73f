/*
 * Whatever is read as credentials of the scheme Basic has a name without a colon and neither has a
 * control character, and the value is the only one that encodes them.
 */
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "http/basic_credentials.h"
#include "http/field.h"
#include "tests/fuzz/fuzz.h"

static void
check(struct span value)
{
    char bytes[HTTP_BASIC_BYTES];
    struct http_basic basic;
    struct buf text;

    if (!http_basic_read(value, bytes, &basic))
        return;
    FUZZ_CHECK(basic.name.len && !memchr(basic.name.ptr, ':', basic.name.len));
    FUZZ_CHECK(basic.password.ptr == basic.name.ptr + basic.name.len + 1);
    FUZZ_CHECK(basic.name.ptr == bytes && basic.password.ptr + basic.password.len <=
                                              bytes + HTTP_BASIC_BYTES);
    FUZZ_CHECK(json_is_utf8(basic.name) && json_is_utf8(basic.password));
    for (const char *at = bytes; at < basic.password.ptr + basic.password.len; at++)
        FUZZ_CHECK((unsigned char)*at >= 0x20 && *at != 0x7f);
    buf_init(&text, 4096);
    base64_encode(&text, span_of(bytes, basic.name.len + 1 + basic.password.len));
    FUZZ_CHECK(!buf_failed(&text));
    FUZZ_CHECK(span_equal(http_trim(span_of(value.ptr + 5, value.len - 5)), buf_span(&text)));
    buf_free(&text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span input = span_of(data, size), value;

    check(input);
    if (http_credentials_find(input, span_str("Proxy-Authorization"), &value) ==
        HTTP_CREDENTIALS_ONE) {
        FUZZ_CHECK(value.ptr >= input.ptr && value.ptr + value.len <= input.ptr + input.len);
        check(value);
    }
    return 0;
}
