#include "http/cache_control.h"

#include "http/field.h"

void
http_cache_control_init(struct http_cache_control *control)
{
    *control = (struct http_cache_control){
        .max_age = HTTP_SECONDS_ABSENT,
        .s_maxage = HTTP_SECONDS_ABSENT,
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

/* What is no number of seconds makes the answer stale: RFC 9111 section 4.2.1. */
static void
lower(int64_t *bound, struct span argument)
{
    int64_t seconds;

    if (!http_seconds_parse(argument, &seconds))
        seconds = 0;
    if (*bound == HTTP_SECONDS_ABSENT || seconds < *bound)
        *bound = seconds;
}

void
http_cache_control_read(struct http_cache_control *control, struct span value)
{
    struct span directive, name, argument;

    if (!http_is_value(value))
        control->malformed = true;
    while (http_next_member(&value, &directive)) {
        if (!split_directive(directive, &name, &argument))
            control->malformed = true;
        else if (http_name_is(name, "no-store"))
            control->no_store = true;
        else if (http_name_is(name, "no-cache"))
            control->no_cache = true;
        else if (http_name_is(name, "private"))
            control->is_private = true;
        else if (http_name_is(name, "max-age"))
            lower(&control->max_age, argument);
        else if (http_name_is(name, "s-maxage"))
            lower(&control->s_maxage, argument);
    }
}
