/*
 * Loading: chooses the reader, runs it, and explains failures.
 */
#include "trace/trace.h"

#include <inttypes.h>
#include <stdarg.h>

#include "trace/base_url.h"
#include "trace/builder.h"
#include "trace/formats/columns.h"
#include "trace/formats/formats.h"
#include "trace/input.h"
#include "trace/formats/lines.h"
#include "trace/formats/similar.h"
#include "trace/wanted.h"

#define TEXT_SHOWN 160u
#define BYTES_SHOWN 16u

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

void
trace_reasons(const struct trace_counts *c, struct trace_reason reasons[TRACE_REASONS])
{
    const struct trace_reason all[TRACE_REASONS] = {
        {"orphan", "without a URL", c->skipped_orphan},
        {"method", "of other methods", c->skipped_method},
        {"status", "of other statuses", c->skipped_status},
        {"redirect", "redirected", c->skipped_redirect},
        {"scheme", "neither http nor https", c->skipped_scheme},
        {"time", "outside the chosen times", c->skipped_time},
        {"unique", "seen before", c->skipped_unique},
        {"bad", "malformed", c->skipped_bad},
    };

    memcpy(reasons, all, sizeof(all));
}

static const char *
unit_of(const struct trace_format *format)
{
    return format->unit ? format->unit : "line";
}

static void
explain_empty(const char *path, const struct trace_format *format, const struct trace_counts *c,
              char *why, size_t why_size)
{
    struct sentence s = {.text = why, .size = why_size};
    struct trace_reason reasons[TRACE_REASONS];
    bool any = false;

    say(&s, "%s: no requests, read as %s (%s)", path, format->name, format->summary);
    trace_reasons(c, reasons);
    for (size_t i = 0; i < TRACE_REASONS; i++) {
        if (reasons[i].count == 0)
            continue;
        say(&s, "%s%" PRIu64 " %s", any ? ", " : "; left out: ", reasons[i].count, reasons[i].what);
        any = true;
    }
    for (size_t i = 0; i < c->remark_count; i++)
        say(&s, "; %s", c->remarks[i]);
    for (size_t i = 0; i < c->bad_count; i++) {
        say(&s, i ? ", " : "; malformed: ");
        if (c->bad[i].line != 0)
            say(&s, "%s %" PRIu64 " ", unit_of(format), c->bad[i].line);
        say(&s, "'%s'", c->bad[i].text);
    }
}

/* The beginning of a text in quotes, with control characters as '?'. */
static void
say_text(struct sentence *s, struct span text)
{
    char shown[TEXT_SHOWN + 1];
    size_t len = text.len < TEXT_SHOWN ? text.len : TEXT_SHOWN;

    for (size_t i = 0; i < len; i++)
        shown[i] = (unsigned char)text.ptr[i] >= ' ' && text.ptr[i] != 0x7f ? text.ptr[i] : '?';
    shown[len] = '\0';
    say(s, "'%s%s'", shown, len < text.len ? "..." : "");
}

static bool
is_text(struct span line)
{
    for (size_t i = 0; i < line.len; i++) {
        if ((unsigned char)line.ptr[i] < ' ' && line.ptr[i] != '\t')
            return false;
    }
    return true;
}

static void
explain_name(const char *name, char *why, size_t why_size)
{
    struct sentence s = {.text = why, .size = why_size};

    say(&s, "no trace format is called '%s'; there are:", name);
    for (size_t i = 0; trace_formats[i]; i++)
        say(&s, "%s %s", i ? "," : "", trace_formats[i]->name);
}

/* The first line that is not empty, and the format that it resembles. */
static void
explain_unknown(const char *path, struct span head, char *why, size_t why_size)
{
    struct sentence s = {.text = why, .size = why_size};
    const struct trace_format *similar;
    struct span rest = trace_behind_mark(head), line = span_of("", 0);

    say(&s, "%s: unknown trace format", path);
    while (rest.len != 0 && line.len == 0)
        line = lines_next(&rest);
    if (is_text(line)) {
        similar = trace_format_most_similar(line);
        say(&s, "; its first line is ");
        say_text(&s, line);
        if (similar)
            say(&s, "; most similar is %s (%s), with lines such as %s", similar->name,
                similar->summary, similar->sample);
    } else {
        say(&s, "; its first bytes are");
        for (size_t i = 0; i < head.len && i < BYTES_SHOWN; i++)
            say(&s, " %02x", (unsigned)(unsigned char)head.ptr[i]);
    }
    say(&s, "; name the format, or give the format string of a log, with --format, or the columns of a table with --columns");
}

/* ---- loading ------------------------------------------------------------------------------- */

static size_t
count_zeros(struct span bytes)
{
    size_t count = 0;

    while (count < bytes.len && bytes.ptr[count] == '\0')
        count++;
    return count;
}

/* The first bytes; more may lie ahead, and end in the middle of a record. */
static struct span
peek_head(struct input *in)
{
    struct span head = input_peek(in, TRACE_HEAD_BYTES);

    return span_of(head.ptr, head.len < TRACE_HEAD_BYTES ? head.len : TRACE_HEAD_BYTES);
}

/*
 * A log that was truncated while its writer kept its position begins with zero bytes. If there are
 * many, all but the last are skipped; that one still makes its line malformed.
 */
static struct span
skip_zeros(struct input *in)
{
    struct span head = peek_head(in);
    size_t zeros;

    while ((zeros = count_zeros(head)) > TRACE_HEAD_BYTES / 2) {
        input_take(in, zeros - 1);
        head = peek_head(in);
    }
    return head;
}

static enum trace_error
choose_format(struct input *in, const struct trace_options *options,
              const struct trace_format **format, char *why, size_t why_size)
{
    const char *wanted = options->format ? options->format : options->columns ? "table" : NULL;
    struct span head = wanted ? peek_head(in) : skip_zeros(in);
    enum trace_error error;

    *format = wanted ? trace_format_find(wanted, head) : head.len ? trace_format_sniff(head) : NULL;
    if (!*format && !wanted) {
        error = input_finish(in, false, why, why_size);
        if (error != TRACE_OK)
            return error;
    }
    if (!*format && !wanted && head.len == 0) {
        snprintf(why, why_size, "%s: %s, no trace", input_name(in),
                 input_is_plain_file(in) ? "the file is empty" : "there is nothing in it");
        return TRACE_EMPTY;
    }
    if (!*format) {
        if (wanted)
            explain_name(wanted, why, why_size);
        else
            explain_unknown(input_name(in), head, why, why_size);
        return TRACE_NOT_A_TRACE;
    }
    if ((*format)->is_text)
        input_take(in, head.len - trace_behind_mark(head).len);
    return TRACE_OK;
}

static enum trace_error
read_all(struct input *in, const struct trace_format *format, const struct trace_options *options,
         struct trace_builder *builder, char *why, size_t why_size)
{
    enum trace_error error = format->read ? format->read(in, options, builder, why, why_size)
                                          : lines_read(in, builder, options, format->lines);
    bool limited = options->limit != 0 && trace_builder_counts(builder)->requests >= options->limit;
    enum trace_error broken;

    if (error == TRACE_NO_MEMORY || trace_builder_failed(builder))
        return TRACE_NO_MEMORY;
    broken =
        input_finish(in, !limited && !(format->by_path && input_is_plain_file(in)), why, why_size);
    if (broken != TRACE_OK || error != TRACE_OK)
        return broken != TRACE_OK ? broken : error;
    if (trace_builder_counts(builder)->requests == 0) {
        explain_empty(input_name(in), format, trace_builder_counts(builder), why, why_size);
        return TRACE_EMPTY;
    }
    return TRACE_OK;
}

/* Of a format string. */
static enum trace_error
check_format(const char *format, char *why, size_t why_size)
{
    enum trace_error error;
    struct buf text;

    if (!format || !strchr(format, '%'))
        return TRACE_OK;
    buf_init(&text, 1024);
    error = trace_pattern_check(format, &text);
    snprintf(why, why_size, "the format '%s': %s", format, buf_str(&text));
    buf_free(&text);
    return error;
}

static bool
check_options(const struct trace_options *o, char *why, size_t why_size)
{
    struct wanted_statuses statuses;
    const struct trace_format *format =
        o->columns && o->format ? trace_format_find(o->format, span_of("", 0)) : NULL;
    struct columns columns;

    if (o->columns && !columns_parse(&columns, o->columns, why, why_size))
        return false;
    if (format && format != &trace_format_table)
        snprintf(why, why_size, "columns are those of a table, not of the format %s", format->name);
    else if (o->methods && !wanted_methods_ok(o->methods))
        snprintf(why, why_size, "methods are names with commas between, or 'all', not '%s'",
                 o->methods);
    else if (o->statuses && !wanted_parse_statuses(o->statuses, &statuses))
        snprintf(why, why_size, "statuses are such as 200,304,2xx,200-206, or 'all', not '%s'",
                 o->statuses);
    else if (o->site && !base_url_is_site(o->site))
        snprintf(why, why_size, "a site is such as http://www.example.com, not '%s'", o->site);
    else
        return true;
    return false;
}

enum trace_error
trace_load(const char *path, const struct trace_options *options, struct trace **trace, char *why,
           size_t why_size)
{
    const struct trace_format *format = NULL;
    struct trace_builder *builder = NULL;
    struct input *in = NULL;
    enum trace_error error;

    *trace = NULL;
    if (!check_options(options, why, why_size))
        return TRACE_BAD_OPTION;
    error = check_format(options->format, why, why_size);
    if (error == TRACE_BAD_OPTION)
        return error;
    if (error == TRACE_OK)
        error = input_open(path, options->stop_fd, &in, why, why_size);
    if (error == TRACE_OK)
        input_report(in, options->progress, options->progress_context);
    if (error == TRACE_OK)
        error = choose_format(in, options, &format, why, why_size);
    if (error == TRACE_OK) {
        builder = trace_builder_create(options);
        error = builder ? read_all(in, format, options, builder, why, why_size) : TRACE_NO_MEMORY;
    }
    /* The result of half a trace does not matter. */
    if (in && input_was_stopped(in))
        error = TRACE_STOPPED;
    if (error == TRACE_OK) {
        *trace = trace_builder_finish(builder, format->name);
        if (*trace)
            (*trace)->unit = unit_of(format);
        else
            error = TRACE_NO_MEMORY;
    }
    if (error == TRACE_NO_MEMORY)
        snprintf(why, why_size, "%s: not enough memory to load the trace",
                 in ? input_name(in) : path);
    trace_builder_destroy(builder);
    input_close(in);
    return error;
}
