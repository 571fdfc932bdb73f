/*
 * Bodies that are read piece by piece, with each allocation failing in turn: every call is
 * answered, or the connection ends; nothing that has been sent is wrong, and nothing stays behind.
 */
#include <errno.h>
#include <event2/event.h>

#include "net/connection.h"
#include "rpc/protocol.h"
#include "server/rpc/cursor.h"
#include "tests/unit/net/stream.h"
#include "tests/unit/proxy/scene.h"
#include "tests/unit/rpc/messages.h"
#include "tests/unit/server/rpc/coded.h"
#include "tests/unit/server/front_config.h"
#include "tests/unit/torture.h"

void proxy_fetchprog_2(struct svc_req *request, SVCXPRT *transport);

#define URL "http://host/large"
#define MOVED "http://host/moved" /* leads there */

enum { LENGTH = (int)(2 * PROXY_MAX_PIECE) };

static struct service service;
static struct options options;
static struct cursors cursors;
static int fd; /* the client's end */

/* What came of a conversation. */
static unsigned answers, errors, pieces;
static bool broken;

static void
set_up_service(void)
{
    static const struct rpc_program program = {PROXY_FETCHPROG, PROXY_VERS2, proxy_fetchprog_2};
    struct rpc_limits limits = RPC_LIMITS_DEFAULT;

    options = (struct options){.max_redirects = 1};
    scene_begin(&(struct scene_options){.max_page = 4096});
    scene.now_us = clock_monotonic_us();
    service = (struct service){
        .magic = SERVICE_MAGIC,
        .options = &options,
        .config = front_make_config(&options),
        .cache = scene.cache,
        .metrics = scene.metrics,
        .workers = 1,
        .cursors = &cursors,
    };
    memory_account_init(&service.memory, UINT64_MAX / 4, NULL);
    ck_assert(proxy_init(&service.proxy, &scene.proxy.config));
    cursors_init(&cursors, 100, 60 * SECOND);
    limits.request_data = FRONT_REQUEST_DATA;
    limits.net.memory = &service.memory;
    service.rpc = rpc_server_create(&limits, 1, &program, 1, &service);
    ck_assert_ptr_nonnull(service.rpc);
    answers = errors = pieces = 0;
}

static void
tear_down_service(void)
{
    rpc_server_destroy(service.rpc);
    for (unsigned kind = 0; kind < MEMORY_KINDS; kind++)
        ck_assert_uint_eq(memory_used(&service.memory, (enum memory_kind)kind), 0);
    ck_assert_uint_eq(client_share_total(&cursors.places), 0);
    proxy_destroy(&service.proxy);
    config_release(service_config(&service));
    scene_end();
}

static void
turn(void)
{
    struct net_connections *set = net_server_connections(rpc_server_net(service.rpc), 0);

    event_base_loop(set->worker->base, EVLOOP_NONBLOCK);
    net_connections_settle(set);
}

static bool
adopt(int end)
{
    struct net_peer peer = {
        .address = {.ss_family = AF_UNIX}, .address_len = 2, .has_uid = true, .uid = geteuid()};
    struct net_connections *set = net_server_connections(rpc_server_net(service.rpc), 0);
    struct net_connection *c =
        net_connection_create(set, end, &peer, &rpc_protocol, rpc_server_service(service.rpc));

    if (!c)
        return false;
    c->client = client_retain(unit_client(0));
    atomic_fetch_add(&set->count, 1);
    net_connection_adopt(c);
    return true;
}

/* ---- the client ------------------------------------------------------------------------------ */

/* Its memory is not that of the heap, where allocations fail. */
static char record[PROXY_MAX_PIECE + 65536];
static size_t record_len;

static void
send_call(uint32_t xid, uint32_t procedure, xdrproc_t encode, void *args)
{
    const uint32_t words[] = {0, xid, CALL, 2, PROXY_FETCHPROG, PROXY_VERS2, procedure, 0, 0, 0, 0};
    char call[1024];
    XDR xdr;

    xdrmem_create(&xdr, call, sizeof(call), XDR_ENCODE);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        u_int word = words[i];

        REQUIRE(xdr_u_int(&xdr, &word));
    }
    REQUIRE(encode(&xdr, args, 0));
    *(uint32_t *)(void *)call = htonl(0x80000000u | (XDR_GETPOS(&xdr) - 4));
    (void)send(fd, call, XDR_GETPOS(&xdr), MSG_NOSIGNAL);
}

/* Receives a whole reply, with the origin at work; false when the connection has ended. */
static bool
receive(void (*origin)(void))
{
    size_t need = 4;

    record_len = 0;
    for (unsigned idle = 0; record_len < need && idle < 2000; idle++) {
        ssize_t n;

        turn();
        origin();
        turn();
        n = recv(fd, record + record_len, sizeof(record) - record_len, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return false;
        if (n > 0) {
            record_len += (size_t)n;
            idle = 0;
        }
        if (record_len >= 4)
            need = 4 + (ntohl(*(uint32_t *)(void *)record) & 0x7fffffff);
    }
    REQUIRE(record_len == need);
    answers++;
    return true;
}

static uint32_t
word(size_t i)
{
    return ntohl(((const uint32_t *)(const void *)record)[i]);
}

/* ---- the origin ------------------------------------------------------------------------------ */

static struct scene_fetch *fetch;
static bool paused;

/* The body as it is sent, and its coding. */
static char sent[LENGTH + 65536];
static size_t sent_len;
static const char *lines;

static void
code(enum coding coding)
{
    static char text[LENGTH];

    scene_bytes(text, 0, LENGTH);
    sent_len = code_text(coding, text, LENGTH, sent, sizeof(sent));
    lines = coding == CODING_IDENTITY ? "" : "Content-Encoding: gzip\r\n";
}

static enum fetch_flow
send_body(uint64_t from)
{
    size_t len = sent_len - from < 65536 ? sent_len - (size_t)from : 65536;

    return fetch->sink->body(fetch->context, sent + from, len);
}

static void
play_origin(void)
{
    const struct cache_fill *fill;
    enum fetch_flow flow;

    if (!fetch && (fetch = scene_find(MOVED))) {
        const char *moved = "Location: large\r\n";

        scene_response_of(fetch, 302, moved);
        flow = scene_head(fetch, 302, moved, 0);
        scene_done(fetch, flow == FETCH_ABORT ? FETCH_INTERNAL : FETCH_OK, "");
        fetch = NULL;
    }
    if (!fetch) {
        fetch = scene_find(URL);
        if (!fetch)
            return;
        paused = false;
        scene_response(fetch, lines, false);
        if (scene_head(fetch, 200, lines, (int64_t)sent_len) == FETCH_ABORT) {
            scene_done(fetch, FETCH_INTERNAL, "");
            fetch = NULL;
            return;
        }
    }
    fill = fetch->given_context;
    if (paused && fetch->resumes == 0 && !fetch->cancelled)
        return;
    fetch->resumes = 0;
    flow = fetch->cancelled ? FETCH_ABORT : send_body(object_length(fill->object));
    paused = flow == FETCH_PAUSE;
    if (flow != FETCH_ABORT && object_length(fill->object) < sent_len)
        return;
    scene_done(fetch, flow == FETCH_ABORT ? FETCH_INTERNAL : FETCH_OK, "");
    fetch = NULL;
}

/* ---- conversations --------------------------------------------------------------------------- */

/* Reads the body to its end, or to an error. The replies are taken apart by their words. */
static void
read_all(const char *url)
{
    proxy_fetch_args get = {.url = {(u_int)strlen(url), (char *)(uintptr_t)url}};
    proxy_read_args read = {.count = PROXY_MAX_PIECE};
    const char *at;
    uint32_t len;

    send_call(1, PROXY_GET, (xdrproc_t)xdr_proxy_fetch_args, &get);
    if (!receive(play_origin))
        return;
    /* mark, xid, REPLY, accepted, verifier, SUCCESS; then status, http status, ... */
    if (word(6) != SUCCESS || word(7) != PROXY_OK) {
        errors++;
        return;
    }
    /* ..., source, age, total_us, ending (5), URL, headers; a rest of 7 words; the body. */
    at = record + 4 * (9 + 1 + 1 + 2 + 5);
    for (unsigned i = 0; i < 2; i++)
        at += 4 + (ntohl(*(const uint32_t *)(const void *)at) + 3) / 4 * 4;
    broken |= ntohl(*(const uint32_t *)(const void *)at) != 1;
    memcpy(read.object, at + 4, sizeof(read.object));
    len = ntohl(*(const uint32_t *)(const void *)(at + 28));
    broken |= len != PROXY_MAX_PIECE || !scene_has_bytes(at + 32, 0, len);
    for (read.offset = len; read.offset < LENGTH; read.offset += len) {
        send_call(2, PROXY_READ, (xdrproc_t)xdr_proxy_read_args, &read);
        if (!receive(play_origin))
            return;
        if (word(6) != SUCCESS || word(7) != PROXY_OK) {
            errors++;
            return;
        }
        /* length (2); the ending if it is there (5 words); the bytes. */
        at = record + 4 * (10 + 1 + (word(10) ? 5 : 0));
        len = ntohl(*(const uint32_t *)(const void *)at);
        broken |= !scene_has_bytes(at + 4, read.offset, len);
        pieces++;
    }
}

/* False if the conversation has fewer than n allocations. */
static bool
converse(unsigned n, const char *url)
{
    bool failed;
    int fds[2];

    set_up_service();
    fetch = NULL;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    fd = fds[1];
    torture_fail_at(n);
    if (adopt(fds[0]))
        read_all(url);
    else
        close(fds[0]);
    failed = torture_failed();
    torture_fail_at(0);
    ck_assert_msg(!broken, "wrong bytes with allocation %u failing", n);
    if (!failed) {
        ck_assert_uint_eq(errors, 0);
        ck_assert_uint_ge(pieces, 1);
    }
    close(fds[1]);
    for (unsigned i = 0; i < 100; i++) {
        turn();
        play_origin();
    }
    tear_down_service();
    return failed;
}

/* `_i`: the body is coded, and behind a redirect. */
START_TEST(reading_to_the_end)
{
    unsigned seams = 0;

    code(_i & 1 ? CODING_GZIP : CODING_IDENTITY);
    while (converse(seams + 1, _i & 2 ? MOVED : URL))
        seams++;
    ck_assert_uint_ge(seams, 15);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: torture of cursors");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, reading_to_the_end, 0, 4);
    suite_add_tcase(suite, tests);
    return suite;
}
