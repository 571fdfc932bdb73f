/* Connections for tunnels: REQUEST_CONNECT_ONLY. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/fetch/fixture.h"

struct tunnel {
    struct outcome outcome; /* first */
    int fd;
};

static void
on_connected(void *context, int fd)
{
    struct tunnel *tunnel = context;

    ck_assert_int_eq(tunnel->fd, -1);
    ck_assert(!tunnel->outcome.over);
    tunnel->fd = fd;
}

static struct line script[] = {
    {.path = "/page", .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"},
    {.path = NULL},
};

static enum fetch_error
connect_to(struct fetcher *fetcher, struct tunnel *tunnel, const char *url)
{
    struct fetch_sink sink = outcome_sink;
    struct request request = GET(OUTCOME_CLIENT, url, "");

    sink.connected = on_connected;
    request.flags = REQUEST_CONNECT_ONLY;
    outcome_init(&tunnel->outcome);
    tunnel->fd = -1;
    ck_assert(submit_request(fetcher, &request, &sink, tunnel, NULL));
    outcome_wait(&tunnel->outcome);
    ck_assert_uint_eq(tunnel->outcome.responses, 0);
    ck_assert_uint_eq(tunnel->outcome.heads, 0);
    return tunnel->outcome.error;
}

static void
close_tunnel(struct tunnel *tunnel)
{
    if (tunnel->fd >= 0)
        close(tunnel->fd);
    outcome_free(&tunnel->outcome);
}

/* The fetcher is gone, and the connection is there: a request over it is answered. */
START_TEST(the_connection_outlives_the_fetcher)
{
    static const char request[] = "GET /page HTTP/1.1\r\nHost: x\r\n\r\n";
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher = start_fetcher(&config);
    struct tunnel tunnel;
    char url[64], answer[256] = "";
    size_t len = 0;
    ssize_t n;

    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", origin->port);
    ck_assert_int_eq(connect_to(fetcher, &tunnel, url), FETCH_OK);
    fetcher_destroy(fetcher);
    ck_assert_int_ge(tunnel.fd, 0);
    ck_assert(fcntl(tunnel.fd, F_GETFL) & O_NONBLOCK);
    ck_assert(fcntl(tunnel.fd, F_GETFD) & FD_CLOEXEC);
    ck_assert_int_eq(fcntl(tunnel.fd, F_SETFL, 0), 0);
    ck_assert_int_eq(send(tunnel.fd, request, strlen(request), MSG_NOSIGNAL),
                     (ssize_t)strlen(request));
    while (!strstr(answer, "\r\n\r\npage") && len < sizeof(answer) - 1) {
        n = recv(tunnel.fd, answer + len, sizeof(answer) - 1 - len, 0);
        ck_assert_int_gt(n, 0);
        len += (size_t)n;
    }
    close_tunnel(&tunnel);
    origin_stop(origin);
}
END_TEST

/* The rules are those of every fetch. */
START_TEST(what_is_refused)
{
    static const struct {
        const char *url;
        enum fetch_error error;
    } cases[] = {
        {"http://10.0.0.1:443/", FETCH_DENIED},
        {"http://127.0.0.1:25/", FETCH_DENIED},
        {"http://127.0.0.1:1/", FETCH_DENIED},
        {"http:///", FETCH_BAD_URL},
    };
    struct fetcher *fetcher = start_fetcher(&config);
    struct tunnel tunnel;

    ck_assert_int_eq(connect_to(fetcher, &tunnel, cases[_i].url), cases[_i].error);
    ck_assert_int_eq(tunnel.fd, -1);
    ck_assert_str_ne(tunnel.outcome.sentence, "");
    close_tunnel(&tunnel);
    fetcher_destroy(fetcher);
}
END_TEST

START_TEST(a_port_where_nothing_listens)
{
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher = start_fetcher(&config);
    struct tunnel tunnel;
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", origin->port);
    origin_stop(origin);
    ck_assert_int_eq(connect_to(fetcher, &tunnel, url), FETCH_CONNECT_FAILED);
    ck_assert_int_eq(tunnel.fd, -1);
    close_tunnel(&tunnel);
    fetcher_destroy(fetcher);
}
END_TEST

/* A kept connection of a fetch is not given away, and the tunnel's is not used by a fetch. */
START_TEST(connections_are_not_shared)
{
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher = start_fetcher(&config);
    struct tunnel first, second;
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", origin->port);
    expect_page(fetcher, "page", "%spage", url);
    ck_assert_int_eq(connect_to(fetcher, &first, url), FETCH_OK);
    ck_assert_int_eq(connect_to(fetcher, &second, url), FETCH_OK);
    ck_assert_int_ne(first.fd, second.fd);
    expect_page(fetcher, "page", "%spage", url);
    /* Nothing has come on them. */
    for (int i = 0; i < 2; i++) {
        char byte;

        ck_assert_int_eq(recv(i ? first.fd : second.fd, &byte, 1, MSG_DONTWAIT), -1);
    }
    close_tunnel(&first);
    close_tunnel(&second);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

Suite *
unit_suite(void)
{
    TCase *tc;
    Suite *suite = fixture_suite("fetcher_connect", &tc);

    tcase_add_test(tc, the_connection_outlives_the_fetcher);
    tcase_add_loop_test(tc, what_is_refused, 0, 4);
    tcase_add_test(tc, a_port_where_nothing_listens);
    tcase_add_test(tc, connections_are_not_shared);
    return suite;
}
