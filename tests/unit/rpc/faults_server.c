/*
 * The server with each call of the system failing in turn: what is made is made whole or not at
 * all, and a connection that cannot be taken harms no other.
 */
#include "tests/unit/rpc/here.h"
#include "tests/unit/faults.h"
#include "tests/unit/rpc/peer.h"

static struct tiny tiny;

static const struct rpc_limits small = {
    .max_record = 100000,
    .max_empty_fragments = 64,
    .request_data = sizeof(struct tiny_waiting),
    .net.max_requests = 4,
    .net.max_queued_bytes = 1u << 20,
    .net.max_connections = 16,
};

static const struct rpc_program programs[] = {{TINY_PROGRAM, 1, tiny_dispatch}};

/* Checks what an operation that may have failed came to: `error` is 0 exactly when nothing failed.
 */
static bool
worked(int error, const char *may_be_ignored)
{
    const char *failed = faults_failed();

    faults_fail_at(0, 0);
    if (failed && strstr(may_be_ignored, failed))
        return error == 0;
    ck_assert_msg((failed != NULL) == (error != 0), "%s: %s", failed ? failed : "none",
                  strerror(error));
    return error == 0;
}

static void
create(void *context)
{
    struct rpc_server *server;

    (void)context;
    errno = 0;
    server = rpc_server_create(&small, 2, programs, 1, &tiny);
    if (worked(server ? 0 : errno, "pthread_cond_init pthread_mutex_init"))
        rpc_server_destroy(server);
}

START_TEST(creating)
{
    ck_assert_uint_ge(faults_walk(create, NULL, EMFILE), 8);
}
END_TEST

/* What could not be listened on is still the caller's. */
START_TEST(listening)
{
    for (unsigned n = 1;; n++) {
        struct rpc_server *server = rpc_server_create(&small, 1, programs, 1, &tiny);
        const char *failed;
        int port, fd = listen_tcp(&port), error;

        ck_assert_ptr_nonnull(server);
        faults_fail_at(n, EMFILE);
        error = rpc_server_listen(server, fd);
        failed = faults_failed();
        faults_fail_at(0, 0);
        if (failed && strcmp(failed, "setsockopt") == 0) /* TCP_NODELAY gains time only */
            ck_assert_int_eq(error, 0);
        else
            ck_assert_msg((failed != NULL) == (error != 0), "%s: %d", failed ? failed : "none",
                          error);
        if (error)
            ck_assert_int_eq(close(fd), 0);
        rpc_server_destroy(server);
        if (!failed) {
            ck_assert_uint_ge(n, 6);
            break;
        }
    }
}
END_TEST

START_TEST(starting)
{
    for (unsigned n = 1;; n++) {
        struct rpc_server *server = rpc_server_create(&small, 2, programs, 1, &tiny);
        const char *failed;
        int error;

        ck_assert_ptr_nonnull(server);
        faults_fail_at(n, EAGAIN);
        error = rpc_server_start(server);
        failed = faults_failed();
        faults_fail_at(0, 0);
        ck_assert_msg((failed != NULL) == (error != 0), "%s: %d", failed ? failed : "none", error);
        if (!error)
            rpc_server_stop(server, 0);
        rpc_server_destroy(server);
        if (!failed)
            break;
    }
}
END_TEST

/* The worker's loop runs on this thread, so that its calls fail, too. */
static unsigned
accept_one(unsigned n, int error)
{
    struct rpc_server *server = rpc_server_create(&small, 1, programs, 1, &tiny);
    struct sockaddr_in to = {.sin_family = AF_INET};
    int port, fd = listen_tcp(&port), peers[2];
    const char *failed = NULL;

    ck_assert_int_eq(rpc_server_listen(server, fd), 0);
    to.sin_port = htons((uint16_t)port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (unsigned i = 0; i < 2; i++) {
        peers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(connect(peers[i], (struct sockaddr *)&to, sizeof(to)), 0);
        faults_fail_at(i == 0 ? n : 0, error);
        for (unsigned turn = 0; turn < 3; turn++)
            here_turn(server);
        if (i == 0)
            failed = faults_failed();
        faults_fail_at(0, 0);
        /* The pause after a failure that more time may cure. */
        usleep(failed && i == 1 ? 120000 : 0);
        here_turn(server);
        here_turn(server);
    }
    /* The second one is served whatever became of the first. */
    ck_assert(peer_call(peers[1], 1, TINY_NULL, 0));
    for (unsigned turn = 0; turn < 3; turn++)
        here_turn(server);
    EXPECT_ACCEPTED(peers[1], 1, SUCCESS);
    close(peers[0]);
    close(peers[1]);
    rpc_server_destroy(server);
    return failed != NULL;
}

START_TEST(accepting)
{
    static const int errors[] = {EMFILE, ENOBUFS, ECONNABORTED};
    unsigned n;

    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        for (n = 1; accept_one(n, errors[i]); n++)
            continue;
        ck_assert_uint_ge(n, 3);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server faults");
    TCase *tcase = tcase_create("server faults");

    tcase_add_test(tcase, creating);
    tcase_add_test(tcase, listening);
    tcase_add_test(tcase, starting);
    tcase_add_test(tcase, accepting);
    suite_add_tcase(suite, tcase);
    return suite;
}
