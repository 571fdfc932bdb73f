/*
 * The header of the PROXY protocol, version 1 (a line) or 2 (binary), by which a load balancer says
 * for whom it has connected: "The PROXY protocol", haproxy.org, sections 2.1 to 2.4. A pure
 * function; safe on any thread.
 *
 * It is read strictly, since what it says is believed: a connection for a client must be TCP over
 * IPv4 or IPv6, and the parts must fill the stated length. Of the further parts of version 2 (TLVs)
 * only PP2_TYPE_SSL is interpreted. The name in PP2_TYPE_AUTHORITY is not needed: a request names
 * its host itself.
 */
#ifndef SUNPROXY_NET_PROXY_HEADER_H
#define SUNPROXY_NET_PROXY_HEADER_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/span.h"

#define PROXY_HEADER_MAX 4096u /* bytes; TLVs may be long, as those with certificates are */

enum proxy_header_result {
    PROXY_HEADER_PARTIAL,  /* it may become one: more bytes are needed */
    PROXY_HEADER_COMPLETE, /* *header is set */
    PROXY_HEADER_BAD,      /* it is none, or one that is refused */
};

struct proxy_header {
    size_t len;                      /* of the whole */
    bool local;                      /* the sender connects for itself, as to check our health, or
                                        (version 1) for a client of which it knows nothing */
    bool tls;                        /* the client has connected to the sender with TLS */
    struct sockaddr_storage address; /* of the client, with its port; unless `local` */
    socklen_t address_len;
};

/* Reads the header at the front of the bytes, which may be incomplete or have more behind it. */
enum proxy_header_result proxy_header_read(struct span bytes, struct proxy_header *header);

#endif
