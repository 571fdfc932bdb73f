#include "server/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "server/timestamp.h"

static enum log_level most_told = LOG_LEVEL_INFO;
static enum log_format told_as = LOG_FORMAT_PLAIN;

static const char *const level_names[] = {"error", "warning", "info", "debug"};

void
log_setup(enum log_level most, enum log_format format)
{
    most_told = most;
    told_as = format;
}

bool
log_wants(enum log_level level)
{
    return level <= most_told;
}

static void
tell(enum log_level level, const char *format, va_list args)
{
    struct buf line, text;
    char when[TIMESTAMP_SIZE];
    ssize_t written;

    if (!log_wants(level))
        return;
    timestamp_format(clock_wall_us(), when);
    buf_init(&text, 8192);
    buf_init(&line, 65536);
    buf_vprintf(&text, format, args);
    if (told_as == LOG_FORMAT_JSON) {
        struct json json;

        json_init(&json, &line);
        json_open_object(&json, NULL);
        json_cstring(&json, "time", when);
        json_cstring(&json, "level", level_names[level]);
        json_string(&json, "message", buf_span(&text));
        json_close_object(&json);
        buf_append_char(&line, '\n');
    } else {
        buf_printf(&line, "%s sunproxyd: %s%s%s\n", when,
                   level == LOG_LEVEL_INFO ? "" : level_names[level],
                   level == LOG_LEVEL_INFO ? "" : ": ", buf_str(&text));
    }
    if (line.len) {
        written = write(STDERR_FILENO, line.data, line.len);
        (void)written;
    }
    buf_free(&line);
    buf_free(&text);
}

#define TELL(level)                \
    do {                           \
        va_list args;              \
        va_start(args, format);    \
        tell(level, format, args); \
        va_end(args);              \
    } while (0)

void
log_error(const char *format, ...)
{
    TELL(LOG_LEVEL_ERROR);
}

void
log_warning(const char *format, ...)
{
    TELL(LOG_LEVEL_WARNING);
}

void
log_info(const char *format, ...)
{
    TELL(LOG_LEVEL_INFO);
}

void
log_debug(const char *format, ...)
{
    TELL(LOG_LEVEL_DEBUG);
}
