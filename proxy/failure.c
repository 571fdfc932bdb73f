#include "proxy/failure.h"

enum failure
failure_of_fetch(enum fetch_error error)
{
    switch (error) {
    case FETCH_BAD_URL:
        return FAILURE_BAD_URL;
    case FETCH_BAD_HEADERS:
    case FETCH_BAD_METHOD:
        return FAILURE_BAD_FIELDS;
    case FETCH_DENIED:
        return FAILURE_DENIED;
    case FETCH_RESOLVE_FAILED:
        return FAILURE_RESOLVE;
    case FETCH_CONNECT_FAILED:
        return FAILURE_CONNECT;
    case FETCH_TLS_FAILED:
        return FAILURE_TLS;
    case FETCH_TIMED_OUT:
        return FAILURE_TIMEOUT;
    case FETCH_CONNECT_TIMED_OUT:
        return FAILURE_CONNECT_TIMEOUT;
    case FETCH_ORIGIN_BROKE:
        return FAILURE_ORIGIN;
    case FETCH_TOO_LARGE:
        return FAILURE_TOO_LARGE;
    case FETCH_OVERLOADED:
    case FETCH_DISPLACED:
        return FAILURE_OVERLOADED;
    case FETCH_STOPPING:
        return FAILURE_STOPPING;
    /* A body fails when its client has left, and a fetch that the proxy cancels has failed for its
     * waiters before. */
    case FETCH_BODY_FAILED:
    case FETCH_CANCELLED:
    case FETCH_INTERNAL:
    case FETCH_OK:
        break;
    }
    return FAILURE_INTERNAL;
}

struct span
failure_for_client(enum failure failure, struct span sentence)
{
    switch (failure) {
    case FAILURE_DENIED:
        return span_str("the proxy may not fetch from this address or port (its operator "
                        "allows it with --allow-net or --allow-port)");
    case FAILURE_RESOLVE:
        return span_str("the name of the origin cannot be resolved");
    case FAILURE_CONNECT:
        return span_str("the origin does not accept connections");
    case FAILURE_TLS:
        return span_str("TLS with the origin has failed");
    case FAILURE_TIMEOUT:
        return span_str("the origin took too long to respond");
    case FAILURE_CONNECT_TIMEOUT:
        return span_str("connecting to the origin took too long");
    case FAILURE_ORIGIN:
        return span_str("the origin has not sent a valid response");
    case FAILURE_TOO_LARGE:
        return span_str("the response is larger than the proxy takes");
    case FAILURE_REDIRECT:
        return span_str("the origin redirects to where the proxy does not follow");
    case FAILURE_BAD_URL:
    case FAILURE_BAD_FIELDS:
    case FAILURE_OVERLOADED:
    case FAILURE_STOPPING:
    case FAILURE_INTERNAL:
    case FAILURE_CANCELLED:
    case FAILURE_NOT_CACHED:
        break;
    }
    return sentence;
}

const char *
failure_word(enum failure failure)
{
    switch (failure) {
    case FAILURE_BAD_URL:
        return "bad_url";
    case FAILURE_BAD_FIELDS:
        return "bad_headers";
    case FAILURE_DENIED:
        return "denied";
    case FAILURE_RESOLVE:
        return "resolve_failed";
    case FAILURE_CONNECT:
        return "connect_failed";
    case FAILURE_TLS:
        return "tls_failed";
    case FAILURE_TIMEOUT:
    case FAILURE_CONNECT_TIMEOUT:
        return "timed_out";
    case FAILURE_ORIGIN:
        return "origin_broke";
    case FAILURE_TOO_LARGE:
        return "too_large";
    case FAILURE_REDIRECT:
        return "bad_redirect";
    case FAILURE_OVERLOADED:
        return "overloaded";
    case FAILURE_STOPPING:
        return "stopping";
    case FAILURE_INTERNAL:
        return "internal";
    case FAILURE_CANCELLED:
        return "cancelled";
    case FAILURE_NOT_CACHED:
        return "not_cached";
    }
    return "unknown";
}
