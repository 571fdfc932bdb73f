/*
 * The head of an answer, read for whether it may be shared, and for how long: what must not be
 * shared is not shared whatever else stands in the head.
 */
#include "http/freshness.h"
#include "base/buf.h"
#include "tests/fuzz/fuzz.h"

#define LONGEST_US (((int64_t)1 << 32) * 1000000)

static const struct http_arrival arrival = {.wall_s = 1000000000, .waited_us = 1500000};

/* The same head with a line of ours, in front or behind. */
static enum http_sharing
judge_with(struct span lines, const char *line, bool in_front)
{
    enum http_sharing sharing;
    int64_t fresh_us;
    struct buf head;

    buf_init(&head, lines.len + 128);
    if (in_front)
        buf_append_str(&head, line);
    buf_append(&head, lines.ptr, lines.len);
    if (!in_front)
        buf_append_str(&head, line);
    FUZZ_CHECK(!buf_failed(&head));
    sharing = http_response_sharing(buf_span(&head), &arrival, &fresh_us);
    buf_free(&head);
    return sharing;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const never[] = {"Cache-Control: no-store\r\n", "Cache-Control: private\r\n",
                                        "Set-Cookie: a=b\r\n", "Vary: *\r\n",
                                        "Cache-Control: no-cache\r\n"};
    struct span lines = span_of(data, size);
    enum http_sharing sharing;
    int64_t fresh_us = -1;
    bool whole = lines.len == 0 || lines.ptr[lines.len - 1] == '\n';

    sharing = http_response_sharing(lines, &arrival, &fresh_us);
    FUZZ_CHECK(http_sharing_text(sharing)[0]);
    if (sharing == HTTP_SHARED)
        FUZZ_CHECK(fresh_us == HTTP_FRESH_UNSTATED || (fresh_us > 0 && fresh_us <= LONGEST_US));
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
        FUZZ_CHECK(judge_with(lines, never[i], true) != HTTP_SHARED);
        FUZZ_CHECK(!whole || judge_with(lines, never[i], false) != HTTP_SHARED);
    }
    FUZZ_CHECK(judge_with(lines, "X-Unknown: a, b\r\n", true) == sharing);
    return 0;
}
