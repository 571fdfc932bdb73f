/*
 * sunproxy trace convert: writes a trace in one of our formats.
 */
#include <getopt.h>

#include "cli/output.h"
#include "study/trace.h"
#include "cli/trace_options.h"

enum { OPTION_TO = OPTION_OWN };

static const struct option longs[] = {
    {"to", required_argument, NULL, OPTION_TO},
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, OPTION_HELP},
    TRACE_LONG_OPTIONS,
    TRACE_SIZES_LONG_OPTION,
    {NULL, 0, NULL, 0},
};

static int
convert(int argc, char **argv)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace_write_options how = {0};
    const struct trace_writer *writer;
    const char *to = NULL;
    const char *output = "-";
    struct trace *trace;
    int option, status;

    while ((option = getopt_long(argc, argv, "o:h", longs, NULL)) != -1) {
        if (option == 'h' || option == OPTION_HELP)
            return command_help(&command_trace_convert);
        if (option == 'o')
            output = optarg;
        else if (option == OPTION_TO)
            to = optarg;
        else if (trace_option(&options, option, optarg) <= 0)
            return command_usage(&command_trace_convert);
    }
    if (argc - optind != 1) {
        output_complain(optind == argc ? "a trace is missing" : "one trace at a time");
        return command_usage(&command_trace_convert);
    }
    writer = trace_choose_writer(to, output, NULL);
    if (!writer)
        return command_usage(&command_trace_convert);
    status = trace_open(argv[optind], &options, &trace);
    if (status != EX_OK)
        return status;
    how.site = options.site;
    status = trace_write_out(trace, writer, &how, output);
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
    .help = "usage: sunproxy trace convert [OPTION...] TRACE\n\n"
            "Writes the requests of a trace in one of our formats, so that reading it\n"
            "gives them again. A trace that has numbers and no URLs keeps its numbers\n"
            "where the format has them; URLs are made of them as SITE/NUMBER. In\n"
            "oracleGeneral, URLs are numbered from 1 in the order of first appearance,\n"
            "and a size that is not known is 1. A History without times gets a visit a\n"
            "second, and in one no time is less than the one before.\n\n"
            "Reading chooses among methods, statuses and schemes again: what was\n"
            "converted with --methods, --statuses, --redirects or --all-schemes wants the\n"
            "same when it is read.\n\n" TRACE_WRITERS_HELP "\n" TRACE_OPTIONS_HELP TRACE_SIZES_HELP
            "\n  -h, --help             this text\n\n"
            "Exit status: 0 written; 64 wrong usage;\n" TRACE_EXIT_HELP
            "73 or 74 the output cannot be written.\n",
    .run = convert,
    .lists = print_lists,
};
