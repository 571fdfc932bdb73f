/* Attempts of a fetch: the members of a row, one after the other, and a request that is repeated.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/unit/fetch/fixture.h"

#define PAGE(status, body) "HTTP/1.1 " status "\r\nContent-Length: 4\r\n\r\n" body

static const struct line bad[] = {
    {.path = "/a/x", .bytes = PAGE("503 No", "busy")},
    {.path = "/a/closed", .bytes = "", .then = CLOSE},
    {.path = "/a/hangs", .bytes = "", .then = HANG},
    {.path = "/a/stays", .bytes = "", .then = HANG},
    {.path = NULL},
};
static const struct line good[] = {
    {.path = "/b/x", .bytes = PAGE("200 OK", "page")},
    {.path = "/b/closed", .bytes = PAGE("200 OK", "page")},
    {.path = "/b/hangs", .bytes = PAGE("200 OK", "page")},
    {.path = "/b/stays", .bytes = "", .then = HANG},
    {.path = NULL},
};

/* What came, beside the outcome. */
struct seen {
    struct outcome outcome; /* first */
    unsigned members[4], attempts, again, passed_over, repeats;
    enum fetch_error error; /* of the last attempt that was followed by another one */
    char sentence[256];
};

static void
take_member(void *context, unsigned member)
{
    struct seen *seen = context;

    ck_assert_uint_lt(seen->attempts, 4);
    seen->members[seen->attempts++] = member;
}

/* Another field in each attempt. */
static struct span
fields(void *context)
{
    static const char *const lines[] = {"", "X-Try: 1\r\n", "X-Try: 2\r\n", "X-Try: 3\r\n", ""};
    const struct seen *seen = context;

    return span_str(lines[seen->attempts]);
}

static void
take_response(void *context, const struct fetch_response *response)
{
    struct seen *seen = context;

    seen->passed_over += response->passed_over;
    outcome_response(&seen->outcome, response);
}

static enum fetch_flow
take_head(void *context, const struct fetch_head *head)
{
    struct seen *seen = context;

    if (seen->repeats && seen->repeats--)
        return FETCH_REPEAT;
    return outcome_head(&seen->outcome, head);
}

static void
take_again(void *context, enum fetch_error error, const char *sentence, int64_t total_us)
{
    struct seen *seen = context;

    ck_assert_int_ge(total_us, 0);
    seen->again++;
    seen->error = error;
    snprintf(seen->sentence, sizeof(seen->sentence), "%s", sentence);
}

static const struct fetch_sink sink = {.member = take_member,
                                       .fields = fields,
                                       .response = take_response,
                                       .head = take_head,
                                       .body = outcome_body,
                                       .again = take_again,
                                       .done = outcome_done};

static struct origin *origins[2];
static char urls[2][64];
static struct origin_route route;
static struct origin_server servers[2];

static void
begin(void)
{
    const struct line *const scripts[] = {bad, good};

    route = route_to("", "site.test");
    route.count = 2;
    for (unsigned i = 0; i < 2; i++) {
        origins[i] = origin_start(scripts[i]);
        snprintf(urls[i], sizeof(urls[i]), "http://127.0.0.1:%u/%c", origins[i]->port, 'a' + i);
        route.members[i].url = span_str(urls[i]);
        servers[i] = (struct origin_server){.drained = false};
        route.members[i].server = &servers[i];
    }
}

static void
end(struct fetcher *fetcher)
{
    fetcher_destroy(fetcher);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_eq(atomic_load(&route.members[i].server->in_flight), 0);
        origin_stop(origins[i]);
    }
}

static void
run(struct fetcher *fetcher, struct seen *seen, const char *url, const char *method)
{
    const struct request request = {.client = OUTCOME_CLIENT,
                                    .method_name = span_str(method),
                                    .url = span_str(url),
                                    .route = &route};

    outcome_init(&seen->outcome);
    ck_assert(submit_request(fetcher, &request, &sink, seen, NULL));
    outcome_wait(&seen->outcome);
}

/* Is this in the last request that the origin has got? */
static bool
has_got(struct origin *origin, const char *text)
{
    bool has;

    pthread_mutex_lock(&origin->lock);
    has = strstr(origin->last_request, text) != NULL;
    pthread_mutex_unlock(&origin->lock);
    return has;
}

/* Status, connection and time: each is the member's fault. */
START_TEST(the_next_member_is_asked)
{
    static const struct {
        const char *url;
        enum fetch_error error;
    } rows[] = {
        {"http://site.test/x", FETCH_ORIGIN_BROKE},
        {"http://site.test/closed", FETCH_ORIGIN_BROKE},
        {"http://site.test/hangs", FETCH_TIMED_OUT},
    };
    struct seen seen = {.attempts = 0};
    struct fetch_stats stats;
    struct fetcher *fetcher;

    begin();
    config.first_byte_timeout_us = 300000;
    fetcher = start_fetcher(&config);
    run(fetcher, &seen, rows[_i].url, "");
    ck_assert_int_eq(seen.outcome.error, FETCH_OK);
    ck_assert_str_eq(seen.outcome.body, "page");
    ck_assert_uint_eq(seen.outcome.heads, 1);
    ck_assert(seen.attempts == 2 && seen.members[0] == 0 && seen.members[1] == 1);
    ck_assert_uint_eq(seen.again, 1);
    fetcher_get_stats(fetcher, &stats);
    ck_assert(stats.retried == 1 && stats.refused == 0);
    ck_assert_int_eq(seen.error, rows[_i].error);
    ck_assert_uint_eq(seen.passed_over, _i == 0);
    ck_assert(has_got(origins[0], "X-Try: 1\r\n"));
    ck_assert(has_got(origins[1], "X-Try: 2\r\n"));
    ck_assert(has_got(origins[1], "Host: site.test\r\n"));
    ck_assert_int_ne(atomic_load(&route.members[0].server->left_until_us), 0);
    outcome_free(&seen.outcome);
    end(fetcher);
}
END_TEST

/* What may have had an effect is not repeated; without a connection nothing was sent. */
START_TEST(a_write_goes_on_only_if_nothing_was_sent)
{
    struct seen seen = {.attempts = 0}, closed = {.attempts = 0}, refused = {.attempts = 0};
    struct fetcher *fetcher;

    begin();
    fetcher = start_fetcher(&config);
    run(fetcher, &seen, "http://site.test/x", "DELETE");
    ck_assert(seen.outcome.error == FETCH_OK && seen.outcome.status == 503 && seen.attempts == 1);
    atomic_store(&route.members[0].server->left_until_us, 0);
    run(fetcher, &closed, "http://site.test/closed", "DELETE");
    ck_assert(closed.outcome.error == FETCH_ORIGIN_BROKE && closed.attempts == 1);
    route.members[0].url = span_str("http://127.0.0.1:1");
    atomic_store(&route.members[0].server->left_until_us, 0);
    run(fetcher, &refused, "http://site.test/x", "DELETE");
    ck_assert(refused.outcome.error == FETCH_OK && refused.attempts == 2);
    ck_assert_int_eq(refused.error, FETCH_CONNECT_FAILED);
    outcome_free(&seen.outcome);
    outcome_free(&closed.outcome);
    outcome_free(&refused.outcome);
    end(fetcher);
}
END_TEST

/* The same member is asked once more, over the same connection. */
START_TEST(a_response_of_no_use_is_asked_for_again)
{
    struct seen seen = {.repeats = 2};
    struct fetcher *fetcher;

    begin();
    route.count = 1;
    route.members[0].url = span_str(urls[1]);
    fetcher = start_fetcher(&config);
    run(fetcher, &seen, "http://site.test/x", "");
    ck_assert_int_eq(seen.outcome.error, FETCH_OK);
    ck_assert_str_eq(seen.outcome.body, "page");
    ck_assert(seen.attempts == 3 && seen.again == 0 && seen.outcome.heads == 1);
    ck_assert_uint_eq(origin_requests(origins[1]), 3);
    ck_assert_uint_eq(origins[1]->connections, 1);
    ck_assert(has_got(origins[1], "X-Try: 3\r\n"));
    outcome_free(&seen.outcome);
    end(fetcher);
}
END_TEST

/* Where no member responds, the failure is that of the last one. */
START_TEST(all_members_fail)
{
    struct seen seen = {.attempts = 0};
    struct fetcher *fetcher;

    begin();
    route.members[0].url = span_str("http://127.0.0.1:1");
    route.members[1].url = span_str("http://missing.test");
    fetcher = start_fetcher(&config);
    run(fetcher, &seen, "http://site.test/x", "");
    ck_assert_int_eq(seen.outcome.error, FETCH_RESOLVE_FAILED);
    ck_assert(seen.attempts == 2 && seen.again == 1 && seen.error == FETCH_CONNECT_FAILED);
    outcome_free(&seen.outcome);
    end(fetcher);
}
END_TEST

/* The failure of the first member is that of the request. */
START_TEST(retries_have_a_budget)
{
    struct seen seen = {.attempts = 0};
    struct fetch_stats stats;
    struct fetcher *fetcher;

    begin();
    while (origin_budget_take(&route.budget, clock_monotonic_us()))
        continue;
    fetcher = start_fetcher(&config);
    run(fetcher, &seen, "http://site.test/x", "");
    ck_assert(seen.outcome.error == FETCH_OK && seen.outcome.status == 503 && seen.attempts == 1);
    fetcher_get_stats(fetcher, &stats);
    ck_assert_uint_eq(stats.refused, 1);
    ck_assert_uint_eq(stats.retried, 0);
    outcome_free(&seen.outcome);
    end(fetcher);
}
END_TEST

/* The third request finds no place in time, and the fourth one a place that has become free. */
START_TEST(members_have_limits)
{
    struct seen seen[4] = {{.attempts = 0}};
    struct fetcher *fetcher;
    uint64_t ids[2];

    begin();
    route.queue_us = 100000;
    for (unsigned i = 0; i < 2; i++)
        atomic_store(&servers[i].limit, 1);
    fetcher = start_fetcher(&config);
    for (unsigned i = 0; i < 2; i++) {
        const struct request request = {.client = OUTCOME_CLIENT,
                                        .url = span_str("http://site.test/stays"),
                                        .route = &route};

        outcome_init(&seen[i].outcome);
        ck_assert(submit_request(fetcher, &request, &sink, &seen[i], &ids[i]));
        while (!origin_requests(origins[i]))
            usleep(1000);
    }
    run(fetcher, &seen[2], "http://site.test/x", "POST");
    ck_assert_int_eq(seen[2].outcome.error, FETCH_BUSY);
    ck_assert_uint_eq(seen[2].attempts, 1);
    ck_assert_uint_eq(origin_requests(origins[0]) + origin_requests(origins[1]), 2);
    ck_assert_uint_eq(atomic_load(&servers[0].failed) + atomic_load(&servers[1].failed), 0);
    for (unsigned i = 0; i < 2; i++) {
        fetcher_cancel(fetcher, ids[i]);
        outcome_wait(&seen[i].outcome);
    }
    run(fetcher, &seen[3], "http://site.test/x", "POST");
    ck_assert_int_eq(seen[3].outcome.error, FETCH_OK);
    for (unsigned i = 0; i < 4; i++)
        outcome_free(&seen[i].outcome);
    end(fetcher);
}
END_TEST

/* A request that waits for another bound does not wait for the member. */
START_TEST(a_wait_for_something_else_has_no_limit)
{
    const struct request request = {
        .client = OUTCOME_CLIENT, .url = span_str("http://site.test/stays"), .route = &route};
    const struct request other = {
        .client = OUTCOME_CLIENT, .url = span_str("http://site.test/x"), .route = &route};
    struct seen first = {.attempts = 0}, second = {.attempts = 0};
    struct fetcher *fetcher;
    uint64_t id;

    begin();
    route.members[0].url = span_str(urls[1]);
    route.count = 1;
    config.max_waiting = 1;
    atomic_store(&servers[0].limit, 5);
    fetcher = start_fetcher(&config);
    outcome_init(&first.outcome);
    outcome_init(&second.outcome);
    ck_assert(submit_request(fetcher, &request, &sink, &first, &id));
    while (!origin_requests(origins[1]))
        usleep(1000);
    ck_assert(submit_request(fetcher, &other, &sink, &second, NULL));
    usleep(300000); /* longer than the row's limit, which is 0 */
    fetcher_cancel(fetcher, id);
    outcome_wait(&first.outcome);
    outcome_wait(&second.outcome);
    ck_assert_int_eq(second.outcome.error, FETCH_OK);
    outcome_free(&first.outcome);
    outcome_free(&second.outcome);
    end(fetcher);
}
END_TEST

/* Nothing is connected to. */
START_TEST(a_name_is_resolved_alone)
{
    static const struct {
        const char *url;
        enum fetch_error error;
    } rows[] = {{"http://127.0.0.1:1", FETCH_OK}, {"http://missing.test", FETCH_RESOLVE_FAILED}};
    struct fetcher *fetcher = start_fetcher(&config);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct request request = {.client = OUTCOME_CLIENT,
                                        .url = span_str(rows[i].url),
                                        .flags = REQUEST_CONFIGURED | REQUEST_RESOLVE_ONLY};
        struct seen seen = {.attempts = 0};

        outcome_init(&seen.outcome);
        ck_assert(submit_request(fetcher, &request, &sink, &seen, NULL));
        outcome_wait(&seen.outcome);
        ck_assert_int_eq(seen.outcome.error, rows[i].error);
        ck_assert_uint_eq(seen.outcome.heads, 0);
        outcome_free(&seen.outcome);
    }
    fetcher_destroy(fetcher);
}
END_TEST

/* No member is asked. */
START_TEST(all_members_are_down)
{
    struct seen seen = {.attempts = 0};
    struct fetcher *fetcher;

    begin();
    for (unsigned i = 0; i < 2; i++)
        atomic_store(&route.members[i].server->drained, true);
    fetcher = start_fetcher(&config);
    run(fetcher, &seen, "http://site.test/x", "");
    ck_assert_int_eq(seen.outcome.error, FETCH_DOWN);
    ck_assert(seen.attempts == 0 && seen.again == 0 && seen.outcome.heads == 0);
    ck_assert_uint_eq(origin_requests(origins[0]) + origin_requests(origins[1]), 0);
    outcome_free(&seen.outcome);
    end(fetcher);
}
END_TEST

Suite *
unit_suite(void)
{
    TCase *tc;
    Suite *suite = fixture_suite("fetch/attempts", &tc);

    tcase_add_loop_test(tc, the_next_member_is_asked, 0, 3);
    tcase_add_test(tc, a_write_goes_on_only_if_nothing_was_sent);
    tcase_add_test(tc, a_response_of_no_use_is_asked_for_again);
    tcase_add_test(tc, all_members_fail);
    tcase_add_test(tc, retries_have_a_budget);
    tcase_add_test(tc, members_have_limits);
    tcase_add_test(tc, a_name_is_resolved_alone);
    tcase_add_test(tc, a_wait_for_something_else_has_no_limit);
    tcase_add_test(tc, all_members_are_down);
    return suite;
}
