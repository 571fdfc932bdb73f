/* Methods, and bodies of requests. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/fetch/fixture.h"
#include "tests/unit/fetch/paced.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"

static const struct line script[] = {
    {.path = "/", .bytes = OK},
    {.path = NULL},
};

struct sending {
    struct origin *origin;
    struct fetcher *fetcher;
    struct paced paced;
    char url[64];
};

static void
sending_init(struct sending *sending, const struct line *lines)
{
    sending->origin = origin_start(lines);
    sending->fetcher = start_fetcher(&config);
    paced_init(&sending->paced, sending->fetcher);
}

static void
sending_free(struct sending *sending)
{
    paced_free(&sending->paced);
    fetcher_destroy(sending->fetcher);
    origin_stop(sending->origin);
}

START_TEST(a_body_from_memory)
{
    struct sending sending;
    struct fetch_request request;

    sending_init(&sending, script);
    request = paced_request(sending.url, sizeof(sending.url), sending.origin->port, "POST", "/", 0);
    request.headers = span_str("Content-Type: text/plain\r\nContent-Encoding: x-a\r\n");
    request.body = (struct fetch_body){.kind = FETCH_BODY_BYTES, .bytes = span_of("a\0b", 3)};
    paced_submit(&sending.paced, &request);
    paced_expect(&sending.paced, FETCH_OK);
    ck_assert_str_eq(sending.paced.outcome.body, "fine");
    ck_assert_uint_eq(sending.origin->last_body_len, 3);
    ck_assert_mem_eq(sending.origin->last_body, "a\0b", 3);
    ck_assert_ptr_nonnull(strstr(sending.origin->last_request, "POST / HTTP/1.1\r\n"));
    ck_assert_ptr_nonnull(strstr(sending.origin->last_request, "Content-Length: 3\r\n"));
    ck_assert_ptr_nonnull(strstr(sending.origin->last_request, "Content-Type: text/plain\r\n"));
    ck_assert_ptr_nonnull(strstr(sending.origin->last_request, "Content-Encoding: x-a\r\n"));
    sending_free(&sending);
}
END_TEST

Suite *
unit_suite(void)
{
    TCase *tc;
    Suite *suite = fixture_suite("fetch/upload", &tc);

    tcase_add_test(tc, a_body_from_memory);
    return suite;
}
