/* Lines of the access log by a format string (base/log_pattern.h). Safe on any thread. */
#ifndef SUNPROXY_SERVER_LOGS_ACCESS_PATTERN_H
#define SUNPROXY_SERVER_LOGS_ACCESS_PATTERN_H

#include "base/log_pattern.h"
#include "server/logs/access_entry.h"

/* Appends the line of an entry that ended at this time, in microseconds of the wall clock. */
void access_pattern_append(struct buf *line, const struct access_entry *entry,
                           const struct log_pattern *pattern, int64_t wall_us);

/* "HTTP/1.1", "RPC/2"; static. */
const char *access_pattern_version(const struct access_entry *entry);

#endif
