/* The lines of the access log: see access_log.h. */
#ifndef SUNPROXY_SERVER_LOGS_ACCESS_LINE_H
#define SUNPROXY_SERVER_LOGS_ACCESS_LINE_H

#include "base/buf.h"
#include "server/logs/access_log.h"

/* Appends the line of an entry at this time, in microseconds of the wall clock. */
void access_line_append(struct buf *line, const struct access_entry *entry, enum log_format format,
                        int64_t wall_us);

#endif
