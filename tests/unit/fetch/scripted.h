/*
 * Origins that play a script, for the tests of the fetcher: each reads a request, answers its path
 * with fixed bytes and then closes, keeps the connection, or hangs. A thread a connection; loopback
 * only.
 */
#ifndef SUNPROXY_TESTS_FETCH_SCRIPTED_H
#define SUNPROXY_TESTS_FETCH_SCRIPTED_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_CONNECTIONS 256
#define MAX_BODY (1u << 20) /* bytes of a request's body */

enum then {
    KEEP,
    CLOSE,
    HANG,
    EARLY /* hangs, and has answered before it reads the request's body */
};

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
    unsigned open; /* of them */
    unsigned under_way;
    unsigned most_under_way;
    unsigned requests;
    char first_request[8192];
    char last_request[8192];
    char last_body[MAX_BODY]; /* without its framing */
    size_t last_body_len;
};

/* An origin that plays the script, which must stay, until it is stopped. */
struct origin *origin_start(const struct line *script);

/* On a socket that listens already, and is closed in the end. */
struct origin *origin_start_on(const struct line *script, int fd, uint16_t port);

void origin_stop(struct origin *origin);

/* Requests that have come until now. */
unsigned origin_requests(struct origin *origin);

/* Waits until at most `most` connections are open, and returns how many are. */
unsigned origin_wait_open(struct origin *origin, unsigned most);

/* A listening socket on a free port of 127.0.0.1. */
int scripted_listen(uint16_t *port, int backlog);

/* One request's head; false at the end. */
bool scripted_read(int fd, char *text, size_t size);

/* The body that follows this head, chunks undone. False if it ends early or is too long. */
bool scripted_read_body(int fd, const char *head, char *body, size_t size, size_t *len);

/* All of the bytes, or as many as the other end takes. */
void scripted_send(int fd, const char *bytes, size_t len);

#endif
