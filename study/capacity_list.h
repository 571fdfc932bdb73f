/*
 * The capacities of --capacity, in `simulate` and `report`.
 */
#ifndef SUNPROXY_STUDY_CAPACITY_LIST_H
#define SUNPROXY_STUDY_CAPACITY_LIST_H

#include "cli/capacity.h"
#include "cli/options.h"
#include "study/simulate/simulate_subject.h"

struct capacity_list {
    struct capacity *items; /* owned; all zero: a cache that stores nothing */
    size_t count;           /* 0: the default sizes */
};

#define CAPACITY_LIST_HELP                                                                        \
    "capacities, separated by commas: a number of URLs (700); bytes with a unit (64M, 1.5GB); a " \
    "share of the distinct URLs (10%) or of their bytes (10%B) (default: "

/* For a struct capacity_list: appends those of a list. */
option_take capacity_list_take;

/* Some are in bytes, or are shares of the bytes. */
bool capacity_list_has_bytes(const struct capacity_list *list);

/* All are in bytes or all in URLs, and none is 0. */
bool capacity_list_is_of_one_unit(const struct capacity_list *list);

/*
 * Makes *of this trace: the list with its shares resolved to sizes of at least 1, each size once,
 * in its order; or of an empty list the default shares (study/default_sizes.h), of the bytes where
 * sizes are known, else of the URLs. False without memory. capacity_list_free() in any case.
 */
bool capacity_list_resolve(const struct capacity_list *list, const struct simulate_subject *subject,
                           struct capacity_list *of);

/* Sorts resolved ones, the smallest first. */
void capacity_list_sort(struct capacity_list *list);

/* Harmless on one that is all zero. */
void capacity_list_free(struct capacity_list *list);

#endif
