/*
 * Field lines of HTTP messages (RFC 9110 section 5) as spans of a head that the caller holds:
 * names, values, and the members of lists. Nothing is copied and nothing is allocated unless a
 * buffer is given. Safe on any thread.
 */
#ifndef SUNPROXY_HTTP_FIELD_H
#define SUNPROXY_HTTP_FIELD_H

#include "base/buf.h"
#include "base/span.h"

/* The next line of *rest without its end, CR LF or a bare LF; false at the end. */
bool http_next_line(struct span *rest, struct span *line);

/* A space or a tab. */
bool http_is_blank(char c);

/* Without the blanks at both ends. */
struct span http_trim(struct span s);

/* A token: RFC 9110 section 5.6.2. */
bool http_is_token(struct span s);

/* Only visible characters, blanks and bytes over 127: RFC 9110 section 5.5. */
bool http_is_value(struct span s);

/* Equal but for case, as names of fields and directives are compared. */
bool http_same_name(struct span a, struct span b);
bool http_name_is(struct span name, const char *text);

/* Below, at or above 0: an order of names without regard to case. */
int http_compare_names(struct span a, struct span b);

/* Is it one of the list, which NULL ends? Or one of these names? */
bool http_name_is_one_of(struct span name, const char *const *list);
bool http_name_is_among(struct span name, const struct span *names, size_t count);

/*
 * Splits a line at its first colon; the value comes trimmed. False if there is no colon, or what
 * stands before it is no token.
 */
bool http_split_field(struct span line, struct span *name, struct span *value);

/* Does the line begin with this name, in any case, and a colon? The value comes trimmed. */
static inline bool
http_line_is(struct span line, struct span name, struct span *value)
{
    /* The colon is compared first, since it rarely stands there by chance. */
    if (line.len <= name.len || line.ptr[name.len] != ':' ||
        !http_same_name(span_of(line.ptr, name.len), name))
        return false;
    *value = http_trim(span_of(line.ptr + name.len + 1, line.len - name.len - 1));
    return true;
}

/* The value of the first field of this name, trimmed. Without one it has no pointer. */
struct span http_first_value(struct span lines, const char *name);

/* Is there a field of one of these names, which NULL ends? */
bool http_has_field(struct span lines, const char *const *names);

/* Fields for proxies, with names such as Proxy-Authorization, that go no further. */
bool http_is_proxy_field(struct span name);

/* The length of the member with which a list begins: up to the first comma outside quoted strings,
 * or to the end. */
size_t http_member_length(struct span list);

/*
 * The next member of a list of comma-separated values, trimmed; false at the end. Empty members are
 * passed over (RFC 9110 section 5.6.1.2), and a comma in a quoted string separates nothing. A
 * quoted string that does not end takes all that follows with it.
 */
bool http_next_member(struct span *list, struct span *member);

/* Appends a field line. The buffer says if that failed. */
void http_append_field(struct buf *out, const char *name, struct span value);

/* Appends the text with its ASCII letters in lower case. The buffer says if that failed. */
void http_append_lower(struct buf *out, struct span text);

#endif
