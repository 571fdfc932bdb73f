/* The lines of the access log: see access_log.h. */
#ifndef SUNPROXY_SERVER_LOGS_ACCESS_LINE_H
#define SUNPROXY_SERVER_LOGS_ACCESS_LINE_H

#include "base/log_pattern.h"
#include "server/logs/access_entry.h"
#include "server/logs/log.h"

/* As --log-format has it. */
struct access_format {
    enum log_format words;       /* without a pattern */
    struct log_pattern *pattern; /* owned; NULL: none */
};

/* False with a sentence in `why`. For access_format_free(). */
bool access_format_init(struct access_format *format, const char *text, struct buf *why);
void access_format_free(struct access_format *format);

/* Appends the line of an entry that ended at this time, in microseconds of the wall clock. */
void access_line_append(struct buf *line, const struct access_entry *entry,
                        const struct access_format *format, int64_t wall_us);

#endif
