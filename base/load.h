/*
 * A file's whole content in memory.
 */
#ifndef SUNPROXY_BASE_LOAD_H
#define SUNPROXY_BASE_LOAD_H

#include "base/buf.h"

/*
 * Appends the content of the file at `path`. 0 or an errno: EFBIG where the buffer's ceiling is
 * reached, ENOMEM without memory. After an error the buffer may hold a part.
 */
int load_file(const char *path, struct buf *content);

#endif
