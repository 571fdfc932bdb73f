/*
 * Users of the forward proxy: which requests need one, and the user of a request (RFC 9110 section
 * 11.7, RFC 7617). Requests over AF_UNIX, of peers (http_peer.h), and to rows of --origin, need none.
 *
 * A request waits while its user is checked (server/users/users.h), which is HTTP_AWAITED. What
 * follows it on its connection waits in the net.
 *
 * A connection knows the user of its latest request that was accepted, by a hash of the field
 * Proxy-Authorization under a key of the process: with the same field the next request costs a
 * comparison.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_USER_H
#define SUNPROXY_SERVER_HTTP_HTTP_USER_H

#include <stdint.h>

#include "base/span.h"

struct client;
struct http_exchange;
struct http_service;
struct memory_account;

/* A user whose password was accepted. */
struct http_user {
    unsigned references; /* of one worker's connections, exchanges and tunnels */
    struct memory_account *account;
    struct client *client; /* a reference */
    uint64_t field;        /* hash of the value of Proxy-Authorization */
    uint64_t password;     /* hash of the user's line in the file of --users; 0: by a helper */
    uint64_t config;       /* generation of the configuration in which the user was accepted */
    int64_t until_us;      /* until when the user is not checked again */
    struct span name;      /* behind this struct */
};

/* A reference more, of NULL none; and one less, also of NULL. */
struct http_user *http_user_retain(struct http_user *user);
void http_user_release(struct http_user **user);

enum http_asked {
    HTTP_USER_SETTLED,  /* x->user is the user; NULL: none is needed */
    HTTP_USER_ANSWERED, /* a page has been sent */
    HTTP_USER_AWAITED,  /* http_exchange_resume() is called, unless the exchange ends before */
};

/* Who has sent this request for this URL? */
enum http_asked http_user_ask(struct http_exchange *x, struct span url);

/*
 * Another configuration is in force: ends the tunnels, and the requests in work, of users whom it
 * does not have with the same password. [any thread]
 */
void http_user_recheck(struct http_service *http);

#endif
