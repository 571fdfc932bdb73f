/*
 * Lists of URLs from arguments or from the lines of a stream.
 */
#ifndef SUNPROXY_CLIENT_URL_LIST_H
#define SUNPROXY_CLIENT_URL_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define URL_LIST_MOST_LINE 65536u /* bytes; the protocol carries no more */

struct url_list {
    char **urls; /* owned, with all strings */
    size_t count;
    size_t allocated;
};

/* An empty list is all zeros. Frees its content: it is empty afterwards. */
void url_list_free(struct url_list *list);

/* Appends one; as in curl, one without "://" gets the prefix "http://". False without memory. */
bool url_list_add(struct url_list *list, const char *url);

/*
 * Appends the lines of a stream, without space at both ends; empty lines and lines that begin with
 * '#' are ignored. Returns 0 or an errno: EINVAL for a line with a zero byte, EMSGSIZE for one of
 * more than URL_LIST_MOST_LINE bytes.
 */
int url_list_read(struct url_list *list, FILE *from);

#endif
