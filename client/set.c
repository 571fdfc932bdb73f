/*
 * sunproxy set: changes the cache of a running server.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "client/admin.h"
#include "cli/capacity.h"
#include "client/connect.h"
#include "cli/output.h"
#include "client/commands.h"
#include "client/server_stats.h"

#define NOT_GIVEN UINT64_MAX

struct set_options {
    struct server_options server;
    proxy_set_args args;
    const char *policy; /* NULL: as it is */
    uint64_t urls;      /* NOT_GIVEN: as it is */
    uint64_t bytes;
    uint64_t shards; /* 0: as many as there are */
    bool cold;
    bool json;
};

#define AT(field) offsetof(struct set_options, field)

static const struct option_row rows[] = {
    {"policy", 0, "NAME", option_text, AT(policy), 1, PROXY_MAX_NAME, NULL,
     "replacement policy; 'none' is no cache"},
    {"capacity-urls", 0, "N", option_uint, AT(urls), 0, UINT64_MAX - 1, NULL,
     "capacity in pages; 0: no bound"},
    {"capacity-bytes", 0, "SIZE", option_bytes, AT(bytes), 0, 0, NULL,
     "capacity in bytes: 64M, 1.5GB; 0: no bound"},
    {"shards", 0, "N", option_uint, AT(shards), 1, 1024, NULL,
     "number of independent parts; 1 makes outcomes exact"},
    {"cold", 0, NULL, option_flag, AT(cold), 0, 0, NULL,
     "empty the cache and set the counters to zero"},
    {"json", 0, NULL, option_flag, AT(json), 0, 0, NULL, "print one JSON object"},
    {0},
};

static const struct option_group own = {.rows = rows};

/* The call sets both capacities or none: the one that was not named stays as it is. */
static int
complete_capacity(struct rpc_client *client, struct set_options *options)
{
    proxy_stats stats;
    int status;

    bool urls_given = options->urls != NOT_GIVEN, bytes_given = options->bytes != NOT_GIVEN;

    options->args.set_capacity = urls_given || bytes_given;
    options->args.capacity_urls = urls_given ? options->urls : 0;
    options->args.capacity_bytes = bytes_given ? options->bytes : 0;
    if (urls_given == bytes_given)
        return EX_OK;
    status = admin_stat(client, options->server.timeout_us, &stats);
    if (status != EX_OK)
        return status;
    if (!urls_given)
        options->args.capacity_urls = server_stats_value(&stats, "cache_capacity_pages");
    else
        options->args.capacity_bytes = server_stats_value(&stats, "cache_capacity_bytes");
    admin_free_stats(&stats);
    return EX_OK;
}

static int
show_new_state(struct rpc_client *client, const struct set_options *options, uint64_t kept)
{
    proxy_stats stats;
    uint64_t urls, bytes, shards;
    char capacity[64];
    int status = admin_stat(client, options->server.timeout_us, &stats);

    if (status != EX_OK)
        return status;
    urls = server_stats_value(&stats, "cache_capacity_pages");
    bytes = server_stats_value(&stats, "cache_capacity_bytes");
    shards = server_stats_value(&stats, "cache_shards");
    if (options->json) {
        struct buf out;
        struct json j;

        buf_init(&out, 4096);
        json_init(&j, &out);
        json_open_object(&j, NULL);
        json_cstring(&j, "policy", server_stats_fact(&stats, "policy"));
        json_uint(&j, "capacity_urls", urls);
        json_uint(&j, "capacity_bytes", bytes);
        json_uint(&j, "shards", shards);
        json_uint(&j, "kept", kept);
        json_close_object(&j);
        status = output_json(&out);
    } else {
        printf("policy ");
        output_put(server_stats_fact(&stats, "policy"));
        printf(", %s, shards: %" PRIu64 ", pages kept: %" PRIu64 "\n",
               capacity_format(urls, bytes, capacity, sizeof(capacity)), shards, kept);
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
    struct set_options options = {.urls = NOT_GIVEN, .bytes = NOT_GIVEN};
    void *const into[] = {&options, &options.server};
    int status = command_read(&command_set, into, argc, argv);

    if (status != COMMAND_GO_ON)
        return status;
    if (!options.policy && options.urls == NOT_GIVEN && options.bytes == NOT_GIVEN &&
        options.shards == 0 && !options.cold) {
        output_complain("say what to set");
        return command_usage(&command_set);
    }
    options.args.policy = options.policy ? (char *)(uintptr_t)options.policy : nothing;
    options.args.shards = (u_int)options.shards;
    options.args.cold = options.cold;
    return change(&options);
}

const struct command command_set = {
    .name = "set",
    .summary = "change policy and capacity of a running server",
    .about = "usage: sunproxy set [OPTION...]\n\n"
             "Changes the cache of a running server and prints what is in force then. Pages\n"
             "that fit stay, unless --cold is given. What is not named stays as it is. For\n"
             "administrators, over the AF_UNIX socket.\n",
    .options = {&own, &server_option_group},
    .after = "Exit status: 0 done; 64 wrong usage or a value that cannot be; 69 no server; 74\n"
             "output could not be written; 75 no answer in time; 77 not for this caller.\n",
    .run = set,
};
