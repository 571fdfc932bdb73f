/*
 * Serving a request for a page, whichever front asks (front.h): from the cache at once, or by a
 * fetch that the request waits for, deferred.
 */
#ifndef SUNPROXY_SERVER_SERVE_H
#define SUNPROXY_SERVER_SERVE_H

#include "server/outcome.h"
#include "server/service.h"

/* A deferred answer. */
struct serve_late_answer {
    struct rpc_request *rpc;
    struct outcome *outcome; /* a reference that the front takes over */
    proxy_status status;     /* PROXY_OK: the outcome has a page */
    const char *sentence;    /* otherwise; the outcome's, or static */
    proxy_source source;     /* if there is a page */
    bool show_victims;
};

/*
 * Sends a deferred answer in the form of a protocol version: holds what the reply refers to and
 * ends in rpc_request_reply() or rpc_request_error().
 */
typedef void serve_reply_late(const struct serve_late_answer *answer);

/* What a request asks for. Spans are valid during the call. */
struct serve_request {
    struct rpc_request *rpc;
    serve_reply_late *reply_late;
    struct span url;
    struct span headers; /* for the origin */
    unsigned flags;      /* of enum proxy_flag */
};

enum serve_result {
    SERVE_PAGE,     /* answer.page now; it is held until the reply is out */
    SERVE_FAILURE,  /* answer.status and .sentence now */
    SERVE_DEFERRED, /* the answer comes later, through reply_late */
};

/* What to answer at once. */
struct serve_answer {
    const struct page *page;
    proxy_status status;
    const char *sentence; /* valid until the next request on this thread */
};

/*
 * Looks up, and on a miss fetches or joins a fetch that is under way. What is answered at once is
 * counted and logged here. On the request's worker.
 */
enum serve_result serve(struct service *service, const struct serve_request *request,
                        struct serve_answer *answer);

#endif
