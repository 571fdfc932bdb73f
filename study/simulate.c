/*
 * sunproxy simulate: what caches of any policy and size would have made of a trace.
 */
#include "study/simulate.h"
#include "study/default_sizes.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/capacity.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "study/simulate_run.h"
#include "study/commands.h"

#define MAX_CAPACITIES 1000
#define MAX_POINTS 100000

/* As --curve was given, in the order of "urls|bytes". */
enum curve { CURVE_NONE, CURVE_BY_SIZES, CURVE_URLS, CURVE_BYTES };

struct options {
    struct simulate_options common;
    struct capacity *capacities; /* owned; all zero: nothing */
    size_t capacity_count;
    enum simulate_output output;
    enum curve curve;
    uint64_t points;
    const char *log;
    enum replay_log_format log_format;
};

/* ---- options --------------------------------------------------------------------------------- */

/* EX_OK, or the exit status after a complaint. */
static int
add_capacity(struct options *options, const char *text)
{
    struct capacity capacity = {0}, *grown;
    char why[256];

    if (!capacity_is_nothing(text) && !capacity_parse(text, &capacity)) {
        output_complain("--capacity: %s", capacity_explain(text, why, sizeof(why)));
        return EX_USAGE;
    }
    if (options->capacity_count == MAX_CAPACITIES) {
        output_complain("--capacity: at most %d at once", MAX_CAPACITIES);
        return EX_USAGE;
    }
    grown = realloc(options->capacities, (options->capacity_count + 1) * sizeof(*grown));
    if (!grown) {
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    options->capacities = grown;
    grown[options->capacity_count++] = capacity;
    return EX_OK;
}

static int
take_capacities(const struct option_row *row, void *field, const char *list)
{
    (void)row;
    while (true) {
        size_t len = strcspn(list, ",");
        char *text = strndup(list, len);
        int status;

        if (!text) {
            output_complain("out of memory");
            return EX_SOFTWARE;
        }
        status = add_capacity(field, text);
        free(text);
        if (status != EX_OK || list[len] == '\0')
            return status;
        list += len + 1;
    }
}

#define AT(field) offsetof(struct options, field)

static const struct option_row option_rows[] = {
    {"policy", 0, "LIST", simulate_take_policies, AT(common), 0, 0, NULL, SIMULATE_POLICY_HELP},
    {"capacity", 0, "LIST", take_capacities, 0, 0, 0, NULL,
     "capacities, separated by commas: a number of URLs (700); bytes with a unit (64M, 1.5GB); a "
     "share of the distinct URLs (10%) or of their bytes (10%B) (default: " DEFAULT_SHARES_HELP
     ")"},
    {"curve", 0, "[=urls|bytes]", option_choice, AT(curve), CURVE_URLS, 0, NULL,
     "hit ratios over all sizes: exact and in one pass for lru in URLs, at --points sizes for the "
     "others (default: bytes where sizes are known); of " SIMULATE_ENOUGH_HELP " a sample, "
     "except for lru in URLs, unless --sample is given"},
    {"points", 0, "N", option_uint, AT(points), 1, MAX_POINTS, DEFAULT_POINTS,
     "number of sizes of a curve"},
    {"log", 0, "FILE", option_text, AT(log), 0, 0, NULL,
     "write a line for each request, the same as 'sunproxy replay' does but for the time, which is "
     "0; for one policy at one capacity"},
    {"log-format", 0, "tsv|jsonl", option_choice, AT(log_format), REPLAY_LOG_TSV, 0, NULL,
     "format of the log (default: jsonl for *.jsonl, else tsv)"},
    {"json", 0, NULL, option_value, AT(output), SIMULATE_JSON, 0, NULL, "print one JSON object"},
    {"csv", 0, NULL, option_value, AT(output), SIMULATE_CSV, 0, NULL, "print CSV"},
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

/* Things that cannot be had at once. */
static bool
check_options(const struct options *options, int traces)
{
    const char *why = NULL;

    if (options->curve && options->capacity_count != 0)
        why = "--curve chooses sizes itself; leave --capacity out";
    else if (options->curve && options->log)
        why = "a curve has no log";
    else if (options->log &&
             (traces != 1 || options->common.spec_count != 1 || options->capacity_count != 1))
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

/* Shares of the bytes where sizes are known, else of the URLs. */
static bool
default_capacities(struct options *options, const struct simulate_subject *subject)
{
    const double *shares = default_sizes_shares(subject);
    size_t count = 0;

    while (shares[count] > 0)
        count++;
    options->capacities = calloc(count, sizeof(*options->capacities));
    if (!options->capacities) {
        output_complain("out of memory");
        return false;
    }
    for (size_t i = 0; i < count; i++)
        *(subject->sized ? &options->capacities[i].percent_bytes
                         : &options->capacities[i].percent) = 100 * shares[i];
    options->capacity_count = count;
    return true;
}

static bool
wants_bytes(const struct options *options)
{
    if (options->common.by_bytes || options->curve == CURVE_BYTES)
        return true;
    for (size_t i = 0; i < options->capacity_count; i++)
        if (options->capacities[i].bytes != 0 || options->capacities[i].percent_bytes > 0)
            return true;
    return false;
}

static bool
same_capacity(const struct simulate_row *a, const struct simulate_row *b)
{
    return a->urls == b->urls && a->bytes == b->bytes;
}

/* Every policy at every capacity; shares that come to the same number are one. */
static size_t
fill_rows(const struct options *options, const struct simulate_subject *subject,
          struct simulate_row *rows)
{
    const struct simulate_options *common = &options->common;
    size_t count = 0;

    for (size_t i = 0; i < options->capacity_count; i++) {
        struct capacity capacity = options->capacities[i];
        struct simulate_row row = {.path = subject->path};
        bool twice = false;

        capacity_resolve(&capacity, subject->trace->url_count, subject->all_bytes);
        row.urls = capacity.urls;
        row.bytes = capacity.bytes;
        row.share = row.bytes ? (double)row.bytes / (double)subject->all_bytes
                              : (double)row.urls / (double)subject->trace->url_count;
        for (size_t j = 0; j < count; j++)
            twice = twice || same_capacity(&rows[j], &row);
        for (size_t j = 0; j < common->spec_count && !twice; j++) {
            row.spec = common->specs[j];
            row.job = simulate_job(subject, common, &row.spec, row.urls, row.bytes);
            row.order = count;
            rows[count++] = row;
        }
    }
    return count;
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

static int
simulate_rows(struct options *options, const struct simulate_subject *subject,
              struct simulate_report *report)
{
    struct simulate_row *rows;
    bool defaults = options->capacity_count == 0;
    size_t count;
    int status;

    if (defaults && !default_capacities(options, subject))
        return EX_SOFTWARE;
    rows = calloc(options->capacity_count * options->common.spec_count, sizeof(*rows));
    if (!rows) {
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    count = fill_rows(options, subject, rows);
    status = run_rows(options, subject, rows, count);
    if (status == EX_OK || status == EXIT_INTERRUPTED) {
        before_print(options);
        simulate_report_trace(report, subject, rows, count);
    }
    free(rows);
    if (defaults) {
        /* The next trace may know sizes, or not. */
        free(options->capacities);
        options->capacities = NULL;
        options->capacity_count = 0;
    }
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

/* One less is unread, unless it is given up. */
static int
simulate_path(struct options *options, const char *path, struct simulate_report *report,
              size_t *unread)
{
    struct simulate_subject subject;
    int status = simulate_subject_load(path, &options->common, &subject);

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
simulate_paths(struct options *options, char **paths, int count)
{
    struct simulate_report report;
    int status = EX_OK, printed;
    size_t unread = (size_t)count;

    simulate_report_begin(&report, options->output, options->common.by_bytes);
    for (int i = 0; i < count && status != EXIT_INTERRUPTED && status != EX_USAGE; i++) {
        int one = simulate_path(options, paths[i], &report, &unread);

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
    if (!check_options(options, argc - optind))
        return command_usage(&command_simulate);
    if (options->curve && !is_one_pass(options))
        options->common.enough = SIMULATE_ENOUGH;
    if (!simulate_settle_policies(&options->common))
        return EX_SOFTWARE;
    options->common.needs_sizes = wants_bytes(options);
    return simulate_paths(options, argv + optind, argc - optind);
}

static int
simulate(int argc, char **argv)
{
    struct options options = {.curve = CURVE_NONE};
    int status;

    simulate_options_init(&options.common);
    status = parse_and_run(&options, argc, argv);
    simulate_options_free(&options.common);
    free(options.capacities);
    return status;
}

const struct command command_simulate = {
    .name = "simulate",
    .summary = "what caches of any policy and size make of a trace",
    .about = "usage: sunproxy simulate [OPTION...] TRACE...\n\n"
             "Runs the policies of the server over a trace, without a server and without\n"
             "waiting, and prints hit ratios. A trace is loaded once; all processors are used.\n",
    .options = {&own, &simulate_option_group, &trace_option_group},
    .after = "Exit status: 0 done; 64 wrong usage;\n" TRACE_EXIT_HELP
             "73 the log cannot be created; 74 output could not be\n"
             "written; 130 Ctrl-C, after what was finished.\n",
    .argument = "trace",
    .least = 1,
    .most = COMMAND_MANY,
    .run = simulate,
};
