/*
 * sunproxy trace convert: writes a trace in one of the formats of trace/write/write.h.
 */
#include <getopt.h>

#include "cli/output.h"
#include "cli/trace_options.h"
#include "cli/trace_output.h"
#include "study/trace/trace.h"

struct convert_options {
    struct trace_options trace;
    const char *to;
    const char *output;
};

static const struct option_row rows[] = {
    TRACE_WRITER_ROWS(struct convert_options, ""),
    {0},
};

static const struct option_group own = {.rows = rows};

static int
convert(int argc, char **argv)
{
    struct convert_options options = {.trace = TRACE_OPTIONS_DEFAULT};
    void *const into[] = {&options, &options.trace, &options.trace};
    struct trace_write_options how = {0};
    const struct trace_writer *writer;
    struct trace *trace;
    bool by_time;
    int status = command_read(&command_trace_convert, into, argc, argv);

    if (status != COMMAND_GO_ON)
        return status;
    writer = trace_choose_writer(options.to, options.output, NULL);
    if (!writer)
        return command_usage(&command_trace_convert);
    status =
        trace_open_files(argv + optind, (size_t)(argc - optind), &options.trace, &trace, &by_time);
    if (status != EX_OK)
        return status;
    how.site = options.trace.site;
    status = trace_write_out(trace, writer, &how, options.output);
    trace_free(trace);
    return status;
}

static void
print_lists(void)
{
    puts("\nFormats to write:");
    trace_print_writers(stdout);
}

const struct command command_trace_convert = {
    .name = "trace convert",
    .summary = "write a trace in another format",
    .about = "usage: sunproxy trace convert [OPTION...] TRACE...\n\n"
             "Writes the requests of a trace in one of the formats below; reading the\n"
             "result gives the same requests. Several files are one trace, in the order of\n"
             "time where all have times, else in the order given.\n"
             "A trace with numbers and no URLs keeps them where the format has them; URLs\n"
             "are made of them as SITE/NUMBER. In oracleGeneral, URLs are numbered from 1 in\n"
             "the order of first appearance, and an unknown size is 1. A History of a trace\n"
             "without times has one visit per second, and its times never decrease.\n\n"
             "Methods, statuses and schemes are selected again when the result is read: a\n"
             "trace that was converted with --methods, --statuses, --redirects or\n"
             "--all-schemes needs the same options when it is read.\n",
    .options = {&own, &trace_option_group, &trace_sizes_group},
    .after = "Exit status: 0 written; 64 wrong usage;\n" TRACE_EXIT_HELP
             "73 or 74 the output cannot be written.\n",
    .argument = "trace",
    .least = 1,
    .most = COMMAND_MANY,
    .run = convert,
    .lists = print_lists,
};
