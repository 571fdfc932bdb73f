/*
 * sunproxy simulate: caches of any policy and size over a trace.
 */
#include "study/simulate/simulate.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/interrupt.h"
#include "cli/output.h"
#include "study/capacity_list.h"
#include "study/commands.h"
#include "study/default_sizes.h"
#include "study/simulate/simulate_run.h"

#define MAX_POINTS 100000

/* As --curve was given, in the order of "urls|bytes". */
enum curve { CURVE_NONE, CURVE_BY_SIZES, CURVE_URLS, CURVE_BYTES };

struct options {
    struct simulate_options common;
    struct capacity_list capacities; /* owned */
    enum simulate_output output;
    enum curve curve;
    uint64_t points;
    struct window_length window;
    const char *log;
    enum replay_log_format log_format;
    bool separate;
};

/* ---- options --------------------------------------------------------------------------------- */

/* Times are read only where they are needed. */
static int
take_window(const struct option_row *row, void *field, const char *text)
{
    struct options *options = field;
    int status = window_length_take(row, &options->window, text);

    if (status == EX_OK && options->window.us)
        options->common.trace.without_times = false;
    return status;
}

#define AT(field) offsetof(struct options, field)

static const struct option_row option_rows[] = {
    TRACE_SEPARATE_ROW(struct options),
    {"policy", 0, "LIST", simulate_take_policies, AT(common), 0, 0, NULL, SIMULATE_POLICY_HELP},
    {"capacity", 0, "LIST", capacity_list_take, AT(capacities), 0, 0, NULL,
     CAPACITY_LIST_HELP DEFAULT_SHARES_HELP ")"},
    {"curve", 0, "[=urls|bytes]", option_choice, AT(curve), CURVE_URLS, 0, NULL,
     "hit ratios over all sizes: exact and in one pass for lru in URLs, at --points sizes for the "
     "others (default: bytes where sizes are known); of " SIMULATE_ENOUGH_HELP " a sample, "
     "except for lru in URLs, unless --sample is given"},
    {"points", 0, "N", option_uint, AT(points), 1, MAX_POINTS, DEFAULT_POINTS,
     "number of sizes of a curve"},
    {"window", 0, "LENGTH", take_window, 0, 0, 0, NULL,
     "print hit ratios by window too: a number of requests (10000), or a duration (1h), for which "
     "the trace must have times"},
    {"log", 0, "FILE", option_text, AT(log), 0, 0, NULL,
     "write a line for each request, the same as 'sunproxy replay' does but for the time, which is "
     "0; for one policy at one capacity"},
    {"log-format", 0, "tsv|jsonl", option_choice, AT(log_format), REPLAY_LOG_TSV, 0, NULL,
     "format of the log (default: jsonl for *.jsonl, else tsv)"},
    {"json", 0, NULL, option_value, AT(output), SIMULATE_JSON, 0, NULL, "print one JSON object"},
    {"csv", 0, NULL, option_value, AT(output), SIMULATE_CSV, 0, NULL, "print CSV"},
    {"markdown", 0, NULL, option_value, AT(output), SIMULATE_MARKDOWN, 0, NULL,
     "print tables in Markdown"},
    {0},
};

static const struct option_group own = {.rows = option_rows};

/* LRU's curve alone: quick and exact, however long the trace. */
static bool
is_one_pass(const struct options *options)
{
    const struct simulate_options *common = &options->common;

    return options->curve == CURVE_URLS && sim_storage_is_all(&common->storage) &&
           common->spec_count == 1 && common->specs[0].ops &&
           strcmp(common->specs[0].ops->name, "lru") == 0;
}

/* Options that exclude each other. */
static bool
check_options(const struct options *options, int traces)
{
    const char *why = NULL;

    if (options->curve && options->capacities.count != 0)
        why = "--curve chooses sizes itself; leave --capacity out";
    else if (options->curve && options->log)
        why = "a curve has no log";
    else if (options->curve && window_length_is_given(&options->window))
        why = "a curve has no windows; leave --window out";
    else if (options->log && window_length_is_given(&options->window))
        why = "--log and --window exclude each other";
    else if (window_length_is_given(&options->window) && options->common.rate > 0 &&
             options->common.rate < 1)
        why = "windows count all requests; leave --sample out";
    else if (options->log &&
             (traces != 1 || options->common.spec_count != 1 || options->capacities.count != 1))
        why = "a log is of one trace, one policy and one capacity";
    else if (options->log && strcmp(options->log, "-") == 0)
        why = "standard output has the results; name a file for the log";
    else if (options->log && options->common.rate > 0 && options->common.rate < 1)
        why = "a log is of all requests; leave --sample out";
    if (why)
        output_complain("%s", why);
    return !why;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool
wants_bytes(const struct options *options)
{
    return options->common.by_bytes || options->curve == CURVE_BYTES ||
           capacity_list_has_bytes(&options->capacities);
}

/* Every policy at every capacity. */
static size_t
fill_rows(const struct options *options, const struct simulate_subject *subject,
          const struct capacity_list *sizes, struct simulate_row *rows)
{
    const struct simulate_options *common = &options->common;
    size_t count = 0;

    for (size_t i = 0; i < sizes->count; i++)
        for (size_t j = 0; j < common->spec_count; j++) {
            const struct capacity *size = &sizes->items[i];
            struct simulate_row row = {.path = subject->path,
                                       .urls = size->urls,
                                       .bytes = size->bytes,
                                       .spec = common->specs[j]};

            row.share = row.bytes ? (double)row.bytes / (double)subject->all_bytes
                                  : (double)row.urls / (double)subject->trace->url_count;
            row.job = simulate_job(subject, common, &row.spec, row.urls, row.bytes);
            row.order = count;
            rows[count++] = row;
        }
    return count;
}

static void
free_tallies(struct window_tally *tallies, size_t count)
{
    for (size_t i = 0; tallies && i < count; i++)
        window_tally_free(&tallies[i]);
    free(tallies);
}

/* Tallies by window for all rows, or NULL after a complaint; free_tallies() frees them. */
static struct window_tally *
make_tallies(const struct simulate_windows *windows, struct simulate_row *rows, size_t count)
{
    struct window_tally *tallies = calloc(count, sizeof(*tallies));
    bool good = tallies;

    for (size_t i = 0; good && i < count; i++) {
        good = window_tally_make(&tallies[i], windows);
        rows[i].tally = &tallies[i];
        rows[i].job.config.tell = window_tally_tell;
        rows[i].job.config.context = &tallies[i];
    }
    if (good)
        return tallies;
    output_complain("out of memory");
    free_tallies(tallies, count);
    return NULL;
}

static int
run_rows(const struct options *options, const struct simulate_subject *subject,
         struct simulate_row *rows, size_t count)
{
    struct sim_job *jobs = calloc(count, sizeof(*jobs));
    struct simulate_log *log = NULL;
    int status, closed;

    if (!jobs) {
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    for (size_t i = 0; i < count; i++)
        jobs[i] = rows[i].job;
    if (options->log) {
        log = simulate_log_open(options->log, options->log_format, subject);
        if (!log) {
            free(jobs);
            return EX_CANTCREAT;
        }
        jobs[0].config.tell = simulate_log_tell;
        jobs[0].config.context = log;
        jobs[0].runs = 1; /* what is printed is what is in the log */
    }
    status = simulate_run(jobs, count, (unsigned)options->common.jobs, "simulate");
    closed = simulate_log_close(log, options->log);
    for (size_t i = 0; i < count; i++)
        rows[i].job = jobs[i];
    free(jobs);
    return closed != EX_OK ? closed : status;
}

/* Printing may wait for a reader: a signal ends the program then. JSON is printed at the end. */
static void
before_print(const struct options *options)
{
    if (options->output != SIMULATE_JSON)
        interrupt_release();
}

/* Runs and reports rows, with windows unless they are NULL. */
static int
simulate_and_report(const struct options *options, const struct simulate_subject *subject,
                    const struct simulate_windows *windows, struct simulate_row *rows, size_t count,
                    struct simulate_report *report)
{
    struct window_tally *tallies = windows ? make_tallies(windows, rows, count) : NULL;
    int status = windows && !tallies ? EX_SOFTWARE : run_rows(options, subject, rows, count);

    if (status == EX_OK || status == EXIT_INTERRUPTED) {
        before_print(options);
        simulate_report_trace(report, subject, rows, count);
    }
    free_tallies(tallies, count);
    return status;
}

static int
simulate_sizes(const struct options *options, const struct simulate_subject *subject,
               const struct capacity_list *sizes, struct simulate_report *report)
{
    bool has_windows = window_length_is_given(&options->window);
    struct simulate_row *rows = calloc(sizes->count * options->common.spec_count, sizeof(*rows));
    struct simulate_windows windows = {0};
    int status = EX_OK;

    if (!rows) {
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    if (has_windows)
        status = simulate_windows_make(&windows, subject, &options->window);
    if (status == EX_OK) {
        size_t count = fill_rows(options, subject, sizes, rows);

        status = simulate_and_report(options, subject, has_windows ? &windows : NULL, rows, count,
                                     report);
    }
    simulate_windows_free(&windows);
    free(rows);
    return status;
}

static int
simulate_rows(const struct options *options, const struct simulate_subject *subject,
              struct simulate_report *report)
{
    struct capacity_list sizes;
    int status = EX_SOFTWARE;

    if (capacity_list_resolve(&options->capacities, subject, &sizes))
        status = simulate_sizes(options, subject, &sizes, report);
    else
        output_complain("out of memory");
    capacity_list_free(&sizes);
    return status;
}

static int
simulate_curve(const struct options *options, const struct simulate_subject *subject,
               struct simulate_report *report)
{
    bool in_bytes =
        options->curve == CURVE_BYTES || (options->curve == CURVE_BY_SIZES && subject->sized);
    struct simulate_curves curves;
    int status =
        simulate_curves_make(&curves, subject, &options->common, in_bytes, (size_t)options->points);

    if (status == EX_OK || status == EXIT_INTERRUPTED) {
        before_print(options);
        simulate_report_curves(report, &curves);
    }
    simulate_curves_free(&curves);
    return status;
}

/* Files that are one trace. One trace less is unread, unless it is given up. */
static int
simulate_trace(const struct options *options, char *const *paths, size_t count,
               struct simulate_report *report, size_t *unread)
{
    struct simulate_subject subject;
    int status = simulate_subject_load(paths, count, &options->common, &subject);

    *unread -= status != EXIT_INTERRUPTED;
    if (status != EX_OK)
        return status;
    status = options->curve ? simulate_curve(options, &subject, report)
                            : simulate_rows(options, &subject, report);
    simulate_subject_free(&subject);
    return status;
}

/* A trace that cannot be read does not keep the others from being simulated. */
static int
simulate_paths(const struct options *options, char **paths, size_t count)
{
    struct simulate_report report;
    size_t files = options->separate ? 1 : count, unread = count / files;
    int status = EX_OK, printed;

    simulate_report_begin(&report, options->output, options->common.by_bytes);
    for (size_t i = 0; i < count && status != EXIT_INTERRUPTED && status != EX_USAGE; i += files) {
        int one = simulate_trace(options, paths + i, files, &report, &unread);

        if (one != EX_OK)
            status = one;
        /* What is known is out, whatever becomes of the next trace. */
        before_print(options);
        printed = simulate_report_flush(&report);
        if (printed != EX_OK)
            return printed;
    }
    if (status == EXIT_INTERRUPTED)
        simulate_report_interrupted(&report, unread);
    interrupt_release();
    printed = simulate_report_end(&report);
    return printed != EX_OK ? printed : status;
}

static int
parse_and_run(struct options *options, int argc, char **argv)
{
    void *const into[] = {options, &options->common, &options->common.trace};
    int status = command_read(&command_simulate, into, argc, argv);

    if (status != COMMAND_GO_ON)
        return status;
    if (!check_options(options, options->separate ? argc - optind : 1))
        return command_usage(&command_simulate);
    if (options->curve && !is_one_pass(options))
        options->common.enough = SIMULATE_ENOUGH;
    if (!simulate_settle_policies(&options->common))
        return EX_SOFTWARE;
    options->common.needs_sizes = wants_bytes(options);
    return simulate_paths(options, argv + optind, (size_t)(argc - optind));
}

static int
simulate(int argc, char **argv)
{
    struct options options = {.curve = CURVE_NONE};
    int status;

    simulate_options_init(&options.common);
    status = parse_and_run(&options, argc, argv);
    simulate_options_free(&options.common);
    capacity_list_free(&options.capacities);
    return status;
}

const struct command command_simulate = {
    .name = "simulate",
    .summary = "simulate caches of any policy and size over a trace",
    .about = "usage: sunproxy simulate [OPTION...] TRACE...\n\n"
             "Runs the policies of the server over a trace, without a server and without\n"
             "waiting, and prints hit ratios. Several files are one trace, unless\n"
             "--separate is given. A trace is loaded once; all processors are used.\n",
    .options = {&own, &simulate_option_group, &trace_option_group},
    .after = "Exit status: 0 done; 64 wrong usage;\n" TRACE_EXIT_HELP
             "73 the log cannot be created; 74 output could not be\n"
             "written; 130 Ctrl-C, after what was finished.\n",
    .argument = "trace",
    .least = 1,
    .most = COMMAND_MANY,
    .run = simulate,
};
