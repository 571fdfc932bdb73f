/*
 * What the rules of the configuration (rules/rules.h) make of requests over HTTP.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_RULES_H
#define SUNPROXY_SERVER_HTTP_HTTP_RULES_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/span.h"

struct http_exchange;
struct http_page;

/* What rules have decided about a request: bits of http_exchange.ruled. */
enum http_ruled {
    HTTP_RULED_PASS = 1, /* it passes the cache by */
    HTTP_RULED_EDIT = 2, /* http_rules_edit() changes its fields */
};

/*
 * Applies the rules to a request for *url, in whose place the URL is that is to be used, in the
 * worker's memory. False: the rules answer it, and a page has been sent.
 */
bool http_rules_apply(struct http_exchange *x, struct span *url);

/* Do the rules leave it at that a request for this URL needs a user? */
bool http_rules_demand_user(const struct http_exchange *x, struct span url);

/* Calls visit() with other keys that the rules may make of a URL that is purged, each in the
 * worker's memory. */
void http_rules_visit_keys(const struct http_exchange *x, struct span url,
                           void (*visit)(void *context, struct span key), void *context);

/* Writes the URL that is to be used into the worker's memory again. */
struct span http_rules_url_again(struct http_exchange *x);

/*
 * Sends a page of the proxy's own: that which a rule has for the URL and status, or one that states
 * the reason.
 */
void http_rules_send_page(struct http_exchange *x, struct span url, unsigned status,
                          struct span reason, const char *detail);

/* Makes a page likewise, which has neither a type nor a body yet. */
void http_rules_make_page(struct http_exchange *x, struct span url, struct http_page *page);

/*
 * Sends the page that a rule has in place of the body of the exchange's object. False: none, or the
 * fields that have to stay are too long.
 */
bool http_rules_send_instead(struct http_exchange *x);

/* Edits the lines that go on to the origin, if the rules do. */
void http_rules_edit(struct http_exchange *x, struct buf *lines);

#endif
