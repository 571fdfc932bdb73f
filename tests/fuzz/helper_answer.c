/*
 * Answers of a helper to checks of users. The input is a byte, odd for channels, and what the
 * helper sends, cut into lines. Nobody is accepted but by a line that begins with OK.
 */
#include <string.h>

#include "server/users/helper_line.h"
#include "tests/fuzz/fuzz.h"

static void
check(struct span line, bool has_channel)
{
    struct span message, rest = line;
    unsigned channel;
    enum helper_reply reply = helper_line_read(line, has_channel, &channel, &message);

    FUZZ_CHECK(message.len == 0 ||
               (message.ptr >= line.ptr && message.ptr + message.len <= line.ptr + line.len));
    FUZZ_CHECK(reply != HELPER_REPLY_NONSENSE || message.len == 0);
    if (reply != HELPER_REPLY_OK)
        return;
    while (has_channel && rest.len && *rest.ptr >= '0' && *rest.ptr <= '9')
        rest = span_of(rest.ptr + 1, rest.len - 1);
    FUZZ_CHECK(!has_channel || (rest.len < line.len && channel < 100000));
    while (has_channel && span_take_char(&rest, ' '))
        ;
    FUZZ_CHECK(rest.len >= 2 && memcmp(rest.ptr, "OK", 2) == 0);
    FUZZ_CHECK(rest.len == 2 || rest.ptr[2] == ' ' || rest.ptr[2] == '\r');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span input = span_of(data, size);
    const bool has_channel = fuzz_byte(&input) & 1;

    while (input.len) {
        const char *end = memchr(input.ptr, '\n', input.len);
        struct span line = fuzz_take(&input, end ? (size_t)(end - input.ptr) : input.len);

        check(line, has_channel);
        (void)fuzz_byte(&input);
    }
    return 0;
}
