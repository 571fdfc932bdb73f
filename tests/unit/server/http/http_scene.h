/* What tests of the HTTP front begin with: a page of the test's origin, and requests for it. */
#ifndef SUNPROXY_TESTS_SERVER_HTTP_HTTP_SCENE_H
#define SUNPROXY_TESTS_SERVER_HTTP_HTTP_SCENE_H

#include "tests/unit/server/front_server.h"

#define URL "http://origin.test/page"

/* A request for it to a forward proxy, with further field lines. */
#define REQUEST(method, lines) method " " URL " HTTP/1.1\r\nHost: origin.test\r\n" lines "\r\n"

/* Starts the fronts with bodies of at most 4 MiB; front_server_stop() ends them. */
static inline void
http_begin(void)
{
    static const struct scene_options options = {.max_body = 4 * MIB};

    front_server_start(&options, VICTIMS_ALL);
}

#endif
