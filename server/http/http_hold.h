/*
 * Responses to writes and purges are held until the peers that can be reached have taken what they
 * purge (server/peers/peer_news.h). For the exchange's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_HOLD_H
#define SUNPROXY_SERVER_HTTP_HTTP_HOLD_H

#include <stdbool.h>

struct http_exchange;

/*
 * True: the response is held, and go_on() is called, unless it has begun meanwhile or the exchange
 * has ended. False: it may begin.
 */
bool http_hold(struct http_exchange *x, void (*go_on)(struct http_exchange *x));

/* The exchange ends. Harmless for one that is not held. */
void http_hold_cancel(struct http_exchange *x);

#endif
