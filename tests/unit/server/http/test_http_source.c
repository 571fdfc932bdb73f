/* Connections of a load balancer, which begin with a header of the PROXY protocol. */
#include "tests/unit/net/stream.h"
#include "tests/unit/server/front_server.h"

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define OF_203_0_113_7 "\x21\x11\0\x0c\xcb\x00\x71\x07\x0a\0\0\x01\xd4\x31\x01\xbb"
#define OF_2001_DB8_1                                                                        \
    "\x21\x21\0\x24\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x20\x01\x0d\xb8\0\0\0\0\0\0\0" \
    "\0\0\0\0\x02\xd4\x31\x01\xbb"
#define LOCAL "\x20\0\0\0"
#define OVER_TLS "\x21\x11\0\x14\xcb\x00\x71\x07\x0a\0\0\x01\xd4\x31\x01\xbb\x20\0\x05\1\0\0\0\0"
#define LINE "PROXY TCP4 203.0.113.7 10.0.0.1 54321 443\r\n"
#define URL "http://origin.test/"

static const char inet[] = SIGNATURE OF_203_0_113_7, inet6[] = SIGNATURE OF_2001_DB8_1,
                  local[] = SIGNATURE LOCAL, over_tls[] = SIGNATURE OVER_TLS, line_1[] = LINE;
static struct http_answer answer;

/* `list` of the options has this one value. */
static void
set(struct option_list *list, const char *value)
{
    static char texts[3][64];
    static unsigned used;
    static char *lists[3][2];
    unsigned i = used++ % 3;

    snprintf(texts[i], sizeof(texts[i]), "%s", value);
    lists[i][0] = texts[i];
    *list = (struct option_list){.items = lists[i], .count = 1};
}

static void
begin(void)
{
    front_server_start(&(struct scene_options){0}, VICTIMS_ADMIN);
}

static int
open_with(const char *header, size_t len)
{
    int fd = http_connect_proxied();

    ck_assert(peer_write(fd, header, len));
    return fd;
}

/* The connection is closed, and nothing is sent. */
static void
expect_closed(int fd)
{
    char byte;

    ck_assert_int_le(recv(fd, &byte, 1, 0), 0);
    close(fd);
}

/* The request that was sent is fetched with this line, and answered. */
static void
expect_forwarded(int fd, const char *line)
{
    ck_assert_ptr_nonnull(strstr(await_fetch(URL)->fields, line));
    origin_responds(URL, "", BODY_INLINE, "page", 4);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 200);
}

START_TEST(the_client_is_that_of_the_header)
{
    static const struct {
        const char *header;
        size_t len;
        const char *client, *scheme;
    } rows[] = {
        {inet, sizeof(inet) - 1, "203.0.113.7", "http"},
        {inet6, sizeof(inet6) - 1, "2001:db8::1", "http"},
        {local, sizeof(local) - 1, "127.0.0.1", "http"},
        {line_1, sizeof(line_1) - 1, "203.0.113.7", "http"},
        {over_tls, sizeof(over_tls) - 1, "203.0.113.7", "https"},
    };

    set(&front_options.origin, "/=http://origin.test");
    begin();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int fd = open_with(rows[i].header, rows[i].len);
        char line[100];

        snprintf(line, sizeof(line), "X-Forwarded-For: %s\r\nX-Forwarded-Proto: %s\r\n",
                 rows[i].client, rows[i].scheme);
        /* Of each request of the connection. */
        for (unsigned n = 0; n < 2; n++) {
            ck_assert(http_send(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
            expect_forwarded(fd, line);
        }
        close(fd);
    }
    front_server_stop();
}
END_TEST

/* The default permits loopback, from which the balancer connects. */
START_TEST(networks_of_clients_mean_the_client)
{
    static const char get[] = "GET " URL " HTTP/1.1\r\nHost: x\r\n\r\n",
                      purge[] = "PURGE " URL " HTTP/1.1\r\nHost: x\r\n\r\n";
    int fd;

    begin();
    fd = open_with(inet, sizeof(inet) - 1);
    http_expect(fd, get, &answer, 403);
    http_expect(fd, purge, &answer, 403);
    close(fd);
    fd = open_with(local, sizeof(local) - 1);
    ck_assert(http_send(fd, get));
    origin_responds(URL, "", BODY_INLINE, "page", 4);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 200);
    close(fd);
    front_server_stop();

    set(&front_options.client_net, "203.0.113.0/24");
    set(&front_options.purge_net, "2001:db8::/32");
    begin();
    fd = open_with(inet, sizeof(inet) - 1);
    ck_assert(http_send(fd, get));
    origin_responds(URL, "", BODY_INLINE, "page", 4);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 200);
    http_expect(fd, purge, &answer, 403);
    close(fd);
    fd = open_with(inet6, sizeof(inet6) - 1);
    http_expect(fd, get, &answer, 403);
    http_expect(fd, purge, &answer, 404);
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(a_header_may_come_in_pieces_and_with_a_request)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    char all[sizeof(inet) + sizeof(request)];
    int fd;

    set(&front_options.origin, "/=http://origin.test");
    begin();
    fd = http_connect_proxied();
    for (size_t i = 0; i < sizeof(inet) - 1; i++) {
        ck_assert(peer_write(fd, inet + i, 1));
        usleep(1000);
    }
    ck_assert(http_send(fd, request));
    ck_assert_ptr_nonnull(strstr(await_fetch(URL)->fields, "X-Forwarded-For: 203.0.113.7\r\n"));
    origin_responds(URL, "", BODY_INLINE, "page", 4);
    ck_assert(http_receive(fd, &answer, false));
    close(fd);
    memcpy(all, inet, sizeof(inet) - 1);
    memcpy(all + sizeof(inet) - 1, request, sizeof(request) - 1);
    /* Also with the first byte alone. */
    for (unsigned first = 0; first < 2; first++) {
        fd = http_connect_proxied();
        if (first) {
            ck_assert(peer_write(fd, all, 1));
            usleep(20000);
        }
        ck_assert(peer_write(fd, all + first, sizeof(inet) + sizeof(request) - 2 - first));
        expect_forwarded(fd, "X-Forwarded-For: 203.0.113.7\r\n");
        close(fd);
    }
    front_server_stop();
}
END_TEST

START_TEST(connections_without_a_header_are_closed)
{
    static const char *const others[] = {
        "GET " URL " HTTP/1.1\r\nHost: x\r\n\r\n",
        "PROXY TCP4 203.0.113.7 10.0.0.1 54321\r\nGET " URL " HTTP/1.1\r\nHost: x\r\n\r\n",
        "\r\nGET " URL " HTTP/1.1\r\nHost: x\r\n\r\n",
    };
    static const char long_one[] = SIGNATURE "\x20\0\xff\xff";
    int fd;

    begin();
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        expect_closed(open_with(others[i], strlen(others[i])));
    expect_closed(open_with(long_one, sizeof(long_one) - 1));
    /* A second one is a request that is none, and so is one where none is expected. */
    fd = open_with(local, sizeof(local) - 1);
    ck_assert(peer_write(fd, inet, sizeof(inet) - 1));
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 400);
    close(fd);
    fd = http_connect();
    ck_assert(peer_write(fd, inet, sizeof(inet) - 1));
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 400);
    close(fd);
    ck_assert_uint_eq(scene_fetches(), 0);
    front_server_stop();
}
END_TEST

START_TEST(only_load_balancers_may_send_a_header)
{
    set(&front_options.proxy_protocol_net, "10.0.0.0/8");
    begin();
    expect_closed(open_with(local, sizeof(local) - 1));
    front_server_stop();
    set(&front_options.proxy_protocol_net, "127.0.0.0/8");
    begin();
    http_expect(open_with(local, sizeof(local) - 1), "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
                &answer, 204);
    front_server_stop();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: PROXY protocol");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, the_client_is_that_of_the_header);
    tcase_add_test(tests, networks_of_clients_mean_the_client);
    tcase_add_test(tests, a_header_may_come_in_pieces_and_with_a_request);
    tcase_add_test(tests, connections_without_a_header_are_closed);
    tcase_add_test(tests, only_load_balancers_may_send_a_header);
    suite_add_tcase(suite, tests);
    return suite;
}
