/*
 * sunproxy purge: makes the server forget pages.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "client/admin.h"
#include "client/connect.h"
#include "cli/output.h"
#include "client/commands.h"

enum { OPTION_ALL = SERVER_OPTION_END, OPTION_PREFIX, OPTION_JSON };

static const struct option longs[] = {
    {"all", no_argument, NULL, OPTION_ALL},
    {"prefix", required_argument, NULL, OPTION_PREFIX},
    {"json", no_argument, NULL, OPTION_JSON},
    SERVER_LONG_OPTIONS,
    {NULL, 0, NULL, 0},
};

static void
set_url(proxy_purge_args *args, proxy_purge_kind kind, char *url)
{
    args->kind = kind;
    args->url.proxy_url_val = url;
    args->url.proxy_url_len = url ? (u_int)strlen(url) : 0;
}

static int
purge_one(struct rpc_client *client, const struct server_options *options,
          const proxy_purge_args *args, uint64_t *purged)
{
    uint64_t left = 0;
    int status = admin_purge(client, options->timeout_us, args, &left);

    *purged += left;
    return status;
}

/* The URLs on the command line, or the one thing that the options say. */
static int
purge_all(const struct server_options *options, proxy_purge_args *args, char **urls, int count,
          bool json)
{
    struct server server;
    uint64_t purged = 0;
    int status;
    struct rpc_client *client = server_find(options, SERVER_ADMIN, &server, &status);

    if (!client)
        return status;
    if (args->kind != PROXY_PURGE_URL)
        status = purge_one(client, options, args, &purged);
    else
        status = EX_OK;
    for (int i = 0; i < count && status == EX_OK; i++) {
        set_url(args, PROXY_PURGE_URL, urls[i]);
        status = purge_one(client, options, args, &purged);
    }
    rpc_client_close(client);
    if (status != EX_OK)
        return status;
    printf(json ? "{\"purged\":%" PRIu64 "}\n" : "%" PRIu64 " pages purged\n", purged);
    return EX_OK;
}

static int
purge(int argc, char **argv)
{
    struct server_options options = SERVER_OPTIONS_DEFAULT;
    proxy_purge_args args = {.kind = PROXY_PURGE_URL};
    unsigned ways = 0;
    bool json = false;
    int option;

    while ((option = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
        if (option == 'h' || option == OPTION_HELP)
            return command_help(&command_purge);
        if (option == OPTION_ALL) {
            ways++;
            set_url(&args, PROXY_PURGE_ALL, NULL);
        } else if (option == OPTION_PREFIX) {
            ways++;
            set_url(&args, PROXY_PURGE_PREFIX, optarg);
        } else if (option == OPTION_JSON) {
            json = true;
        } else if (server_option(&options, option, optarg) <= 0) {
            return command_usage(&command_purge);
        }
    }
    if (optind != argc)
        ways++;
    if (ways != 1) {
        output_complain("say what to purge: URLs, --prefix or --all");
        return command_usage(&command_purge);
    }
    if (args.kind == PROXY_PURGE_PREFIX && args.url.proxy_url_len == 0) {
        output_complain("every URL begins with nothing: to purge all of them, say --all");
        return command_usage(&command_purge);
    }
    return purge_all(&options, &args, argv + optind, argc - optind, json);
}

const struct command command_purge = {
    .name = "purge",
    .summary = "make the server forget pages",
    .help = "usage: sunproxy purge [OPTION...] URL...\n"
            "       sunproxy purge [OPTION...] --prefix PREFIX\n"
            "       sunproxy purge [OPTION...] --all\n\n"
            "Takes pages out of the server's cache and prints how many there were. A URL is\n"
            "taken letter by letter, as it was asked for. For administrators: over the\n"
            "AF_UNIX socket.\n\n"
            "      --prefix PREFIX  every page whose URL begins so\n"
            "      --all            every page\n"
            "      --json           {\"purged\":N}\n"
            "  -h, --help           this text\n\n" SERVER_OPTIONS_HELP "\n"
            "Exit status: 0 done; 64 wrong usage; 69 no server; 74 output could not be\n"
            "written; 75 no answer in time; 77 not for this caller.\n",
    .run = purge,
};
