#include "http/reason.h"

const char *
http_reason_word(enum http_reason reason)
{
    static const char *const words[HTTP_REASON_COUNT] = {
        [HTTP_REASON_NONE] = "",
        [HTTP_REASON_MALFORMED] = "malformed",
        [HTTP_REASON_NO_STORE] = "no-store",
        [HTTP_REASON_PRIVATE] = "private",
        [HTTP_REASON_SET_COOKIE] = "set-cookie",
        [HTTP_REASON_VARY_ANY] = "vary-any",
        [HTTP_REASON_NO_CACHE] = "no-cache",
        [HTTP_REASON_STALE] = "stale-on-arrival",
        [HTTP_REASON_METHOD] = "method",
        [HTTP_REASON_REQUEST_NO_STORE] = "request-no-store",
        [HTTP_REASON_AUTHORIZATION] = "authorization",
        [HTTP_REASON_COOKIE] = "cookie",
        [HTTP_REASON_PARTIAL] = "partial",
        [HTTP_REASON_STATUS] = "status",
        [HTTP_REASON_UNSTATED] = "no-lifetime",
        [HTTP_REASON_USER_INFO] = "user-info",
        [HTTP_REASON_FRAMING] = "framing",
        [HTTP_REASON_FIELDS] = "fields",
        [HTTP_REASON_TAGS] = "tags",
        [HTTP_REASON_TOO_LARGE] = "too-large",
        [HTTP_REASON_MEMORY] = "memory",
        [HTTP_REASON_PURGED] = "purged",
        [HTTP_REASON_PEER] = "at-peer",
        [HTTP_REASON_POLICY] = "policy",
        [HTTP_REASON_REQUEST_FIELDS] = "request-fields",
        [HTTP_REASON_REQUEST_BODY] = "request-body",
        [HTTP_REASON_REQUEST_CONDITION] = "request-condition",
        [HTTP_REASON_REQUEST_RANGE] = "request-range",
        [HTTP_REASON_REQUEST_USER] = "request-user",
        [HTTP_REASON_RULE] = "rule",
        [HTTP_REASON_REQUEST_PASSES] = "request-passes",
        [HTTP_REASON_URI_MISS] = "uri-miss",
        [HTTP_REASON_VARY_MISS] = "vary-miss",
        [HTTP_REASON_MISS] = "miss",
        [HTTP_REASON_EXPIRED] = "stale",
        [HTTP_REASON_REQUEST] = "request",
        [HTTP_REASON_MAX_STALE] = "max-stale",
        [HTTP_REASON_WHILE_REVALIDATE] = "stale-while-revalidate",
        [HTTP_REASON_IF_ERROR] = "stale-if-error",
        [HTTP_REASON_DISCONNECTED] = "disconnected",
        [HTTP_REASON_USER_DEMANDED] = "user-demanded",
        [HTTP_REASON_USER_REFUSED] = "user-refused",
        [HTTP_REASON_USER_UNCHECKED] = "user-unchecked",
    };

    return words[reason];
}

const char *
http_reason_sentence(enum http_reason reason)
{
    static const char *const sentences[HTTP_REASON_COUNT] = {
        [HTTP_REASON_NONE] = "",
        [HTTP_REASON_MALFORMED] =
            "the head of the response is malformed, so that what it forbids is not known",
        [HTTP_REASON_NO_STORE] = "the response has no-store (RFC 9111 section 5.2.2.5)",
        [HTTP_REASON_PRIVATE] = "the response has private (RFC 9111 section 5.2.2.7)",
        [HTTP_REASON_SET_COOKIE] =
            "the response has Set-Cookie (RFC 6265 section 9.3, RFC 9111 section 7.3)",
        [HTTP_REASON_VARY_ANY] =
            "the response varies by what no request has: Vary is * (RFC 9111 section 4.1)",
        [HTTP_REASON_NO_CACHE] = "the response has no-cache (RFC 9111 section 5.2.2.4)",
        [HTTP_REASON_STALE] =
            "the lifetime of the response had ended when it came (RFC 9111 section 4.2)",
        [HTTP_REASON_METHOD] = "the method is not GET (RFC 9111 sections 3 and 4)",
        [HTTP_REASON_REQUEST_NO_STORE] = "the request has no-store (RFC 9111 section 5.2.1.5)",
        [HTTP_REASON_AUTHORIZATION] = "the request has Authorization, and the response does not "
                                      "say that it is for others (RFC 9111 section 3.5)",
        [HTTP_REASON_COOKIE] = "the request has Cookie, and the response neither states a lifetime "
                               "nor that it is for others (RFC 9111 section 7.3)",
        [HTTP_REASON_PARTIAL] = "the response is a part of another one: its status is 206",
        [HTTP_REASON_STATUS] =
            "a response of that status is not stored (RFC 9111 section 3, RFC 6585)",
        [HTTP_REASON_UNSTATED] = "the response states no lifetime, and has no validator or its "
                                 "status needs one (RFC 9111 section 3)",
        [HTTP_REASON_USER_INFO] = "there is user information in the URL",
        [HTTP_REASON_FRAMING] =
            "another recipient may read another end of the response (RFC 9112 section 6.3)",
        [HTTP_REASON_FIELDS] = "the fields of the response, or those that it varies by, are too "
                               "many or too long",
        [HTTP_REASON_TAGS] = "the tags of the response are too many or too long",
        [HTTP_REASON_TOO_LARGE] = "the body of the response is too large",
        [HTTP_REASON_MEMORY] = "there was no memory for the response",
        [HTTP_REASON_PURGED] = "the URL was purged or written to while the response was fetched, "
                               "or the configuration has changed (RFC 9111 section 4.4)",
        [HTTP_REASON_PEER] = "the response came from a peer, which keeps it, and the URL is not hot",
        [HTTP_REASON_POLICY] = "the replacement policy did not admit the response",
        [HTTP_REASON_REQUEST_FIELDS] = "the request over RPC has fields of its own",
        [HTTP_REASON_REQUEST_BODY] = "the request has a body",
        [HTTP_REASON_REQUEST_CONDITION] =
            "the request has a condition for the origin (RFC 9111 section 4.3.2)",
        [HTTP_REASON_REQUEST_RANGE] = "the request has a range that is not waited for",
        [HTTP_REASON_REQUEST_USER] = "the request has Cookie or Authorization, and what is stored "
                                     "is not for it",
        [HTTP_REASON_RULE] = "a rule of the configuration passes the request",
        [HTTP_REASON_REQUEST_PASSES] =
            "the request has waited too often for responses that were not for it",
        [HTTP_REASON_URI_MISS] = "nothing was stored for the URL",
        [HTTP_REASON_VARY_MISS] = "what was stored for the URL is for requests with other fields "
                                  "(RFC 9111 section 4.1)",
        [HTTP_REASON_MISS] = "nothing was stored for the request",
        [HTTP_REASON_EXPIRED] = "what was stored was not fresh (RFC 9111 section 4.2)",
        [HTTP_REASON_REQUEST] = "the request did not accept what was stored, although that was "
                                "fresh (RFC 9111 section 5.2.1)",
        [HTTP_REASON_MAX_STALE] =
            "the request accepted a stale response (RFC 9111 section 5.2.1.2)",
        [HTTP_REASON_WHILE_REVALIDATE] =
            "a stale response was used while it was fetched again (RFC 5861 section 3)",
        [HTTP_REASON_IF_ERROR] =
            "a stale response was used since the origin failed (RFC 5861 section 4)",
        [HTTP_REASON_DISCONNECTED] =
            "a stale response was used since the origin was not reached (RFC 9111 section 4.2.4)",
        [HTTP_REASON_USER_DEMANDED] = "the request names no user (RFC 9110 section 11.7.2)",
        [HTTP_REASON_USER_REFUSED] =
            "the request does not name a user with the right password (RFC 7617)",
        [HTTP_REASON_USER_UNCHECKED] = "the user of the request could not be checked",
    };

    return sentences[reason];
}
