#include "fetch/headers.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "fetch/attempt.h"
#include "http/field.h"
#include "http/response_read.h"

/* Fields of the connection, or that the fetcher sets, or whose effect it would have to implement.
 */
static const char *const reserved[] = {
    "Host",    "Connection",     "Keep-Alive",        "TE",     "Trailer", "Content-Length",
    "Upgrade", "HTTP2-Settings", "Transfer-Encoding", "Expect", NULL,
};

static enum fetch_error
bad_headers(char *why, size_t why_size, const char *reason)
{
    snprintf(why, why_size, "the request headers are malformed: %s", reason);
    return FETCH_BAD_HEADERS;
}

/* May this request have a field of this name? */
static bool
is_allowed(const struct request *request, struct span name)
{
    if (request_is_news(request))
        return true;
    if (http_name_is(name, "Content-Encoding"))
        return request->body.kind != REQUEST_BODY_NONE;
    return !http_name_is_one_of(name, reserved) && !http_is_proxy_field(name);
}

static enum fetch_error
check_fields(const struct request *request, struct span headers, char *why, size_t why_size)
{
    struct span line, name, value;

    if (headers.len > HEADERS_MAX)
        return bad_headers(why, why_size, "they are longer than 65536 bytes");
    while (headers.len) {
        const char *lf = memchr(headers.ptr, '\n', headers.len);

        if (!lf || lf == headers.ptr || lf[-1] != '\r')
            return bad_headers(why, why_size, "a line is not ended by CR LF");
        http_next_line(&headers, &line);
        if (!http_split_field(line, &name, &value))
            return bad_headers(why, why_size, "a line is not a name, a colon and a value");
        if (!http_is_value(value))
            return bad_headers(why, why_size, "there is a control character in a value");
        if (!is_allowed(request, name)) {
            snprintf(why, why_size, "the request header %.*s is not a client's to set",
                     (int)(name.len < 64 ? name.len : 64), name.ptr);
            return FETCH_BAD_HEADERS;
        }
    }
    return FETCH_OK;
}

static enum fetch_error
bad_method(char *why, size_t why_size, const char *reason)
{
    snprintf(why, why_size, "%s", reason);
    return FETCH_BAD_METHOD;
}

static enum fetch_error
check_method(const struct request *request, char *why, size_t why_size)
{
    enum http_method method = request->method;

    if (request->method_name.len > METHOD_MAX)
        return bad_method(why, why_size, "the method is longer than 64 bytes");
    if (request->method_name.len && !http_is_token(request->method_name))
        return bad_method(why, why_size, "the method is no token");
    if (method == HTTP_CONNECT)
        return bad_method(why, why_size, "CONNECT is a request for a tunnel, not for a resource");
    /* Content in a HEAD has no meaning, and may be used to smuggle a request (RFC 9110, section
     * 9.3.2); TRACE must have none (9.3.8). */
    if (request_has_body(request) && (method == HTTP_HEAD || method == HTTP_TRACE))
        return bad_method(why, why_size, "a request with the method HEAD or TRACE has no body");
    return FETCH_OK;
}

enum fetch_error
headers_check(const struct request *request, struct span fields, char *why, size_t why_size)
{
    enum fetch_error error = check_method(request, why, why_size);

    return error ? error : check_fields(request, fields, why, why_size);
}

enum fetch_error
fetch_check_request(const struct request *request, struct span fields, char *why, size_t why_size)
{
    const struct attempt first = {.choice.member = origin_route_first(request->route)};
    struct attempt_text text;
    bool has_user;
    enum fetch_error error =
        fetch_check_url(attempt_url(&first, request, &text), &has_user, why, why_size);

    return error ? error : headers_check(request, fields, why, why_size);
}

static bool
append(struct curl_slist **list, const char *text)
{
    struct curl_slist *longer = curl_slist_append(*list, text);

    if (longer)
        *list = longer;
    return longer != NULL;
}

static bool
append_field(struct curl_slist **list, struct span name, struct span value)
{
    char *text;
    bool ok;
    int len;

    /* To libcurl, "Name:" removes a field and "Name;" is how an empty one is written. */
    if (value.len)
        len = asprintf(&text, "%.*s: %.*s", (int)name.len, name.ptr, (int)value.len, value.ptr);
    else
        len = asprintf(&text, "%.*s;", (int)name.len, name.ptr);
    if (len < 0)
        return false;
    ok = append(list, text);
    free(text);
    return ok;
}

/* Who the client is, as a front states it to origins. */
static bool
is_about_client(struct span name)
{
    static const char prefix[] = "X-Forwarded-";
    static const char *const names[] = {"Forwarded", "X-Real-IP", NULL};

    return http_name_is_one_of(name, names) ||
           (name.len > sizeof(prefix) - 1 &&
            http_name_is(span_of(name.ptr, sizeof(prefix) - 1), prefix));
}

bool
headers_to_list(const struct request *request, const struct headers_sent *sent,
                struct curl_slist **list)
{
    static const char *const accept[] = {"Accept", NULL};
    struct span rest = sent->fields;
    struct span line, name, value;
    bool ok = true;

    *list = NULL;
    while (ok && http_next_line(&rest, &line))
        if (http_split_field(line, &name, &value) && !(sent->proof.len && is_about_client(name)))
            ok = append_field(list, name, value);
    if (ok && sent->host.len)
        ok = append_field(list, span_str("Host"), sent->host);
    if (ok && sent->proof.len)
        ok = append_field(list, span_str(PEER_FIELD), sent->proof);
    if (ok && sent->client.len)
        ok = append_field(list, span_str(PEER_CLIENT_FIELD), sent->client);
    /* Or libcurl accepts all. */
    if (ok && !http_has_field(sent->fields, accept))
        ok = append(list, "Accept:");
    /* Or libcurl expects 100 (Continue) before it sends a body that is long or of unknown length.
     */
    if (ok && request->body.kind != REQUEST_BODY_NONE)
        ok = append(list, "Expect:");
    if (ok)
        return true;
    curl_slist_free_all(*list);
    *list = NULL;
    return false;
}

bool
headers_authenticate_connection(struct span headers)
{
    struct span line, name, value;

    while (http_next_line(&headers, &line))
        if (http_split_field(line, &name, &value) && http_name_is(name, "Authorization") &&
            http_binds_connection(value))
            return true;
    return false;
}
