/*
 * sunproxy origin: lists the members of a running server's origins, and drains and enables them.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/json.h"
#include "base/printable.h"
#include "cli/columns.h"
#include "cli/output.h"
#include "client/admin.h"
#include "client/commands.h"
#include "client/connect.h"

struct origin_options {
    struct server_options server;
    bool json;
};

static const struct option_row rows[] = {
    {"json", 0, NULL, option_flag, offsetof(struct origin_options, json), 0, 0, NULL,
     "print an array of JSON objects"},
    {0},
};

static const struct option_group own = {.rows = rows};

static const struct column columns[] = {
    {"row", -24, false}, {"member", -32, false},    {"weight", 6, false},    {"in flight", 9, false},
    {"requests", 9, false}, {"failed", 7, false},   {"p50 ms", 7, false},
    {"p90 ms", 7, false},   {"p99 ms", 7, false},   {"state", -1, false},
};

static void
put_text(struct columns *line, const char *text)
{
    char *shown = strdup(text);

    if (shown)
        printable_make(shown, strlen(shown));
    columns_cell(line, "%s", shown ? shown : "");
    free(shown);
}

/* "up (its status is 503, 12 s ago)". */
static void
put_state(struct columns *line, const proxy_member *member)
{
    char state[2 * PROXY_MAX_NAME + 64], ago[32] = "";

    if (member->failed_us >= 0)
        snprintf(ago, sizeof(ago), "; failed %" PRId64 " s ago",
                 (int64_t)(member->failed_us / 1000000));
    snprintf(state, sizeof(state), "%s%s%s%s%s%s", member->backup ? "backup, " : "",
             *member->state ? member->state : "up", *member->reason ? " (" : "", member->reason,
             *member->reason ? ago : "", *member->reason ? ")" : "");
    put_text(line, state);
}

/* In milliseconds; nothing if there was no response. */
static void
put_time(struct columns *line, uint64_t us)
{
    if (us)
        columns_cell(line, "%.1f", (double)us / 1000);
    else
        columns_cell(line, "-");
}

static void
print_table(const proxy_member *members, size_t count)
{
    struct columns line = {
        .out = stdout, .list = columns, .count = sizeof(columns) / sizeof(columns[0])};

    columns_head(&line);
    for (size_t i = 0; i < count; i++) {
        put_text(&line, members[i].row);
        put_text(&line, members[i].url);
        columns_cell(&line, "%u", members[i].weight);
        columns_cell(&line, members[i].max ? "%u/%u" : "%u", members[i].in_flight,
                     members[i].max);
        columns_cell(&line, "%" PRIu64, members[i].requests);
        columns_cell(&line, "%" PRIu64, members[i].failed);
        put_time(&line, members[i].p50_us);
        put_time(&line, members[i].p90_us);
        put_time(&line, members[i].p99_us);
        put_state(&line, &members[i]);
        columns_end(&line);
    }
}

static void
print_json(const proxy_member *members, size_t count)
{
    struct json json;
    struct buf text;

    buf_init(&text, (size_t)1 << 30);
    json_init(&json, &text);
    json_open_array(&json, NULL);
    for (size_t i = 0; i < count; i++) {
        json_open_object(&json, NULL);
        json_cstring(&json, "row", members[i].row);
        json_cstring(&json, "member", members[i].url);
        json_uint(&json, "weight", members[i].weight);
        json_bool(&json, "backup", members[i].backup);
        json_cstring(&json, "state", *members[i].state ? members[i].state : "up");
        json_cstring(&json, "reason", members[i].reason);
        if (members[i].max)
            json_uint(&json, "max", members[i].max);
        json_uint(&json, "in_flight", members[i].in_flight);
        json_uint(&json, "requests", members[i].requests);
        json_uint(&json, "failed", members[i].failed);
        if (members[i].failed_us >= 0)
            json_uint(&json, "failed_us_ago", (uint64_t)members[i].failed_us);
        json_uint(&json, "p50_us", members[i].p50_us);
        json_uint(&json, "p90_us", members[i].p90_us);
        json_uint(&json, "p99_us", members[i].p99_us);
        json_close_object(&json);
    }
    json_close_array(&json);
    puts(buf_str(&text));
    buf_free(&text);
}

/* What the words ask for; false: that is nothing. */
static bool
read_words(char **words, int count, proxy_origin_args *args)
{
    static char nothing[] = "";

    *args = (proxy_origin_args){.action = PROXY_ORIGIN_LIST, .member = nothing};
    if (count == 0)
        return true;
    if (count != 2)
        return false;
    args->member = words[1];
    args->action = strcmp(words[0], "drain") == 0 ? PROXY_ORIGIN_DRAIN : PROXY_ORIGIN_ENABLE;
    return args->action == PROXY_ORIGIN_DRAIN || strcmp(words[0], "enable") == 0;
}

static int
origin(int argc, char **argv)
{
    struct origin_options options = {.json = false};
    void *const into[] = {&options, &options.server};
    proxy_origin_result result;
    proxy_origin_args args;
    struct server server;
    struct rpc_client *client;
    int status = command_read(&command_origin, into, argc, argv);

    if (status != COMMAND_GO_ON)
        return status;
    if (!read_words(argv + optind, argc - optind, &args)) {
        output_complain("give no arguments, drain URL or enable URL");
        return command_usage(&command_origin);
    }
    client = server_find(&options.server, SERVER_ADMIN, &server, &status);
    if (!client)
        return status;
    status = admin_origin(client, options.server.timeout_us, &args, &result);
    rpc_client_close(client);
    if (status != EX_OK)
        return status;
    (options.json ? print_json : print_table)(
        result.proxy_origin_result_u.members.members_val,
        result.proxy_origin_result_u.members.members_len);
    xdr_free((xdrproc_t)xdr_proxy_origin_result, &result);
    return EX_OK;
}

const struct command command_origin = {
    .name = "origin",
    .summary = "list the members of a server's origins, drain and enable them",
    .about = "usage: sunproxy origin [OPTION...]\n"
             "       sunproxy origin [OPTION...] drain URL\n"
             "       sunproxy origin [OPTION...] enable URL\n\n"
             "Lists the members of the rows of --origin, with what keeps requests from them.\n"
             "A member that is drained gets no further requests until it is enabled. URL is\n"
             "that of a member as it is listed. For administrators, over the AF_UNIX socket.\n",
    .options = {&own, &server_option_group},
    .after = "Exit status: 0 done; 64 wrong usage, or no such member; 69 no server; 74 output\n"
             "could not be written; 75 no answer in time; 77 permission denied.\n",
    .most = 2,
    .run = origin,
};
