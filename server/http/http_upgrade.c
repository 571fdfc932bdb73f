#include "server/http/http_upgrade.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "http/field.h"
#include "http/hop_by_hop.h"
#include "http/known_fields.h"

enum {
    RESPONSE_BYTES = 16384, /* of the origin's head, and what comes with it */
    REQUEST_LINES = 256,    /* of the request beside the URL and the fields */
};

struct http_upgrade {
    void (*ended)(void *context, bool switched);
    void *context;
    struct net_connections *set;
    int fd; /* -1: none */
    struct event event;
    int64_t deadline_us; /* 0: none */
    struct buf request;
    size_t sent;
    size_t head_len; /* of the response, with the empty line; 0: not whole */
    size_t received;
    char response[RESPONSE_BYTES];
};

/* ---- requests -------------------------------------------------------------------------------- */

static bool
has_member(struct span list, const char *name)
{
    struct span member;

    while (http_next_member(&list, &member))
        if (http_name_is(member, name))
            return true;
    return false;
}

/* Are the fields there without which an origin must not agree (RFC 6455, section 4.2.1)? */
static bool
has_handshake(struct span fields)
{
    struct span line, name, value;
    unsigned keys = 0, versions = 0;

    while (http_next_line(&fields, &line)) {
        if (!http_split_field(line, &name, &value))
            continue;
        if (http_name_is(name, "Sec-WebSocket-Key"))
            keys += value.len ? 1 : 2;
        else if (http_name_is(name, "Sec-WebSocket-Version"))
            versions += span_equal(value, span_str("13")) ? 1 : 2;
    }
    return keys == 1 && versions == 1;
}

bool
http_upgrade_is_wanted(const struct http_request *request)
{
    return request->upgrade.len && request->method_id == HTTP_GET && !request->chunked &&
           request->content_length < 0 && has_member(request->upgrade, "websocket") &&
           has_handshake(request->fields);
}

/* "http://authority/path": the fetcher's check of the URL comes before anything is sent. */
static void
write_request(struct buf *out, const struct http_upgrade_request *request)
{
    struct span rest = span_of(request->url.ptr + 7, request->url.len - 7);
    struct span fields = request->fields;
    const char *slash = memchr(rest.ptr, '/', rest.len);
    size_t authority = slash ? (size_t)(slash - rest.ptr) : rest.len;

    buf_append_str(out, "GET ");
    if (authority < rest.len)
        buf_append(out, rest.ptr + authority, rest.len - authority);
    else
        buf_append_char(out, '/');
    buf_append_str(out, " HTTP/1.1\r\nHost: ");
    if (request->host.len)
        buf_append(out, request->host.ptr, request->host.len);
    else
        buf_append(out, rest.ptr, authority);
    buf_append_str(out, "\r\n");
    if (fields.len)
        buf_append(out, fields.ptr, fields.len);
    buf_append_str(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
}

/* ---- responses ------------------------------------------------------------------------------- */

static struct span
response_head(const struct http_upgrade *upgrade)
{
    return span_of(upgrade->response, upgrade->head_len);
}

/* The field lines of a head, each ended by CR LF. */
static struct span
field_lines(const struct http_upgrade *upgrade)
{
    struct span head = response_head(upgrade);
    const char *end = memmem(head.ptr, head.len, "\r\n", 2);
    size_t before = (size_t)(end - head.ptr) + 2;

    return span_of(head.ptr + before, head.len - before - 2);
}

static bool
is_switching(struct span head)
{
    return head.len > 13 && memcmp(head.ptr, "HTTP/1.1 101", 12) == 0 &&
           (head.ptr[12] == ' ' || head.ptr[12] == '\r');
}

/* Each line ends with CR LF, and has neither elsewhere. */
static bool
are_whole_lines(struct span head)
{
    for (size_t i = 0; i < head.len; i++) {
        bool ends = head.ptr[i] == '\r' && i + 1 < head.len && head.ptr[i + 1] == '\n';

        if (head.ptr[i] == '\0' || ((head.ptr[i] == '\r' || head.ptr[i] == '\n') && !ends))
            return false;
        i += ends;
    }
    return true;
}

/* A 101 that says without any doubt that the connection is WebSocket's behind it. */
static bool
agrees(const struct http_upgrade *upgrade)
{
    struct span rest, line, name, value;
    bool connection = false;
    unsigned upgrades = 0;

    if (!are_whole_lines(response_head(upgrade)) || !is_switching(response_head(upgrade)))
        return false;
    rest = field_lines(upgrade);
    while (http_next_line(&rest, &line)) {
        if (!http_split_field(line, &name, &value) || !http_is_value(value) ||
            http_name_is(name, "Content-Length") || http_name_is(name, "Transfer-Encoding"))
            return false;
        if (http_name_is(name, "Connection"))
            connection |= has_member(value, "upgrade");
        if (http_name_is(name, "Upgrade")) {
            if (!http_name_is(value, "websocket"))
                return false;
            upgrades++;
        }
    }
    return connection && upgrades == 1;
}

void
http_upgrade_write_head(const struct http_upgrade *upgrade, struct span via, struct buf *out)
{
    struct http_connection_options options = {.count = 0};
    struct span rest = field_lines(upgrade), line, name, value;

    while (http_next_line(&rest, &line))
        if (http_split_field(line, &name, &value) && http_name_is(name, "Connection"))
            (void)http_connection_options_add(&options, value);
    buf_append_str(out, "HTTP/1.1 101 Switching Protocols\r\n");
    rest = field_lines(upgrade);
    while (http_next_line(&rest, &line)) {
        if (!http_split_field(line, &name, &value) || http_is_hop_by_hop(name, &options) ||
            http_name_is(name, HTTP_ORIGIN_CONTROL))
            continue;
        buf_append(out, line.ptr, line.len);
        buf_append_str(out, "\r\n");
    }
    buf_printf(out, "Via: %.*s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", (int)via.len,
               via.ptr);
}

bool
http_upgrade_is_answered(const struct http_upgrade *upgrade)
{
    return upgrade->received > 0;
}

struct span
http_upgrade_rest(const struct http_upgrade *upgrade)
{
    return span_of(upgrade->response + upgrade->head_len, upgrade->received - upgrade->head_len);
}

/* ---- the handshake --------------------------------------------------------------------------- */

enum step { WRITE, READ, AGREED, FAILED };

/* Sends what the socket takes. */
static enum step
send_request(struct http_upgrade *upgrade)
{
    while (upgrade->sent < upgrade->request.len) {
        ssize_t n = send(upgrade->fd, upgrade->request.data + upgrade->sent,
                         upgrade->request.len - upgrade->sent, MSG_NOSIGNAL);

        if (n >= 0)
            upgrade->sent += (size_t)n;
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return WRITE;
        else if (errno != EINTR)
            return FAILED;
    }
    return READ;
}

static enum step
receive_response(struct http_upgrade *upgrade)
{
    ssize_t n = recv(upgrade->fd, upgrade->response + upgrade->received,
                     sizeof(upgrade->response) - upgrade->received, 0);
    size_t from = upgrade->received > 3 ? upgrade->received - 3 : 0;
    const char *end;

    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return READ;
    if (n <= 0)
        return FAILED;
    upgrade->received += (size_t)n;
    end = memmem(upgrade->response + from, upgrade->received - from, "\r\n\r\n", 4);
    if (!end)
        return upgrade->received < sizeof(upgrade->response) ? READ : FAILED;
    upgrade->head_len = (size_t)(end - upgrade->response) + 4;
    return agrees(upgrade) ? AGREED : FAILED;
}

static void on_event(evutil_socket_t fd, short what, void *context);

/* Waits for the socket, up to the deadline. */
static bool
await(struct http_upgrade *upgrade, enum step step)
{
    int64_t left_us = upgrade->deadline_us - clock_monotonic_us();
    struct timeval left;

    if (left_us < 0)
        left_us = 0;
    left = (struct timeval){.tv_sec = (time_t)(left_us / 1000000),
                            .tv_usec = (suseconds_t)(left_us % 1000000)};
    event_assign(&upgrade->event, upgrade->set->worker->base, upgrade->fd,
                 step == WRITE ? EV_WRITE : EV_READ, on_event, upgrade);
    return event_add(&upgrade->event, upgrade->deadline_us ? &left : NULL) == 0;
}

static void
on_event(evutil_socket_t fd, short what, void *context)
{
    struct http_upgrade *upgrade = context;
    struct net_connections *set = upgrade->set;
    enum step step = FAILED;

    (void)fd;
    set->worker->now_us = clock_monotonic_us();
    if (what & EV_WRITE)
        step = send_request(upgrade);
    else if (what & EV_READ)
        step = receive_response(upgrade);
    if (step == AGREED || step == FAILED || !await(upgrade, step))
        upgrade->ended(upgrade->context, step == AGREED);
    net_connections_settle(set);
}

bool
http_upgrade_begin(struct http_upgrade *upgrade, struct net_connections *set, int fd,
                   int64_t timeout_us)
{
    enum step step;

    upgrade->set = set;
    upgrade->fd = fd;
    upgrade->deadline_us = timeout_us ? clock_monotonic_us() + timeout_us : 0;
    step = send_request(upgrade);
    return step != FAILED && await(upgrade, step);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static size_t
request_bytes(const struct http_upgrade_request *request)
{
    return request->url.len + request->host.len + request->fields.len + REQUEST_LINES;
}

size_t
http_upgrade_bytes(const struct http_upgrade_request *request)
{
    return sizeof(struct http_upgrade) + request_bytes(request);
}

struct http_upgrade *
http_upgrade_create(const struct http_upgrade_request *request,
                    void (*ended)(void *context, bool switched), void *context)
{
    struct http_upgrade *upgrade = malloc(sizeof(*upgrade));

    if (!upgrade)
        return NULL;
    memset(upgrade, 0, offsetof(struct http_upgrade, response));
    upgrade->fd = -1;
    upgrade->ended = ended;
    upgrade->context = context;
    buf_init(&upgrade->request, request_bytes(request));
    write_request(&upgrade->request, request);
    if (buf_failed(&upgrade->request)) {
        http_upgrade_destroy(upgrade);
        return NULL;
    }
    return upgrade;
}

int
http_upgrade_take_socket(struct http_upgrade *upgrade)
{
    int fd = upgrade->fd;

    upgrade->fd = -1;
    return fd;
}

void
http_upgrade_destroy(struct http_upgrade *upgrade)
{
    if (!upgrade)
        return;
    if (upgrade->fd >= 0) {
        if (event_initialized(&upgrade->event))
            event_del(&upgrade->event);
        close(upgrade->fd);
    }
    buf_free(&upgrade->request);
    free(upgrade);
}
