/*
 * sunproxy report: a page of figures about traces and simulated caches.
 */
#include "study/report/report.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/save.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "study/commands.h"
#include "study/default_sizes.h"

#define MAX_DATA (512u << 20)
#define MAX_POINTS 1000

struct options {
    struct simulate_options common;
    const char *output;
    const char *title;
    const char *plot_dir;
    struct report_library library; /* owned */
    uint64_t points;
    struct capacity_list capacities; /* owned */
    struct report_live *lives;       /* owned */
    size_t live_count;
    bool separate;
    char **paths; /* of the traces */
    size_t path_count;
    char **arguments; /* of the command, with the paths */
    size_t argument_count;
};

/* ---- options --------------------------------------------------------------------------------- */

static int
add_live(const struct option_row *row, void *field, const char *path)
{
    struct options *options = field;
    struct report_live *lives =
        realloc(options->lives, (options->live_count + 1) * sizeof(*options->lives));
    int status;

    (void)row;
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

#define AT(field) offsetof(struct options, field)

static const struct option_row rows[] = {
    TRACE_SEPARATE_ROW(struct options),
    {"output", 'o', "FILE", option_text, AT(output), 0, 0, "report.html",
     "the page; - is standard output"},
    {"title", 0, "TEXT", option_text, AT(title), 0, 0, "What a cache would hit",
     "title of the page"},
    {"plot-dir", 0, "FOLDER", option_text, AT(plot_dir), 0, 0, NULL,
     "folder of d3.min.js and plot.umd.min.js, which the page includes"},
    {"policy", 0, "LIST", simulate_take_policies, AT(common), 0, 0, NULL, SIMULATE_POLICY_HELP},
    {"capacity", 0, "LIST", capacity_list_take, AT(capacities), 0, 0, NULL,
     CAPACITY_LIST_HELP DEFAULT_SHARES_HELP
     "), all in bytes or all in URLs; for the figures of hit "
     "ratios and of the course over the trace"},
    {"points", 0, "N", option_uint, AT(points), 2, MAX_POINTS, DEFAULT_POINTS,
     "number of sizes of each miss ratio curve"},
    {"live", 0, "FILE", add_live, 0, 0, 0, NULL,
     "output of 'sunproxy replay --json' for one of the traces: adds access times, and the "
     "measured hit ratio; once for each replay"},
    {0},
};

static const struct option_group own = {
    .rows = rows,
    .after = "With --separate, --sizes is given once for all traces, or once for each, in order.",
};

/* ---- data ------------------------------------------------------------------------------------ */

/* A member of the open array of traces. */
static int
add_trace(struct json *j, const struct options *options, char *const *paths, size_t files,
          const char *sizes, size_t *added)
{
    struct simulate_options common = options->common;
    bool only = !options->separate || options->path_count == 1;
    struct simulate_subject subject;
    int status;

    common.sizes = sizes;
    status = simulate_subject_load(paths, files, &common, &subject);

    if (status != EX_OK)
        return status;
    ++*added;
    json_open_object(j, NULL);
    report_trace_facts(j, &subject);
    json_bool(j, "by_bytes", common.by_bytes);
    json_open_object(j, "tables");
    if (report_trace_tables(j, &subject)) {
        report_live_table(j, &subject, only, options->lives, options->live_count);
        status = report_runs(j, &subject, &common, &options->capacities, (size_t)options->points);
    } else {
        output_complain("%s: out of memory", paths[0]);
        status = EX_SOFTWARE;
    }
    json_close_object(j);
    json_close_object(j);
    simulate_subject_free(&subject);
    return status;
}

/* A trace that cannot be read does not keep the others off the page; *added are on it. */
static int
add_traces(struct json *j, const struct options *options, size_t *added)
{
    size_t count = options->path_count, files = options->separate ? 1 : count;
    int status = EX_OK;

    json_open_array(j, "traces");
    for (size_t i = 0; i < count && status != EXIT_INTERRUPTED && status != EX_USAGE; i += files) {
        /* One file is for all traces, several are for one each. */
        const char *sizes =
            options->common.sizes_count > 1 ? options->common.all_sizes[i] : options->common.sizes;
        int one = add_trace(j, options, options->paths + i, files, sizes, added);

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
    const struct report_page page = {span_str(options->title), buf_span(data), &options->library};
    struct save save;
    int error;
    bool written;

    if (buf_failed(data)) {
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    if (strcmp(options->output, "-") == 0) {
        if (report_page_write(stdout, &page))
            return EX_OK;
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    error = save_open(&save, options->output, false);
    if (error) {
        output_complain("%s: %s", options->output, strerror(error));
        return EX_CANTCREAT;
    }
    written = report_page_write(save.file, &page);
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
report_paths(const struct options *options)
{
    struct buf data;
    struct json j;
    size_t added = 0;
    int status, written;

    buf_init(&data, MAX_DATA);
    json_init(&j, &data);
    json_open_object(&j, NULL);
    json_cstring(&j, "title", options->title);
    report_provenance(&j, &options->common, options->arguments, options->argument_count);
    status = add_traces(&j, options, &added);
    interrupt_release();
    json_bool(&j, "interrupted", status == EXIT_INTERRUPTED);
    json_close_object(&j);
    /* Without a trace on it the page is not written, and an older one stays. */
    if (added != 0 && (status == EX_OK || status == EXIT_INTERRUPTED ||
                       (options->path_count > 1 && status != EX_USAGE))) {
        written = write_page(options, &data);
        status = written != EX_OK ? written : status;
    }
    buf_free(&data);
    return status;
}

static int
parse_and_run(struct options *options, int argc, char **argv)
{
    void *const into[] = {options, &options->common, &options->common.trace};
    int status = command_read(&command_report, into, argc, argv);

    if (status != COMMAND_GO_ON)
        return status;
    options->paths = argv + optind;
    options->path_count = (size_t)(argc - optind);
    if (options->common.sizes_count > 1 &&
        (!options->separate || options->common.sizes_count != options->path_count)) {
        output_complain("--sizes is given once, or with --separate once for each trace");
        return command_usage(&command_report);
    }
    if (!capacity_list_is_of_one_unit(&options->capacities)) {
        output_complain("--capacity: a figure has sizes in bytes or in URLs, all above 0");
        return command_usage(&command_report);
    }
    if (!simulate_settle_policies(&options->common))
        return EX_SOFTWARE;
    options->common.needs_sizes =
        options->common.by_bytes || capacity_list_has_bytes(&options->capacities);
    /* Before the simulations, which may take long. */
    status = report_library_read(options->plot_dir, &options->library);
    if (status != EX_OK)
        return status;
    status = report_paths(options);
    report_library_free(&options->library);
    return status;
}

static int
report(int argc, char **argv)
{
    struct options options = {.arguments = argv + 1, .argument_count = (size_t)argc - 1};
    int status;

    simulate_options_init(&options.common);
    options.common.trace.without_times = false;
    options.common.enough = SIMULATE_ENOUGH;
    status = parse_and_run(&options, argc, argv);
    simulate_options_free(&options.common);
    for (size_t i = 0; i < options.live_count; i++)
        report_live_free(&options.lives[i]);
    free(options.lives);
    capacity_list_free(&options.capacities);
    return status;
}

const struct command command_report = {
    .name = "report",
    .summary = "write a page of figures about a trace and simulated caches",
    .about = "usage: sunproxy report [OPTION...] TRACE...\n\n"
             "Simulates as 'sunproxy simulate' does and writes one HTML file with figures. It\n"
             "needs no network: popularity, hit ratios by policy and size, their course over\n"
             "the trace, miss ratio curves. The page gives the data of each figure as CSV.\n"
             "Several files are one trace, unless --separate is given. Of\n" SIMULATE_ENOUGH_HELP
             " a sample is simulated, unless --sample is given.\n",
    .options = {&own, &simulate_option_group, &trace_option_group},
    .after = "Exit status: 0 done; 64 wrong usage;\n" TRACE_EXIT_HELP
             "69 the libraries that draw the page are missing;\n"
             "73 the page cannot be created; 74 it could not be written; 130 Ctrl-C, after\n"
             "what was finished.\n",
    .argument = "trace",
    .least = 1,
    .most = COMMAND_MANY,
    .run = report,
};
