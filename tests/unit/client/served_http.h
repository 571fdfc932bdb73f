/*
 * A proxy on a thread of its own that answers requests over HTTP in ways that follow from the URL:
 * for `sunproxy get --http` inside a test. It listens on an AF_UNIX socket.
 */
#ifndef SUNPROXY_TESTS_UNIT_CLIENT_SERVED_HTTP_H
#define SUNPROXY_TESTS_UNIT_CLIENT_SERVED_HTTP_H

#include "tests/unit/client/local_server.h"

struct served_http {
    /* Given before served_http_start(). */
    const char *folder; /* has the socket as "h" */

    struct local_server server;
};

/*
 * The body for http://h/PATH is /PATH, and so is the request's body for one that has any, unless
 * the PATH is in the table of served_http.c. The thread reads request bodies with a Content-Length.
 */
void served_http_start(struct served_http *served);
void served_http_stop(struct served_http *served);

#endif
