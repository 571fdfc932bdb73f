/*
 * sunproxy reload: has a running server read its configuration again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "cli/output.h"
#include "client/admin.h"
#include "client/commands.h"
#include "client/connect.h"

struct reload_options {
    struct server_options server;
};

static int
reload(int argc, char **argv)
{
    struct reload_options options = {{0}};
    void *const into[] = {&options.server};
    struct server server;
    struct rpc_client *client;
    char *text;
    int status = command_read(&command_reload, into, argc, argv);

    if (status != COMMAND_GO_ON)
        return status;
    client = server_find(&options.server, SERVER_ADMIN, &server, &status);
    if (!client)
        return status;
    status = admin_reload(client, options.server.timeout_us, &text);
    rpc_client_close(client);
    if (status != EX_OK)
        return status;
    output_put(text);
    putchar('\n');
    free(text);
    return EX_OK;
}

const struct command command_reload = {
    .name = "reload",
    .summary = "have a running server read its configuration again",
    .about = "usage: sunproxy reload [OPTION...]\n\n"
             "The server reads its configuration file again, as at SIGHUP: all of it takes\n"
             "effect, and the options that have changed are printed, or nothing of it, and\n"
             "what is wrong is. For administrators, over the AF_UNIX socket.\n",
    .options = {&server_option_group},
    .after = "Exit status: 0 done; 64 wrong usage; 69 no server; 74 output could not be\n"
             "written; 75 no answer in time; 77 permission denied; 78 wrong configuration.\n",
    .run = reload,
};
