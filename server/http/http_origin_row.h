/*
 * The text of a row of --origin (http_origins.h): "[HOST]/PREFIX=MEMBER[,MEMBER...] [KEY=VALUE ...]".
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_ORIGIN_ROW_H
#define SUNPROXY_SERVER_HTTP_HTTP_ORIGIN_ROW_H

#include <stdbool.h>

#include "base/buf.h"

struct http_origin;

/*
 * Reads it into a row that is all zero; host and prefix point into the text. False with a sentence,
 * which begins with `dashes` and the name of the option. In both cases the row is to be freed.
 */
bool http_origin_row_read(const char *text, const char *dashes, struct http_origin *row,
                          struct buf *why);

/* Frees what it owns. It is all zero then. */
void http_origin_row_free(struct http_origin *row);

#endif
