#include "http/variant.h"

#include "http/field.h"
#include "http/preference.h"

/* ---- names ------------------------------------------------------------------------------------
 */

/* Inserts a name where it belongs, unless it is there. False: too many. */
static bool
add_name(struct http_vary *vary, struct span name)
{
    size_t at = vary->count;

    while (at > 0 && http_compare_names(vary->names[at - 1], name) > 0)
        at--;
    if (at > 0 && http_same_name(vary->names[at - 1], name))
        return true;
    if (vary->count == HTTP_VARY_MAX)
        return false;
    memmove(vary->names + at + 1, vary->names + at, (vary->count - at) * sizeof(*vary->names));
    vary->names[at] = name;
    vary->count++;
    return true;
}

static const char accept_encoding[] = "Accept-Encoding";

/* Reads the parameters that say what is known of codings, and leaves the name. */
static bool
split_choice(struct span *member, struct http_coding_choice *choice)
{
    const char *semicolon = member->len ? memchr(member->ptr, ';', member->len) : NULL;
    struct span text;

    if (!semicolon)
        return true;
    text = span_of(semicolon, member->len - (size_t)(semicolon - member->ptr));
    member->len = (size_t)(semicolon - member->ptr);
    return http_name_is(*member, accept_encoding) && http_coding_choice_parse(choice, text);
}

/*
 * Adds the members of one value. False: no other request matches. `choice`: what may stand behind
 * the name of Accept-Encoding; NULL: nothing may.
 */
static bool
add_names(struct http_vary *vary, struct span value, struct http_coding_choice *choice)
{
    struct span member;

    while (http_next_member(&value, &member)) {
        if (choice && !split_choice(&member, choice))
            return false;
        if (http_name_is(member, "*") || !http_is_token(member) || !add_name(vary, member))
            return false;
    }
    return true;
}

static enum http_vary_kind
kind_of(struct http_vary *vary, bool usable)
{
    size_t bytes = 0;

    for (size_t i = 0; i < vary->count; i++)
        bytes += vary->names[i].len + 1;
    if (!usable || bytes > HTTP_VARY_BYTES) {
        *vary = (struct http_vary){.count = 0};
        return HTTP_VARY_ANY;
    }
    return vary->count ? HTTP_VARY_FIELDS : HTTP_VARY_NONE;
}

enum http_vary_kind
http_vary_read(struct http_vary *vary, struct span lines)
{
    struct span line, name, value;
    bool usable = true;

    vary->count = 0;
    vary->codings = (struct http_coding_choice){0};
    while (http_next_line(&lines, &line)) {
        const char *colon = line.len ? memchr(line.ptr, ':', line.len) : NULL;

        if (!colon)
            continue;
        /* A blank before the colon hides nothing: RFC 9112 section 5.1. */
        name = http_trim(span_of(line.ptr, (size_t)(colon - line.ptr)));
        value = span_of(colon + 1, line.len - (size_t)(colon - line.ptr) - 1);
        if (http_name_is(name, "Vary") && !add_names(vary, value, NULL))
            usable = false;
    }
    return kind_of(vary, usable);
}

enum http_vary_kind
http_vary_extend(struct http_vary *vary, enum http_vary_kind kind, const struct span *names,
                 size_t count)
{
    for (size_t i = 0; kind != HTTP_VARY_ANY && i < count; i++)
        kind = add_name(vary, names[i]) ? HTTP_VARY_FIELDS : HTTP_VARY_ANY;
    if (kind == HTTP_VARY_ANY)
        vary->count = 0;
    return kind;
}

enum http_vary_kind
http_vary_parse(struct http_vary *vary, struct span names)
{
    vary->count = 0;
    vary->codings = (struct http_coding_choice){0};
    return kind_of(vary, add_names(vary, names, &vary->codings));
}

void
http_vary_write(const struct http_vary *vary, struct buf *out)
{
    for (size_t i = 0; i < vary->count; i++) {
        if (i > 0)
            buf_append_char(out, ',');
        http_append_lower(out, vary->names[i]);
        if (http_name_is(vary->names[i], accept_encoding))
            http_coding_choice_write(&vary->codings, out);
    }
}

bool
http_vary_equal(const struct http_vary *a, const struct http_vary *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!http_same_name(a->names[i], b->names[i]))
            return false;
    return true;
}

/* ---- the key ----------------------------------------------------------------------------------
 */

/* Do all quoted strings end in the line that they begin in? */
static bool
is_balanced(struct span value)
{
    bool quoted = false;

    for (size_t i = 0; i < value.len; i++) {
        if (quoted && value.ptr[i] == '\\')
            i++;
        else if (value.ptr[i] == '"')
            quoted = !quoted;
    }
    return !quoted;
}

/* A value without the blanks around its commas. Empty members stay, since not all is a list. */
static void
write_value(struct span value, struct buf *out)
{
    for (;;) {
        size_t end = http_member_length(value);
        struct span member = http_trim(span_of(value.ptr, end));

        buf_append(out, member.ptr, member.len);
        if (end == value.len)
            return;
        buf_append_char(out, ',');
        value = span_of(value.ptr + end + 1, value.len - end - 1);
    }
}

/* The next line of this name with a value that may be in a message; *bad: one that may not. */
static bool
next_value(struct span *lines, struct span name, struct span *value, bool *bad)
{
    struct span line;

    while (http_next_line(lines, &line)) {
        if (!http_line_is(line, name, value))
            continue;
        if (!http_is_value(*value))
            *bad = true;
        return true;
    }
    return false;
}

/* The lines of one name as a list of preferences. False: they are none. */
static bool
read_preferences(struct http_preferences *preferences, struct span name, struct span lines)
{
    struct span value;
    bool bad = false;

    http_preferences_init(preferences);
    while (next_value(&lines, name, &value, &bad))
        if (!http_preferences_read(preferences, value))
            return false;
    return true;
}

/* As the lists of preferences that they are. False: the lines are none. */
static bool
write_preferences(struct span name, struct span lines, unsigned unused, struct buf *out)
{
    bool encodings = http_name_is(name, accept_encoding);
    struct http_preferences preferences;

    if (!encodings && !http_name_is(name, "Accept-Language"))
        return false;
    if (!read_preferences(&preferences, name, lines))
        return false;
    if (encodings)
        http_preferences_write_codings(&preferences, unused, out);
    else
        http_preferences_write_ranges(&preferences, out);
    return true;
}

/*
 * The lines of one name, joined. Where a quoted string spans lines, what stands in quotes is not
 * certain, and blanks stay.
 */
static void
write_values(struct span name, struct span lines, bool balanced, struct buf *out)
{
    bool any = false, bad = false;
    struct span value;

    for (; next_value(&lines, name, &value, &bad); any = true) {
        if (any)
            buf_append_char(out, ',');
        if (balanced)
            write_value(value, out);
        else
            buf_append(out, value.ptr, value.len);
    }
}

/*
 * One name and what the request has of it without the codings of `unused`, ended by LF, which is in
 * neither.
 */
static bool
write_field(struct span name, struct span lines, unsigned unused, struct buf *out)
{
    bool any = false, bad = false, balanced = true;
    struct span rest = lines, value;

    http_append_lower(out, name);
    while (next_value(&rest, name, &value, &bad)) {
        any = true;
        balanced = balanced && is_balanced(value);
    }
    if (bad)
        return false;
    /* Without the colon: the field is absent, which no value matches. */
    if (any) {
        buf_append_char(out, ':');
        if (!write_preferences(name, lines, unused, out))
            write_values(name, lines, balanced, out);
    }
    buf_append_char(out, '\n');
    return true;
}

bool
http_variant_key(const struct http_vary *vary, struct span request_lines, struct buf *out)
{
    size_t before = out->len;

    for (size_t i = 0; i < vary->count; i++)
        if (!write_field(vary->names[i], request_lines, vary->codings.unused, out) ||
            buf_failed(out) || out->len - before > HTTP_VARIANT_MAX)
            return false;
    return true;
}

/* ---- codings ----------------------------------------------------------------------------------
 */

static bool
varies_by_coding(const struct http_vary *vary)
{
    return http_name_is_among(span_str(accept_encoding), vary->names, vary->count);
}

void
http_vary_recall(struct http_vary *vary, struct span known)
{
    struct http_vary before;

    if (varies_by_coding(vary) && http_vary_parse(&before, known) == HTTP_VARY_FIELDS)
        http_coding_choice_merge(&vary->codings, &before.codings);
}

void
http_vary_observe(struct http_vary *vary, struct span request_lines, unsigned status,
                  struct span response_lines)
{
    struct http_preferences offered;
    bool readable;

    if (!varies_by_coding(vary))
        return;
    readable = read_preferences(&offered, span_str(accept_encoding), request_lines);
    http_coding_choice_observe(&vary->codings, readable ? &offered : NULL, status, response_lines);
}
