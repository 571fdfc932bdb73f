/*
 * sunproxy replay: sends the requests of a trace to a running server and tells what its cache made
 * of them.
 */
#include "client/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "client/admin.h"
#include "cli/capacity.h"
#include "cli/output.h"
#include "cli/trace_options.h"
#include "client/commands.h"

enum {
    OPTION_POLICY = SERVER_OPTION_END,
    OPTION_CAPACITY,
    OPTION_COLD,
    OPTION_VIA,
    OPTION_REPEAT,
    OPTION_LOG,
    OPTION_LOG_FORMAT,
    OPTION_JSON,
};

static const struct option longs[] = {
    {"policy", required_argument, NULL, OPTION_POLICY},
    {"capacity", required_argument, NULL, OPTION_CAPACITY},
    {"cold", no_argument, NULL, OPTION_COLD},
    {"via", required_argument, NULL, OPTION_VIA},
    {"jobs", required_argument, NULL, 'j'},
    {"repeat", required_argument, NULL, OPTION_REPEAT},
    {"log", required_argument, NULL, OPTION_LOG},
    {"log-format", required_argument, NULL, OPTION_LOG_FORMAT},
    {"json", no_argument, NULL, OPTION_JSON},
    TRACE_LONG_OPTIONS,
    SERVER_LONG_OPTIONS,
    {NULL, 0, NULL, 0},
};

struct replay_options {
    struct server_options server;
    struct trace_options trace;
    struct capacity capacity;
    bool set_capacity;
    const char *policy; /* NULL: as it is */
    bool cold;
    enum server_wish via;
    uint64_t jobs;
    uint64_t repeat;
    const char *log;
    enum replay_log_format log_format;
    bool log_format_given;
    bool json;
};

/* ---- options --------------------------------------------------------------------------------- */

static bool
wrong(const char *option, const char *wanted, const char *argument)
{
    output_complain("%s is %s, not '%s'", option, wanted, argument);
    return false;
}

static bool
take_option(struct replay_options *options, int option, const char *argument)
{
    char why[256];
    int taken;

    switch (option) {
    case OPTION_POLICY:
        options->policy = argument;
        return *argument != '\0' && strlen(argument) <= PROXY_MAX_NAME
                   ? true
                   : wrong("--policy", "the name of a policy", argument);
    case OPTION_CAPACITY:
        options->set_capacity = true;
        if (capacity_parse(argument, &options->capacity))
            return true;
        output_complain("--capacity: %s", capacity_explain(argument, why, sizeof(why)));
        return false;
    case OPTION_COLD:
        options->cold = true;
        return true;
    case OPTION_VIA:
        options->via = strcmp(argument, "tcp") == 0 ? SERVER_TCP : SERVER_UNIX;
        return options->via == SERVER_TCP || strcmp(argument, "unix") == 0
                   ? true
                   : wrong("--via", "tcp or unix", argument);
    case 'j':
        return units_parse_uint(argument, 1, 1024, &options->jobs)
                   ? true
                   : wrong("--jobs", "a number from 1 to 1024", argument);
    case OPTION_REPEAT:
        return units_parse_uint(argument, 1, 1000, &options->repeat)
                   ? true
                   : wrong("--repeat", "a number from 1 to 1000", argument);
    case OPTION_LOG:
        options->log = argument;
        return strcmp(argument, "-") != 0
                   ? true
                   : wrong("--log", "a file, for standard output has the results", argument);
    case OPTION_LOG_FORMAT:
        options->log_format_given = true;
        options->log_format = strcmp(argument, "tsv") == 0 ? REPLAY_LOG_TSV : REPLAY_LOG_JSONL;
        return options->log_format == REPLAY_LOG_TSV || strcmp(argument, "jsonl") == 0
                   ? true
                   : wrong("--log-format", "tsv or jsonl", argument);
    case OPTION_JSON:
        options->json = true;
        return true;
    default:
        taken = trace_option(&options->trace, option, argument);
        if (taken == 0)
            taken = server_option(&options->server, option, argument);
        return taken > 0;
    }
}

/* ---- the server ------------------------------------------------------------------------------ */

static bool
changes_server(const struct replay_options *options)
{
    return options->policy || options->set_capacity || options->cold;
}

/* Where the requests go, and where the server is told what to do: often the same. */
struct replay_targets {
    struct server server;
    struct rpc_client *admin;
};

static int
find_targets(const struct replay_options *options, struct replay_targets *targets)
{
    bool admin = changes_server(options) || options->log;
    enum server_wish wish = options->via != SERVER_ANY ? options->via
                            : admin                    ? SERVER_ADMIN
                                                       : SERVER_ANY;
    struct server other;
    int status;

    targets->admin = server_find(&options->server, wish, &targets->server, &status);
    if (!targets->admin)
        return status;
    /* Requests may be wanted over TCP; administrators are only known over AF_UNIX. */
    if (targets->server.address.ss_family != AF_UNIX && changes_server(options) &&
        (options->server.socket || !options->server.port)) {
        struct rpc_client *better = server_find(&options->server, SERVER_ADMIN, &other, &status);

        if (better) {
            rpc_client_close(targets->admin);
            targets->admin = better;
        }
    }
    return EX_OK;
}

/* An empty cache of the policy and capacity that are wanted, all in one shard. */
static int
set_cold(const struct replay_options *options, struct rpc_client *admin)
{
    static char nothing[] = "";
    proxy_set_args args = {
        .policy = options->policy ? (char *)(uintptr_t)options->policy : nothing,
        .set_capacity = options->set_capacity,
        .capacity_urls = options->capacity.urls,
        .capacity_bytes = options->capacity.bytes,
        .shards = 1,
        .cold = TRUE,
    };
    uint64_t kept;

    if (!changes_server(options))
        return EX_OK;
    return admin_set(admin, options->server.timeout_us, &args, &kept);
}

static int
ask_policy(const struct replay_options *options, struct rpc_client *admin,
           struct replay_subject *subject)
{
    proxy_stats stats;
    int status = admin_stat(admin, options->server.timeout_us, &stats);

    if (status != EX_OK)
        return status;
    snprintf(subject->policy, sizeof(subject->policy), "%s", stats.policy);
    subject->capacity_urls = stats.capacity_urls;
    subject->capacity_bytes = stats.capacity_bytes;
    admin_free_stats(&stats);
    return EX_OK;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static int
run_all(const struct replay_options *options, struct replay_subject *subject,
        const struct replay_targets *targets, struct replay_log *log, struct replay_result *results,
        size_t *count)
{
    struct replay_plan plan = {
        .trace = subject->trace,
        .server = &targets->server,
        .timeout_us = options->server.timeout_us,
        .jobs = (unsigned)options->jobs,
        .runs = (unsigned)options->repeat,
        .want_victims = log != NULL,
        .log = log,
    };
    int status = EX_OK;

    while (*count < options->repeat && status == EX_OK) {
        plan.run = (unsigned)*count + 1;
        status = set_cold(options, targets->admin);
        if (status == EX_OK && *count == 0)
            status = ask_policy(options, targets->admin, subject);
        if (status != EX_OK)
            return status;
        status = replay_run(&plan, &results[(*count)++]);
    }
    subject->interrupted = status != EX_OK;
    return status;
}

static int
report(const struct replay_options *options, const struct replay_subject *subject,
       const struct replay_result *results, size_t count, int status)
{
    /* Of several runs, one that was cut off says nothing. */
    if (count > 1 && status != EX_OK)
        count--;
    if (count == 0 || results[0].requests == 0)
        return status;
    if (!options->json)
        replay_report_table(subject, results, count);
    else if (replay_report_json(subject, results, count) != EX_OK)
        return EX_IOERR;
    return status;
}

static int
replay_trace(struct replay_options *options, struct replay_subject *subject,
             const struct replay_targets *targets)
{
    struct replay_result *results = calloc(options->repeat, sizeof(*results));
    struct replay_log *log = NULL;
    size_t count = 0;
    int status, error;

    if (!results) {
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    if (options->log) {
        if (!options->log_format_given)
            options->log_format = replay_log_format_of(options->log);
        log = replay_log_open(options->log, options->log_format, (unsigned)options->repeat);
        if (!log) {
            output_complain("cannot write %s: %s", options->log, strerror(errno));
            free(results);
            return EX_CANTCREAT;
        }
    }
    status = run_all(options, subject, targets, log, results, &count);
    error = replay_log_close(log);
    if (error && status != EX_IOERR) {
        output_complain("cannot write %s: %s", options->log, strerror(error));
        status = EX_IOERR;
    }
    status = report(options, subject, results, count, status);
    free(results);
    return status;
}

/* URLs are numbered as they appear, so a new number is a first request. */
static int
resolve_capacity(const char *path, const struct trace *trace, struct capacity *capacity)
{
    uint64_t bytes = 0;
    size_t seen = 0;

    for (size_t i = 0; trace->sizes && i < trace->request_count; i++)
        if (trace->ids[i] == seen) {
            seen++;
            bytes += trace->sizes[i] == TRACE_SIZE_UNKNOWN ? 0 : trace->sizes[i];
        }
    if (capacity->percent_bytes > 0 && bytes == 0) {
        output_complain("%s: a share of the bytes needs a trace that tells sizes", path);
        return EX_USAGE;
    }
    capacity_resolve(capacity, trace->url_count, bytes);
    return EX_OK;
}

static int
replay_path(struct replay_options *options, const char *path)
{
    struct replay_targets targets;
    struct trace *trace = NULL;
    int status = trace_open(path, &options->trace, &trace);

    if (status != EX_OK)
        return status;
    if (!trace->urls) {
        output_complain("%s: the format %s has numbers and no URLs that could be asked for; "
                        "'sunproxy simulate' takes it",
                        path, trace->format);
        trace_free(trace);
        return EX_DATAERR;
    }
    status = resolve_capacity(path, trace, &options->capacity);
    if (status == EX_OK)
        status = find_targets(options, &targets);
    if (status == EX_OK) {
        struct replay_subject subject = {.path = path,
                                         .trace = trace,
                                         .server = targets.server.name,
                                         .jobs = (unsigned)options->jobs};

        status = replay_trace(options, &subject, &targets);
        rpc_client_close(targets.admin);
    }
    trace_free(trace);
    return status;
}

static int
replay(int argc, char **argv)
{
    struct replay_options options = {
        .server = SERVER_OPTIONS_DEFAULT, .trace = TRACE_OPTIONS_DEFAULT, .jobs = 1, .repeat = 1};
    int option;

    while ((option = getopt_long(argc, argv, "j:h", longs, NULL)) != -1) {
        if (option == 'h' || option == OPTION_HELP)
            return command_help(&command_replay);
        if (!take_option(&options, option, optarg))
            return command_usage(&command_replay);
    }
    if (argc - optind != 1) {
        output_complain(optind == argc ? "a trace is missing" : "one trace at a time");
        return command_usage(&command_replay);
    }
    return replay_path(&options, argv[optind]);
}

const struct command command_replay = {
    .name = "replay",
    .summary = "send the requests of a trace, and see what hits",
    .help =
        "usage: sunproxy replay [OPTION...] TRACE\n\n"
        "Sends the requests of a trace to the server in their order, and sums up hits,\n"
        "evictions and response times. TRACE is of any format that has URLs; 'sunproxy\n"
        "trace --help' lists them.\n\n"
        "The cache, for administrators over the AF_UNIX socket; any of these begins each\n"
        "run with an empty cache in one shard:\n"
        "      --policy NAME      replacement policy\n"
        "      --capacity N       so many URLs; with a unit (64M, 1.5GB) so many bytes;\n"
        "                         with % (%B) that share of the distinct URLs (bytes)\n"
        "      --cold             policy and capacity as they are\n\n"
        "The run:\n"
        "      --via tcp|unix     how requests travel (default: whatever is found)\n"
        "  -j, --jobs N           so many clients at once (default: 1). The outcomes of\n"
        "                         a trace are exact, and the log in its order, with one\n"
        "                         only\n"
        "      --repeat N         so many times; prints mean and standard deviation\n"
        "      --log FILE         a line for each request: number, url, outcome (miss,\n"
        "                         hit, evicted, coalesced, bypass, uncached, failed),\n"
        "                         victim, status, bytes, us\n"
        "      --log-format F     tsv or jsonl (default: jsonl for *.jsonl, else tsv)\n"
        "      --json             the summary as one object\n\n"
        "  -h, --help             this text\n\n" TRACE_OPTIONS_HELP "\n" SERVER_OPTIONS_HELP "\n"
        "Exit status: 0 done, even if single requests failed; 64 wrong usage;\n" TRACE_EXIT_HELP
        "69 no server, or lost; 73 the log cannot be created; 74\n"
        "output could not be written; 77 not for this caller; 130 Ctrl-C, after the\n"
        "summary of what was finished.\n",
    .run = replay,
};
