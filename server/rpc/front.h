/*
 * What the fronts of both versions of the protocol share: the exchange of an RPC request, its
 * content, its reply, now or later, and what the logs have of it. A front decodes a call into an
 * exchange (proxy/exchange.h) and encodes what comes of it: front_v1.c, front_v2.c. On the
 * request's worker.
 *
 * A request is a GET of a URL with the fields of front_target_fields(), and reads the objects that
 * HTTP reads. Its clients know neither redirects nor freshness. So the front follows redirects
 * (front_follow.h): each URL on the way is an exchange of its own. Where responses are not stored
 * as origins allow (--freshness off), the last one is stored under the first URL, as the paper's
 * proxy does.
 */
#ifndef SUNPROXY_SERVER_RPC_FRONT_H
#define SUNPROXY_SERVER_RPC_FRONT_H

#include <rpc/rpc.h>

#include "base/container_of.h"
#include "net/worker.h"
#include "proxy/exchange.h"
#include "server/rpc/content.h"
#include "server/service.h"

struct front_exchange;

/* One version of the protocol. */
struct front_version {
    struct front front; /* FRONT_FOR_VERSIONS */
    /* The content has begun: answers, now or later. Also called after front_answer_later(). */
    void (*answer)(struct front_exchange *front);
    /* As those of struct front, of the last exchange. */
    void (*more)(struct exchange *exchange);
    void (*fail)(struct exchange *exchange, enum failure why, struct span sentence);
    const char *protocol;        /* in the request database */
    enum metric requests, bytes; /* that count its requests, and its bytes of bodies */
};

/*
 * PASSES -redirect, or what was not asked for-> LEAVES, -the exchange has ended-> STARTS;
 * STARTS -exchange_start()-> PASSES
 */
enum front_stage {
    FRONT_PASSES, /* what comes of the exchange goes to the version */
    FRONT_LEAVES, /* the exchange is being cancelled */
    FRONT_STARTS, /* another one is to start, or the request fails: `why` */
};

struct front_way;

/* In the request's own memory: rpc_request_data(). */
struct front_exchange {
    struct exchange exchange; /* first */
    struct request request;   /* of the exchange */
    struct span own_fields;   /* the client's, valid while the procedure runs; may be empty */
    struct span before_rules; /* the URL, while an exchange is started (front_rules.h) */
    enum front_stage stage;
    bool *redirected;       /* while an exchange is being started: set when stage is FRONT_STARTS;
                               otherwise NULL */
    struct front_way *way;  /* of a request that was redirected; or NULL */
    enum failure why;       /* why it fails after FRONT_LEAVES; 0: it does not */
    const char *sentence;   /* of `why`: static, or in `way` */
    struct net_task task;   /* runs the exchange after a wake-up */
    struct net_task later;  /* front_run_later(); `run` is NULL while it is not posted */
    struct content content; /* what the client gets of the exchange's object; from head() on */
    struct content_piece piece; /* of the request's own answer, until that is written */
    void *result;               /* of the procedure while it runs, otherwise NULL */
    bool has_result;            /* the procedure returns it */
    bool show_victims;
    bool edits; /* rules change the fields */
    bool begun; /* what the front has behind it is in use (cursor.h) */
};

static inline struct front_exchange *
front_of(struct exchange *exchange)
{
    return (struct front_exchange *)exchange;
}

static inline struct rpc_request *
front_request(struct front_exchange *front)
{
    return rpc_request_of_data(front);
}

/* The configuration with which the exchange begins, while it is being started. */
static inline const struct config *
front_config(const struct front_exchange *front)
{
    return container_of(front->exchange.request->rules, const struct config, rules.shared);
}

/* Bytes for a field of XDR's types, which are not const: encoding does not change them. */
static inline char *
front_bytes(struct span span)
{
    return (char *)(uintptr_t)span.ptr;
}

static inline const struct front_version *
front_version_of(const struct front_exchange *front)
{
    return container_of(front->exchange.front, struct front_version, front);
}

/* The exchange of a request, all zero but for what is the same in both versions. */
struct front_exchange *front_begin(struct rpc_request *request,
                                   const struct front_version *version);

/* In head(): the content of the exchange's object. */
void front_begin_content(struct front_exchange *front);

/* The content has failed. A stored one that does not decode is removed: another response may
 * decode. */
void front_drop_broken(const struct front_exchange *front);

/* Has `run` called in another turn of the loop, with `front->later`, whose `run` it clears. False:
 * that has been done already. What is in `front` must stay until then. */
bool front_run_later(struct front_exchange *front, void (*run)(struct net_task *later));

/* The content is not found in this turn of the loop: has the version answer in another one. If the
 * client has gone by then, the request fails. */
void front_answer_later(struct front_exchange *front);

/*
 * Answers with a result of `size` bytes, which `encode` encodes. What it refers to is the
 * exchange's, or static, or short and valid until the procedure returns. If `piece`, a whole body,
 * is given, it is the result's last field, and empty in the result if it is not inline
 * (content_piece_inline()).
 */
void front_reply(struct front_exchange *front, xdrproc_t encode, void *result, size_t size,
                 const struct content_piece *piece);

/* Answers a deferred request with a result whose last field, empty in the result, is this piece. */
void front_reply_piece(struct rpc_request *request, xdrproc_t encode, void *result,
                       const struct content_piece *piece);

/* Counts an answer; or bytes of the body that have been queued after it. */
void front_count_answer(struct front_exchange *front, uint64_t bytes);
void front_count_bytes(struct front_exchange *front, uint64_t bytes);

/* Releases what the exchange has and what was made of it; for rpc_request_hold(). */
void front_end_exchange(void *front);

/* Answers with an RPC error. */
void front_error(struct front_exchange *front, enum rpc_error error);

/* Logs the request: with the exchange's object and the bytes of its body that were sent, or with a
 * failure. */
void front_log_object(struct front_exchange *front, uint64_t bytes);
void front_log_failure(struct front_exchange *front, enum failure why);

#endif
