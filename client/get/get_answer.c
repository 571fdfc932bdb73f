/*
 * The contents of an answer of `sunproxy get`: a page, or the reason for a failure, and what they
 * mean for the exit status and for --retry.
 */
#include <stdlib.h>
#include <sysexits.h>

#include "client/exit_status.h"
#include "client/get/get.h"
#include "http/field.h"

/* Field lines of RPC are bounded by the protocol, those of HTTP by the transport. */
#define MAX_HEAD (512u << 10)
#define MAX_TEXT (128u << 10)
#define MAX_MESSAGES (1u << 20)
#define MAX_HELD (64u << 20) /* the queue bounds what is held of all answers together */

void
get_page_init(struct get_page *page)
{
    *page = (struct get_page){.length = -1, .source = GET_SOURCE_UNKNOWN};
    buf_init(&page->head, MAX_HEAD);
    buf_init(&page->final_url, MAX_TEXT);
    buf_init(&page->cache_status, MAX_TEXT);
}

void
get_page_free(struct get_page *page)
{
    buf_free(&page->head);
    buf_free(&page->final_url);
    buf_free(&page->cache_status);
}

void
get_answer_init(struct get_answer *answer, const char *url, size_t number)
{
    *answer = (struct get_answer){.url = url, .number = number};
    buf_init(&answer->sentence, MAX_TEXT);
    buf_init(&answer->held, MAX_HELD);
    buf_init(&answer->messages, MAX_MESSAGES);
    get_page_init(&answer->page);
}

void
get_answer_free(struct get_answer *answer)
{
    get_page_free(&answer->page);
    buf_free(&answer->sentence);
    buf_free(&answer->held);
    buf_free(&answer->messages);
}

void
get_answer_reset(struct get_answer *answer)
{
    get_page_free(&answer->page);
    get_page_init(&answer->page);
    buf_free(&answer->held);
    buf_reset(&answer->sentence);
    answer->failure = (struct get_failure){.status = EX_OK};
    answer->has_page = answer->discards = false;
    answer->size = answer->sent = 0;
}

void
get_answer_fail(struct get_answer *answer, const struct get_failure *failure)
{
    answer->failure = *failure;
    buf_reset(&answer->sentence);
    if (buf_append_str(&answer->sentence, failure->sentence))
        answer->failure.sentence = buf_str(&answer->sentence);
    else
        answer->failure.sentence = "it failed, and there is no memory for the reason";
}

bool
get_answer_ok(const struct get_answer *answer)
{
    return answer->failure.status == EX_OK && answer->has_page;
}

struct span
get_answer_lines(const struct get_answer *answer)
{
    struct span lines = buf_span(&answer->page.head), status_line;

    return http_next_line(&lines, &status_line) ? lines : span_of("", 0);
}

struct span
get_answer_field(const struct get_answer *answer, const char *name)
{
    struct span lines = get_answer_lines(answer), line, value;

    while (http_next_line(&lines, &line))
        if (http_line_is(line, span_str(name), &value))
            return value;
    return span_of("", 0);
}

bool
get_answer_is_transient(const struct get_answer *answer)
{
    static const unsigned statuses[] = {408, 429, 500, 502, 503, 504};

    if (answer->failure.status != EX_OK)
        return answer->failure.transient;
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        if (answer->has_page && answer->page.status == statuses[i])
            return true;
    return false;
}

bool
get_answer_is_http_error(const struct get_answer *answer)
{
    return get_answer_ok(answer) && answer->page.status >= 400;
}

int
get_answer_exit(const struct get_answer *answer, const struct get_options *options)
{
    if (answer->failure.status != EX_OK)
        return answer->failure.status;
    return options->fail && get_answer_is_http_error(answer) ? EXIT_HTTP_ERROR : EX_OK;
}
