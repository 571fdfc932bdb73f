#include "client/get/get_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/span.h"
#include "http/field.h"

#define MAX_AUTHORIZATION 4096
#define MAX_LINES (256u << 10)
/* A body up to this size is sent at once; with a larger one the server is asked first, as by curl.
 */
#define MAX_UNASKED ((int64_t)1 << 20)

const char *
get_request_method(const struct get_options *options)
{
    if (options->method)
        return options->method;
    return options->data.count ? "POST" : options->head ? "HEAD" : "GET";
}

/* ---- the target ------------------------------------------------------------------------------ */

void
get_target_free(struct get_target *target)
{
    curl_url_cleanup(target->parsed);
    free(target->url);
    free(target->host);
    free(target->credentials);
    *target = (struct get_target){.parsed = NULL};
}

/* A copy of a part that is freed with free(); NULL if there is none. *failed: without memory. */
static char *
copy_part(const struct get_target *target, CURLUPart part, unsigned flags, bool *failed)
{
    char *text = NULL, *copy = NULL;
    CURLUcode code = curl_url_get(target->parsed, part, &text, flags);

    if (code == CURLUE_OK)
        copy = strdup(text);
    *failed |= code == CURLUE_OUT_OF_MEMORY || (code == CURLUE_OK && !copy);
    curl_free(text);
    return copy;
}

static bool
join(char **into, const char *a, const char *between, const char *b)
{
    size_t size = strlen(a) + strlen(between) + strlen(b) + 1;

    *into = malloc(size);
    if (*into)
        snprintf(*into, size, "%s%s%s", a, between, b);
    return *into != NULL;
}

/*
 * Puts a part that is not ASCII into the form that curl_url_get() gives it with these flags. Others
 * stay: libcurl would spell their escapes in lower case, which is another URL for a cache.
 */
static CURLUcode
convert_part(struct get_target *target, CURLUPart part, unsigned flags)
{
    bool failed = false;
    char *text = copy_part(target, part, 0, &failed), *converted = NULL;
    bool stays = !text || span_is_ascii(span_str(text));
    CURLUcode code;

    free(text);
    if (stays)
        return failed ? CURLUE_OUT_OF_MEMORY : CURLUE_OK;
    code = curl_url_get(target->parsed, part, &converted, flags);
    if (code == CURLUE_OK)
        code = curl_url_set(target->parsed, part, converted, 0);
    else if (converted) /* libcurl 7.88: the host has no form in ASCII */
        code = CURLUE_BAD_HOSTNAME;
    curl_free(converted);
    return code;
}

/* What is not ASCII may not stand in a request line: it is encoded, and a host goes by its name in
 * DNS. */
static CURLUcode
convert_to_ascii(struct get_target *target)
{
    CURLUcode code = convert_part(target, CURLUPART_HOST, CURLU_PUNYCODE);

    if (code == CURLUE_OK)
        code = convert_part(target, CURLUPART_PATH, CURLU_URLENCODE);
    return code == CURLUE_OK ? convert_part(target, CURLUPART_QUERY, CURLU_URLENCODE) : code;
}

static bool
take_host(struct get_target *target)
{
    bool failed = false;
    char *host = copy_part(target, CURLUPART_HOST, 0, &failed);
    char *port = copy_part(target, CURLUPART_PORT, 0, &failed);

    failed = failed || !join(&target->host, host ? host : "", port ? ":" : "", port ? port : "");
    free(host);
    free(port);
    return !failed;
}

static bool
take_credentials(struct get_target *target)
{
    bool failed = false;
    char *user = copy_part(target, CURLUPART_USER, CURLU_URLDECODE, &failed);
    char *password = copy_part(target, CURLUPART_PASSWORD, CURLU_URLDECODE, &failed);

    if (!failed && (user || password))
        failed = !join(&target->credentials, user ? user : "", ":", password ? password : "");
    free(user);
    free(password);
    return !failed && curl_url_set(target->parsed, CURLUPART_USER, NULL, 0) == CURLUE_OK &&
           curl_url_set(target->parsed, CURLUPART_PASSWORD, NULL, 0) == CURLUE_OK &&
           curl_url_set(target->parsed, CURLUPART_FRAGMENT, NULL, 0) == CURLUE_OK;
}

static bool
is_http(const struct get_target *target)
{
    char *scheme = NULL;
    bool is = curl_url_get(target->parsed, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
              (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);

    curl_free(scheme);
    return is;
}

static const char *
take_parts(struct get_target *target)
{
    bool failed = false;
    CURLUcode code;

    if (!is_http(target))
        return "only http and https URLs can be fetched";
    code = convert_to_ascii(target);
    if (code != CURLUE_OK)
        return curl_url_strerror(code);
    if (!take_credentials(target) || !take_host(target))
        return "out of memory";
    target->url = copy_part(target, CURLUPART_URL, 0, &failed);
    if (failed)
        return "out of memory";
    return target->url && strlen(target->url) <= PROXY_MAX_URL ? NULL : "the URL is too long";
}

static const char *
fail(struct get_target *target, const char *sentence)
{
    get_target_free(target);
    return sentence;
}

const char *
get_target_parse(struct get_target *target, const char *url)
{
    const char *sentence;
    CURLUcode code;

    *target = (struct get_target){.parsed = curl_url()};
    if (!target->parsed)
        return "out of memory";
    code = curl_url_set(target->parsed, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME);
    if (code != CURLUE_OK)
        return fail(target, curl_url_strerror(code));
    sentence = take_parts(target);
    return sentence ? fail(target, sentence) : NULL;
}

/* Scheme, host and port. */
static bool
same_part(const struct get_target *a, const struct get_target *b, CURLUPart part)
{
    bool failed = false;
    char *one = copy_part(a, part, CURLU_DEFAULT_PORT, &failed);
    char *other = copy_part(b, part, CURLU_DEFAULT_PORT, &failed);
    bool same = !failed && one && other && strcmp(one, other) == 0;

    free(one);
    free(other);
    return same;
}

const char *
get_target_follow(struct get_target *target, struct span location, bool *elsewhere)
{
    struct get_target next = {.parsed = curl_url_dup(target->parsed)};
    char *text = strndup(location.ptr, location.len);
    CURLUcode code = next.parsed && text ? curl_url_set(next.parsed, CURLUPART_URL, text,
                                                        CURLU_URLENCODE | CURLU_NON_SUPPORT_SCHEME)
                                         : CURLUE_OUT_OF_MEMORY;
    const char *sentence = code == CURLUE_OK ? take_parts(&next) : curl_url_strerror(code);

    free(text);
    if (sentence) {
        get_target_free(&next);
        return fail(target, sentence);
    }
    *elsewhere = !same_part(target, &next, CURLUPART_SCHEME) ||
                 !same_part(target, &next, CURLUPART_HOST) ||
                 !same_part(target, &next, CURLUPART_PORT);
    if (!*elsewhere && !next.credentials) {
        next.credentials = target->credentials;
        target->credentials = NULL;
    }
    get_target_free(target);
    *target = next;
    return NULL;
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* The name of a line of --header: "Name: value", "Name:" or "Name;". */
static struct span
name_of(struct span line)
{
    const char *colon = memchr(line.ptr, ':', line.len);

    return span_of(line.ptr, colon ? (size_t)(colon - line.ptr) : line.len - 1);
}

static bool
is_given(const struct get_options *options, const char *name)
{
    struct span rest = buf_span(&options->headers), line;

    while (http_next_line(&rest, &line))
        if (http_name_is(name_of(line), name))
            return true;
    return false;
}

/* Unless --header has a line of that name. */
static void
put_default(struct buf *lines, const struct get_options *options, const char *name,
            const char *value)
{
    if (!is_given(options, name))
        buf_printf(lines, "%s: %s\n", name, value);
}

static void
put_cache_control(struct buf *lines, const struct get_options *options)
{
    const char *before = "Cache-Control: ";

    if (options->max_age)
        buf_printf(lines, "%smax-age=%s", before, options->max_age);
    before = options->max_age ? ", " : before;
    if (options->no_cache)
        buf_printf(lines, "%sno-cache", before);
    before = options->no_cache ? ", " : before;
    if (options->no_store)
        buf_printf(lines, "%sno-store", before);
    before = options->no_store ? ", " : before;
    if (options->only_if_cached)
        buf_printf(lines, "%sonly-if-cached", before);
    if (options->only_if_cached || *before == ',')
        buf_append_char(lines, '\n');
}

static void
put_credentials(struct buf *lines, const char *credentials)
{
    struct buf coded;

    buf_init(&coded, MAX_AUTHORIZATION);
    base64_encode(&coded, span_str(credentials));
    if (buf_failed(&coded))
        lines->failed = true;
    buf_printf(lines, "Authorization: Basic %s\n", buf_str(&coded));
    buf_free(&coded);
}

/* What another server than the one of the URL must not get. */
static bool
is_secret(struct span name)
{
    return http_name_is(name, "Authorization") || http_name_is(name, "Cookie") ||
           http_name_is(name, "Host");
}

static void
put_given(struct buf *lines, const struct get_options *options, const struct get_fields *fields)
{
    struct span rest = buf_span(&options->headers), line;

    while (http_next_line(&rest, &line))
        if (!fields->elsewhere || !is_secret(name_of(line)))
            buf_printf(lines, "%.*s\n", (int)line.len, line.ptr);
}

/* Each is ended by LF. Errors show in buf_failed(). */
static void
put_fields(struct buf *lines, const struct get_options *options, const struct get_fields *fields)
{
    if (fields->elsewhere)
        buf_printf(lines, "Host: %s\n", fields->target->host);
    else
        put_default(lines, options, "Host", fields->target->host);
    put_default(lines, options, "User-Agent", "sunproxy/" SUNPROXY_VERSION);
    put_default(lines, options, "Accept", "*/*");
    if (fields->target->credentials && !is_given(options, "Authorization"))
        put_credentials(lines, fields->target->credentials);
    if (options->range && !is_given(options, "Range"))
        buf_printf(lines, "Range: bytes=%s\n", options->range);
    put_cache_control(lines, options);
    if (fields->has_body)
        put_default(lines, options, "Content-Type", "application/x-www-form-urlencoded");
    if (fields->has_body && fields->length >= 0 && fields->length <= MAX_UNASKED &&
        !is_given(options, "Expect"))
        buf_append_str(lines, "Expect:\n");
    put_given(lines, options, fields);
}

struct curl_slist *
get_request_lines(const struct get_options *options, const struct get_fields *fields)
{
    struct curl_slist *lines = NULL;
    struct span rest, line;
    struct buf text;
    bool made;

    buf_init(&text, MAX_LINES);
    put_fields(&text, options, fields);
    made = !buf_failed(&text);
    for (rest = buf_span(&text); made && http_next_line(&rest, &line);) {
        char *copy = strndup(line.ptr, line.len);
        struct curl_slist *longer = copy ? curl_slist_append(lines, copy) : NULL;

        free(copy);
        made = longer != NULL;
        lines = made ? longer : lines;
    }
    buf_free(&text);
    if (made)
        return lines;
    curl_slist_free_all(lines);
    return NULL;
}
