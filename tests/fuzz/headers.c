/*
 * Field lines: of a client when the first byte is odd, of an origin's answer when it is even. What
 * is accepted of a client is well formed line by line; what goes on of an answer is well formed,
 * too, and reads the same when it is read again.
 */
#include "fetch/headers.h"
#include "http/response_read.h"
#include "tests/fuzz/fuzz.h"

#include <strings.h>

/* Each line is "name:value CR LF" without other control characters that end a line. */
static void
check_lines(struct span lines)
{
    while (lines.len) {
        const char *end = memchr(lines.ptr, '\n', lines.len);
        struct span line;

        FUZZ_CHECK(end);
        line = fuzz_take(&lines, (size_t)(end - lines.ptr) + 1);
        FUZZ_CHECK(line.len > 2 && line.ptr[line.len - 2] == '\r');
        FUZZ_CHECK(memchr(line.ptr, ':', line.len) > (void *)line.ptr);
        FUZZ_CHECK(!memchr(line.ptr, '\r', line.len - 2));
        FUZZ_CHECK(line.ptr[0] != ' ' && line.ptr[0] != '\t');
    }
}

static void
check_request(struct span lines)
{
    struct curl_slist *list = NULL;
    char why[512] = "";

    if (headers_check(&(struct request){0}, lines, why, sizeof(why)) != FETCH_OK) {
        FUZZ_CHECK(why[0]);
        return;
    }
    check_lines(lines);
    FUZZ_CHECK(!span_has_zero(lines));
    FUZZ_CHECK(headers_to_list(&(struct request){0},
                               &(struct headers_sent){.fields = lines}, &list));
    for (const struct curl_slist *item = list; item; item = item->next)
        FUZZ_CHECK(strncasecmp(item->data, "host:", 5) != 0);
    curl_slist_free_all(list);
}

static void
check_answer(struct span lines)
{
    struct http_response_head head = {0}, again = {0};
    struct http_status_line status = {.version = 11, .status = 200};
    bool no_memory = false;

    if (!http_response_head_read(&head, &status, lines, &no_memory)) {
        FUZZ_CHECK(head.content_length >= -1);
        check_lines(buf_span(&head.fields));
        FUZZ_CHECK(!http_response_head_read(&again, &status, buf_span(&head.fields), &no_memory));
        FUZZ_CHECK(span_equal(buf_span(&head.fields), buf_span(&again.fields)));
    }
    FUZZ_CHECK(!no_memory);
    http_response_head_free(&again);
    http_response_head_free(&head);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span input = span_of(data, size);

    if (fuzz_byte(&input) % 2)
        check_request(input);
    else
        check_answer(input);
    return 0;
}
