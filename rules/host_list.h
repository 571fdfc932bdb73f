/*
 * A list of hosts out of a file, of up to millions of names: is a host one of them, or below one?
 * A line is a name, alone or behind "." or "*."; what follows a "#" is a comment, and empty lines
 * do not count. A name also stands for all names below it; behind "=" it does not. A name that is
 * there twice counts once.
 *
 * Memory: the bytes of the names and one for each, and 8 to 16 bytes for each name. A search takes
 * a hash and mostly one comparison for each label of the host. Made by one thread; then constant.
 */
#ifndef SUNPROXY_RULES_HOST_LIST_H
#define SUNPROXY_RULES_HOST_LIST_H

#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

struct host_list {
    char *names;     /* owned; of each: length, a byte that is '=' or not, the name in lower case */
    size_t len;      /* of those */
    uint32_t *slots; /* owned; 1 + where a name begins; 0: empty */
    size_t mask;     /* slots, a power of two, less 1 */
    size_t count;    /* of names */
    uint64_t digest; /* hash64_bytes() of the content; 0: there is none */
};

/*
 * Makes it of the content of a file. False with a sentence in `why`, which begins with `path` and
 * the number of a line: a line that is no name, a last line without an end, no name at all, or no
 * memory.
 */
bool host_list_init(struct host_list *list, struct span content, const char *path, struct buf *why);

/* In lower case, without a dot at its end. */
bool host_list_has(const struct host_list *list, struct span host);

/* Harmless on one that is all zero. */
void host_list_free(struct host_list *list);

#endif
