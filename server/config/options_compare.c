#include <string.h>

#include "server/config/options_table.h"

static bool
same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool
same_list(const struct option_list *a, const struct option_list *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    return true;
}

static bool
same_rate(const struct token_rate *a, const struct token_rate *b)
{
    return a->per_second == b->per_second && a->burst == b->burst;
}

static bool
same_value(const struct option_row *row, const void *a, const void *b)
{
    switch (row->type) {
    case OPTION_FLAG:
        return *(const bool *)a == *(const bool *)b;
    case OPTION_UINT:
    case OPTION_UINT_AUTO:
    case OPTION_OCTAL:
    case OPTION_BYTES:
    case OPTION_CHOICE:
        return *(const uint64_t *)a == *(const uint64_t *)b;
    case OPTION_DURATION:
        return *(const int64_t *)a == *(const int64_t *)b;
    case OPTION_STRING:
    case OPTION_POLICY:
    case OPTION_LOG_FORMAT:
    case OPTION_LOG_TARGET:
        return same_text(*(char *const *)a, *(char *const *)b);
    case OPTION_LIST:
        return same_list(a, b);
    case OPTION_RATE:
    case OPTION_RATE_BYTES:
        return same_rate(a, b);
    }
    return false;
}

bool
options_compare(const struct options *a, const struct options *b, struct buf *live,
                struct buf *fixed)
{
    for (const struct option_row *row = option_rows; row->help; row++) {
        struct buf *names = row->when == OPTION_LIVE ? live : fixed;

        if (row->name && row->when != OPTION_HERE &&
            !same_value(row, (const char *)a + row->offset, (const char *)b + row->offset))
            buf_printf(names, "%s%s", names->len ? ", " : "", row->name);
    }
    return !buf_failed(live) && !buf_failed(fixed);
}

bool
options_differ(const struct options *a, const struct options *b, const char *const *names)
{
    for (; *names; names++) {
        const struct option_row *row = option_row_named(*names);

        if (!same_value(row, (const char *)a + row->offset, (const char *)b + row->offset))
            return true;
    }
    return false;
}
