#include "tests/unit/server/front_server.h"

#include <strings.h>

#include "server/rpc/cursor.h"
#include "server/http/http_service.h"
#include "server/logs/origin_report.h"
#include "tests/unit/rpc/messages.h"

void proxy_fetchprog_1(struct svc_req *request, SVCXPRT *transport);
void proxy_fetchprog_2(struct svc_req *request, SVCXPRT *transport);

enum { WORKERS = 2, STORE_XID = 900000 };

struct service front_service;

struct options front_options;
struct request_db *front_request_db;
int64_t front_cursor_wait_us;

static struct http_service http;
static struct cursors cursors;
static char http_path[64];
static int http_port, http_proxied_port;
static char path[64];
static int port;

/* ---- the server ------------------------------------------------------------------------------ */

static bool
is_privileged(void *context, const struct net_peer *peer)
{
    return service_is_admin(context, peer);
}

static bool
may_call(void *context, const struct net_peer *peer)
{
    return service_is_client(context, peer);
}

static void
start_http(void)
{
    struct net_server *net = rpc_server_net(front_service.rpc);

    ck_assert(http_service_init(&http, &front_service, (uint32_t)front_options.max_tunnels));
    snprintf(http_path, sizeof(http_path), "/tmp/sunproxy-test-http-%d", (int)getpid());
    ck_assert_int_eq(net_server_listen(net, listen_unix(http_path), &http_protocol, &http), 0);
    ck_assert_int_eq(net_server_listen(net, listen_tcp(&http_port), &http_protocol, &http), 0);
    ck_assert_int_eq(
        net_server_listen(net, listen_tcp(&http_proxied_port), &http_proxied_protocol, &http), 0);
}

void
front_server_start(const struct scene_options *options, enum show_victims show_victims)
{
    static const struct rpc_program programs[] = {
        {PROXY_FETCHPROG, PROXY_FETCHVERS, proxy_fetchprog_1},
        {PROXY_FETCHPROG, PROXY_VERS2, proxy_fetchprog_2},
    };
    struct scene_options with_workers = *options;
    struct rpc_limits limits = RPC_LIMITS_DEFAULT;

    with_workers.workers = WORKERS;
    scene_begin(&with_workers);
    /* Arrivals are times of the system's clock. */
    scene.now_us = clock_monotonic_us();
    front_options.show_victims = show_victims;
    front_service = (struct service){
        .magic = SERVICE_MAGIC,
        .options = &front_options,
        .cache = scene.cache,
        .metrics = scene.metrics,
        .workers = WORKERS,
        .request_db = front_request_db,
        .logs = front_request_db != NULL,
        .has_proxy = true,
        .report = origin_report_create(),
        .config = front_make_config(&front_options),
    };
    ck_assert_ptr_nonnull(front_service.report);
    reload_desk_init(&front_service.desk);
    memory_account_init(&front_service.memory, UINT64_MAX / 4, NULL);
    ck_assert(proxy_init(&front_service.proxy, &scene.proxy.config));
    cursors_init(&cursors, front_options.max_cursors ? front_options.max_cursors : 1000,
                 front_options.cursor_timeout ? front_options.cursor_timeout : 60 * SECOND);
    if (front_cursor_wait_us)
        cursors.wait_us = front_cursor_wait_us;
    front_service.cursors = &cursors;
    limits.request_data = FRONT_REQUEST_DATA;
    limits.net.memory = &scene.account;
    limits.net.is_privileged = is_privileged;
    limits.may_call = may_call;
    limits.net.rates.fetches = front_options.rate_fetches;
    front_service.rpc = rpc_server_create(&limits, WORKERS, programs, 2, &front_service);
    ck_assert_ptr_nonnull(front_service.rpc);
    snprintf(path, sizeof(path), "/tmp/sunproxy-test-fronts-%d", (int)getpid());
    ck_assert_int_eq(rpc_server_listen(front_service.rpc, listen_unix(path)), 0);
    ck_assert_int_eq(rpc_server_listen(front_service.rpc, listen_tcp(&port)), 0);
    start_http();
    ck_assert_int_eq(rpc_server_start(front_service.rpc), 0);
}

unsigned
front_server_halt(int64_t timeout_us)
{
    return rpc_server_stop(front_service.rpc, timeout_us);
}

void
front_server_free(void)
{
    rpc_server_destroy(front_service.rpc);
    http_service_free(&http);
    origin_report_destroy(front_service.report);
    config_release(service_config(&front_service));
    ck_assert_uint_eq(client_share_total(&cursors.places), 0);
    unlink(path);
    unlink(http_path);
    front_options = (struct options){0};
    for (unsigned kind = 0; kind < MEMORY_KINDS; kind++)
        ck_assert_uint_eq(memory_used(&front_service.memory, (enum memory_kind)kind), 0);
    ck_assert_uint_eq(client_share_total(&front_service.proxy.waiting), 0);
    ck_assert_uint_eq(memory_used(&scene.account, MEMORY_REPLIES), 0);
    proxy_destroy(&front_service.proxy);
    scene_end();
}

void
front_server_stop(void)
{
    ck_assert_uint_eq(front_server_halt((int64_t)PATIENCE_MS * 1000), 0);
    front_server_free();
}

/* ---- the peer -------------------------------------------------------------------------------- */

int
front_connect(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    connect_to_path(fd, path);
    return fd;
}

int
front_connect_tcp(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    connect_to_port(fd, port);
    return fd;
}

void
send_fetch(int fd, uint32_t xid, const char *url, size_t len)
{
    static const char padding[4];
    struct buf b;

    buf_init(&b, 1u << 20);
    put_call_to(&b, xid, PROXY_FETCHPROG, PROXY_FETCHVERS, PROXY_FETCH);
    put_word(&b, (uint32_t)len);
    ck_assert(buf_append(&b, url, len));
    ck_assert(buf_append(&b, padding, -len % 4));
    ck_assert(peer_send(fd, &b));
}

void
send_call(int fd, uint32_t xid, uint32_t procedure, xdrproc_t encode, void *args)
{
    char encoded[PROXY_MAX_URL + 1024];
    struct buf b;
    XDR xdr;

    xdrmem_create(&xdr, encoded, sizeof(encoded), XDR_ENCODE);
    ck_assert(encode(&xdr, args, 0));
    buf_init(&b, 1u << 20);
    put_call_to(&b, xid, PROXY_FETCHPROG, PROXY_VERS2, procedure);
    ck_assert(buf_append(&b, encoded, XDR_GETPOS(&xdr)));
    ck_assert(peer_send(fd, &b));
}

void
send_get(int fd, uint32_t xid, const char *url, unsigned flags)
{
    proxy_fetch_args args = {
        .url = {(u_int)strlen(url), (char *)(uintptr_t)url},
        .flags = flags,
    };

    send_call(fd, xid, PROXY_GET, (xdrproc_t)xdr_proxy_fetch_args, &args);
}

void
send_get_with(int fd, uint32_t xid, const char *url, const char *fields)
{
    proxy_fetch_args args = {
        .url = {(u_int)strlen(url), (char *)(uintptr_t)url},
        .headers = {(u_int)strlen(fields), (char *)(uintptr_t)fields},
    };

    send_call(fd, xid, PROXY_GET, (xdrproc_t)xdr_proxy_fetch_args, &args);
}

uint32_t
next_xid(int fd)
{
    uint32_t words[2]; /* the record's mark, and the xid */

    ck_assert_int_eq(recv(fd, words, sizeof(words), MSG_PEEK | MSG_WAITALL), sizeof(words));
    return ntohl(words[1]);
}

enum { REPLY_WORDS = 6 };

static enum accept_stat
receive(int fd, uint32_t xid, struct buf *reply)
{
    ck_assert(peer_receive(fd, reply));
    ck_assert_uint_eq(get_word(reply, 0), xid);
    ck_assert_uint_eq(get_word(reply, 1), REPLY);
    ck_assert_uint_eq(get_word(reply, 2), MSG_ACCEPTED);
    return (enum accept_stat)get_word(reply, 5);
}

enum accept_stat
receive_status(int fd, uint32_t xid)
{
    struct buf reply;
    enum accept_stat status = receive(fd, xid, &reply);

    buf_free(&reply);
    return status;
}

void
receive_result(int fd, uint32_t xid, xdrproc_t decode, void *result)
{
    const size_t head = REPLY_WORDS * sizeof(uint32_t);
    struct buf reply;
    char *again;
    XDR xdr;

    ck_assert_int_eq(receive(fd, xid, &reply), SUCCESS);
    xdrmem_create(&xdr, reply.data + head, (u_int)(reply.len - head), XDR_DECODE);
    ck_assert(decode(&xdr, result, 0));
    ck_assert_uint_eq(XDR_GETPOS(&xdr), reply.len - head);
    /* Encoded again, it is the same: its padding, too, which decoding skips. */
    again = calloc(1, reply.len);
    ck_assert_ptr_nonnull(again);
    xdrmem_create(&xdr, again, (u_int)(reply.len - head), XDR_ENCODE);
    ck_assert(decode(&xdr, result, 0));
    ck_assert(memcmp(again, reply.data + head, reply.len - head) == 0);
    free(again);
    buf_free(&reply);
}

void
expect_text_1(int fd, uint32_t xid, const char *bytes, size_t len)
{
    webpageResponse result = {.webPageContents = NULL};

    receive_result(fd, xid, (xdrproc_t)xdr_webpageResponse, &result);
    ck_assert_uint_eq(strlen(result.webPageContents), len);
    ck_assert(memcmp(result.webPageContents, bytes, len) == 0);
    xdr_free((xdrproc_t)xdr_webpageResponse, &result);
}

void
receive_page(int fd, uint32_t xid, proxy_status status, proxy_fetch_result *result)
{
    memset(result, 0, sizeof(*result));
    receive_result(fd, xid, (xdrproc_t)xdr_proxy_fetch_result, result);
    ck_assert_msg(result->status == status, "status %d: %s", (int)result->status,
                  result->status == PROXY_OK ? "a page" : result->proxy_fetch_result_u.sentence);
}

void
free_page(proxy_fetch_result *result)
{
    xdr_free((xdrproc_t)xdr_proxy_fetch_result, result);
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

int
http_connect(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    connect_to_port(fd, http_port);
    return fd;
}

int
http_connect_proxied(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    connect_to_port(fd, http_proxied_port);
    return fd;
}

int
http_connect_local(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    connect_to_path(fd, http_path);
    return fd;
}

bool
http_send(int fd, const char *text)
{
    return peer_write(fd, text, strlen(text));
}

bool
http_has(const struct http_answer *answer, const char *line)
{
    char wanted[1024];

    snprintf(wanted, sizeof(wanted), "\r\n%s\r\n", line);
    return strstr(answer->head, wanted) != NULL;
}

bool
http_has_start(const struct http_answer *answer, const char *start)
{
    char wanted[1024];

    snprintf(wanted, sizeof(wanted), "\r\n%s", start);
    return strstr(answer->head, wanted) != NULL;
}

/* The value of a field of the head, or NULL. */
static const char *
field(const struct http_answer *answer, const char *name)
{
    size_t len = strlen(name);
    const char *line = answer->head;

    while ((line = strstr(line, "\r\n"))) {
        line += 2;
        if (strncasecmp(line, name, len) == 0 && line[len] == ':')
            return line + len + 2;
    }
    return NULL;
}

/* Reads through the end of a line, and nothing behind it: so it looks before it reads. */
static bool
read_line(int fd, char *text, size_t size, size_t *len)
{
    size_t begin = *len;
    bool ended = false;

    while (!ended) {
        size_t seen, taken = 0;

        ck_assert_uint_lt(*len, size - 1);
        seen = peer_peek(fd, text + *len, size - 1 - *len);
        if (seen == 0)
            return false;
        while (taken < seen && !ended) {
            const char *at = text + *len + taken++;

            ended = *at == '\n' && at > text + begin && at[-1] == '\r';
        }
        if (!peer_read(fd, text + *len, taken))
            return false;
        *len += taken;
        text[*len] = '\0';
    }
    return true;
}

static bool
read_chunks(int fd, struct http_answer *answer)
{
    for (;;) {
        char line[32];
        size_t len = 0, size;

        if (!read_line(fd, line, sizeof(line), &len))
            return false;
        size = strtoul(line, NULL, 16);
        ck_assert_uint_lt(answer->body_len + size, sizeof(answer->body));
        if (!peer_read(fd, answer->body + answer->body_len, size) || !peer_read(fd, line, 2))
            return false;
        ck_assert(memcmp(line, "\r\n", 2) == 0);
        answer->body_len += size;
        if (size == 0)
            return true;
    }
}

bool
http_receive(int fd, struct http_answer *answer, bool no_body)
{
    const char *length;
    size_t before;
    bool whole = true;

    answer->head_len = answer->body_len = 0;
    answer->until_close = false;
    do {
        before = answer->head_len;
        if (!read_line(fd, answer->head, sizeof(answer->head), &answer->head_len))
            return false;
    } while (answer->head_len - before > 2);
    ck_assert_int_eq(sscanf(answer->head, "HTTP/1.1 %3u ", &answer->status), 1);
    length = field(answer, "Content-Length");
    if (no_body || answer->status < 200 || answer->status == 204 || answer->status == 304) {
        whole = true;
    } else if (http_has(answer, "Transfer-Encoding: chunked")) {
        ck_assert_ptr_null(length);
        whole = read_chunks(fd, answer);
    } else if (length) {
        answer->body_len = strtoul(length, NULL, 10);
        ck_assert_uint_lt(answer->body_len, sizeof(answer->body));
        whole = peer_read(fd, answer->body, answer->body_len);
    } else {
        answer->until_close = true;
        while (peer_read(fd, answer->body + answer->body_len, 1))
            answer->body_len++;
    }
    answer->body[answer->body_len] = '\0';
    return whole;
}

void
http_expect_status(int fd, struct http_answer *answer, unsigned status)
{
    ck_assert(http_receive(fd, answer, false));
    ck_assert_msg(answer->status == status, "%u: %s", answer->status, answer->head);
}

void
http_expect_page(int fd, struct http_answer *answer, const char *body)
{
    http_expect_status(fd, answer, 200);
    ck_assert_str_eq(answer->body, body);
}

void
http_expect(int fd, const char *request, struct http_answer *answer, unsigned status)
{
    ck_assert(http_send(fd, request));
    ck_assert(http_receive(fd, answer, strncmp(request, "HEAD", 4) == 0));
    ck_assert_msg(answer->status == status, "%s%s", request, answer->head);
}

void
http_store(const char *url, const char *lines, const char *body)
{
    static struct http_answer answer;
    char request[512];
    int fd = http_connect();

    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: origin.test\r\n\r\n", url);
    ck_assert(http_send(fd, request));
    origin_responds(url, lines, BODY_INLINE, body, strlen(body));
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 200);
    close(fd);
}

void
http_expect_hit(int fd, const char *url, const char *body, size_t len)
{
    static struct http_answer answer;
    char request[512];

    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: ignored.test\r\n\r\n", url);
    ck_assert(http_send(fd, request));
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 200);
    ck_assert(http_has_start(&answer, "Cache-Status: sunproxy; hit"));
    ck_assert_uint_eq(answer.body_len, len);
    ck_assert(memcmp(answer.body, body, len) == 0);
}

/* ---- the origin ------------------------------------------------------------------------------ */

struct scene_fetch *
await_fetch(const char *url)
{
    AWAIT(scene_find(url) != NULL);
    return scene_fetch(url);
}

struct scene_fetch *
origin_begins(const char *url, const char *lines, int64_t length)
{
    struct scene_fetch *fetch = await_fetch(url);

    fetch->sink->begin(fetch->context);
    scene_response(fetch, lines, false);
    ck_assert_int_eq(scene_head(fetch, 200, lines, length), FETCH_CONTINUE);
    return fetch;
}

void
origin_responds(const char *url, const char *lines, enum body_form form, const char *bytes,
                size_t len)
{
    const size_t most = 16384;
    struct scene_fetch *fetch = origin_begins(url, lines, form == BODY_INLINE ? (int64_t)len : -1);

    while (len != 0) {
        size_t now = len < most ? len : most;

        ck_assert_int_eq(fetch->sink->body(fetch->context, bytes, now), FETCH_CONTINUE);
        bytes += now;
        len -= now;
    }
    scene_done(fetch, FETCH_OK, "");
}

void
origin_answers(const char *url, unsigned status, const char *lines, const char *body)
{
    struct scene_fetch *fetch = await_fetch(url);
    enum fetch_flow flow;

    fetch->sink->begin(fetch->context);
    scene_response_of(fetch, status, lines);
    flow = scene_head(fetch, status, lines, (int64_t)strlen(body));
    if (flow == FETCH_CONTINUE && *body)
        flow = fetch->sink->body(fetch->context, body, strlen(body));
    scene_done(fetch, flow == FETCH_ABORT ? FETCH_INTERNAL : FETCH_OK, "");
}

void
origin_redirects(const char *url, unsigned status, const char *location, const char *lines)
{
    char all[PROXY_MAX_URL + 1024];

    snprintf(all, sizeof(all), "Location: %s\r\n%s", location, lines);
    origin_answers(url, status, all, "it has moved");
}

void
origin_fails(const char *url, enum fetch_error error, const char *sentence)
{
    struct scene_fetch *fetch = await_fetch(url);

    scene_done(fetch, error, sentence);
}

void
front_store(const char *url, const char *lines, enum body_form form, const char *bytes, size_t len)
{
    proxy_fetch_result result;
    int fd = front_connect();

    send_get(fd, STORE_XID, url, 0);
    origin_responds(url, lines, form, bytes, len);
    receive_page(fd, STORE_XID, PROXY_OK, &result);
    ck_assert_int_eq(result.proxy_fetch_result_u.page.source, PROXY_MISS);
    ck_assert(result.proxy_fetch_result_u.page.ending.stored);
    free_page(&result);
    close(fd);
}

const char *
plain_bytes(size_t len)
{
    static char bytes[2 * MIB];

    ck_assert_uint_le(len, sizeof(bytes));
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)('!' + (i * 7 + i / 251) % 90);
    return bytes;
}
