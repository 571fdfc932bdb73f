/*
 * What proxies in front of this one state about a request's way: X-Forwarded-For with
 * X-Forwarded-Proto and X-Forwarded-Host, or Forwarded (RFC 7239). Any client can send these
 * fields, so they are believed from trusted senders only. Safe on any thread.
 */
#ifndef SUNPROXY_HTTP_FORWARDED_H
#define SUNPROXY_HTTP_FORWARDED_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/networks.h"
#include "base/span.h"
#include "http/target.h"

/* The one that is believed. */
enum http_way_field {
    HTTP_WAY_NONE,
    HTTP_WAY_X,         /* X-Forwarded-For; X-Forwarded-Proto and X-Forwarded-Host with it */
    HTTP_WAY_FORWARDED, /* Forwarded */
};

#define HTTP_WAY_HOPS_MAX 32u /* members that are examined */

enum http_way_scheme { HTTP_SCHEME_NOT_STATED, HTTP_SCHEME_HTTP, HTTP_SCHEME_HTTPS };

struct http_way {
    struct sockaddr_storage address; /* AF_UNSPEC: none is stated, the sender is the client */
    enum http_way_scheme scheme;
    struct http_authority host; /* points into the fields; empty: not stated */
    unsigned members; /* that were read, from the last one on: the client's and those behind it */
};

/*
 * Reads the field that is believed from the field lines of a request whose sender is trusted. Each
 * proxy has appended the address that it was reached from, so the members are read from the last
 * one on, and the client is the first address that is not in `trusted`, or the first member if all
 * are. Scheme and host are those of the proxy that has stated the client, or of one behind it where
 * that states none. A member without an address ("unknown", "_hidden") ends this: the client is the
 * proxy that has stated it.
 *
 * False if a member that is examined, a scheme or a host is malformed, or if there are too many
 * members: the sender is misconfigured, or passes on what a client has made up.
 */
bool http_forwarded_read(struct span fields, enum http_way_field field,
                         const struct networks *trusted, struct http_way *forwarded);

/* Appends a node for Forwarded: an address as text, IPv6 in brackets and quotes; "unix" becomes
 * "unknown". */
void http_forwarded_append_node(struct buf *out, struct span address);

#endif
