/*
 * The parts of `sunproxy trace`: each is a command of its own with a file of its own; trace.c finds
 * it.
 */
#ifndef SUNPROXY_STUDY_TRACE_TRACE_H
#define SUNPROXY_STUDY_TRACE_TRACE_H

#include "cli/command.h"
#include "trace/write/write.h"

extern const struct command command_trace_convert;
extern const struct command command_trace_describe;
extern const struct command command_trace_generate;

/* The writer of --to, or else by the name of the output, or else `otherwise`; NULL after a
 * complaint.
 */
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
