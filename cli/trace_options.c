#include "cli/trace_options.h"

#include <inttypes.h>
#include <string.h>
#include <sysexits.h>

#include "base/buf.h"
#include "base/nearest.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/when.h"

/* ---- options --------------------------------------------------------------------------------- */

static int
wrong(const char *option, const char *wanted, const char *argument)
{
    output_complain("%s is %s, not '%s'", option, wanted, argument);
    return -1;
}

void
trace_print_formats(FILE *to)
{
    for (size_t i = 0; trace_formats[i]; i++)
        command_print_name(to, trace_formats[i]->name, trace_formats[i]->summary);
}

static int
take_format(struct trace_options *options, const char *name)
{
    struct nearest nearest = NEAREST_TO(name);
    char ask[80];

    for (size_t i = 0; trace_formats[i]; i++) {
        if (strcmp(trace_formats[i]->name, name) == 0) {
            options->format = trace_formats[i]->name;
            return 1;
        }
        nearest_offer(&nearest, trace_formats[i]->name);
    }
    output_complain("no format of traces is called '%s'%s", name,
                    nearest_ask(&nearest, ask, sizeof(ask)));
    fputs("There are:\n", stderr);
    trace_print_formats(stderr);
    return -1;
}

static int
take_redirects(struct trace_options *options, const char *argument)
{
    bool keep = strcmp(argument, "keep") == 0;

    if (!keep && strcmp(argument, "drop") != 0)
        return wrong("--redirects", "keep or drop", argument);
    options->redirects = keep ? TRACE_REDIRECTS_KEEP : TRACE_REDIRECTS_DROP;
    return 1;
}

static int
take_when(const char *name, const char *argument, int64_t *when_us)
{
    return when_parse(argument, when_us)
               ? 1
               : wrong(name,
                       "a date such as 2024-05-31 or 2024-05-31T12:30:00, or seconds since 1970",
                       argument);
}

int
trace_option(struct trace_options *options, int option, const char *argument)
{
    switch (option) {
    case TRACE_OPTION_FORMAT:
        return take_format(options, argument);
    case TRACE_OPTION_METHODS:
        options->methods = argument;
        return 1;
    case TRACE_OPTION_STATUSES:
        options->statuses = argument;
        return 1;
    case TRACE_OPTION_REDIRECTS:
        return take_redirects(options, argument);
    case TRACE_OPTION_SITE:
        options->site = argument;
        return 1;
    case TRACE_OPTION_BASE_URLS:
        options->base_urls = true;
        return 1;
    case TRACE_OPTION_CUT_QUERY:
        options->cut_query = true;
        return 1;
    case TRACE_OPTION_UNIQUE:
        options->unique = true;
        return 1;
    case TRACE_OPTION_LIMIT:
        return units_parse_uint(argument, 1, UINT64_MAX, &options->limit)
                   ? 1
                   : wrong("--limit", "a number from 1 on", argument);
    case TRACE_OPTION_SINCE:
        return take_when("--since", argument, &options->since_us);
    case TRACE_OPTION_UNTIL:
        return take_when("--until", argument, &options->until_us);
    case TRACE_OPTION_ALL_SCHEMES:
        options->all_schemes = true;
        return 1;
    case TRACE_OPTION_SIZES_AS_READ:
        options->sizes_as_read = true;
        return 1;
    default:
        return 0;
    }
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Some lines on stderr about what was left out of the trace, and what is not as it was. */
static void
tell_counts(const char *path, const struct trace *trace)
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

int
trace_open(const char *path, const struct trace_options *options, struct trace **trace)
{
    char why[1024] = "";

    switch (trace_load(path, options, trace, why, sizeof(why))) {
    case TRACE_OK:
        tell_counts(strcmp(path, "-") == 0 ? "standard input" : path, *trace);
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
