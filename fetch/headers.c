#include "fetch/headers.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "http/field.h"

static bool
is_one_of(struct span name, const char *const *list)
{
    for (; *list; list++)
        if (http_name_is(name, *list))
            return true;
    return false;
}

static bool
is_proxy_field(struct span name)
{
    return name.len >= 6 && strncasecmp(name.ptr, "Proxy-", 6) == 0;
}

/* ---- what a client sends ------------------------------------------------------------- */

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
        if (is_one_of(name, not_a_clients) || is_proxy_field(name)) {
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

        if (!http_split_field(line, &name, &value) || (!credentials && is_one_of(name, secrets)))
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

/* ---- what an origin answers ---------------------------------------------------------- */

/* RFC 9110 section 7.6.1, beside those that Connection names. */
static const char *const hop_by_hop[] = {
    "Connection", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade", NULL,
};

/* Joins folded lines, ends all with CR LF, and blanks out control characters in values. */
static bool
unfold(struct span lines, struct buf *out)
{
    struct span line;

    while (http_next_line(&lines, &line)) {
        size_t start;

        if (line.len && http_is_blank(line.ptr[0])) {
            if (out->len < 2)
                continue;
            out->len -= 2;
            line = http_trim(line);
            buf_append_char(out, ' ');
        }
        start = out->len;
        buf_append(out, line.ptr, line.len);
        if (!buf_append(out, "\r\n", 2))
            return false;
        for (size_t i = start; i < out->len - 2; i++) {
            unsigned char c = (unsigned char)out->data[i];

            if ((c < ' ' && c != '\t') || c == 127)
                out->data[i] = ' ';
        }
    }
    return !buf_failed(out);
}

#define MAX_NAMED 64u /* fields that Connection names: a bound on the search below */

/* Collects what the values of the Connection fields name. False if that is too many. */
static bool
read_connection(struct span value, struct span *named, size_t *count)
{
    while (value.len) {
        const char *comma = memchr(value.ptr, ',', value.len);
        size_t len = comma ? (size_t)(comma - value.ptr) : value.len;

        if (*count == MAX_NAMED)
            return false;
        named[(*count)++] = http_trim(span_of(value.ptr, len));
        len += comma != NULL;
        value = span_of(value.ptr + len, value.len - len);
    }
    return true;
}

static bool
is_named(struct span name, const struct span *named, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (http_same_name(name, named[i]))
            return true;
    return false;
}

/* A length is digits, and every statement of it the same (RFC 9112 section 6.3). */
static bool
read_length(struct span value, int64_t *length)
{
    int64_t parsed = 0;

    if (value.len == 0 || value.len > 18)
        return false;
    for (size_t i = 0; i < value.len; i++) {
        if (!isdigit((unsigned char)value.ptr[i]))
            return false;
        parsed = parsed * 10 + (value.ptr[i] - '0');
    }
    if (*length >= 0 && *length != parsed)
        return false;
    *length = parsed;
    return true;
}

/* First pass: what the fields say. */
static const char *
interpret(struct answer_head *head, struct span lines, struct span *named, size_t *named_count,
          bool *no_memory)
{
    struct span line, name, value;
    bool transfer_coded = false;

    while (http_next_line(&lines, &line)) {
        if (!http_split_field(line, &name, &value))
            continue;
        if (http_name_is(name, "Content-Length")) {
            if (!read_length(value, &head->content_length))
                return "its Content-Length is malformed or contradicts itself";
        } else if (http_name_is(name, "Transfer-Encoding")) {
            transfer_coded = true;
        } else if (http_name_is(name, "Connection")) {
            if (!read_connection(value, named, named_count))
                return "its Connection field names too many others";
        } else if (http_name_is(name, "Content-Encoding")) {
            head->coded = head->coded || (value.len != 0 && !http_name_is(value, "identity"));
        } else if (http_name_is(name, "Location") && value.len && !head->location) {
            head->location = strndup(value.ptr, value.len);
            if (!head->location) {
                *no_memory = true;
                return "out of memory";
            }
        }
    }
    if (transfer_coded)
        head->content_length = -1;
    return NULL;
}

const char *
answer_head_read(struct answer_head *head, struct span lines, bool *no_memory)
{
    struct span rest, line, name, value;
    struct span named[MAX_NAMED];
    size_t named_count = 0;
    const char *malformed;
    struct buf plain;

    *head = (struct answer_head){.content_length = -1, .stated_length = -1};
    *no_memory = false;
    /* Folding and bare LF can make a line longer by a byte. */
    buf_init(&head->fields, 2 * lines.len + 2);
    buf_init(&plain, 2 * lines.len + 2);
    if (!unfold(lines, &plain)) {
        malformed = "out of memory";
        *no_memory = true;
        goto out;
    }
    malformed = interpret(head, buf_span(&plain), named, &named_count, no_memory);
    if (malformed)
        goto out;
    head->stated_length = head->content_length;
    rest = buf_span(&plain);
    while (http_next_line(&rest, &line)) {
        if (!http_split_field(line, &name, &value) || is_one_of(name, hop_by_hop) ||
            is_proxy_field(name) || is_named(name, named, named_count))
            continue;
        if (http_name_is(name, "Content-Length") && (head->coded || head->stated_length < 0))
            continue;
        if (http_name_is(name, "Content-Encoding") && head->coded)
            continue;
        buf_append(&head->fields, line.ptr, line.len);
        buf_append(&head->fields, "\r\n", 2);
    }
    if (head->coded)
        head->content_length = -1;
    if (buf_failed(&head->fields)) {
        malformed = "out of memory";
        *no_memory = true;
    }
out:
    buf_free(&plain);
    return malformed;
}

void
answer_head_free(struct answer_head *head)
{
    buf_free(&head->fields);
    free(head->location);
    head->location = NULL;
}
