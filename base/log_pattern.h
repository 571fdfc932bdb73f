/*
 * Format strings of access logs, such as '%h %t "%r" %>s %b %{outcome}x': a text in which
 * directives stand for values of a request. The letters are those of Apache's mod_log_config, with
 * its meanings; %{NAME}x are values of this proxy. One table of directives serves the daemon, which
 * writes lines, the readers of traces, which read them back, and the manual.
 *
 * A line can be read back because the byte behind a directive does not occur in its value: it is
 * written as \xNN there, as are quotes, backslashes and all but printable ASCII. So a directive is
 * followed by such a byte or by the end of the line.
 *
 * A pattern is constant once it is made, and safe on any thread.
 */
#ifndef SUNPROXY_BASE_LOG_PATTERN_H
#define SUNPROXY_BASE_LOG_PATTERN_H

#include "base/buf.h"

/* What a directive stands for. */
enum log_value {
    LOG_VALUE_CLIENT,
    LOG_VALUE_NOTHING, /* "-" */
    LOG_VALUE_USER,
    LOG_VALUE_TIME,    /* of the kinds below */
    LOG_VALUE_REQUEST, /* "GET /index.html HTTP/1.1" */
    LOG_VALUE_METHOD,
    LOG_VALUE_PATH,
    LOG_VALUE_QUERY, /* with its question mark; or empty */
    LOG_VALUE_VERSION,
    LOG_VALUE_HOST,
    LOG_VALUE_PORT,
    LOG_VALUE_STATUS,
    LOG_VALUE_BYTES,
    LOG_VALUE_BYTES_OR_DASH, /* "-" for 0 */
    LOG_VALUE_US,
    LOG_VALUE_MS,
    LOG_VALUE_SECONDS,
    LOG_VALUE_PID,
    LOG_VALUE_CLIENT_PORT,
    LOG_VALUE_FIELD,    /* of the request; part->argument names it */
    LOG_VALUE_RESPONSE, /* that of the response */
    LOG_VALUE_COOKIE,   /* of the request; likewise */
    LOG_VALUE_URL,
    LOG_VALUE_MEMBER,
    LOG_VALUE_OUTCOME,
    LOG_VALUE_REASON,
    LOG_VALUE_ERROR,
    LOG_VALUE_PROTOCOL,
    LOG_VALUE_FETCH_US,
    LOG_VALUE_EVICTED,
    LOG_VALUE_WORKER,
};

/* How a value is written, and so where it ends. */
enum log_kind {
    LOG_KIND_TEXT, /* any bytes, "-" for none */
    LOG_KIND_HOST, /* likewise; colons stand in brackets only */
    LOG_KIND_ADDRESS,
    LOG_KIND_NUMBER,   /* digits, or "-" */
    LOG_KIND_DATE,     /* "[22/Nov/2026:11:30:00 +0000]" */
    LOG_KIND_STRFTIME, /* as part->argument says, for strftime() */
    LOG_KIND_SECONDS,  /* since 1970 */
    LOG_KIND_MILLISECONDS,
    LOG_KIND_MICROSECONDS,
    LOG_KIND_MS_FRACTION, /* three digits */
    LOG_KIND_US_FRACTION, /* six digits */
};

/* A row of the table. */
struct log_directive {
    const char *name; /* as it stands behind the percent sign: "h", "{FIELD}i", "{outcome}x". In
                         braces small letters are meant as they are, and capitals are any text */
    enum log_value value;
    enum log_kind kind;
    const char *help;
};

/* All directives, in the order of the manual; the last row has no name. */
extern const struct log_directive log_directives[];

/* A format string that has a name. */
struct log_named_pattern {
    const char *name;
    const char *text;
};

/* All of them; the last row has no name. */
extern const struct log_named_pattern log_named_patterns[];

#define LOG_PATTERN_STATUSES 16u

/* A directive with the text behind it. */
struct log_part {
    const struct log_directive *directive;
    enum log_kind kind;
    bool at_end;           /* of a time: of the end of the request */
    bool is_moment;        /* by strftime(): with day and time */
    bool joined;           /* of a path: its query is the next part, with nothing between */
    bool negated;          /* `statuses` are those without the value */
    unsigned status_count; /* 0: for all */
    unsigned short statuses[LOG_PATTERN_STATUSES]; /* that have the value */
    char stop;        /* the byte that ends the value, and does not occur in it; 0: the line ends */
    char *argument;   /* owned; NULL: none */
    struct span text; /* behind the value; bytes of the pattern */
};

#define LOG_PATTERN_PARTS 64u

struct log_pattern {
    char *text;        /* owned: the literal text of all parts */
    struct span begin; /* before the first value */
    unsigned count;
    struct log_part parts[LOG_PATTERN_PARTS];
};

/*
 * Compiles a format string, or the name of one. NULL with errno EINVAL and a sentence in `why` about
 * what is wrong, and what was probably meant; or with ENOMEM. For log_pattern_free().
 */
struct log_pattern *log_pattern_compile(const char *format, struct buf *why);

/* NULL is harmless. */
void log_pattern_free(struct log_pattern *pattern);

/* Has a request of this status the value? Otherwise its place has "-". */
bool log_part_applies(const struct log_part *part, unsigned status);

#endif
