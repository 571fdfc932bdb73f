/*
 * sunproxy: the client of sunproxyd. Finds the subcommand and runs it.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/command.h"
#include "client/output.h"

static const struct command *const commands[] = {
    &command_get,    &command_replay,   &command_simulate, &command_advise,
    &command_report, &command_policies, &command_trace,    &command_stat,
    &command_set,    &command_purge,    &command_ping,
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static const struct command *
find(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static void
print_commands(FILE *to)
{
    fputs("usage: sunproxy COMMAND [OPTION...] [ARGUMENT...]\n\nCommands:\n", to);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(to, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fputs("  help       help on a command: sunproxy help COMMAND\n\n"
          "  --help     this text\n"
          "  --version  the version of this program\n",
          to);
}

static int
unknown(const char *name)
{
    output_complain("no command is called '%s'", name);
    fputs("Try 'sunproxy --help'.\n", stderr);
    return EX_USAGE;
}

static int
run(const struct command *command, int argc, char **argv)
{
    static char name[64];

    snprintf(name, sizeof(name), "sunproxy %s", command->name);
    output_name(name);
    argv[0] = name;
    return command->run(argc, argv);
}

static int
dispatch(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    const struct command *command;

    if (!name) {
        print_commands(stderr);
        return EX_USAGE;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        puts("sunproxy " SUNPROXY_VERSION);
        return EX_OK;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
        (strcmp(name, "help") == 0 && argc == 2)) {
        print_commands(stdout);
        return EX_OK;
    }
    if (strcmp(name, "help") == 0)
        return (command = find(argv[2])) ? command_help(command) : unknown(argv[2]);
    return (command = find(name)) ? run(command, argc - 1, argv + 1) : unknown(name);
}

/*
 * A standard descriptor that was closed would be that of the next socket, and the page would go to
 * the server. One that can be neither written nor usefully read takes its place; writing to it
 * fails.
 */
static bool
occupy_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd)
            return false;
    return true;
}

int
main(int argc, char **argv)
{
    if (!occupy_standard_descriptors())
        return EX_OSERR;
    /* A reader that goes away is a write error, which is noticed and told. */
    signal(SIGPIPE, SIG_IGN);
    return output_finish(dispatch(argc, argv));
}
