/*
 * The rows of --origin: which requests a reverse proxy serves, and from where. A row is
 * "[HOST]/PREFIX=MEMBER[,MEMBER...] [KEY=VALUE ...]", and a member
 * "URL[|weight=N][|max=N][|backup]". It matches requests of that host (of any host, if it is empty)
 * whose path has the prefix, up to the end of a path segment. The
 * URLs are the members of its origin (origin_route.h): one takes the place of host and
 * prefix.
 *
 * Safe on any thread once it is made.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_ORIGINS_H
#define SUNPROXY_SERVER_HTTP_HTTP_ORIGINS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/span.h"
#include "origins/origin_route.h"
#include "server/config/options.h"

struct http_origin {
    struct span host;          /* empty: any */
    struct http_origin *above; /* the row with the next shorter prefix of this one's; or NULL */
    size_t number;             /* of its value */
    struct origin_route route; /* the URLs of its members are owned */
};

struct http_origins {
    struct http_origin
        *rows; /* owned, by host and prefix; other spans point into the options */
    size_t count;
    struct origin_servers servers; /* of all members */
};

/* Reads the rows, which must stay. False with a line in `why` for each that is refused. */
bool http_origins_init(struct http_origins *origins, const struct option_list *rows,
                       struct buf *why);
void http_origins_free(struct http_origins *origins);

/* Has the servers of the members, and the budgets of the rows that both have, from other rows.
 * Before the rows are used. */
void http_origins_inherit(struct http_origins *origins, const struct http_origins *from);

/* The row with the same host and prefix as a row of another configuration, or NULL. */
struct http_origin *http_origins_find_same(const struct http_origins *origins,
                                           const struct http_origin *row);

/*
 * The row for a request: one with its host before one for any host, then the one with the longest
 * prefix, and of "/a/" and "/a" the first one. So the order in which rows are given has no meaning.
 * Takes the logarithm of their number. NULL if none matches. `path` as in struct http_request.
 */
struct http_origin *http_origins_find(const struct http_origins *origins, struct span host,
                                      struct span path);

/*
 * Writes the client's URL for a request that the row matches: its path below scheme, host and port
 * as http_write_url() does. Without a host they are those of the row, or of its first member.
 * Returns the number of bytes; 0 if they are more than `size`, or if the URL of a member would be
 * longer.
 */
struct http_origin_request {
    bool https;
    struct span host; /* may be empty */
    uint16_t port;
    struct span path;
};
size_t http_origin_write_url(const struct http_origin *row,
                             const struct http_origin_request *request, char *out, size_t size);

#endif
