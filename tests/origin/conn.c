/*
 * Connections. An answer is made in `staged` and pumped from there to the socket: all that fits,
 * or a byte at a time, or only up to the point where its plan says that it ends badly.
 */
#include <ctype.h>
#include <event2/bufferevent_ssl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/units.h"
#include "tests/origin/origin.h"

#define OUTPUT_HIGH (256u << 10) /* bytes queued on a connection before making more waits */
#define PIECES_A_SECOND 50u      /* in which a bounded bandwidth is spent */

enum conn_state {
    CONN_READING,  /* waits for a request's head */
    CONN_DELAYING, /* has one, and sits on it */
    CONN_WRITING,
    CONN_DRIPPING,
    CONN_HANGING,
    CONN_CLOSING, /* when all is written */
};

struct conn {
    struct conn *next;
    struct conn **link; /* where the pointer to this one stands */
    struct origin *origin;
    struct bufferevent *bev;
    SSL *ssl; /* or NULL; the bufferevent's */
    struct event *timer;
    struct evbuffer *staged;
    enum conn_state state;
    struct plan plan; /* valid from CONN_DELAYING on */
    struct body body;
    uint64_t sent;  /* bytes of this answer that left staged */
    uint64_t head;  /* bytes of its head */
    uint64_t limit; /* of bytes to send before the ending */
    uint64_t skip;  /* bytes of a request's body still to be thrown away */
};

static void
conn_free(struct conn *c, bool reset)
{
    evutil_socket_t fd = bufferevent_getfd(c->bev);

    *c->link = c->next;
    if (c->next)
        c->next->link = c->link;
    c->origin->open--;
    if (reset && fd >= 0) {
        struct linger linger = {.l_onoff = 1, .l_linger = 0};

        setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    } else if (c->ssl && !c->plan.cut) {
        /* Says that this is the end and not a cut (RFC 8446 section 6.1). */
        SSL_set_shutdown(c->ssl, SSL_RECEIVED_SHUTDOWN);
        SSL_shutdown(c->ssl);
    }
    plan_free(&c->plan);
    event_free(c->timer);
    evbuffer_free(c->staged);
    bufferevent_free(c->bev);
    free(c);
}

static void
wait_for(struct conn *c, int64_t us)
{
    struct timeval tv = {.tv_sec = us / 1000000, .tv_usec = us % 1000000};

    event_add(c->timer, &tv);
}

/* The value of a field in a head of NUL-terminated text, or NULL; to its end of line. */
static const char *
find_field(const char *head, const char *name, size_t *len)
{
    size_t name_len = strlen(name);
    const char *line = strchr(head, '\n');

    for (; line; line = strchr(line, '\n')) {
        line++;
        if (strncasecmp(line, name, name_len) == 0 && line[name_len] == ':') {
            const char *value = line + name_len + 1;

            value += strspn(value, " \t");
            *len = strcspn(value, "\r\n");
            return value;
        }
    }
    return NULL;
}

static bool
field_is(const char *head, const char *name, const char *value)
{
    size_t len;
    const char *found = find_field(head, name, &len);

    return found && len == strlen(value) && strncasecmp(found, value, len) == 0;
}

/* Takes a request's head apart. `head` is NUL-terminated and is changed. False: not a request. */
static bool
parse_request(struct conn *c, struct request *r, char *method, char *head, size_t head_len)
{
    const char *host;
    char *target, *version, *scheme;
    size_t len;

    memset(r, 0, sizeof(*r));
    r->method = method;
    r->scheme = c->ssl ? "https" : "http";
    r->head = span_of(head, head_len);
    if (sscanf(head, "%15s", method) != 1)
        return false;
    target = head + strlen(method);
    if (*target++ != ' ')
        return false;
    len = strcspn(target, " \r\n");
    version = target + len;
    if (strncmp(version, " HTTP/1.", 8) != 0 || len == 0)
        return false;
    r->keep_alive = version[8] == '1' ? !field_is(head, "Connection", "close")
                                      : field_is(head, "Connection", "keep-alive");
    host = find_field(head, "Host", &len);
    r->host = host ? strndup(host, len) : strdup("-");
    len = (size_t)(version - target);
    /* As a proxy is asked (RFC 9112 section 3.2.2): scheme and host stand in the target. */
    scheme = strstr(target, "://");
    if (target[0] != '/' && scheme && scheme < version) {
        char *path = memchr(scheme + 3, '/', (size_t)(version - scheme - 3));

        if (!path)
            path = version;
        r->scheme = strncmp(target, "https", 5) == 0 ? "https" : "http";
        free(r->host);
        r->host = strndup(scheme + 3, (size_t)(path - scheme - 3));
        target = path;
        len = (size_t)(version - path);
    }
    r->target = len ? strndup(target, len) : strdup("/");
    if (!r->host || !r->target)
        abort();
    for (char *p = r->host; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    host = find_field(head, "Content-Length", &len);
    if (host)
        r->body = strtoull(host, NULL, 10);
    return true;
}

static void
log_request(const struct conn *c, const struct request *r)
{
    int64_t now = clock_wall_us();

    if (c->origin->log)
        fprintf(c->origin->log, "%lld.%06d %s %s %s %u\n", (long long)(now / 1000000),
                (int)(now % 1000000), r->scheme, r->host, r->target,
                c->plan.garbage ? 0 : c->plan.status);
}

/* Lays out the answer: what can be said at once, and how far it goes. */
static void
stage(struct conn *c, const struct request *r)
{
    struct plan *plan = &c->plan;

    body_init(&c->body, plan);
    c->sent = 0;
    c->limit = UINT64_MAX;
    if (plan->garbage) {
        if (plan->size)
            evbuffer_add_printf(c->staged, "\x16\x03 this is no answer\r\n\r\n%016llx",
                                (unsigned long long)plan->seed);
        c->body.done = true;
        return;
    }
    plan_write_head(plan, r, c->origin, c->staged);
    c->head = evbuffer_get_length(c->staged);
    if (plan->cut)
        c->limit = plan->cut_in_head ? c->head / 2 : c->head + plan->cut_after;
    if (plan->echo) {
        evbuffer_add(c->staged, r->head.ptr, r->head.len);
        c->body.done = true;
    }
    if (strcmp(r->method, "HEAD") == 0 || (plan->size == 0 && plan->framing == FRAMED_BY_LENGTH))
        c->body.done = true;
}

static void
drop_idle(struct conn *asking)
{
    struct conn *next;

    for (struct conn *c = asking->origin->conns; c; c = next) {
        next = c->next;
        if (c != asking && c->state == CONN_READING)
            conn_free(c, false);
    }
}

static void
begin_answer(struct conn *c, const struct request *r)
{
    c->skip = r->body;
    if (c->plan.drop_idle)
        drop_idle(c);
    stage(c, r);
    log_request(c, r);
    if (c->plan.delay_us == INT64_MAX) {
        c->state = CONN_HANGING;
    } else if (c->plan.delay_us > 0) {
        c->state = CONN_DELAYING;
        wait_for(c, c->plan.delay_us);
    } else {
        c->state = CONN_WRITING;
    }
}

/* Answers that there is no answering, and closes. */
static void
refuse(struct conn *c, unsigned status)
{
    evbuffer_add_printf(bufferevent_get_output(c->bev),
                        "HTTP/1.1 %u Scripted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                        status);
    c->state = CONN_CLOSING;
}

/* Reads a request's head, if it is there. True if the state has changed. */
static bool
read_request(struct conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    struct evbuffer_ptr end;
    struct request request;
    char method[16];
    size_t len;
    char *head;

    if (c->skip) {
        size_t have = evbuffer_get_length(in);

        len = c->skip < have ? (size_t)c->skip : have;
        evbuffer_drain(in, len);
        c->skip -= len;
        if (c->skip)
            return false;
    }
    if (evbuffer_get_length(bufferevent_get_output(c->bev)) > OUTPUT_HIGH)
        return false;
    /* Whoever speaks TLS here would wait for an answer that we wait to be asked for. */
    if (evbuffer_copyout(in, method, 1) == 1 && !isalpha((unsigned char)method[0])) {
        refuse(c, 400);
        return true;
    }
    end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
    if (end.pos < 0) {
        if (evbuffer_get_length(in) < ORIGIN_MAX_HEAD)
            return false;
        refuse(c, 431);
        return true;
    }
    len = (size_t)end.pos + 4;
    head = calloc(1, len + 1);
    if (!head)
        abort();
    evbuffer_remove(in, head, len);
    if (parse_request(c, &request, method, head, len)) {
        plan_make(&c->plan, c->origin, &request);
        begin_answer(c, &request);
    } else {
        refuse(c, 400);
    }
    free(request.host);
    free(request.target);
    free(head);
    return true;
}

static void
end_answer(struct conn *c)
{
    enum ending ending = c->plan.ending;
    bool cut = c->plan.cut;

    evbuffer_drain(c->staged, evbuffer_get_length(c->staged));
    plan_free(&c->plan);
    if (ending == END_HANG) {
        c->state = CONN_HANGING;
    } else if (ending == END_KEEP) {
        c->state = CONN_READING;
    } else {
        c->state = CONN_CLOSING;
        /* A reset throws away what the kernel has not sent: kept for when all has been written. */
        c->plan.ending = ending;
        c->plan.cut = cut;
    }
}

/*
 * How much goes out before the next pause, and how long that is; 0: no pause. (libevent's own rate
 * limits leave TLS connections hanging.)
 */
static size_t
next_piece(const struct conn *c, bool drip, int64_t *pause_us)
{
    uint64_t bandwidth = c->origin->bandwidth;
    size_t piece = bandwidth > PIECES_A_SECOND ? (size_t)(bandwidth / PIECES_A_SECOND) : 1;

    *pause_us = 0;
    if (drip) {
        *pause_us = c->plan.drip_us;
        return 1;
    }
    if (!bandwidth)
        return SIZE_MAX;
    *pause_us = (int64_t)(piece * 1000000 / bandwidth);
    return piece;
}

/* Moves bytes on. True if the state has changed. */
static bool
pump(struct conn *c)
{
    struct evbuffer *out = bufferevent_get_output(c->bev);

    while (evbuffer_get_length(out) < OUTPUT_HIGH) {
        size_t len = evbuffer_get_length(c->staged);
        bool drip = c->plan.drip_us && (c->plan.drip_head || c->sent >= c->head);
        int64_t pause_us;
        size_t piece = next_piece(c, drip, &pause_us);

        if (c->sent >= c->limit || (len == 0 && c->body.done)) {
            end_answer(c);
            return true;
        }
        if (len == 0) {
            /* A piece of a bomb takes long to make for what it is: what there is goes out first. */
            if (c->plan.coding == CODED_GZIP_BOMB && evbuffer_get_length(out))
                return false;
            body_next(&c->body, c->staged);
            continue;
        }
        if (c->plan.drip_us && !drip && len > c->head - c->sent)
            len = (size_t)(c->head - c->sent);
        if (len > piece)
            len = piece;
        if (len > c->limit - c->sent)
            len = (size_t)(c->limit - c->sent);
        evbuffer_remove_buffer(c->staged, out, len);
        c->sent += len;
        if (pause_us) {
            c->state = CONN_DRIPPING;
            wait_for(c, pause_us);
            return true;
        }
    }
    return false;
}

/* Goes on as far as it can. The connection may be gone afterwards. */
static void
step(struct conn *c)
{
    for (;;) {
        switch (c->state) {
        case CONN_READING:
            if (!read_request(c))
                return;
            break;
        case CONN_WRITING:
            if (!pump(c))
                return;
            break;
        case CONN_CLOSING:
            if (evbuffer_get_length(bufferevent_get_output(c->bev)) == 0)
                conn_free(c, c->plan.ending == END_RESET);
            return;
        case CONN_DELAYING:
        case CONN_DRIPPING:
        case CONN_HANGING:
            return;
        }
    }
}

static void
on_io(struct bufferevent *bev, void *arg)
{
    (void)bev;
    step(arg);
}

static void
on_event(struct bufferevent *bev, short what, void *arg)
{
    (void)bev;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        conn_free(arg, false);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct conn *c = arg;

    (void)fd;
    (void)what;
    c->state = CONN_WRITING;
    step(c);
}

void
conn_accept(struct origin *origin, evutil_socket_t fd, bool tls)
{
    struct conn *c = calloc(1, sizeof(*c));
    int on = 1;

    if (!c)
        goto fail;
    /* As servers of the web do: else the end of an answer over TLS waits for an acknowledgement. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    c->origin = origin;
    if (tls) {
        c->ssl = authority_accept(origin->authority);
        if (!c->ssl)
            goto fail;
        c->bev = bufferevent_openssl_socket_new(origin->base, fd, c->ssl, BUFFEREVENT_SSL_ACCEPTING,
                                                BEV_OPT_CLOSE_ON_FREE);
        if (!c->bev)
            SSL_free(c->ssl);
    } else {
        c->bev = bufferevent_socket_new(origin->base, fd, BEV_OPT_CLOSE_ON_FREE);
    }
    if (!c->bev)
        goto fail;
    c->timer = evtimer_new(origin->base, on_timer, c);
    c->staged = evbuffer_new();
    if (!c->timer || !c->staged)
        abort();
    c->next = origin->conns;
    c->link = &origin->conns;
    if (c->next)
        c->next->link = &c->next;
    origin->conns = c;
    origin->open++;
    bufferevent_setcb(c->bev, on_io, on_io, on_event, c);
    /* What a peer may send ahead: a head's worth and more is left in the socket. */
    bufferevent_setwatermark(c->bev, EV_READ, 0, 2 * ORIGIN_MAX_HEAD);
    bufferevent_enable(c->bev, EV_READ | EV_WRITE);
    return;
fail:
    free(c);
    evutil_closesocket(fd);
}

void
conn_close_all(struct origin *origin)
{
    while (origin->conns)
        conn_free(origin->conns, false);
}
