#include "http/conditional.h"

#include "http/date.h"
#include "http/field.h"
#include "http/request_head.h"

/* ---- reading ----------------------------------------------------------------------------------
 */

/* A field that may come once. */
struct single {
    struct span value; /* NULL pointer: absent */
    bool differ;       /* it came again, and otherwise */
};

static void
add_single(struct single *field, struct span value)
{
    if (!field->value.ptr)
        field->value = value;
    else if (!span_equal(field->value, value))
        field->differ = true;
}

static bool
read_date(const struct single *field, int64_t now_s, int64_t *seconds)
{
    return field->value.ptr && !field->differ && http_date_parse(field->value, now_s, seconds);
}

/*
 * The next member of a list of entity-tags. A comma between the quotes belongs to the tag, and a
 * backslash has no meaning: RFC 9110 section 8.8.3.
 */
static bool
next_etag(struct span *list, struct span *etag)
{
    size_t start = 0, end;
    bool quoted = false;

    while (start < list->len && (http_is_blank(list->ptr[start]) || list->ptr[start] == ','))
        start++;
    for (end = start; end < list->len && (quoted || list->ptr[end] != ','); end++)
        if (list->ptr[end] == '"')
            quoted = !quoted;
    *etag = http_trim(span_of(list->ptr + start, end - start));
    *list = span_of(list->ptr + end, list->len - end);
    return etag->len > 0;
}

/* Would it come back as one member of a list? */
static bool
is_one_etag(struct span value)
{
    struct span list = value, etag;

    return next_etag(&list, &etag) && span_equal(etag, value);
}

void
http_validators_read(struct http_validators *validators, struct span lines, int64_t now_s)
{
    struct single etag = {.differ = false}, last_modified = etag, date = etag;
    struct span line, value;

    while (http_next_line(&lines, &line)) {
        if (http_line_is(line, span_str("ETag"), &value))
            add_single(&etag, value);
        else if (http_line_is(line, span_str("Last-Modified"), &value))
            add_single(&last_modified, value);
        else if (http_line_is(line, span_str("Date"), &value))
            add_single(&date, value);
    }
    *validators = (struct http_validators){.etag = span_of(NULL, 0)};
    if (etag.value.len && !etag.differ && is_one_etag(etag.value))
        validators->etag = etag.value;
    if (read_date(&last_modified, now_s, &validators->last_modified_s))
        validators->last_modified = last_modified.value;
    validators->has_date = read_date(&date, now_s, &validators->date_s);
}

/* The conditional fields of a request. */
struct conditions {
    bool if_match, if_none_match;
    struct single if_modified_since, if_unmodified_since, if_range;
};

static void
read_conditions(struct conditions *conditions, struct span lines)
{
    struct span line, value;

    *conditions = (struct conditions){0};
    while (http_next_line(&lines, &line)) {
        if (http_line_is(line, span_str("If-Match"), &value))
            conditions->if_match = true;
        else if (http_line_is(line, span_str("If-None-Match"), &value))
            conditions->if_none_match = true;
        else if (http_line_is(line, span_str("If-Modified-Since"), &value))
            add_single(&conditions->if_modified_since, value);
        else if (http_line_is(line, span_str("If-Unmodified-Since"), &value))
            add_single(&conditions->if_unmodified_since, value);
        else if (http_line_is(line, span_str("If-Range"), &value))
            add_single(&conditions->if_range, value);
    }
}

bool
http_is_condition(struct span name)
{
    static const char *const names[] = {
        "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", NULL,
    };

    return http_name_is_one_of(name, names);
}

bool
http_has_condition(struct span request_lines)
{
    struct span line, name, value;

    while (http_next_line(&request_lines, &line))
        if (line.len > 3 && line.ptr[2] == '-' && http_split_field(line, &name, &value) &&
            http_is_condition(name))
            return true;
    return false;
}

bool
http_has_origin_condition(struct span request_lines)
{
    struct conditions conditions;

    read_conditions(&conditions, request_lines);
    return conditions.if_match || conditions.if_unmodified_since.value.ptr;
}

/* ---- entity-tags ------------------------------------------------------------------------------
 */

static bool
is_weak(struct span etag)
{
    return span_starts_with(etag, span_str("W/"));
}

/* Without the W/: RFC 9110 section 8.8.3. */
static struct span
opaque(struct span etag)
{
    return is_weak(etag) ? span_of(etag.ptr + 2, etag.len - 2) : etag;
}

/* A quoted string without escapes, which an entity-tag has none of. */
static bool
is_quoted(struct span text)
{
    return text.len >= 2 && text.ptr[0] == '"' && text.ptr[text.len - 1] == '"' &&
           !memchr(text.ptr + 1, '"', text.len - 2);
}

bool
http_etag_matches_strongly(struct span a, struct span b)
{
    return is_quoted(a) && span_equal(a, b);
}

bool
http_etag_matches_weakly(struct span a, struct span b)
{
    return a.len && b.len && span_equal(opaque(a), opaque(b));
}

/* Does any line of this name match the stored response, '*' included (RFC 9110 section 13.1.1)? */
static bool
any_matches(struct span lines, const char *wanted, struct span stored,
            bool (*matches)(struct span, struct span))
{
    struct span line, value, etag;

    while (http_next_line(&lines, &line)) {
        if (!http_line_is(line, span_str(wanted), &value))
            continue;
        if (value.len == 1 && value.ptr[0] == '*')
            return true;
        while (stored.ptr && next_etag(&value, &etag))
            if (matches(etag, stored))
                return true;
    }
    return false;
}

/* ---- conditions of clients --------------------------------------------------------------------
 */

/* RFC 9110 section 13.1.4: has the response not been modified since? */
static bool
is_unmodified(const struct http_validators *stored, int64_t since_s)
{
    return stored->last_modified.ptr && stored->last_modified_s <= since_s;
}

/* RFC 9111 section 4.3.2. */
static bool
is_not_newer(const struct http_validators *stored, int64_t since_s)
{
    if (stored->last_modified.ptr)
        return stored->last_modified_s <= since_s;
    return stored->has_date && stored->date_s <= since_s;
}

/* Those whose bit is not there. */
static void
leave_out(struct conditions *conditions, uint32_t has)
{
    conditions->if_match = conditions->if_match && has & HTTP_HAS_IF_MATCH;
    conditions->if_none_match = conditions->if_none_match && has & HTTP_HAS_IF_NONE_MATCH;
    if (!(has & HTTP_HAS_IF_MODIFIED_SINCE))
        conditions->if_modified_since = (struct single){.differ = false};
    if (!(has & HTTP_HAS_IF_UNMODIFIED_SINCE))
        conditions->if_unmodified_since = (struct single){.differ = false};
}

enum http_condition
http_evaluate_conditions(struct span request_lines, uint32_t has, struct span stored_lines,
                         int64_t now_s)
{
    struct conditions conditions;
    struct http_validators stored;
    int64_t since_s;

    if (!http_has_condition(request_lines))
        return HTTP_CONDITION_PROCEED;
    read_conditions(&conditions, request_lines);
    leave_out(&conditions, has);
    http_validators_read(&stored, stored_lines, now_s);
    if (conditions.if_match) {
        if (!any_matches(request_lines, "If-Match", stored.etag, http_etag_matches_strongly))
            return HTTP_CONDITION_FAILED;
    } else if (read_date(&conditions.if_unmodified_since, now_s, &since_s)) {
        if (!is_unmodified(&stored, since_s))
            return HTTP_CONDITION_FAILED;
    }
    if (conditions.if_none_match) {
        if (any_matches(request_lines, "If-None-Match", stored.etag, http_etag_matches_weakly))
            return HTTP_CONDITION_NOT_MODIFIED;
    } else if (read_date(&conditions.if_modified_since, now_s, &since_s)) {
        if (is_not_newer(&stored, since_s))
            return HTTP_CONDITION_NOT_MODIFIED;
    }
    return HTTP_CONDITION_PROCEED;
}

bool
http_if_range(struct span request_lines, struct span stored_lines, int64_t now_s)
{
    struct conditions conditions;
    struct http_validators stored;
    int64_t seconds;

    read_conditions(&conditions, request_lines);
    if (!conditions.if_range.value.ptr)
        return true;
    if (conditions.if_range.differ)
        return false;
    http_validators_read(&stored, stored_lines, now_s);
    if (!http_date_parse(conditions.if_range.value, now_s, &seconds))
        return stored.etag.ptr &&
               http_etag_matches_strongly(conditions.if_range.value, stored.etag);
    return stored.last_modified.ptr && stored.last_modified_s == seconds && stored.has_date &&
           stored.date_s > stored.last_modified_s;
}

/* ---- conditions of a cache --------------------------------------------------------------------
 */

bool
http_write_validation(struct span stored_lines, int64_t now_s, struct buf *out)
{
    struct http_validators stored;

    http_validators_read(&stored, stored_lines, now_s);
    if (stored.etag.ptr)
        http_append_field(out, "If-None-Match", stored.etag);
    if (stored.last_modified.ptr)
        http_append_field(out, "If-Modified-Since", stored.last_modified);
    return stored.etag.ptr || stored.last_modified.ptr;
}

bool
http_not_modified_concerns(struct span lines, struct span stored_lines, int64_t now_s)
{
    struct http_validators fresh, stored;

    http_validators_read(&fresh, lines, now_s);
    http_validators_read(&stored, stored_lines, now_s);
    if (fresh.etag.ptr && stored.etag.ptr)
        return is_weak(fresh.etag) ? http_etag_matches_weakly(fresh.etag, stored.etag)
                                   : span_equal(fresh.etag, stored.etag);
    if (fresh.etag.ptr && !is_weak(fresh.etag))
        return false;
    if (fresh.last_modified.ptr && stored.last_modified.ptr)
        return fresh.last_modified_s == stored.last_modified_s;
    return true;
}

void
http_write_not_modified(struct span stored_lines, struct buf *out)
{
    static const char *const content[] = {
        "Content-Type",  "Content-Length",    "Content-Encoding", "Content-Language",
        "Content-Range", "Transfer-Encoding", "Trailer",          NULL,
    };
    struct span rest = stored_lines, line, name, value;
    bool has_etag = false;

    while (http_next_line(&rest, &line))
        has_etag = has_etag || http_line_is(line, span_str("ETag"), &value);
    while (http_next_line(&stored_lines, &line)) {
        if (!http_split_field(line, &name, &value) || http_name_is_one_of(name, content) ||
            (has_etag && http_name_is(name, "Last-Modified")))
            continue;
        buf_append(out, line.ptr, line.len);
        buf_append_str(out, "\r\n");
    }
}
