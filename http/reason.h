/*
 * Why a response is not stored, why a request was not a hit, and why a stale response was used: one
 * reason for each, in one word, for Cache-Status (RFC 9211 section 2.8), logs and the request
 * database. sunproxyd(8) has their table. Safe on any thread.
 */
#ifndef SUNPROXY_HTTP_REASON_H
#define SUNPROXY_HTTP_REASON_H

#include <stdbool.h>

enum http_reason {
    HTTP_REASON_NONE = 0, /* a response is stored, or a request is a hit */

    /* A response is not stored because of what it says, or of the request: http/storing.h. */
    HTTP_REASON_MALFORMED, /* the head is not what it should be: what it forbids is unknown */
    HTTP_REASON_NO_STORE,
    HTTP_REASON_PRIVATE,
    HTTP_REASON_SET_COOKIE,
    HTTP_REASON_VARY_ANY,
    HTTP_REASON_NO_CACHE, /* only where it is not validated */
    HTTP_REASON_STALE,    /* its lifetime had ended before it came, and it has no other use */
    HTTP_REASON_METHOD,   /* neither GET nor such a POST */
    HTTP_REASON_REQUEST_NO_STORE,
    HTTP_REASON_AUTHORIZATION,
    HTTP_REASON_COOKIE,   /* made for a request with Cookie, and nothing says that it is shared */
    HTTP_REASON_PARTIAL,  /* 206 */
    HTTP_REASON_STATUS,   /* is never stored, or not after such a request */
    HTTP_REASON_UNSTATED, /* no lifetime where the status needs one, or no lifetime and no use */

    /* A response is not stored because of its circumstances. */
    HTTP_REASON_USER_INFO,  /* there is user information in the URL */
    HTTP_REASON_FRAMING,    /* another recipient may read its framing in another way */
    HTTP_REASON_FIELDS,     /* its fields, or those that it varies by, cannot be kept */
    HTTP_REASON_TAGS,       /* its tags cannot be kept */
    HTTP_REASON_TOO_LARGE,  /* its body is */
    HTTP_REASON_MEMORY,     /* there is none for it */
    HTTP_REASON_PURGED,     /* while it was fetched, or another response came in its place */
    HTTP_REASON_PEER,       /* a peer that owns the URL keeps it */
    HTTP_REASON_POLICY,     /* the replacement policy did not admit it, or there is none */

    /* A request is passed on, and its response not stored. */
    HTTP_REASON_REQUEST_FIELDS,    /* over RPC, it has fields of its own */
    HTTP_REASON_REQUEST_BODY,      /* it has a body */
    HTTP_REASON_REQUEST_CONDITION, /* it has a condition for the origin */
    HTTP_REASON_REQUEST_RANGE,     /* it has a range that is not waited for */
    HTTP_REASON_REQUEST_USER,      /* it has Cookie or Authorization, and what is stored is not
                                      for it */
    HTTP_REASON_RULE,              /* a rule of the operator passes it on */
    HTTP_REASON_REQUEST_PASSES,    /* the client demands that, or it has waited too often */

    /* A request is a miss whose response is stored: RFC 9211 section 2.2. */
    HTTP_REASON_URI_MISS,
    HTTP_REASON_VARY_MISS,
    HTTP_REASON_MISS,    /* one of the two */
    HTTP_REASON_EXPIRED, /* what was stored was not fresh */
    HTTP_REASON_REQUEST, /* it did not accept what was stored */

    /* A stale response is used. */
    HTTP_REASON_MAX_STALE,
    HTTP_REASON_WHILE_REVALIDATE,
    HTTP_REASON_IF_ERROR,
    HTTP_REASON_DISCONNECTED,

    /* The forward proxy answers with status 407, or 503 (RFC 9110 section 11.7). */
    HTTP_REASON_USER_DEMANDED,  /* the request names no user */
    HTTP_REASON_USER_REFUSED,   /* the user that it names is not one, or has another password */
    HTTP_REASON_USER_UNCHECKED, /* the user could not be checked */

    HTTP_REASON_COUNT,
};

/* A token, static; "" for HTTP_REASON_NONE. */
const char *http_reason_word(enum http_reason reason);

/* What it says to a person, with the section of the RFC that it follows, if it does; static. "" for
 * HTTP_REASON_NONE. */
const char *http_reason_sentence(enum http_reason reason);

#endif
