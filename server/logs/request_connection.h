/*
 * SQLite's connection to the request database: its settings, and the schema
 * (base/request_schema.h), which is checked, or made in an empty file.
 */
#ifndef SUNPROXY_SERVER_LOGS_REQUEST_CONNECTION_H
#define SUNPROXY_SERVER_LOGS_REQUEST_CONNECTION_H

#include <sqlite3.h>

#include "base/buf.h"

/*
 * Sets up a new connection to a file of this schema or an empty one, which waits `busy_ms` for a
 * lock of another process. A result code of SQLite; SQLITE_ERROR with a sentence in `why` for a
 * file that is something else.
 */
int request_connection_set_up(sqlite3 *handle, int busy_ms, struct buf *why);

#endif
