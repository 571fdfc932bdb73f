/*
 * sunproxy stat: what a running server has counted, once or again and again; or with --since what
 * its request database has of the past.
 */
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/output.h"
#include "client/admin.h"
#include "client/commands.h"
#include "client/connect.h"
#include "client/stat_show.h"
#include "client/stat_since.h"

/* ---- watching -------------------------------------------------------------------------------- */

enum stat_form { STAT_TEXT, STAT_JSON, STAT_CSV };

struct stat_options {
    struct server_options server;
    int64_t watch_us; /* 0: once */
    enum stat_form form;
    struct since_options since;
};

static int
show(const struct stat_view *view, const struct stat_options *options, const struct server *server,
     bool redraw)
{
    int status = EX_OK;

    if (options->form == STAT_JSON)
        return stat_show_json(view);
    if (options->form == STAT_CSV) {
        status = stat_show_csv(view, options->watch_us != 0);
    } else if (options->watch_us && !redraw) {
        /* The first answer has none before it to compare with; rates begin with the second. */
        if (view->looks > 0)
            status = stat_show_line(view);
    } else {
        if (redraw)
            fputs("\033[H\033[2J", stdout);
        status = stat_show_table(view, server->name);
    }
    return status == EX_OK ? output_flush() : status;
}

static int
watch(struct rpc_client *client, const struct stat_options *options, const struct server *server)
{
    struct stat_view view = {.seconds = 0};
    int64_t seen_us = 0;
    bool redraw = options->watch_us != 0 && options->form == STAT_TEXT && output_is_lively(stdout);
    int status;

    for (;; view.looks++) {
        struct timespec pause = clock_timespec(options->watch_us);
        int64_t now_us;

        status = admin_stat(client, options->server.timeout_us, &view.now);
        if (status != EX_OK)
            break;
        now_us = clock_monotonic_us();
        view.seconds = view.looks ? (double)(now_us - seen_us) / 1e6 : 0;
        view.elapsed += view.seconds;
        seen_us = now_us;
        status = show(&view, options, server, redraw);
        admin_free_stats(&view.before);
        view.before = view.now;
        if (status != EX_OK || options->watch_us == 0)
            break;
        nanosleep(&pause, NULL);
    }
    admin_free_stats(&view.before);
    return status;
}

static int
take_watch(const struct option_row *row, void *field, const char *text)
{
    int64_t *us = field;

    *us = 1000000;
    if (!text || (units_parse_duration(text, us) && *us > 0))
        return EX_OK;
    return options_wrong(row, "a number of seconds", text);
}

#define AT(field) offsetof(struct stat_options, field)

static const struct option_row rows[] = {
    {"watch", 'w', "[=SECONDS]", take_watch, AT(watch_us), 0, 0, NULL,
     "repeat with rates until Ctrl-C (default: every second): redrawn on a terminal, else one "
     "line each"},
    {"json", 0, NULL, option_value, AT(form), STAT_JSON, 0, NULL,
     "print one JSON object, or with --watch one per line"},
    {"csv", 0, NULL, option_value, AT(form), STAT_CSV, 0, NULL,
     "print name, kind and value of every metric as CSV; with --watch time and rate as well"},
    {0},
};

static const struct option_group own = {.rows = rows};
static const struct option_group since_group = {.heading = "The past", .rows = since_option_rows};

/* ---- the past -------------------------------------------------------------------------------- */

static bool
looks_back(const struct since_options *since)
{
    return since->since_us != INT64_MIN;
}

static int
check_options(const struct stat_options *options)
{
    const struct since_options *since = &options->since;

    if (!looks_back(since) && (since->path || since->until_us != INT64_MAX)) {
        output_complain("--%s needs --since", since->path ? "request-db" : "until");
        return EX_USAGE;
    }
    if (looks_back(since) && (options->watch_us || options->form == STAT_CSV)) {
        output_complain("--since and --%s exclude each other", options->watch_us ? "watch" : "csv");
        return EX_USAGE;
    }
    return EX_OK;
}

/* Of the database that the server names. */
static int
look_back_at(struct rpc_client *client, const struct stat_options *options,
             const struct server *server)
{
    proxy_stats stats = {0};
    const char *path;
    int status = admin_stat(client, options->server.timeout_us, &stats);

    if (status != EX_OK)
        return status;
    path = server_stats_fact(&stats, "request_db");
    if (*path) {
        status = stat_since(&options->since, path, options->form == STAT_JSON);
    } else {
        output_complain("the server at %s names no request database (only administrators get "
                        "its name, over the socket); give it with --request-db",
                        server->name);
        status = EX_UNAVAILABLE;
    }
    admin_free_stats(&stats);
    return status;
}

static int
stat_(int argc, char **argv)
{
    struct stat_options options = {.since = {.since_us = INT64_MIN, .until_us = INT64_MAX}};
    void *const into[] = {&options, &options.since, &options.server};
    struct server server;
    struct rpc_client *client;
    int status = command_read(&command_stat, into, argc, argv);

    if (status != COMMAND_GO_ON)
        return status;
    status = check_options(&options);
    if (status != EX_OK)
        return status;
    if (options.since.path)
        return stat_since(&options.since, options.since.path, options.form == STAT_JSON);
    client = server_find(&options.server, SERVER_ADMIN, &server, &status);
    if (!client)
        return status;
    status = looks_back(&options.since) ? look_back_at(client, &options, &server)
                                        : watch(client, &options, &server);
    rpc_client_close(client);
    return status;
}

const struct command command_stat = {
    .name = "stat",
    .summary = "print the counters of a running server",
    .about = "usage: sunproxy stat [OPTION...]\n\n"
             "Prints the server's counters since start, or the last reset (set --cold);\n"
             "with --since, what its request database has of the past.\n",
    .options = {&own, &since_group, &server_option_group},
    .after = "Exit status: 0 done; 64 wrong usage; 65 a damaged database; 66 a database that\n"
             "cannot be opened; 69 no server; 74 output could not be written; 75 no answer in\n"
             "time.\n",
    .run = stat_,
};
