/*
 * sunproxy ping: measures the round trip of the shortest call, procedure 0 of both versions, which
 * every program of ONC RPC has (RFC 5531 section 12.1).
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
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
                            version == PROXY_VERS2 ? rpc_status_sentence(status)
                                                   : rpc_client_strstatus(status));
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

struct ping_options {
    struct server_options server;
    uint64_t count;
};

static const struct option_row rows[] = {
    {"count", 'c', "COUNT", option_uint, offsetof(struct ping_options, count), 1, 1000000, "1",
     "number of calls of each version"},
    {0},
};

static const struct option_group own = {.rows = rows};

static int
ping(int argc, char **argv)
{
    struct ping_options options = {.count = 0};
    void *const into[] = {&options, &options.server};
    struct server server;
    struct rpc_client *client;
    int status = command_read(&command_ping, into, argc, argv);

    if (status != COMMAND_GO_ON)
        return status;
    client = server_find(&options.server, SERVER_ANY, &server, &status);
    if (!client)
        return status;
    status = ping_version(client, &server, &options.server, PROXY_FETCHVERS, options.count);
    if (status == EX_OK)
        status = ping_version(client, &server, &options.server, PROXY_VERS2, options.count);
    rpc_client_close(client);
    return status;
}

const struct command command_ping = {
    .name = "ping",
    .summary = "measure the round trip of an empty call",
    .about = "usage: sunproxy ping [-c COUNT] [OPTION...]\n\n"
             "Calls procedure 0 of versions 1 and 2 and prints how long each took.\n",
    .options = {&own, &server_option_group},
    .after = "Exit status: 0 answered; 64 wrong usage; 69 no server, or not this program; 74\n"
             "output could not be written; 75 no answer in time.\n",
    .run = ping,
};
