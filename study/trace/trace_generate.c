/*
 * sunproxy trace generate: a synthetic trace.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/output.h"
#include "cli/trace_output.h"
#include "study/trace/trace.h"
#include "trace/base_url.h"
#include "trace/generate.h"

/* The options given; the workload's defaults, which are known later, replace the others. */
struct asked {
    uint64_t requests, urls, seed;
    double constant, reads, rate; /* -1: not given */
    struct generate_sizes sizes;
    bool sizes_given;
    const char *site;
    const char *to;
    const char *output;
};

static int
take_site(const struct option_row *row, void *field, const char *text)
{
    *(const char **)field = text;
    return base_url_is_site(text)
               ? EX_OK
               : options_wrong(row, "a URL such as http://www.example.com", text);
}

static int
take_sizes(const struct option_row *row, void *field, const char *text)
{
    struct asked *asked = field;
    char why[256];

    asked->sizes_given = true;
    if (generate_parse_sizes(text, &asked->sizes, why, sizeof(why)))
        return EX_OK;
    output_complain("--%s: %s", row->name, why);
    return EX_USAGE;
}

#define AT(field) offsetof(struct asked, field)

static const struct option_row rows[] = {
    {"requests", 'n', "N", option_uint, AT(requests), 1, UINT32_MAX - 1, NULL,
     "number of requests (default: 100000; Thrift: 6 per URL)"},
    {"urls", 0, "N", option_uint, AT(urls), 1, UINT32_MAX - 1, NULL,
     "number of URLs to draw from (default: 10000; Thrift: 25)"},
    {"constant", 0, "X", option_number, AT(constant), 0, 10, NULL,
     "constant of Zipf's law (default: 1; YCSB: 0.99)"},
    {"reads", 0, "SHARE", option_number, AT(reads), 0, 1, NULL,
     "share of the requests (of ycsb-e the scans) that only read, 0 to 1; the others write: PUT in "
     "a table, left out of formats without methods"},
    {"sizes", 0, "LAW", take_sizes, 0, 0, 0, NULL,
     "none, fixed:BYTES, uniform:LOW:HIGH, lognormal:MEDIAN:SIGMA, pareto:LEAST:SHAPE; drawn once "
     "for each page (default: none; Thrift: lognormal:45000:0.8; YCSB: fixed:1000)"},
    {"rate", 0, "N", option_number, AT(rate), 0, 1000000000, NULL,
     "requests per second; without it, there are no times"},
    {"site", 0, "URL", take_site, AT(site), 0, 0, "http://www.example.com",
     "prefix of the page's number; 1 is the most popular page in zipf and in YCSB's workloads "
     "except d and e"},
    {"seed", 0, "N", option_uint, AT(seed), 0, UINT64_MAX, "1", "seed of the random numbers"},
    TRACE_WRITER_ROWS(struct asked, ", else urls"),
    {0},
};

static const struct option_group own = {.rows = rows};

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
    struct asked asked = {.constant = -1, .reads = -1, .rate = -1};
    void *const into[] = {&asked};
    const struct generate_workload *workload;
    struct generate_options options;
    int status = command_read(&command_trace_generate, into, argc, argv);

    if (status != COMMAND_GO_ON)
        return status;
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
    .summary = "generate a synthetic trace",
    .about = "usage: sunproxy trace generate [OPTION...] WORKLOAD\n\n"
             "Generates a trace of one of the workloads below, the same for the same options.\n",
    .options = {&own},
    .after = "Exit status: 0 written; 64 wrong usage; 73 or 74 the output cannot be\n"
             "written.\n",
    .argument = "workload",
    .least = 1,
    .most = 1,
    .run = generate,
    .lists = print_lists,
};
