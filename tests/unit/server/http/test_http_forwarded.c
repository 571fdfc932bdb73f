/* Clients, schemes and hosts that trusted proxies state (--trust-forwarded). */
#include "http/forwarded.h"
#include "net/admission.h"
#include "net/connection.h"
#include "tests/unit/net/stream.h"
#include "tests/unit/server/front_server.h"

#define URL "http://origin.test/"
#define F "X-Forwarded-For: "
#define P "X-Forwarded-Proto: "
#define H "X-Forwarded-Host: "

static struct http_answer answer;

static char loopback[] = "127.0.0.1/32", inner[] = "10.0.0.0/8", local[] = "unix",
            row[] = "/=http://origin.test", clients[] = "203.0.113.0/24";
static char *const trusted[] = {loopback, inner, local, NULL};

static void
set(struct option_list *list, char *const *items, size_t count)
{
    *list = (struct option_list){.items = (char **)(uintptr_t)items, .count = count};
}

static void
set_one(struct option_list *list, char *item)
{
    static char *items[4][2];
    static unsigned used;
    char **one = items[used++ % 4];

    one[0] = item;
    set(list, one, 1);
}

static void
begin(enum http_way_field field, bool reverse)
{
    set(&front_options.trust_forwarded, trusted, 3);
    front_options.forwarded_field = field;
    if (reverse)
        set_one(&front_options.origin, row);
    front_server_start(&(struct scene_options){.capacity_pages = 10}, VICTIMS_ADMIN);
}

/* A GET with these field lines. The origin gets the lines of `wanted`, and none of `unwanted`. */
static void
expect_forwarded(int fd, const char *lines, const char *const *wanted, const char *unwanted)
{
    struct scene_fetch *fetch;
    char request[1000];

    snprintf(request, sizeof(request),
             "GET / HTTP/1.1\r\nHost: b.example\r\nCache-Control: no-cache\r\n%s\r\n", lines);
    ck_assert(http_send(fd, request));
    fetch = await_fetch(URL);
    for (; *wanted; wanted++)
        ck_assert_msg(strstr(fetch->fields, *wanted), "%s: %s", lines, fetch->fields);
    ck_assert_msg(!strstr(fetch->fields, unwanted), "%s: %s", lines, fetch->fields);
    origin_responds(URL, "Cache-Control: no-store\r\n", BODY_INLINE, "page", 4);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 200);
}

#define WANTED(...) ((const char *const[]){__VA_ARGS__, NULL})

START_TEST(the_origin_is_told_what_trusted_proxies_state)
{
    int fd;

    begin(HTTP_WAY_X, true);
    fd = http_connect();
    expect_forwarded(fd, F "6.6.6.6, 203.0.113.7\r\n" P "https\r\nForwarded: for=1.2.3.4\r\n",
                     WANTED(F "6.6.6.6, 203.0.113.7, 127.0.0.1\r\n", P "https\r\n"), "1.2.3.4");
    /* Each request of the connection for itself. */
    expect_forwarded(fd, "", WANTED(F "127.0.0.1\r\n", P "http\r\n"), "203.0.113.7");
    close(fd);
    front_server_stop();

    begin(HTTP_WAY_FORWARDED, true);
    fd = http_connect();
    expect_forwarded(fd, "Forwarded: for=203.0.113.7;proto=https\r\n" F "6.6.6.6\r\n",
                     WANTED("Forwarded: for=203.0.113.7;proto=https, "
                            "for=127.0.0.1;host=\"b.example\"\r\n",
                            F "203.0.113.7\r\n", P "https\r\n"),
                     "6.6.6.6");
    close(fd);
    front_server_stop();
}
END_TEST

/* A proxy that appends to Forwarded need not state scheme and host. Those that a client has put in
 * front are not in the key, so the origin must not see them. */
START_TEST(members_of_clients_do_not_reach_the_origin)
{
    static const char *const lines[] = {
        "Forwarded: for=6.6.6.6;proto=https;host=c.example, for=203.0.113.7\r\n",
        "Forwarded: host=c.example;x=\"\r\nForwarded: for=203.0.113.7\r\n",
        "Forwarded: host=c.example\r\nForwarded: for=203.0.113.7, for=10.0.0.2\r\n",
    };
    int fd;

    begin(HTTP_WAY_FORWARDED, true);
    fd = http_connect();
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        expect_forwarded(fd, lines[i],
                         WANTED("\nForwarded: for=203.0.113.7, ",
                                "for=127.0.0.1;proto=http;host=\"b.example\"\r\n"),
                         "c.example");
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(what_others_state_is_replaced)
{
    int fd;

    front_options.forwarded_field = HTTP_WAY_X;
    set_one(&front_options.trust_forwarded, inner);
    set_one(&front_options.origin, row);
    front_server_start(&(struct scene_options){0}, VICTIMS_ADMIN);
    fd = http_connect();
    expect_forwarded(fd, F "203.0.113.7\r\n" P "https\r\n" H "c.example\r\n",
                     WANTED(F "127.0.0.1\r\n", P "http\r\n"), "203.0.113.7");
    /* Malformed values are those of a client, too. */
    expect_forwarded(fd, F "?\r\n", WANTED(F "127.0.0.1\r\n"), "?");
    close(fd);
    fd = http_connect_local();
    expect_forwarded(fd, F "203.0.113.7\r\n", WANTED(F "unix\r\n"), "203.0.113.7");
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(a_trusted_peer_of_the_socket)
{
    int fd;

    begin(HTTP_WAY_X, true);
    fd = http_connect_local();
    expect_forwarded(fd, F "203.0.113.7\r\n" P "https\r\n",
                     WANTED(F "203.0.113.7, unix\r\n", P "https\r\n"), "Forwarded:");
    close(fd);
    front_server_stop();
}
END_TEST

/* The connection persists behind it: the next request may be another client's. */
START_TEST(malformed_values_are_refused)
{
    static const char *const lines[] = {F "?", P "ftp", H "a b"};
    int fd;

    begin(HTTP_WAY_X, true);
    fd = http_connect();
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        char request[200];

        snprintf(request, sizeof(request), "GET / HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", lines[i]);
        http_expect(fd, request, &answer, 400);
    }
    expect_forwarded(fd, F "203.0.113.7\r\n", WANTED(F "203.0.113.7, 127.0.0.1\r\n"), "?");
    close(fd);
    front_server_stop();
}
END_TEST

#define GET(lines) "GET " URL " HTTP/1.1\r\nHost: x\r\n" lines "\r\n"
#define PURGE(lines) "PURGE " URL " HTTP/1.1\r\nHost: x\r\n" lines "\r\n"

/* --client-net and --purge-net mean the client that is stated, and so does an administrator. */
START_TEST(networks_of_clients_mean_the_client)
{
    int fd;

    begin(HTTP_WAY_X, false);
    fd = http_connect();
    http_expect(fd, GET(F "203.0.113.7\r\n"), &answer, 403);
    ck_assert(http_send(fd, GET(F "203.0.113.7, unknown\r\n")));
    origin_responds(URL, "", BODY_INLINE, "page", 4);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 200);
    close(fd);
    /* Of an administrator's connection. */
    fd = http_connect_local();
    http_expect(fd, PURGE(F "203.0.113.7\r\n"), &answer, 403);
    http_expect(fd, GET(F "203.0.113.7\r\n"), &answer, 403);
    http_expect(fd, PURGE(""), &answer, 404);
    close(fd);
    front_server_stop();

    set_one(&front_options.client_net, clients);
    set_one(&front_options.purge_net, clients);
    begin(HTTP_WAY_X, false);
    fd = http_connect();
    ck_assert(http_send(fd, GET(F "203.0.113.7\r\n")));
    origin_responds(URL, "", BODY_INLINE, "page", 4);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 200);
    http_expect(fd, PURGE(F "203.0.113.7\r\n"), &answer, 404);
    http_expect(fd, PURGE(F "198.51.100.1\r\n"), &answer, 403);
    http_expect(fd, GET(""), &answer, 403);
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(fetches_count_to_the_client)
{
    struct net_connections *set;
    struct client *client;
    struct sockaddr_in address = {.sin_family = AF_INET};
    struct scene_fetch *fetch;
    int fd;

    inet_pton(AF_INET, "203.0.113.7", &address.sin_addr);
    begin(HTTP_WAY_X, true);
    fd = http_connect();
    ck_assert(http_send(fd, "GET / HTTP/1.1\r\nHost: x\r\n" F "203.0.113.7\r\n\r\n"));
    fetch = await_fetch(URL);
    set = net_server_connections(rpc_server_net(front_service.rpc), 0);
    client = clients_find(net_admission_clients(set->admission),
                          (const struct sockaddr *)&address, clock_monotonic_us());
    ck_assert_ptr_eq(fetch->client, client);
    client_release(&client);
    origin_responds(URL, "", BODY_INLINE, "page", 4);
    ck_assert(http_receive(fd, &answer, false));
    close(fd);
    front_server_stop();
}
END_TEST

/* A row for a host takes the one that is stated. */
START_TEST(a_stated_host_counts)
{
    static char named[] = "a.example/=http://origin.test";
    int fd;

    front_options.forwarded_field = HTTP_WAY_X;
    set(&front_options.trust_forwarded, trusted, 3);
    set_one(&front_options.origin, named);
    front_server_start(&(struct scene_options){0}, VICTIMS_ADMIN);
    fd = http_connect();
    http_expect(fd, "GET / HTTP/1.1\r\nHost: b.example\r\n\r\n", &answer, 421);
    expect_forwarded(fd, H "a.example\r\n", WANTED(H "a.example\r\n"), "b.example");
    http_expect(fd, "GET / HTTP/1.1\r\nHost: a.example\r\n" H "b.example\r\n\r\n", &answer, 421);
    close(fd);
    front_server_stop();
}
END_TEST

/* What an origin is told is in the key: a page for http is not one for https. */
START_TEST(the_scheme_is_keyed)
{
    static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n" P "http\r\n\r\n",
                      https[] = "GET / HTTP/1.1\r\nHost: x\r\n" P "https\r\n\r\n";
    int fd;

    begin(HTTP_WAY_X, true);
    fd = http_connect();
    ck_assert(http_send(fd, http));
    origin_responds(URL, MAX_AGE, BODY_INLINE, "to https", 8);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert(http_send(fd, https));
    origin_responds(URL, MAX_AGE, BODY_INLINE, "page", 4);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_str_eq(answer.body, "page");
    ck_assert(http_send(fd, http));
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_str_eq(answer.body, "to https");
    ck_assert(http_has_start(&answer, "Cache-Status: sunproxy; hit"));
    ck_assert(http_send(fd, https));
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_str_eq(answer.body, "page");
    ck_assert(http_has_start(&answer, "Cache-Status: sunproxy; hit"));
    close(fd);
    front_server_stop();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: forwarded requests");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, the_origin_is_told_what_trusted_proxies_state);
    tcase_add_test(tests, members_of_clients_do_not_reach_the_origin);
    tcase_add_test(tests, what_others_state_is_replaced);
    tcase_add_test(tests, a_trusted_peer_of_the_socket);
    tcase_add_test(tests, malformed_values_are_refused);
    tcase_add_test(tests, networks_of_clients_mean_the_client);
    tcase_add_test(tests, fetches_count_to_the_client);
    tcase_add_test(tests, a_stated_host_counts);
    tcase_add_test(tests, the_scheme_is_keyed);
    suite_add_tcase(suite, tests);
    return suite;
}
