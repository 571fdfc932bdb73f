/*
 * Balanced trees of libbsd (tree(3bsd)), with functions for one file. libbsd's
 * RB_GENERATE_STATIC() needs __unused, which libbsd does not define on Linux.
 */
#ifndef SUNPROXY_BASE_TREE_H
#define SUNPROXY_BASE_TREE_H

#include <bsd/sys/tree.h>
#include <stdlib.h>
#include <string.h>

#define TREE_GENERATE(name, type, field, compare) \
    RB_GENERATE_INTERNAL(name, type, field, compare, __attribute__((unused)) static)

/*
 * Those of a tree in the order of strings, which are the member `key` at the end of the type; and
 * NAME_search(), which finds by one, or NULL, and NAME_add(), which inserts a zeroed allocation with
 * a copy of one that is not there. NULL without memory.
 */
#define TREE_GENERATE_BY_STRING(name, type, field, key)                                     \
    static int name##_compare_keys(const struct type *a, const struct type *b)              \
    {                                                                                       \
        return strcmp(a->key, b->key);                                                      \
    }                                                                                       \
    TREE_GENERATE(name, type, field, name##_compare_keys)                                   \
    static struct type *name##_search(const struct name *tree, const char *wanted)          \
    {                                                                                       \
        struct type *found = RB_ROOT(tree);                                                 \
        int order;                                                                          \
                                                                                            \
        while (found && (order = strcmp(wanted, found->key)) != 0)                          \
            found = order < 0 ? RB_LEFT(found, field) : RB_RIGHT(found, field);             \
        return found;                                                                       \
    }                                                                                       \
    static struct type *name##_add(struct name *tree, const char *string)                   \
    {                                                                                       \
        const size_t size = strlen(string) + 1;                                             \
        struct type *added = calloc(1, sizeof(*added) + size);                              \
                                                                                            \
        if (!added)                                                                         \
            return NULL;                                                                    \
        memcpy(added->key, string, size);                                                   \
        RB_INSERT(name, tree, added);                                                       \
        return added;                                                                       \
    }

#endif
