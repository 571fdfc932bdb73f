/*
 * TLS and HTTP/2, against servers that others wrote: openssl's s_server and nghttpd, with
 * certificates made on the spot. What is missing is named, and its tests are skipped.
 *
 * Waits for most of its time, so tests/run.sh runs it beside others.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/fetch/fixture.h"
#include "tests/unit/fetch/paced.h"

extern char **environ;

static char folder[] = "/tmp/sunproxy-tls-XXXXXX";
static char cert[64], key[64], other_cert[64], other_key[64], page[64];

/* ---- other people's programs ----------------------------------------------------------------- */

static bool
exists(const char *program)
{
    static const char *const folders[] = {"/usr/bin", "/usr/sbin", "/usr/local/bin", "/bin"};
    char path[128];

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folders[i], program);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/* Starts a program in the folder, its output in *output if that is not NULL, else nowhere. */
static pid_t
start_program(char *const *argv, int *output)
{
    posix_spawn_file_actions_t actions;
    int ends[2] = {-1, -1};
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addchdir_np(&actions, folder);
    if (output) {
        ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
        *output = ends[0];
    } else {
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    }
    ck_assert_int_eq(posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    if (output)
        close(ends[1]);
    return pid;
}

struct server {
    pid_t pid;
    int output; /* read or not, it stays open: a server that cannot write would end */
    unsigned port;
};

static void
stop_server(struct server *server)
{
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    close(server->output);
}

static void
make_certificate(char *to_key, char *to_cert, char *names)
{
    char *argv[] = {"openssl",
                    "req",
                    "-x509",
                    "-newkey",
                    "ec",
                    "-pkeyopt",
                    "ec_paramgen_curve:P-256",
                    "-nodes",
                    "-keyout",
                    to_key,
                    "-out",
                    to_cert,
                    "-days",
                    "2",
                    "-subj",
                    "/CN=sunproxy test",
                    "-addext",
                    names,
                    NULL};
    int status;

    ck_assert_int_eq(waitpid(start_program(argv, NULL), &status, 0) > 0, 1);
    ck_assert_int_eq(status, 0);
}

/* s_server on a free port, which it names on its first line. */
static struct server
start_s_server(char *with_key, char *with_cert, char *protocols)
{
    char *argv[] = {"openssl", "s_server", "-accept", "127.0.0.1:0", "-key",
                    with_key,  "-cert",    with_cert, "-WWW",        protocols ? "-alpn" : NULL,
                    protocols, NULL};
    char text[512];
    size_t len = 0;
    struct server server = {.port = 0};

    server.pid = start_program(argv, &server.output);
    while (server.port == 0 && len + 1 < sizeof(text)) {
        struct pollfd pollfd = {.fd = server.output, .events = POLLIN};
        const char *accept;
        ssize_t got;

        if (poll(&pollfd, 1, 20000) != 1)
            break;
        got = read(server.output, text + len, sizeof(text) - 1 - len);
        if (got <= 0)
            break;
        len += (size_t)got;
        text[len] = '\0';
        accept = strstr(text, "ACCEPT 127.0.0.1:");
        if (accept && strchr(accept, '\n'))
            server.port = (unsigned)atoi(accept + strlen("ACCEPT 127.0.0.1:"));
    }
    ck_assert_uint_ne(server.port, 0);
    return server;
}

static void
set_up(void)
{
    FILE *file;

    if (!exists("openssl"))
        unit_skip("the openssl command is not here");
    fixture_set_up();
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(cert, sizeof(cert), "%s/cert.pem", folder);
    snprintf(key, sizeof(key), "%s/key.pem", folder);
    snprintf(other_cert, sizeof(other_cert), "%s/other.pem", folder);
    snprintf(other_key, sizeof(other_key), "%s/other-key.pem", folder);
    snprintf(page, sizeof(page), "%s/page", folder);
    make_certificate(key, cert, "subjectAltName=DNS:localhost,IP:127.0.0.1");
    make_certificate(other_key, other_cert, "subjectAltName=DNS:other.test");
    file = fopen(page, "w");
    ck_assert_ptr_nonnull(file);
    fputs("over TLS\n", file);
    fclose(file);
}

static void
tear_down(void)
{
    unlink(cert);
    unlink(key);
    unlink(other_cert);
    unlink(other_key);
    unlink(page);
    rmdir(folder);
    fixture_tear_down();
}

/* ---- TLS ------------------------------------------------------------------------------------- */

START_TEST(a_certificate_of_the_operators_authority)
{
    struct fetcher *fetcher;
    struct server server = start_s_server(key, cert, NULL);

    config.cacert = cert;
    fetcher = start_fetcher(&config);
    expect_page(fetcher, "over TLS\n", "https://localhost:%u/page", server.port);
    /* Read when the fetcher began: the file may go. */
    unlink(cert);
    expect_end(fetcher, FETCH_OK, "https://127.0.0.1:%u/page", server.port);
    fetcher_destroy(fetcher);
    stop_server(&server);
}
END_TEST

/* The name in the certificate is that of the URL, whatever Host says: a client may have chosen it. */
START_TEST(a_host_of_the_requests_proves_nothing)
{
    struct server servers[] = {start_s_server(key, cert, NULL),
                               start_s_server(other_key, other_cert, NULL)};
    struct origin_route route;
    struct fetcher *fetcher;
    struct outcome o;
    char url[64], command[160];

    /* Both are trusted: the second one for the host alone that the request names. */
    snprintf(command, sizeof(command), "cat %s >> %s", other_cert, cert);
    ck_assert_int_eq(system(command), 0);
    config.cacert = cert;
    fetcher = start_fetcher(&config);
    for (unsigned i = 0; i < 2; i++) {
        snprintf(url, sizeof(url), "https://localhost:%u", servers[i].port);
        route = route_to(url, "other.test");
        outcome_init(&o);
        ck_assert(submit_request(fetcher,
                                 &(struct request){.client = OUTCOME_CLIENT,
                                                   .url = span_str("https://client.test/page"),
                                                   .route = &route},
                                 &outcome_sink, &o, NULL));
        outcome_wait(&o);
        ck_assert_msg(o.error == (i ? FETCH_TLS_FAILED : FETCH_OK), "%d %s", o.error, o.sentence);
        outcome_free(&o);
    }
    fetcher_destroy(fetcher);
    stop_server(&servers[0]);
    stop_server(&servers[1]);
}
END_TEST

static void
expect_tls_failure(struct fetcher *fetcher, const char *host, unsigned port)
{
    struct outcome o;

    fetch_one(fetcher, &o, "https://%s:%u/page", host, port);
    ck_assert_msg(o.error == FETCH_TLS_FAILED, "%s: %d %s", host, o.error, o.sentence);
    ck_assert_uint_eq(o.heads, 0);
    outcome_free(&o);
}

START_TEST(certificates_that_prove_nothing)
{
    static const struct name_row names[] = {{"wrong.test", "127.0.0.1"}, {NULL, NULL}};
    struct fetcher *fetcher;
    struct server server = start_s_server(key, cert, NULL);
    struct server other = start_s_server(other_key, other_cert, NULL);

    /* Without the authority, with another one, and under another name. */
    fetcher = start_fetcher(&config);
    expect_tls_failure(fetcher, "127.0.0.1", server.port);
    fetcher_destroy(fetcher);
    names_use(&config, names);
    config.cacert = cert;
    fetcher = start_fetcher(&config);
    expect_tls_failure(fetcher, "127.0.0.1", other.port);
    expect_tls_failure(fetcher, "wrong.test", server.port);
    fetcher_destroy(fetcher);
    config.cacert = other_cert;
    fetcher = start_fetcher(&config);
    expect_tls_failure(fetcher, "127.0.0.1", other.port);
    fetcher_destroy(fetcher);
    stop_server(&server);
    stop_server(&other);
}
END_TEST

START_TEST(no_tls_at_all)
{
    struct fetcher *fetcher = start_fetcher(&config);
    struct outcome o;
    uint16_t port;
    int listener = scripted_listen(&port, 8);

    /* The other end hangs up in the middle of the handshake. */
    outcome_init(&o);
    {
        char url[64];
        int fd;

        snprintf(url, sizeof(url), "https://127.0.0.1:%u/", port);
        ck_assert(submit_request(fetcher, &GET(OUTCOME_CLIENT, url, ""), &outcome_sink, &o, NULL));
        fd = accept(listener, NULL, NULL);
        scripted_send(fd, "HTTP/1.1 400 Bad\r\n\r\n", 20);
        close(fd);
    }
    outcome_wait(&o);
    ck_assert_msg(o.error == FETCH_TLS_FAILED || o.error == FETCH_CONNECT_FAILED, "%d %s", o.error,
                  o.sentence);
    outcome_free(&o);
    close(listener);
    fetcher_destroy(fetcher);
}
END_TEST

/* ---- through a proxy -------------------------------------------------------------------- */

struct tunnel {
    int listener;
    unsigned to;
    char asked[1024];
};

/* Copies what there is from one end to the other; false at the end. */
static bool
copy_some(int from, int to)
{
    char bytes[4096];
    ssize_t got = read(from, bytes, sizeof(bytes));

    if (got <= 0)
        return false;
    scripted_send(to, bytes, (size_t)got);
    return true;
}

/* Digs one tunnel, wherever it is asked to. */
static void *
dig(void *argument)
{
    static const char dug[] = "HTTP/1.1 200 Dug\r\nX-Proxy: yes\r\n\r\n";
    struct tunnel *tunnel = argument;
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons((uint16_t)tunnel->to)};
    int near = accept(tunnel->listener, NULL, NULL);
    int far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pollfd ends[2] = {{.fd = near, .events = POLLIN}, {.fd = far, .events = POLLIN}};
    bool going = scripted_read(near, tunnel->asked, sizeof(tunnel->asked)) &&
                 connect(far, (struct sockaddr *)&in, sizeof(in)) == 0;

    if (going)
        scripted_send(near, dug, strlen(dug));
    while (going && poll(ends, 2, 20000) > 0) {
        if (ends[0].revents)
            going = copy_some(near, far);
        if (ends[1].revents)
            going = copy_some(far, near) && going;
    }
    close(near);
    close(far);
    return NULL;
}

START_TEST(https_through_a_proxy)
{
    struct server server = start_s_server(key, cert, NULL);
    struct tunnel tunnel = {.to = server.port};
    struct fetcher *fetcher;
    struct outcome o;
    char url[64];
    uint16_t port;
    pthread_t digger;

    tunnel.listener = scripted_listen(&port, 8);
    pthread_create(&digger, NULL, dig, &tunnel);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
    config.upstream_proxy = url;
    config.cacert = cert;
    fetcher = start_fetcher(&config);
    /* The certificate is checked against the name, which only the proxy would resolve. */
    fetch_with(fetcher, "https://localhost:4433/page", "X-Mine: secret\r\n", &o);
    ck_assert_msg(o.error == FETCH_OK, "%d %s", o.error, o.sentence);
    ck_assert_str_eq(o.body, "over TLS\n");
    ck_assert_msg(!strstr(o.headers, "X-Proxy"), "%s", o.headers);
    outcome_free(&o);
    fetcher_destroy(fetcher);
    pthread_join(digger, NULL);
    close(tunnel.listener);
    ck_assert_msg(strncmp(tunnel.asked, "CONNECT localhost:4433 ", 23) == 0, "%s", tunnel.asked);
    ck_assert_msg(!strstr(tunnel.asked, "X-Mine"), "%s", tunnel.asked);
    stop_server(&server);
}
END_TEST

/* ---- pauses -------------------------------------------------------------------------- */

#define LARGE 1000000u

/*
 * A server that would choose HTTP/2, and does not speak it: a fetch that may pause does not offer
 * it. TLS records are held back in a pause as well.
 */
START_TEST(pauses_over_tls)
{
    struct server server = start_s_server(key, cert, "h2,http/1.1");
    struct request request;
    struct fetch_stats stats;
    struct fetcher *fetcher;
    struct paced paced;
    struct outcome o;
    FILE *file = fopen(page, "w");
    char url[64];

    for (unsigned i = 0; i < LARGE; i++)
        fputc('a' + (int)(i % 26), file);
    fclose(file);
    config.cacert = cert;
    config.first_byte_timeout_us = 1000000;
    config.stall_timeout_us = 1000000;
    fetcher = start_fetcher(&config);
    paced_init(&paced, fetcher);
    paced.pause_at = 1;
    paced.pause_step = 300000;
    request = paced_request(url, sizeof(url), 0, "", "", REQUEST_STREAMS);
    snprintf(url, sizeof(url), "https://127.0.0.1:%u/page", server.port);
    request.url = span_str(url);
    paced_submit(&paced, &request);
    for (unsigned i = 0; i < 4; i++) {
        paced_wait_paused(&paced);
        usleep(300000);
        fetcher_get_stats(fetcher, &stats);
        ck_assert_uint_le(stats.bytes, paced_len(&paced) + 65536);
        paced_go_on(&paced);
    }
    paced_expect(&paced, FETCH_OK);
    ck_assert_uint_eq(paced.outcome.body_len, LARGE);
    for (unsigned i = 0; i < LARGE; i++)
        ck_assert_int_eq(paced.outcome.body[i], 'a' + (int)(i % 26));
    paced_free(&paced);
    /* Without the flag HTTP/2 is offered and chosen. */
    fetch_one(fetcher, &o, "%s", url);
    ck_assert_int_ne(o.error, FETCH_OK);
    outcome_free(&o);
    fetcher_destroy(fetcher);
    stop_server(&server);
}
END_TEST

/* ---- HTTP/2 ---------------------------------------------------------------------------------- */

START_TEST(http2)
{
    static struct outcome outcomes[20];
    struct fetcher *fetcher;
    struct outcome o;
    uint16_t port;
    char number[16], url[64];
    char *argv[] = {"nghttpd", "-a", "127.0.0.1", "-d", folder, "-v", number, key, cert, NULL};
    char log[65536];
    size_t len = 0;
    unsigned streams = 0, handshakes = 0;
    ssize_t got;
    struct server server;

    if (!exists("nghttpd")) {
        printf("SKIP: HTTP/2: nghttpd is not here\n");
        return;
    }
    close(scripted_listen(&port, 1));
    snprintf(number, sizeof(number), "%u", port);
    server.pid = start_program(argv, &server.output);
    config.cacert = cert;
    fetcher = start_fetcher(&config);
    for (unsigned tries = 0; tries < 200; tries++) {
        fetch_one(fetcher, &o, "https://127.0.0.1:%u/page", port);
        if (o.error != FETCH_CONNECT_FAILED)
            break;
        outcome_free(&o);
        usleep(50000);
    }
    ck_assert_msg(o.error == FETCH_OK, "%d %s", o.error, o.sentence);
    ck_assert_uint_eq(o.status, 200);
    ck_assert_str_eq(o.body, "over TLS\n");
    ck_assert_int_eq(o.content_length, 9);
    ck_assert_msg(strstr(o.headers, "content-length: 9\r\n") != NULL, "%s", o.headers);
    ck_assert_msg(o.headers[0] != ':' && !strstr(o.headers, "\n:"), "%s", o.headers);
    outcome_free(&o);
    fetch_fine(fetcher, &o, "https://127.0.0.1:%u/nowhere", port);
    ck_assert_uint_eq(o.status, 404);
    outcome_free(&o);
    snprintf(url, sizeof(url), "https://127.0.0.1:%u/page", port);
    for (unsigned i = 0; i < 20; i++) {
        outcome_init(&outcomes[i]);
        ck_assert(submit_request(fetcher, &GET(OUTCOME_CLIENT, url, "X-A: b\r\n"), &outcome_sink,
                                 &outcomes[i], NULL));
    }
    for (unsigned i = 0; i < 20; i++) {
        outcome_wait(&outcomes[i]);
        ck_assert_msg(outcomes[i].error == FETCH_OK, "%s", outcomes[i].sentence);
        ck_assert_str_eq(outcomes[i].body, "over TLS\n");
        outcome_free(&outcomes[i]);
    }
    fetcher_destroy(fetcher);
    kill(server.pid, SIGTERM);
    /* What the server saw: that it was HTTP/2, and one connection for all of it. */
    while (len + 1 < sizeof(log) &&
           (got = read(server.output, log + len, sizeof(log) - 1 - len)) > 0)
        len += (size_t)got;
    log[len] = '\0';
    stop_server(&server);
    for (const char *at = log; (at = strstr(at, ":method: GET")); at++)
        streams++;
    for (const char *at = log; (at = strstr(at, "The negotiated protocol: h2")); at++)
        handshakes++;
    ck_assert_uint_ge(streams, 3);
    ck_assert_uint_eq(handshakes, 1);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/tls");
    TCase *tc = tcase_create("tls");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_certificate_of_the_operators_authority);
    tcase_add_test(tc, a_host_of_the_requests_proves_nothing);
    tcase_add_test(tc, certificates_that_prove_nothing);
    tcase_add_test(tc, no_tls_at_all);
    tcase_add_test(tc, https_through_a_proxy);
    tcase_add_test(tc, pauses_over_tls);
    tcase_add_test(tc, http2);
    suite_add_tcase(suite, tc);
    return suite;
}
