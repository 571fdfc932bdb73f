/*
 * sunproxy ping: is the server there, and how long does the shortest call take? Calls procedure 0,
 * which every program of ONC RPC has (RFC 5531 section 12.1), of both versions.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "client/connect.h"
#include "client/exit_status.h"
#include "cli/output.h"
#include "proxy.h"
#include "client/commands.h"

static int
ping_version(struct rpc_client *client, const struct server *server,
             const struct server_options *options, unsigned version, uint64_t count)
{
    int64_t shortest = INT64_MAX, longest = 0, sum = 0;

    for (uint64_t i = 0; i < count; i++) {
        int64_t begun = clock_monotonic_us(), took;
        enum rpc_client_status status =
            rpc_client_call_wait(client, PROXY_FETCHPROG, version, NULLPROC, NULL, NULL, NULL, NULL,
                                 options->timeout_us);

        took = clock_monotonic_us() - begun;
        if (status != RPC_CLIENT_OK) {
            output_complain("%s, version %u: %s", server->name, version,
                            rpc_client_strstatus(status));
            return exit_of_rpc(status);
        }
        output_put(server->name);
        printf(" version %u: %" PRId64 " us\n", version, took);
        if (output_flush() != EX_OK)
            return EX_IOERR;
        sum += took;
        if (took < shortest)
            shortest = took;
        if (took > longest)
            longest = took;
    }
    if (count > 1) {
        output_put(server->name);
        printf(" version %u: %" PRIu64 " calls, min %" PRId64 " us, mean %.1f us, max %" PRId64
               " us\n",
               version, count, shortest, (double)sum / (double)count, longest);
    }
    return EX_OK;
}

static int
ping(int argc, char **argv)
{
    static const struct option longs[] = {
        {"count", required_argument, NULL, 'c'}, SERVER_LONG_OPTIONS, {NULL, 0, NULL, 0}};
    struct server_options options = SERVER_OPTIONS_DEFAULT;
    struct server server;
    struct rpc_client *client;
    uint64_t count = 1;
    int option, status, taken;

    while ((option = getopt_long(argc, argv, "c:h", longs, NULL)) != -1) {
        if (option == 'h' || option == OPTION_HELP)
            return command_help(&command_ping);
        if (option == 'c') {
            if (!units_parse_uint(optarg, 1, 1000000, &count)) {
                output_complain("--count is a number from 1 to 1000000, not '%s'", optarg);
                return command_usage(&command_ping);
            }
        } else if ((taken = server_option(&options, option, optarg)) <= 0) {
            return command_usage(&command_ping);
        }
    }
    if (optind != argc) {
        output_complain("no argument is expected, but there is '%s'", argv[optind]);
        return command_usage(&command_ping);
    }
    client = server_find(&options, SERVER_ANY, &server, &status);
    if (!client)
        return status;
    status = ping_version(client, &server, &options, PROXY_FETCHVERS, count);
    if (status == EX_OK)
        status = ping_version(client, &server, &options, PROXY_VERS2, count);
    rpc_client_close(client);
    return status;
}

const struct command command_ping = {
    .name = "ping",
    .summary = "measure the round trip of an empty call",
    .help = "usage: sunproxy ping [-c COUNT] [OPTION...]\n\n"
            "Calls procedure 0 of versions 1 and 2 and prints how long each took.\n\n"
            "  -c, --count COUNT   so many calls of each version (default: 1)\n"
            "  -h, --help          this text\n\n" SERVER_OPTIONS_HELP "\n"
            "Exit status: 0 answered; 64 wrong usage; 69 no server, or not this program; 74\n"
            "output could not be written; 75 no answer in time.\n",
    .run = ping,
};
