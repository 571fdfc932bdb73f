/*
 * Serving a request for a page, whichever protocol version asks: from the cache at once, or by a
 * fetch that the request waits for, deferred.
 */
#ifndef SUNPROXY_SERVER_SERVE_H
#define SUNPROXY_SERVER_SERVE_H

#include "server/outcome.h"
#include "server/service.h"

/* What a request asks for. Spans are valid during the call. */
struct serve_request {
    struct rpc_request *rpc;
    unsigned version; /* of the protocol: how to answer when the answer is deferred */
    struct span url;
    struct span headers; /* for the origin */
    unsigned flags;      /* of enum proxy_flag */
};

enum serve_result {
    SERVE_PAGE,     /* answer.page now; it is held until the reply is out */
    SERVE_FAILURE,  /* answer.status and .sentence now */
    SERVE_DEFERRED, /* the answer comes later, in the version's form */
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

/*
 * How a deferred answer is sent, one function a protocol version (procedures.c). It holds what the
 * reply refers to and ends in rpc_request_reply() or rpc_request_error().
 */
struct serve_late_answer {
    struct rpc_request *rpc;
    struct outcome *outcome; /* a reference that the function takes over */
    proxy_source source;     /* if there is a page */
    bool show_victims;
};
void serve_reply_1(const struct serve_late_answer *answer);
void serve_reply_2(const struct serve_late_answer *answer);

#endif
