/*
 * The options that select requests of a trace, and loading with complaints, for every subcommand
 * that reads a trace.
 */
#ifndef SUNPROXY_CLI_TRACE_OPTIONS_H
#define SUNPROXY_CLI_TRACE_OPTIONS_H

#include "base/json.h"
#include "cli/options.h"
#include "trace/totals.h"

/* For struct trace_options, which begins as TRACE_OPTIONS_DEFAULT. */
extern const struct option_group trace_option_group;

/*
 * One more for commands that describe or convert a trace; simulations need the inferred sizes. It
 * follows the group above.
 */
extern const struct option_group trace_sizes_group;

/* The exit statuses of trace_open() for a command's help; begins a line, ends within one. */
#define TRACE_EXIT_HELP                                                            \
    "65 the file is not a trace or has no requests; 66 it cannot be read, or it\n" \
    "changed meanwhile; "

/* Prints the list of formats, for --help and after a complaint. */
void trace_print_formats(FILE *to);

/*
 * Loads a trace: EX_OK, or the exit status after a complaint, EXIT_INTERRUPTED if stop_fd of the
 * options became readable. Prints on stderr what was left out.
 */
int trace_open(const char *path, const struct trace_options *options, struct trace **trace);

/*
 * The same of several files as one trace, in the order of time where all have times (trace/join.h),
 * which sets *by_time. Options that choose among the requests of all, such as limit, are of the
 * whole.
 */
int trace_open_files(char *const *paths, size_t count, const struct trace_options *options,
                     struct trace **trace, bool *by_time);

/* The name of what was opened: "a.log and 2 more files (ordered by time)". */
void trace_print_name(const char *first, size_t count, bool by_time);

/* The row --separate, a bool of a structure that has it as `separate`. */
#define TRACE_SEPARATE_ROW(structure)                                                           \
    {                                                                                           \
        "separate", 0, NULL, option_flag, offsetof(structure, separate), 0, 0, NULL,            \
            "several files are as many traces (default: one trace, in the order of time where " \
            "all have times)"                                                                   \
    }

/* Adds an object of that name: how many requests were left out, by reason. */
void trace_json_left_out(struct json *j, const char *name, const struct trace_counts *counts);

/* Adds the object "infinite": the ratios of an infinite cache, that of bytes null without sizes. */
void trace_json_infinite(struct json *j, const struct trace_totals *totals, bool sized);

#endif
