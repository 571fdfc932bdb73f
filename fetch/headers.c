#include "fetch/headers.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "http/field.h"
#include "http/target.h"

bool
headers_is_proxy_field(struct span name)
{
    return name.len >= 6 && strncasecmp(name.ptr, "Proxy-", 6) == 0;
}

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
is_allowed(const struct fetch_request *request, struct span name)
{
    if (http_name_is(name, "Accept-Encoding"))
        return request->flags & FETCH_UNDECODED;
    if (http_name_is(name, "Content-Encoding"))
        return request->body.kind != FETCH_BODY_NONE;
    return !http_name_is_one_of(name, reserved) && !headers_is_proxy_field(name);
}

enum fetch_error
headers_check(const struct fetch_request *request, char *why, size_t why_size)
{
    struct span headers = request->headers;
    struct span line, name, value;
    struct http_authority host;

    if (request->host.len && !http_authority_read(request->host, &host))
        return bad_headers(why, why_size, "Host is not a host, or a host and a port");
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

bool
headers_to_list(const struct fetch_request *request, struct headers_for hop,
                struct curl_slist **list)
{
    static const char *const secrets[] = {"Authorization", "Cookie", NULL};
    static const char *const accept[] = {"Accept", NULL};
    struct span headers = request->headers;
    struct span line, name, value;
    bool ok = true;

    *list = NULL;
    while (ok && http_next_line(&headers, &line))
        if (http_split_field(line, &name, &value) &&
            (hop.credentials || !http_name_is_one_of(name, secrets)))
            ok = append_field(list, name, value);
    if (ok && hop.host && request->host.len)
        ok = append_field(list, span_str("Host"), request->host);
    /* Or libcurl accepts all. */
    if (ok && (request->flags & FETCH_UNDECODED) && !headers_have(request->headers, accept))
        ok = append(list, "Accept:");
    /* Or libcurl expects 100 (Continue) before it sends a body that is long or of unknown length.
     */
    if (ok && request->body.kind != FETCH_BODY_NONE)
        ok = append(list, "Expect:");
    if (ok)
        return true;
    curl_slist_free_all(*list);
    *list = NULL;
    return false;
}

bool
headers_have(struct span headers, const char *const *names)
{
    struct span line, name, value;

    while (http_next_line(&headers, &line))
        if (http_split_field(line, &name, &value) && http_name_is_one_of(name, names))
            return true;
    return false;
}

bool
headers_bind_connection(struct span value)
{
    while (value.len) {
        const char *comma = memchr(value.ptr, ',', value.len);
        size_t len = comma ? (size_t)(comma - value.ptr) : value.len;
        struct span member = http_trim(span_of(value.ptr, len)), scheme = member;

        for (scheme.len = 0; scheme.len < member.len && !http_is_blank(member.ptr[scheme.len]);)
            scheme.len++;
        if (http_name_is(scheme, "NTLM") || http_name_is(scheme, "Negotiate"))
            return true;
        len += comma != NULL;
        value = span_of(value.ptr + len, value.len - len);
    }
    return false;
}

bool
headers_authenticate_connection(struct span headers)
{
    struct span line, name, value;

    while (http_next_line(&headers, &line))
        if (http_split_field(line, &name, &value) && http_name_is(name, "Authorization") &&
            headers_bind_connection(value))
            return true;
    return false;
}
