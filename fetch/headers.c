#include "fetch/headers.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "http/field.h"

bool
headers_is_proxy_field(struct span name)
{
    return name.len >= 6 && strncasecmp(name.ptr, "Proxy-", 6) == 0;
}

/* Fields of the connection, or that we set ourselves, or whose effect we would have to follow. */
static const char *const not_a_clients[] = {
    "Host",           "Connection",        "Keep-Alive", "TE",     "Trailer",
    "Content-Length", "Transfer-Encoding", "Upgrade",    "Expect", "Accept-Encoding",
    "HTTP2-Settings", "Content-Encoding",  NULL,
};

static enum fetch_error
bad_headers(char *why, size_t why_size, const char *reason)
{
    snprintf(why, why_size, "the request headers are malformed: %s", reason);
    return FETCH_BAD_HEADERS;
}

enum fetch_error
fetch_check_headers(struct span headers, char *why, size_t why_size)
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
        if (http_name_is_one_of(name, not_a_clients) || headers_is_proxy_field(name)) {
            snprintf(why, why_size, "the request header %.*s is not a client's to set",
                     (int)(name.len < 64 ? name.len : 64), name.ptr);
            return FETCH_BAD_HEADERS;
        }
    }
    return FETCH_OK;
}

bool
headers_to_list(struct span headers, bool credentials, struct curl_slist **list)
{
    static const char *const secrets[] = {"Authorization", "Cookie", NULL};
    struct span line, name, value;

    *list = NULL;
    while (http_next_line(&headers, &line)) {
        struct curl_slist *longer;
        char *text;
        int len;

        if (!http_split_field(line, &name, &value) ||
            (!credentials && http_name_is_one_of(name, secrets)))
            continue;
        /* To libcurl, "Name:" removes a field and "Name;" is how an empty one is written. */
        if (value.len)
            len = asprintf(&text, "%.*s: %.*s", (int)name.len, name.ptr, (int)value.len, value.ptr);
        else
            len = asprintf(&text, "%.*s;", (int)name.len, name.ptr);
        longer = len < 0 ? NULL : curl_slist_append(*list, text);
        if (len >= 0)
            free(text);
        if (!longer) {
            curl_slist_free_all(*list);
            *list = NULL;
            return false;
        }
        *list = longer;
    }
    return true;
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
