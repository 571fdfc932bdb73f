/*
 * A replay against a server that answers by what the URL says: /N is a page that is stored the
 * first time and hit from then on; /evict, /fail, /bypass, /coalesced, /uncached and /garbage are
 * what they are called; /interrupt is a Ctrl-C in the middle.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "client/replay/replay.h"
#include "rpc/server.h"
#include "tests/unit/unit.h"

#define PAGES 64

static atomic_bool seen[PAGES];
static atomic_uint served;

static bool
is(const char *path, const char *name)
{
    return strcmp(path, name) == 0;
}

static void
answer(SVCXPRT *transport, const char *path)
{
    static char url[] = "http://h/victim", sentence[] = "no";
    proxy_fetch_result result = {.status = PROXY_OK};
    proxy_page *page = &result.proxy_fetch_result_u.page;
    proxy_url victim = {.proxy_url_val = url, .proxy_url_len = sizeof(url) - 1};
    char body[100];

    memset(body, 'b', sizeof(body));
    page->http_status = 200;
    page->source = PROXY_MISS;
    page->ending.stored = TRUE;
    page->body.body_val = body;
    page->body.body_len = sizeof(body);
    if (is(path, "evict")) {
        page->ending.evicted = 1;
        page->ending.victims.victims_val = &victim;
        page->ending.victims.victims_len = 1;
    } else if (is(path, "bypass")) {
        page->source = PROXY_BYPASS;
    } else if (is(path, "coalesced")) {
        page->source = PROXY_COALESCED;
    } else if (is(path, "uncached")) {
        page->ending.stored = FALSE;
    } else if (is(path, "fail")) {
        result.status = PROXY_DENIED;
        result.proxy_fetch_result_u.sentence = sentence;
    } else if (atomic_exchange(&seen[strtoul(path, NULL, 10) % PAGES], true)) {
        page->source = PROXY_HIT;
    }
    svc_sendreply(transport, (xdrproc_t)xdr_proxy_fetch_result, &result);
}

static void
dispatch(struct svc_req *request, SVCXPRT *transport)
{
    proxy_fetch_args args = {.flags = 0};
    char path[64];

    (void)request;
    if (!svc_getargs(transport, (xdrproc_t)xdr_proxy_fetch_args, &args)) {
        svcerr_decode(transport);
        return;
    }
    atomic_fetch_add(&served, 1);
    snprintf(path, sizeof(path), "%.*s", (int)args.url.proxy_url_len - 9,
             args.url.proxy_url_val + 9); /* after http://h/ */
    if (is(path, "garbage"))
        svcerr_systemerr(transport);
    else if (is(path, "interrupt"))
        kill(getpid(), SIGINT); /* and no answer */
    else
        answer(transport, path);
    svc_freeargs(transport, (xdrproc_t)xdr_proxy_fetch_args, &args);
}

static char folder[] = "/tmp/sunproxy-test-XXXXXX";
static struct rpc_server *rpc;
static struct server server;

static void
set_up(void)
{
    struct rpc_program program = {PROXY_FETCHPROG, PROXY_VERS2, dispatch};
    struct sockaddr_un *address = (struct sockaddr_un *)&server.address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof(address->sun_path), "%s/s", folder);
    server.len = sizeof(*address);
    strcpy(server.name, "the test");
    ck_assert_int_eq(bind(fd, (struct sockaddr *)address, server.len), 0);
    ck_assert_int_eq(listen(fd, 64), 0);
    for (size_t i = 0; i < PAGES; i++)
        atomic_store(&seen[i], false);
    atomic_store(&served, 0);
    rpc = rpc_server_create(&RPC_LIMITS_DEFAULT, 2, &program, 1, NULL);
    ck_assert_ptr_nonnull(rpc);
    ck_assert_int_eq(rpc_server_listen(rpc, fd), 0);
    ck_assert_int_eq(rpc_server_start(rpc), 0);
}

static void
tear_down(void)
{
    interrupt_release();
    if (rpc) {
        rpc_server_stop_accepting(rpc);
        rpc_server_stop(rpc, 0);
        rpc_server_destroy(rpc);
        rpc = NULL;
    }
    unlink(((struct sockaddr_un *)&server.address)->sun_path);
    rmdir(folder);
}

/* A trace of the paths in `text`, separated by spaces, the whole of it repeated. */
struct made {
    struct trace trace;
    char urls[PAGES][80];
    struct span spans[PAGES];
    uint32_t ids[4096];
};

static void
make_trace(struct made *made, const char *text, unsigned times)
{
    memset(made, 0, sizeof(*made));
    made->trace = (struct trace){.ids = made->ids, .urls = made->spans};
    while (times-- != 0)
        for (const char *at = text; *at; at += *at == ' ') {
            size_t len = strcspn(at, " ");
            uint32_t number = 0;
            char url[80];

            snprintf(url, sizeof(url), "http://h/%.*s", (int)len, at);
            while (number < made->trace.url_count && strcmp(made->urls[number], url) != 0)
                number++;
            if (number == made->trace.url_count) {
                strcpy(made->urls[number], url);
                made->spans[number] = span_str(made->urls[number]);
                made->trace.url_count++;
            }
            made->ids[made->trace.request_count++] = number;
            at += len;
        }
}

/* Of the loop tests: a closed loop, then a schedule that is faster than the server. */
static const double rates[] = {0, 100000};
static double rate;

static int
replay(const struct made *made, unsigned jobs, struct replay_log *log, struct replay_result *result)
{
    struct replay_plan plan = {.trace = &made->trace,
                               .server = &server,
                               .signals = interrupt_catch(),
                               .timeout_us = 60 * (int64_t)1000000,
                               .jobs = jobs,
                               .rate = rate,
                               .run = 1,
                               .runs = 1,
                               .log = log};

    return replay_run(&plan, result);
}

static struct made made;

START_TEST(outcomes_are_counted)
{
    struct replay_result result;

    rate = rates[_i];
    make_trace(&made, "1 2 1 evict fail bypass coalesced uncached garbage 2", 1);
    ck_assert_int_eq(replay(&made, 1, NULL, &result), EX_OK);
    ck_assert_uint_eq(result.requests, 10);
    ck_assert_uint_eq(result.outcomes[REPLAY_MISS], 2);
    ck_assert_uint_eq(result.outcomes[REPLAY_HIT], 2);
    ck_assert_uint_eq(result.outcomes[REPLAY_EVICTED], 1);
    ck_assert_uint_eq(result.outcomes[REPLAY_FAILED], 2);
    ck_assert_uint_eq(result.outcomes[REPLAY_BYPASS], 1);
    ck_assert_uint_eq(result.outcomes[REPLAY_COALESCED], 1);
    ck_assert_uint_eq(result.outcomes[REPLAY_UNCACHED], 1);
    ck_assert_uint_eq(result.evictions, 1);
    ck_assert_uint_eq(result.bytes, 800);
    ck_assert_uint_eq(result.bytes_hit, 200);
    ck_assert_uint_eq(result.times.count, 8);
    ck_assert_uint_ge(result.times.max, result.times.p50);
}
END_TEST

START_TEST(many_clients_do_the_work_of_one)
{
    struct replay_result result;

    rate = rates[_i];
    make_trace(&made, "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", 100);
    ck_assert_int_eq(replay(&made, 7, NULL, &result), EX_OK);
    ck_assert_uint_eq(result.requests, 1600);
    ck_assert_uint_eq(result.outcomes[REPLAY_MISS], 16);
    ck_assert_uint_eq(result.outcomes[REPLAY_HIT], 1584);
    ck_assert_uint_eq(atomic_load(&served), 1600);
}
END_TEST

START_TEST(a_log_has_every_request_in_order)
{
    struct replay_result result;
    struct replay_log *log;
    char path[80], line[512], wanted[128];
    unsigned number = 0;
    FILE *file;

    rate = rates[_i];
    snprintf(path, sizeof(path), "%s/log", folder);
    make_trace(&made, "5 evict", 20);
    log = replay_log_open(path, REPLAY_LOG_TSV, 1);
    ck_assert_ptr_nonnull(log);
    ck_assert_int_eq(replay(&made, 1, log, &result), EX_OK);
    ck_assert_int_eq(replay_log_close(log), 0);
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), file));
    while (fgets(line, sizeof(line), file)) {
        number++;
        if (number % 2 == 0)
            snprintf(wanted, sizeof(wanted),
                     "%u\thttp://h/evict\tevicted\thttp://h/victim\t200\t100\t", number);
        else
            snprintf(wanted, sizeof(wanted), "%u\thttp://h/5\t%s\t\t200\t100\t", number,
                     number == 1 ? "miss" : "hit");
        ck_assert_int_eq(strncmp(line, wanted, strlen(wanted)), 0);
    }
    ck_assert_uint_eq(number, 40);
    fclose(file);
    unlink(path);
}
END_TEST

START_TEST(a_log_that_cannot_be_written_ends_the_run)
{
    struct replay_result result;
    struct replay_log *log = replay_log_open("/dev/full", REPLAY_LOG_TSV, 1);

    rate = rates[_i];
    ck_assert_ptr_nonnull(log);
    make_trace(&made, "1 2 3 4 5 6 7 8 9 10", 400); /* more lines than stdio holds back */
    ck_assert_int_eq(replay(&made, 2, log, &result), EX_IOERR);
    ck_assert_uint_lt(result.requests, 4000);
    ck_assert_int_ne(replay_log_close(log), 0);
}
END_TEST

START_TEST(an_interrupt_sums_up_what_was_finished)
{
    struct replay_result result;

    rate = 0;
    make_trace(&made, "1 2 3 interrupt 4", 1);
    ck_assert_int_eq(replay(&made, 1, NULL, &result), EXIT_INTERRUPTED);
    ck_assert_uint_eq(result.requests, 3);
    ck_assert_uint_eq(result.outcomes[REPLAY_MISS], 3);
}
END_TEST

static void *
stop_server(void *unused)
{
    (void)unused;
    while (atomic_load(&served) < 100)
        usleep(1000);
    rpc_server_stop_accepting(rpc);
    rpc_server_stop(rpc, 0);
    return NULL;
}

START_TEST(a_lost_server_ends_the_run)
{
    struct replay_result result;
    pthread_t thread;

    rate = rates[_i];
    make_trace(&made, "1 2 3 4 5 6 7 8", 500);
    ck_assert_int_eq(pthread_create(&thread, NULL, stop_server, NULL), 0);
    /* It may be through before the server has stopped: then no server listens. */
    while (replay(&made, 3, NULL, &result) == EX_OK)
        ;
    ck_assert_int_eq(replay(&made, 3, NULL, &result), EX_UNAVAILABLE);
    ck_assert_uint_eq(result.requests, 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

START_TEST(a_schedule_does_not_wait_for_answers)
{
    struct replay_result result;

    rate = 1000;
    make_trace(&made, "1 2 3 4 5 6 7 8 9 10", 5);
    ck_assert_int_eq(replay(&made, 1, NULL, &result), EX_OK);
    ck_assert_uint_eq(result.requests, 50);
    ck_assert_uint_eq(result.sent, 50);
    ck_assert_uint_le(result.late, 50);
    ck_assert_int_ge(result.last_sent_us - result.first_sent_us,
                     49 * 1000 - (int64_t)result.max_behind_us);
    /* No answer comes before its request was due, and the longest delay is part of a time. */
    ck_assert_uint_ge(result.times.max, result.max_behind_us);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("replay");
    TCase *tcase = tcase_create("replay");

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, outcomes_are_counted, 0, 2);
    tcase_add_loop_test(tcase, many_clients_do_the_work_of_one, 0, 2);
    tcase_add_loop_test(tcase, a_log_has_every_request_in_order, 0, 2);
    tcase_add_loop_test(tcase, a_log_that_cannot_be_written_ends_the_run, 0, 2);
    tcase_add_test(tcase, an_interrupt_sums_up_what_was_finished);
    tcase_add_loop_test(tcase, a_lost_server_ends_the_run, 0, 2);
    tcase_add_test(tcase, a_schedule_does_not_wait_for_answers);
    suite_add_tcase(suite, tcase);
    return suite;
}
