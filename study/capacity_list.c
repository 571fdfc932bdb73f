#include "study/capacity_list.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/output.h"
#include "study/default_sizes.h"

#define MAX_CAPACITIES 1000

/* False without memory. */
static bool
append(struct capacity_list *list, const struct capacity *capacity)
{
    struct capacity *grown = realloc(list->items, (list->count + 1) * sizeof(*grown));

    if (!grown)
        return false;
    list->items = grown;
    grown[list->count++] = *capacity;
    return true;
}

/* EX_OK, or the exit status after a complaint. */
static int
take_one(const struct option_row *row, struct capacity_list *list, const char *text)
{
    struct capacity capacity = {0};
    char why[256];

    if (!capacity_is_nothing(text) && !capacity_parse(text, &capacity)) {
        output_complain("--%s: %s", row->name, capacity_explain(text, why, sizeof(why)));
        return EX_USAGE;
    }
    if (list->count == MAX_CAPACITIES) {
        output_complain("--%s: at most %d at once", row->name, MAX_CAPACITIES);
        return EX_USAGE;
    }
    if (!append(list, &capacity)) {
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    return EX_OK;
}

int
capacity_list_take(const struct option_row *row, void *field, const char *text)
{
    while (true) {
        size_t len = strcspn(text, ",");
        char *one = strndup(text, len);
        int status;

        if (!one) {
            output_complain("out of memory");
            return EX_SOFTWARE;
        }
        status = take_one(row, field, one);
        free(one);
        if (status != EX_OK || text[len] == '\0')
            return status;
        text += len + 1;
    }
}

static bool
is_in_bytes(const struct capacity *capacity)
{
    return capacity->bytes != 0 || capacity->percent_bytes > 0;
}

static bool
is_in_urls(const struct capacity *capacity)
{
    return capacity->urls != 0 || capacity->percent > 0;
}

bool
capacity_list_has_bytes(const struct capacity_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (is_in_bytes(&list->items[i]))
            return true;
    return false;
}

bool
capacity_list_is_of_one_unit(const struct capacity_list *list)
{
    bool bytes = capacity_list_has_bytes(list);

    for (size_t i = 0; i < list->count; i++)
        if (bytes ? !is_in_bytes(&list->items[i]) : !is_in_urls(&list->items[i]))
            return false;
    return true;
}

static int
compare_capacities(const void *a, const void *b)
{
    const struct capacity *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return x->urls < y->urls ? -1 : x->urls > y->urls;
}

void
capacity_list_sort(struct capacity_list *list)
{
    if (list->count != 0)
        qsort(list->items, list->count, sizeof(*list->items), compare_capacities);
}

static bool
is_listed(const struct capacity_list *list, const struct capacity *capacity)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].urls == capacity->urls && list->items[i].bytes == capacity->bytes)
            return true;
    return false;
}

static bool
add_resolved(struct capacity_list *of, struct capacity capacity,
             const struct simulate_subject *subject)
{
    capacity_resolve(&capacity, subject->trace->url_count, subject->all_bytes);
    return is_listed(of, &capacity) || append(of, &capacity);
}

bool
capacity_list_resolve(const struct capacity_list *list, const struct simulate_subject *subject,
                      struct capacity_list *of)
{
    const double *shares = default_sizes_shares(subject);
    bool good = true;

    *of = (struct capacity_list){0};
    for (size_t i = 0; good && i < list->count; i++)
        good = add_resolved(of, list->items[i], subject);
    for (; good && list->count == 0 && *shares > 0; shares++) {
        struct capacity share = {0};

        *(subject->sized ? &share.percent_bytes : &share.percent) = 100 * *shares;
        good = add_resolved(of, share, subject);
    }
    return good;
}

void
capacity_list_free(struct capacity_list *list)
{
    free(list->items);
    *list = (struct capacity_list){0};
}
