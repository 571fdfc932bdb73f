/*
 * How `sunproxy get` reaches the server: a transport fetches URLs and reports what arrives to the
 * queue. There is one for RPC (get_rpc.c) and one for HTTP (get_http.c). All in one thread.
 */
#ifndef SUNPROXY_CLIENT_GET_GET_TRANSPORT_H
#define SUNPROXY_CLIENT_GET_GET_TRANSPORT_H

#include "client/get/get.h"

#define GET_KEEP_US ((int64_t)2000000)

struct get_transport {
    /*
     * Begins the fetch of the answer's URL. May report get_queue_done() with a failure at once.
     */
    void (*begin)(struct get_transport *transport, struct get_answer *answer);

    /* After GET_PAUSE: reports the rest of the body, from here or from run(). */
    void (*resume)(struct get_transport *transport, struct get_answer *answer);

    /*
     * Ends a paused fetch without a report. NULL: none needs to be ended, since nothing is kept
     * busy by it.
     */
    void (*drop)(struct get_transport *transport, struct get_answer *answer);

    /*
     * Called every GET_KEEP_US while the output of an answer is slow or blocks, from within a
     * report of its body, or from resume(): keeps the server from giving up what it holds for the
     * page. Reports nothing. NULL: nothing is held.
     */
    void (*keep)(struct get_transport *transport, struct get_answer *answer);

    /* Waits at most `timeout_us` until something arrives, and reports it. Without a fetch under
     * way it waits for the whole time. */
    void (*run)(struct get_transport *transport, int64_t timeout_us);

    /* Ends all fetches without a report, and frees the transport. */
    void (*close)(struct get_transport *transport);
};

/* ---- what a transport reports, in this order for each answer (get_run.c) ----------------------
 */

/* A line of --verbose: '>' of the request's head, '<' of the response's, '*' about them. */
void get_queue_message(struct get_answer *answer, char kind, struct span line);

/* The head has arrived: answer->page, but for its buffers as get_answer_init() sets it, is filled.
 */
void get_queue_head(struct get_answer *answer);

enum get_take {
    GET_TAKEN,
    GET_PAUSE, /* nothing of it was taken; it is offered again after resume() */
    GET_STOP,  /* the rest is not wanted: end the fetch, and report it as done */
};

enum get_take get_queue_body(struct get_answer *answer, struct span piece);

/* The fetch has ended: with a complete page if `failure` is NULL. */
void get_queue_done(struct get_answer *answer, const struct get_failure *failure);

/* ---- transports ------------------------------------------------------------------------------ */

/*
 * Finds the server by options->server and connects; `name` becomes the server's, for messages. NULL
 * after a complaint, with what it was in *failure.
 */
struct get_transport *get_rpc_open(const struct get_options *options, char *name, size_t size,
                                   struct get_failure *failure);

/* Takes a connection. NULL without memory; the connection is closed then, too. */
struct get_transport *get_rpc_over(struct rpc_client *client, const struct get_options *options);

/* The same for options->http; connections are made when they are needed. */
struct get_transport *get_http_open(const struct get_options *options, char *name, size_t size,
                                    struct get_failure *failure);

#endif
