#include "fetch/url.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/span.h"
#include "http/target.h"

bool
address_parse(const char *host, uint16_t port, union address *address)
{
    memset(address, 0, sizeof(*address));
    if (inet_pton(AF_INET, host, &address->in.sin_addr) == 1) {
        address->in.sin_family = AF_INET;
        address->in.sin_port = htons(port);
        return true;
    }
    if (inet_pton(AF_INET6, host, &address->in6.sin6_addr) == 1) {
        address->in6.sin6_family = AF_INET6;
        address->in6.sin6_port = htons(port);
        return true;
    }
    return false;
}

const char *
address_format(const union address *address, char *text, size_t size)
{
    const void *bytes = address->any.sa_family == AF_INET ? (const void *)&address->in.sin_addr
                                                          : (const void *)&address->in6.sin6_addr;

    if (!inet_ntop(address->any.sa_family, bytes, text, (socklen_t)size))
        snprintf(text, size, "an unknown address");
    return text;
}

bool
host_is_name(const char *host)
{
    size_t len = strlen(host);

    if (len == 0 || len > HOST_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)host[i]) && !strchr("-_.", host[i]))
            return false;
    return true;
}

static enum fetch_error
bad_url(char *why, size_t why_size, const char *reason)
{
    snprintf(why, why_size, "invalid URL: %s", reason);
    return FETCH_BAD_URL;
}

static enum fetch_error
from_parser(CURLUcode code, char *why, size_t why_size)
{
    if (code == CURLUE_OUT_OF_MEMORY) {
        snprintf(why, why_size, "out of memory");
        return FETCH_INTERNAL;
    }
    if (code == CURLUE_UNSUPPORTED_SCHEME || code == CURLUE_NO_SCHEME || code == CURLUE_BAD_SCHEME)
        return bad_url(why, why_size, "its scheme is neither http nor https");
    return bad_url(why, why_size, curl_url_strerror(code));
}

/* One part as a string of our own; libcurl's memory stays libcurl's. */
static CURLUcode
get_part(CURLU *url, CURLUPart part, unsigned flags, char **copy)
{
    char *text = NULL;
    CURLUcode code = curl_url_get(url, part, &text, flags);

    if (code && text) {
        /* libcurl 7.88 on a name that has no ASCII form: it keeps the name, and says that
         * it is out of memory. */
        curl_free(text);
        return CURLUE_BAD_HOSTNAME;
    }
    if (code)
        return code;
    *copy = strdup(text);
    curl_free(text);
    return *copy ? CURLUE_OK : CURLUE_OUT_OF_MEMORY;
}

static CURLUcode
get_host(struct target *target)
{
    CURLUcode code = get_part(target->url, CURLUPART_HOST, CURLU_PUNYCODE, &target->host);
    size_t len;

    if (code)
        return code;
    for (char *c = target->host; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    /* A dot at the end changes no name, and must not make one of an address. */
    len = strlen(target->host);
    if (len > 1 && target->host[len - 1] == '.')
        target->host[--len] = '\0';
    if (len > 0 && target->host[len - 1] == '.')
        return CURLUE_BAD_HOSTNAME;
    /* An internationalised name goes on in ASCII, under which it will be pinned. */
    code = curl_url_set(target->url, CURLUPART_HOST, target->host, 0);
    if (code)
        return code;
    if (target->host[0] == '[' && target->host[len - 1] == ']') {
        memmove(target->host, target->host + 1, len - 2);
        target->host[len - 2] = '\0';
    }
    return CURLUE_OK;
}

static CURLUcode
get_port(struct target *target)
{
    char *text;
    CURLUcode code = curl_url_get(target->url, CURLUPART_PORT, &text, CURLU_DEFAULT_PORT);
    unsigned long port;

    if (code)
        return code;
    port = strtoul(text, NULL, 10);
    curl_free(text);
    if (port == 0 || port > UINT16_MAX)
        return CURLUE_BAD_PORT_NUMBER;
    target->port = (uint16_t)port;
    return CURLUE_OK;
}

static CURLUcode
get_scheme(struct target *target)
{
    char *text;
    CURLUcode code = curl_url_get(target->url, CURLUPART_SCHEME, &text, 0);

    if (code)
        return code;
    target->https = strcasecmp(text, "https") == 0;
    if (!target->https && strcasecmp(text, "http") != 0)
        code = CURLUE_UNSUPPORTED_SCHEME;
    curl_free(text);
    return code;
}

/* Is a user or a password stated? */
static CURLUcode
get_user(struct target *target)
{
    static const CURLUPart parts[] = {CURLUPART_USER, CURLUPART_PASSWORD};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        char *text;
        CURLUcode code = curl_url_get(target->url, parts[i], &text, 0);

        if (code == CURLUE_NO_USER || code == CURLUE_NO_PASSWORD)
            continue;
        if (code)
            return code;
        curl_free(text);
        target->has_user = true;
    }
    return CURLUE_OK;
}

/* libcurl encodes what is not ASCII in a path when it sends that, but a query it sends as it is. */
static CURLUcode
encode_query(struct target *target)
{
    char *text = NULL, *encoded = NULL;
    CURLUcode code = curl_url_get(target->url, CURLUPART_QUERY, &text, 0);
    bool stays = code || span_is_ascii(span_str(text));

    curl_free(text);
    if (stays)
        return code == CURLUE_NO_QUERY ? CURLUE_OK : code;
    code = curl_url_get(target->url, CURLUPART_QUERY, &encoded, CURLU_URLENCODE);
    if (code == CURLUE_OK)
        code = curl_url_set(target->url, CURLUPART_QUERY, encoded, 0);
    curl_free(encoded);
    return code;
}

/* A zone (RFC 6874) has a meaning on its own machine alone. */
static CURLUcode
refuse_zone(struct target *target)
{
    char *text;
    CURLUcode code = curl_url_get(target->url, CURLUPART_ZONEID, &text, 0);

    if (code == CURLUE_OK)
        curl_free(text);
    return code == CURLUE_NO_ZONEID ? CURLUE_OK : code ? code : CURLUE_BAD_IPV6;
}

/* Fills in the rest once target->url holds the URL. */
static enum fetch_error
take_apart(struct target *target, char *why, size_t why_size)
{
    CURLUcode code = get_scheme(target);
    struct http_authority authority;

    if (!code)
        code = refuse_zone(target);
    if (!code)
        code = get_host(target);
    if (!code)
        code = get_port(target);
    if (!code)
        code = get_user(target);
    if (!code)
        code = encode_query(target);
    if (!code)
        code = get_part(target->url, CURLUPART_URL, 0, &target->text);
    if (code)
        return from_parser(code, why, why_size);
    if (strlen(target->text) > URL_MAX)
        return bad_url(why, why_size, "it is longer than 8192 bytes");
    target->literal = address_parse(target->host, target->port, &target->address);
    if (!target->literal &&
        (!host_is_name(target->host) || !http_authority_read(span_str(target->host), &authority)))
        return bad_url(why, why_size, "its host is neither a name nor an address");
    if (asprintf(&target->origin, "%s://%s:%u", target->https ? "https" : "http", target->host,
                 target->port) < 0) {
        target->origin = NULL;
        return from_parser(CURLUE_OUT_OF_MEMORY, why, why_size);
    }
    return FETCH_OK;
}

enum fetch_error
target_parse(struct target *target, struct span url, char *why, size_t why_size)
{
    enum fetch_error error;
    CURLUcode code;
    char *text;

    *target = (struct target){0};
    if (url.len == 0)
        return bad_url(why, why_size, "it is empty");
    if (url.len > URL_MAX)
        return bad_url(why, why_size, "it is longer than 8192 bytes");
    if (span_has_zero(url))
        return bad_url(why, why_size, "it has a zero byte in it");
    text = strndup(url.ptr, url.len);
    target->url = curl_url();
    code = text && target->url ? curl_url_set(target->url, CURLUPART_URL, text, CURLU_PATH_AS_IS)
                               : CURLUE_OUT_OF_MEMORY;
    free(text);
    error = code ? from_parser(code, why, why_size) : take_apart(target, why, why_size);
    if (error)
        target_free(target);
    return error;
}

void
target_free(struct target *target)
{
    curl_url_cleanup(target->url);
    free(target->text);
    free(target->host);
    free(target->origin);
    *target = (struct target){0};
}

/*
 * Is it a URL of the usual form, which target_parse() accepts and which has no user: scheme, name
 * or IPv4 address, port, and a path of visible ASCII? The check of a miss then needs no parser of
 * libcurl, which runs when the fetch begins: that was 17,000 of a miss's 157,000 instructions.
 */
static bool
is_usual(struct span url)
{
    struct http_authority authority;
    struct span rest = url;
    size_t host = 0;
    bool https;

    if (url.len > URL_MAX / 2 || !http_take_scheme(&rest, &https))
        return false;
    while (host < rest.len && rest.ptr[host] != '/')
        host++;
    if (host == rest.len || !http_authority_read(span_of(rest.ptr, host), &authority) ||
        authority.host.len > HOST_MAX || authority.host.ptr[0] == '[')
        return false;
    for (size_t i = host; i < rest.len; i++)
        if (rest.ptr[i] <= ' ' || rest.ptr[i] > '~')
            return false;
    return true;
}

enum fetch_error
fetch_check_url(struct span url, bool *has_user, char *why, size_t why_size)
{
    struct target target;
    enum fetch_error error;

    if (is_usual(url)) {
        *has_user = false;
        return FETCH_OK;
    }
    error = target_parse(&target, url, why, why_size);
    if (error == FETCH_OK) {
        *has_user = target.has_user;
        target_free(&target);
    }
    return error;
}

/* ---- redirects ----------------------------------------------------------------------- */

/* What `location` means at `from`. */
static enum fetch_error
follow(struct target *target, const struct target *from, struct span location, char *why,
       size_t why_size)
{
    char *text = strndup(location.ptr, location.len);
    enum fetch_error error;
    CURLUcode code;

    *target = (struct target){.url = curl_url_dup(from->url)};
    /* Without CURLU_PATH_AS_IS: dot segments are removed. */
    code = text && target->url ? curl_url_set(target->url, CURLUPART_URL, text, CURLU_URLENCODE)
                               : CURLUE_OUT_OF_MEMORY;
    free(text);
    error = code ? from_parser(code, why, why_size) : take_apart(target, why, why_size);
    if (error)
        target_free(target);
    return error;
}

enum fetch_error
fetch_follow(struct span url, struct span location, struct buf *next, bool *same_origin, char *why,
             size_t why_size)
{
    struct target from, to;
    enum fetch_error error = target_parse(&from, url, why, why_size);

    if (error)
        return error;
    error = span_has_zero(location) ? bad_url(why, why_size, "it has a zero byte in it")
                                    : follow(&to, &from, location, why, why_size);
    if (!error) {
        *same_origin = strcmp(from.origin, to.origin) == 0;
        if (!buf_append_str(next, to.text))
            error = from_parser(CURLUE_OUT_OF_MEMORY, why, why_size);
        target_free(&to);
    }
    target_free(&from);
    return error;
}

/* ---- spellings ----------------------------------------------------------------------- */

/* As libcurl reads the URL. Without a pointer if it cannot be fetched, or has user information. */
static struct span
spelling_of_parser(struct span url, char *out, size_t size)
{
    struct span normal = {0};
    struct target target;
    char why[256];

    if (target_parse(&target, url, why, sizeof(why)) != FETCH_OK)
        return normal;
    if (!target.has_user)
        normal = http_normal_url(span_str(target.text), out, size);
    if (normal.ptr && normal.ptr != out) {
        if (normal.len <= size)
            memcpy(out, normal.ptr, normal.len);
        normal.ptr = normal.len <= size ? out : NULL;
    }
    target_free(&target);
    return normal;
}

struct span
fetch_normal_url(struct span url, char *out, size_t size)
{
    struct span normal = http_normal_url(url, out, size);

    if (!normal.ptr)
        normal = spelling_of_parser(url, out, size);
    return normal.ptr ? normal : url;
}

struct span
fetch_normal_prefix(struct span prefix, char *out, size_t size)
{
    struct span normal = http_normal_prefix(prefix, out, size);

    if (!normal.ptr)
        normal = spelling_of_parser(prefix, out, size);
    return normal.ptr ? normal : prefix;
}
