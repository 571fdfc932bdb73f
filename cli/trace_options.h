/*
 * The options that choose among a trace's requests, and loading with complaints: alike for every
 * subcommand that takes a trace.
 */
#ifndef SUNPROXY_CLI_TRACE_OPTIONS_H
#define SUNPROXY_CLI_TRACE_OPTIONS_H

#include "base/json.h"
#include "cli/options.h"
#include "trace/totals.h"

/* Values of the long options below, out of the way of connect.h's and of a subcommand's own. */
/* For struct trace_options, which begins as TRACE_OPTIONS_DEFAULT. */
extern const struct option_group trace_option_group;

/*
 * One more for those who say what a trace has; to simulate it with sizes that are not the pages'
 * would be wrong. It belongs right behind the group above.
 */
extern const struct option_group trace_sizes_group;

/* What of a command's exit status is a trace's doing; begins a line, ends within one. */
#define TRACE_EXIT_HELP                                                                \
    "65 the file is no trace, or nothing is left of it; 66 it cannot be read, or it\n" \
    "changed meanwhile; "

/* The list of formats, for --help and behind a complaint. */
void trace_print_formats(FILE *to);

/*
 * Loads a trace: EX_OK, or the exit status after a complaint, EXIT_INTERRUPTED if stop_fd of the
 * options told to give it up. Says on stderr what was left out.
 */
int trace_open(const char *path, const struct trace_options *options, struct trace **trace);

/* Adds an object of that name: how many requests were left out, by reason. */
void trace_json_left_out(struct json *j, const char *name, const struct trace_counts *counts);

/* Adds the object "infinite": the ratios of an infinite cache, that of bytes null without sizes. */
void trace_json_infinite(struct json *j, const struct trace_totals *totals, bool sized);

#endif
