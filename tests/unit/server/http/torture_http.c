/*
 * The HTTP front with its allocations failing one after the other. Allocations fail on the thread
 * that asked for it, so that the worker's loop runs here, in turns with a peer on the other end of
 * a socket pair and with the origin.
 */
#include "net/connection.h"
#include "net/protocol.h"
#include "server/http/http_origins.h"
#include "server/http/http_service.h"
#include "server/logs/origin_report.h"
#include "tests/unit/net/stream.h"
#include "tests/unit/proxy/scene.h"
#include "tests/unit/server/front_config.h"
#include "tests/unit/server/users/made_hash.h"
#include "tests/unit/torture.h"

#define URL "http://origin.test/"

static struct service service;
static struct options options;
static struct http_service http;
static struct net_server *net;

struct conversation {
    const char *header; /* of the PROXY protocol, PROXY_HEADER bytes; NULL: none */
    const char *text;
    bool users;        /* a forward proxy that asks for them */
    char *origin;      /* row of --origin; NULL: a forward proxy */
    unsigned all;      /* final responses at most */
    unsigned good;     /* with status 200, if nothing fails */
    const char *whole; /* in what comes then */
};

static char origin_row[] = "/=http://a.test";

#define PROXY_HEADER 28

#define ASK_UPGRADE                                        \
    "Connection: close, Upgrade\r\nUpgrade: websocket\r\n" \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
#define AGREE                                                              \
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " \
    "websocket\r\n\r\n"

static const struct conversation tunnel = {
    .text = "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\nbye",
    .all = 1,
    .good = 1,
    .whole = "\r\n\r\nfar",
};

static const struct conversation upgrade = {
    .text = "GET /chat HTTP/1.1\r\nHost: x\r\n" ASK_UPGRADE "bye",
    .origin = origin_row,
    .all = 1,
    .whole = "\r\n\r\nframefar",
};

/* Stored field lines: Age between them makes more runs than are sent by reference, so they are
 * copied. */
#define LINE "X: y\r\nAge: 0\r\n"
#define STORED \
    "Cache-Control: max-age=60\r\n" LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE "Last: z\r\n"

static int far = -1; /* the other end of the socket from the fetcher */

static const char requests_text[] =
    "GET " URL "stored HTTP/1.1\r\nHost: x\r\n\r\n"
    "GET " URL "stored HTTP/1.1\r\nHost: x\r\nX: a long line of a head that comes in parts\r\n\r\n"
    "POST " URL "post HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n"
    "\r\n5\r\nhello\r\n0\r\n\r\n"
    "GET " URL "streamed HTTP/1.1\r\nHost: x\r\n\r\n"
    "PURGE " URL "stored HTTP/1.1\r\nHost: x\r\n\r\n"
    "GET " URL "last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

static const struct conversation requests = {
    .text = requests_text,
    .all = 6,
    .good = 6,
    .whole = "200 OK",
};

/* Sent in one piece: once its fetch has begun it is answered, whatever fails then. */
static const struct conversation miss = {
    .text = "GET " URL " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    .all = 1,
    .good = 1,
    .whole = "200 OK",
};

/* Behind a load balancer. */
static const struct conversation proxied = {
    .header = "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb\0\x71\x07\x0a\0\0\x01\xd4\x31\x01\xbb",
    .text = "GET /page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    .origin = origin_row,
    .all = 1,
    .good = 1,
    .whole = "200 OK",
};

/* Of a client that a trusted proxy states, and with a head that is written anew. */
static const struct conversation forwarded = {
    .text = "GET /\xc3\xa4 HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.7\r\n"
            "X-Forwarded-Proto: https\r\nX-Forwarded-Host: y\r\nCookie: a\r\n"
            "Connection: close, Cookie\r\n\r\n",
    .origin = origin_row,
    .all = 1,
    .good = 1,
    .whole = "200 OK",
};

/* Of users of a forward proxy: "a" has the password "p". */
#define GOOD_USER "Proxy-Authorization: Basic YTpw\r\n"
static const struct conversation asked = {
    .text = "POST " URL "post HTTP/1.1\r\nHost: x\r\n" GOOD_USER
            "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
            "GET " URL "stored HTTP/1.1\r\nHost: x\r\n" GOOD_USER "\r\n"
            "GET " URL "stored HTTP/1.1\r\nHost: x\r\n\r\n"
            "GET " URL "last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" GOOD_USER "\r\n",
    .users = true,
    .all = 4,
    .good = 3,
    .whole = "407 Proxy Authentication Required",
};

static const struct conversation asked_tunnel = {
    .text = "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n" GOOD_USER "\r\nbye",
    .users = true,
    .all = 1,
    .good = 1,
    .whole = "\r\n\r\nfar",
};

static void
set_up_users(void)
{
    const struct users_config config = {.timeout_us = 60 * SECOND, .ttl_us = 60 * SECOND};
    char hash[CRYPT_OUTPUT_SIZE];
    struct buf text;

    buf_init(&text, 4096);
    buf_printf(&text, "a:%s\n", make_quick_hash(hash, "p"));
    service.users = users_create(&config);
    ck_assert_ptr_nonnull(service.users);
    service_config(&service)->users = user_file_read(buf_span(&text), "f", &text);
    ck_assert_ptr_nonnull(service_config(&service)->users);
    buf_free(&text);
}

static void
set_up_service(const struct conversation *conversation)
{
    static char local[] = "unix", *rows[2], *trusted[] = {local, NULL};
    const struct net_limits limits = NET_LIMITS_DEFAULT;

    rows[0] = conversation->origin;
    options = (struct options){.max_tunnels = 10};
    options.origin = (struct option_list){.items = rows, .count = rows[0] != NULL};
    options.trust_forwarded = (struct option_list){.items = trusted, .count = 1};
    options.forwarded_field = HTTP_WAY_X;
    options.users = conversation->users ? local : NULL;
    options.auth_realm = local;
    scene_begin(&(struct scene_options){0});
    scene.now_us = clock_monotonic_us();
    service = (struct service){
        .magic = SERVICE_MAGIC,
        .options = &options,
        .cache = scene.cache,
        .metrics = scene.metrics,
        .workers = 1,
        .report = origin_report_create(),
        .config = front_make_config(&options),
    };
    ck_assert_ptr_nonnull(service.report);
    memory_account_init(&service.memory, UINT64_MAX / 4, NULL);
    ck_assert(proxy_init(&service.proxy, &scene.proxy.config));
    ck_assert(http_service_init(&http, &service, 10));
    net = net_server_create(&limits, 1);
    ck_assert_ptr_nonnull(net);
    if (conversation->users)
        set_up_users();
}

static void
tear_down_service(void)
{
    net_server_destroy(net);
    http_service_free(&http);
    users_destroy(service.users);
    config_release(service_config(&service));
    origin_report_destroy(service.report);
    for (unsigned kind = 0; kind < MEMORY_KINDS; kind++)
        ck_assert_uint_eq(memory_used(&service.memory, (enum memory_kind)kind), 0);
    proxy_destroy(&service.proxy);
    scene_end();
    options = (struct options){0};
}

static void
turn(void)
{
    struct net_connections *set = net_server_connections(net, 0);

    event_base_loop(set->worker->base, EVLOOP_NONBLOCK);
    net_connections_settle(set);
}

static void
connect_far(struct scene_fetch *fetch)
{
    int fds[2];

    ck_assert_int_eq(far, -1);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    far = fds[1];
    fetch->sink->connected(fetch->context, fds[0]);
    scene_done(fetch, FETCH_OK, "");
}

/* The origin behind a tunnel agrees to an upgrade, and ends when it gets a "bye". */
static void
play_far(void)
{
    char bytes[1024];
    ssize_t n = far < 0 ? -1 : recv(far, bytes, sizeof(bytes), 0);

    if (n > 0 && memmem(bytes, (size_t)n, "GET ", 4))
        (void)send(far, AGREE "frame", sizeof(AGREE "frame") - 1, MSG_NOSIGNAL);
    if (n > 0 && memmem(bytes, (size_t)n, "bye", 3))
        (void)send(far, "far", 3, MSG_NOSIGNAL);
    else if (n != 0)
        return;
    close(far);
    far = -1;
}

/* The origin takes what there is of a body, and responds to everything. */
static void
respond(void)
{
    struct scene_fetch *fetch;

    while ((fetch = scene_find(NULL))) {
        const char *lines = strstr(fetch->url, "stored") ? STORED : "";
        enum fetch_supply supply = FETCH_SUPPLY_END;
        char bytes[64];
        size_t len;

        if (fetch->flags & REQUEST_CONNECT_ONLY) {
            connect_far(fetch);
            continue;
        }
        if (fetch->body.kind == REQUEST_BODY_SUPPLIED)
            while ((supply = scene_supply(fetch, bytes, sizeof(bytes), &len)) == FETCH_SUPPLIED)
                ;
        if (supply == FETCH_SUPPLY_LATER)
            return;
        if (supply == FETCH_SUPPLY_FAILED) {
            scene_done(fetch, FETCH_BODY_FAILED, "no body");
            continue;
        }
        scene_response(fetch, lines, false);
        if (scene_head(fetch, 200, lines, -1) == FETCH_ABORT ||
            scene_body(fetch, 1000) == FETCH_ABORT) {
            scene_done(fetch, FETCH_INTERNAL, "");
            continue;
        }
        turn();
        if (scene_body(fetch, 30000) == FETCH_ABORT)
            scene_done(fetch, FETCH_INTERNAL, "");
        else
            scene_done(fetch, FETCH_OK, "");
    }
}

static struct net_connection *
adopt(int fd, const struct net_protocol *protocol, bool over_tcp)
{
    struct net_peer peer = {
        .address = {.ss_family = AF_UNIX}, .address_len = 2, .has_uid = true, .uid = geteuid()};
    struct net_connections *set = net_server_connections(net, 0);
    struct net_connection *c;

    if (over_tcp) {
        struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};

        memcpy(&peer.address, &loopback, sizeof(loopback));
        peer.has_uid = false;
    }
    peer.for_others = protocol->for_others(&http, &peer);
    c = net_connection_create(set, fd, &peer, protocol, &http);

    if (!c)
        return NULL;
    c->client = client_retain(unit_client(0));
    atomic_fetch_add(&set->count, 1);
    net_connection_adopt(c);
    return c;
}

/* The final responses in what came, and those with status 200. */
static void
count_responses(char *text, unsigned *all, unsigned *good)
{
    *all = *good = 0;
    for (char *at = text; (at = strstr(at, "HTTP/1.1 ")); at++) {
        *all += at[9] != '1';
        *good += strncmp(at + 9, "200", 3) == 0;
    }
}

static unsigned
count_of(const char *text, const char *line)
{
    unsigned count = 0;

    while ((text = strstr(text, line))) {
        count++;
        text++;
    }
    return count;
}

/* In two parts. */
static void
send_header(int fd, const char *header)
{
    enum { FIRST = 7 };

    if (!header)
        return;
    ck_assert_int_eq(send(fd, header, FIRST, MSG_NOSIGNAL), FIRST);
    turn();
    (void)send(fd, header + FIRST, PROXY_HEADER - FIRST, MSG_NOSIGNAL);
    turn();
}

/* False if the conversation has fewer than n allocations. */
static bool
converse(const struct conversation *conversation, unsigned n)
{
    static char got[1 << 20];
    size_t sent = 0, len = 0;
    unsigned all, good;
    bool failed, cut = false, begun = false;
    int fds[2];

    set_up_service(conversation);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    torture_fail_at(n);
    if (adopt(fds[0], conversation->header ? &http_proxied_protocol : &http_protocol,
              conversation->users)) {
        send_header(fds[1], conversation->header);
    } else {
        close(fds[0]);
        cut = true;
    }
    for (unsigned i = 0; i < 200 && !cut; i++) {
        size_t left = strlen(conversation->text) - sent, take = left < 100 ? left : 100;
        ssize_t count = take ? send(fds[1], conversation->text + sent, take, MSG_NOSIGNAL) : 0;

        if (count > 0)
            sent += (size_t)count;
        /* Checks are made by a thread of their own. */
        if (conversation->users)
            usleep(1000);
        turn();
        begun = begun || scene_find(NULL);
        respond();
        turn();
        play_far();
        turn();
        while ((count = recv(fds[1], got + len, sizeof(got) - 1 - len, MSG_DONTWAIT)) > 0)
            len += (size_t)count;
        cut = count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    }
    failed = torture_failed();
    torture_fail_at(0);
    ck_assert_msg(cut, "neither answered nor cut off with allocation %u failing", n);
    for (size_t i = 0; i < len; i++)
        if (!got[i])
            got[i] = '.';
    got[len] = '\0';
    count_responses(got, &all, &good);
    ck_assert_uint_le(all, conversation->all);
    /* No field is lost. */
    ck_assert_uint_eq(count_of(got, "X: y\r\n"), 10 * count_of(got, "Last: z\r\n"));
    ck_assert_msg(conversation != &miss || !begun || all == 1,
                  "not answered with allocation %u failing", n);
    if (!failed) {
        ck_assert_uint_eq(good, conversation->good);
        ck_assert_msg(strstr(got, conversation->whole), "%s", got);
    }
    close(fds[1]);
    respond();
    turn();
    while (far >= 0) {
        play_far();
        turn();
    }
    tear_down_service();
    return failed;
}

static unsigned
seams_of(const struct conversation *conversation)
{
    unsigned seams = 0;

    while (converse(conversation, seams + 1))
        seams++;
    return seams;
}

START_TEST(conversations)
{
    ck_assert_uint_ge(seams_of(&requests), 20);
}
END_TEST

START_TEST(a_request_whose_fetch_has_begun_is_answered)
{
    ck_assert_uint_ge(seams_of(&miss), 5);
}
END_TEST

START_TEST(tunnels)
{
    ck_assert_uint_ge(seams_of(&tunnel), 5);
}
END_TEST

START_TEST(upgrades)
{
    ck_assert_uint_ge(seams_of(&upgrade), 7);
}
END_TEST

START_TEST(connections_of_a_load_balancer)
{
    ck_assert_uint_ge(seams_of(&proxied), 8);
}
END_TEST

START_TEST(requests_of_users)
{
    ck_assert_uint_ge(seams_of(&asked), 10);
    ck_assert_uint_ge(seams_of(&asked_tunnel), 5);
}
END_TEST

START_TEST(requests_of_a_trusted_proxy)
{
    ck_assert_uint_ge(seams_of(&forwarded), 8);
}
END_TEST

static void
make(void *context)
{
    (void)context;
    service = (struct service){.options = &options, .workers = 2};
    if (http_service_init(&http, &service, 10))
        http_service_free(&http);
    else
        REQUIRE(torture_failed());
}

START_TEST(making_the_service)
{
    ck_assert_uint_ge(torture_walk(make, NULL), 3);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: torture of HTTP");
    TCase *tcase = tcase_create("all");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, conversations);
    tcase_add_test(tcase, requests_of_users);
    tcase_add_test(tcase, a_request_whose_fetch_has_begun_is_answered);
    tcase_add_test(tcase, tunnels);
    tcase_add_test(tcase, requests_of_a_trusted_proxy);
    tcase_add_test(tcase, upgrades);
    tcase_add_test(tcase, connections_of_a_load_balancer);
    tcase_add_test(tcase, making_the_service);
    suite_add_tcase(suite, tcase);
    return suite;
}
