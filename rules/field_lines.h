/*
 * Edits of field lines, each ended by CR LF, in the buffer that has them. Private to rules/.
 */
#ifndef SUNPROXY_RULES_FIELD_LINES_H
#define SUNPROXY_RULES_FIELD_LINES_H

#include "base/buf.h"
#include "base/span.h"

/* Removes the lines for which `is_removed` is true. */
void lines_remove(struct buf *lines, bool (*is_removed)(const void *context, struct span line),
                  const void *context);

/* Removes the lines of a name. */
void lines_remove_name(struct buf *lines, struct span name);

/* Removes them, and appends one. The buffer says if that failed. */
void lines_set(struct buf *lines, struct span name, struct span value);

#endif
