/*
 * Balanced trees of libbsd (tree(3bsd)), with functions for one file. libbsd's
 * RB_GENERATE_STATIC() needs __unused, which libbsd does not define on Linux.
 */
#ifndef SUNPROXY_BASE_TREE_H
#define SUNPROXY_BASE_TREE_H

#include <bsd/sys/tree.h>

#define TREE_GENERATE(name, type, field, compare) \
    RB_GENERATE_INTERNAL(name, type, field, compare, __attribute__((unused)) static)

#endif
