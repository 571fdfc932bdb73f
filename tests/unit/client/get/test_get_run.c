/*
 * `sunproxy get` against a server that misbehaves on demand: answers out of order, fails, breaks
 * off.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sysexits.h>

#include "client/exit_status.h"
#include "client/get/get_transport.h"
#include "tests/unit/rpc/scripted_peer.h"

#define MAX_CALLS 8

static char scratch[64];

/* Takes this number of calls, answers them last first, and hangs up. */
struct script {
    struct peer peer;
    size_t take;
    size_t answer;
    pthread_t thread;
};

/* The page's body is the path of the URL; /404 is an HTTP error, /fail a failure, /loud garbage. */
static void
answer(struct peer *peer, const struct peer_call *call)
{
    const char *url = (const char *)call->args + 4;
    uint32_t len = ntohl(*(const uint32_t *)(const void *)call->args), code = 200;
    const char *path = memchr(url + 7, '/', len - 7);
    uint32_t body_len = (uint32_t)(url + len - path);
    uint32_t words[64] = {htonl(call->words[0]), htonl(REPLY)};

    if (body_len == 5 && memcmp(path, "/fail", 5) == 0) {
        words[6] = htonl(PROXY_RESOLVE_FAILED);
        words[7] = htonl(8);
        memcpy(words + 8, "no host!", 8);
        peer_send_record(peer, words, 40, SIZE_MAX);
        return;
    }
    if (body_len == 4 && memcmp(path, "/404", 4) == 0)
        code = 404;
    words[7] = htonl(code);
    words[8] = htonl(PROXY_MISS);
    words[18] = htonl(body_len > 5 ? 8 : 0); /* headers */
    if (body_len > 5) {
        memcpy(words + 19, "A: b c\r\n", 8);
        words[22] = htonl(body_len);
        memcpy(words + 23, path, body_len);
    } else {
        words[20] = htonl(body_len);
        memcpy(words + 21, path, body_len);
    }
    peer_send_record(peer, words, (body_len > 5 ? 92 : 84) + ((body_len + 3) & ~3u), SIZE_MAX);
}

static void *
serve(void *context)
{
    struct script *script = context;
    static struct peer_call calls[MAX_CALLS];

    peer_accept(&script->peer);
    for (size_t i = 0; i < script->take; i++)
        peer_take_call(&script->peer, &calls[i]);
    for (size_t i = 0; i < script->answer; i++)
        answer(&script->peer, &calls[script->take - 1 - i]);
    peer_hang_up(&script->peer);
    return NULL;
}

/* Runs get over `urls` with stdout in `out`; returns its exit status. */
static int
get_from(size_t take, size_t answered, struct get_options *options, const char *const *urls,
         char *out, size_t size)
{
    struct script script = {.take = take, .answer = answered};
    struct url_list list = {.urls = NULL};
    struct rpc_client *client;
    struct get_transport *transport;
    FILE *file = tmpfile();
    int before, status;
    ssize_t len;

    ck_assert_ptr_nonnull(file);
    options->silent = true;
    options->server.timeout_us = 60 * (int64_t)1000000;
    options->jobs = MAX_CALLS;
    options->api = 2;
    buf_init(&options->headers, 100);
    for (; *urls; urls++)
        ck_assert(url_list_add(&list, *urls));
    peer_listen(&script.peer);
    ck_assert_int_eq(pthread_create(&script.thread, NULL, serve, &script), 0);
    client = rpc_client_connect((struct sockaddr *)&script.peer.address,
                                sizeof(script.peer.address), 1000000, 1 << 20);
    ck_assert_ptr_nonnull(client);
    transport = get_rpc_over(client, options);
    ck_assert_ptr_nonnull(transport);

    fflush(stdout);
    before = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    status = get_run(&transport, "the script", options, &list);
    ck_assert_ptr_null(transport); /* it was closed */
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);

    ck_assert_int_eq(pthread_join(script.thread, NULL), 0);
    len = pread(fileno(file), out, size - 1, 0);
    ck_assert_int_ge(len, 0);
    out[len] = '\0';
    fclose(file);
    peer_free(&script.peer);
    url_list_free(&list);
    return status;
}

START_TEST(output_is_in_the_order_asked_for)
{
    static const char *const urls[] = {"http://h/1", "http://h/2", "http://h/3", "http://h/4",
                                       NULL};
    struct get_options options = {.verbose = false};
    char out[256];

    ck_assert_int_eq(get_from(4, 4, &options, urls, out, sizeof(out)), EX_OK);
    ck_assert_str_eq(out, "/1/2/3/4");
}
END_TEST

START_TEST(the_first_failure_decides)
{
    static const char *const urls[] = {"http://h/1", "http://h/404", "http://h/fail", "http://h/4",
                                       NULL};
    struct get_options options = {.fail = true};
    char out[256];

    ck_assert_int_eq(get_from(4, 4, &options, urls, out, sizeof(out)), EXIT_HTTP_ERROR);
    ck_assert_str_eq(out, "/1/4");
    options.fail = false;
    ck_assert_int_eq(get_from(4, 4, &options, urls, out, sizeof(out)), EX_NOHOST);
    ck_assert_str_eq(out, "/1/404/4");
}
END_TEST

START_TEST(a_lost_server_ends_everything)
{
    static const char *const urls[] = {"http://h/1", "http://h/fail", "http://h/3", NULL};
    struct get_options options = {.fail = false};
    char out[256];

    /* The last two are answered, the first never. */
    ck_assert_int_eq(get_from(3, 2, &options, urls, out, sizeof(out)), EX_UNAVAILABLE);
    ck_assert_str_eq(out, "");
}
END_TEST

START_TEST(a_lost_server_in_json)
{
    static const char *const urls[] = {"http://h/1", "http://h/2", "http://h/3", NULL};
    struct get_options options = {.json = true};
    char out[4096], *lines[4], *at = out;

    /* The first is never answered, the last is; each has an object. */
    ck_assert_int_eq(get_from(3, 1, &options, urls, out, sizeof(out)), EX_UNAVAILABLE);
    for (int i = 0; i < 3; i++) {
        lines[i] = strsep(&at, "\n");
        ck_assert_ptr_nonnull(lines[i]);
        ck_assert_msg(strstr(lines[i], urls[i]) != NULL, "%s", lines[i]);
    }
    ck_assert_str_eq(at, "");
    for (int i = 0; i < 2; i++)
        ck_assert_ptr_nonnull(strstr(lines[i], "\"exit_status\":69,"));
    ck_assert_ptr_nonnull(strstr(lines[0], "\"error_code\":\"lost\"}"));
    ck_assert_ptr_nonnull(strstr(lines[2], "\"error\":null,"));
    ck_assert_ptr_nonnull(strstr(lines[2], "\"body\":\"/3\","));
}
END_TEST

START_TEST(no_url_was_asked_for)
{
    static const struct get_failure failure = {
        .status = EX_UNAVAILABLE, .code = "unreachable", .sentence = "no \"server\""};
    struct get_options options = {.json = true, .output = scratch};
    struct url_list urls = {.urls = NULL};
    char text[512];
    FILE *file;

    strcpy(scratch, "/tmp/test-get-XXXXXX");
    close(mkstemp(scratch));
    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(get_fail(&failure, &options, &urls), EX_UNAVAILABLE);
        file = fopen(scratch, "re");
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        fclose(file);
        ck_assert_msg(strstr(text, round ? "{\"url\":\"http://h/1\"," : "{\"url\":null,") == text,
                      "%s", text);
        ck_assert_ptr_nonnull(strstr(text, "\"exit_status\":69,\"error\":\"no \\\"server\\\"\","
                                           "\"error_code\":\"unreachable\"}\n"));
        ck_assert(url_list_add(&urls, "http://h/1"));
    }
    options.json = false;
    ck_assert_int_eq(unlink(scratch), 0);
    ck_assert_int_eq(get_fail(&failure, &options, &urls), EX_UNAVAILABLE);
    ck_assert_int_ne(access(scratch, F_OK), 0);
    url_list_free(&urls);
}
END_TEST

START_TEST(headers_stand_before_the_body)
{
    static const char *const urls[] = {"http://h/headers", NULL};
    struct get_options options = {.include = true};
    char out[256];

    ck_assert_int_eq(get_from(1, 1, &options, urls, out, sizeof(out)), EX_OK);
    ck_assert_str_eq(out, "HTTP/1.1 200 \r\nA: b c\r\n\r\n/headers");
}
END_TEST

START_TEST(json_says_it_all)
{
    static const char *const urls[] = {"http://h/headers", "http://h/fail", "http://h/\xff", NULL};
    struct get_options options = {.json = true};
    char out[4096];

    ck_assert_int_eq(get_from(3, 3, &options, urls, out, sizeof(out)), EX_NOHOST);
    ck_assert_ptr_nonnull(strstr(out, "{\"url\":\"http://h/headers\","));
    ck_assert_ptr_nonnull(strstr(out, "\"error\":null,\"final_url\":\"\",\"status\":200,"
                                      "\"source\":\"miss\",\"stored\":false,\"age\":0,"));
    ck_assert_ptr_nonnull(strstr(out, "\"headers\":[{\"name\":\"A\",\"value\":\"b c\"}],"
                                      "\"body\":\"/headers\",\"body_base64\":null}\n"));
    ck_assert_ptr_nonnull(strstr(out, "\"exit_status\":68,\"error\":\"no host!\","
                                      "\"error_code\":\"resolve_failed\"}\n"));
    ck_assert_ptr_nonnull(strstr(out, "\"body\":null,\"body_base64\":\"L/8=\"}\n"));
}
END_TEST

/* ---- a transport whose first answer is late, and whose second one is longer than is held ------
 */

struct late {
    struct get_transport transport; /* first: get_run.c has its address */
    struct get_answer *answers[2];
    unsigned begun;
    bool offered;
    int64_t longest_us; /* that it was to wait, with the second one paused */
};

static void
late_begin(struct get_transport *transport, struct get_answer *answer)
{
    struct late *late = (struct late *)transport;

    late->answers[late->begun++] = answer;
}

static void
late_nothing(struct get_transport *transport, struct get_answer *answer)
{
    (void)transport;
    (void)answer;
}

static void
late_run(struct get_transport *transport, int64_t timeout_us)
{
    static const struct get_failure over = {
        .status = EX_TEMPFAIL, .code = "over", .sentence = "over"};
    static char piece[1 << 20];
    struct late *late = (struct late *)transport;

    if (late->offered) {
        late->longest_us = timeout_us;
        get_queue_done(late->answers[1], &over);
        get_queue_done(late->answers[0], &over);
        return;
    }
    late->offered = true;
    get_queue_head(late->answers[1]);
    for (unsigned i = 0; i < 64; i++)
        if (get_queue_body(late->answers[1], span_of(piece, sizeof(piece))) == GET_PAUSE)
            return;
    ck_abort_msg("the answer is not paused");
}

static void
late_close(struct get_transport *transport)
{
    (void)transport;
}

/* Fetches two URLs, without their bodies on stdout. The exit status. */
static int
get_late(struct late *late)
{
    struct get_options options = {.silent = true, .jobs = 2, .api = 2};
    struct url_list list = {.urls = NULL};
    struct get_transport *transport = &late->transport;
    int before = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY), status;

    buf_init(&options.headers, 100);
    ck_assert(url_list_add(&list, "http://h/1") && url_list_add(&list, "http://h/2"));
    fflush(stdout);
    dup2(nowhere, STDOUT_FILENO);
    close(nowhere);
    status = get_run(&transport, "the script", &options, &list);
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);
    url_list_free(&list);
    return status;
}

START_TEST(a_paused_answer_is_looked_at_again_in_time)
{
    struct late late = {.transport = {.begin = late_begin,
                                      .resume = late_nothing,
                                      .drop = late_nothing,
                                      .run = late_run,
                                      .close = late_close}};

    ck_assert_int_eq(get_late(&late), EX_TEMPFAIL);
    ck_assert_int_gt(late.longest_us, 0);
    ck_assert_int_le(late.longest_us, 5000000);
    late.transport.drop = NULL;
    late.begun = 0;
    late.offered = false;
    ck_assert_int_eq(get_late(&late), EX_TEMPFAIL);
    ck_assert_int_gt(late.longest_us, 5000000);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("get");
    TCase *tcase = tcase_create("get");

    tcase_add_test(tcase, a_paused_answer_is_looked_at_again_in_time);
    tcase_add_test(tcase, output_is_in_the_order_asked_for);
    tcase_add_test(tcase, the_first_failure_decides);
    tcase_add_test(tcase, a_lost_server_ends_everything);
    tcase_add_test(tcase, a_lost_server_in_json);
    tcase_add_test(tcase, no_url_was_asked_for);
    tcase_add_test(tcase, headers_stand_before_the_body);
    tcase_add_test(tcase, json_says_it_all);
    suite_add_tcase(suite, tcase);
    return suite;
}
