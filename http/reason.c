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
    };

    return words[reason];
}
