/* The fetcher against origins that send without end what is no body. */
#include "base/buf.h"

#include "tests/unit/fetch/fixture.h"

#define OK "HTTP/1.1 200 OK\r\n"
#define CHUNKED OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"

/* `start`, `piece` repeated `count` times, `end`. The caller frees it. */
static struct buf
repeat(const char *start, const char *piece, unsigned count, const char *end)
{
    struct buf text;

    buf_init(&text, 16 << 20);
    buf_append_str(&text, start);
    for (unsigned i = 0; i < count; i++)
        buf_append_str(&text, piece);
    ck_assert(buf_append_str(&text, end));
    return text;
}

/* What such an answer comes to with the default bounds, with `word` in the sentence. */
static void
expect_answer(const struct buf *answer, enum fetch_error error, const char *word)
{
    const struct line script[] = {
        {.path = "/", .bytes = answer->data, .len = answer->len},
        {.path = NULL},
    };
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher = start_fetcher(&config);
    struct outcome o;

    fetch_one(fetcher, &o, "http://127.0.0.1:%u/", origin->port);
    ck_assert_msg(o.error == error, "%d instead of %d: %s", o.error, error, o.sentence);
    ck_assert_msg(strstr(o.sentence, word) != NULL, "%s", o.sentence);
    if (!error) {
        ck_assert_str_eq(o.body, "hello");
        ck_assert_ptr_null(strstr(o.headers, "X-Late"));
    }
    outcome_free(&o);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}

START_TEST(trailers)
{
    struct buf few = repeat(CHUNKED, "X-Late: 1\r\n", 100, "\r\n");
    struct buf large =
        repeat(CHUNKED, "X-Late: 0123456789012345678901234567890123456789\r\n", 4000, "\r\n");
    struct buf many = repeat(CHUNKED, "a:\r\n", 2000, "\r\n");

    expect_answer(&few, FETCH_OK, "");
    expect_answer(&large, FETCH_TOO_LARGE, "trailers");
    expect_answer(&many, FETCH_TOO_LARGE, "trailers");
    buf_free(&few);
    buf_free(&large);
    buf_free(&many);
}
END_TEST

/* Few interim answers, each within the bound. */
START_TEST(interim_answers)
{
    struct buf link = repeat("HTTP/1.1 103 Early Hints\r\nLink: ", "0123456789", 2000, "\r\n\r\n");
    struct buf lines = repeat("HTTP/1.1 103 Early Hints\r\n", "a:\r\n", 300, "\r\n");
    struct buf large = repeat("", link.data, 4, OK "Content-Length: 5\r\n\r\nhello");
    struct buf many = repeat("", lines.data, 4, OK "Content-Length: 5\r\n\r\nhello");
    struct buf few = repeat("", link.data, 2, OK "Content-Length: 5\r\n\r\nhello");

    expect_answer(&few, FETCH_OK, "");
    expect_answer(&large, FETCH_TOO_LARGE, "headers");
    expect_answer(&many, FETCH_TOO_LARGE, "headers");
    buf_free(&link);
    buf_free(&lines);
    buf_free(&large);
    buf_free(&many);
    buf_free(&few);
}
END_TEST

Suite *
unit_suite(void)
{
    TCase *tc;
    Suite *suite = fixture_suite("fetch/endless", &tc);

    tcase_add_test(tc, trailers);
    tcase_add_test(tc, interim_answers);
    return suite;
}
