/*
 * Origins that play a script, for the tests of the fetcher: each answers a path with fixed bytes
 * and then closes, keeps the connection, or hangs. A thread a connection; loopback only.
 */
#ifndef SUNPROXY_TESTS_FETCH_SCRIPTED_H
#define SUNPROXY_TESTS_FETCH_SCRIPTED_H

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "fetch/fetch.h"
#include "tests/unit/unit.h"

#define HELPER __attribute__((unused)) static
#define MAX_CONNECTIONS 256

enum then { KEEP, CLOSE, HANG };

struct line {
    const char *path; /* NULL ends the script */
    const char *bytes;
    size_t len; /* 0: strlen(bytes) */
    enum then then;
    unsigned pause_ms; /* before the answer */
};

struct origin {
    const struct line *script;
    int fd;
    uint16_t port;
    pthread_t acceptor;
    pthread_mutex_t lock;
    bool stopping;
    int connection[MAX_CONNECTIONS];
    pthread_t thread[MAX_CONNECTIONS];
    unsigned connections;
    unsigned under_way;
    unsigned most_under_way;
    unsigned requests;
    char first_request[8192];
    char last_request[8192];
};

struct played {
    struct origin *origin;
    int fd;
};

/* One request's head; false at the end. */
HELPER bool
scripted_read(int fd, char *text, size_t size)
{
    size_t len = 0;

    while (len + 1 < size) {
        ssize_t got = recv(fd, text + len, 1, 0);

        if (got <= 0)
            return false;
        len++;
        text[len] = '\0';
        if (len >= 4 && memcmp(text + len - 4, "\r\n\r\n", 4) == 0)
            return true;
    }
    return false;
}

HELPER void
scripted_send(int fd, const char *bytes, size_t len)
{
    while (len) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);

        if (sent <= 0)
            return;
        bytes += sent;
        len -= (size_t)sent;
    }
}

HELPER void
scripted_count(struct origin *origin, int by)
{
    pthread_mutex_lock(&origin->lock);
    if (by > 0 && ++origin->under_way > origin->most_under_way)
        origin->most_under_way = origin->under_way;
    if (by < 0)
        origin->under_way--;
    pthread_mutex_unlock(&origin->lock);
}

HELPER void *
scripted_play(void *argument)
{
    struct played *played = argument;
    struct origin *origin = played->origin;
    int fd = played->fd;
    char request[8192], method[16], path[4096], drop;
    bool going = true;

    free(played);
    while (going && scripted_read(fd, request, sizeof(request))) {
        const struct line *line = origin->script;

        going = false;
        if (sscanf(request, "%15s %4095s", method, path) != 2)
            break;
        pthread_mutex_lock(&origin->lock);
        if (origin->requests++ == 0)
            memcpy(origin->first_request, request, sizeof(request));
        memcpy(origin->last_request, request, sizeof(request));
        pthread_mutex_unlock(&origin->lock);
        while (line->path && strcmp(line->path, path) != 0)
            line++;
        if (!line->path) {
            static const char none[] = "HTTP/1.1 404 Not Here\r\nContent-Length: 5\r\n\r\nnone\n";

            scripted_send(fd, none, strlen(none));
            going = true;
            continue;
        }
        scripted_count(origin, 1);
        if (line->pause_ms)
            usleep(line->pause_ms * 1000);
        /* Before the bytes, so that nobody who has the answer finds it still counted. */
        scripted_count(origin, -1);
        scripted_send(fd, line->bytes, line->len ? line->len : strlen(line->bytes));
        if (line->then == HANG)
            while (recv(fd, &drop, 1, 0) > 0)
                continue;
        going = line->then == KEEP;
    }
    shutdown(fd, SHUT_RDWR);
    return NULL;
}

HELPER void *
scripted_accept(void *argument)
{
    struct origin *origin = argument;

    for (;;) {
        int fd = accept(origin->fd, NULL, NULL);
        struct played *played;

        if (fd < 0)
            return NULL;
        pthread_mutex_lock(&origin->lock);
        if (origin->stopping || origin->connections == MAX_CONNECTIONS) {
            close(fd);
        } else {
            played = malloc(sizeof(*played));
            *played = (struct played){.origin = origin, .fd = fd};
            origin->connection[origin->connections] = fd;
            pthread_create(&origin->thread[origin->connections], NULL, scripted_play, played);
            origin->connections++;
        }
        pthread_mutex_unlock(&origin->lock);
    }
}

/* A listening socket on a free port of 127.0.0.1. */
HELPER int
scripted_listen(uint16_t *port, int backlog)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(in);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
    ck_assert_int_eq(listen(fd, backlog), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&in, &len), 0);
    *port = ntohs(in.sin_port);
    return fd;
}

/* On a socket that listens already, and is closed in the end. */
HELPER struct origin *
origin_start_on(const struct line *script, int fd, uint16_t port)
{
    struct origin *origin = calloc(1, sizeof(*origin));

    origin->script = script;
    pthread_mutex_init(&origin->lock, NULL);
    origin->fd = fd;
    origin->port = port;
    pthread_create(&origin->acceptor, NULL, scripted_accept, origin);
    return origin;
}

HELPER struct origin *
origin_start(const struct line *script)
{
    uint16_t port;
    int fd = scripted_listen(&port, 256);

    return origin_start_on(script, fd, port);
}

HELPER void
origin_stop(struct origin *origin)
{
    pthread_mutex_lock(&origin->lock);
    origin->stopping = true;
    shutdown(origin->fd, SHUT_RDWR);
    pthread_mutex_unlock(&origin->lock);
    pthread_join(origin->acceptor, NULL);
    for (unsigned i = 0; i < origin->connections; i++)
        shutdown(origin->connection[i], SHUT_RDWR);
    for (unsigned i = 0; i < origin->connections; i++) {
        pthread_join(origin->thread[i], NULL);
        close(origin->connection[i]);
    }
    close(origin->fd);
    pthread_mutex_destroy(&origin->lock);
    free(origin);
}

/* ---- a fetch and what came of it ----------------------------------------------------- */

struct outcome {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over;
    unsigned heads, dones;
    unsigned status;
    int64_t content_length;
    char final_url[8300];
    char headers[8192];
    char *body;
    size_t body_len;
    enum fetch_error error;
    char sentence[1024];
    int64_t total_us;
};

HELPER bool
outcome_head(void *context, const struct fetch_head *head)
{
    struct outcome *o = context;

    pthread_mutex_lock(&o->lock);
    o->heads++;
    o->status = head->status;
    o->content_length = head->content_length;
    snprintf(o->final_url, sizeof(o->final_url), "%.*s", (int)head->final_url.len,
             head->final_url.ptr);
    snprintf(o->headers, sizeof(o->headers), "%.*s", (int)head->headers.len, head->headers.ptr);
    pthread_mutex_unlock(&o->lock);
    return true;
}

HELPER bool
outcome_body(void *context, const void *bytes, size_t len)
{
    struct outcome *o = context;
    char *longer = realloc(o->body, o->body_len + len + 1);

    if (!longer)
        return false;
    memcpy(longer + o->body_len, bytes, len);
    o->body = longer;
    o->body_len += len;
    longer[o->body_len] = '\0';
    return true;
}

HELPER void
outcome_done(void *context, enum fetch_error error, const char *sentence, int64_t total_us)
{
    struct outcome *o = context;

    pthread_mutex_lock(&o->lock);
    o->dones++;
    o->error = error;
    o->total_us = total_us;
    snprintf(o->sentence, sizeof(o->sentence), "%s", sentence);
    o->over = true;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

static const struct fetch_sink outcome_sink = {outcome_head, outcome_body, outcome_done};

HELPER void
outcome_init(struct outcome *o)
{
    memset(o, 0, sizeof(*o));
    pthread_mutex_init(&o->lock, NULL);
    pthread_cond_init(&o->changed, NULL);
}

HELPER void
outcome_wait(struct outcome *o)
{
    pthread_mutex_lock(&o->lock);
    while (!o->over)
        pthread_cond_wait(&o->changed, &o->lock);
    pthread_mutex_unlock(&o->lock);
}

HELPER bool
outcome_is_over(struct outcome *o)
{
    bool over;

    pthread_mutex_lock(&o->lock);
    over = o->over;
    pthread_mutex_unlock(&o->lock);
    return over;
}

HELPER void
outcome_free(struct outcome *o)
{
    free(o->body);
    pthread_cond_destroy(&o->changed);
    pthread_mutex_destroy(&o->lock);
}

/* Fetches, waits, and asserts what holds for every outcome. */
HELPER void
fetch_with(struct fetcher *fetcher, const char *url, const char *headers, struct outcome *o)
{
    outcome_init(o);
    ck_assert(fetcher_submit(fetcher, span_str(url), span_str(headers), &outcome_sink, o));
    outcome_wait(o);
    ck_assert_uint_eq(o->dones, 1);
    ck_assert_int_ge(o->total_us, 0);
    ck_assert_uint_le(o->heads, 1);
    ck_assert_msg((o->error == FETCH_OK) == (o->sentence[0] == '\0'), "%s", o->sentence);
}

HELPER void fetch_one(struct fetcher *fetcher, struct outcome *o, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

HELPER void
fetch_one(struct fetcher *fetcher, struct outcome *o, const char *format, ...)
{
    char url[9000];
    va_list args;

    va_start(args, format);
    vsnprintf(url, sizeof(url), format, args);
    va_end(args);
    fetch_with(fetcher, url, "", o);
}

/* ---- names that stand for what a test says --------------------------------------------------- */

struct name_row {
    const char *host; /* NULL ends the table */
    const char *address;
};

static const struct name_row *_Atomic names_table;
static _Atomic unsigned names_asked, names_hanging;
static _Atomic bool names_released;

/* Who is not in the table does not exist, and "hang.test" only takes longer to say so. */
HELPER int
names_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                  struct addrinfo **result)
{
    struct addrinfo numeric = *hints;
    struct addrinfo *all = NULL;

    names_asked++;
    if (strcmp(host, "hang.test") == 0) {
        names_hanging++;
        while (!names_released)
            usleep(1000);
        names_hanging--;
    }
    numeric.ai_flags = AI_NUMERICHOST;
    for (const struct name_row *row = names_table; row && row->host; row++) {
        struct addrinfo *one, *last;

        if (strcmp(row->host, host) != 0 || getaddrinfo(row->address, service, &numeric, &one) != 0)
            continue;
        for (last = one; last->ai_next; last = last->ai_next)
            continue;
        last->ai_next = all;
        all = one;
    }
    *result = all;
    return all ? 0 : EAI_NONAME;
}

HELPER void
names_use(struct fetch_config *config, const struct name_row *table)
{
    names_table = table;
    names_asked = 0;
    names_released = false;
    config->getaddrinfo = names_getaddrinfo;
    config->freeaddrinfo = freeaddrinfo;
}

/* Lets the threads go that hang in a name, and waits until they have. */
HELPER void
names_release(void)
{
    names_released = true;
    while (names_hanging)
        usleep(1000);
}

/* A fetcher that may go to loopback, with short time limits. */
HELPER void
quick_config(struct fetch_config *config, struct address_policy *addresses)
{
    char why[256];

    fetch_config_default(config);
    ck_assert(address_policy_allow(addresses, "127.0.0.0/8", why, sizeof(why)));
    config->addresses = addresses;
    config->resolve_timeout_us = 5000000;
    config->connect_timeout_us = 5000000;
    config->first_byte_timeout_us = 5000000;
    config->stall_timeout_us = 5000000;
    config->total_timeout_us = 20000000;
    config->resolver_threads = 2;
}

HELPER struct fetcher *
start_fetcher(const struct fetch_config *config)
{
    char why[512] = "";
    struct fetcher *fetcher = fetcher_create(config, why, sizeof(why));

    ck_assert_msg(fetcher != NULL, "%s", why);
    return fetcher;
}

#endif
