#include "http/structured.h"

#include "base/ascii.h"
#include "http/field.h"

#define INTEGER_DIGITS_MAX 15
#define DECIMAL_WHOLE_MAX 12
#define DECIMAL_FRACTION_MAX 3

static bool
is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool
is_alpha(char c)
{
    return is_lower(c) || (c >= 'A' && c <= 'Z');
}

static void
skip(struct span *text, size_t len)
{
    *text = span_of(text->ptr + len, text->len - len);
}

static void
skip_spaces(struct span *text, bool tabs)
{
    while (text->len && (text->ptr[0] == ' ' || (tabs && text->ptr[0] == '\t')))
        skip(text, 1);
}

/* Section 4.2.3.3. */
static bool
take_key(struct span *text, struct span *key)
{
    size_t len = 0;

    if (text->len == 0 || !(is_lower(text->ptr[0]) || text->ptr[0] == '*'))
        return false;
    while (len < text->len && (is_lower(text->ptr[len]) || ascii_is_digit(text->ptr[len]) ||
                               (text->ptr[len] && memchr("_-.*", text->ptr[len], 4))))
        len++;
    *key = span_of(text->ptr, len);
    skip(text, len);
    return true;
}

/* Section 4.2.4. */
static bool
take_number(struct span *text, struct http_dictionary_member *item)
{
    bool negative = span_take_char(text, '-');
    size_t whole = 0, fraction = 0;
    int64_t n = 0;

    while (whole < text->len && ascii_is_digit(text->ptr[whole])) {
        if (++whole > INTEGER_DIGITS_MAX)
            return false;
        n = n * 10 + (text->ptr[whole - 1] - '0');
    }
    if (whole == 0)
        return false;
    skip(text, whole);
    item->type = HTTP_ITEM_INTEGER;
    item->integer = negative ? -n : n;
    if (!span_take_char(text, '.'))
        return true;
    while (fraction < text->len && ascii_is_digit(text->ptr[fraction]))
        fraction++;
    skip(text, fraction);
    item->type = HTTP_ITEM_DECIMAL;
    return whole <= DECIMAL_WHOLE_MAX && fraction >= 1 && fraction <= DECIMAL_FRACTION_MAX;
}

/* Section 4.2.5; the first quote is taken. */
static bool
take_string(struct span *text, struct http_dictionary_member *item)
{
    for (size_t i = 0; i < text->len; i++) {
        char c = text->ptr[i];

        if (c == '\\') {
            i++;
            if (i == text->len || (text->ptr[i] != '"' && text->ptr[i] != '\\'))
                return false;
        } else if (c == '"') {
            item->type = HTTP_ITEM_STRING;
            item->text = span_of(text->ptr, i);
            skip(text, i + 1);
            return true;
        } else if (c < ' ' || c > '~') {
            return false;
        }
    }
    return false;
}

/* Section 4.2.6; the first character is known to be one that begins a token. */
static bool
take_token(struct span *text, struct http_dictionary_member *item)
{
    size_t len = 1;

    while (len < text->len && (text->ptr[len] == ':' || text->ptr[len] == '/' ||
                               http_is_token(span_of(text->ptr + len, 1))))
        len++;
    item->type = HTTP_ITEM_TOKEN;
    skip(text, len);
    return true;
}

/* Section 4.2.7; the first colon is taken. The value is not decoded, since no directive has one. */
static bool
take_bytes(struct span *text, struct http_dictionary_member *item)
{
    size_t len = 0;

    while (len < text->len && (is_alpha(text->ptr[len]) || ascii_is_digit(text->ptr[len]) ||
                               (text->ptr[len] && memchr("+/=", text->ptr[len], 3))))
        len++;
    skip(text, len);
    item->type = HTTP_ITEM_BYTES;
    return span_take_char(text, ':');
}

/* Section 4.2.8; the question mark is taken. */
static bool
take_boolean(struct span *text, struct http_dictionary_member *item)
{
    item->type = HTTP_ITEM_BOOLEAN;
    item->integer = span_take_char(text, '1');
    return item->integer || span_take_char(text, '0');
}

/* Section 4.2.3.1. */
static bool
take_bare_item(struct span *text, struct http_dictionary_member *item)
{
    if (text->len == 0)
        return false;
    if (ascii_is_digit(text->ptr[0]) || text->ptr[0] == '-')
        return take_number(text, item);
    if (is_alpha(text->ptr[0]) || text->ptr[0] == '*')
        return take_token(text, item);
    if (span_take_char(text, '"'))
        return take_string(text, item);
    if (span_take_char(text, ':'))
        return take_bytes(text, item);
    return span_take_char(text, '?') && take_boolean(text, item);
}

/* Section 4.2.3.2. */
static bool
take_parameters(struct span *text)
{
    struct http_dictionary_member value;
    struct span key;

    while (span_take_char(text, ';')) {
        skip_spaces(text, false);
        if (!take_key(text, &key))
            return false;
        if (span_take_char(text, '=') && !take_bare_item(text, &value))
            return false;
    }
    return true;
}

/* Section 4.2.1.2; the parenthesis is taken. */
static bool
take_inner_list(struct span *text)
{
    struct http_dictionary_member item;

    for (;;) {
        skip_spaces(text, false);
        if (span_take_char(text, ')'))
            return true;
        if (!take_bare_item(text, &item) || !take_parameters(text))
            return false;
        if (text->len == 0 || (text->ptr[0] != ' ' && text->ptr[0] != ')'))
            return false;
    }
}

static bool
take_value(struct span *text, struct http_dictionary_member *member)
{
    if (!span_take_char(text, '=')) {
        member->type = HTTP_ITEM_BOOLEAN;
        member->integer = 1;
        return true;
    }
    if (!span_take_char(text, '('))
        return take_bare_item(text, member);
    member->type = HTTP_ITEM_INNER_LIST;
    return take_inner_list(text);
}

/* Section 4.2.2. */
enum http_dictionary_step
http_dictionary_next(struct span *rest, struct http_dictionary_member *member)
{
    skip_spaces(rest, false);
    if (rest->len == 0)
        return HTTP_DICTIONARY_END;
    *member = (struct http_dictionary_member){.type = HTTP_ITEM_BOOLEAN};
    if (!take_key(rest, &member->key) || !take_value(rest, member) || !take_parameters(rest))
        return HTTP_DICTIONARY_INVALID;
    skip_spaces(rest, true);
    if (rest->len == 0)
        return HTTP_DICTIONARY_MEMBER;
    if (!span_take_char(rest, ','))
        return HTTP_DICTIONARY_INVALID;
    skip_spaces(rest, true);
    /* A comma ends no dictionary. */
    return rest->len ? HTTP_DICTIONARY_MEMBER : HTTP_DICTIONARY_INVALID;
}
