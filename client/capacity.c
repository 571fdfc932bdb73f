#include "client/capacity.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

bool
capacity_parse(const char *text, struct capacity *capacity)
{
    size_t len = strlen(text);
    char *end;

    *capacity = (struct capacity){.urls = 0};
    if (len == 0)
        return false;
    if (text[len - 1] == '%') {
        /* No sign, no hex, no nan: strtod() knows more than people should write. */
        if (strspn(text, "0123456789.") != len - 1)
            return false;
        capacity->percent = strtod(text, &end);
        return end == text + len - 1 && isfinite(capacity->percent) && capacity->percent > 0;
    }
    if (strspn(text, "0123456789") == len)
        return units_parse_uint(text, 1, UINT64_MAX, &capacity->urls);
    /* A fraction of a byte is a slip of the pen; a size has its unit. */
    if (!isalpha((unsigned char)text[len - 1]))
        return false;
    return units_parse_bytes(text, &capacity->bytes) && capacity->bytes != 0;
}

void
capacity_resolve(struct capacity *capacity, uint64_t distinct_urls)
{
    double urls = round((double)distinct_urls * capacity->percent / 100);

    if (capacity->percent <= 0)
        return;
    capacity->urls = urls < 1 ? 1 : urls >= 0x1p63 ? UINT64_MAX / 2 : (uint64_t)urls;
    capacity->percent = 0;
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
