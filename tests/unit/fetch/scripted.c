#include "tests/unit/fetch/scripted.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/unit.h"

struct played {
    struct origin *origin;
    int fd;
};

bool
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

/* Bytes until `size` more have come. */
static bool
read_exactly(int fd, char *bytes, size_t size)
{
    while (size) {
        ssize_t got = recv(fd, bytes, size, 0);

        if (got <= 0)
            return false;
        bytes += got;
        size -= (size_t)got;
    }
    return true;
}

static bool
read_line(int fd, char *text, size_t size)
{
    size_t len = 0;

    while (len + 1 < size && read_exactly(fd, text + len, 1)) {
        len++;
        text[len] = '\0';
        if (len >= 2 && memcmp(text + len - 2, "\r\n", 2) == 0)
            return true;
    }
    return false;
}

static bool
read_chunks(int fd, char *body, size_t size, size_t *len)
{
    char line[64];

    while (read_line(fd, line, sizeof(line))) {
        size_t chunk = strtoul(line, NULL, 16);

        if (chunk == 0)
            return read_line(fd, line, sizeof(line)) && strcmp(line, "\r\n") == 0;
        if (chunk > size - *len || !read_exactly(fd, body + *len, chunk))
            return false;
        *len += chunk;
        if (!read_line(fd, line, sizeof(line)) || strcmp(line, "\r\n") != 0)
            return false;
    }
    return false;
}

bool
scripted_read_body(int fd, const char *head, char *body, size_t size, size_t *len)
{
    const char *length = strcasestr(head, "\r\nContent-Length:");

    *len = 0;
    if (strcasestr(head, "\r\nTransfer-Encoding: chunked\r\n"))
        return read_chunks(fd, body, size, len);
    *len = length ? strtoul(length + strlen("\r\nContent-Length:"), NULL, 10) : 0;
    return *len <= size && read_exactly(fd, body, *len);
}

/* Reads the body of a request, and keeps it. */
static bool
take_body(struct origin *origin, int fd, const char *head)
{
    char *body = malloc(MAX_BODY);
    size_t len;
    bool ok = scripted_read_body(fd, head, body, MAX_BODY, &len);

    pthread_mutex_lock(&origin->lock);
    memcpy(origin->last_body, body, len < MAX_BODY ? len : MAX_BODY);
    origin->last_body_len = len;
    pthread_mutex_unlock(&origin->lock);
    free(body);
    return ok;
}

void
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

static void
scripted_count(struct origin *origin, int by)
{
    pthread_mutex_lock(&origin->lock);
    if (by > 0 && ++origin->under_way > origin->most_under_way)
        origin->most_under_way = origin->under_way;
    if (by < 0)
        origin->under_way--;
    pthread_mutex_unlock(&origin->lock);
}

static void *
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
        if (line->then != EARLY && !take_body(origin, fd, request))
            break;
        scripted_count(origin, 1);
        if (line->pause_ms)
            usleep(line->pause_ms * 1000);
        /* Before the bytes, or a test that has the answer could find it still counted. */
        scripted_count(origin, -1);
        scripted_send(fd, line->bytes, line->len ? line->len : strlen(line->bytes));
        if (line->then == HANG || line->then == EARLY)
            while (recv(fd, &drop, 1, 0) > 0)
                continue;
        going = line->then == KEEP;
    }
    shutdown(fd, SHUT_RDWR);
    pthread_mutex_lock(&origin->lock);
    origin->open--;
    pthread_mutex_unlock(&origin->lock);
    return NULL;
}

static void *
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
            origin->open++;
        }
        pthread_mutex_unlock(&origin->lock);
    }
}

int
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

struct origin *
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

struct origin *
origin_start(const struct line *script)
{
    uint16_t port;
    int fd = scripted_listen(&port, 256);

    return origin_start_on(script, fd, port);
}

unsigned
origin_requests(struct origin *origin)
{
    unsigned requests;

    pthread_mutex_lock(&origin->lock);
    requests = origin->requests;
    pthread_mutex_unlock(&origin->lock);
    return requests;
}

static unsigned
count_open(struct origin *origin)
{
    unsigned open;

    pthread_mutex_lock(&origin->lock);
    open = origin->open;
    pthread_mutex_unlock(&origin->lock);
    return open;
}

unsigned
origin_wait_open(struct origin *origin, unsigned most)
{
    unsigned open;

    for (unsigned i = 0; (open = count_open(origin)) > most && i < 20000; i++)
        usleep(1000);
    return open;
}

void
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
