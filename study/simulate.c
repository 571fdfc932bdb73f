/*
 * sunproxy simulate: what caches of any policy and size would have made of a trace.
 */
#include "study/simulate.h"

#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/units.h"
#include "cli/capacity.h"
#include "cli/output.h"
#include "study/simulate_run.h"
#include "study/commands.h"

#define MAX_CAPACITIES 1000
#define MAX_POINTS 100000
#define DEFAULT_POINTS 50

enum {
    OPTION_CAPACITY = SIMULATE_OPTION_END,
    OPTION_CURVE,
    OPTION_POINTS,
    OPTION_LOG,
    OPTION_LOG_FORMAT,
    OPTION_JSON,
    OPTION_CSV,
};

static const struct option longs[] = {
    {"capacity", required_argument, NULL, OPTION_CAPACITY},
    {"curve", optional_argument, NULL, OPTION_CURVE},
    {"points", required_argument, NULL, OPTION_POINTS},
    {"log", required_argument, NULL, OPTION_LOG},
    {"log-format", required_argument, NULL, OPTION_LOG_FORMAT},
    {"json", no_argument, NULL, OPTION_JSON},
    {"csv", no_argument, NULL, OPTION_CSV},
    {"help", no_argument, NULL, OPTION_HELP},
    SIMULATE_LONG_OPTIONS,
    {NULL, 0, NULL, 0},
};

struct options {
    struct simulate_options common;
    struct capacity *capacities; /* owned; all zero: nothing */
    size_t capacity_count;
    enum simulate_output output;
    bool curve;
    const char *curve_in; /* "urls" or "bytes"; NULL: bytes where sizes are known */
    uint64_t points;
    const char *log;
    enum replay_log_format log_format;
    bool log_format_given;
};

/* ---- options --------------------------------------------------------------------------------- */

static bool
add_capacity(struct options *options, const char *text)
{
    struct capacity capacity = {0}, *grown;
    char why[256];

    if (!capacity_is_nothing(text) && !capacity_parse(text, &capacity)) {
        output_complain("--capacity: %s", capacity_explain(text, why, sizeof(why)));
        return false;
    }
    if (options->capacity_count == MAX_CAPACITIES) {
        output_complain("--capacity: at most %d at once", MAX_CAPACITIES);
        return false;
    }
    grown = realloc(options->capacities, (options->capacity_count + 1) * sizeof(*grown));
    if (!grown) {
        output_complain("out of memory");
        return false;
    }
    options->capacities = grown;
    grown[options->capacity_count++] = capacity;
    return true;
}

static bool
take_capacities(struct options *options, const char *list)
{
    while (true) {
        size_t len = strcspn(list, ",");
        char *text = strndup(list, len);
        bool good;

        if (!text) {
            output_complain("out of memory");
            return false;
        }
        good = add_capacity(options, text);
        free(text);
        if (!good || list[len] == '\0')
            return good;
        list += len + 1;
    }
}

/* The place of the argument among two words, or -1 after a complaint. */
static int
choose(const char *option, const char *const words[2], const char *argument)
{
    struct nearest nearest = NEAREST_TO(argument);

    for (int i = 0; i < 2; i++) {
        if (strcmp(argument, words[i]) == 0)
            return i;
        nearest_offer(&nearest, words[i]);
    }
    output_complain("%s is %s or %s, not '%s'; did you mean %s?", option, words[0], words[1],
                    argument, nearest.best);
    return -1;
}

static bool
take_log_format(struct options *options, const char *argument)
{
    static const char *const words[2] = {"tsv", "jsonl"};
    int which = choose("--log-format", words, argument);

    options->log_format_given = true;
    options->log_format = which == 0 ? REPLAY_LOG_TSV : REPLAY_LOG_JSONL;
    return which >= 0;
}

static bool
take_option(struct options *options, int option, const char *argument)
{
    static const char *const curve_words[2] = {"urls", "bytes"};

    switch (option) {
    case OPTION_CAPACITY:
        return take_capacities(options, argument);
    case OPTION_CURVE:
        options->curve = true;
        options->curve_in = argument;
        return !argument || choose("--curve", curve_words, argument) >= 0;
    case OPTION_POINTS:
        if (units_parse_uint(argument, 1, MAX_POINTS, &options->points))
            return true;
        output_complain("--points is a number from 1 to %d, not '%s'", MAX_POINTS, argument);
        return false;
    case OPTION_LOG:
        options->log = argument;
        return true;
    case OPTION_LOG_FORMAT:
        return take_log_format(options, argument);
    case OPTION_JSON:
        options->output = SIMULATE_JSON;
        return true;
    case OPTION_CSV:
        options->output = SIMULATE_CSV;
        return true;
    default:
        return simulate_option(&options->common, option, argument) > 0;
    }
}

/* LRU's curve alone: quick and exact, however long the trace. */
static bool
is_one_pass(const struct options *options)
{
    const struct simulate_options *common = &options->common;

    return options->curve_in && strcmp(options->curve_in, "urls") == 0 && common->spec_count == 1 &&
           common->specs[0].ops && strcmp(common->specs[0].ops->name, "lru") == 0;
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
default_capacities(struct options *options, bool sized)
{
    static const double percents[] = {1, 2, 5, 10, 20, 50};
    const size_t count = sizeof(percents) / sizeof(percents[0]);

    options->capacities = calloc(count, sizeof(*options->capacities));
    if (!options->capacities) {
        output_complain("out of memory");
        return false;
    }
    for (size_t i = 0; i < count; i++)
        *(sized ? &options->capacities[i].percent_bytes : &options->capacities[i].percent) =
            percents[i];
    options->capacity_count = count;
    return true;
}

static bool
wants_bytes(const struct options *options)
{
    if (options->common.by_bytes ||
        (options->curve && options->curve_in && strcmp(options->curve_in, "bytes") == 0))
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

        capacity_resolve(&capacity, subject->trace->url_count, subject->facts.distinct_bytes);
        row.urls = capacity.urls;
        row.bytes = capacity.bytes;
        row.share = row.bytes ? (double)row.bytes / (double)subject->facts.distinct_bytes
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
        log = simulate_log_open(options->log,
                                options->log_format_given ? options->log_format
                                                          : replay_log_format_of(options->log),
                                subject);
        if (!log) {
            free(jobs);
            return EX_CANTCREAT;
        }
        jobs[0].config.tell = simulate_log_tell;
        jobs[0].config.context = log;
    }
    status = simulate_run(jobs, count, (unsigned)options->common.jobs, "simulate");
    closed = simulate_log_close(log, options->log);
    for (size_t i = 0; i < count; i++)
        rows[i].job = jobs[i];
    free(jobs);
    return closed != EX_OK ? closed : status;
}

static int
simulate_rows(struct options *options, const struct simulate_subject *subject,
              struct simulate_report *report)
{
    struct simulate_row *rows;
    bool defaults = options->capacity_count == 0;
    size_t count;
    int status;

    if (defaults && !default_capacities(options, subject->sized))
        return EX_SOFTWARE;
    rows = calloc(options->capacity_count * options->common.spec_count, sizeof(*rows));
    if (!rows) {
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    count = fill_rows(options, subject, rows);
    status = run_rows(options, subject, rows, count);
    if (status == EX_OK || status == EXIT_INTERRUPTED) {
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

/* One less is unread, unless it is given up. */
static int
simulate_path(struct options *options, const char *path, struct simulate_report *report,
              size_t *unread)
{
    struct simulate_subject subject;
    int status = simulate_subject_load(path, &options->common, &subject);
    bool in_bytes;

    *unread -= status != EXIT_INTERRUPTED;
    if (status != EX_OK)
        return status;
    in_bytes = options->curve_in ? strcmp(options->curve_in, "bytes") == 0 : subject.sized;
    if (!options->curve)
        status = simulate_rows(options, &subject, report);
    else
        status =
            simulate_curve(report, &subject, &options->common, in_bytes, (size_t)options->points);
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
        printed = simulate_report_flush(&report);
        if (printed != EX_OK)
            return printed;
    }
    if (status == EXIT_INTERRUPTED)
        simulate_report_interrupted(&report, unread);
    printed = simulate_report_end(&report);
    return printed != EX_OK ? printed : status;
}

static int
parse_and_run(struct options *options, int argc, char **argv)
{
    int option;

    while ((option = getopt_long(argc, argv, "j:h", longs, NULL)) != -1) {
        if (option == 'h' || option == OPTION_HELP)
            return command_help(&command_simulate);
        if (!take_option(options, option, optarg))
            return command_usage(&command_simulate);
    }
    if (optind == argc) {
        output_complain("a trace is missing");
        return command_usage(&command_simulate);
    }
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
    struct options options = {.points = DEFAULT_POINTS};
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
    .help =
        "usage: sunproxy simulate [OPTION...] TRACE...\n\n"
        "Runs the policies of the server over a trace, without a server and without time\n"
        "passing, and tells what hits. Loads once; runs on all processors.\n\n"
        "      --policy LIST      policies, separated by commas, with parameters or\n"
        "                         without: lru,lru-k:k=3 (see 'sunproxy policies'); all;\n"
        "                         none (default: the classics, opt, the best of the\n"
        "                         modern ones)\n"
        "      --capacity LIST    so many URLs (700); bytes with a unit (64M, 1.5GB); a\n"
        "                         share of the distinct URLs (10%) or of their bytes\n"
        "                         (10%B); separated by commas (default: 1, 2, 5, 10, 20\n"
        "                         and 50 % of the bytes, or of the URLs without sizes)\n"
        "      --curve[=urls|bytes]\n"
        "                         hit ratios over all sizes: exact and in one pass for\n"
        "                         lru in URLs, at --points sizes for the others (default:\n"
        "                         bytes where sizes are known); of " SIMULATE_ENOUGH_HELP "\n"
        "                         a sample but for that of lru in URLs, unless --sample\n"
        "                         says otherwise\n"
        "      --points N         so many sizes (default: 50)\n"
        "      --log FILE         a line for each request, the same as of 'sunproxy\n"
        "                         replay' but for the time, which is 0; of one policy at\n"
        "                         one capacity\n"
        "      --log-format F     tsv or jsonl (default: jsonl for *.jsonl, else tsv)\n"
        "      --json, --csv      for programs\n"
        "  -h, --help             this text\n\n" SIMULATE_OPTIONS_HELP "\n" TRACE_OPTIONS_HELP "\n"
        "Exit status: 0 done; 64 wrong usage;\n" TRACE_EXIT_HELP
        "73 the log cannot be created; 74 output could not be\n"
        "written; 130 Ctrl-C, after what was finished.\n",
    .run = simulate,
};
