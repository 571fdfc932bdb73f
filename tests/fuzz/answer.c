/*
 * What an origin sends, from its bytes through libcurl, fetch/, proxy/ and cache/ to a front: two
 * requests for one URL, the second of which may hit, validate or join nothing. Every request ends,
 * its body has the length that was announced, the field lines that go on are well formed, and
 * nothing is left when both have ended. The first answer of a seed called "good-..." is taken, and
 * that of "bad-..." is not.
 *
 * Input: a byte of flags (below), a byte of the second request's fields, two bytes with the length
 * of the first answer, the answers. Requests beyond the first get the second answer. The origin is
 * a socket on loopback, to which all names lead.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/field.h"
#include "proxy/exchange.h"
#include "proxy/proxy_rules.h"
#include "tests/fuzz/fuzz.h"

enum flag {
    FLAG_HTTP = 1,   /* the front is that of HTTP, or else one of RPC */
    FLAG_WHOLE = 2,  /* the front of RPC does not stream */
    FLAG_HEAD = 4,   /* the first request's method */
    FLAG_POST = 8,   /* likewise, with a body */
    FLAG_KEEP = 16,  /* the origin keeps connections */
    FLAG_BYTES = 32, /* the origin sends byte by byte at first */
    FLAG_OWNED = 64,
};

enum {
    MOST_BYTES = 65536, /* of an input: less than a socket's buffer */
    IDLE_MS = 5,        /* then the origin ends what it has kept */
    HANG_MS = 20000,
    CONNECTIONS = 8,
};

static const char *const second_fields[] = {
    "",
    "If-None-Match: \"a\"\r\n",
    "Range: bytes=1-2\r\n",
    "Cache-Control: no-cache\r\n",
    "Cookie: a=b\r\n",
    "Accept-Encoding: gzip\r\nAccept-Language: de\r\n",
};

/* ---- the origin ------------------------------------------------------------------------------ */

struct connection {
    int fd;     /* -1: none */
    bool begun; /* bytes have come */
    size_t len;
    char request[16384];
};

static struct {
    int listener;
    int wakeup; /* an eventfd: an exchange is woken, or a fetch has ended */
    struct connection connections[CONNECTIONS];
    struct span answers[2];
    unsigned requests;
    bool keeps, slow;
} origin;

static void
origin_close(struct connection *connection)
{
    if (connection->fd >= 0)
        close(connection->fd);
    connection->fd = -1;
    connection->begun = false;
    connection->len = 0;
}

static void
origin_accept(void)
{
    int fd = accept4(origin.listener, NULL, NULL, SOCK_CLOEXEC);
    struct connection *free = origin.connections;

    FUZZ_CHECK(fd >= 0);
    for (unsigned i = 0; i < CONNECTIONS && free->fd >= 0; i++)
        free = &origin.connections[i];
    origin_close(free);
    free->fd = fd;
}

/* What the other end does not take any more is lost. */
static void
origin_send(int fd, struct span bytes)
{
    for (unsigned i = 0; origin.slow && i < 64 && bytes.len > 1; i++)
        (void)send(fd, fuzz_take(&bytes, 1).ptr, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void
origin_read(struct connection *connection)
{
    ssize_t n = recv(connection->fd, connection->request + connection->len,
                     sizeof(connection->request) - connection->len, MSG_DONTWAIT);

    if (n <= 0) {
        origin_close(connection);
        return;
    }
    connection->begun = true;
    connection->len += (size_t)n;
    if (!memmem(connection->request, connection->len, "\r\n\r\n", 4)) {
        if (connection->len == sizeof(connection->request))
            origin_close(connection);
        return;
    }
    connection->len = 0;
    origin_send(connection->fd, origin.answers[origin.requests++ > 0]);
    if (!origin.keeps)
        shutdown(connection->fd, SHUT_WR);
}

/* One turn; false if nothing has come for IDLE_MS. */
static bool
origin_turn(void)
{
    struct pollfd fds[CONNECTIONS + 2] = {{.fd = origin.listener, .events = POLLIN},
                                          {.fd = origin.wakeup, .events = POLLIN}};
    uint64_t count;

    for (unsigned i = 0; i < CONNECTIONS; i++)
        fds[i + 2] = (struct pollfd){.fd = origin.connections[i].fd, .events = POLLIN};
    if (poll(fds, CONNECTIONS + 2, IDLE_MS) <= 0)
        return false;
    for (unsigned i = 0; i < CONNECTIONS; i++)
        if (fds[i + 2].revents)
            origin_read(&origin.connections[i]);
    if (fds[0].revents)
        origin_accept();
    if (fds[1].revents)
        FUZZ_CHECK(read(origin.wakeup, &count, sizeof(count)) == sizeof(count));
    return true;
}

/* Ends what is kept, or waits for more of an answer. What has asked for nothing yet is waited for.
 */
static void
origin_end_idle(void)
{
    for (unsigned i = 0; i < CONNECTIONS; i++)
        if (origin.connections[i].fd >= 0 && origin.connections[i].begun)
            shutdown(origin.connections[i].fd, SHUT_WR);
}

static void
wake_origin(void)
{
    const uint64_t one = 1;

    FUZZ_CHECK(write(origin.wakeup, &one, sizeof(one)) == sizeof(one));
}

/* ---- the front ------------------------------------------------------------------------------- */

static struct {
    struct request request;
    struct exchange exchange;
    struct object_place place;
    _Atomic bool woken;
    bool has_head, ended;
    uint64_t got;
} visit;

static struct proxy proxy;
static struct client client = {.references = 1}; /* no other one is found */
static struct memory_account account;
static struct cache *cache;
static struct fetcher *fetcher;
static _Atomic unsigned submitted, fetched;

static void
wake(struct exchange *exchange)
{
    (void)exchange;
    atomic_store(&visit.woken, true);
    wake_origin();
}

static void
end_visit(struct exchange *exchange)
{
    FUZZ_CHECK(!visit.ended);
    visit.ended = true;
    exchange_end(exchange);
}

/* What goes on to a client is lines that no reader of HTTP takes for others. */
static void
check_lines(struct span lines)
{
    struct span line, name, value;

    FUZZ_CHECK(lines.len == 0 || lines.ptr[lines.len - 1] == '\n');
    while (http_next_line(&lines, &line)) {
        FUZZ_CHECK(http_split_field(line, &name, &value) && http_is_value(value));
        FUZZ_CHECK(line.ptr[line.len] == '\r' && line.ptr[line.len + 1] == '\n');
    }
}

static void
read_body(struct exchange *exchange)
{
    struct span run;

    FUZZ_CHECK(visit.has_head && !visit.ended);
    while ((run = object_read(exchange->object, &visit.place)).len)
        visit.got += run.len;
    if (request_streams(exchange->request))
        exchange_taken(exchange, visit.got);
    if (!exchange_is_complete(exchange))
        return;
    FUZZ_CHECK(visit.got == object_length(exchange->object));
    end_visit(exchange);
}

static void
take_head(struct exchange *exchange)
{
    FUZZ_CHECK(!visit.has_head && exchange->object->status >= 200 &&
               exchange->object->status <= 999);
    visit.has_head = true;
    check_lines(object_fields(exchange->object));
    /* A front that follows redirects needs no more of this one. */
    if (exchange_redirect(exchange).len == 0 || exchange_is_complete(exchange))
        read_body(exchange);
    else if (exchange_cancel(exchange))
        end_visit(exchange);
}

static void
take_failure(struct exchange *exchange, enum failure why, struct span sentence)
{
    FUZZ_CHECK(why != 0 && (sentence.len > 0 || why == FAILURE_CANCELLED));
    end_visit(exchange);
}

static void
take_interim(struct exchange *exchange, unsigned status, struct span lines)
{
    (void)exchange;
    FUZZ_CHECK(!visit.has_head && status > 100 && status < 200);
    check_lines(lines);
}

static void
take_space(struct exchange *exchange)
{
    (void)exchange;
}

static const struct front whole = {.wake = wake, .head = take_head, .fail = take_failure};
static const struct front streaming = {
    .wake = wake, .head = take_head, .more = read_body, .fail = take_failure};
static const struct front http = {.wake = wake,
                                  .head = take_head,
                                  .more = read_body,
                                  .fail = take_failure,
                                  .interim = take_interim,
                                  .space = take_space};

/* Until `is_over`: what the origin has kept is closed when nothing happens any more. */
static void
run_until(bool (*is_over)(void))
{
    unsigned idle = 0;

    while (!is_over()) {
        if (atomic_exchange(&visit.woken, false))
            exchange_run(&visit.exchange);
        else if (origin_turn())
            idle = 0;
        else
            origin_end_idle();
        FUZZ_CHECK(++idle < HANG_MS / IDLE_MS);
    }
}

static bool
is_ended(void)
{
    return visit.ended;
}

static bool
is_fetched(void)
{
    return atomic_load(&fetched) == atomic_load(&submitted);
}

static void
ask(unsigned flags, const char *method, const char *fields)
{
    bool posts = strcmp(method, "POST") == 0;

    memset(&visit, 0, sizeof(visit));
    visit.exchange = (struct exchange){
        .proxy = &proxy,
        .front = flags & FLAG_HTTP      ? &http
                 : (flags & FLAG_WHOLE) ? &whole
                                        : &streaming,
        .request = &visit.request,
    };
    visit.request = (struct request){
        .url = span_str("http://origin.test/a"),
        .flags = (flags & FLAG_HTTP ? 0u : REQUEST_PAGE_ONLY) |
                 (flags & FLAG_OWNED ? REQUEST_OWNED : 0u) |
                 (flags & FLAG_HTTP || !(flags & FLAG_WHOLE) ? REQUEST_STREAMS : 0u),
        .method = http_method_of(span_str(method)),
        .method_name = span_str(method),
        .fields = span_str(fields),
        .body = {.kind = posts ? REQUEST_BODY_SUPPLIED : REQUEST_BODY_NONE,
                 .length = posts ? 5 : 0},
        .client = &client,
        .waiting_bytes = 10,
        .arrived_us = proxy_now_us(&proxy),
    };
    if (!exchange_start(&visit.exchange) && posts) {
        exchange_send(&visit.exchange, "hello", 5);
        exchange_send_end(&visit.exchange);
    }
    run_until(is_ended);
}

/* ---- the proxy ------------------------------------------------------------------------------- */

static bool
submit(struct fetcher *context, const struct request *request, const struct fetch_sink *sink,
       void *sink_context, uint64_t *id)
{
    atomic_fetch_add(&submitted, 1);
    return origin_fetcher.submit(context, request, sink, sink_context, id);
}

/* The proxy reports each fetch but those that it repeats. */
static void
on_fetched(void *context, const struct proxy_fetched *report)
{
    (void)context;
    (void)report;
    atomic_store(&fetched, atomic_load(&submitted));
    wake_origin();
}

static void
start_origin(char *rule, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);

    origin.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    origin.wakeup = eventfd(0, EFD_CLOEXEC);
    FUZZ_CHECK(origin.listener >= 0 && origin.wakeup >= 0);
    FUZZ_CHECK(bind(origin.listener, (const struct sockaddr *)&address, sizeof(address)) == 0);
    FUZZ_CHECK(listen(origin.listener, CONNECTIONS) == 0);
    FUZZ_CHECK(getsockname(origin.listener, (struct sockaddr *)&address, &len) == 0);
    for (unsigned i = 0; i < CONNECTIONS; i++)
        origin.connections[i].fd = -1;
    snprintf(rule, size, "::127.0.0.1:%u", ntohs(address.sin_port));
}

static void
start(void)
{
    static const struct proxy_rules proxy_rules = {.max_waiters = 10};
    static struct origin_ops counted;
    struct cache_config cache_config = {
        .capacity_pages = 100, .capacity_bytes = 64 << 20, .shards = 1};
    struct fetch_config config;
    const char *rules[2] = {NULL, NULL};
    enum cache_error error;
    char rule[64], why[256];

    start_origin(rule, sizeof(rule));
    rules[0] = rule;
    fetch_config_default(&config);
    config.addresses = address_policy_create();
    config.connect_to = rules;
    config.resolver_threads = 1;
    config.max_body = 1 << 20;
    fetcher = fetcher_create(&config, why, sizeof(why));
    FUZZ_CHECK(fetcher != NULL);
    counted = origin_fetcher;
    counted.submit = submit;
    memory_account_init(&account, (uint64_t)1 << 30, NULL);
    FUZZ_CHECK(policy_parse("lru", &cache_config.policy, why, sizeof(why)));
    cache = cache_create(&cache_config, &error);
    FUZZ_CHECK(cache != NULL);
    FUZZ_CHECK(proxy_init(&proxy, &(struct proxy_config){
                                      .cache = cache,
                                      .account = &account,
                                      .metrics = metrics_create(1),
                                      .origin = {.ops = &counted, .context = fetcher},
                                      .clock = proxy_clock_system,
                                      .follows_http = true,
                                      .max_body = 1 << 20,
                                      .rules = &proxy_rules,
                                      .workers = 1,
                                      .fetched = on_fetched,
                                  }));
}

static bool
is_clear(void)
{
    return client_share_total(&proxy.waiting) == 0 && memory_used(&account, MEMORY_REQUESTS) == 0 &&
           memory_used(&account, MEMORY_PAGES) == 0;
}

/* Nothing of an input is there for the next one. */
static void
clear(void)
{
    run_until(is_fetched);
    for (unsigned i = 0; i < CONNECTIONS; i++)
        origin_close(&origin.connections[i]);
    cache_purge_all(cache);
    /* The last fill is freed after its report. */
    for (unsigned i = 0; !is_clear(); i++) {
        FUZZ_CHECK(i < 10000000);
        sched_yield();
    }
}

/* The clients of RPC only get. */
static const char *
first_method(unsigned flags)
{
    if (!(flags & FLAG_HTTP))
        return "GET";
    if (flags & FLAG_HEAD)
        return "HEAD";
    return flags & FLAG_POST ? "POST" : "GET";
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span input = span_of(data, size);
    unsigned flags = fuzz_byte(&input), second = fuzz_byte(&input);
    size_t first = fuzz_byte(&input);

    first += 256 * (size_t)fuzz_byte(&input);
    if (size > MOST_BYTES)
        return 0;
    if (!fetcher)
        start();
    origin.requests = 0;
    origin.keeps = flags & FLAG_KEEP;
    origin.slow = flags & FLAG_BYTES;
    origin.answers[0] = fuzz_take(&input, first);
    origin.answers[1] = input;
    ask(flags, first_method(flags), "");
    if (fuzz_seed && strncmp(fuzz_seed, "good-", 5) == 0)
        FUZZ_CHECK(visit.has_head);
    if (fuzz_seed && strncmp(fuzz_seed, "bad-", 4) == 0)
        FUZZ_CHECK(!visit.has_head);
    ask(flags, "GET",
        flags & FLAG_HTTP
            ? second_fields[second % (sizeof(second_fields) / sizeof(second_fields[0]))]
            : "");
    clear();
    return 0;
}
