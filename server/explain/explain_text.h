/*
 * What the daemon would do with a request, and why, in lines for an administrator: "NAME: VALUE".
 */
#ifndef SUNPROXY_SERVER_EXPLAIN_EXPLAIN_TEXT_H
#define SUNPROXY_SERVER_EXPLAIN_EXPLAIN_TEXT_H

#include "base/buf.h"
#include "server/service.h"

#define EXPLAIN_LAST 64u /* misses that are told at most */

struct explain_request {
    struct span method; /* empty: GET */
    struct span url;
    struct span lines; /* fields, each ended by CR LF; Explain-User is none of the request, but names
                          its user */
    unsigned last;     /* the number of latest misses that are told, too */
};

/*
 * Appends the lines; nothing is fetched, counted or changed. False with a sentence in `out` for a
 * request that the daemon would not take. On the worker of that number, during one call.
 */
bool explain_write(struct service *service, unsigned worker, const struct explain_request *request,
                   struct buf *out);

#endif
