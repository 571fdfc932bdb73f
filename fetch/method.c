#include "fetch/method.h"

#include <stdio.h>

#include "fetch/headers.h"
#include "http/field.h"

bool
method_is(struct span method, const char *name)
{
    if (method.len == 0)
        return strcmp(name, "GET") == 0;
    return span_equal(method, span_str(name));
}

static enum fetch_error
bad_method(char *why, size_t why_size, const char *reason)
{
    snprintf(why, why_size, "%s", reason);
    return FETCH_BAD_METHOD;
}

enum fetch_error
method_check(const struct fetch_request *request, char *why, size_t why_size)
{
    struct span method = request->method;
    bool has_body = request->body.kind != FETCH_BODY_NONE;

    if (method.len > METHOD_MAX)
        return bad_method(why, why_size, "the method is longer than 64 bytes");
    if (method.len && !http_is_token(method))
        return bad_method(why, why_size, "the method is no token");
    if (method_is(method, "CONNECT"))
        return bad_method(why, why_size, "CONNECT is a request for a tunnel, not for a resource");
    /* Content in a HEAD has no meaning, and may be used to smuggle a request (RFC 9110, section
     * 9.3.2); TRACE must have none (9.3.8). */
    if (has_body && (method_is(method, "HEAD") || method_is(method, "TRACE")))
        return bad_method(why, why_size, "a request with the method HEAD or TRACE has no body");
    return FETCH_OK;
}

bool
method_may_repeat(const struct fetch_request *request)
{
    static const char *const safe[] = {"GET", "HEAD", "OPTIONS", "TRACE", NULL};

    for (size_t i = 0; safe[i]; i++)
        if (method_is(request->method, safe[i]))
            return request->body.kind != FETCH_BODY_SUPPLIED;
    return false;
}

bool
method_may_follow(const struct fetch_request *request)
{
    return !(request->flags & FETCH_NO_REDIRECTS) && request->body.kind == FETCH_BODY_NONE &&
           (method_is(request->method, "GET") || method_is(request->method, "HEAD"));
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
