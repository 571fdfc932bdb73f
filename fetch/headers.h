/*
 * What a client may send: the method and the header block of a request, and how libcurl gets them.
 */
#ifndef SUNPROXY_FETCH_HEADERS_H
#define SUNPROXY_FETCH_HEADERS_H

#include <curl/curl.h>

#include "fetch/fetch.h"

#define HEADERS_MAX 65536u /* bytes of a client's header lines */
#define METHOD_MAX 64u     /* bytes of a method */

/* The part of fetch_check_request() on the method and the field lines. */
enum fetch_error headers_check(const struct request *request, struct span fields, char *why,
                               size_t why_size);

/* What a request is sent with. */
struct headers_sent {
    struct span fields;
    struct span host;  /* the value of Host; empty: that of the URL */
    struct span proof; /* the value of PEER_FIELD, to a peer, which gets nothing about the client;
                          empty: it is sent to no peer */
    struct span client; /* likewise that of PEER_CLIENT_FIELD; may be empty */
};

/* The lines of a request as libcurl wants them; to be freed with curl_slist_free_all(). False
 * without memory. */
bool headers_to_list(const struct request *request, const struct headers_sent *sent,
                     struct curl_slist **list);

/* Has a request credentials by which a connection is authenticated (http_binds_connection())? */
bool headers_authenticate_connection(struct span headers);

#endif
