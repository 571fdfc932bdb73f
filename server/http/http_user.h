/*
 * Users of the forward proxy whose passwords were accepted (http_authenticate.h): of one worker's
 * connections, exchanges and tunnels. Everything here is for that worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_USER_H
#define SUNPROXY_SERVER_HTTP_HTTP_USER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

struct client;
struct config;
struct http_exchange;
struct memory_account;

struct http_user {
    unsigned references;
    struct memory_account *account;
    struct client *client; /* a reference */
    uint64_t field;        /* hash of the value of Proxy-Authorization */
    uint64_t password;     /* hash of the user's line in the file of --users; 0: by a helper */
    uint64_t config;       /* generation of the configuration in which the user was accepted */
    int64_t until_us;      /* until when the user is not checked again */
    struct span name;      /* behind this struct */
};

/* The user of a request, whose field has this hash: a reference, the caller's. NULL without memory. */
struct http_user *http_user_create(struct http_exchange *x, struct span name, uint64_t field,
                                   int64_t until_us);

/* A reference more, of NULL none; and one less, also of NULL. */
struct http_user *http_user_retain(struct http_user *user);
void http_user_release(struct http_user **user);

/* Does the configuration have the user with the same password, as far as it knows? */
bool http_user_is_known(const struct http_user *user, const struct config *config);

#endif
