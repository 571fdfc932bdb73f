/*
 * The parts of the transport over HTTP: the transport (get_http.c), and a fetch (get_http_fetch.c).
 */
#ifndef SUNPROXY_CLIENT_GET_GET_HTTP_H
#define SUNPROXY_CLIENT_GET_GET_HTTP_H

#include <curl/curl.h>

#include "client/address.h"
#include "client/get/get_request.h"
#include "client/get/get_transport.h"

struct http_transport {
    struct get_transport base;
    const struct get_options *options;
    CURLM *multi;
    struct http_address address;
    struct http_fetch *fetches;
};

struct http_fetch {
    struct http_transport *transport;
    struct get_answer *answer;
    CURL *easy;
    struct curl_slist *lines; /* of the request */
    struct get_target target;
    struct get_data_reader data;
    const char *method;
    bool has_body;
    bool elsewhere; /* redirects have led to another server */
    unsigned redirects;

    uint64_t head_bytes;             /* of all responses so far */
    struct buf head;                 /* of the response, as far as it arrived */
    bool head_done;                  /* that of the final response */
    bool follows;                    /* it is a redirect, whose body is not wanted */
    bool stopped;                    /* the queue wants no more */
    bool paused;                     /* until the queue resumes */
    struct get_failure failure;      /* found while it arrived; status EX_OK: none */
    int64_t progress_us;             /* when something was sent or received last */
    struct http_fetch *next, **link; /* among those of the transport */
};

/*
 * Prepares a fetch and its first request. NULL after a report to the queue. The caller owns it.
 */
struct http_fetch *http_fetch_new(struct http_transport *transport, struct get_answer *answer);

void http_fetch_free(struct http_fetch *fetch);

enum http_next {
    HTTP_NEXT_NONE, /* the answer is to be reported as done: with *failure unless that is EX_OK */
    HTTP_NEXT_REQUEST, /* a redirect: the easy handle has the next request */
};

/* After libcurl has ended the request with `code`. The failure's sentence is in `text`. */
enum http_next http_fetch_ended(struct http_fetch *fetch, CURLcode code,
                                struct get_failure *failure, char *text, size_t size);

#endif
