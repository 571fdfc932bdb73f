/*
 * A header of the PROXY protocol: what is read from all bytes at once is what is read when they
 * come one by one, and a header that is complete is not changed by what follows it.
 */
#include <string.h>

#include "net/proxy_header.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proxy_header all, part;
    enum proxy_header_result whole = proxy_header_read(span_of(data, size), &all);

    for (size_t len = 0; len <= size; len++) {
        enum proxy_header_result result = proxy_header_read(span_of(data, len), &part);

        if (result == PROXY_HEADER_PARTIAL)
            continue;
        FUZZ_CHECK(result == whole);
        if (result == PROXY_HEADER_COMPLETE) {
            FUZZ_CHECK(part.len == len && len <= PROXY_HEADER_MAX);
            FUZZ_CHECK(memcmp(&part, &all, sizeof(all)) == 0);
            FUZZ_CHECK(part.local == (part.address_len == 0));
        }
        return 0;
    }
    FUZZ_CHECK(whole == PROXY_HEADER_PARTIAL);
    return 0;
}
