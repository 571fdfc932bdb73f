/*
 * sunproxy trace: converts, describes and generates traces.
 */
#include "study/trace/trace.h"

#include <stdio.h>

#include "cli/trace_options.h"
#include "study/commands.h"

static const struct command *const parts[] = {
    &command_trace_convert,
    &command_trace_describe,
    &command_trace_generate,
    NULL,
};

static int
run(int argc, char **argv)
{
    return command_run_part(&command_trace, "convert, describe or generate is missing", argc, argv);
}

static void
print_formats(void)
{
    trace_print_formats(stdout);
}

const struct command command_trace = {
    .name = "trace",
    .summary = "convert, describe and generate traces",
    .about = "usage: sunproxy trace convert [OPTION...] TRACE...\n"
             "       sunproxy trace describe [OPTION...] TRACE...\n"
             "       sunproxy trace generate [OPTION...] WORKLOAD\n\n"
             "convert    writes a trace in another format\n"
             "describe   prints statistics: popularity, sizes, reuse\n"
             "generate   writes a synthetic trace: Zipf, uniform, the Thrift study's, YCSB's\n\n"
             "Each prints its options with --help. TRACE is a file, plain or compressed\n"
             "with gzip, bzip2, xz or zstd, a FIFO, or '-' for standard input. Its format\n"
             "is detected from its content or given with --format:\n",
    .lists = print_formats,
    .run = run,
    .parts = parts,
};
