#include "rules/affix.h"

#include <stdlib.h>

#include "base/array.h"

#define NO_PARENT SIZE_MAX

struct affix {
    struct span literal;
    uint32_t user;
    size_t parent; /* the next shorter literal, or an equal one, that is a part of it */
};

bool
affix_add(struct affix_table *table, struct span literal, uint32_t user)
{
    if (!array_extend(&table->affixes, sizeof(*table->affixes), table->count, &table->capacity))
        return false;
    table->affixes[table->count++] =
        (struct affix){.literal = literal, .user = user, .parent = NO_PARENT};
    return true;
}

/* Bytes that both texts have in common, from the begin or the end on. */
static size_t
common(const struct affix_table *table, struct span a, struct span b)
{
    size_t most = a.len < b.len ? a.len : b.len, n = 0;

    if (table->at_end)
        while (n < most && a.ptr[a.len - 1 - n] == b.ptr[b.len - 1 - n])
            n++;
    else
        while (n < most && a.ptr[n] == b.ptr[n])
            n++;
    return n;
}

/* Below, at or above 0, by the first byte that differs, and a text before what contains it. */
static int
compare(const struct affix_table *table, struct span a, struct span b)
{
    size_t n = common(table, a, b);
    unsigned char x, y;

    if (n == a.len || n == b.len)
        return (a.len > b.len) - (a.len < b.len);
    x = (unsigned char)a.ptr[table->at_end ? a.len - 1 - n : n];
    y = (unsigned char)b.ptr[table->at_end ? b.len - 1 - n : n];
    return (x > y) - (x < y);
}

static int
compare_from_begin(const void *a, const void *b)
{
    static const struct affix_table table = {.at_end = false};

    return compare(&table, ((const struct affix *)a)->literal, ((const struct affix *)b)->literal);
}

static int
compare_from_end(const void *a, const void *b)
{
    static const struct affix_table table = {.at_end = true};

    return compare(&table, ((const struct affix *)a)->literal, ((const struct affix *)b)->literal);
}

static bool
has(const struct affix_table *table, struct span text, struct span literal)
{
    return text.len >= literal.len && common(table, text, literal) == literal.len;
}

static void
make_filter(struct affix_table *table)
{
    table->least = sizeof(uint64_t);
    for (size_t i = 0; i < table->count; i++)
        if (table->affixes[i].literal.len < table->least)
            table->least = table->affixes[i].literal.len;
    for (size_t i = 0; i < table->count; i++) {
        unsigned bit = affix_bit(table, table->affixes[i].literal);

        table->filter[bit / 64] |= UINT64_C(1) << (bit % 64);
    }
}

void
affix_sort(struct affix_table *table)
{
    if (!table->count)
        return;
    make_filter(table);
    qsort(table->affixes, table->count, sizeof(*table->affixes),
          table->at_end ? compare_from_end : compare_from_begin);
    for (size_t i = 1; i < table->count; i++) {
        size_t parent = i - 1;

        while (parent != NO_PARENT &&
               !has(table, table->affixes[i].literal, table->affixes[parent].literal))
            parent = table->affixes[parent].parent;
        table->affixes[i].parent = parent;
    }
}

static void
mark(uint64_t *users, const struct affix *affix)
{
    users[affix->user / 64] |= UINT64_C(1) << (affix->user % 64);
}

void
affix_find(const struct affix_table *table, struct span text, uint64_t *users)
{
    size_t low = 0, high = table->count, at;

    if (!affix_may_find(table, text))
        return;
    /* What a text contains comes before it: so do all literals that it has. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare(table, table->affixes[middle].literal, text) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (at = low - 1; at != NO_PARENT; at = table->affixes[at].parent)
        if (has(table, text, table->affixes[at].literal))
            break;
    for (; at != NO_PARENT; at = table->affixes[at].parent)
        mark(users, &table->affixes[at]);
}

void
affix_mark_users(const struct affix_table *table, uint64_t *users)
{
    for (size_t i = 0; i < table->count; i++)
        mark(users, &table->affixes[i]);
}

void
affix_free(struct affix_table *table)
{
    free(table->affixes);
}
