/*
 * sunproxy trace generate: makes a trace up.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/units.h"
#include "cli/output.h"
#include "study/trace.h"
#include "trace/base_url.h"
#include "trace/generate.h"

enum {
    OPTION_TO = OPTION_OWN,
    OPTION_REQUESTS,
    OPTION_URLS,
    OPTION_CONSTANT,
    OPTION_READS,
    OPTION_SIZES,
    OPTION_RATE,
    OPTION_SEED,
    OPTION_SITE,
};

static const struct option longs[] = {
    {"to", required_argument, NULL, OPTION_TO},
    {"output", required_argument, NULL, 'o'},
    {"requests", required_argument, NULL, OPTION_REQUESTS},
    {"urls", required_argument, NULL, OPTION_URLS},
    {"constant", required_argument, NULL, OPTION_CONSTANT},
    {"reads", required_argument, NULL, OPTION_READS},
    {"sizes", required_argument, NULL, OPTION_SIZES},
    {"rate", required_argument, NULL, OPTION_RATE},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"site", required_argument, NULL, OPTION_SITE},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

/* What was asked for; what was not is the workload's default, which is known last. */
struct asked {
    uint64_t requests, urls, seed;
    double constant, reads, rate; /* -1: not given */
    struct generate_sizes sizes;
    bool sizes_given;
    const char *site;
    const char *to;
    const char *output;
};

static bool
wrong(const char *option, const char *wanted, const char *argument)
{
    output_complain("%s is %s, not '%s'", option, wanted, argument);
    return false;
}

/* A number from 0 on without a sign. */
static bool
parse_number(const char *text, double most, double *value)
{
    char *end;

    if ((*text < '0' || *text > '9') && *text != '.')
        return false;
    *value = strtod(text, &end);
    return *end == '\0' && *value >= 0 && *value <= most;
}

static bool
take_option(struct asked *asked, int option, const char *argument)
{
    char why[256];

    switch (option) {
    case OPTION_TO:
        asked->to = argument;
        return true;
    case 'o':
        asked->output = argument;
        return true;
    case OPTION_SITE:
        asked->site = argument;
        return base_url_is_site(argument) ||
               wrong("--site", "a URL such as http://www.example.com", argument);
    case 'n':
    case OPTION_REQUESTS:
        return units_parse_uint(argument, 1, UINT32_MAX - 1, &asked->requests) ||
               wrong("--requests", "a number from 1 on", argument);
    case OPTION_URLS:
        return units_parse_uint(argument, 1, UINT32_MAX - 1, &asked->urls) ||
               wrong("--urls", "a number from 1 on", argument);
    case OPTION_SEED:
        return units_parse_uint(argument, 0, UINT64_MAX, &asked->seed) ||
               wrong("--seed", "a number", argument);
    case OPTION_CONSTANT:
        return parse_number(argument, 10, &asked->constant) ||
               wrong("--constant", "a number from 0 to 10", argument);
    case OPTION_READS:
        return parse_number(argument, 1, &asked->reads) ||
               wrong("--reads", "a share from 0 to 1", argument);
    case OPTION_RATE:
        return parse_number(argument, 1e9, &asked->rate) ||
               wrong("--rate", "a number of requests a second", argument);
    case OPTION_SIZES:
        asked->sizes_given = true;
        if (generate_parse_sizes(argument, &asked->sizes, why, sizeof(why)))
            return true;
        output_complain("--sizes: %s", why);
        return false;
    default:
        return false;
    }
}

static void
print_workloads(FILE *to)
{
    for (const struct generate_workload *w = generate_workloads; w->name; w++)
        command_print_name(to, w->name, w->summary);
}

static const struct generate_workload *
choose_workload(const char *name)
{
    const struct generate_workload *workload = generate_find(name);
    struct nearest nearest = NEAREST_TO(name);
    char ask[80];

    if (workload)
        return workload;
    for (workload = generate_workloads; workload->name; workload++)
        nearest_offer(&nearest, workload->name);
    output_complain("no workload is called '%s'%s", name, nearest_ask(&nearest, ask, sizeof(ask)));
    fputs("There are:\n", stderr);
    print_workloads(stderr);
    return NULL;
}

static bool
settle(const struct asked *asked, const struct generate_workload *workload,
       struct generate_options *options)
{
    *options = workload->defaults;
    options->seed = asked->seed;
    if (asked->urls)
        options->urls = asked->urls;
    if (asked->requests)
        options->requests = asked->requests;
    if (asked->constant >= 0 && !workload->has_constant) {
        output_complain("%s has no constant of Zipf's law", workload->name);
        return false;
    }
    if (asked->constant >= 0)
        options->constant = asked->constant;
    if (asked->reads >= 0)
        options->reads = asked->reads;
    if (asked->rate >= 0)
        options->rate = asked->rate;
    if (asked->sizes_given)
        options->sizes = asked->sizes;
    return true;
}

static int
generate_and_write(const struct asked *asked, const struct generate_workload *workload,
                   const struct generate_options *options)
{
    const struct trace_writer *writer =
        trace_choose_writer(asked->to, asked->output, trace_writer_find("urls"));
    struct trace_write_options how = {.site = asked->site};
    struct trace *trace;
    uint8_t *writes;
    char why[256] = "";
    int status;

    if (!writer)
        return command_usage(&command_trace_generate);
    switch (generate_trace(workload, options, &trace, &writes, why, sizeof(why))) {
    case TRACE_OK:
        break;
    case TRACE_BAD_OPTION:
        output_complain("%s", why);
        return command_usage(&command_trace_generate);
    default:
        output_complain("%s", why);
        return EX_SOFTWARE;
    }
    how.writes = writes;
    status = trace_write_out(trace, writer, &how, asked->output);
    if (status == EX_OK && writes && writer->reads_only)
        output_complain("the format %s has no writes; they are left out", writer->name);
    free(writes);
    trace_free(trace);
    return status;
}

static int
generate(int argc, char **argv)
{
    struct asked asked = {.constant = -1,
                          .reads = -1,
                          .rate = -1,
                          .seed = 1,
                          .site = "http://www.example.com",
                          .output = "-"};
    const struct generate_workload *workload;
    struct generate_options options;
    int option;

    while ((option = getopt_long(argc, argv, "o:n:h", longs, NULL)) != -1) {
        if (option == 'h' || option == OPTION_HELP)
            return command_help(&command_trace_generate);
        if (!take_option(&asked, option, optarg))
            return command_usage(&command_trace_generate);
    }
    if (argc - optind != 1) {
        output_complain(optind == argc ? "a workload is missing" : "one workload at a time");
        return command_usage(&command_trace_generate);
    }
    workload = choose_workload(argv[optind]);
    if (!workload || !settle(&asked, workload, &options))
        return command_usage(&command_trace_generate);
    return generate_and_write(&asked, workload, &options);
}

static void
print_lists(void)
{
    puts("\nWorkloads:");
    print_workloads(stdout);
    puts("\nFormats to write:");
    trace_print_writers(stdout);
}

const struct command command_trace_generate = {
    .name = "trace generate",
    .summary = "make a trace up",
    .help = "usage: sunproxy trace generate [OPTION...] WORKLOAD\n\n"
            "Makes a trace up, the same for the same options, of one of the workloads below.\n"
            "The constant of Zipf's law is 1, and in YCSB's mixes 0.99.\n\n"
            "  -n, --requests N       so many (default: 100000; Thrift: 6 a URL)\n"
            "      --urls N           different ones to draw from (default: 10000;\n"
            "                         Thrift: 25)\n"
            "      --constant X       of Zipf's law, 0 to 10\n"
            "      --reads SHARE      of the requests (of ycsb-e the scans) that only read; the\n"
            "                         others write: PUT in a table, left out of formats\n"
            "                         that have no methods\n"
            "      --sizes LAW        none, fixed:BYTES, uniform:LOW:HIGH,\n"
            "                         lognormal:MEDIAN:SIGMA, pareto:LEAST:SHAPE; drawn\n"
            "                         once for each page (default: none; Thrift:\n"
            "                         lognormal:45000:0.8; YCSB: fixed:1000)\n"
            "      --rate N           requests a second; no times without it\n"
            "      --site URL         stands before the page's number, 1 being the most\n"
            "                         popular in zipf and all of YCSB's but d and e\n"
            "                         (default: http://www.example.com)\n"
            "      --seed N           (default: 1)\n" TRACE_WRITERS_HELP
            "                         (urls where neither says)\n\n"
            "  -h, --help             this text\n\n"
            "Exit status: 0 written; 64 wrong usage; 73 or 74 the output cannot be\n"
            "written.\n",
    .run = generate,
    .lists = print_lists,
};
