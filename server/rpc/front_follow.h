/*
 * The exchanges of an RPC request: the first one, and one for each redirect that is followed (RFC
 * 9110 section 15.4). A redirect is a response like any other to the cache. Its body is not needed.
 * What comes of the last exchange goes to the version's front.
 *
 * On the request's worker, except where marked.
 */
#ifndef SUNPROXY_SERVER_RPC_FRONT_FOLLOW_H
#define SUNPROXY_SERVER_RPC_FRONT_FOLLOW_H

#include "server/rpc/front.h"
#include "server/rpc/front_target.h"

/*
 * Starts the exchange, and those that redirects lead to. Returns what the procedure has to return:
 * TRUE if `result` is filled, to be sent; FALSE if an answer has been sent or comes later.
 */
bool_t front_start(struct front_exchange *front, void *result);

/* struct front's functions of both versions; `wake` is for any thread. */
void front_wake(struct exchange *exchange);
bool front_is_bounded(struct exchange *exchange);
void front_head(struct exchange *exchange);
void front_more(struct exchange *exchange);
void front_fail(struct exchange *exchange, enum failure why, struct span sentence);

#define FRONT_FOR_VERSIONS                                                                 \
    {                                                                                      \
        .wake = front_wake, .fields = front_target_fields, .is_bounded = front_is_bounded, \
        .head = front_head, .more = front_more, .fail = front_fail                         \
    }

#endif
