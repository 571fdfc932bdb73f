#include "cli/capacity.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/units.h"

static bool
parse_percent(const char *text, size_t len, double *percent)
{
    return units_parse_decimal(text, len, percent) && *percent > 0;
}

bool
capacity_parse(const char *text, struct capacity *capacity)
{
    size_t len = strlen(text);

    *capacity = (struct capacity){.urls = 0};
    if (len == 0)
        return false;
    if (text[len - 1] == '%')
        return parse_percent(text, len - 1, &capacity->percent);
    if (len >= 2 && text[len - 2] == '%' && toupper((unsigned char)text[len - 1]) == 'B')
        return parse_percent(text, len - 2, &capacity->percent_bytes);
    if (strspn(text, "0123456789") == len)
        return units_parse_uint(text, 1, UINT64_MAX, &capacity->urls);
    /* A fraction without a unit is a mistake. */
    if (!isalpha((unsigned char)text[len - 1]))
        return false;
    return units_parse_bytes(text, &capacity->bytes) && capacity->bytes != 0;
}

bool
capacity_is_nothing(const char *text)
{
    const char *unit = text + strspn(text, "0.");
    struct capacity ignored;
    char one[64];

    /* True for what would be a capacity if it were not 0. */
    if (*text != '0' || isdigit((unsigned char)*unit) || strchr(text, '.') != strrchr(text, '.'))
        return false;
    return snprintf(one, sizeof(one), "1%s", unit) < (int)sizeof(one) &&
           capacity_parse(one, &ignored);
}

/* True for what would be a capacity if its number were smaller. */
static bool
is_too_large(const char *text, const char *unit)
{
    struct capacity ignored;
    char one[64];

    return strchr(text, '.') == strrchr(text, '.') && strtod(text, NULL) >= 0x1p40 &&
           snprintf(one, sizeof(one), "1%s", unit) < (int)sizeof(one) &&
           capacity_parse(one, &ignored);
}

const char *
capacity_explain(const char *text, char *why, size_t size)
{
    static const char *const units[] = {"B",   "K",  "M",  "G",  "T",  "KiB", "MiB", "GiB",
                                        "TiB", "kB", "MB", "GB", "TB", "%",   "%B",  NULL};
    const char *unit = text + strspn(text, "0123456789.");
    struct nearest nearest = NEAREST_TO(unit);

    for (size_t i = 0; units[i]; i++)
        nearest_offer(&nearest, units[i]);
    if (unit != text && is_too_large(text, unit))
        snprintf(why, size, "'%.60s' is too large", text);
    else if (unit != text && nearest.distance != 0 && nearest_is_near(&nearest))
        snprintf(why, size, "'%.60s' has an unknown unit; did you mean %.*s%s?", text,
                 (int)(unit - text), text, nearest.best);
    else
        snprintf(why, size,
                 "a capacity is a number of URLs (700), a size (64M, 1.5GB), or a share of the "
                 "distinct URLs (5%%) or of their bytes (5%%B), not '%.60s'",
                 text);
    return why;
}

static void
resolve_share(double percent, uint64_t whole, uint64_t *number)
{
    double share = round((double)whole * percent / 100);

    if (percent > 0)
        *number = share < 1 ? 1 : share >= 0x1p63 ? UINT64_MAX / 2 : (uint64_t)share;
}

void
capacity_resolve(struct capacity *capacity, uint64_t distinct_urls, uint64_t distinct_bytes)
{
    resolve_share(capacity->percent, distinct_urls, &capacity->urls);
    resolve_share(capacity->percent_bytes, distinct_bytes, &capacity->bytes);
    capacity->percent = capacity->percent_bytes = 0;
}

const char *
capacity_format(uint64_t urls, uint64_t bytes, char *text, size_t size)
{
    char as_bytes[32];

    units_format_bytes(bytes, as_bytes, sizeof(as_bytes));
    if (urls && bytes)
        snprintf(text, size, "%" PRIu64 " URLs and %s", urls, as_bytes);
    else if (urls)
        snprintf(text, size, "%" PRIu64 " URL%s", urls, urls == 1 ? "" : "s");
    else
        snprintf(text, size, "%s", bytes ? as_bytes : "no bound");
    return text;
}

const char *
capacity_format_share(double share, char *text, size_t size)
{
    double percent = 100 * share;

    if (percent > 0 && percent < 0.001)
        snprintf(text, size, "< 0.001 %%");
    else
        snprintf(text, size, percent >= 99.95 ? "%.0f %%" : "%.3g %%", percent);
    return text;
}
