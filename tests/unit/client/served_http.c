#include "tests/unit/client/served_http.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

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
answer(void *context, int fd)
{
    char request[8192], response[8192], path[256] = "";
    const char *head_end = NULL, *body, *field;
    size_t len = 0, wanted;

    (void)context;
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

void
served_http_start(struct served_http *served)
{
    local_server_start(&served->server, served->folder, "h", answer, NULL);
}

void
served_http_stop(struct served_http *served)
{
    local_server_stop(&served->server);
}
