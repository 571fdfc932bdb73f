#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
units_parse_uint(const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
    unsigned long long parsed;
    char *end;

    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    parsed = strtoull(text, &end, 10);
    if (errno || *end || parsed < low || parsed > high)
        return false;
    *value = parsed;
    return true;
}

struct unit {
    const char *name;
    double factor;
};

/* A number, no sign, hex, inf or nan, and one of the units (ended by a NULL name) behind it. */
static bool
parse_quantity(const char *text, const struct unit *units, double *product)
{
    double number;
    char *end;

    if (!isdigit((unsigned char)text[0]) && text[0] != '.')
        return false;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        return false;
    number = strtod(text, &end);
    if (end == text)
        return false;
    while (*end == ' ')
        end++;
    for (; units->name; units++) {
        if (strcmp(end, units->name) != 0)
            continue;
        *product = nearbyint(number * units->factor);
        return *product < 0x1p63;
    }
    return false;
}

bool
units_parse_bytes(const char *text, uint64_t *bytes)
{
    static const struct unit units[] = {
        {"", 1},         {"B", 1},      {"K", 0x1p10},   {"k", 0x1p10},   {"KiB", 0x1p10},
        {"M", 0x1p20},   {"m", 0x1p20}, {"MiB", 0x1p20}, {"G", 0x1p30},   {"g", 0x1p30},
        {"GiB", 0x1p30}, {"T", 0x1p40}, {"t", 0x1p40},   {"TiB", 0x1p40}, {"kB", 1e3},
        {"KB", 1e3},     {"MB", 1e6},   {"GB", 1e9},     {"TB", 1e12},    {NULL, 0},
    };
    double product;

    /* Plain digits keep all 64 bits, which a double would not. */
    if (units_parse_uint(text, 0, UINT64_MAX, bytes))
        return true;
    if (!parse_quantity(text, units, &product))
        return false;
    *bytes = (uint64_t)product;
    return true;
}

bool
units_parse_decimal(const char *text, size_t len, double *number)
{
    char *end;

    if (len == 0 || strspn(text, "0123456789.") < len)
        return false;
    *number = strtod(text, &end);
    return end == text + len && isfinite(*number);
}

bool
units_parse_share(const char *text, double *share)
{
    size_t len = strlen(text);
    bool percent = len != 0 && text[len - 1] == '%';

    if (!units_parse_decimal(text, percent ? len - 1 : len, share))
        return false;
    if (percent)
        *share /= 100;
    return *share > 0 && *share <= 1;
}

bool
units_parse_word(const char *text, const char *words, uint64_t *which)
{
    size_t len = strlen(text);

    for (uint64_t number = 0;; number++) {
        size_t word = strcspn(words, "|");

        if (word == len && memcmp(words, text, len) == 0) {
            *which = number;
            return true;
        }
        if (words[word] == '\0')
            return false;
        words += word + 1;
    }
}

bool
units_parse_duration(const char *text, int64_t *us)
{
    static const struct unit units[] = {
        {"", 1e6},   {"us", 1},     {"ms", 1e3},    {"s", 1e6},
        {"m", 60e6}, {"h", 3600e6}, {"d", 86400e6}, {NULL, 0},
    };
    double product;

    if (!parse_quantity(text, units, &product))
        return false;
    *us = (int64_t)product;
    return true;
}

const char *
units_format_bytes(uint64_t bytes, char *text, size_t size)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double scaled = (double)bytes;
    size_t unit = 0;

    while (scaled >= 1024 && unit + 1 < sizeof(names) / sizeof(names[0])) {
        scaled /= 1024;
        unit++;
    }
    snprintf(text, size, unit == 0 || scaled >= 100 ? "%.0f %s" : "%.1f %s", scaled, names[unit]);
    return text;
}

const char *
units_format_duration(int64_t us, char *text, size_t size)
{
    int64_t seconds = us / 1000000;
    int64_t minutes = seconds / 60;
    int64_t hours = minutes / 60;

    if (us < 1000)
        snprintf(text, size, "%" PRId64 " us", us);
    else if (us < 1000000)
        snprintf(text, size, "%.1f ms", (double)us / 1e3);
    else if (seconds < 120)
        snprintf(text, size, "%.2f s", (double)us / 1e6);
    else if (hours == 0)
        snprintf(text, size, "%" PRId64 " m %02" PRId64 " s", minutes, seconds % 60);
    else if (hours < 24)
        snprintf(text, size, "%" PRId64 " h %02" PRId64 " m %02" PRId64 " s", hours, minutes % 60,
                 seconds % 60);
    else
        snprintf(text, size, "%" PRId64 " d %" PRId64 " h %02" PRId64 " m", hours / 24, hours % 24,
                 minutes % 60);
    return text;
}
