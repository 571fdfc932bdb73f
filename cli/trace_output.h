/*
 * Writing a trace: the options of every subcommand that does, and its complaints. For the main
 * thread.
 */
#ifndef SUNPROXY_CLI_TRACE_OUTPUT_H
#define SUNPROXY_CLI_TRACE_OUTPUT_H

#include <stdio.h>

#include "cli/options.h"
#include "trace/write/write.h"

/* The writer of --to, or else by the name of the output, or else `otherwise`; NULL after a
 * complaint. */
const struct trace_writer *trace_choose_writer(const char *to, const char *output,
                                               const struct trace_writer *otherwise);

/* Writes the trace and reports errors; an exit status. */
int trace_write_out(const struct trace *trace, const struct trace_writer *writer,
                    const struct trace_write_options *options, const char *output);

/* The list of writers, for the end of --help and behind a complaint. */
void trace_print_writers(FILE *to);

/* Rows --to and --output: two const char *, of a structure that has them as `to` and `output`. */
#define TRACE_WRITER_ROWS(structure, otherwise)                                              \
    {"to",                                                                                   \
     0,                                                                                      \
     "FORMAT",                                                                               \
     option_text,                                                                            \
     offsetof(structure, to),                                                                \
     0,                                                                                      \
     0,                                                                                      \
     NULL,                                                                                   \
     "one of the formats below (default: by the ending of the output: .tsv, .urls, .txt, "   \
     ".bin, .oracleGeneral, .sqlite, History" otherwise ")"},                                \
    {                                                                                        \
        "output", 'o', "FILE", option_text, offsetof(structure, output), 0, 0, "-",          \
            "file to write; '-' is standard output. An existing file is replaced at the end" \
    }

#endif
