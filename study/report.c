/*
 * sunproxy report: a page of figures about traces and what caches make of them.
 */
#include "study/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/save.h"
#include "base/units.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "study/commands.h"

#define MAX_DATA (512u << 20)
#define DEFAULT_POINTS 30
#define MAX_POINTS 1000

enum { OPTION_LIVE = SIMULATE_OPTION_END, OPTION_POINTS, OPTION_TITLE };

static const struct option longs[] = {
    {"output", required_argument, NULL, 'o'},
    {"live", required_argument, NULL, OPTION_LIVE},
    {"points", required_argument, NULL, OPTION_POINTS},
    {"title", required_argument, NULL, OPTION_TITLE},
    {"help", no_argument, NULL, OPTION_HELP},
    SIMULATE_LONG_OPTIONS,
    {NULL, 0, NULL, 0},
};

struct options {
    struct simulate_options common;
    const char *output;
    const char *title;
    uint64_t points;
    const char **sizes; /* owned; files, in the order given */
    size_t sizes_count;
    struct report_live *lives; /* owned */
    size_t live_count;
};

/* ---- options --------------------------------------------------------------------------------- */

/* EX_OK, or the exit status after a complaint. */
static int
add_live(struct options *options, const char *path)
{
    struct report_live *lives =
        realloc(options->lives, (options->live_count + 1) * sizeof(*options->lives));
    int status;

    if (!lives) {
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    options->lives = lives;
    status = report_live_read(path, &lives[options->live_count]);
    if (status == EX_OK)
        options->live_count++;
    return status;
}

/* One file is for all traces, several are for one each. */
static int
add_sizes(struct options *options, const char *path)
{
    const char **sizes =
        realloc(options->sizes, (options->sizes_count + 1) * sizeof(*options->sizes));

    if (!sizes) {
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    options->sizes = sizes;
    sizes[options->sizes_count++] = path;
    return EX_OK;
}

static int
take_option(struct options *options, int option, const char *argument)
{
    switch (option) {
    case 'o':
        options->output = argument;
        return EX_OK;
    case SIMULATE_OPTION_SIZES:
        return add_sizes(options, argument);
    case OPTION_LIVE:
        return add_live(options, argument);
    case OPTION_TITLE:
        options->title = argument;
        return EX_OK;
    case OPTION_POINTS:
        if (units_parse_uint(argument, 2, MAX_POINTS, &options->points))
            return EX_OK;
        output_complain("--points is a number from 2 to %d, not '%s'", MAX_POINTS, argument);
        return EX_USAGE;
    default:
        return simulate_option(&options->common, option, argument) > 0 ? EX_OK : EX_USAGE;
    }
}

/* ---- data ------------------------------------------------------------------------------------ */

/* A member of the open array of traces. */
static int
add_trace(struct json *j, const struct options *options, const char *path, const char *sizes,
          bool only, size_t *added)
{
    struct simulate_options common = options->common;
    struct simulate_subject subject;
    int status;

    common.sizes = sizes;
    status = simulate_subject_load(path, &common, &subject);

    if (status != EX_OK)
        return status;
    ++*added;
    json_open_object(j, NULL);
    report_trace_facts(j, &subject);
    json_bool(j, "by_bytes", common.by_bytes);
    json_open_object(j, "tables");
    if (report_trace_tables(j, &subject)) {
        report_live_table(j, &subject, only, options->lives, options->live_count);
        status = report_runs(j, &subject, &common, (size_t)options->points);
    } else {
        output_complain("%s: out of memory", path);
        status = EX_SOFTWARE;
    }
    json_close_object(j);
    json_close_object(j);
    simulate_subject_free(&subject);
    return status;
}

/* A trace that cannot be read does not keep the others off the page; *added are on it. */
static int
add_traces(struct json *j, const struct options *options, char **paths, int count, size_t *added)
{
    int status = EX_OK;

    json_open_array(j, "traces");
    for (int i = 0; i < count && status != EXIT_INTERRUPTED && status != EX_USAGE; i++) {
        const char *sizes = options->sizes_count == 0   ? NULL
                            : options->sizes_count == 1 ? options->sizes[0]
                                                        : options->sizes[i];
        int one = add_trace(j, options, paths[i], sizes, count == 1, added);

        if (one != EX_OK)
            status = one;
    }
    json_close_array(j);
    if (status != EXIT_INTERRUPTED && status != EX_USAGE)
        report_live_complain(options->lives, options->live_count);
    return status;
}

/* ---- the page -------------------------------------------------------------------------------- */

static int
write_page(const struct options *options, const struct buf *data)
{
    struct span title = span_str(options->title);
    struct save save;
    int error;
    bool written;

    if (buf_failed(data)) {
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    if (strcmp(options->output, "-") == 0) {
        if (report_page_write(stdout, title, buf_span(data)))
            return EX_OK;
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    error = save_open(&save, options->output, false);
    if (error) {
        output_complain("%s: %s", options->output, strerror(error));
        return EX_CANTCREAT;
    }
    written = report_page_write(save.file, title, buf_span(data));
    error = save_close(&save, written);
    if (!written) {
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    if (error) {
        output_complain("%s: %s", options->output, strerror(error));
        return EX_IOERR;
    }
    return EX_OK;
}

static int
report_paths(const struct options *options, char **paths, int count)
{
    struct buf data;
    struct json j;
    size_t added = 0;
    int status, written;

    buf_init(&data, MAX_DATA);
    json_init(&j, &data);
    json_open_object(&j, NULL);
    json_cstring(&j, "title", options->title);
    json_cstring(&j, "version", SUNPROXY_VERSION);
    status = add_traces(&j, options, paths, count, &added);
    interrupt_release();
    json_bool(&j, "interrupted", status == EXIT_INTERRUPTED);
    json_close_object(&j);
    /* With nothing to report on, the page of another time stays. */
    if (added != 0 &&
        (status == EX_OK || status == EXIT_INTERRUPTED || (count > 1 && status != EX_USAGE))) {
        written = write_page(options, &data);
        status = written != EX_OK ? written : status;
    }
    buf_free(&data);
    return status;
}

static int
parse_and_run(struct options *options, int argc, char **argv)
{
    int option;

    while ((option = getopt_long(argc, argv, "j:o:h", longs, NULL)) != -1) {
        int status;

        if (option == 'h' || option == OPTION_HELP)
            return command_help(&command_report);
        status = take_option(options, option, optarg);
        if (status == EX_USAGE)
            return command_usage(&command_report);
        if (status != EX_OK)
            return status;
    }
    if (optind == argc) {
        output_complain("a trace is missing");
        return command_usage(&command_report);
    }
    if (options->sizes_count > 1 && options->sizes_count != (size_t)(argc - optind)) {
        output_complain("--sizes is given once, or once for each trace");
        return command_usage(&command_report);
    }
    if (!simulate_settle_policies(&options->common))
        return EX_SOFTWARE;
    options->common.needs_sizes = options->common.by_bytes;
    return report_paths(options, argv + optind, argc - optind);
}

static int
report(int argc, char **argv)
{
    struct options options = {
        .output = "report.html", .title = "What a cache would hit", .points = DEFAULT_POINTS};
    int status;

    simulate_options_init(&options.common);
    options.common.trace.without_times = false;
    options.common.enough = SIMULATE_ENOUGH;
    status = parse_and_run(&options, argc, argv);
    simulate_options_free(&options.common);
    for (size_t i = 0; i < options.live_count; i++)
        report_live_free(&options.lives[i]);
    free(options.lives);
    free(options.sizes);
    return status;
}

const struct command command_report = {
    .name = "report",
    .summary = "a page of figures about a trace and what caches make of it",
    .help =
        "usage: sunproxy report [OPTION...] TRACE...\n\n"
        "Simulates as 'sunproxy simulate' does and writes one HTML file with figures, which\n"
        "needs no network: who is asked for, hit ratios by policy and size, how they came\n"
        "about, miss ratio curves. The page gives the data of each figure as CSV. Of\n" SIMULATE_ENOUGH_HELP
        " a sample is simulated, unless --sample says\n"
        "otherwise.\n\n"
        "  -o, --output FILE      the page (default: report.html); - is standard output\n"
        "      --title TEXT       stands on top\n"
        "      --policy LIST      policies, separated by commas (see 'sunproxy policies');\n"
        "                         all; none (default: the classics, opt, the best of the\n"
        "                         modern ones)\n"
        "      --points N         so many sizes for each miss ratio curve (default: 30)\n"
        "      --live FILE        what 'sunproxy replay --json' printed for one of the\n"
        "                         traces: adds access times, and the hit ratio measured;\n"
        "                         once for each replay\n"
        "  With several traces --sizes is given once for all, or once for each, in order.\n"
        "  -h, --help             this text\n\n" SIMULATE_OPTIONS_HELP "\n" TRACE_OPTIONS_HELP "\n"
        "Exit status: 0 done; 64 wrong usage;\n" TRACE_EXIT_HELP
        "73 the page cannot be created; 74 it could not be\n"
        "written; 130 Ctrl-C, after what was finished.\n",
    .run = report,
};
