/*
 * A list of names out of a file, of up to millions: hosts, or users. What follows a "#" is a
 * comment, and empty lines do not count. A name that is there twice counts once.
 *
 * Of hosts, a line is a name, alone or behind "." or "*."; a name also stands for all names below
 * it, but not behind "=". Of users, a line is a name (RFC 7617 section 2) with its blanks within,
 * and the comment begins at its begin.
 *
 * Memory: the bytes of the names and two for each, and 8 to 16 bytes for each name. A search takes
 * a hash and mostly one comparison, of a host for each of its labels. Made by one thread; then
 * constant.
 */
#ifndef SUNPROXY_RULES_NAME_LIST_H
#define SUNPROXY_RULES_NAME_LIST_H

#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

enum name_list_kind {
    NAME_LIST_HOSTS,
    NAME_LIST_USERS,
};

struct name_list {
    char *names;     /* owned; of each: length, a byte that is '=' or '.', and the name: of a host
                        in lower case */
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
bool name_list_init(struct name_list *list, enum name_list_kind kind, struct span content,
                    const char *path, struct buf *why);

/* Is the host one of the names, or below one? In lower case, without a dot at its end. */
bool name_list_has_host(const struct name_list *list, struct span host);

/* Is the name there, byte by byte? */
bool name_list_has(const struct name_list *list, struct span name);

/* Harmless on one that is all zero. */
void name_list_free(struct name_list *list);

#endif
