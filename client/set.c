/*
 * sunproxy set: changes the cache of a running server.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "client/admin.h"
#include "cli/capacity.h"
#include "client/connect.h"
#include "cli/output.h"
#include "client/commands.h"

enum {
    OPTION_POLICY = SERVER_OPTION_END,
    OPTION_CAPACITY_URLS,
    OPTION_CAPACITY_BYTES,
    OPTION_SHARDS,
    OPTION_COLD,
    OPTION_JSON
};

static const struct option longs[] = {
    {"policy", required_argument, NULL, OPTION_POLICY},
    {"capacity-urls", required_argument, NULL, OPTION_CAPACITY_URLS},
    {"capacity-bytes", required_argument, NULL, OPTION_CAPACITY_BYTES},
    {"shards", required_argument, NULL, OPTION_SHARDS},
    {"cold", no_argument, NULL, OPTION_COLD},
    {"json", no_argument, NULL, OPTION_JSON},
    SERVER_LONG_OPTIONS,
    {NULL, 0, NULL, 0},
};

struct set_options {
    struct server_options server;
    proxy_set_args args;
    bool urls_given;
    bool bytes_given;
    bool json;
};

static bool
wrong(const char *option, const char *wanted, const char *argument)
{
    output_complain("%s is %s, not '%s'", option, wanted, argument);
    return false;
}

static bool
take_option(struct set_options *options, int option, char *argument)
{
    uint64_t number;

    switch (option) {
    case OPTION_POLICY:
        if (*argument == '\0' || strlen(argument) > PROXY_MAX_NAME)
            return wrong("--policy", "the name of a policy", argument);
        options->args.policy = argument;
        return true;
    case OPTION_CAPACITY_URLS:
        if (!units_parse_uint(argument, 0, UINT64_MAX, &number))
            return wrong("--capacity-urls", "a number of URLs, 0 for no bound", argument);
        options->args.capacity_urls = number;
        options->urls_given = true;
        return true;
    case OPTION_CAPACITY_BYTES:
        if (!units_parse_bytes(argument, &number))
            return wrong("--capacity-bytes", "a size such as 64M or 1.5GB, 0 for no bound",
                         argument);
        options->args.capacity_bytes = number;
        options->bytes_given = true;
        return true;
    case OPTION_SHARDS:
        if (!units_parse_uint(argument, 1, 1024, &number))
            return wrong("--shards", "a number from 1 on", argument);
        options->args.shards = (u_int)number;
        return true;
    case OPTION_COLD:
        options->args.cold = TRUE;
        return true;
    case OPTION_JSON:
        options->json = true;
        return true;
    default:
        return server_option(&options->server, option, argument) > 0;
    }
}

/* The call sets both capacities or none: the one that was not named stays as it is. */
static int
complete_capacity(struct rpc_client *client, struct set_options *options)
{
    proxy_stats stats;
    int status;

    if (options->urls_given == options->bytes_given) {
        options->args.set_capacity = options->urls_given;
        return EX_OK;
    }
    status = admin_stat(client, options->server.timeout_us, &stats);
    if (status != EX_OK)
        return status;
    options->args.set_capacity = TRUE;
    if (!options->urls_given)
        options->args.capacity_urls = stats.capacity_urls;
    if (!options->bytes_given)
        options->args.capacity_bytes = stats.capacity_bytes;
    admin_free_stats(&stats);
    return EX_OK;
}

static int
show_new_state(struct rpc_client *client, const struct set_options *options, uint64_t kept)
{
    proxy_stats stats;
    char capacity[64];
    int status = admin_stat(client, options->server.timeout_us, &stats);

    if (status != EX_OK)
        return status;
    if (options->json) {
        struct buf out;
        struct json j;

        buf_init(&out, 4096);
        json_init(&j, &out);
        json_open_object(&j, NULL);
        json_cstring(&j, "policy", stats.policy);
        json_uint(&j, "capacity_urls", stats.capacity_urls);
        json_uint(&j, "capacity_bytes", stats.capacity_bytes);
        json_uint(&j, "shards", stats.shards);
        json_uint(&j, "kept", kept);
        json_close_object(&j);
        status = output_json(&out);
    } else {
        printf(
            "policy %s, %s, shards: %u, pages kept: %" PRIu64 "\n", stats.policy,
            capacity_format(stats.capacity_urls, stats.capacity_bytes, capacity, sizeof(capacity)),
            stats.shards, kept);
    }
    admin_free_stats(&stats);
    return status;
}

static int
change(struct set_options *options)
{
    struct server server;
    uint64_t kept = 0;
    int status;
    struct rpc_client *client = server_find(&options->server, SERVER_ADMIN, &server, &status);

    if (!client)
        return status;
    status = complete_capacity(client, options);
    if (status == EX_OK)
        status = admin_set(client, options->server.timeout_us, &options->args, &kept);
    if (status == EX_OK)
        status = show_new_state(client, options, kept);
    rpc_client_close(client);
    return status;
}

static int
set(int argc, char **argv)
{
    static char nothing[] = "";
    struct set_options options = {.server = SERVER_OPTIONS_DEFAULT, .args = {.policy = nothing}};
    int option;

    while ((option = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
        if (option == 'h' || option == OPTION_HELP)
            return command_help(&command_set);
        if (!take_option(&options, option, optarg))
            return command_usage(&command_set);
    }
    if (optind != argc) {
        output_complain("no argument is expected, but there is '%s'", argv[optind]);
        return command_usage(&command_set);
    }
    if (options.args.policy == nothing && !options.urls_given && !options.bytes_given &&
        options.args.shards == 0 && !options.args.cold) {
        output_complain("say what to set");
        return command_usage(&command_set);
    }
    return change(&options);
}

const struct command command_set = {
    .name = "set",
    .summary = "change policy and capacity of a running server",
    .help = "usage: sunproxy set [OPTION...]\n\n"
            "Changes the cache of a running server and prints what is in force then. Pages\n"
            "that fit stay, unless --cold is given. What is not named stays as it is. For\n"
            "administrators, over the AF_UNIX socket.\n\n"
            "      --policy NAME         replacement policy; 'none' is no cache\n"
            "      --capacity-urls N     at most so many pages; 0: no bound\n"
            "      --capacity-bytes SIZE at most so many bytes: 64M, 1.5GB; 0: no bound\n"
            "      --shards N            so many independent parts; 1 makes outcomes exact\n"
            "      --cold                empty the cache and set the counters to zero\n"
            "      --json                one object\n"
            "  -h, --help                this text\n\n" SERVER_OPTIONS_HELP "\n"
            "Exit status: 0 done; 64 wrong usage or a value that cannot be; 69 no server; 74\n"
            "output could not be written; 75 no answer in time; 77 not for this caller.\n",
    .run = set,
};
