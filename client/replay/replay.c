/*
 * sunproxy replay: sends the requests of a trace to a running server and reports hits, evictions
 * and response times.
 */
#include "client/replay/replay.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/capacity.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/trace_options.h"
#include "client/commands.h"
#include "client/replay/replay_cache.h"

struct replay_options {
    struct server_options server;
    struct trace_options trace;
    struct capacity capacity;
    bool set_capacity;
    const char *policy; /* NULL: as it is */
    bool cold;
    bool keep;
    enum server_route via;
    uint64_t jobs;
    double rate; /* of --open-loop; 0: none */
    uint64_t repeat;
    const char *log;
    enum replay_log_format log_format;
    bool json;
};

/* ---- options --------------------------------------------------------------------------------- */

static int
take_capacity(const struct option_row *row, void *field, const char *text)
{
    struct replay_options *options = field;
    char why[256];

    options->set_capacity = true;
    if (capacity_parse(text, &options->capacity))
        return EX_OK;
    output_complain("--%s: %s", row->name, capacity_explain(text, why, sizeof(why)));
    return EX_USAGE;
}

static int
take_log(const struct option_row *row, void *field, const char *text)
{
    *(const char **)field = text;
    return strcmp(text, "-") != 0
               ? EX_OK
               : options_wrong(row, "a file, for standard output has the results", text);
}

static int
take_rate(const struct option_row *row, void *field, const char *text)
{
    double *rate = field;

    if (units_parse_decimal(text, strlen(text), rate) && *rate >= 0.001 && *rate <= 1e6)
        return EX_OK;
    return options_wrong(row, "a number of requests per second from 0.001 to 1000000", text);
}

#define AT(field) offsetof(struct replay_options, field)

static const struct option_row cache_rows[] = {
    {"policy", 0, "NAME", option_text, AT(policy), 1, PROXY_MAX_NAME, NULL, "replacement policy"},
    {"capacity", 0, "N", take_capacity, 0, 0, 0, NULL,
     "capacity in URLs; with a unit (64M, 1.5GB) in bytes; with % (%B) as a share of the distinct "
     "URLs (bytes)"},
    {"cold", 0, NULL, option_flag, AT(cold), 0, 0, NULL,
     "empty the cache, with policy and capacity as they are"},
    {"keep", 0, NULL, option_flag, AT(keep), 0, 0, NULL,
     "do not restore policy, capacity and shards at the end"},
    {0},
};

static const struct option_group cache_group = {
    .heading = "The cache",
    .rows = cache_rows,
    .after =
        "For administrators, over the AF_UNIX socket. Each of the first three makes every run "
        "begin with an empty cache in one shard. At the end, also after Ctrl-C or a failure, the "
        "server gets its policy, capacity and number of shards back, but not its pages and "
        "counters.",
};

static const struct option_row run_rows[] = {
    {"via", 0, "tcp|unix", option_choice, AT(via), SERVER_TCP, 0, NULL,
     "transport of the requests (default: the first that is found)"},
    {"jobs", 'j', "N", option_uint, AT(jobs), 1, 1024, "1",
     "number of concurrent clients, each with a connection. Only with one are the outcomes of a "
     "trace exact, and the log in its order"},
    {"open-loop", 0, "RATE", take_rate, AT(rate), 0, 0, NULL,
     "send RATE requests per second on a schedule that does not wait for answers; response times "
     "begin at the scheduled time"},
    {"repeat", 0, "N", option_uint, AT(repeat), 1, 1000, "1",
     "number of runs; of several, mean and standard deviation are printed"},
    {"log", 0, "FILE", take_log, AT(log), 0, 0, NULL,
     "write a line for each request: number, url, outcome (miss, hit, evicted, coalesced, bypass, "
     "uncached, failed), victim, status, bytes, us"},
    {"log-format", 0, "tsv|jsonl", option_choice, AT(log_format), REPLAY_LOG_TSV, 0, NULL,
     "format of the log (default: jsonl for *.jsonl, else tsv)"},
    {"json", 0, NULL, option_flag, AT(json), 0, 0, NULL, "print the summary as one JSON object"},
    {0},
};

static const struct option_group run_group = {.heading = "The run", .rows = run_rows};

/* ---- the server ------------------------------------------------------------------------------ */

static bool
changes_server(const struct replay_options *options)
{
    return options->policy || options->set_capacity || options->cold;
}

/* The addresses for requests and for administration; often the same. */
struct replay_targets {
    struct server server;
    struct server admin;
};

static int
find_targets(const struct replay_options *options, struct replay_targets *targets)
{
    bool admin = changes_server(options) || options->log;
    enum server_route route = options->via != SERVER_ANY ? options->via
                              : admin                    ? SERVER_ADMIN
                                                         : SERVER_ANY;
    struct rpc_client *client;
    int status;

    client = server_find(&options->server, route, &targets->server, &status);
    if (!client)
        return status;
    rpc_client_close(client);
    targets->admin = targets->server;
    /* Requests may go over TCP; administrators are identified on AF_UNIX only. */
    if (targets->server.address.ss_family != AF_UNIX && changes_server(options) &&
        (options->server.socket || !options->server.port)) {
        struct server other;

        client = server_find(&options->server, SERVER_ADMIN, &other, &status);
        if (client)
            targets->admin = other;
        rpc_client_close(client);
    }
    return EX_OK;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static int
run_each(const struct replay_options *options, struct replay_subject *subject,
         const struct replay_targets *targets, struct replay_cache *cache, struct replay_log *log,
         struct replay_result *results, size_t *count)
{
    struct replay_plan plan = {
        .trace = subject->trace,
        .server = &targets->server,
        .timeout_us = options->server.timeout_us,
        .signals = interrupt_catch(),
        .jobs = (unsigned)options->jobs,
        .rate = options->rate,
        .runs = (unsigned)options->repeat,
        .want_victims = log != NULL,
        .log = log,
    };
    int status = EX_OK;

    while (*count < options->repeat && status == EX_OK) {
        plan.run = (unsigned)*count + 1;
        status = replay_cache_set(cache);
        if (status == EX_OK && *count == 0)
            status = replay_cache_describe(cache, subject);
        if (status == EX_OK && interrupt_came())
            status = EXIT_INTERRUPTED;
        if (status != EX_OK)
            return status;
        status = replay_run(&plan, &results[(*count)++]);
    }
    subject->interrupted = status != EX_OK;
    return status;
}

/* Runs, then restores the server. */
static int
run_all(const struct replay_options *options, struct replay_subject *subject,
        const struct replay_targets *targets, struct replay_log *log, struct replay_result *results,
        size_t *count)
{
    struct replay_cache cache = {
        .server = &targets->admin,
        .timeout_us = options->server.timeout_us,
        .change = changes_server(options),
        .policy = options->policy,
        .set_capacity = options->set_capacity,
        .capacity_urls = options->capacity.urls,
        .capacity_bytes = options->capacity.bytes,
    };
    int status, restored = EX_OK;

    /* From before the first change until after the last, so that Ctrl-C cannot prevent the latter.
     */
    if (!interrupt_catch()) {
        output_complain("signals cannot be caught: %s", strerror(errno));
        return EX_OSERR;
    }
    status = run_each(options, subject, targets, &cache, log, results, count);
    if (!options->keep)
        restored = replay_cache_restore(&cache);
    interrupt_release();
    return status == EX_OK ? restored : status;
}

/* The exit status of the first request if every request of every run failed, else EX_OK. */
static int
common_failure(const struct replay_result *results, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (results[i].requests != results[i].outcomes[REPLAY_FAILED])
            return EX_OK;
    return results[0].failure_status;
}

static int
report(const struct replay_options *options, const struct replay_subject *subject,
       const struct replay_result *results, size_t count, int status)
{
    /* Of several runs, an incomplete one is left out. */
    if (count > 1 && status != EX_OK)
        count--;
    if (count == 0 || results[0].requests == 0)
        return status;
    if (status == EX_OK)
        status = common_failure(results, count);
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
        output_complain("%s: a share of the bytes needs a trace with sizes", path);
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
        output_complain("%s: the format %s has numbers instead of URLs, which cannot be fetched; "
                        "'sunproxy simulate' reads it",
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
                                         .jobs = (unsigned)options->jobs,
                                         .rate = options->rate};

        status = replay_trace(options, &subject, &targets);
    }
    trace_free(trace);
    return status;
}

static int
replay(int argc, char **argv)
{
    struct replay_options options = {.trace = TRACE_OPTIONS_DEFAULT};
    void *const into[] = {&options, &options, &options.trace, &options.server};
    int status = command_read(&command_replay, into, argc, argv);

    return status == COMMAND_GO_ON ? replay_path(&options, argv[optind]) : status;
}

const struct command command_replay = {
    .name = "replay",
    .summary = "send the requests of a trace and report hit ratios",
    .about = "usage: sunproxy replay [OPTION...] TRACE\n\n"
             "Sends the requests of a trace to the server in their order, and sums up hits,\n"
             "evictions and response times. TRACE is of any format that has URLs; 'sunproxy\n"
             "trace --help' lists them.\n",
    .options = {&cache_group, &run_group, &trace_option_group, &server_option_group},
    .after =
        "Exit status: 0 done, even if single requests failed; 64 wrong usage;\n" TRACE_EXIT_HELP
        "69 no server, or lost; 73 the log cannot be created; 74\n"
        "output could not be written; 77 permission denied; 130 Ctrl-C, after the\n"
        "summary of what was finished. If every request failed, that of the first as\n"
        "'sunproxy get' has it.\n",
    .argument = "trace",
    .least = 1,
    .most = 1,
    .run = replay,
};
