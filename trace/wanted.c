#include "trace/wanted.h"

#include <stdlib.h>

#include "base/ascii.h"

void
wanted_set_status(struct wanted_statuses *wanted, unsigned status, bool on)
{
    uint64_t bit = UINT64_C(1) << (status % 64U);

    if (on)
        wanted->bits[status / 64U] |= bit;
    else
        wanted->bits[status / 64U] &= ~bit;
}

bool
wanted_status(const struct wanted_statuses *wanted, unsigned status)
{
    if (wanted->all)
        return true;
    return status < WANTED_STATUSES && (wanted->bits[status / 64U] >> (status % 64U) & 1U) != 0;
}

/* Three digits. */
static bool
parse_status(const char *text, unsigned *status)
{
    if (!ascii_is_digit(text[0]) || !ascii_is_digit(text[1]) || !ascii_is_digit(text[2]))
        return false;
    *status = (unsigned)(text[0] - '0') * 100U + (unsigned)(text[1] - '0') * 10U +
              (unsigned)(text[2] - '0');
    return *status >= 100;
}

/* One of "200", "2xx", "200-206". */
static bool
parse_item(struct span item, struct wanted_statuses *wanted)
{
    unsigned from, to;

    if (item.len == 3 && item.ptr[0] >= '1' && item.ptr[0] <= '9' &&
        memcmp(item.ptr + 1, "xx", 2) == 0) {
        from = (unsigned)(item.ptr[0] - '0') * 100U;
        to = from + 99;
    } else if (item.len == 3 && parse_status(item.ptr, &from)) {
        to = from;
    } else if (item.len != 7 || item.ptr[3] != '-' || !parse_status(item.ptr, &from) ||
               !parse_status(item.ptr + 4, &to)) {
        return false;
    }
    for (unsigned status = from; status <= to; status++)
        wanted_set_status(wanted, status, true);
    return from <= to;
}

bool
wanted_parse_statuses(const char *text, struct wanted_statuses *wanted)
{
    memset(wanted, 0, sizeof(*wanted));
    if (strcmp(text, "all") == 0) {
        wanted->all = true;
        return true;
    }
    for (;;) {
        size_t len = strcspn(text, ",");

        if (!parse_item(span_of(text, len), wanted))
            return false;
        if (text[len] == '\0')
            return true;
        text += len + 1;
    }
}

bool
wanted_methods_ok(const char *text)
{
    for (;;) {
        size_t len = strcspn(text, ",");

        /* Names of methods in use are letters, and a hyphen here and there. */
        if (len == 0 ||
            strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_") < len)
            return false;
        if (text[len] == '\0')
            return true;
        text += len + 1;
    }
}

/* Methods are case-sensitive and in capitals; the option may have small letters. */
static bool
means(struct span item, struct span method)
{
    for (size_t i = 0; i < method.len && item.len == method.len; i++) {
        char c = item.ptr[i];

        if (c != method.ptr[i] && (c < 'a' || c > 'z' || c - 'a' + 'A' != method.ptr[i]))
            return false;
    }
    return item.len == method.len;
}

bool
wanted_method(const char *text, struct span method)
{
    if (strcmp(text, "all") == 0)
        return true;
    for (;;) {
        size_t len = strcspn(text, ",");

        if (means(span_of(text, len), method))
            return true;
        if (text[len] == '\0')
            return false;
        text += len + 1;
    }
}
