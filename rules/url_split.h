/*
 * A URL split into what conditions are about, with its parameters; and cookies, likewise. Private
 * to rules/.
 */
#ifndef SUNPROXY_RULES_URL_SPLIT_H
#define SUNPROXY_RULES_URL_SPLIT_H

#include "base/span.h"

/* A URL taken apart. */
struct rules_url {
    struct span scheme;
    struct span host; /* without the port; of an IPv4-mapped address that of IPv4 */
    struct span port; /* digits, if one is stated */
    struct span authority;
    struct span path;
    struct span plain; /* the path for conditions: rules_url_split() */
    struct span query; /* without the "?"; NULL pointer: none */
};

/*
 * Conditions are about a path as origins may understand it: with unreserved characters decoded,
 * without dot segments (RFC 3986 section 6.2.2) and with one slash where there are several. If the
 * path is another one than that, `plain` is in memory of this thread until the next call.
 */
void rules_url_split(struct span url, struct rules_url *parts);

/*
 * A parameter, or its name, as an origin understands it: with unreserved characters decoded. If
 * that is another text, it is in memory of this thread until the next call.
 */
struct span rules_plain_parameter(struct span parameter);

/* The host in an IPv4-mapped IPv6 address is the IPv4 address; another host is itself. */
struct span rules_plain_host(struct span host);

/* The next "NAME=VALUE" of a query, or of the value of a Cookie; false at the end. */
bool rules_next_parameter(struct span *query, struct span *parameter, struct span *name);
bool rules_next_cookie(struct span *cookies, struct span *cookie, struct span *name);

#endif
