#include "tests/unit/client/served_http.h"

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define MOST_CONNECTIONS 16

/* What is answered for a path; then the connection closes if `closes`. */
static const struct {
    const char *path, *answer;
    bool closes;
} answers[] = {
    {"/moved", "HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 5\r\n\r\nmoved", false},
    {"/away", "HTTP/1.1 307 X\r\nLocation: http://k/b\r\nContent-Length: 0\r\n\r\n", false},
    {"/astray", "HTTP/1.1 302 Found\r\nLocation: ftp://k/\r\nContent-Length: 0\r\n\r\n", false},
    {"/404", "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", false},
    {"/504",
     "HTTP/1.1 504 X\r\nCache-Status: c; detail=\"a, b; hit\"\r\nContent-Length: 2\r\n\r\nno",
     false},
    {"/stored504", "HTTP/1.1 504 X\r\nCache-Status: c; hit\r\nContent-Length: 2\r\n\r\nno", false},
    {"/chunked",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n"
     "X-Trailer: t\r\n\r\n",
     false},
    {"/interim",
     "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
     false},
    {"/close", "HTTP/1.0 200 OK\r\n\r\nto the end", true},
    {"/cut", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", true},
    {"/cut-chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal", true},
    {"/cut-head", "HTTP/1.1 200 OK\r\nContent-Le", true},
    {"/nothing", "", true},
    {"/garbage", "this is not HTTP\r\n\r\n", true},
    {"/bad-chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", true},
};

static bool
put(int fd, const char *text, size_t len)
{
    return send(fd, text, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* A head of more than 256 KiB in lines of 1 KiB. */
static bool
put_endless_head(int fd)
{
    char line[1024];
    bool sent = put(fd, "HTTP/1.1 200 OK\r\n", 17);

    memset(line, 'x', sizeof(line));
    memcpy(line, "X: ", 3);
    memcpy(line + sizeof(line) - 2, "\r\n", 2);
    for (int i = 0; sent && i < 300; i++)
        sent = put(fd, line, sizeof(line));
    return false;
}

/* Answers one request; false when the connection is to be closed. */
static bool
answer(int fd)
{
    char request[8192], response[8192], path[256] = "";
    const char *head_end = NULL, *body, *field;
    size_t len = 0, wanted;

    while (!head_end && len + 1 < sizeof(request)) {
        ssize_t count = recv(fd, request + len, sizeof(request) - 1 - len, 0);

        if (count <= 0)
            return false;
        len += (size_t)count;
        request[len] = '\0';
        head_end = strstr(request, "\r\n\r\n");
    }
    if (!head_end || sscanf(request, "%*s http://%*[^/]%255s", path) != 1)
        return false;
    body = head_end + 4;
    field = strstr(request, "Content-Length: ");
    wanted = (size_t)(body - request) + (field ? (size_t)atoi(field + 16) : 0);
    while (len < wanted && wanted < sizeof(request)) {
        ssize_t count = recv(fd, request + len, wanted - len, 0);

        if (count <= 0)
            return false;
        len += (size_t)count;
    }
    request[len] = '\0';
    if (strcmp(path, "/endless") == 0)
        return put_endless_head(fd);
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
        if (strcmp(path, answers[i].path) == 0)
            return put(fd, answers[i].answer, strlen(answers[i].answer)) && !answers[i].closes;
    if (!*body)
        body = path;
    snprintf(response, sizeof(response),
             "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nAge: 3\r\nContent-Type: text/x\r\n"
             "Cache-Status: c; hit\r\n\r\n%.4000s",
             strlen(body), strncmp(request, "HEAD", 4) == 0 ? "" : body);
    return put(fd, response, strlen(response));
}

static void *
serve(void *context)
{
    struct served_http *served = context;
    struct pollfd fds[MOST_CONNECTIONS] = {{.fd = served->stop[0], .events = POLLIN},
                                           {.fd = served->listener, .events = POLLIN}};
    nfds_t count = 2;

    while (poll(fds, count, -1) > 0 && fds[0].revents == 0) {
        for (nfds_t i = 2; i < count; i++)
            if (fds[i].revents != 0 && !answer(fds[i].fd)) {
                close(fds[i].fd);
                fds[i--] = fds[--count];
            }
        if (fds[1].revents != 0 && count < MOST_CONNECTIONS) {
            int fd = accept(served->listener, NULL, NULL);

            if (fd >= 0)
                fds[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
        }
    }
    while (count > 2)
        close(fds[--count].fd);
    return NULL;
}

void
served_http_start(struct served_http *served)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(served->path, sizeof(served->path), "%s/h", served->folder);
    memcpy(address.sun_path, served->path, sizeof(address.sun_path));
    served->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(served->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(served->listener, MOST_CONNECTIONS), 0);
    ck_assert_int_eq(pipe(served->stop), 0);
    ck_assert_int_eq(pthread_create(&served->thread, NULL, serve, served), 0);
}

void
served_http_stop(struct served_http *served)
{
    close(served->stop[1]);
    ck_assert_int_eq(pthread_join(served->thread, NULL), 0);
    close(served->stop[0]);
    close(served->listener);
    unlink(served->path);
}
