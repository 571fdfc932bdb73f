#include "server/http_origins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fetch/fetch.h"
#include "http/field.h"
#include "http/octet.h"
#include "http/target.h"

/* ---- reading rows ---------------------------------------------------------------------------- */

/* The URL, owned, without a slash at its end, if it can stand before a path. */
static bool
read_url(struct span text, const char *dashes, struct span *url, struct buf *why)
{
    char sentence[256], normal[FETCH_NORMAL_SIZE];
    bool has_user;

    if (fetch_check_url(text, &has_user, sentence, sizeof(sentence)) != FETCH_OK) {
        buf_printf(why, "%sorigin: \"%.*s\": %s", dashes, (int)text.len, text.ptr, sentence);
        return false;
    }
    if (has_user || memchr(text.ptr, '?', text.len) || memchr(text.ptr, '#', text.len)) {
        buf_printf(why, "%sorigin: \"%.*s\" has user information, a query or a fragment", dashes,
                   (int)text.len, text.ptr);
        return false;
    }
    text = fetch_normal_url(text, normal, sizeof(normal));
    if (text.ptr[text.len - 1] == '/')
        text.len--;
    *url = span_of(strndup(text.ptr, text.len), text.len);
    if (!url->ptr)
        buf_append_str(why, strerror(ENOMEM));
    return url->ptr != NULL;
}

static bool
read_urls(const char *text, const char *dashes, struct http_origin *row, struct buf *why)
{
    while (*text) {
        size_t len = strcspn(text, ",");

        if (row->url_count == HTTP_ORIGIN_MOST_URLS) {
            buf_printf(why, "%sorigin: more than %d URLs in one row", dashes,
                       HTTP_ORIGIN_MOST_URLS);
            return false;
        }
        if (!read_url(span_of(text, len), dashes, &row->urls[row->url_count++], why))
            return false;
        text += len + (text[len] == ',');
    }
    return true;
}

/* Can the path of a request begin so? One with ".." is refused. */
static bool
is_prefix(struct span prefix)
{
    for (size_t i = 0; i < prefix.len; i++)
        if (!http_octet_is(prefix.ptr[i], HTTP_OCTET_TARGET) || prefix.ptr[i] == '?')
            return false;
    return !http_origins_path_leads_up(prefix);
}

static bool
read_row(const char *text, const char *dashes, struct http_origin *row, struct buf *why)
{
    const char *slash = strchr(text, '/'), *equals = strchr(text, '=');
    struct http_authority host = {0};

    memset(row, 0, sizeof(*row));
    if (!slash || !equals || slash > equals || equals[1] == '\0' ||
        memchr(text, ':', (size_t)(slash - text)) ||
        (slash > text && !http_authority_read(span_of(text, (size_t)(slash - text)), &host))) {
        buf_printf(why, "%sorigin: \"%s\" is not [HOST]/PREFIX=URL[,URL...]", dashes, text);
        return false;
    }
    row->host = host.host;
    row->prefix = span_of(slash, (size_t)(equals - slash));
    if (!is_prefix(row->prefix)) {
        buf_printf(why, "%sorigin: \"%.*s\" begins the path of no request that is served", dashes,
                   (int)row->prefix.len, row->prefix.ptr);
        return false;
    }
    row->below = equals[-1] == '/';
    row->prefix.len -= row->below;
    return read_urls(equals + 1, dashes, row, why);
}

/* Below 0: `a` is the more specific one. */
static int
compare_rows(const void *a, const void *b)
{
    const struct http_origin *first = a, *second = b;

    if (!first->host.len != !second->host.len)
        return first->host.len ? -1 : 1;
    if (first->prefix.len != second->prefix.len)
        return first->prefix.len > second->prefix.len ? -1 : 1;
    return second->below - first->below;
}

/* Is there a row for the same requests before the last one? */
static bool
is_duplicate(const struct http_origins *origins)
{
    const struct http_origin *last = &origins->rows[origins->count - 1];

    for (const struct http_origin *row = origins->rows; row < last; row++)
        if (http_same_name(row->host, last->host) && span_equal(row->prefix, last->prefix) &&
            row->below == last->below)
            return true;
    return false;
}

/* Adds a row. */
static bool
add_row(struct http_origins *origins, const char *text, const char *dashes, struct buf *why)
{
    if (!read_row(text, dashes, &origins->rows[origins->count++], why))
        return false;
    if (!is_duplicate(origins))
        return true;
    buf_printf(why,
               "%sorigin: \"%s\": an earlier row has that host and prefix (URLs of one row are "
               "separated by commas)",
               dashes, text);
    return false;
}

bool
http_origins_init(struct http_origins *origins, const struct option_list *rows, struct buf *why)
{
    *origins = (struct http_origins){0};
    if (rows->count == 0)
        return true;
    origins->rows = calloc(rows->count, sizeof(*origins->rows));
    if (!origins->rows) {
        buf_append_str(why, strerror(ENOMEM));
        return false;
    }
    for (size_t i = 0; i < rows->count; i++) {
        if (!add_row(origins, rows->items[i], option_place(rows, i), why)) {
            http_origins_free(origins);
            return false;
        }
    }
    qsort(origins->rows, origins->count, sizeof(*origins->rows), compare_rows);
    return true;
}

void
http_origins_free(struct http_origins *origins)
{
    for (size_t i = 0; i < origins->count; i++)
        for (unsigned n = 0; n < origins->rows[i].url_count; n++)
            free((char *)(uintptr_t)origins->rows[i].urls[n].ptr);
    free(origins->rows);
    *origins = (struct http_origins){0};
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool
has_prefix(const struct http_origin *row, struct span path)
{
    /* "?query" stands for "/?query". */
    bool no_path = path.len == 0 || path.ptr[0] == '?';

    if (row->prefix.len == 0)
        return true;
    if (no_path || !span_starts_with(path, row->prefix))
        return false;
    if (path.len == row->prefix.len)
        return !row->below;
    return path.ptr[row->prefix.len] == '/' || (path.ptr[row->prefix.len] == '?' && !row->below);
}

/*
 * Does the text begin with this character, as it stands or escaped by these digits (the second one
 * in lower case)? Its length then; otherwise 0.
 */
static size_t
length_of(struct span text, char c, const char *digits)
{
    if (text.len && text.ptr[0] == c)
        return 1;
    return text.len >= 3 && text.ptr[0] == '%' && text.ptr[1] == digits[0] &&
                   (text.ptr[2] | 0x20) == (digits[1] | 0x20)
               ? 3
               : 0;
}

/* The same for what some origin takes for the end of a segment. */
static size_t
separator_length(struct span text)
{
    size_t slash = length_of(text, '/', "2f");

    return slash ? slash : length_of(text, '\\', "5c");
}

/* Is it ".." up to the end of the segment, or to its parameters (RFC 3986 section 3.3)? */
static bool
leads_up(struct span text)
{
    for (unsigned dots = 0; dots < 2; dots++) {
        size_t dot = length_of(text, '.', "2e");

        if (!dot)
            return false;
        text = span_of(text.ptr + dot, text.len - dot);
    }
    return text.len == 0 || separator_length(text) || length_of(text, ';', "3b");
}

/* Most paths have nothing of the kind. */
static bool
has_dots_or_escape(struct span path)
{
    const char *end = path.ptr + path.len, *dot = path.ptr;

    if (memchr(path.ptr, '%', path.len))
        return true;
    while ((dot = memchr(dot, '.', (size_t)(end - dot))) && ++dot < end)
        if (*dot == '.')
            return true;
    return false;
}

bool
http_origins_path_leads_up(struct span path)
{
    const char *query = memchr(path.ptr, '?', path.len);
    struct span rest = span_of(path.ptr, query ? (size_t)(query - path.ptr) : path.len);
    bool begins = true; /* a segment */

    if (!has_dots_or_escape(rest))
        return false;
    while (rest.len) {
        size_t separator = separator_length(rest);

        if (begins && leads_up(rest))
            return true;
        begins = separator != 0;
        rest =
            span_of(rest.ptr + (separator ? separator : 1), rest.len - (separator ? separator : 1));
    }
    return false;
}

struct http_origin *
http_origins_find(const struct http_origins *origins, struct span host, struct span path)
{
    for (size_t i = 0; i < origins->count; i++) {
        struct http_origin *row = &origins->rows[i];

        if ((row->host.len == 0 || http_same_name(row->host, host)) && has_prefix(row, path))
            return row;
    }
    return NULL;
}

unsigned
http_origin_failed(struct http_origin *row, unsigned number)
{
    unsigned failed = number, next = (number + 1) % row->url_count;

    /* Of several requests that fail at a time one moves it. */
    (void)atomic_compare_exchange_strong(&row->preferred, &failed, next);
    return next;
}

/* Has the URL nothing behind its authority? */
static bool
is_authority(struct span url)
{
    const char *after = memmem(url.ptr, url.len, "://", 3);

    return !memchr(after + 3, '/', (size_t)(url.ptr + url.len - after - 3));
}

size_t
http_origin_write_url(const struct http_origin *row, unsigned number, struct span path, char *out,
                      size_t size)
{
    struct span url = row->urls[number];
    struct span rest =
        row->prefix.len ? span_of(path.ptr + row->prefix.len, path.len - row->prefix.len) : path;
    bool slash = (rest.len == 0 || rest.ptr[0] != '/') && is_authority(url);

    if (rest.len == 1 && rest.ptr[0] == '*')
        rest.len = 0;
    if (url.len + slash + rest.len > size)
        return 0;
    memcpy(out, url.ptr, url.len);
    if (slash)
        out[url.len] = '/';
    memcpy(out + url.len + slash, rest.ptr, rest.len);
    return url.len + slash + rest.len;
}
