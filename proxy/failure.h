/*
 * Why a request gets no response from an origin. The numbers are this header's own: each front
 * translates them to its protocol.
 */
#ifndef SUNPROXY_PROXY_FAILURE_H
#define SUNPROXY_PROXY_FAILURE_H

#include "base/span.h"
#include "fetch/fetch.h"

enum failure {
    FAILURE_BAD_URL = 1,
    FAILURE_BAD_FIELDS, /* of the request, or its method */
    FAILURE_DENIED,
    FAILURE_RESOLVE,
    FAILURE_CONNECT,
    FAILURE_TLS,
    FAILURE_TIMEOUT,
    FAILURE_ORIGIN,
    FAILURE_TOO_LARGE,
    FAILURE_OVERLOADED, /* a limit of the proxy; the request may be repeated */
    FAILURE_STOPPING,
    FAILURE_INTERNAL,
    FAILURE_CANCELLED,       /* exchange_cancel(); of a fetch: no request waited for it any more */
    FAILURE_NOT_CACHED,      /* the request may not cause a fetch: RFC 9111 section 5.2.1.7 */
    FAILURE_CONNECT_TIMEOUT, /* a FAILURE_TIMEOUT before there was a connection */
    FAILURE_REDIRECT,        /* of a front that follows redirects; no fetch ends with it */
};

/* A sentence for people about a failure is shorter than this. */
#define FAILURE_SENTENCE 384

/* The failure of a fetch that ended with `error`, which is not FETCH_OK. */
enum failure failure_of_fetch(enum fetch_error error);

/*
 * The sentence for a client about a failure. What is said about an origin may name hosts and
 * addresses of the inside, or those that a name has there: it is for logs, and a client gets a
 * sentence on the kind of failure. What concerns the client's own request or the proxy's limits is
 * `sentence` itself.
 */
struct span failure_for_client(enum failure failure, struct span sentence);

/* The word for logs: "denied", "timed_out", as in the JSON of the client. */
const char *failure_word(enum failure failure);

#endif
