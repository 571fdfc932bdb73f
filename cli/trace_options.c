#include "cli/trace_options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/nearest.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/when.h"
#include "trace/join.h"

/* ---- options --------------------------------------------------------------------------------- */

void
trace_print_formats(FILE *to)
{
    for (size_t i = 0; trace_formats[i]; i++)
        command_print_name(to, trace_formats[i]->name, trace_formats[i]->summary);
}

static int
take_format(const struct option_row *row, void *field, const char *name)
{
    struct nearest nearest = NEAREST_TO(name);
    char ask[80];

    (void)row;
    if (trace_format_exists(name)) {
        *(const char **)field = name;
        return EX_OK;
    }
    for (size_t i = 0; trace_formats[i]; i++)
        nearest_offer(&nearest, trace_formats[i]->name);
    for (size_t i = 0; trace_aliases[i].name; i++)
        nearest_offer(&nearest, trace_aliases[i].name);
    output_complain("unknown trace format '%s'%s", name, nearest_ask(&nearest, ask, sizeof(ask)));
    fputs("There are:\n", stderr);
    trace_print_formats(stderr);
    return EX_USAGE;
}

static int
take_when(const struct option_row *row, void *field, const char *text)
{
    if (when_parse(text, field))
        return EX_OK;
    return options_wrong(
        row, "a date such as 2024-05-31 or 2024-05-31T12:30:00, or seconds since 1970", text);
}

#define AT(field) offsetof(struct trace_options, field)

static const struct option_row rows[] = {
    {"format", 0, "NAME", take_format, AT(format), 0, 0, NULL,
     "format of the trace, or the format string of a log, such as '%h %t \"%r\" %>s %b' "
     "(default: detected from the content)"},
    {"columns", 0, "LIST", option_text, AT(columns), 0, 0, NULL,
     "columns of a table, such as time,url,-,size (default: as its first line names them)"},
    {"methods", 0, "LIST", option_text, AT(methods), 0, 0, NULL,
     "of logs: request methods that count, or all (default: " TRACE_DEFAULT_METHODS ")"},
    {"statuses", 0, "LIST", option_text, AT(statuses), 0, 0, NULL,
     "of logs: statuses that count, such as 2xx or 200-206, or all "
     "(default: " TRACE_DEFAULT_STATUSES ")"},
    {"redirects", 0, "keep|drop", option_choice, AT(redirects), TRACE_REDIRECTS_KEEP, 0, NULL,
     "count redirects (default: keep for histories, drop for logs)"},
    {"site", 0, "URL", option_text, AT(site), 0, 0, NULL,
     "prefix of URLs that are only a path (default: " TRACE_DEFAULT_SITE ")"},
    {"base-urls", 0, NULL, option_flag, AT(base_urls), 0, 0, NULL,
     "reduce each URL to scheme://host[:port]"},
    {"cut-query", 0, NULL, option_flag, AT(cut_query), 0, 0, NULL,
     "remove the query of each URL (default: kept)"},
    {"unique", 0, NULL, option_flag, AT(unique), 0, 0, NULL, "only the first request for each URL"},
    {"limit", 0, "N", option_uint, AT(limit), 1, UINT64_MAX, NULL, "at most N requests"},
    {"since", 0, "WHEN", take_when, AT(since_us), 0, 0, NULL,
     "only requests from this time on: 2024-05-31, 2024-05-31T12:30:00 (UTC, or with Z or +02:00 "
     "at the end), or seconds since 1970"},
    {"until", 0, "WHEN", take_when, AT(until_us), 0, 0, NULL, "only requests before this time"},
    {"all-schemes", 0, NULL, option_flag, AT(all_schemes), 0, 0, NULL,
     "keep URLs of schemes other than http and https"},
    {0},
};

const struct option_group trace_option_group = {.heading = "The trace", .rows = rows};

static const struct option_row size_rows[] = {
    {"sizes-as-read", 0, NULL, option_flag, AT(sizes_as_read), 0, 0, NULL,
     "sizes as the trace has them; without it, a request whose size is not known, such as any "
     "answered 304, has the size of another request for its URL"},
    {0},
};

const struct option_group trace_sizes_group = {.rows = size_rows};

/* ---- loading --------------------------------------------------------------------------------- */

/* Prints on stderr what was left out of the trace and what was changed. */
static void
print_counts(const char *path, const struct trace *trace)
{
    const struct trace_counts *counts = &trace->counts;
    struct trace_reason reasons[TRACE_REASONS];
    struct buf line;

    buf_init(&line, 1024);
    trace_reasons(counts, reasons);
    for (size_t i = 0; i < TRACE_REASONS; i++)
        if (reasons[i].count != 0)
            buf_printf(&line, "%s%" PRIu64 " %s", line.len ? ", " : "", reasons[i].count,
                       reasons[i].what);
    if (counts->first_bad_line != 0)
        buf_printf(&line, " (first: %s %" PRIu64 ")", trace->unit, counts->first_bad_line);
    if (line.len != 0)
        output_complain("%s: left out: %s", path, buf_str(&line));
    buf_free(&line);
    for (size_t i = 0; i < counts->bad_count; i++)
        if (counts->bad[i].line != 0)
            output_note("%s %" PRIu64 ": %s", trace->unit, counts->bad[i].line,
                        counts->bad[i].text);
    for (size_t i = 0; i < counts->remark_count; i++)
        output_complain("%s: %s", path, counts->remarks[i]);
    if (counts->large_sizes != 0)
        output_complain("%s: %" PRIu64 " request%s larger than %u bytes, counted as that", path,
                        counts->large_sizes, counts->large_sizes == 1 ? "" : "s", TRACE_SIZE_MOST);
}

void
trace_json_left_out(struct json *j, const char *name, const struct trace_counts *counts)
{
    struct trace_reason reasons[TRACE_REASONS];

    trace_reasons(counts, reasons);
    json_open_object(j, name);
    for (size_t i = 0; i < TRACE_REASONS; i++)
        json_uint(j, reasons[i].name, reasons[i].count);
    json_close_object(j);
}

void
trace_json_infinite(struct json *j, const struct trace_totals *totals, bool sized)
{
    json_open_object(j, "infinite");
    json_double(j, "hit_ratio", trace_totals_hit_ratio(totals), 6);
    if (sized)
        json_double(j, "byte_hit_ratio", trace_totals_byte_hit_ratio(totals), 6);
    else
        json_null(j, "byte_hit_ratio");
    json_close_object(j);
}

#define DRAW_EVERY_US 100000

struct loading {
    struct progress progress;
    int64_t drawn_us; /* 0: not yet */
};

/* A short load shows nothing. */
static void
draw_loading(void *context, uint64_t done, uint64_t total)
{
    struct loading *loading = context;
    int64_t now_us = clock_monotonic_us();

    if (loading->drawn_us == 0) {
        progress_begin_bytes(&loading->progress, "reading", total);
        loading->drawn_us = now_us;
    }
    if (now_us - loading->drawn_us < DRAW_EVERY_US)
        return;
    progress_draw(&loading->progress, done);
    loading->drawn_us = now_us;
}

int
trace_open(const char *path, const struct trace_options *options, struct trace **trace)
{
    struct trace_options own = *options;
    struct loading loading = {0};
    enum trace_error error;
    char why[1024] = "";

    own.progress = draw_loading;
    own.progress_context = &loading;
    error = trace_load(path, &own, trace, why, sizeof(why));
    progress_clear(&loading.progress);
    switch (error) {
    case TRACE_OK:
        print_counts(strcmp(path, "-") == 0 ? "standard input" : path, *trace);
        return EX_OK;
    case TRACE_CANNOT_OPEN:
        output_complain("%s", why);
        return EX_NOINPUT;
    case TRACE_NOT_A_TRACE:
    case TRACE_EMPTY:
        output_complain("%s", why);
        return EX_DATAERR;
    case TRACE_BAD_OPTION:
        output_complain("%s", why);
        return EX_USAGE;
    case TRACE_STOPPED:
        output_complain("interrupted while reading %s",
                        strcmp(path, "-") == 0 ? "standard input" : path);
        return EXIT_INTERRUPTED;
    case TRACE_NO_MEMORY:
        break;
    }
    output_complain("%s: out of memory", path);
    return EX_SOFTWARE;
}

/* ---- several files --------------------------------------------------------------------------- */

static int
join_parts(struct trace *const *parts, size_t count, const struct trace_options *options,
           struct trace **trace, bool *by_time)
{
    switch (trace_join(parts, count, options, trace, by_time)) {
    case TRACE_OK:
        break;
    case TRACE_NOT_A_TRACE:
        output_complain("the traces cannot be joined: some have URLs, others only numbers");
        return EX_DATAERR;
    default:
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    for (size_t i = 0; i < (*trace)->counts.remark_count; i++)
        output_complain("%s", (*trace)->counts.remarks[i]);
    if (!*by_time)
        output_complain("not all of the %zu files have times; they are read in the order given",
                        count);
    return EX_OK;
}

int
trace_open_files(char *const *paths, size_t count, const struct trace_options *options,
                 struct trace **trace, bool *by_time)
{
    struct trace_options own = *options;
    struct trace **parts;
    int status = EX_OK;

    *by_time = false;
    if (count == 1)
        return trace_open(paths[0], options, trace);
    parts = calloc(count, sizeof(*parts));
    if (!parts) {
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    /* What belongs to the whole is left to trace_join(). */
    own.without_times = false;
    own.sizes_as_read = true;
    own.unique = false;
    own.limit = 0;
    for (size_t i = 0; i < count && status == EX_OK; i++)
        status = trace_open(paths[i], &own, &parts[i]);
    if (status == EX_OK)
        status = join_parts(parts, count, options, trace, by_time);
    for (size_t i = 0; i < count; i++)
        trace_free(parts[i]);
    free(parts);
    return status;
}

void
trace_print_name(const char *first, size_t count, bool by_time)
{
    output_put(first);
    if (count > 1)
        printf(" and %zu more file%s (%s)", count - 1, count == 2 ? "" : "s",
               by_time ? "ordered by time" : "in the order given");
}
