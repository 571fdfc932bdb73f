/*
 * Loading: which reader, what it hands over and what of that is kept.
 */
#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/builder.h"
#include "trace/formats.h"

struct span
trace_url_text(const struct trace *trace, uint32_t id, char text[TRACE_URL_TEXT])
{
    if (trace->urls)
        return trace->urls[id];
    return span_of(text, (size_t)snprintf(text, TRACE_URL_TEXT, "%" PRIu64, trace->numbers[id]));
}

/* ---- sentences ----------------------------------------------------------------------------- */

struct sentence {
    char *text;
    size_t size;
    size_t len;
};

static void say(struct sentence *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void
say(struct sentence *s, const char *format, ...)
{
    va_list args;
    int n;

    if (s->len >= s->size)
        return;
    va_start(args, format);
    n = vsnprintf(s->text + s->len, s->size - s->len, format, args);
    va_end(args);
    s->len += n > 0 ? (size_t)n : 0;
}

static void
say_left_out(struct sentence *s, uint64_t count, const char *what, bool *any)
{
    if (count == 0)
        return;
    say(s, "%s%" PRIu64 " %s", *any ? ", " : " (left out: ", count, what);
    *any = true;
}

static void
explain_empty(const char *path, const struct trace_format *format, const struct trace_counts *c,
              char *why, size_t why_size)
{
    struct sentence s = {.text = why, .size = why_size};
    bool any = false;

    say(&s, "%s: no request in it", path);
    say_left_out(&s, c->skipped_bad, "malformed", &any);
    say_left_out(&s, c->skipped_orphan, "without a URL", &any);
    say_left_out(&s, c->skipped_method, "of other methods", &any);
    say_left_out(&s, c->skipped_status, "of other statuses", &any);
    say_left_out(&s, c->skipped_redirect, "redirects", &any);
    say_left_out(&s, c->skipped_scheme, "neither http nor https", &any);
    say_left_out(&s, c->skipped_time, "outside the wanted times", &any);
    say_left_out(&s, c->skipped_unique, "seen before", &any);
    say(&s, "%s; expected at least one in what was read as %s (%s)", any ? ")" : "", format->name,
        format->summary);
}

static void
explain_formats(const char *path, const char *wanted, char *why, size_t why_size)
{
    struct sentence s = {.text = why, .size = why_size};

    if (wanted)
        say(&s, "no trace format is called '%s'; there are:", wanted);
    else
        say(&s, "%s: not a trace of any known format; those are:", path);
    for (size_t i = 0; trace_formats[i]; i++)
        say(&s, "%s %s (%s)", i ? "," : "", trace_formats[i]->name, trace_formats[i]->summary);
}

/* ---- loading ------------------------------------------------------------------------------- */

/* The first bytes of a regular file; *len is how many. */
static enum trace_error
read_head(const char *path, char head[TRACE_HEAD_BYTES], size_t *len, char *why, size_t why_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    ssize_t n;

    if (fd < 0) {
        snprintf(why, why_size, "%s: cannot open the trace: %s", path, strerror(errno));
        return TRACE_CANNOT_OPEN;
    }
    if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode)) {
        snprintf(why, why_size, "%s: cannot read the trace: not a regular file", path);
        close(fd);
        return TRACE_CANNOT_OPEN;
    }
    for (*len = 0; *len < TRACE_HEAD_BYTES; *len += (size_t)n) {
        n = read(fd, head + *len, TRACE_HEAD_BYTES - *len);
        if (n < 0 && errno == EINTR)
            n = 0;
        else if (n <= 0)
            break;
    }
    if (n < 0)
        snprintf(why, why_size, "%s: cannot read the trace: %s", path, strerror(errno));
    close(fd);
    return n < 0 ? TRACE_CANNOT_OPEN : TRACE_OK;
}

static enum trace_error
choose_format(const char *path, const char *wanted, const struct trace_format **format, char *why,
              size_t why_size)
{
    char head[TRACE_HEAD_BYTES];
    size_t len = 0;
    enum trace_error error = read_head(path, head, &len, why, why_size);

    if (error != TRACE_OK)
        return error;
    if (wanted)
        *format = trace_format_find(wanted);
    else if (len == 0)
        *format = NULL;
    else
        *format = trace_format_sniff(span_of(head, len));
    if (!*format && !wanted && len == 0) {
        snprintf(why, why_size, "%s: the file is empty, no trace", path);
        return TRACE_EMPTY;
    }
    if (!*format) {
        explain_formats(path, wanted, why, why_size);
        return TRACE_NOT_A_TRACE;
    }
    return TRACE_OK;
}

enum trace_error
trace_load(const char *path, const struct trace_options *options, struct trace **trace, char *why,
           size_t why_size)
{
    const struct trace_format *format;
    struct trace_builder *builder;
    enum trace_error error;

    *trace = NULL;
    if (!trace_options_check(options, why, why_size))
        return TRACE_BAD_OPTION;
    error = choose_format(path, options->format, &format, why, why_size);
    if (error != TRACE_OK)
        return error;
    builder = trace_builder_create(options);
    error = builder ? format->read(path, options, builder, why, why_size) : TRACE_NO_MEMORY;
    if (error == TRACE_OK && trace_builder_failed(builder))
        error = TRACE_NO_MEMORY;
    if (error == TRACE_OK && trace_builder_counts(builder)->requests == 0) {
        explain_empty(path, format, trace_builder_counts(builder), why, why_size);
        error = TRACE_EMPTY;
    }
    if (error == TRACE_OK) {
        *trace = trace_builder_finish(builder, format->name);
        if (!*trace)
            error = TRACE_NO_MEMORY;
    }
    if (error == TRACE_NO_MEMORY)
        snprintf(why, why_size, "%s: not enough memory to load the trace", path);
    trace_builder_destroy(builder);
    return error;
}
