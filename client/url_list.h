/*
 * URLs as a person or a script gives them: arguments, or lines of a stream.
 */
#ifndef SUNPROXY_CLIENT_URL_LIST_H
#define SUNPROXY_CLIENT_URL_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define URL_LIST_MOST_LINE 65536u /* bytes, as many as the protocol carries */

struct url_list {
    char **urls; /* owned, each and all */
    size_t count;
    size_t allocated;
};

/* An empty list is all zeros. Frees and leaves it empty. */
void url_list_free(struct url_list *list);

/* Appends one; as curl does, "http://" goes in front of one without "://". False without memory. */
bool url_list_add(struct url_list *list, const char *url);

/*
 * Appends the lines of a stream: space around each is cut off; empty ones and those that begin with
 * '#' are left out. 0, or an errno: EINVAL for a line with a zero byte in it, EMSGSIZE for one of
 * more than URL_LIST_MOST_LINE bytes.
 */
int url_list_read(struct url_list *list, FILE *from);

#endif
