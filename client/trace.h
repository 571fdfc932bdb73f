/*
 * The parts of `sunproxy trace`: each is a command of its own with a file of its own; trace.c finds
 * it.
 */
#ifndef SUNPROXY_CLIENT_TRACE_H
#define SUNPROXY_CLIENT_TRACE_H

#include "client/command.h"
#include "trace/write.h"

extern const struct command command_trace_convert;
extern const struct command command_trace_describe;
extern const struct command command_trace_generate;

/* What --to says, or else what the output is called, or else `otherwise`; NULL after a complaint.
 */
const struct trace_writer *trace_choose_writer(const char *to, const char *output,
                                               const struct trace_writer *otherwise);

/* Writes, and complains: an exit status. */
int trace_write_out(const struct trace *trace, const struct trace_writer *writer,
                    const struct trace_write_options *options, const char *output);

/* The list of writers, for --help. */
#define TRACE_WRITERS_HELP                                                   \
    "      --to FORMAT        tsv: a table with named columns\n"             \
    "                         urls: a URL a line, and its size if known\n"   \
    "                         oracle: libCacheSim's oracleGeneral\n"         \
    "                         chrome: a History of Chrome's schema\n"        \
    "                         (default: as the output is called: .tsv,\n"    \
    "                         .urls, .txt, .bin, .oracleGeneral, History)\n" \
    "  -o, --output FILE      '-' is standard output, the default; a file\n" \
    "                         that is there is replaced at the end\n"

#endif
