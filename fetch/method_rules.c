#include "fetch/method_rules.h"

#include <stdio.h>

#include "fetch/headers.h"
#include "http/field.h"
#include "http/method.h"

static enum fetch_error
bad_method(char *why, size_t why_size, const char *reason)
{
    snprintf(why, why_size, "%s", reason);
    return FETCH_BAD_METHOD;
}

enum fetch_error
method_check(const struct fetch_request *request, char *why, size_t why_size)
{
    bool has_body = request->body.kind != FETCH_BODY_NONE;
    enum http_method method = http_method_of(request->method);

    if (request->method.len > METHOD_MAX)
        return bad_method(why, why_size, "the method is longer than 64 bytes");
    if (request->method.len && !http_is_token(request->method))
        return bad_method(why, why_size, "the method is no token");
    if (method == HTTP_CONNECT)
        return bad_method(why, why_size, "CONNECT is a request for a tunnel, not for a resource");
    /* Content in a HEAD has no meaning, and may be used to smuggle a request (RFC 9110, section
     * 9.3.2); TRACE must have none (9.3.8). */
    if (has_body && (method == HTTP_HEAD || method == HTTP_TRACE))
        return bad_method(why, why_size, "a request with the method HEAD or TRACE has no body");
    return FETCH_OK;
}

bool
method_may_repeat(const struct fetch_request *request)
{
    return http_method_is_safe(http_method_of(request->method)) &&
           request->body.kind != FETCH_BODY_SUPPLIED;
}

bool
method_may_follow(const struct fetch_request *request)
{
    enum http_method method = http_method_of(request->method);

    return !(request->flags & FETCH_NO_REDIRECTS) && request->body.kind == FETCH_BODY_NONE &&
           (method == HTTP_GET || method == HTTP_HEAD);
}

enum fetch_error
fetch_check_request(const struct fetch_request *request, char *why, size_t why_size)
{
    bool has_user;
    enum fetch_error error = fetch_check_url(request->url, &has_user, why, why_size);

    if (!error)
        error = method_check(request, why, why_size);
    return error ? error : headers_check(request, why, why_size);
}
