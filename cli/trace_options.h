/*
 * The options that choose among a trace's requests, and loading with complaints: alike for every
 * subcommand that takes a trace.
 */
#ifndef SUNPROXY_CLI_TRACE_OPTIONS_H
#define SUNPROXY_CLI_TRACE_OPTIONS_H

#include <getopt.h>

#include "base/json.h"
#include "trace/trace.h"

/* Values of the long options below, out of the way of connect.h's and of a subcommand's own. */
enum {
    TRACE_OPTION_FORMAT = 1024,
    TRACE_OPTION_METHODS,
    TRACE_OPTION_STATUSES,
    TRACE_OPTION_REDIRECTS,
    TRACE_OPTION_SITE,
    TRACE_OPTION_BASE_URLS,
    TRACE_OPTION_CUT_QUERY,
    TRACE_OPTION_UNIQUE,
    TRACE_OPTION_LIMIT,
    TRACE_OPTION_SINCE,
    TRACE_OPTION_UNTIL,
    TRACE_OPTION_ALL_SCHEMES,
    TRACE_OPTION_SIZES_AS_READ,
    TRACE_OPTION_END,
};

#define TRACE_LONG_OPTIONS                                              \
    {"format", required_argument, NULL, TRACE_OPTION_FORMAT},           \
        {"methods", required_argument, NULL, TRACE_OPTION_METHODS},     \
        {"statuses", required_argument, NULL, TRACE_OPTION_STATUSES},   \
        {"redirects", required_argument, NULL, TRACE_OPTION_REDIRECTS}, \
        {"site", required_argument, NULL, TRACE_OPTION_SITE},           \
        {"base-urls", no_argument, NULL, TRACE_OPTION_BASE_URLS},       \
        {"cut-query", no_argument, NULL, TRACE_OPTION_CUT_QUERY},       \
        {"unique", no_argument, NULL, TRACE_OPTION_UNIQUE},             \
        {"limit", required_argument, NULL, TRACE_OPTION_LIMIT},         \
        {"since", required_argument, NULL, TRACE_OPTION_SINCE},         \
        {"until", required_argument, NULL, TRACE_OPTION_UNTIL},         \
    {                                                                   \
        "all-schemes", no_argument, NULL, TRACE_OPTION_ALL_SCHEMES      \
    }

#define TRACE_OPTIONS_HELP                                                                         \
    "The trace:\n"                                                                                 \
    "      --format NAME      do not guess it\n"                                                   \
    "      --methods LIST     of logs: which count (default: " TRACE_DEFAULT_METHODS "), or all\n" \
    "      --statuses LIST    likewise (default: " TRACE_DEFAULT_STATUSES "); 2xx, 200-206, all\n" \
    "      --redirects WHICH  keep or drop: count redirects (default: histories do,\n"             \
    "                         logs do not)\n"                                                      \
    "      --site URL         stands before what is only a path (default:\n"                       \
    "                         " TRACE_DEFAULT_SITE ")\n"                                           \
    "      --base-urls        reduce each URL to scheme://host[:port]\n"                           \
    "      --cut-query        cut each URL before its query (default: kept)\n"                     \
    "      --unique           only the first request for each URL\n"                               \
    "      --limit N          at most so many requests\n"                                          \
    "      --since WHEN       from then on: 2024-05-31, 2024-05-31T12:30:00 (UTC;\n"               \
    "                         or with Z or +02:00 behind it), or seconds since 1970\n"             \
    "      --until WHEN       before then\n"                                                       \
    "      --all-schemes      URLs other than http and https too\n"

/* What of a command's exit status is a trace's doing; begins a line, ends within one. */
#define TRACE_EXIT_HELP                                                                \
    "65 the file is no trace, or nothing is left of it; 66 it cannot be read, or it\n" \
    "changed meanwhile; "

/*
 * For those who say what a trace has; to simulate it with sizes that are not the pages' would be
 * wrong.
 */
#define TRACE_SIZES_LONG_OPTION                                        \
    {                                                                  \
        "sizes-as-read", no_argument, NULL, TRACE_OPTION_SIZES_AS_READ \
    }
#define TRACE_SIZES_HELP                                                                 \
    "      --sizes-as-read    sizes as they stand there; without it, a request whose\n"  \
    "                         size is not told, such as any answered 304, has the one\n" \
    "                         that its URL has elsewhere\n"

/* The list of formats, for --help and behind a complaint. */
void trace_print_formats(FILE *to);

/* 1: taken; 0: not one of these; -1: wrong, and complained about. */
int trace_option(struct trace_options *options, int option, const char *argument);

/*
 * Loads a trace: EX_OK, or the exit status after a complaint, EXIT_INTERRUPTED if stop_fd of the
 * options told to give it up. Says on stderr what was left out.
 */
int trace_open(const char *path, const struct trace_options *options, struct trace **trace);

/* Adds an object of that name: how many requests were left out, by reason. */
void trace_json_left_out(struct json *j, const char *name, const struct trace_counts *counts);

#endif
