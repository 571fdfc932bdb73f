/*
 * A thread that serves an AF_UNIX socket inside a test: what served.h and served_http.h share. It
 * accepts connections and has each one that is readable answered.
 */
#ifndef SUNPROXY_TESTS_UNIT_CLIENT_LOCAL_SERVER_H
#define SUNPROXY_TESTS_UNIT_CLIENT_LOCAL_SERVER_H

#include <pthread.h>
#include <stdbool.h>

/* Reads what came on a connection and answers; false when it is to be closed. [the thread] */
typedef bool local_server_answer(void *context, int fd);

struct local_server {
    char path[108]; /* of the socket */

    /* The thread's own. */
    int listener;
    int stop[2]; /* a pipe */
    local_server_answer *answer;
    void *context;
    pthread_t thread;
};

/* Listens on the socket folder/name and starts the thread. */
void local_server_start(struct local_server *server, const char *folder, const char *name,
                        local_server_answer *answer, void *context);

/* Ends the thread, closes its connections and removes the socket. */
void local_server_stop(struct local_server *server);

#endif
