#include "http/cache_control.h"

#include "http/field.h"
#include "http/structured.h"

void
http_cache_control_init(struct http_cache_control *control)
{
    *control = (struct http_cache_control){
        .max_age = HTTP_SECONDS_ABSENT,
        .s_maxage = HTTP_SECONDS_ABSENT,
        .stale_while_revalidate = HTTP_SECONDS_ABSENT,
        .stale_if_error = HTTP_SECONDS_ABSENT,
    };
}

bool
http_seconds_parse(struct span text, int64_t *seconds)
{
    int64_t n = 0;

    if (text.len == 0)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (c < '0' || c > '9')
            return false;
        n = n * 10 + (c - '0');
        if (n > HTTP_SECONDS_MAX)
            n = HTTP_SECONDS_MAX;
    }
    *seconds = n;
    return true;
}

/*
 * Splits a directive at its equals sign; *argument has a NULL pointer where there is none. Both
 * forms of an argument count (RFC 9111 section 5.2), and a quoted one comes without its quotes.
 * False if it is no directive at all.
 */
static bool
split_directive(struct span directive, struct span *name, struct span *argument)
{
    const char *equals = memchr(directive.ptr, '=', directive.len);
    size_t quotes = 0;

    *name = equals ? span_of(directive.ptr, (size_t)(equals - directive.ptr)) : directive;
    *argument = span_of(NULL, 0);
    if (!http_is_token(*name))
        return false;
    if (!equals)
        return true;
    *argument = span_of(equals + 1, directive.len - name->len - 1);
    if (argument->len == 0 || argument->ptr[0] != '"')
        return true;
    /* One string from the first quote to the last byte, or it is none. */
    for (size_t i = 0; i < argument->len; i++) {
        if (argument->ptr[i] == '\\')
            i++;
        else if (argument->ptr[i] == '"' && ++quotes == 2 && i + 1 < argument->len)
            return false;
    }
    if (quotes != 2)
        return false;
    *argument = span_of(argument->ptr + 1, argument->len - 2);
    return true;
}

static void
lower(int64_t *bound, int64_t seconds)
{
    if (*bound == HTTP_SECONDS_ABSENT || seconds < *bound)
        *bound = seconds;
}

/*
 * Fields without which a stored response would mean something else, or be reused where it may not:
 * a response whose directive names one of them is treated as a whole.
 */
static const char *const indispensable[] = {
    "Age",
    "CDN-Cache-Control",
    "Cache-Control",
    "Content-Encoding",
    "Content-Length",
    "Content-Range",
    "Content-Type",
    "Date",
    "ETag",
    "Expires",
    "Last-Modified",
    "Location",
    "Vary",
    NULL,
};

/* Adds the names of fields of an argument. False if there are none, odd ones, or too many. */
static bool
add_names(struct http_cache_control *control, struct span argument)
{
    struct span name;
    bool any = false;

    while (http_next_member(&argument, &name)) {
        if (!http_is_token(name) || http_name_is_one_of(name, indispensable))
            return false;
        any = true;
        if (http_cache_control_names(control, name))
            continue;
        if (control->named_count == HTTP_NAMED_FIELDS_MAX)
            return false;
        control->named[control->named_count++] = name;
    }
    return any;
}

/* no-cache and private, which concern everything unless they name fields. */
static void
read_qualified(struct http_cache_control *control, bool *whole, bool *names, struct span argument)
{
    if (add_names(control, argument))
        *names = true;
    else
        *whole = true;
}

/* The directives without an argument; where they have one nevertheless, they still count. */
static bool
set_flag(struct http_cache_control *control, struct span name)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {
        {"no-store", &control->no_store},
        {"public", &control->is_public},
        {"must-revalidate", &control->must_revalidate},
        {"proxy-revalidate", &control->proxy_revalidate},
        {"must-understand", &control->must_understand},
    };

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (http_name_is(name, flags[i].name)) {
            *flags[i].flag = true;
            return true;
        }
    return false;
}

/* Where the number of a directive goes; NULL: it has none. */
static int64_t *
number_of(struct http_cache_control *control, struct span name)
{
    if (http_name_is(name, "max-age"))
        return &control->max_age;
    if (http_name_is(name, "s-maxage"))
        return &control->s_maxage;
    if (http_name_is(name, "stale-while-revalidate"))
        return &control->stale_while_revalidate;
    if (http_name_is(name, "stale-if-error"))
        return &control->stale_if_error;
    return NULL;
}

static void
read_directive(struct http_cache_control *control, struct span name, struct span argument)
{
    int64_t *number = number_of(control, name);
    int64_t seconds;

    if (set_flag(control, name))
        return;
    if (http_name_is(name, "no-cache")) {
        read_qualified(control, &control->no_cache, &control->names_no_cache, argument);
    } else if (http_name_is(name, "private")) {
        read_qualified(control, &control->is_private, &control->names_private, argument);
    } else if (number) {
        /* What is no number makes the response stale: RFC 9111 section 4.2.1. */
        lower(number, http_seconds_parse(argument, &seconds) ? seconds : 0);
    }
}

void
http_cache_control_read(struct http_cache_control *control, struct span value)
{
    struct span directive, name, argument;

    if (!http_is_value(value))
        control->malformed = true;
    while (http_next_member(&value, &directive)) {
        if (split_directive(directive, &name, &argument))
            read_directive(control, name, argument);
        else
            control->malformed = true;
    }
}

void
http_cache_control_read_lines(struct http_cache_control *control, struct span lines)
{
    struct span line, value;

    http_cache_control_init(control);
    while (http_next_line(&lines, &line))
        if (http_line_is(line, span_str("Cache-Control"), &value))
            http_cache_control_read(control, value);
}

bool
http_cache_control_names(const struct http_cache_control *control, struct span field)
{
    return http_name_is_among(field, control->named, control->named_count);
}

/* ---- CDN-Cache-Control ------------------------------------------------------------------------
 */

/* Takes in a member of the dictionary. False if its type is not that of the directive. */
static bool
read_member(struct http_cache_control *control, const struct http_dictionary_member *member)
{
    int64_t *number = number_of(control, member->key);

    if (number) {
        if (member->type != HTTP_ITEM_INTEGER || member->integer < 0)
            return false;
        /* Of members with one key the last counts: RFC 8941 section 4.2.2. */
        *number = member->integer < HTTP_SECONDS_MAX ? member->integer : HTTP_SECONDS_MAX;
        return true;
    }
    /* The directive is absent. An earlier one of the same key still counts, which is stricter. */
    if (member->type == HTTP_ITEM_BOOLEAN && !member->integer)
        return true;
    if (member->type == HTTP_ITEM_STRING)
        read_directive(control, member->key, member->text);
    else
        read_directive(control, member->key, span_of(NULL, 0));
    return true;
}

static bool
read_dictionary(struct http_cache_control *control, struct span value, bool *any)
{
    struct http_dictionary_member member;

    for (;;) {
        switch (http_dictionary_next(&value, &member)) {
        case HTTP_DICTIONARY_MEMBER:
            *any = true;
            if (!read_member(control, &member))
                return false;
            break;
        case HTTP_DICTIONARY_END:
            return true;
        case HTTP_DICTIONARY_INVALID:
            return false;
        }
    }
}

bool
http_cdn_cache_control_read(struct http_cache_control *control, struct span lines)
{
    struct http_cache_control read;
    struct span line, value;
    bool any = false;

    http_cache_control_init(&read);
    while (http_next_line(&lines, &line))
        if (http_line_is(line, span_str("CDN-Cache-Control"), &value) &&
            !read_dictionary(&read, value, &any))
            return false;
    if (!any)
        return false;
    *control = read;
    return true;
}

/* ---- requests ---------------------------------------------------------------------------------
 */

static void
read_request_directive(struct http_request_control *control, struct span name, struct span argument)
{
    int64_t seconds = 0;
    bool number = http_seconds_parse(argument, &seconds);

    if (http_name_is(name, "no-cache")) {
        control->no_cache = true;
    } else if (http_name_is(name, "no-store")) {
        control->no_store = true;
    } else if (http_name_is(name, "only-if-cached")) {
        control->only_if_cached = true;
    } else if (http_name_is(name, "max-age")) {
        lower(&control->max_age, number ? seconds : 0);
    } else if (http_name_is(name, "min-fresh")) {
        if (number && seconds > control->min_fresh)
            control->min_fresh = seconds;
    } else if (http_name_is(name, "max-stale")) {
        if (!argument.ptr)
            seconds = HTTP_SECONDS_ANY;
        lower(&control->max_stale, number || !argument.ptr ? seconds : 0);
    }
}

void
http_request_control_read(struct http_request_control *control, struct span lines)
{
    struct span line, name, value, directive, argument;
    bool has_control = false, pragma = false;

    *control = (struct http_request_control){
        .max_age = HTTP_SECONDS_ABSENT,
        .max_stale = HTTP_SECONDS_ABSENT,
    };
    while (http_next_line(&lines, &line)) {
        bool is_control = http_line_is(line, span_str("Cache-Control"), &value);

        if (!is_control && !http_line_is(line, span_str("Pragma"), &value))
            continue;
        has_control = has_control || is_control;
        while (http_next_member(&value, &directive)) {
            if (!split_directive(directive, &name, &argument))
                continue;
            if (is_control)
                read_request_directive(control, name, argument);
            else if (http_name_is(name, "no-cache"))
                pragma = true;
        }
    }
    if (control->max_stale == HTTP_SECONDS_ABSENT)
        control->max_stale = 0;
    /* RFC 9111 section 5.4. */
    if (pragma && !has_control)
        control->no_cache = true;
}
