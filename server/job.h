/*
 * A fetch under way for the requests that wait for it: sent to the fetcher, its page built and
 * stored, its outcome posted to the workers of all that waited, each of which answers through its
 * front.
 */
#ifndef SUNPROXY_SERVER_JOB_H
#define SUNPROXY_SERVER_JOB_H

#include "net/worker.h"
#include "server/serve.h"
#include "server/sharing.h"

/* A request that waits for a fetch. Lives on its worker, but for the time on the flight's list. */
struct pending {
    struct flight_waiter waiter; /* first: the flight hands these back */
    struct net_task task;
    struct service *service;
    struct rpc_request *rpc;
    size_t beside;           /* what that takes; remembered here, since replying may free it */
    struct outcome *outcome; /* set when the fetch ends */
    struct client_key client;
    proxy_status status;  /* where `sentence` is set: the failure to answer with, */
    const char *sentence; /* static, whatever the outcome is; NULL: the outcome */
    serve_reply_late *reply_late;
    bool bypass;
    bool fetched_late; /* after it had waited, so that no token was taken for its fetch */
    bool show_victims;
};

/* A fetch under way. Belongs to the fetcher's thread once submitted. */
struct job {
    struct service *service;
    struct flight *flight;    /* NULL for a bypass, */
    struct pending *pending;  /* which has one request only */
    struct client_key client; /* that it is fetched for */
    struct sharing sharing;
    struct outcome *outcome; /* made beforehand, so that a failure needs no memory to be told */
    struct intake_body body;
    uint64_t fetch; /* its number */
    size_t charged; /* for this and what the fetcher remembers of it, */
    size_t beside;  /* and for the outcome */
    int error;      /* why we ended the fetch ourselves: ENOMEM, EFBIG, ENOBUFS or 0 */
    bool no_store;  /* the fetch says so */
    bool displaced; /* given up since its client had the most fetches queued */
};

/*
 * For a request: what waits, and a job that could fetch for it. Charged to the account, and counted
 * for the client; NULL with errno EDQUOT (the client's requests that wait take as much as they
 * may), ENOBUFS (those of all clients) or ENOMEM. Freed by those below, or by the end of the fetch.
 */
struct pending *pending_create(struct service *service, const struct serve_request *request);
struct job *job_create(struct service *service, const struct client_key *client, struct span url,
                       struct span headers);

/* NULL is harmless. */
void pending_free(struct pending *pending);
void job_free(struct job *job);

/* What to answer when neither can be had for one of these errors: static text, and its status. */
const char *job_refusal(int error, proxy_status *status);

/*
 * Sends a job on its way with its flight, or the request of its bypass, set. From here on it
 * answers whoever waits, whatever happens, and frees itself.
 */
void job_submit(struct job *job, struct span headers);

#endif
