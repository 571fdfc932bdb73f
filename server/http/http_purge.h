/*
 * The method PURGE, for clients of --purge-net and administrators. The field Purge has the members
 * "prefix" (all URLs that begin with the target) and "soft" (what is stored stays, and has
 * expired). With a field of tags (--tag-field) the words in it are purged by, and not the URL.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_PURGE_H
#define SUNPROXY_SERVER_HTTP_HTTP_PURGE_H

#include <stdbool.h>

struct http_exchange;
struct http_route;

/* Purges what the request names, and makes the page that states how much that was. */
void http_purge(struct http_exchange *x, const struct http_route *route);

/* Is that on disk, where there is a store? If not, the request is HTTP_AWAITED, and the page is
 * sent when it is. */
bool http_purge_is_noted(struct http_exchange *x);

#endif
