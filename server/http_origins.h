/*
 * The rows of --origin: which requests a reverse proxy serves, and from where. A row is
 * "[HOST]/PREFIX=URL[,URL...]". It matches requests of that host (of any host, if it is empty)
 * whose path has the prefix, up to the end of a path segment. A URL takes the place of host and
 * prefix.
 *
 * Safe on any thread once it is made.
 */
#ifndef SUNPROXY_SERVER_HTTP_ORIGINS_H
#define SUNPROXY_SERVER_HTTP_ORIGINS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/span.h"
#include "server/options.h"

#define HTTP_ORIGIN_MOST_URLS 16

struct http_origin {
    struct span host;
    struct span prefix; /* without a slash at its end */
    bool below;         /* it was given with a slash at its end: it must be followed by one */
    _Atomic unsigned preferred; /* the URL that is tried first: the one before it has failed */
    unsigned url_count;         /* at least 1 */
    struct span urls[HTTP_ORIGIN_MOST_URLS]; /* owned; as fetch_normal_url() spells them, but
                                                without a slash at their ends */
};

struct http_origins {
    struct http_origin
        *rows; /* owned, the most specific first; other spans point into the options */
    size_t count;
};

/* Reads the rows, which must stay. False with a sentence in `why`. */
bool http_origins_init(struct http_origins *origins, const struct option_list *rows,
                       struct buf *why);
void http_origins_free(struct http_origins *origins);

/*
 * Has the path a segment "..", be it written with "%2e" (RFC 3986 section 6.2.2.2)? An origin that
 * removes it would serve what is outside of the row. Segments are what any origin takes for one:
 * some drop the parameters of a segment ("..;x", RFC 3986 section 3.3) before they look, and some
 * decode "%2f", or take a backslash for a slash. The query does not count; nor does a segment ".",
 * which leads nowhere, and which apt sends for a flat repository.
 */
bool http_origins_path_leads_up(struct span path);

/*
 * The row for a request: one with its host before one for any host, then the one with the longest
 * prefix. NULL if none matches. `path` as in struct http_request.
 */
struct http_origin *http_origins_find(const struct http_origins *origins, struct span host,
                                      struct span path);

/* No connection could be made for the URL with this number. Returns the next one's number. */
unsigned http_origin_failed(struct http_origin *row, unsigned number);

/*
 * Writes the URL for a path that the row matches, from its URL with this number. Returns the number
 * of bytes; 0 if they are more than `size`.
 */
size_t http_origin_write_url(const struct http_origin *row, unsigned number, struct span path,
                             char *out, size_t size);

#endif
