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
#include "client/server_stats.h"

#define NOT_GIVEN UINT64_MAX

struct set_options {
    struct server_options server;
    proxy_set_args args;
    const char *policy; /* NULL: as it is */
    uint64_t urls;      /* NOT_GIVEN: as it is */
    uint64_t bytes;
    uint64_t shards; /* 0: unchanged */
    bool cold;
    bool dry_run;
    bool json;
};

static int
take_shards(const struct option_row *row, void *field, const char *text)
{
    uint64_t *shards = field;

    if (strcmp(text, "auto") == 0)
        *shards = PROXY_SHARDS_AUTOMATIC;
    else if (!units_parse_uint(text, 1, 1024, shards))
        return options_wrong(row, "a number from 1 to 1024 or auto", text);
    return EX_OK;
}

#define AT(field) offsetof(struct set_options, field)

static const struct option_row rows[] = {
    {"policy", 0, "NAME", option_text, AT(policy), 1, PROXY_MAX_NAME, NULL,
     "replacement policy; 'none' is no cache"},
    {"capacity-urls", 0, "N", option_uint, AT(urls), 0, UINT64_MAX - 1, NULL,
     "capacity in pages; 0: not bounded in pages, if it is in bytes"},
    {"capacity-bytes", 0, "SIZE", option_bytes, AT(bytes), 0, 0, NULL,
     "capacity in bytes: 64M, 1.5GB; 0: not bounded in bytes, if it is in pages"},
    {"shards", 0, "N|auto", take_shards, AT(shards), 0, 0, NULL,
     "number of independent parts; with 1 the policy is exact; auto: follows the capacity"},
    {"cold", 0, NULL, option_flag, AT(cold), 0, 0, NULL,
     "empty the cache and set the counters to zero"},
    {"dry-run", 'n', NULL, option_flag, AT(dry_run), 0, 0, NULL,
     "check the values and print what would be in force; change nothing"},
    {"json", 0, NULL, option_flag, AT(json), 0, 0, NULL, "print one JSON object"},
    {0},
};

static const struct option_group own = {.rows = rows};

/* The call sets both capacities or none: reads the one that was not given from the server. */
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

/* `kept` is NULL where nothing was changed. */
static int
show_state(const struct set_options *options, const proxy_set_state *state, const uint64_t *kept)
{
    char capacity[64];
    struct buf out;
    struct json j;

    if (!options->json) {
        printf("policy ");
        output_put(state->policy);
        printf(", %s, shards: %u",
               capacity_format(state->capacity_urls, state->capacity_bytes, capacity,
                               sizeof(capacity)),
               state->shards);
        if (kept)
            printf(", pages kept: %" PRIu64 "\n", *kept);
        else
            puts(" (dry run: nothing was changed)");
        return EX_OK;
    }
    buf_init(&out, 4096);
    json_init(&j, &out);
    json_open_object(&j, NULL);
    json_cstring(&j, "policy", state->policy);
    json_uint(&j, "capacity_urls", state->capacity_urls);
    json_uint(&j, "capacity_bytes", state->capacity_bytes);
    json_uint(&j, "shards", state->shards);
    if (kept)
        json_uint(&j, "kept", *kept);
    else
        json_null(&j, "kept");
    json_bool(&j, "dry_run", !kept);
    json_close_object(&j);
    return output_json(&out);
}

static int
show_new_state(struct rpc_client *client, const struct set_options *options, uint64_t kept)
{
    char policy[PROXY_MAX_NAME + 1];
    proxy_set_state state = {.policy = policy};
    proxy_stats stats;
    int status = admin_stat(client, options->server.timeout_us, &stats);

    if (status != EX_OK)
        return status;
    snprintf(policy, sizeof(policy), "%s", server_stats_fact(&stats, "policy"));
    state.capacity_urls = server_stats_value(&stats, "cache_capacity_pages");
    state.capacity_bytes = server_stats_value(&stats, "cache_capacity_bytes");
    state.shards = (u_int)server_stats_value(&stats, "cache_shards");
    admin_free_stats(&stats);
    return show_state(options, &state, &kept);
}

static int
preview(struct rpc_client *client, const struct set_options *options)
{
    proxy_set_state state;
    int status = admin_set_preview(client, options->server.timeout_us, &options->args, &state);

    if (status != EX_OK)
        return status;
    status = show_state(options, &state, NULL);
    admin_free_state(&state);
    return status;
}

static int
set_and_show(struct rpc_client *client, const struct set_options *options)
{
    uint64_t kept = 0;
    int status = admin_set(client, options->server.timeout_us, &options->args, &kept);

    return status == EX_OK ? show_new_state(client, options, kept) : status;
}

static int
change(struct set_options *options)
{
    struct server server;
    int status;
    struct rpc_client *client = server_find(&options->server, SERVER_ADMIN, &server, &status);

    if (!client)
        return status;
    status = complete_capacity(client, options);
    if (status == EX_OK)
        status = options->dry_run ? preview(client, options) : set_and_show(client, options);
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
        output_complain("nothing to set: give an option");
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
             "Changes the cache of a running server and prints what is in force afterwards.\n"
             "Pages that fit the new capacity stay, unless --cold is given. Options that are\n"
             "not given leave their value as it is; but the number of shards follows the\n"
             "capacity until it is set, and again after --shards auto. For administrators,\n"
             "over the AF_UNIX socket.\n",
    .options = {&own, &server_option_group},
    .after = "Exit status: 0 done; 64 wrong usage or an invalid value; 69 no server; 74\n"
             "output could not be written; 75 no answer in time; 77 permission denied.\n",
    .run = set,
};
